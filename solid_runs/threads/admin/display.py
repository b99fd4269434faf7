"""How statuses, times and conditions of runs are shown: text and escaped HTML."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.display import (
    EMPTY,
    clipped,
    clock_text,
    count_text,
    duration_text,
    exact_time,
    labelled_badge,
    moment,
    time_tag,
)
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.records import TERMINAL, Status

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

BADGES: Final[dict[str, tuple[Any, str]]] = {
    Status.RUNNING: (_("running"), "run-running"),
    Status.INTERRUPTED: (_("interrupted"), "run-interrupted"),
    Status.COMPLETED: (_("completed"), "run-complete"),
    Status.FAILED: (_("failed"), "run-failed"),
    Status.ABORTED: (_("aborted"), "run-cancelled"),
}
"""The word and the style of each status; another one that is stored is shown as it is."""

INTERRUPT_BADGES: Final[dict[str, tuple[Any, str]]] = {
    InterruptStatus.PENDING: (_("pending"), "run-interrupted"),
    InterruptStatus.RESOLVED: (_("resolved"), "run-complete"),
    InterruptStatus.CANCELLED: (_("cancelled"), "run-cancelled"),
}


def status_badge(status: str) -> SafeString:
    return labelled_badge(*BADGES.get(status, (status, "run-unknown")))


def interrupt_badge(status: str) -> SafeString:
    return labelled_badge(*INTERRUPT_BADGES.get(status, (status, "run-unknown")))


def scope_text(scope: str) -> SafeString:
    """A scope; the empty one is that of all who name none."""
    return clipped(scope) if scope else format_html('<i class="run-quiet">{}</i>', _("shared"))


# Times


def instant(ms: int) -> datetime | None:
    """Milliseconds since 1970 as a moment; None where no calendar has it."""
    try:
        value = EPOCH + timedelta(milliseconds=ms)
        timezone.localtime(value)  # the first and the last day may have no local time
    except (OverflowError, ValueError):
        return None
    return value


def when(ms: int | None, clock: int) -> Any:
    """How long ago, with the exact time in the title; a number outside of the calendar."""
    if ms is None:
        return EMPTY
    value, now = instant(ms), instant(clock)
    if value is None or now is None:
        return _number(ms)
    return moment(value, now)


def exactly(ms: int | None) -> str:
    value = None if ms is None else instant(ms)
    return "" if value is None else exact_time(value)


def since(words: str, alone: Any, ms: int | None, clock: int, style: str) -> SafeString:
    """``words`` with how long it has been; ``alone`` where that cannot be said."""
    value, now = None if ms is None else instant(ms), instant(clock)
    if value is None or now is None or value > now:
        told = alone if ms is None else format_html("{} ({})", alone, exactly(ms) or _number(ms))
        return format_html('<span class="{}">{}</span>', style, told)
    return time_tag(value, words % {"time": timesince(value, now, depth=1)}, style)


def _number(ms: int) -> SafeString:
    return format_html('<span title="{}">{}</span>', _("milliseconds since 1970"), str(ms))


def duration(run: Any) -> Any:
    """How long a run took; of a running one how long it has been; else ``-``.

    Of a stalled one no more is known than how long it was heard of.
    """
    if run.is_stalled:
        heard = duration_text(run.heartbeat_at - run.started_at)
        return format_html('<span title="{}">{}</span>', _("until its last sign of life"), heard)
    if run.status == Status.RUNNING:
        elapsed = run.clock - run.started_at
        if elapsed < 0:
            return EMPTY
        title = _("going on")
        return format_html(
            '<span class="run-live" title="{}">{}</span>', title, clock_text(elapsed)
        )
    if run.finished_at is None:
        return EMPTY
    return duration_text(run.finished_at - run.started_at)


def claims(run: Any) -> str:
    if run.driver_epoch is not None:
        return count_text(run.driver_epoch)
    return gettext("never") if run.status == Status.RUNNING else EMPTY


# Conditions


def is_asked_to_stop(run: Any) -> bool:
    """Asked, and it has not ended yet."""
    return run.cancel_requested is True and run.status not in TERMINAL


def is_beyond_judgement(run: Any) -> bool:
    """Running, watched and never claimed: no reaper can tell whether somebody drives it."""
    is_watched = run.status == Status.RUNNING and run.detached_since is None
    return is_watched and run.driver_epoch is None


def flags(run: Any) -> SafeString:
    """What an operator should see beside the status: stalled, detached, asked to stop."""
    return format_html_join(
        "", '<span class="run-flag">{}</span>', ((flag,) for flag in _flags(run))
    )


def _flags(run: Any) -> Iterator[SafeString]:
    if run.is_stalled:
        words = gettext("stalled, silent for %(time)s")
        yield since(words, _("stalled"), run.heartbeat_at, run.clock, "run-soon")
    if run.status == Status.RUNNING and run.detached_since is not None:
        words = gettext("detached for %(time)s")
        yield since(words, _("detached"), run.detached_since, run.clock, "run-detached")
    if getattr(run, "waits_for_a_person", False):
        yield format_html('<span class="run-waits">{}</span>', _("waits for a person"))
    if is_asked_to_stop(run):
        yield format_html('<span class="run-asked">{}</span>', _("asked to stop"))


def badge_and_flags(run: Any) -> SafeString:
    return format_html("{} {}", status_badge(run.status), flags(run))
