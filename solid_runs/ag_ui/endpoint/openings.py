"""What a stream has opened, and how it is closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from solid_runs.ag_ui.endpoint.frames import BaseEvent, EventType, as_event
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import Status

CLOSERS: Final[dict[EventType, tuple[EventType, str]]] = {
    EventType.TEXT_MESSAGE_START: (EventType.TEXT_MESSAGE_END, "message_id"),
    EventType.TOOL_CALL_START: (EventType.TOOL_CALL_END, "tool_call_id"),
    EventType.STEP_STARTED: (EventType.STEP_FINISHED, "step_name"),
    EventType.REASONING_START: (EventType.REASONING_END, "message_id"),
    EventType.REASONING_MESSAGE_START: (EventType.REASONING_MESSAGE_END, "message_id"),
    EventType.SUBAGENT_STARTED: (EventType.SUBAGENT_FINISHED, "subagent_run_id"),
}
"""What opens something → what closes it, and the field that names it."""
_FIELDS: Final = dict(CLOSERS.values())
_ENDS: Final = _FIELDS | {EventType.SUBAGENT_ERROR: "subagent_run_id"}


class Opened:
    """What a stream has opened and not closed, which has to be closed before its end."""

    def __init__(self) -> None:
        self._open: dict[tuple[EventType, str, str | None], str | None] = {}

    def follow(self, event: BaseEvent) -> None:
        kind, owner = EventType(event.type), getattr(event, "subagent_run_id", None)
        if kind in CLOSERS:
            closer, name = CLOSERS[kind]
            self._open[self._key(closer, name, event)] = owner
        elif kind is EventType.SUBAGENT_ERROR:
            self._open.pop(self._key(EventType.SUBAGENT_FINISHED, _ENDS[kind], event), None)
        elif kind in _ENDS:
            self._open.pop(self._key(kind, _ENDS[kind], event), None)

    @staticmethod
    def _key(closer: EventType, name: str, event: BaseEvent) -> tuple[EventType, str, str | None]:
        # Two subagents may have a step of the same name open.
        owner = getattr(event, "subagent_run_id", None) if name == "step_name" else None
        return closer, getattr(event, name), owner

    def close(self, status: Status, interrupts: Iterable[Interrupt] = ()) -> Iterator[BaseEvent]:
        """What closes it all, the last opened first, when the run ends with this status."""
        asked: dict[str | None, list[str]] = {}
        for interrupt in interrupts:
            asked.setdefault(interrupt.subagent_run_id, []).append(interrupt.id)
        for (closer, name, _), owner in reversed(self._open.items()):
            if closer is EventType.SUBAGENT_FINISHED:
                yield _subagent_end(name, status, asked.get(name))
            else:
                yield as_event({"type": closer, _FIELDS[closer]: name, "subagent_run_id": owner})


def _subagent_end(subagent: str, status: Status, asked: list[str] | None) -> BaseEvent:
    end: dict[str, Any] = {"type": EventType.SUBAGENT_FINISHED, "outcome": {"type": "success"}}
    if status is Status.INTERRUPTED:
        end["outcome"] = {"type": "suspended", "interrupt_ids": asked}
    elif status is Status.CANCELLED:
        message = "The run was cancelled."
        end = {"type": EventType.SUBAGENT_ERROR, "message": message, "code": "cancelled"}
    return as_event(end | {"subagent_run_id": subagent})
