"""Endpoints for tests: whose agent is the script that a test gives, over each of the stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import wraps
from typing import Any

from ag_ui.core import (
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.test import AsyncClient
from django.urls import include, path

from solid_runs.ag_ui.digests import digest, digest_input
from solid_runs.ag_ui.endpoint.turns import Turn
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.stores.base import BaseStore
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from solid_runs.ag_ui.views import AgentView

Script = Callable[[Turn], Any]


MESSAGE = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
"""The kinds of the frames of one message."""


async def silent(turn: Turn) -> AsyncIterator[Any]:
    return
    yield


class ScriptedAgent(AgentView):
    """Its users name themselves in a header, each being a scope."""

    heartbeat = 0.05
    stop_grace = 0.3
    script: Script = staticmethod(silent)

    async def scope_of(self, request: HttpRequest) -> Any:
        if "X-User" not in request.headers:
            raise PermissionDenied
        return request.headers["X-User"]

    async def actor_of(self, request: HttpRequest) -> str | None:
        return request.headers.get("X-User")

    def run(self, turn: Turn) -> AsyncIterator[Any]:
        return type(self).script(turn)


class MemoryAgent(ScriptedAgent):
    store = MemoryStore()


class DatabaseAgent(ScriptedAgent):
    store = DatabaseStore()


class ClosedAgent(AgentView):
    """One whose host has not said whose runs these are."""

    store = MemoryStore()


urlpatterns = [
    path("memory/", include(MemoryAgent.urls("memory"))),
    path("database/", include(DatabaseAgent.urls("database"))),
    path("closed/", include(ClosedAgent.urls("closed"))),
]


# Scripts


def say(text: str, message_id: str = "m1") -> list[Any]:
    return [
        TextMessageStartEvent(message_id=message_id, role="assistant"),
        TextMessageContentEvent(message_id=message_id, delta=text),
        TextMessageEndEvent(message_id=message_id),
    ]


def call(tool_call_id: str = "c1", name: str = "pay") -> list[Any]:
    return [
        ToolCallStartEvent(tool_call_id=tool_call_id, tool_call_name=name),
        ToolCallArgsEvent(tool_call_id=tool_call_id, delta="{}"),
        ToolCallEndEvent(tool_call_id=tool_call_id),
    ]


def result(content: str, tool_call_id: str = "c1") -> ToolCallResultEvent:
    return ToolCallResultEvent(
        message_id=f"result-{tool_call_id}", tool_call_id=tool_call_id, content=content
    )


def asks(*interrupts: Interrupt, text: str = "May I?") -> Script:
    async def script(turn: Turn) -> AsyncIterator[Any]:
        for event in [*say(text), *call()]:
            yield event
        for interrupt in interrupts or [approval()]:
            yield interrupt

    return script


def says(*texts: str) -> Script:
    async def script(turn: Turn) -> AsyncIterator[Any]:
        for number, text in enumerate(texts, 1):
            for event in say(text, f"m{number}"):
                yield event

    return script


def approval(interrupt_id: str = "i1", tool_call_id: str = "c1", **fields: Any) -> Interrupt:
    return Interrupt(
        id=interrupt_id,
        reason="tool_call",
        tool_call_id=tool_call_id,
        message="Pay?",
        response_schema={"type": "object"},
        **fields,
    )


class Payments:
    """An agent that asks before it pays, pays at most once, and knows what it did."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def script(self, turn: Turn) -> AsyncIterator[Any]:
        if not turn.answers:
            async for one in asks()(turn):
                yield one
            return
        for tool_call_id in turn.abandoned:
            yield result("Cancelled by the user.", tool_call_id)
        for tool_call_id in turn.unknown:
            yield result("Outcome unknown.", tool_call_id)
        for answer in turn.answers:
            interrupt = answer.interrupt
            if not answer.holds or not await turn.settle(interrupt.id):
                continue
            approved = interrupt.decision.payload["approved"]
            if approved:
                self.paid.append(interrupt.id)
            yield result("Paid." if approved else "Denied.", interrupt.tool_call_id)
        for event in say("Done.", f"m-{turn.run_id}"):
            yield event


# A client


