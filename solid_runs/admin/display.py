"""How the figures, times, statuses and texts of a run are shown: text and escaped HTML."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from solid_runs import storable
from solid_runs.statuses import RunStatus, known_status

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from solid_runs.mixin import AgentRunMixin

EMPTY: Final = "-"
ONE_LINE: Final = 96
"""JSON up to this length is shown in one line."""

BADGES: Final[dict[RunStatus, str]] = {
    RunStatus.PENDING: "run-pending",
    RunStatus.RUNNING: "run-running",
    RunStatus.COMPLETE: "run-complete",
    RunStatus.FAILED: "run-failed",
    RunStatus.CANCELLED: "run-cancelled",
}
"""The style of each status; one that is none of the five is ``run-unknown``."""


def badge(status: Any) -> SafeString:
    """A status as a word with a colour."""
    known = known_status(status)
    if known is None:
        return labelled_badge(status, "run-unknown")
    return labelled_badge(known.label, BADGES[known])


def labelled_badge(label: Any, style: str) -> SafeString:
    return format_html(
        '<span class="run-badge {style}">{label}</span>', style=style, label=storable.text(label)
    )


def clipped(text: Any) -> SafeString:
    """One line, cut by the style sheet to the room there is; whole in the title."""
    return format_html(
        '<span class="run-clip" dir="auto" title="{text}">{text}</span>', text=str(text)
    )


def count_text(number: int) -> str:
    """A whole number, grouped as the language groups."""
    return formats.number_format(number, force_grouping=True)


def duration_text(ms: int | None) -> str:
    """``900 ms``, ``3.3 s``, ``1:30``; ``-`` for none and for what cannot be one."""
    if ms is None or ms < 0:
        return EMPTY
    if ms < 1_000:
        return gettext("%(number)s ms") % {"number": ms}
    if ms < 59_950:
        return gettext("%(number)s s") % {"number": formats.number_format(round(ms / 1_000, 1), 1)}
    return clock_text(ms)


def clock_text(ms: int) -> str:
    """``0:42``, ``1:02:03``, ``3 d 04:10``."""
    minutes, seconds = divmod(max(0, ms) // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return gettext("%(days)s d %(clock)s") % {"days": days, "clock": f"{hours:02}:{minutes:02}"}
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def run_duration(run: AgentRunMixin, now: datetime) -> str:
    """How long a run took; of one that is going on, how long it has been."""
    if run.in_progress:
        elapsed = run.calculated_duration_ms(fallback_end=now)
        return EMPTY if elapsed is None else clock_text(elapsed)
    return duration_text(run.calculated_duration_ms())


def run_tokens(run: AgentRunMixin) -> str:
    counts = (run.reported_total_tokens, run.input_tokens, run.output_tokens)
    return EMPTY if all(count is None for count in counts) else count_text(run.total_tokens)


def exact_time(value: datetime) -> str:
    local = timezone.localtime(value) if timezone.is_aware(value) else value
    return formats.date_format(local, "Y-m-d H:i:s T")


def relative_time(value: datetime, now: datetime) -> str:
    """``3 minutes ago``; a moment that is still to come is shown exactly."""
    age = now - value
    if age < -CLOCK_SKEW:
        return exact_time(value)
    if age < timedelta(minutes=1):
        return gettext("just now")
    return gettext("%(time)s ago") % {"time": timesince(value, now, depth=1)}


CLOCK_SKEW: Final = timedelta(minutes=1)


def time_element(value: datetime | None, now: datetime) -> SafeString | str:
    """A moment, relative, with the exact one in the title."""
    if value is None:
        return EMPTY
    return time_tag(value, relative_time(value, now))


def moment(value: datetime | None, now: datetime) -> SafeString | str:
    """A moment that has passed, to the second while it is fresh."""
    if value is None:
        return ""
    return time_tag(value, ago(value, now))


def time_tag(value: datetime, words: str, style: str = "") -> SafeString:
    """``words`` for a moment, with the exact one in the title."""
    return format_html(
        '<time{style} datetime="{machine}" title="{exact}">{words}</time>',
        style=format_html(' class="{}"', style) if style else "",
        machine=value.isoformat(),
        exact=exact_time(value),
        words=words,
    )


def ago(value: datetime, now: datetime) -> str:
    seconds = int((now - value).total_seconds())
    if 0 <= seconds < 60:
        return ngettext("%(count)s second ago", "%(count)s seconds ago", seconds) % {
            "count": seconds
        }
    return relative_time(value, now)


def silence_text(alive_at: datetime, now: datetime) -> SafeString:
    """``silent for 7 hours``"""
    words = gettext("silent for %(time)s") % {"time": timesince(alive_at, now, depth=1)}
    return time_tag(alive_at, words, "run-soon")


def json_block(value: Any, most: int) -> tuple[str, bool]:
    """A document for people to read, in one line if it is short, and whether it was cut."""
    if value in (None, "", [], {}):
        return "", False
    plain = storable.json_value(value, max_depth=storable.DEEPEST)
    line = json.dumps(plain, ensure_ascii=False)
    if len(line) > ONE_LINE:
        line = json.dumps(plain, ensure_ascii=False, indent=2)
    return line[:most], len(line) > most
