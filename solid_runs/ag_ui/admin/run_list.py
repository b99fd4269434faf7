"""The list of runs: its filter by status, and what each run of a page waits for."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Count, Exists, Min
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.display import count_text
from solid_runs.admin.store_rows import StoreChangeList
from solid_runs.ag_ui.admin.display import BADGES, until
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import STATES, ReservedRun, RunInterrupt, later_runs
from solid_runs.ag_ui.records import ACTIVE, Status

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

SILENT: Final = "silent"


class StatusFilter(SimpleListFilter):
    title = _("status")
    parameter_name = "status"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self.model_admin = model_admin

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        statuses = [(str(status), label) for status, (label, _style) in BADGES.items()]
        return [*statuses, (SILENT, _("silent"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value == SILENT:
            return queryset.filter(silent=True)
        if value not in tuple(Status):
            raise IncorrectLookupParameters(f"{value!r} is not a status of a run.")
        return queryset.filter(status=value)


class Asked(NamedTuple):
    """How many questions of a run are in which state, and the nearest deadline of open ones."""

    open: int
    free: int
    held: int
    deadline: datetime | None
    stale: bool


class RunChangeList(StoreChangeList):
    """Says of each run of a page what it waits for, as its ``asked``: two queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        keys = [run.pk for run in self.result_list if run.status == Status.INTERRUPTED]
        using = self.root_queryset.db
        later = Exists(later_runs().filter(status=Status.INTERRUPTED))
        runs = ReservedRun.objects.using(using).filter(later, pk__in=keys)
        stale = set(runs.values_list("pk", flat=True))
        interrupts = RunInterrupt.objects.using(using).filter(run__in=keys).order_by()
        counted = interrupts.values_list("run").annotate(
            open=Count("pk", filter=STATES[AnswerState.OPEN]),
            free=Count("pk", filter=STATES[AnswerState.FREE]),
            held=Count("pk", filter=STATES[AnswerState.HELD]),
            deadline=Min("expires_at", filter=STATES[AnswerState.OPEN]),
        )
        asked = {run: Asked._make([*counts, run in stale]) for run, *counts in counted}
        for run in self.result_list:
            run.asked = asked.get(run.pk)


def waits_for(run: ReservedRun, asked: Asked | None, now: datetime) -> Any:
    """Who or what has to come before this run, or its thread, goes on; None: nothing."""
    if run.status in ACTIVE:
        return None if run.cancel_requested_at is None else gettext("its owner, to cancel it")
    if asked is None:
        return None
    if asked.stale:
        return gettext("nothing: a later run has asked") if asked.open or asked.free else None
    if asked.open:
        return until(asked.open, asked.deadline, now)
    if asked.free:
        words = ngettext(
            "the next run, to take %(count)s answer",
            "the next run, to take %(count)s answers",
            asked.free,
        )
        return words % {"count": count_text(asked.free)}
    if asked.held:
        words = ngettext(
            "the run that took %(count)s answer",
            "the run that took %(count)s answers",
            asked.held,
        )
        return words % {"count": count_text(asked.held)}
    return None
