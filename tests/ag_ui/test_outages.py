"""Runs whose database is away for a while, or does not answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import OperationalError, connection, connections, transaction
from django.test import override_settings

from solid_runs.ag_ui.endpoint import streaming
from solid_runs.ag_ui.endpoint.isolation import let_go_of_connections, on_fresh_connection
from solid_runs.ag_ui.endpoint.streaming import LiveRun
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from tests.ag_ui.agents import (
    AgentClient,
    DatabaseAgent,
    MemoryAgent,
    asks,
    awaited,
    kinds,
    parse,
    read_until,
    rest,
    say,
    says,
    stored,
)

INTERNAL = {"type": "RUN_ERROR", "message": "The run failed.", "code": "internal_error"}


class Away(MemoryStore):
    """A store whose database goes away with the first save to ``status``, for some seconds."""

    def __init__(self, *status: str, seconds: float) -> None:
        super().__init__()
        self.lost, self.seconds, self.until = status, seconds, 0.0
        self.attempts = 0

    def save(self, record: Any) -> Any:
        if record.status in self.lost:
            self.attempts += 1
            self.until = self.until or time.monotonic() + self.seconds
        if time.monotonic() < self.until:
            raise OperationalError("The server closed the connection unexpectedly.")
        return super().save(record)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*status: str, seconds: float, script: Any = None) -> Any:
        monkeypatch.setattr(MemoryAgent, "store", Away(*status, seconds=seconds))
        monkeypatch.setattr(MemoryAgent, "script", script or says("Hi"))
        return MemoryAgent

    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        yield make


@awaited
async def test_an_outage_at_the_end_of_a_run_costs_neither_success_nor_questions(away):
    view, client = away("succeeded", "interrupted", seconds=1.2), AgentClient("/memory/")
    view.script = asks()
    assert (await client.run("r1"))[-1]["outcome"]["type"] == "interrupt"
    assert view.store.attempts >= 2
    assert await stored(view.store) == {"r1": "interrupted", "i1": "open"}


@awaited
async def test_a_client_hears_that_a_run_lives_while_its_end_cannot_be_saved(away, monkeypatch):
    monkeypatch.setattr(MemoryAgent, "keep_alive", 0.1)
    view = away("succeeded", seconds=0.6)
    response = await AgentClient("/memory/").open("r1")
    text = b"".join([chunk async for chunk in response.streaming_content]).decode()
    assert text.count(": ping\n\n") >= 3
    assert kinds(parse(text))[-1] == "RUN_FINISHED"
    assert await stored(view.store) == {"r1": "succeeded"}


@awaited
async def test_an_outage_at_the_start_of_a_run_delays_it(away):
    view = away("started", seconds=0.6)
    frames = await AgentClient("/memory/").run("r1")
    assert kinds(frames)[0] == "RUN_STARTED"
    assert frames[-1]["outcome"] == {"type": "success"}
    assert view.store.attempts >= 2


@awaited
async def test_an_outage_that_lasts_until_a_run_has_stalled_is_waited_for_no_longer(
    away, settings, caplog
):
    settings.SOLID_RUNS = {"AG_UI_STALL_AFTER": 1.2}
    away("succeeded", seconds=60)
    assert (await AgentClient("/memory/").run("r1"))[-1] == INTERNAL
    assert "could not be failed either" in caplog.text


@awaited
async def test_a_server_stops_in_time_though_its_database_is_away(away, monkeypatch, caplog):
    monkeypatch.setattr(streaming, "SAVING", 0.7)
    view = away("succeeded", seconds=60)
    _, stream = await read_until(await AgentClient("/memory/").open("r1"), "TEXT_MESSAGE_END")
    await asyncio.sleep(0.2)
    begun = time.monotonic()
    await LiveRun.end_all(within=5)
    assert time.monotonic() - begun < 3
    assert (await rest(stream))[-1] == INTERNAL
    assert await stored(view.store) == {"r1": "started"}
    assert "did not end before" not in caplog.text


@awaited
async def test_a_success_that_could_not_be_saved_yet_outlives_a_server_that_stops(away):
    view = away("succeeded", seconds=1)
    _, stream = await read_until(await AgentClient("/memory/").open("r1"), "TEXT_MESSAGE_END")
    await asyncio.sleep(0.2)
    await LiveRun.end_all()
    assert (await rest(stream))[-1]["outcome"] == {"type": "success"}
    assert await stored(view.store) == {"r1": "succeeded"}


# A database that does not answer


class Silent(MemoryStore):
    """A store whose heartbeats are not answered."""

    beats = 0

    async def aheartbeat(self, *args: Any, **kwargs: Any) -> bool:
        self.beats += 1
        await asyncio.sleep(60)
        return False


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(script: Any, stall_after: float) -> Any:
        store = Silent(stall_after=timedelta(seconds=stall_after))
        monkeypatch.setattr(MemoryAgent, "store", store)
        monkeypatch.setattr(MemoryAgent, "script", staticmethod(script))
        return store

    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        yield make


@awaited
async def test_an_agent_is_stopped_before_others_take_it_for_dead_when_a_heartbeat_hangs(silent):
    begun, acts = time.monotonic(), []

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        while True:
            acts.append(time.monotonic() - begun)
            await asyncio.sleep(0.02)

    store = silent(script, stall_after=2)
    assert (await AgentClient("/memory/").run("r1"))[-1] == INTERNAL
    assert 0.9 < acts[-1] < 2
    assert store.beats == 1
    assert await stored(store) == {"r1": "failed"}


@awaited
async def test_the_end_of_an_agent_is_seen_while_a_heartbeat_hangs(silent):
    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        await asyncio.sleep(0.3)

    begun, store = time.monotonic(), silent(script, stall_after=60)
    assert (await AgentClient("/memory/").run("r1"))[-1]["outcome"] == {"type": "success"}
    assert time.monotonic() - begun < 5
    assert store.beats == 1


class Deaf(DatabaseStore):
    """A store whose heartbeats hang in their thread until ``answered``."""

    def __init__(self) -> None:
        super().__init__(stall_after=timedelta(seconds=1))
        self.answered = threading.Event()

    def heartbeat(self, *args: Any, **kwargs: Any) -> bool:
        self.answered.wait(20)
        return super().heartbeat(*args, **kwargs)


@pytest.mark.django_db(transaction=True)
def test_a_run_is_ended_from_another_thread_than_the_one_that_hangs(monkeypatch):
    store = Deaf()

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        await asyncio.sleep(60)

    async def run() -> Any:
        async with ThreadSensitiveContext():  # as a request has it
            frames = await AgentClient("/database/").run("r1")
            ended = await stored(store)
            store.answered.set()
            await asyncio.sleep(0.3)
            late = await stored(store)
            await sync_to_async(connections.close_all)()
        return frames, ended, late

    monkeypatch.setattr(DatabaseAgent, "store", store)
    monkeypatch.setattr(DatabaseAgent, "script", staticmethod(script))
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        frames, ended, late = asyncio.run(run())
    assert frames[-1] == INTERNAL
    assert ended == late == {"r1": "failed"}


# Connections that would last


@pytest.fixture
def lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 600)


def is_connected() -> bool:
    return connection.connection is not None


@pytest.mark.django_db(transaction=True)
def test_a_thread_of_its_own_keeps_no_connection_whatever_their_age_may_be(lasting):
    async def ask() -> bool:
        async with ThreadSensitiveContext():
            await on_fresh_connection(DatabaseStore().afind, "ann", "t1", "r1")
            return await sync_to_async(is_connected)()

    assert asyncio.run(ask()) is False


@pytest.mark.django_db(transaction=True)
def test_a_transaction_keeps_its_connection(lasting):
    def look() -> tuple[bool, bool]:
        return is_connected(), connection.in_atomic_block

    async def ask() -> tuple[bool, bool]:
        async with ThreadSensitiveContext():
            block = transaction.atomic()
            await sync_to_async(block.__enter__)()
            try:
                await let_go_of_connections()
                return await sync_to_async(look)()
            finally:
                await sync_to_async(block.__exit__)(None, None, None)
                await let_go_of_connections()

    assert asyncio.run(ask()) == (True, True)


@pytest.mark.django_db(transaction=True)
@awaited
async def test_a_thread_that_others_share_keeps_a_connection_that_may_last(lasting):
    await sync_to_async(connections.close_all)()
    await on_fresh_connection(DatabaseStore().afind, "ann", "t1", "r1")
    assert await sync_to_async(is_connected)()
    await sync_to_async(connections.close_all)()
