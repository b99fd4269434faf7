"""Asking runs to stop for a person: through the store, and into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext, ngettext

from solid_runs.admin.display import count_text
from solid_runs.threads.records import TERMINAL

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.threads.admin.runs import ThreadRunAdmin
    from solid_runs.threads.models import ThreadRun


class Outcome(Enum):
    ASKED = auto()
    """Its driver ends it once it sees the request."""
    BEFORE = auto()
    """Somebody has asked before."""
    ENDED = auto()
    """There is nothing to stop any more."""
    REFUSED = auto()
    """This person may not."""


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
        if outcome is Outcome.ASKED:
            admin.get_store(run.scope).request_cancel(run.run_id)
            admin.log_change(request, run, gettext("Asked to stop."))
    return told


def _outcome(admin: ThreadRunAdmin, request: HttpRequest, run: ThreadRun) -> Outcome:
    if not admin.has_cancel_permission(request, run):
        return Outcome.REFUSED
    if run.status in TERMINAL:
        return Outcome.ENDED
    return Outcome.ASKED if can_be_asked(run) else Outcome.BEFORE


def report(admin: ThreadRunAdmin, request: HttpRequest, told: Counter[Outcome]) -> None:
    """Tell how many were asked, and how many were not and why."""
    for outcome, count in told.items():
        level, message = _message(outcome, count)
        admin.message_user(request, message % {"count": count_text(count)}, level)


def _message(outcome: Outcome, count: int) -> tuple[int, Any]:
    if outcome is Outcome.ASKED:
        return messages.SUCCESS, ngettext(
            "%(count)s run was asked to stop: it goes on until its driver ends it.",
            "%(count)s runs were asked to stop: they go on until their drivers end them.",
            count,
        )
    if outcome is Outcome.BEFORE:
        return messages.WARNING, ngettext(
            "%(count)s run was skipped: it was asked to stop before.",
            "%(count)s runs were skipped: they were asked to stop before.",
            count,
        )
    if outcome is Outcome.ENDED:
        return messages.WARNING, ngettext(
            "%(count)s run was skipped: it had ended already.",
            "%(count)s runs were skipped: they had ended already.",
            count,
        )
    return messages.ERROR, ngettext(
        "%(count)s run was skipped: you may not ask it to stop.",
        "%(count)s runs were skipped: you may not ask them to stop.",
        count,
    )
