"""The shape of an entry in the event log, and how entries pair into a timeline: pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from solid_runs import storable
from solid_runs.times import elapsed_ms, iso_milliseconds, iso_seconds, parse_moment

Entry: TypeAlias = dict[str, Any]

DETAIL_BYTES = 1200
TEXT_BYTES = 65_536
"""The most that a kind, a label, an eid or a message may take; the detail has its own limit."""

STARTED = "started"
ENDS = ("done", "error")


def _text(value: Any) -> str:
    return storable.text(value, max_bytes=TEXT_BYTES)


def event_entry(
    kind: str,
    label: str,
    *,
    eid: str | None = None,
    status: str = "done",
    detail: Any = None,
    duration_ms: int | None = None,
) -> Entry:
    """An event as it is stored: ``{"at", "eid"?, "kind", "label", "status", "detail"?, …}``."""
    entry: Entry = {"at": iso_milliseconds(datetime.now(UTC))}
    if eid is not None:
        entry["eid"] = _text(eid)
    entry |= {"kind": _text(kind), "label": _text(label), "status": _text(status)}
    if detail is not None:
        entry["detail"] = storable.detail_text(detail, DETAIL_BYTES)
    if duration_ms is not None:
        entry["duration_ms"] = storable.json_value(duration_ms)
    return entry


def message_entry(message: str, level: str = "info") -> Entry:
    """A log line as it is stored: ``{"timestamp", "level", "message"}``."""
    return {
        "timestamp": iso_seconds(datetime.now(UTC)),
        "level": _text(level),
        "message": _text(message),
    }


def fitted(entry: Entry, max_bytes: int | None) -> Entry:
    """``entry``, its longest texts cut to equal shares if it takes over ``max_bytes`` as JSON.

    Its times stay whole, and no limit is less than LEAST_BYTES.
    """
    if max_bytes is None or surely_fits(entry, max_bytes):
        return entry
    size, limit = json_bytes(entry), max(LEAST_BYTES, max_bytes)
    if size <= limit:
        return entry
    sizes = {key: json_bytes(entry[key]) for key in entry if key not in TIMES}
    room, kept = limit - (size - sum(sizes.values())), dict(entry)
    for rank, key in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = max(2, room // (len(sizes) - rank))
        if sizes[key] > share:
            kept[key] = storable.json_value(entry[key], max_bytes=share)
        room -= min(sizes[key], share)
    return kept


LEAST_BYTES = 256
TIMES = ("at", "timestamp", "duration_ms")


def surely_fits(entry: Entry, max_bytes: int) -> bool:
    """Without encoding anything: no character takes more than six bytes as JSON."""
    size = 100
    for value in entry.values():
        if type(value) is str:
            size += 6 * len(value)
        elif type(value) is not int:
            return False
    return size <= max_bytes


def json_bytes(value: Any) -> int:
    """What a value takes as JSON that is storable already."""
    return len(storable.stored_json(value).encode())


def is_message(entry: Any) -> bool:
    """Whether an entry is a log line, not an event."""
    return isinstance(entry, Mapping) and "message" in entry and "kind" not in entry


TRUNCATED = "truncated"
"""The kind of the marker that ends a log which took no more."""


def marker_entry(count: int) -> Entry:
    detail = f"The log is full at {count:,} entries; what came later was left out."
    return event_entry(TRUNCATED, "log", detail=detail)


def is_marker(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (entry.get("kind"), entry.get("label")) == (
        TRUNCATED,
        "log",
    )


def as_entries(stored: Any) -> list[Any]:
    """What a log column holds, as a list; what is no list reads as an empty one."""
    if isinstance(stored, str):  # a list that was encoded twice
        try:
            stored = json.loads(stored)
        except ValueError:
            return []
    return stored if isinstance(stored, list) else []


class Numbered(NamedTuple):
    """An entry with its coordinate: 1 for the oldest."""

    seq: int
    entry: Any


class Appended(NamedTuple):
    """What became of an append.

    ``left_out`` is how many entries a full log did not take, ``marked`` whether it was this one
    that said so in the log, ``last`` the coordinate of the last entry where the log is a table.
    """

    left_out: int = 0
    marked: bool = False
    last: int | None = None


@dataclass(slots=True)
class Step:
    """One line of a timeline: a paired step, a single event or a log line.

    ``seq`` is that of its first entry. ``ended_at`` is None and ``is_open`` true for a step whose
    "done" or "error" has not come. ``duration_ms`` is the one that was reported, else the time
    between the two entries, else None.
    """

    seq: int
    kind: str
    label: str
    status: str
    eid: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    detail: str | None = None
    is_open: bool = False
    is_message: bool = False


def timeline(entries: Iterable[Numbered]) -> list[Step]:
    """Entries paired by eid, in the order in which they began."""
    steps: list[Step] = []
    open_steps: dict[str, Step] = {}
    for seq, entry in entries:
        step = _step(seq, entry)
        begun = open_steps.get(step.eid) if step.eid is not None else None
        if begun is not None and step.status in ENDS:
            _close(begun, step)
            del open_steps[step.eid]  # type: ignore[arg-type]
            continue
        steps.append(step)
        if step.is_open and step.eid is not None:
            open_steps[step.eid] = step
    return steps


def _step(seq: int, entry: Any) -> Step:
    if not isinstance(entry, Mapping):
        return Step(seq, "info", _shown(entry), "", is_message=True)
    if is_message(entry):
        moment = parse_moment(entry.get("timestamp"))
        level = _shown(entry.get("level") or "info")
        return Step(seq, level, _shown(entry["message"]), "", None, moment, moment, is_message=True)
    moment = parse_moment(entry.get("at"))
    status = _shown(entry.get("status", ""))
    eid, detail, duration = (entry.get(name) for name in ("eid", "detail", "duration_ms"))
    is_open = status == STARTED and eid is not None
    return Step(
        seq,
        _shown(entry.get("kind", "")),
        _shown(entry.get("label", "")),
        status,
        eid=None if eid is None else _shown(eid),
        started_at=moment,
        ended_at=None if is_open else moment,
        duration_ms=duration if isinstance(duration, int) else None,
        detail=None if detail is None else _shown(detail),
        is_open=is_open,
    )


def _close(begun: Step, end: Step) -> None:
    begun.is_open, begun.status, begun.ended_at = False, end.status, end.started_at
    begun.duration_ms = end.duration_ms
    if begun.duration_ms is None and begun.started_at and begun.ended_at:
        begun.duration_ms = max(0, elapsed_ms(begun.started_at, begun.ended_at))
    if end.detail is not None:
        begun.detail = end.detail if begun.detail is None else f"{begun.detail}\n{end.detail}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else storable.compact_json(value)
