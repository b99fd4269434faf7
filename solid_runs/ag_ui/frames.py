"""Events as they go over the wire, and what a request to run says.

The one module that knows the package ``ag_ui``, which builds and encodes the frames.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ag_ui.core import (
    BaseEvent,
    Event,
    EventType,
    ReasoningEndEvent,
    ReasoningMessageEndEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuccessOutcome,
    SubagentFinishedSuspendedOutcome,
    TextMessageEndEvent,
    TokenUsage,
    ToolCallEndEvent,
)
from ag_ui.core import Interrupt as WireInterrupt
from ag_ui.core import MessagesSnapshotEvent as MessagesSnapshot
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter, ValidationError

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import RunRecord, Status
from solid_runs.ag_ui.scopes import identifier
from solid_runs.ag_ui.values import moment
from solid_runs.printable import text
from solid_runs.storable import DEEPEST, json_value

__all__ = [
    "BaseEvent",
    "EventType",
    "MalformedInput",
    "Opened",
    "RunAgentInput",
    "RunErrorEvent",
    "RunFinishedEvent",
    "RunFinishedInterruptOutcome",
    "RunStartedEvent",
    "StateDeltaEvent",
    "StateSnapshotEvent",
    "WireInterrupt",
]

PING: Final = ": ping\n\n"
"""A comment, which keeps a connection open and which no client shows."""

_events: Final[TypeAdapter[Any]] = TypeAdapter(Event)
_encoder: Final = EventEncoder()
_UNCLEAN: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""An escape in JSON text that may stand for a NUL or half of a character."""

Usage: TypeAlias = Iterable[TokenUsage | Mapping[str, Any]] | None


# What comes in


class MalformedInput(ValueError):
    """A request that is no run. ``field``: where, in the names of the wire."""

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


class Request(NamedTuple):
    """``body``: the object that was sent, members nobody knows included."""

    body: dict[str, Any]
    input: RunAgentInput


