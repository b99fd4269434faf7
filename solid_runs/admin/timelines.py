"""Steps laid out as bars on one time axis: pure, in whole milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from solid_runs.events import Step
from solid_runs.times import elapsed_ms

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DEEPEST: Final = 6
"""Steps nested deeper than this are indented no further."""
MOST_TICKS: Final = 6

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
TICK_STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 7, 30, 90, 365)),
)
"""The distances between two marks of the axis, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Row:
    """A step and its place: ``left`` and ``width`` are percentages of the axis.

    ``left`` is None for a step that says no time; ``width`` is None for a moment, which is drawn
    as a dot. ``offset_ms`` counts from the start of the axis.
    """

    step: Step
    depth: int = 0
    offset_ms: int | None = None
    left: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    at_ms: int
    left: float


@dataclass(frozen=True, slots=True)
class Timeline:
    rows: list[Row] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    hidden: int = 0
    """Steps past the limit."""


def lay_out(
    steps: Sequence[Step],
    *,
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
    now: datetime | None = None,
    limit: int | None = None,
) -> Timeline:
    """Place ``steps`` between the start of the run and its end, or ``now`` while it is going on.

    Give ``now`` only for a run in progress. Moments are aware.
    """
    shown = list(steps[:limit])
    if not shown:
        return Timeline()
    spans = [_span(step) for step in shown]
    known = [ms for span in spans for ms in span if ms is not None]
    known += [_ms(moment) for moment in (started_at, ended_at) if moment is not None]
    hidden = len(steps) - len(shown)
    if not known:
        return Timeline([Row(step) for step in shown], hidden=hidden)
    origin, end = min(known), max(known)
    if now is not None and any(step.is_open for step in shown):
        end = _open_end(origin, end, _ms(now))
    length = max(1, end - origin)

    rows, around = [], list[int]()
    for step, (begin, finish) in zip(shown, spans, strict=True):
        if begin is None:
            rows.append(Row(step, depth=min(len(around), DEEPEST)))
            continue
        until = end if finish is None else max(begin, finish)
        while around and around[-1] < until:
            around.pop()
        rows.append(
            Row(
                step,
                depth=min(len(around), DEEPEST),
                offset_ms=begin - origin,
                left=percent(begin - origin, length),
                width=percent(until - begin, length) if until > begin else None,
            )
        )
        if until > begin:
            around.append(until)
    return Timeline(rows, _ticks(length), hidden)


def percent(part: int, whole: int) -> float:
    return round(min(100.0, max(0.0, 100 * part / whole)), 3)


def _ms(moment: datetime) -> int:
    return elapsed_ms(EPOCH, moment)


def _span(step: Step) -> tuple[int | None, int | None]:
    """Begin and end; an event that was only told when it was over began its duration earlier."""
    begin = None if step.started_at is None else _ms(step.started_at)
    end = None if step.ended_at is None else _ms(step.ended_at)
    if begin is not None and begin == end and not step.is_message and step.duration_ms:
        begin -= min(max(0, step.duration_ms), 365 * DAY)
    return begin, end


def _open_end(origin: int, last: int, now: int) -> int:
    """Where open bars end: now, but not so far off that the rest becomes a hair's breadth."""
    written = last - origin
    if now <= origin + 4 * written + MINUTE:
        return max(last, now)
    return last + max(SECOND, written // 4)


def _ticks(length: int) -> list[Tick]:
    distance = next((step for step in TICK_STEPS if length / step < MOST_TICKS), None)
    if distance is None:
        distance = length // MOST_TICKS + 1
    return [Tick(at, percent(at, length)) for at in range(0, length + 1, distance)]
