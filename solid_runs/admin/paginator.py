"""Counting rows only as far as somebody reads."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import QuerySet

CAP: Final = 10_000

if TYPE_CHECKING:
    PaginatorBase = Paginator[Any]
else:
    PaginatorBase = Paginator


def count_up_to(queryset: QuerySet[Any], cap: int) -> tuple[int, bool]:
    """The number of rows, at most ``cap``, and whether there are more."""
    counted = queryset.order_by().values("pk")[: cap + 1].count()
    return min(counted, cap), counted > cap


class CappedPaginator(PaginatorBase):
    """Counts no row past ``cap``, however large the table; ``is_capped`` says that there are more.

    Pages past the cap do not exist: nobody reads them, and the database would walk to them.
    """

    cap = CAP

    @cached_property
    def _counted(self) -> tuple[int, bool]:
        assert isinstance(self.object_list, QuerySet)  # noqa: S101
        return count_up_to(self.object_list, self.cap)

    @cached_property
    def count(self) -> int:
        return self._counted[0]

    @property
    def is_capped(self) -> bool:
        return self._counted[1]
