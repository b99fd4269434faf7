"""What was said in a thread: kept run by run, and told again to a page that was loaded again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from ag_ui.core import (
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from example_project.agents.models import Exchange
from solid_runs.ag_ui.endpoint.turns import Turn
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import Status

SECONDS_BETWEEN_WRITES: Final = 1.0


class Transcript:
    """Keeps what is said in a run, so that a reloaded page and another tab have it too.

    The user's message at once, the agent's words once a second and at the end, whatever that is.
    """

    def __init__(self, turn: Turn) -> None:
        self._messages: list[dict[str, Any]] = []
        last = turn.input.messages[-1] if turn.input.messages else None
        if last is not None and last.role == "user":
            said = last.model_dump(by_alias=True, exclude_none=True, mode="json")
            self._messages.append(said)
        self._row = Exchange(
            scope=turn.scope,
            thread_id=turn.thread_id,
            run_id=turn.run_id,
            messages=self._messages,
        )
        self._written = 0.0

    async def __aenter__(self) -> Self:
        await self._write()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._write()

    async def note(self, said: Any) -> None:
        """Do to the messages what the client does with the event."""
        if isinstance(said, TextMessageStartEvent):
            self._messages.append(text_message(said.message_id, ""))
        elif isinstance(said, TextMessageContentEvent):
            self._find(said.message_id)["content"] += said.delta
        elif isinstance(said, ToolCallStartEvent):
            self._messages.append(tool_call(said.tool_call_id, said.tool_call_name, ""))
        elif isinstance(said, ToolCallArgsEvent):
            call = self._find(said.tool_call_id)["toolCalls"][0]
            call["function"]["arguments"] += said.delta
        elif isinstance(said, ToolCallResultEvent):
            self._messages.append(tool_result(said.message_id, said.tool_call_id, said.content))
        if time.monotonic() - self._written > SECONDS_BETWEEN_WRITES:
            await self._write()

    def _find(self, id: str) -> dict[str, Any]:
        return next(message for message in reversed(self._messages) if message["id"] == id)

    async def _write(self) -> None:
        await self._row.asave()
        self._written = time.monotonic()


# Messages, as AG-UI has them


def user_message(id: str, content: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "content": content}


def text_message(id: str, content: str) -> dict[str, Any]:
    return {"id": id, "role": "assistant", "content": content}


def tool_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": id, "type": "function", "function": function}]
    return {"id": id, "role": "assistant", "toolCalls": calls}


def tool_result(id: str, tool_call_id: str, content: str) -> dict[str, Any]:
    return {"id": id, "role": "tool", "toolCallId": tool_call_id, "content": content}


# The conversation


async def conversation(scope: str, thread_id: str) -> list[dict[str, Any]] | None:
    """What was said, what people answered, and which runs failed or were cancelled.

    The last two are messages with the role ``activity``, which no client sends to an agent.
    """
    said = Exchange.objects.filter(scope=scope, thread_id=thread_id).order_by("pk")
    kept = {row.run_id: row.messages async for row in said}
    runs = ReservedRun.objects.filter(scope=scope, thread_id=thread_id)
    known = [run async for run in runs.order_by("pk").prefetch_related("interrupts")]
    pruned = kept.keys() - {run.run_id for run in known}
    told = [message for run_id in kept if run_id in pruned for message in kept[run_id]]
    for run in known:
        told += kept.get(run.run_id, [])
        told += [answer_given(one) for one in run.interrupts.all() if one.decision]
        told += end_of(run)
    return told or None


def answer_given(interrupt: RunInterrupt) -> dict[str, Any]:
    """``by`` is None when nobody answered in time."""
    is_late = interrupt.expires_at is not None and interrupt.expires_at <= interrupt.decided_at
    content = {
        "question": interrupt.message or interrupt.reason,
        "status": interrupt.decision["status"],
        "payload": interrupt.decision.get("payload"),
        "by": None if is_late else interrupt.decided_by,
        "waits": interrupt.state is AnswerState.FREE,
    }
    return activity(f"answer-{interrupt.interrupt_id}", "answer", content)


def end_of(run: ReservedRun) -> Iterator[dict[str, Any]]:
    if run.status == Status.FAILED:
        yield activity(f"end-{run.run_id}", "failed", run.failure or {})
    elif run.status == Status.CANCELLED:
        yield activity(f"end-{run.run_id}", "cancelled", {})


def activity(id: str, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "role": "activity", "activityType": kind, "content": content}