def awaited(test: Callable[..., Any]) -> Callable[..., Any]:
    """A test that is async, on a loop of its own, whose sync code runs in this thread."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async_to_sync(test)(*args, **kwargs)

    return run


class Frame(dict[str, Any]):
    """An event as it came in. ``id`` is the number of the frame, if it had one."""

    id: int | None

    @property
    def kind(self) -> str:
        return self["type"]


def parse(text: str) -> list[Frame]:
    """Frames as the client reads them: what is between two blank lines, comments left out."""
    frames = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        frame = Frame(json.loads(fields["data"]))
        frame.id = int(fields["id"]) if "id" in fields else None
        frames.append(frame)
    return frames


def kinds(frames: list[Frame]) -> list[str]:
    return [frame.kind for frame in frames]


def resolved(interrupt_id: str = "i1", **payload: Any) -> dict[str, Any]:
    return {"interruptId": interrupt_id, "status": "resolved", "payload": payload}


def dropped(interrupt_id: str = "i1") -> dict[str, Any]:
    return {"interruptId": interrupt_id, "status": "cancelled"}


def body(run_id: str = "r1", thread_id: str = "t1", text: str = "Hello", **more: Any) -> Any:
    """What the client sends, with the members that it always sends."""
    return {
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": "1.0",
        "state": {},
        "messages": [{"id": "u1", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    } | more


class AgentClient:
    """What a page does, over Django's client."""

    def __init__(self, root: str, user: str = "ann") -> None:
        self.root, self.user, self.client = root, user, AsyncClient()

    async def open(self, *args: Any, **more: Any) -> Any:
        return await self.client.post(
            self.root,
            body(*args, **more),
            content_type="application/json",
            headers={"Accept": "text/event-stream", "X-User": self.user},
        )

    async def run(self, *args: Any, **more: Any) -> list[Frame]:
        return await read(await self.open(*args, **more))

    async def get(self, *path: str, accept: str = "application/json") -> Any:
        return await self.client.get(
            self.root + "/".join(path), headers={"Accept": accept, "X-User": self.user}
        )

    async def attach(self, *path: str) -> list[Frame]:
        return await read(await self.get(*path, accept="text/event-stream"))

    async def cancel(self, run_id: str = "r1", thread_id: str = "t1") -> Any:
        return await self.client.post(
            f"{self.root}{thread_id}/{run_id}/cancel", headers={"X-User": self.user}
        )


async def read(response: Any) -> list[Frame]:
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/event-stream"
    chunks = [chunk async for chunk in response.streaming_content]
    text = b"".join(chunks).decode()
    assert "\r" not in text
    return parse(text)


async def read_until(response: Any, kind: str) -> tuple[list[Frame], Any]:
    """The frames up to one of this kind, and the rest of the stream to go on with."""
    stream, text = response.streaming_content, ""
    async for chunk in stream:
        text += chunk.decode()
        if kind in kinds(parse(text)):
            return parse(text), stream
    raise AssertionError(f"There was no {kind} in {text}")


async def rest(stream: Any) -> list[Frame]:
    async with aclosing(stream):
        return parse(b"".join([chunk async for chunk in stream]).decode())


# What is stored


def rows(store: BaseStore) -> list[Any]:
    """Every row as it is, so that nothing can change unseen."""
    if isinstance(store, MemoryStore):
        return [row.record.to_storage() for row in store._rows.values()]
    return [list(model.objects.order_by("pk").values()) for model in (ReservedRun, RunInterrupt)]


async def arows(store: BaseStore) -> list[Any]:
    return await sync_to_async(rows)(store)


async def stored(store: BaseStore, thread_id: str = "t1", scope: str = "ann") -> dict[str, str]:
    """The runs of a thread with their status, and their interrupts with state and holder."""
    found = {}
    for number in range(1, 10):
        record = await store.afind(scope, thread_id, f"r{number}")
        if record is None:
            continue
        found[record.run_id] = str(record.status)
        for interrupt in record.interrupts:
            holder = f"({interrupt.redeemed_by})" if interrupt.redeemed_by else ""
            found[interrupt.id] = f"{interrupt.state}{holder}"
    return found


async def left_by_a_dead_server(store: BaseStore, *, acted: bool = False, **request: Any) -> None:
    """A run as a server leaves it that is killed while the run is started."""
    sent = body(**request)
    admission = await store.aadmit(
        "ann", "t1", sent["runId"], digest(digest_input(sent)), sent.get("resume") or ()
    )
    await store.asave(admission.record.start(store.now()).advance(store.now()))
    for answer in admission.answers:
        if acted:
            assert await store.asettle("ann", "t1", answer.interrupt.id, sent["runId"])
