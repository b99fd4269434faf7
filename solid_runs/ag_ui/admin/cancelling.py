"""Asking for the end of runs for a person: through the store, and into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from solid_runs.admin.display import count_text
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.records import ACTIVE, Status

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.runs import ReservedRunAdmin


class Outcome(Enum):
    ENDED = auto()
    """It is cancelled."""
    ABANDONED = auto()
    """It was interrupted, and its open questions are cancelled."""
    ASKED = auto()
    """Its owner sees the request at its next heartbeat."""
    SKIPPED = auto()
    """There was nothing to cancel any more."""
    REFUSED = auto()
    """This person may not."""


def cancellable(run: ReservedRun) -> bool:
    """Whether there is anything to cancel: one query for a run that was interrupted."""
    return run.status in ACTIVE or (run.status == Status.INTERRUPTED and _open(run) > 0)


def _open(run: ReservedRun) -> int:
    return run.interrupts.in_state(AnswerState.OPEN).count()


def cancel_runs(
    admin: ReservedRunAdmin, request: HttpRequest, runs: Iterable[ReservedRun]
) -> Counter[Outcome]:
    """Ask for the end of each through the store; log what was asked for."""
    told: Counter[Outcome] = Counter()
    for run in runs:
        outcome = Outcome.REFUSED
        if admin.has_cancel_permission(request, run):
            outcome = _cancel(admin, request, run)
        told[outcome] += 1
        if outcome in HISTORY:
            admin.log_change(request, run, str(HISTORY[outcome]))
    return told


def _cancel(admin: ReservedRunAdmin, request: HttpRequest, run: ReservedRun) -> Outcome:
    if not cancellable(run):
        return Outcome.SKIPPED
    result = admin.get_store().request_cancel(
        run.scope, run.thread_id, run.run_id, by=admin.decided_by(request)
    )
    if result is None:
        return Outcome.SKIPPED
    if not result.ended:
        return Outcome.ASKED
    if result.record.status == Status.INTERRUPTED:
        return Outcome.ABANDONED
    return Outcome.ENDED if result.record.status == Status.CANCELLED else Outcome.SKIPPED


HISTORY: Final = {
    Outcome.ENDED: _("Cancelled."),
    Outcome.ABANDONED: _("Cancelled its open questions."),
    Outcome.ASKED: _("Asked to cancel."),
}


def report(admin: ReservedRunAdmin, request: HttpRequest, told: Counter[Outcome]) -> None:
    """Tell what was done, and what was not and why."""
    for outcome, count in told.items():
        level, message = _message(outcome, count)
        admin.message_user(request, message % {"count": count_text(count)}, level)


def _message(outcome: Outcome, count: int) -> tuple[int, Any]:
    if outcome is Outcome.ENDED:
        return messages.SUCCESS, ngettext(
            "%(count)s run was cancelled.", "%(count)s runs were cancelled.", count
        )
    if outcome is Outcome.ABANDONED:
        return messages.SUCCESS, ngettext(
            "The open questions of %(count)s run were cancelled.",
            "The open questions of %(count)s runs were cancelled.",
            count,
        )
    if outcome is Outcome.ASKED:
        return messages.INFO, ngettext(
            "%(count)s run was asked to stop: its owner sees that at its next heartbeat.",
            "%(count)s runs were asked to stop: their owners see that at their next heartbeat.",
            count,
        )
    if outcome is Outcome.SKIPPED:
        return messages.WARNING, ngettext(
            "%(count)s run was skipped: there was nothing to cancel any more.",
            "%(count)s runs were skipped: there was nothing to cancel any more.",
            count,
        )
    return messages.ERROR, ngettext(
        "%(count)s run was skipped: you may not cancel it.",
        "%(count)s runs were skipped: you may not cancel them.",
        count,
    )
