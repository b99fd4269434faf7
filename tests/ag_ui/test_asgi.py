"""The wrapper that ends runs with their server; test_serving.py has it under a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application

from solid_runs.ag_ui.asgi import ending_runs
from tests.ag_ui.agents import awaited, read_until, rest, say

LIFESPAN = {"type": "lifespan", "asgi": {"version": "3.0"}}


async def waits(turn: Any) -> AsyncIterator[Any]:
    yield say("x")[0]
    await asyncio.sleep(60)


async def exchange(server: ApplicationCommunicator, event: str) -> str:
    await server.send_input({"type": f"lifespan.{event}"})
    return str((await server.receive_output(5))["type"])


async def status(view: Any) -> str:
    return str((await view.store.afind("ann", "t1", "r1")).status)


@awaited
async def test_a_server_that_stops_waits_for_the_ends_of_the_runs(view, client):
    view.script = waits
    server = ApplicationCommunicator(ending_runs(get_asgi_application()), LIFESPAN)
    assert await exchange(server, "startup") == "lifespan.startup.complete"
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    assert await exchange(server, "shutdown") == "lifespan.shutdown.complete"
    assert await status(view) == "failed"
    await server.wait()
    assert (await rest(stream))[-1]["code"] == "stalled"


@awaited
async def test_an_application_with_a_lifespan_of_its_own_stops_after_the_runs(view, client):
    view.script, heard = waits, []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            kind = (await receive())["type"]
            heard.append((kind, kind == "lifespan.shutdown" and await status(view)))
            await send({"type": f"{kind}.complete"})

    server = ApplicationCommunicator(ending_runs(application), LIFESPAN)
    assert await exchange(server, "startup") == "lifespan.startup.complete"
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    assert await exchange(server, "shutdown") == "lifespan.shutdown.complete"
    await server.wait()
    await rest(stream)
    assert heard == [("lifespan.startup", False), ("lifespan.shutdown", "failed")]


@awaited
async def test_an_application_that_fails_after_its_start_fails():
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        raise ValueError("Broken.")

    server = ApplicationCommunicator(ending_runs(application), LIFESPAN)
    assert await exchange(server, "startup") == "lifespan.startup.complete"
    with pytest.raises(ValueError, match="Broken"):
        await server.wait()


@pytest.mark.parametrize("reads_first", [True, False])
@awaited
async def test_an_application_that_knows_no_lifespan_is_started_for_it(reads_first):
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if reads_first:
            await receive()
        raise ValueError("Not HTTP.")

    server = ApplicationCommunicator(ending_runs(application), LIFESPAN)
    assert await exchange(server, "startup") == "lifespan.startup.complete"
    assert await exchange(server, "shutdown") == "lifespan.shutdown.complete"
    await server.wait()


@awaited
async def test_other_scopes_go_through():
    seen = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    await ApplicationCommunicator(ending_runs(application), {"type": "websocket"}).wait()
    assert seen == [{"type": "websocket"}]
