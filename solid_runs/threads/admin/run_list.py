"""The filters of the lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.utils.translation import gettext_lazy as _

from solid_runs.threads.admin.display import BADGES, INTERRUPT_BADGES
from solid_runs.threads.conversations import stall_cutoff
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.records import TERMINAL, Status

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

Narrowed = Callable[[Any], Any]


class WordFilter(SimpleListFilter):
    """One of a few words, each of which narrows the rows in its own way."""

    words: ClassVar[dict[str, tuple[Any, Narrowed]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(word, label) for word, (label, _narrowed) in self.words.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value not in self.words:
            raise IncorrectLookupParameters(f"{value!r} is none of {', '.join(self.words)}.")
        narrowed: QuerySet[Any] = self.words[value][1](queryset)
        return narrowed


def _with_status(status: str) -> Narrowed:
    return lambda rows: rows.filter(status=status)


OTHER: Final = "other"


class StatusFilter(WordFilter):
    title = _("status")
    parameter_name = "status"
    words: ClassVar[dict[str, tuple[Any, Narrowed]]] = {
        **{str(status): (BADGES[status][0], _with_status(status)) for status in Status},
        OTHER: (_("other"), lambda runs: runs.exclude(status__in=tuple(Status))),
    }


class ConditionFilter(WordFilter):
    title = _("condition")
    parameter_name = "condition"
    words: ClassVar[dict[str, tuple[Any, Narrowed]]] = {
        "active": (_("active"), lambda runs: runs.active()),
        "detached": (_("detached"), lambda runs: runs.detached()),
        "stalled": (_("stalled"), lambda runs: runs.stalled(stall_cutoff())),
        "asked": (
            _("asked to stop"),
            lambda runs: runs.filter(cancel_requested=True).exclude(status__in=TERMINAL),
        ),
    }


class InterruptStatusFilter(WordFilter):
    title = _("status")
    parameter_name = "status"
    words: ClassVar[dict[str, tuple[Any, Narrowed]]] = {
        str(status): (INTERRUPT_BADGES[status][0], _with_status(status))
        for status in InterruptStatus
    }
