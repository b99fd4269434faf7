"""Who released an answer that had been acted on: it is in the history of the admin, and only there.

A release by other means than the admin is not known here.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib.admin.models import LogEntry
from django.utils import timezone

from solid_runs.ag_ui.interrupts import AnswerState

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.options import StoreAdmin
    from solid_runs.ag_ui.models import RunInterrupt

# Not translated: they are searched for, whatever language the one who released reads.
BEFORE: Final = "Released: run "
AFTER: Final = " had acted on it, so its tool may run twice."


class Release(NamedTuple):
    by: str
    at: datetime
    acted: str
    """The run that had acted on the answer."""


def log_release(admin: StoreAdmin, request: HttpRequest, interrupt: RunInterrupt) -> None:
    """``interrupt``: as it was before, with the run that had acted on it."""
    admin.log_change(request, interrupt, f"{BEFORE}{interrupt.redeemed_by}{AFTER}")


def releases(interrupts: list[RunInterrupt]) -> dict[int, Release]:
    """The last release of each, by its key: one query, none if nothing was answered."""
    keys = {str(one.pk): one.pk for one in interrupts if one.state is not AnswerState.OPEN}
    if not keys:
        return {}
    opts = interrupts[0]._meta
    entries: Any = LogEntry.objects.filter(
        content_type__app_label=opts.app_label,
        content_type__model=opts.model_name,
        object_id__in=keys,
        change_message__startswith=BEFORE,
    )
    return {
        keys[entry.object_id]: Release(
            entry.user.get_username(), _aware(entry.action_time), _run_of(entry.change_message)
        )
        for entry in entries.select_related("user").order_by("action_time", "pk")
    }


def _run_of(message: str) -> str:
    return message.removeprefix(BEFORE).removesuffix(AFTER)


def _aware(moment: datetime) -> datetime:
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
