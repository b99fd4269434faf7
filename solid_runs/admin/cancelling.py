"""Cancelling runs for a person: through the lifecycle, with their name, and into the history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext, ngettext

from solid_runs.admin.display import count_text
from solid_runs.exceptions import RunNotFound, UnknownStatusError

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.admin.options import RunAdmin
    from solid_runs.mixin import AgentRunMixin


@dataclass(slots=True)
class Cancelled:
    """What became of the runs that somebody asked to cancel."""

    cancelled: int = 0
    skipped: int = 0
    """They had ended, or hold a status that cannot be moved, or are gone."""
    refused: int = 0
    """This person may not cancel them."""


def cancel_runs(admin: RunAdmin, request: HttpRequest, runs: Iterable[AgentRunMixin]) -> Cancelled:
    """Cancel each through run.cancel(), so that the row decides; log those that were."""
    result = Cancelled()
    for run in runs:
        if not admin.has_cancel_permission(request, run):
            result.refused += 1
        elif cancel(run, request):
            result.cancelled += 1
            admin.log_change(request, run, gettext("Cancelled."))
        else:
            result.skipped += 1
    return result


def cancel(run: AgentRunMixin, request: HttpRequest) -> bool:
    user: Any = request.user
    try:
        return run.cancel(f"Cancelled by {user.get_username()}")
    except (RunNotFound, UnknownStatusError):
        return False


def report(admin: RunAdmin, request: HttpRequest, result: Cancelled) -> None:
    """Tell how many were cancelled, and how many were not and why."""
    told = {
        messages.SUCCESS: (
            result.cancelled,
            ngettext(
                "%(count)s run was cancelled.", "%(count)s runs were cancelled.", result.cancelled
            ),
        ),
        messages.WARNING: (
            result.skipped,
            ngettext(
                "%(count)s run was skipped: it was no longer in progress.",
                "%(count)s runs were skipped: they were no longer in progress.",
                result.skipped,
            ),
        ),
        messages.ERROR: (
            result.refused,
            ngettext(
                "%(count)s run was skipped: you may not cancel it.",
                "%(count)s runs were skipped: you may not cancel them.",
                result.refused,
            ),
        ),
    }
    for level, (count, message) in told.items():
        if count:
            admin.message_user(request, message % {"count": count_text(count)}, level)