def read_request(raw: bytes) -> Request:
    """Read the body of a request to run; MalformedInput names the field that is wrong."""
    try:
        said = raw.decode()
        body = json.loads(said, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedInput("The body is no JSON text in UTF-8.") from error
    if not isinstance(body, dict):
        raise MalformedInput("The body is no JSON object.")
    for name in ("threadId", "runId"):
        _read_id(name, body.get(name))
    if body.get("parentRunId") is not None:
        _read_id("parentRunId", body["parentRunId"])
    for position, entry in enumerate(_members(body.get("resume"))):
        if isinstance(entry, Mapping):
            _read_id("interruptId", entry.get("interruptId"), f"resume.{position}.interruptId")
    if _UNCLEAN.search(said):
        body = json_value(body, max_depth=DEEPEST)
    try:
        return Request(body, RunAgentInput.model_validate(body))
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise MalformedInput(f"{field}: {first['msg']}.", field) from error


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def _read_id(name: str, value: Any, field: str | None = None) -> None:
    try:
        identifier(name, value)
    except ConfigurationError as error:
        raise MalformedInput(str(error), field or name) from error


# What goes out


def as_event(value: Any) -> BaseEvent:
    """An event out of what an agent yielded: an event of ``ag_ui``, or an object with a type.

    TypeError for anything else; ``pydantic.ValidationError`` for an object that is no event.
    """
    if isinstance(value, BaseEvent):
        return value
    if isinstance(value, Mapping):
        event: BaseEvent = _events.validate_python(dict(value))
        return event
    raise TypeError(f"An agent yields events and interrupts, not {type(value).__name__}.")


def encode(event: BaseEvent, sequence: int | None = None) -> str:
    """One frame. It is valid JSON in UTF-8, whatever text the event holds."""
    try:
        frame = _encoder.encode(event)
    except ValueError:  # half of a character, or an object that pydantic does not know
        cleaned = json_value(event.model_dump(by_alias=True, mode="python"), max_depth=DEEPEST)
        frame = f"data: {json.dumps(cleaned, ensure_ascii=False, separators=(',', ':'))}\n\n"
    return frame if sequence is None else f"id: {sequence}\n{frame}"


def started(thread_id: str, run_id: str, parent_run_id: str | None = None) -> BaseEvent:
    return RunStartedEvent(thread_id=thread_id, run_id=run_id, parent_run_id=parent_run_id)


def state(snapshot: Any) -> list[BaseEvent]:
    return [] if snapshot is None else [StateSnapshotEvent(snapshot=snapshot)]


def messages(snapshot: Sequence[Any] | None) -> list[BaseEvent]:
    return [] if snapshot is None else [MessagesSnapshot(messages=list(snapshot))]


def error(message: str, code: str | None, usage: Usage = None) -> BaseEvent:
    return RunErrorEvent(message=text(message), code=code, usage=_usage(usage))


def failed(failure: Mapping[str, Any] | None, usage: Usage = None) -> BaseEvent:
    """The failure of a record."""
    said = failure or {}
    return error(said.get("message") or "The run failed.", said.get("code"), usage)


def succeeded(
    thread_id: str,
    run_id: str,
    result: Any = None,
    usage: Usage = None,
    metadata: Mapping[str, Any] | None = None,
) -> BaseEvent:
    return RunFinishedEvent(
        thread_id=thread_id,
        run_id=run_id,
        outcome=RunFinishedSuccessOutcome(type="success"),
        result=result,
        usage=_usage(usage),
        metadata=None if metadata is None else dict(metadata),
    )


def interrupted(
    thread_id: str, run_id: str, interrupts: Iterable[Interrupt], usage: Usage = None
) -> BaseEvent:
    asked = [WireInterrupt.model_validate(one.to_dict()) for one in interrupts]
    return RunFinishedEvent(
        thread_id=thread_id,
        run_id=run_id,
        outcome=RunFinishedInterruptOutcome(type="interrupt", interrupts=asked),
        usage=_usage(usage),
    )


def cancelled(thread_id: str, run_id: str, usage: Usage = None) -> BaseEvent:
    return RunFinishedEvent(
        thread_id=thread_id,
        run_id=run_id,
        outcome=RunFinishedCancelledOutcome(type="cancelled"),
        usage=_usage(usage),
    )


def _usage(usage: Usage) -> list[TokenUsage] | None:
    read = [
        one if isinstance(one, TokenUsage) else TokenUsage.model_validate(one)
        for one in usage or ()
    ]
    return read or None


def recorded(record: RunRecord) -> BaseEvent:
    """How a run that has ended ended: of its questions, those that are still open."""
    key = (record.thread_id, record.run_id)
    if record.status is Status.FAILED:
        return failed(record.failure)
    if record.status is Status.CANCELLED:
        return cancelled(*key)
    if record.awaiting_approval:
        return interrupted(*key, record.pending_interrupts)
    runs = dict.fromkeys(one.redeemed_by for one in record.interrupts if one.redeemed_by)
    return succeeded(*key, metadata={"answeredBy": list(runs)} if runs else None)


# Interrupts


def as_interrupt(value: Interrupt | WireInterrupt) -> Interrupt:
    """Ours out of the one of ``ag_ui``; ConfigurationError for one that cannot be stored."""
    if isinstance(value, Interrupt):
        return value
    return Interrupt(
        id=value.id,
        reason=value.reason,
        message=value.message,
        tool_call_id=value.tool_call_id,
        response_schema=value.response_schema,
        expires_at=moment("expiresAt", value.expires_at),
        metadata=value.metadata,
        subagent_run_id=value.subagent_run_id,
    )


# What a stream has opened

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
_MODELS: Final[dict[EventType, type[BaseEvent]]] = {
    EventType.TEXT_MESSAGE_END: TextMessageEndEvent,
    EventType.TOOL_CALL_END: ToolCallEndEvent,
    EventType.STEP_FINISHED: StepFinishedEvent,
    EventType.REASONING_END: ReasoningEndEvent,
    EventType.REASONING_MESSAGE_END: ReasoningMessageEndEvent,
}


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
                fields = {_FIELDS[closer]: name, "subagent_run_id": owner}
                yield _MODELS[closer].model_validate(fields)


def _subagent_end(subagent: str, status: Status, asked: list[str] | None) -> BaseEvent:
    if status is Status.CANCELLED:
        return SubagentErrorEvent(
            subagent_run_id=subagent, message="The run was cancelled.", code="cancelled"
        )
    outcome: SubagentFinishedSuspendedOutcome | SubagentFinishedSuccessOutcome
    if status is Status.INTERRUPTED:
        outcome = SubagentFinishedSuspendedOutcome(type="suspended", interrupt_ids=asked)
    else:
        outcome = SubagentFinishedSuccessOutcome(type="success")
    return SubagentFinishedEvent(subagent_run_id=subagent, outcome=outcome)
