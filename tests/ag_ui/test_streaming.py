"""What a run does with patches of its state, with large frames, and with an agent's cleanup."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from ag_ui.core import RunErrorEvent, RunFinishedEvent, StateDeltaEvent, StateSnapshotEvent

from solid_runs.ag_ui.endpoint.channels import Channel
from solid_runs.ag_ui.endpoint.turns import UNFIT, patched
from tests.ag_ui.agents import awaited, say

STATE = {"a": {"b": [1, {"c": [2]}], "x/y": {"~": 1}}, "n": [[1], [2]], "s": "text"}
FITTING = [
    [{"op": "add", "path": "/a/b/-", "value": 3}],
    [{"op": "replace", "path": "/a/b/1/c/0", "value": {"d": 1}}],
    [{"op": "remove", "path": "/a/x~1y/~0"}],
    [{"op": "replace", "path": "", "value": [1]}, {"op": "add", "path": "/0", "value": 0}],
    [{"op": "move", "from": "/a", "path": "/z"}, {"op": "add", "path": "/z/b/1/c/-", "value": 9}],
    [{"op": "copy", "from": "/a/b", "path": "/z"}, {"op": "add", "path": "/z/1/c/-", "value": 9}],
    [{"op": "move", "from": "/n/0", "path": "/n/1"}, {"op": "remove", "path": "/n/1/0"}],
    [{"op": "test", "path": "/n/0/0", "value": 1}, {"op": "remove", "path": "/n/0/0"}],
    [{"op": "add", "path": "/v", "value": {"w": []}}, {"op": "add", "path": "/v/w/0", "value": 1}],
]
UNFITTING = [
    {"op": "remove", "path": "/nowhere"},
    {"op": "add", "path": "/nowhere/x", "value": 1},
    {"op": "add", "path": "/s/x", "value": 1},
    {"op": "replace", "path": "/n/7", "value": 1},
    {"op": "replace", "path": "/n/x", "value": 1},
    {"op": "move", "from": "/a", "path": "/a/b/0"},
    {"op": "test", "path": "/s", "value": "other"},
    {"op": "add", "path": "no pointer", "value": 1},
    {"op": "add", "path": "/n/-/0", "value": 1},
]


@pytest.mark.parametrize("patch", FITTING)
def test_a_patch_does_what_it_says_and_leaves_the_old_state_as_it_was(patch):
    state = deepcopy(STATE)
    assert patched(state, deepcopy(patch)) == jsonpatch.apply_patch(STATE, patch)
    assert state == STATE


@pytest.mark.parametrize("operation", UNFITTING)
@pytest.mark.parametrize("before", FITTING[:3])
def test_a_patch_that_fails_half_way_leaves_the_state_as_it_was(before, operation):
    state = deepcopy(STATE)
    with pytest.raises(UNFIT):
        patched(state, deepcopy([*before, operation]))
    assert state == STATE


def test_many_small_patches_copy_nothing_of_a_large_state_but_what_they_touch():
    items = [{"n": number} for number in range(50_000)]
    state: Any = {"progress": {"done": 0}, "items": items}
    for number in range(2000):
        before = state
        if number % 100:
            state = patched(state, replacing("/progress/done", number))
            assert state["items"] is before["items"]
        else:
            state = patched(state, replacing("/items/7/n", number))
            pairs = zip(state["items"], before["items"], strict=True)
            assert sum(one is not other for one, other in pairs) == 1
    assert state["progress"] == {"done": 1999}
    assert items[7] == {"n": 7}


def replacing(path: str, value: Any) -> Any:
    return [{"op": "replace", "path": path, "value": value}]


@awaited
async def test_the_state_of_a_run_passes_over_a_patch_that_fails_half_way(view, client):
    def operation(op: str, path: str, value: Any) -> Any:
        return {"op": op, "path": path, "value": value}

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield StateSnapshotEvent(snapshot={"a": [1]})
        yield StateDeltaEvent(delta=[operation("add", "/a/-", 2)])
        yield StateDeltaEvent(delta=[operation("add", "/a/-", 3), operation("replace", "/b", 1)])

    view.script = script
    await client.run("r1")
    assert (await view.store.afind("ann", "t1", "r1")).snapshot == {"a": [1, 2]}


# Large frames


@awaited
async def test_an_agent_waits_when_much_is_unread_though_in_few_frames():
    channel = Channel(keep_alive=9, characters=100)
    await channel.put("x" * 60)
    put = asyncio.ensure_future(channel.put("y" * 60))
    await asyncio.sleep(0.02)
    assert not put.done()
    stream = aiter(channel)
    assert await anext(stream) == "x" * 60
    await put
    assert await anext(stream) == "y" * 60
    channel.finish()


@awaited
async def test_a_frame_that_is_larger_than_the_bound_goes_alone():
    channel = Channel(keep_alive=9, characters=100)
    await asyncio.wait_for(channel.put("x" * 500), 1)
    put = asyncio.ensure_future(channel.put("y"))
    await asyncio.sleep(0.02)
    assert not put.done()
    stream = aiter(channel)
    assert await anext(stream) == "x" * 500
    await put
    channel.finish()
    assert [chunk async for chunk in stream] == ["y"]


# Cleanup


def with_a_broken_cleanup(*events: Any, error: BaseException) -> Any:
    async def script(turn: Any) -> AsyncIterator[Any]:
        try:
            for event in events:
                yield event
            await asyncio.sleep(60)
        finally:
            raise error

    return script


class Odd(BaseException):
    pass


ERRORS = [ValueError("secret"), asyncio.CancelledError(), SystemExit(), Odd()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@awaited
async def test_a_cleanup_that_fails_does_not_change_how_the_agent_ended(
    view, client, caplog, error
):
    end = RunFinishedEvent(thread_id="t1", run_id="r1", result=42)
    view.script = with_a_broken_cleanup(*say("x"), end, error=error)
    last = (await client.run("r1"))[-1]
    assert (last["outcome"], last["result"]) == ({"type": "success"}, 42)
    assert "cleaned up" in caplog.text


@awaited
async def test_a_cleanup_that_fails_does_not_change_why_the_agent_failed(view, client, caplog):
    end = RunErrorEvent(message="Over budget.", code="budget")
    view.script = with_a_broken_cleanup(end, error=ValueError("secret"))
    last = (await client.run("r1"))[-1]
    assert last == {"type": "RUN_ERROR", "message": "Over budget.", "code": "budget"}
    assert "secret" in caplog.text


@awaited
async def test_an_agent_that_fails_before_any_end_has_failed(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        raise ValueError("secret")

    view.script = script
    assert (await client.run("r1"))[-1]["code"] == "internal_error"


class Stream:
    """Events that are no generator, whose end is all right and whose close is not."""

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        raise ValueError("secret")


@awaited
async def test_a_stream_that_cannot_be_closed_after_its_end_has_ended(view, client, caplog):
    view.script = staticmethod(lambda turn: Stream())
    assert (await client.run("r1"))[-1]["outcome"] == {"type": "success"}
    assert "secret" in caplog.text
