"""The list of the inbox: its shelves, and a page of one of them as cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.paginator import count_up_to
from solid_runs.admin.read_only import CappedChangeList
from solid_runs.ag_ui.inbox.attention import attention_keys
from solid_runs.ag_ui.inbox.shelves import ATTENTION, WAITING, shelf

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.cards import Card

SHOWN: Final = {
    WAITING: _("Waiting"),
    ATTENTION: _("Needs attention"),
    "expired": _("Expired"),
    "stale": _("Stale"),
    "answered": _("Answered"),
    "all": _("All"),
}
"""The shelves that the inbox offers."""
COUNTED: Final = (WAITING, ATTENTION, "expired", "stale")
MOST_COUNTED: Final = 99


class ShelfFilter(SimpleListFilter):
    """What waits, unless something else is asked for; a search goes through all."""

    title = _("state")
    parameter_name = "show"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(SHOWN.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset  # InboxChangeList does it, and the order with it


class InboxChangeList(CappedChangeList):
    """Cards instead of rows."""

    model_admin: Any
    cards: list[Card]
    shelf: str

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Any]:
        found: Any = super().get_queryset(request, exclude_parameters)
        self.shelf = self.params.get("show") or ("all" if self.query else WAITING)
        if self.shelf not in SHOWN:
            raise IncorrectLookupParameters(f"{self.shelf!r} is none of {', '.join(SHOWN)}.")
        return shelf(found, self.shelf, self.model_admin.get_store().now())

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        self.cards = self.model_admin.cards(request, self.result_list)

    def tabs(self) -> Iterator[dict[str, Any]]:
        """The shelves, those that one should look at with how many there are."""
        for name, label in SHOWN.items():
            yield {
                "label": label,
                "url": self.get_query_string({"show": name}, remove=["p"]),
                "selected": name == self.shelf,
                "is_urgent": name == ATTENTION,
                "count": self._count_text(name) if name in COUNTED else "",
            }

    def _count_text(self, name: str) -> str:
        """How many there are, ``99+`` for more, nothing for none."""
        if name == ATTENTION:
            counted = len(attention_keys(self.root_queryset))
            more = counted > MOST_COUNTED
        else:
            rows = shelf(self.root_queryset, name, self.model_admin.get_store().now())
            counted, more = count_up_to(rows, MOST_COUNTED)
        return f"{MOST_COUNTED}+" if more else str(counted or "")
