"""Events as they go over the wire.

The one module that knows the package ``ag_ui``, which builds and encodes the frames.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ag_ui.core import (
    BaseEvent,
    Event,
    EventType,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TokenUsage,
)
from ag_ui.core import Interrupt as WireInterrupt
from ag_ui.core import MessagesSnapshotEvent as MessagesSnapshot
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter, ValidationError

from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import RunRecord, Status
from solid_runs.ag_ui.values import moment
from solid_runs.printable import text
from solid_runs.storable import DEEPEST, json_value

__all__ = [
    "BaseEvent",
    "EventType",
    "MalformedInput",
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
Usage: TypeAlias = Iterable[TokenUsage | Mapping[str, Any]] | None


# Reading


class MalformedInput(ValueError):
    """A request that is no run. ``field``: where, in the names of the wire."""

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


def read_input(body: Mapping[str, Any]) -> RunAgentInput:
    """What an agent is given of a request; MalformedInput names the first field that is wrong."""
    try:
        return RunAgentInput.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise MalformedInput(f"{field}: {first['msg']}.", field) from error


# Encoding


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


# Building


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
