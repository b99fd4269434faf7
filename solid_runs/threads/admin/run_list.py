"""The filters of the lists, and what a page of one looks up beside its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.store_rows import StoreChangeList
from solid_runs.threads.admin.display import BADGES, INTERRUPT_BADGES
from solid_runs.threads.conversations import stall_cutoff
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.records import TERMINAL, Status

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.db.models import Model, QuerySet
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


class RunChangeList(StoreChangeList):
    def get_results(self, request: HttpRequest) -> None:
        """Tell of the interrupted runs of the page which have a question open: one query."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        ids = {run.run_id for run in self.result_list if run.status == Status.INTERRUPTED}
        asking = visible_rows(self.model_admin.admin_site, request, ThreadInterrupt, ids)
        pending = asking.filter(status=InterruptStatus.PENDING).order_by()
        waiting = set(pending.values_list("scope", "run_id").distinct())
        for run in self.result_list:
            is_interrupted = run.status == Status.INTERRUPTED
            run.waits_for_a_person = is_interrupted and (run.scope, run.run_id) in waiting


class InterruptChangeList(StoreChangeList):
    def get_results(self, request: HttpRequest) -> None:
        """Give each interrupt of the page the run that asked, or None: one query."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        ids = {interrupt.run_id for interrupt in self.result_list}
        found = visible_rows(self.model_admin.admin_site, request, ThreadRun, ids)
        runs = {(run.scope, run.run_id): run for run in found}
        for interrupt in self.result_list:
            interrupt.asker = runs.get((interrupt.scope, interrupt.run_id))


def visible_rows(
    site: AdminSite, request: HttpRequest, model: type[Model], run_ids: set[str]
) -> QuerySet[Any]:
    """Those of runs with these ids, of whatever scope, as far as this person may see them."""
    registered = site._registry.get(model)
    if registered is None or not registered.has_view_permission(request):
        return model._default_manager.none()
    return registered.get_queryset(request).filter(run_id__in=sorted(run_ids))
