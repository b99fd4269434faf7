from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from ag_ui.core import Interrupt as WireInterrupt
from ag_ui.core import (
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
)
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections
from django.test import AsyncClient, Client, override_settings

from solid_runs.ag_ui.endpoint.channels import Channel
from solid_runs.ag_ui.endpoint.frames import MalformedInput
from solid_runs.ag_ui.endpoint.turns import AgentError
from solid_runs.ag_ui.exceptions import InterruptsPendingError, StreamError
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.stores.memory import MemoryStore
from tests.ag_ui.agents import (
    MESSAGE,
    AgentClient,
    DatabaseAgent,
    MemoryAgent,
    Payments,
    approval,
    arows,
    asks,
    awaited,
    body,
    kinds,
    parse,
    read,
    read_until,
    resolved,
    rest,
    result,
    say,
    says,
    stored,
)

INTERNAL = {"type": "RUN_ERROR", "message": "The run failed.", "code": "internal_error"}


def yields(*events: Any) -> Any:
    async def script(turn: Any) -> AsyncIterator[Any]:
        for event in events:
            if isinstance(event, BaseException):
                raise event
            yield event

    return script


def hangs_after(*events: Any) -> Any:
    async def script(turn: Any) -> AsyncIterator[Any]:
        for event in events:
            yield event
        await asyncio.sleep(60)

    return script


async def status(view: Any, run_id: str = "r1") -> str:
    return str((await view.store.afind("ann", "t1", run_id)).status)


# Ended by its agent


@awaited
async def test_a_run_succeeds_with_its_result_and_usage(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        turn.result, turn.usage = {"answer": 42}, [{"inputTokens": 3, "outputTokens": 4}]
        for event in say("x"):
            yield event

    view.script = script
    ended = (await client.run("r1"))[-1]
    assert ended["outcome"] == {"type": "success"}
    assert ended["result"] == {"answer": 42}
    assert ended["usage"] == [{"inputTokens": 3, "outputTokens": 4}]


@awaited
async def test_an_agent_that_says_nothing_succeeds(view, client):
    view.script = yields()
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert "result" not in frames[-1]
    assert "usage" not in frames[-1]


@awaited
async def test_what_an_agent_leaves_open_is_closed(view, client):
    view.script = yields(say("x")[0])
    assert kinds(await client.run("r1"))[1:] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


@awaited
async def test_an_error_for_the_user_fails_the_run_with_its_words(view, client):
    view.script = yields(say("x")[0], AgentError("Over budget.", "budget"))
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "TEXT_MESSAGE_START", "RUN_ERROR"]
    assert frames[-1] == {"type": "RUN_ERROR", "message": "Over budget.", "code": "budget"}
    record = await view.store.afind("ann", "t1", "r1")
    assert record.failure == {"message": "Over budget.", "code": "budget"}
    again = await client.run("r1")
    assert again[-1] == frames[-1]


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("/srv/app secret sk-1"),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        asyncio.CancelledError("secret"),
        GeneratorExit("secret"),
        Odd("secret"),
        StopAsyncIteration("secret"),
        TimeoutError("secret"),
        StreamError("secret"),
    ],
)
@awaited
async def test_any_other_error_says_nothing_and_is_logged(view, client, error, caplog):
    view.script = yields(say("x")[0], error)
    response = await client.open("r1")
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    assert "secret" not in text
    assert parse(text)[-1] == INTERNAL
    record = await view.store.afind("ann", "t1", "r1")
    assert record.failure == {"message": "The run failed.", "code": "internal_error"}
    assert [one.exc_info is not None for one in caplog.records if one.levelno == logging.ERROR] == [
        True
    ]


@pytest.mark.parametrize("value", [None, "text", {"type": "NO_SUCH_EVENT"}, object()])
@awaited
async def test_what_is_no_event_fails_the_run(view, client, value):
    view.script = yields(value)
    assert (await client.run("r1"))[-1] == INTERNAL


@awaited
async def test_an_error_for_the_user_may_come_out_of_a_task_group(view, client):
    view.script = yields(ExceptionGroup("g", [ExceptionGroup("h", [AgentError("No.", "c")])]))
    assert (await client.run("r1"))[-1] == {"type": "RUN_ERROR", "message": "No.", "code": "c"}
    view.script = yields(ExceptionGroup("g", [AgentError("No.", "c"), ValueError("secret")]))
    assert (await client.run("r2"))[-1] == INTERNAL


@awaited
async def test_usage_that_is_none_fails_the_run(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        turn.usage = [{"inputTokens": "many"}]
        yield say("x")[0]

    view.script = script
    assert (await client.run("r1"))[-1] == INTERNAL
    assert await status(view) == "failed"


@awaited
async def test_interrupts_that_cannot_be_stored_fail_the_run(view, client):
    view.script = yields(approval("i1"), approval("i1"))
    assert (await client.run("r1"))[-1] == INTERNAL
    assert await stored(view.store) == {"r1": "failed"}


@awaited
async def test_an_agent_that_is_no_generator_fails_the_run(view, client):
    async def script(turn: Any) -> None:
        return None

    view.script = script
    assert (await client.run("r1"))[-1] == INTERNAL


@awaited
async def test_an_agent_may_await_its_generator(view, client):
    async def script(turn: Any) -> Any:
        return says("Hi")(turn)

    view.script = script
    assert kinds(await client.run("r1")) == ["RUN_STARTED", *MESSAGE, "RUN_FINISHED"]


# Ended by events of the agent's own, as adapters of frameworks yield them


@awaited
async def test_an_agent_may_bring_the_beginning_and_the_end(view, client):
    view.script = yields(
        RunStartedEvent(thread_id="other", run_id="other"),
        *say("x"),
        RunFinishedEvent(thread_id="other", run_id="other", result=[1]),
        *say("too late", "m2"),
    )
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", *MESSAGE, "RUN_FINISHED"]
    assert {frames[0]["runId"], frames[-1]["runId"]} == {"r1"}
    assert (frames[-1]["outcome"], frames[-1]["result"]) == ({"type": "success"}, [1])


@awaited
async def test_an_agent_may_bring_an_end_with_interrupts(view, client):
    outcome = RunFinishedInterruptOutcome(
        type="interrupt", interrupts=[WireInterrupt(id="i1", reason="confirmation")]
    )
    view.script = yields(RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome))
    frames = await client.run("r1")
    assert frames[-1]["outcome"]["interrupts"] == [{"id": "i1", "reason": "confirmation"}]
    assert await stored(view.store) == {"r1": "interrupted", "i1": "open"}


