"""Asking runs to stop for a person: through the store, and into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.display import count_text
from solid_runs.threads.records import TERMINAL, Status

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.threads.admin.runs import ThreadRunAdmin
    from solid_runs.threads.models import ThreadRun


class Outcome(Enum):
    ASKED = auto()
    """Its driver ends it once it sees the request."""
    ASKED_UNCLAIMED = auto()
    """No driver has claimed it."""
    ASKED_PAUSED = auto()
    """It is interrupted: nobody drives it until somebody takes it up."""
    ALREADY_ASKED = auto()
    """Somebody has asked before."""
    ENDED = auto()
    """There is nothing to stop any more."""
    REFUSED = auto()
    """This person may not."""


WHO_ENDS: Final[dict[Outcome, Any]] = {
    Outcome.ASKED: _("The run goes on until its driver sees the request and ends the run."),
    Outcome.ASKED_UNCLAIMED: _(
        "No driver has claimed the run: whoever drives it must look at the request, and nobody "
        "else ends the run while it is watched."
    ),
    Outcome.ASKED_PAUSED: _(
        "Nobody drives the run now: whoever takes it up sees the request, and nobody else ends "
        "the run."
    ),
}

MESSAGES: Final[dict[Outcome, tuple[int, Any]]] = {
    Outcome.ASKED: (
        messages.SUCCESS,
        ngettext_lazy(
            "%(count)s run was asked to stop: it goes on until its driver ends it.",
            "%(count)s runs were asked to stop: they go on until their drivers end them.",
            "number",
        ),
    ),
    Outcome.ASKED_UNCLAIMED: (
        messages.SUCCESS,
        ngettext_lazy(
            "%(count)s run that no driver has claimed was asked to stop: whoever drives it must "
            "look at the request, and nobody else ends it while it is watched.",
            "%(count)s runs that no driver has claimed were asked to stop: whoever drives them "
            "must look at the request, and nobody else ends them while they are watched.",
            "number",
        ),
    ),
    Outcome.ASKED_PAUSED: (
        messages.SUCCESS,
        ngettext_lazy(
            "%(count)s run that nobody drives now was asked to stop: whoever takes it up sees the "
            "request, and nobody else ends it.",
            "%(count)s runs that nobody drives now were asked to stop: whoever takes them up sees "
            "the request, and nobody else ends them.",
            "number",
        ),
    ),
    Outcome.ALREADY_ASKED: (
        messages.WARNING,
        ngettext_lazy(
            "%(count)s run was skipped: it was asked to stop before.",
            "%(count)s runs were skipped: they were asked to stop before.",
            "number",
        ),
    ),
    Outcome.ENDED: (
        messages.WARNING,
        ngettext_lazy(
            "%(count)s run was skipped: it had ended already.",
            "%(count)s runs were skipped: they had ended already.",
            "number",
        ),
    ),
    Outcome.REFUSED: (
        messages.ERROR,
        ngettext_lazy(
            "%(count)s run was skipped: you may not ask it to stop.",
            "%(count)s runs were skipped: you may not ask them to stop.",
            "number",
        ),
    ),
}


def can_be_asked(run: ThreadRun) -> bool:
    return run.status not in TERMINAL and run.cancel_requested is not True


def ask_runs(
    admin: ThreadRunAdmin, request: HttpRequest, runs: Iterable[ThreadRun]
) -> Counter[Outcome]:
    """Ask each through the store of its scope; log those that were asked."""
    told: Counter[Outcome] = Counter()
    for run in runs:
        outcome = _outcome(admin, request, run)
        told[outcome] += 1
        if outcome in WHO_ENDS:
            admin.get_store(run.scope).request_cancel(run.run_id)
            admin.log_change(request, run, gettext("Asked to stop."))
    return told


def _outcome(admin: ThreadRunAdmin, request: HttpRequest, run: ThreadRun) -> Outcome:
    if not admin.has_cancel_permission(request, run):
        return Outcome.REFUSED
    if run.status in TERMINAL:
        return Outcome.ENDED
    return _asked(run) if can_be_asked(run) else Outcome.ALREADY_ASKED


def _asked(run: ThreadRun) -> Outcome:
    if run.status == Status.INTERRUPTED:
        return Outcome.ASKED_PAUSED
    return Outcome.ASKED_UNCLAIMED if run.driver_epoch is None else Outcome.ASKED


def who_ends(run: ThreadRun) -> Any:
    """What comes of a request to stop a run that has not ended."""
    return WHO_ENDS[_asked(run)]


def report(admin: ThreadRunAdmin, request: HttpRequest, told: Counter[Outcome]) -> None:
    """Tell how many were asked, and how many were not and why."""
    for outcome, count in told.items():
        level, message = MESSAGES[outcome]
        values = {"number": count, "count": count_text(count)}
        admin.message_user(request, message % values, level)
