"""How states, deadlines and answers are shown: text and escaped HTML."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.timesince import timeuntil
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.display import ago, labelled_badge, time_tag
from solid_runs.ag_ui.interrupts import CANCELLED, AnswerState
from solid_runs.ag_ui.records import Status

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from solid_runs.ag_ui.interrupts import Interrupt
    from solid_runs.ag_ui.models import RunInterrupt

BADGES: Final[dict[str, tuple[Any, str]]] = {
    Status.RESERVED: (_("reserved"), "run-pending"),
    Status.STARTED: (_("started"), "run-running"),
    Status.SUCCEEDED: (_("succeeded"), "run-complete"),
    Status.INTERRUPTED: (_("interrupted"), "run-interrupted"),
    Status.CANCELLED: (_("cancelled"), "run-cancelled"),
    Status.FAILED: (_("failed"), "run-failed"),
}
"""The word and the style of each status of a run."""

STATES: Final[dict[AnswerState, tuple[Any, str]]] = {
    AnswerState.OPEN: (_("open"), "run-running"),
    AnswerState.HELD: (_("held"), "run-interrupted"),
    AnswerState.FREE: (_("free"), "run-interrupted"),
    AnswerState.SETTLED: (_("settled"), "run-complete"),
}
"""The word and the style of each state of an answer."""

SOON: Final = timedelta(minutes=5)
"""A deadline that is nearer than this stands out."""
NAME_CHARS: Final = 80
"""Of a question where it is named in a message or a link."""

TOOL_KEYS: Final = ("toolName", "tool_name", "tool")
ARGUMENT_KEYS: Final = ("arguments", "args")
"""Where an interrupt's metadata says which tool is meant, and with what; the first one counts."""


def status_badge(status: str) -> SafeString:
    return labelled_badge(*BADGES.get(status, (status, "run-unknown")))


def state_badge(
    interrupt: RunInterrupt,
    now: datetime,
    *,
    is_unknown: bool = False,
    is_released: bool = False,
) -> SafeString:
    if interrupt.state is AnswerState.OPEN:
        if getattr(interrupt, "stale", False):
            return labelled_badge(_("stale"), "run-pending")
        if is_expired(interrupt, now):
            return labelled_badge(_("expired"), "run-pending")
    if interrupt.state is AnswerState.SETTLED and is_cancelled(interrupt):
        return labelled_badge(_("cancelled"), "run-cancelled")
    if is_unknown:
        return labelled_badge(_("outcome unknown"), "run-failed")
    if is_released and interrupt.state is not AnswerState.SETTLED:
        return labelled_badge(_("released"), "run-failed")
    return labelled_badge(*STATES[interrupt.state])


def is_expired(interrupt: RunInterrupt, now: datetime) -> bool:
    return interrupt.expires_at is not None and interrupt.expires_at <= now


def is_cancelled(interrupt: RunInterrupt) -> bool:
    decision = interrupt.decision
    return isinstance(decision, Mapping) and decision.get("status") == CANCELLED


def deadline(interrupt: RunInterrupt, now: datetime) -> SafeString | str:
    """Until when it may be answered."""
    if interrupt.expires_at is None:
        return gettext("no deadline")
    return deadline_text(interrupt.expires_at, now)


def deadline_text(expires_at: datetime, now: datetime) -> SafeString:
    """A deadline in words, the exact time in the title."""
    if expires_at <= now:
        return time_tag(expires_at, gettext("expired %(ago)s") % {"ago": ago(expires_at, now)})
    left = expires_at - now
    seconds = int(left.total_seconds())
    if seconds < 60:
        words = ngettext("expires in %(count)s second", "expires in %(count)s seconds", seconds)
        words %= {"count": seconds}
    else:
        words = gettext("expires in %(time)s") % {"time": timeuntil(expires_at, now, depth=1)}
    return time_tag(expires_at, words, "run-soon" if left < SOON else "")


def verb(decision: Any) -> str:
    """What an answer says, in a word."""
    if isinstance(decision, Mapping):
        if decision.get("status") == CANCELLED:
            return gettext("Cancelled")
        payload = decision.get("payload")
        approved = payload.get("approved") if isinstance(payload, Mapping) else None
        if approved is True:
            return gettext("Approved")
        if approved is False:
            return gettext("Denied")
    return gettext("Answered")


def tool_of(metadata: Any) -> tuple[str, Any, dict[str, Any]]:
    """The tool's name, its arguments, and the rest of the metadata of an interrupt."""
    if not isinstance(metadata, Mapping):
        return "", None, {}
    rest = dict(metadata)
    name = next((key for key in TOOL_KEYS if isinstance(rest.get(key), str) and rest[key]), None)
    tool = "" if name is None else storable.text(rest.pop(name))
    found = next((key for key in ARGUMENT_KEYS if key in rest), None)
    return tool, None if found is None else rest.pop(found), rest


def kind_of(interrupt: RunInterrupt | Interrupt) -> str:
    """``tool_call · refund``"""
    tool = tool_of(interrupt.metadata)[0]
    return " · ".join(filter(None, (storable.text(interrupt.reason), tool)))


def name_of(interrupt: RunInterrupt | Interrupt) -> str:
    """What it asks, in one short line."""
    asked = " ".join(storable.text(interrupt.message or "").split()) or kind_of(interrupt)
    return Truncator(asked).chars(NAME_CHARS)


def until(count: int, deadline: datetime | None, now: datetime) -> Any:
    """``2 answers, the first until …``"""
    words = ngettext("%(count)s answer", "%(count)s answers", count) % {"count": count}
    if deadline is None:
        return words
    return format_html("{}, {}", words, deadline_text(deadline, now))