@awaited
async def test_an_agent_may_bring_an_end_that_is_cancelled(view, client):
    view.script = yields(
        say("x")[0],
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}},
    )
    frames = await client.run("r1")
    assert kinds(frames)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert await status(view) == "cancelled"


@awaited
async def test_an_agent_may_bring_an_error(view, client):
    view.script = yields(RunErrorEvent(message="No.", code="c"), *say("too late"))
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_ERROR"]
    assert frames[-1] == {"type": "RUN_ERROR", "message": "No.", "code": "c"}
    assert await status(view) == "failed"


@awaited
async def test_an_agent_is_closed_whenever_it_ends(view, client):
    closed = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        try:
            yield RunFinishedEvent(thread_id="t", run_id="r")
        finally:
            closed.append(turn.run_id)

    view.script = script
    await client.run("r1")
    assert closed == ["r1"]


# State and messages


@awaited
async def test_the_state_is_what_the_client_has(view, client):
    seen = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        seen.append(turn.state)
        yield StateSnapshotEvent(snapshot={"list": [1]})
        yield StateDeltaEvent(delta=[{"op": "add", "path": "/list/-", "value": 2}])
        seen.append(turn.state)
        yield StateDeltaEvent(delta=[{"op": "replace", "path": "/nowhere/x", "value": 2}])
        seen.append(turn.state)
        yield approval()

    view.script = script
    frames = await client.run("r1", state={"a": 1})
    assert seen == [{"a": 1}, {"list": [1, 2]}, {"list": [1, 2]}]
    assert kinds(frames)[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert frames[-2]["snapshot"] == {"list": [1, 2]}
    assert (await view.store.afind("ann", "t1", "r1")).snapshot == {"list": [1, 2]}


@awaited
async def test_a_change_may_be_the_first_state(view, client):
    view.script = yields(StateDeltaEvent(delta=[{"op": "add", "path": "/a", "value": None}]))
    await client.run("r1")
    assert (await view.store.afind("ann", "t1", "r1")).snapshot == {"a": None}


@awaited
async def test_a_client_without_state_is_sent_none(view, client):
    view.script = asks()
    assert "STATE_SNAPSHOT" not in kinds(await client.run("r1", state={}))
    assert (await view.store.afind("ann", "t1", "r1")).snapshot is None


@awaited
async def test_a_state_that_was_emptied_is_sent_empty(view, client):
    view.script = yields(StateSnapshotEvent(snapshot={}))
    await client.run("r1", state={"a": 1})
    frames = await client.run("r1", state={"a": 1})
    assert frames[1] == {"type": "STATE_SNAPSHOT", "snapshot": {}}


@awaited
async def test_a_state_nested_deep_does_not_stop_a_run(view, client):
    state: Any = {}
    for _ in range(400):
        state = {"a": state}
    assert kinds(await client.run("r1", state=state))[-1] == "RUN_FINISHED"


@awaited
async def test_a_running_state_is_recorded_with_the_heartbeat(view, client):
    view.script = hangs_after(StateSnapshotEvent(snapshot={"a": 1}))
    view.attach_limit = 0.3
    await read_until(await client.open("r1"), "STATE_SNAPSHOT")
    await asyncio.sleep(0.2)
    assert (await view.store.afind("ann", "t1", "r1")).snapshot == {"a": 1}
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_ERROR"]


@awaited
async def test_a_state_that_moves_while_a_client_waits_is_sent_before_the_end(view, client):
    going = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        await going.wait()
        yield StateSnapshotEvent(snapshot={"b": 2})

    view.script = script
    await read_until(await client.open("r1", state={"a": 1}), "TEXT_MESSAGE_START")
    _, stream = await read_until(
        await client.get("t1", "r1", accept="text/event-stream"), "STATE_SNAPSHOT"
    )
    going.set()
    frames = await rest(stream)
    assert kinds(frames) == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert frames[0]["snapshot"] == {"b": 2}


@awaited
async def test_messages_go_out_only_when_the_host_gives_them(view, client, monkeypatch):
    whole = [{"id": "u1", "role": "user", "content": "Hello"}]
    view.script = yields(MessagesSnapshotEvent(messages=whole), approval())
    assert kinds(await client.run("r1")) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert kinds(await client.run("r2")) == ["RUN_STARTED", "RUN_FINISHED"]

    async def messages_of(self: Any, request: Any, record: Any) -> Any:
        assert record.run_id == "r1"
        return whole

    monkeypatch.setattr(view, "messages_of", messages_of)
    for frames in (await client.run("r2"), await client.run("r1"), await client.attach("t1")):
        assert kinds(frames) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert frames[1]["messages"] == whole


# What the agent is given


@awaited
async def test_an_agent_knows_its_turn(view, client):
    seen = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        seen.append(turn)
        yield say("x")[0]

    view.script = script
    await client.run("r1", tools=[{"name": "n", "description": "d"}])
    (turn,) = seen
    assert (turn.scope, turn.thread_id, turn.run_id) == ("ann", "t1", "r1")
    assert turn.input.tools[0].name == "n"
    assert turn.request.headers["X-User"] == "ann"
    assert (turn.record.status, turn.answers, turn.abandoned, turn.unknown) == (
        *("started", (), (), ()),
    )
    assert turn.answer("i1") is None
    assert not turn.cancelled
    assert len(turn.trace_id) == 36


@awaited
async def test_an_agent_reads_answers_and_settles_each_once(view, client):
    seen: list[Any] = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            for one in (approval("i1", "c1"), approval("i2", "c2")):
                yield one
            return
        seen.append(turn.answer("i1").payload)
        seen.append(turn.answer("i2").status)
        seen.extend([await turn.settle("i1"), await turn.settle("i1"), await turn.settle("i2")])
        seen.append(turn.abandoned)
        yield result("x")

    view.script = script
    await client.run("r1")
    both = [resolved(approved=True), {"interruptId": "i2", "status": "cancelled"}]
    await client.run("r2", resume=both)
    assert seen == [{"approved": True}, "cancelled", True, False, False, ("c2",)]


@awaited
async def test_an_answer_from_an_inbox_is_taken_by_the_next_plain_run(view, client):
    seen = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            yield approval()
            return
        seen.append((turn.answer("i1").payload, await turn.settle("i1")))
        yield result("x")

    view.script = script
    await client.run("r1")
    await view.store.aanswer("ann", "t1", "i1", {"status": "resolved", "payload": 7}, by="boss")
    await client.run("r2")
    assert seen == [(7, True)]
    assert (await view.store.afind_interrupt("ann", "t1", "i1")).decided_by == "boss"


@awaited
async def test_the_replay_of_an_answered_run_names_the_run_that_answered(view, client):
    view.script = Payments().script
    await client.run("r1")
    await client.run("r2", resume=[resolved(approved=True)])
    ended = (await client.run("r1"))[-1]
    assert ended["outcome"] == {"type": "success"}
    assert ended["metadata"] == {"answeredBy": ["r2"]}
    assert "result" not in ended


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_row_carries_the_trace_and_the_parent():
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        await AgentClient("/database/").run("r1", parentRunId="r0")
    row = await ReservedRun.objects.aget()
    assert (row.parent_run_id, len(row.trace_id)) == ("r0", 36)


# Ended by others


@awaited
async def test_an_agent_that_does_not_stop_is_left_behind(view, client, caplog):
    held, beyond = asyncio.Event(), []

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        while not held.is_set():
            try:
                await held.wait()
            except asyncio.CancelledError:
                beyond.append((turn.cancelled, await turn.settle("i1")))
        yield say("unheard")[1]

    view.script = script
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    await client.cancel("r1")
    frames = await rest(stream)
    assert kinds(frames) == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert await status(view) == "cancelled"
    assert beyond == [(True, False)] * 3
    assert "does not stop" in caplog.text
    held.set()
    await asyncio.sleep(0.05)
    assert await status(view) == "cancelled"


@awaited
async def test_an_agent_that_yields_while_it_is_stopped_is_not_heard(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        try:
            yield say("x")[0]
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield say("unheard")[1]

    view.script = script
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    await client.cancel("r1")
    assert kinds(await rest(stream)) == ["TEXT_MESSAGE_END", "RUN_FINISHED"]


@awaited
async def test_an_agent_whose_run_was_ended_by_a_reaper_is_stopped(view, client):
    stopped = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        try:
            yield say("x")[0]
            await asyncio.sleep(60)
        finally:
            stopped.append(turn.cancelled)

    view.script, view.heartbeat = script, 0.2
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    record = await view.store.afind("ann", "t1", "r1")
    await view.store.asave(
        record.finish("failed", datetime.now(UTC), {"message": "Gone.", "code": "stalled"})
    )
    frames = await rest(stream)
    assert frames == [{"type": "RUN_ERROR", "message": "Gone.", "code": "stalled"}]
    assert stopped == [True]


@awaited
async def test_a_run_cancelled_before_it_started_says_so(view, client, monkeypatch):
    asave, ran = type(view.store).asave, []

    async def cancelled_first(store: Any, record: Any) -> Any:
        if record.status == "started":
            await store.arequest_cancel("ann", "t1", "r1")
        return await asave(store, record)

    monkeypatch.setattr(type(view.store), "asave", cancelled_first)
    view.script = lambda turn: ran.append(turn)
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert ran == []


@awaited
async def test_a_server_that_shuts_down_ends_its_runs(view, client):
    async def serve() -> None:
        view.script = hangs_after(say("x")[0])
        await read_until(await client.open("r1"), "TEXT_MESSAGE_START")

    def serve_and_stop() -> None:
        asyncio.run(serve())  # which cancels what is left

    await asyncio.to_thread(serve_and_stop)
    record = await view.store.afind("ann", "t1", "r1")
    assert (record.status, record.failure["code"]) == ("failed", "stalled")


# A store that fails


class Broken(MemoryStore):
    """A store whose database is gone for some of its calls."""

    def __init__(self, **failing: int) -> None:
        super().__init__()
        self.failing = failing

    def _fail(self, name: str) -> None:
        if self.failing.get(name, 0) > 0:
            self.failing[name] -= 1
            raise DatabaseError("secret")

    def save(self, record: Any) -> Any:
        self._fail("start" if record.status == "started" else "end")
        return super().save(record)

    def heartbeat(self, record: Any, now: Any = None, **more: Any) -> bool:
        self._fail("heartbeat")
        return super().heartbeat(record, now, **more)

    def settle(self, *args: Any, **kwargs: Any) -> bool:
        self._fail("settle")
        return super().settle(*args, **kwargs)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(**failing: int) -> Any:
        monkeypatch.setattr(MemoryAgent, "store", Broken(**failing))
        monkeypatch.setattr(MemoryAgent, "script", says("Hi"))
        return MemoryAgent

    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        yield make


@awaited
async def test_a_start_that_cannot_be_saved_runs_nothing(broken, caplog):
    view = broken(start=9)
    frames = await AgentClient("/memory/").run("r1")
    assert frames == [INTERNAL]
    assert await status(view) == "failed"
    assert "secret" in caplog.text


@awaited
async def test_an_end_is_saved_once_more(broken):
    view = broken(end=1)
    frames = await AgentClient("/memory/").run("r1")
    assert frames[-1]["outcome"] == {"type": "success"}
    assert await status(view) == "succeeded"


@awaited
async def test_an_end_that_cannot_be_saved_is_a_failure(broken, caplog):
    view = broken(end=2)
    frames = await AgentClient("/memory/").run("r1")
    assert kinds(frames) == ["RUN_STARTED", *MESSAGE, "RUN_ERROR"]
    assert frames[-1] == INTERNAL
    assert await status(view) == "failed"
    assert "secret" in caplog.text


@awaited
async def test_a_client_gets_an_end_when_nothing_can_be_saved(broken, caplog):
    view = broken(end=99)
    frames = await AgentClient("/memory/").run("r1")
    assert frames[-1] == INTERNAL
    assert await status(view) == "started"
    assert "could not be failed either" in caplog.text


@awaited
async def test_a_heartbeat_that_fails_is_tried_again(broken):
    view = broken(heartbeat=2)

    async def script(turn: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0.4)
        for event in say("x"):
            yield event

    view.script = script
    frames = await AgentClient("/memory/").run("r1")
    assert frames[-1]["outcome"] == {"type": "success"}
    assert view.store.failing == {"heartbeat": 0}


@awaited
async def test_an_agent_without_heartbeats_is_stopped_before_others_take_it_for_dead(
    broken, settings
):
    settings.SOLID_RUNS = {"AG_UI_STALL_AFTER": 0.4}
    view, stopped = broken(heartbeat=999), []

    async def script(turn: Any) -> AsyncIterator[Any]:
        try:
            yield say("x")[0]
            await asyncio.sleep(60)
        finally:
            stopped.append(turn.cancelled)

    view.script = script
    frames = await AgentClient("/memory/").run("r1")
    assert frames[-1] == INTERNAL
    assert stopped == [True]
    assert await status(view) == "failed"


@awaited
async def test_a_settle_that_fails_gives_no_permission(broken):
    view, paid = broken(settle=1), []

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            yield approval()
        elif await turn.settle("i1"):
            paid.append(1)

    view.script, client = script, AgentClient("/memory/")
    await client.run("r1")
    frames = await client.run("r2", resume=[resolved(approved=True)])
    assert frames[-1] == INTERNAL
    assert paid == []
    assert await stored(view.store) == {"r1": "interrupted", "i1": "free", "r2": "failed"}


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_connection_that_died_during_a_run_does_not_cost_its_end(monkeypatch, vendor):
    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        await sync_to_async(kill_connection)(vendor)

    monkeypatch.setattr(DatabaseAgent, "script", script)
    monkeypatch.setattr(DatabaseAgent, "heartbeat", 60)
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        frames = await AgentClient("/database/").run("r1")
    assert kinds(frames)[-1] == "RUN_FINISHED"
    assert await stored(DatabaseAgent.store) == {"r1": "succeeded"}


def kill_connection(vendor: str) -> None:
    """Under the feet of Django, which takes it for usable."""
    connection = connections["default"]
    connection.ensure_connection()
    if vendor == "sqlite":
        connection.connection.close()
    elif vendor == "postgresql":
        other = connection.copy()
        try:
            pid = connection.connection.info.backend_pid
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        finally:
            other.close()
    else:
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("KILL %s", [connection.connection.thread_id()])
        finally:
            other.close()


# What is written


@awaited
async def test_a_long_stream_writes_a_row_a_heartbeat(view, client, monkeypatch):
    written = []
    for name in ("save", "heartbeat"):
        method = getattr(type(view.store), name)

        def counted(store: Any, *args: Any, _name: str = name, _method: Any = method) -> Any:
            written.append(_name)
            return _method(store, *args)

        monkeypatch.setattr(type(view.store), name, counted)

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("")[0]
        for _ in range(2000):
            yield say("x")[1]

    view.script, view.heartbeat = script, 0.2
    begun = asyncio.get_running_loop().time()
    frames = await client.run("r1")
    took = asyncio.get_running_loop().time() - begun
    assert [frame.id for frame in frames] == list(range(1, 2005))
    assert written.count("save") == 2
    assert written.count("heartbeat") <= took / 0.2
    assert (await view.store.afind("ann", "t1", "r1")).sequence == 2004


@awaited
async def test_what_a_frame_announces_is_saved_before_it_leaves(view, client, monkeypatch):
    put, seen = Channel.put, []

    async def watched(channel: Any, frame: str) -> None:
        seen.append((parse(frame)[0].kind, await stored(view.store)))
        await put(channel, frame)

    monkeypatch.setattr(Channel, "put", watched)
    view.script = yields(approval())
    await client.run("r1")
    view.script = yields(AgentError("No."))
    await client.run("r2", resume=[resolved(approved=True)])
    interrupted = {"r1": "interrupted", "i1": "open"}
    assert seen == [
        ("RUN_STARTED", {"r1": "started"}),
        ("RUN_FINISHED", interrupted),
        ("RUN_STARTED", {"r1": "interrupted", "i1": "held(r2)", "r2": "started"}),
        ("RUN_ERROR", {"r1": "interrupted", "i1": "free", "r2": "failed"}),
    ]


@awaited
async def test_a_heartbeat_writes_how_far_the_run_is(view, client):
    view.script = hangs_after(*say("x"))
    await read_until(await client.open("r1"), "TEXT_MESSAGE_END")
    before = await view.store.afind("ann", "t1", "r1")
    await asyncio.sleep(0.2)
    after = await view.store.afind("ann", "t1", "r1")
    assert after.sequence == 4
    assert after.updated_at > before.updated_at


# The stream


@awaited
async def test_a_stream_is_not_kept_by_caches_and_proxies(client, view):
    response = await client.open("r1")
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-cache, no-transform"
    assert response["X-Accel-Buffering"] == "no"
    await read(response)


@awaited
async def test_a_silent_stream_is_kept_open_by_comments(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0.3)
        yield say("x")[0]

    view.script, view.keep_alive = script, 0.05
    response = await client.open("r1")
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    assert text.count(": ping\n\n") >= 3
    assert kinds(parse(text))[-1] == "RUN_FINISHED"


@awaited
async def test_a_client_that_waits_for_an_end_is_kept_by_comments(view, client):
    view.script, view.keep_alive, view.attach_limit = hangs_after(say("x")[0]), 0.05, 0.3
    await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    response = await client.get("t1", "r1", accept="text/event-stream")
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    assert text.count(": ping\n\n") >= 2
    assert parse(text)[-1]["code"] == "run_in_progress"


@awaited
async def test_an_agent_waits_for_a_slow_client_but_not_for_ever():
    channel = Channel(keep_alive=9, size=2, patience=0.1)
    for number in range(2):
        await channel.put(f"data: {number}\n\n")
    begun = asyncio.get_running_loop().time()
    for number in range(100):
        await channel.put(f"data: {number}\n\n")
    assert 0.1 <= asyncio.get_running_loop().time() - begun < 1
    channel.finish()
    text = "".join([chunk async for chunk in channel])
    assert text.startswith("data: 0\n\ndata: 1\n\ndata: {")
    assert parse(text.split("1\n\n")[1])[0]["code"] == "run_in_progress"


@awaited
async def test_an_agent_that_waits_for_a_client_is_woken_when_that_leaves():
    left = []
    channel = Channel(keep_alive=9, size=1, patience=9, on_left=lambda: left.append(1))
    await channel.put("data: 1\n\n")
    put = asyncio.ensure_future(channel.put("data: 2\n\n"))
    await asyncio.sleep(0.05)
    assert not put.done()
    await asyncio.to_thread(channel.close)
    await asyncio.wait_for(put, 1)
    assert left == [1]


@awaited
async def test_a_reader_that_reads_on_gets_all_in_order():
    channel = Channel(keep_alive=9, size=3, patience=9)

    async def write() -> None:
        for number in range(50):
            await channel.put(f"{number} ")
        channel.finish()

    task = asyncio.ensure_future(write())
    text = "".join([chunk async for chunk in channel])
    await task
    assert text.split() == [str(number) for number in range(50)]


# Requests that are refused


async def post(root: str, data: Any, **headers: str) -> Any:
    return await AsyncClient().post(
        root,
        data,
        content_type=headers.pop("content_type", "application/json"),
        headers={"X-User": "ann"} | headers,
    )


@awaited
async def test_a_malformed_request_is_told_its_field(view):
    before = await arows(view.store)
    response = await post(view.root, body(thread_id="x" * 256))
    assert response.status_code == 400
    assert response.json() == {
        "code": "malformed",
        "message": "threadId has 256 characters; 255 are the most.",
        "field": "threadId",
    }
    response = await post(view.root, "{")
    assert (response.status_code, response.json()["field"]) == (400, None)
    assert await arows(view.store) == before


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=utf-16", "text/json"])
@awaited
async def test_a_body_of_another_kind_is_refused(view, kind):
    assert (await post(view.root, b"{}", content_type=kind)).status_code == 415


@awaited
async def test_a_charset_may_be_stated(view):
    sent = json.dumps(body())
    assert (await post(view.root, sent, content_type="application/json; charset=UTF-8")).streaming


@awaited
async def test_a_body_over_the_limit_is_refused(view, settings):
    view.body_bytes = 100
    assert (await post(view.root, body())).status_code == 413
    view.body_bytes = None
    settings.SOLID_RUNS = {"AG_UI_BODY_BYTES": 99}
    assert (await post(view.root, body())).status_code == 413


@awaited
async def test_a_body_over_djangos_own_limit_is_taken(view, client, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert kinds(await client.run("r1", text="x" * 10_000))[-1] == "RUN_FINISHED"


@awaited
async def test_other_methods_are_refused(view):
    client = AsyncClient(headers={"X-User": "ann"})
    assert (await client.get(view.root)).status_code == 405
    assert (await client.put(view.root)).status_code == 405
    assert (await client.post(f"{view.root}t1")).status_code == 405
    assert (await client.post(f"{view.root}t1/r1")).status_code == 405
    response = await client.get(f"{view.root}t1/r1/cancel")
    assert (response.status_code, response["Allow"]) == (405, "POST, OPTIONS")
    assert (await client.options(view.root)).status_code == 200


@awaited
async def test_it_is_closed_by_default():
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        client = AgentClient("/closed/")
        for request in (client.open("r1"), client.get("t1"), client.get("t1", "r1")):
            response = await request
            assert response.status_code == 403
            assert response.json()["code"] == "forbidden"
        assert (await client.cancel()).status_code == 403


@awaited
async def test_runs_of_others_do_not_exist(view, client):
    view.script = asks()
    await client.run("r1")
    other = AgentClient(view.root, "bob")
    before = await arows(view.store)
    for path in (["t1"], ["t1", "r1"], ["t1", "nothing"], ["nothing"]):
        response = await other.get(*path)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert (await other.cancel("r1")).status_code == 404
    frames = await other.run("r2", resume=[resolved(approved=True)])
    assert (kinds(frames), frames[0]["code"]) == (["RUN_ERROR"], "resume_rejected")
    assert await arows(view.store) == before


@pytest.mark.parametrize("path", ["x" * 256, "a%00b", "%20"])
@awaited
async def test_ids_in_paths_that_no_key_can_hold_are_refused(view, client, path):
    for request in (client.get(path), client.get("t1", path), client.cancel(path)):
        assert (await request).status_code == 400


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([resolved("nothing")], "nothing"),
        ([resolved(), resolved()], "i1"),
        ([resolved(), resolved("i2")], "i2"),
    ],
)
@awaited
async def test_answers_that_mean_nothing_are_refused_by_name(view, client, entries, named):
    view.script = asks()
    await client.run("r1")
    before = await arows(view.store)
    frames = await client.run("r2", resume=entries)
    assert (kinds(frames), frames[0]["code"]) == (["RUN_ERROR"], "resume_rejected")
    assert repr(named) in frames[0]["message"]
    assert await arows(view.store) == before


# Attaching


@awaited
async def test_a_page_learns_of_a_thread_as_json(view, client):
    view.script = asks()
    await client.run("r1")
    response = await client.get("t1")
    assert response["Vary"] == "Accept"
    told = response.json()
    assert [one["id"] for one in told["interrupts"]] == ["i1"]
    assert {"threadId", "runId", "status", "sequence", "snapshot"} < set(told["run"])
    assert {"scope", "digest"}.isdisjoint(told["run"])
    told = (await client.get("t1", "r1")).json()
    assert (told["run"]["status"], "interrupts" in told) == ("interrupted", False)


@awaited
async def test_a_page_attaches_to_a_thread_as_a_stream(view, client):
    view.script = asks()
    await client.run("r1", state={"a": 1})
    frames = await client.attach("t1")
    assert kinds(frames) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert frames[0]["runId"] == "r1"
    assert [one["id"] for one in frames[-1]["outcome"]["interrupts"]] == ["i1"]


@awaited
async def test_a_page_that_attaches_to_a_later_run_is_still_told_what_is_open(view, client):
    view.script = asks()
    await client.run("r1")
    await view.store.areserve("ann", "t1", "r2", "d")
    await view.store.arequest_cancel("ann", "t1", "r2")
    told = (await client.get("t1")).json()
    assert (told["run"]["runId"], [one["id"] for one in told["interrupts"]]) == ("r2", ["i1"])
    frames = await client.attach("t1")
    assert frames[0]["runId"] == "r2"
    assert [one["id"] for one in frames[-1]["outcome"]["interrupts"]] == ["i1"]
    frames = await client.attach("t1", "r2")
    assert frames[-1]["outcome"] == {"type": "cancelled"}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("text/event-stream, application/json;q=0.5", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
    ],
)
@awaited
async def test_a_page_gets_what_it_accepts(view, client, accept, kind):
    await client.run("r1")
    assert (await client.get("t1", accept=accept))["Content-Type"] == kind


# Who may


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An endpoint whose runs are those of the user of the session."""

    async def scope_of(self: Any, request: Any) -> Any:
        user = await request.auser()
        return f"user:{user.pk}" if user.is_authenticated else request.headers.get("Authorization")

    monkeypatch.setattr(DatabaseAgent, "scope_of", scope_of)
    monkeypatch.setattr(DatabaseAgent, "script", says("Hi"))
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        yield DatabaseAgent


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_session_needs_the_csrf_header(sessions):
    client = AsyncClient(enforce_csrf_checks=True)
    user = await sync_to_async(User.objects.create_user)("ann")
    await client.aforce_login(user)
    refused = [
        await client.post("/database/", body(), content_type="application/json"),
        await client.post("/database/t1/r1/cancel"),
    ]
    assert [response.status_code for response in refused] == [403, 403]
    assert await ReservedRun.objects.acount() == 0
    token = "a" * 32
    client.cookies["csrftoken"] = token
    response = await client.post(
        "/database/",
        body(),
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )
    assert kinds(await read(response))[-1] == "RUN_FINISHED"
    assert (await client.get("/database/t1")).status_code == 200
    assert (await ReservedRun.objects.aget()).scope == f"user:{user.pk}"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("authorization", "right"),
    [("Bearer x", 200), ("Token x", 200), ("Basic eA==", 403), ("negotiate x", 403)],
)
@awaited
async def test_a_token_is_exempt_and_what_a_browser_sends_by_itself_is_not(
    sessions, authorization, right
):
    client = AsyncClient(enforce_csrf_checks=True)
    response = await client.post(
        "/database/",
        body(),
        content_type="application/json",
        headers={"Authorization": authorization},
    )
    assert response.status_code == right
    if response.streaming:
        await read(response)


@awaited
async def test_requests_without_credentials_of_a_browser_need_no_csrf_header(view):
    client = AsyncClient(enforce_csrf_checks=True)
    response = await client.post(
        view.root, body(), content_type="application/json", headers={"X-User": "ann"}
    )
    assert kinds(await read(response))[-1] == "RUN_FINISHED"


@awaited
async def test_a_host_may_judge_csrf_itself(view, monkeypatch):
    monkeypatch.setattr(view, "needs_csrf", lambda self, request: True)
    client = AsyncClient(enforce_csrf_checks=True)
    response = await client.post(
        view.root, body(), content_type="application/json", headers={"X-User": "ann"}
    )
    assert (response.status_code, response.json()["code"]) == (403, "csrf")


# Where it is served


def test_a_wsgi_server_is_refused_before_anything_is_stored(view):
    with pytest.raises(ImproperlyConfigured, match="needs an ASGI server"):
        Client(headers={"X-User": "ann"}).post(view.root, body(), content_type="application/json")
    response = Client(headers={"X-User": "ann"}).get(f"{view.root}t1")
    assert response.status_code == 404


@awaited
async def test_a_login_required_by_middleware_is_judged_by_the_view(view, client, settings):
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    assert kinds(await client.run("r1"))[-1] == "RUN_FINISHED"


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_request_is_no_transaction(monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        frames = await AgentClient("/database/").run("r1")
    assert kinds(frames)[-1] == "RUN_FINISHED"


@awaited
async def test_what_a_view_states_stands_before_the_setting(view, client, settings):
    view.heartbeat = None
    settings.SOLID_RUNS = {"AG_UI_OFFER": False, "AG_UI_HEARTBEAT": 0.05}
    view.script = asks()
    await client.run("r1")
    assert (await client.run("r2"))[0]["code"] == "interrupts_pending"
    view.offer = True
    assert kinds(await client.run("r2")) == ["RUN_STARTED", "RUN_FINISHED"]


def test_urls_are_named():
    assert [pattern.name for pattern in MemoryAgent.urls("x")] == [
        "x-run",
        "x-thread",
        "x-attach",
        "x-cancel",
    ]


@pytest.mark.parametrize(("policy", "end"), [("continue", "succeeded"), ("stop", "failed")])
@awaited
async def test_a_client_that_leaves_while_it_is_admitted_leaves_no_run_that_never_begins(
    view, client, monkeypatch, policy, end
):
    admitted, go_on = asyncio.Event(), asyncio.Event()
    admit = view.store.aadmit

    async def admit_slowly(*args, **kwargs):
        admission = await admit(*args, **kwargs)
        admitted.set()
        await go_on.wait()
        return admission

    async def work(turn):
        for event in say("Hi"):
            yield event
        await asyncio.sleep(0.2)

    monkeypatch.setattr(view.store, "aadmit", admit_slowly)
    view.on_disconnect, view.script = policy, work
    request = asyncio.ensure_future(client.open("r1"))
    await admitted.wait()
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request
    go_on.set()
    for _ in range(200):
        if (await stored(view.store))["r1"] == end:
            break
        await asyncio.sleep(0.02)
    assert (await stored(view.store))["r1"] == end


@awaited
async def test_a_thread_tells_what_became_of_its_questions(view, client):
    view.script = asks(approval("i1"), approval("i2", "c2"))
    await client.run("r1")
    assert (await client.get("t1")).json()["answers"] == []
    answer = {"status": "resolved", "payload": {"approved": True}}
    await view.store.aanswer("ann", "t1", "i1", answer, by="bob")
    told = (await client.get("t1")).json()
    assert [one["id"] for one in told["interrupts"]] == ["i2"]
    assert told["answers"] == [
        {"interruptId": "i1", **answer, "state": "free", "redeemedBy": None},
    ]


@awaited
async def test_questions_that_have_all_expired_are_not_told_as_open(view, client):
    past = datetime(2020, 1, 1, tzinfo=UTC)
    view.script = asks(approval("i1", expires_at=past))
    await client.run("r1")
    assert (await client.get("t1")).json()["interrupts"] == []
    view.script = asks(approval("i1", expires_at=past), approval("i2", "c2"))
    await client.run("r2")
    told = (await client.get("t1")).json()
    assert [one["id"] for one in told["interrupts"]] == ["i1", "i2"], "they are answered together"


@awaited
async def test_a_client_that_waited_for_the_end_gets_the_messages_of_then(
    view, client, monkeypatch
):
    go_on, said = asyncio.Event(), ["Hel"]

    async def work(turn):
        for event in say("Hel"):
            yield event
        await go_on.wait()
        said[0] = "Hello"

    async def messages_of(self, request, record):
        return [{"id": "m1", "role": "assistant", "content": said[0]}]

    monkeypatch.setattr(view, "messages_of", messages_of)
    view.script = work
    first = await client.open("r1")
    await read_until(first, "TEXT_MESSAGE_END")
    attaching = asyncio.ensure_future(client.attach("t1", "r1"))
    await asyncio.sleep(0.2)
    go_on.set()
    frames = await attaching
    told = [one["messages"][0]["content"] for one in frames if one.kind == "MESSAGES_SNAPSHOT"]
    assert told == ["Hel", "Hello"]
    assert frames[-1]["outcome"] == {"type": "success"}
    first.close()


@awaited
async def test_messages_that_cannot_be_read_are_left_out(view, client, monkeypatch):
    async def messages_of(self, request, record):
        raise RuntimeError("secret")

    await client.run("r1")
    monkeypatch.setattr(view, "messages_of", messages_of)
    assert kinds(await client.attach("t1", "r1")) == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize("name", ["threadId", "runId"])
@awaited
async def test_an_id_that_is_missing_is_named(view, client, name):
    sent = body()
    del sent[name]
    response = await client.client.post(
        view.root, sent, content_type="application/json", headers={"X-User": "ann"}
    )
    assert response.status_code == 400
    assert response.json() == {
        "code": "malformed",
        "message": f"{name} is missing.",
        "field": name,
    }


@awaited
async def test_an_answer_to_a_cancelled_question_says_that_it_was_cancelled(view, client):
    view.script = asks()
    await client.run("r1")
    await client.cancel("r1")
    [refusal] = await client.run("r2", resume=[resolved(approved=True)])
    assert refusal["code"] == "interrupt_answered"
    assert "was cancelled already" in refusal["message"]


async def resumed(view: Any, run_id: str = "r2", **more: Any) -> Any:
    return await view.run_without_client("ann", body(run_id, **more))


@awaited
async def test_a_run_without_a_client_acts_on_the_answer_of_an_inbox_once(view, client):
    payments = Payments()
    view.script = payments.script
    await client.run("r1")
    approved = {"status": "resolved", "payload": {"approved": True}}
    await view.store.aanswer("ann", "t1", "i1", approved, by="bob")
    first = await resumed(view)
    again = await resumed(view)
    assert (first.status, again) == ("succeeded", first)
    assert payments.paid == ["i1"]
    assert kinds(await client.run("r2"))[-1] == "RUN_FINISHED", "the client finds it by its id"


@awaited
async def test_a_run_without_a_client_waits_for_nobody(view, client):
    view.script = asks()
    await client.run("r1")
    before = await arows(view.store)
    with pytest.raises(InterruptsPendingError):
        await resumed(view)
    assert await arows(view.store) == before


@awaited
async def test_a_run_without_a_client_may_ask_and_fail(view):
    view.script = asks()
    assert (await resumed(view, "r1")).awaiting_approval

    async def fail(turn):
        raise AgentError("No such order", "no_order")
        yield

    view.script = fail
    failed = await view.run_without_client("bob", body("r1"))
    assert failed.failure == {"message": "No such order", "code": "no_order"}


@pytest.mark.parametrize(
    ("sent", "field"),
    [({}, "threadId"), ({"threadId": "t", "runId": "r", "messages": "no"}, "messages")],
)
@awaited
async def test_a_run_without_a_client_names_what_is_wrong(view, sent, field):
    with pytest.raises(MalformedInput) as refused:
        await view.run_without_client("ann", sent)
    assert refused.value.field == field


@awaited
async def test_a_stranger_is_sent_away_before_the_request_is_read(view):
    strange = AsyncClient()
    response = await strange.post(view.root, "{", content_type="application/json")
    assert response.status_code == 403


@awaited
async def test_a_cookie_of_the_hosts_own_needs_the_csrf_token(view, client):
    view.script = says("Hi")
    careful = AsyncClient(enforce_csrf_checks=True)
    careful.cookies["access_token"] = "x"
    response = await careful.post(
        view.root, body(), content_type="application/json", headers={"X-User": "ann"}
    )
    assert (response.status_code, response.json()["code"]) == (403, "csrf")


@pytest.mark.parametrize("number", ["1e400", "-1e999"])
@awaited
async def test_a_number_that_no_json_value_can_keep_is_refused(view, client, number):
    sent = json.dumps(body(resume=[resolved(amount=7)])).replace("7", number)
    response = await client.client.post(
        view.root, sent, content_type="application/json", headers={"X-User": "ann"}
    )
    assert (response.status_code, response.json()["code"]) == (400, "malformed")


@awaited
async def test_what_is_open_on_a_thread_is_asked_when_the_run_has_ended(view, client):
    view.script = asks(approval("i1"))
    await client.run("r1")
    go_on = asyncio.Event()

    async def work(turn):
        await go_on.wait()
        yield approval("i2", "c2")

    view.script = work
    await view.store.aabandon("ann", "t1", by="bob")
    await client.open("r2")
    attaching = asyncio.ensure_future(client.attach("t1"))
    await asyncio.sleep(0.2)
    go_on.set()
    end = (await attaching)[-1]
    assert [one["id"] for one in end["outcome"]["interrupts"]] == ["i2"]


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_client_that_waits_does_not_read_the_state_again_and_again(settings, monkeypatch):
    settings.ROOT_URLCONF = "tests.ag_ui.agents"
    go_on, view, client = asyncio.Event(), DatabaseAgent, AgentClient("/database/")

    async def work(turn):
        yield StateSnapshotEvent(snapshot={"much": "x" * 1000})
        await go_on.wait()

    monkeypatch.setattr(view, "script", staticmethod(work))
    monkeypatch.setattr(view, "heartbeat", 0.05)
    first = await client.open("r1")
    await read_until(first, "STATE_SNAPSHOT")
    asked: list[str] = []
    find = view.store.find
    monkeypatch.setattr(view.store, "find", lambda *key: asked.append("find") or find(*key))
    attaching = asyncio.ensure_future(client.attach("t1", "r1"))
    await asyncio.sleep(0.6)
    before = len(asked)
    go_on.set()
    assert kinds(await attaching)[-1] == "RUN_FINISHED"
    assert before == 1, "once for the request, and not again while nothing has ended"
    first.close()
