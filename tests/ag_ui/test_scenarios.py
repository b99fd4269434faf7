"""S1 to S12 of the scenarios: what is stored and what is sent, at every step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from ag_ui.core import StateSnapshotEvent, SubagentStartedEvent
from django.utils import timezone

from solid_runs.ag_ui.exceptions import ConfigurationError
from tests.ag_ui.agents import (
    MESSAGE,
    AgentClient,
    Payments,
    approval,
    arows,
    asks,
    awaited,
    body,
    call,
    dropped,
    kinds,
    left_by_a_dead_server,
    read_until,
    resolved,
    rest,
    result,
    say,
    says,
    stored,
)

TOOL_CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
AGO = timedelta(0)


@pytest.fixture
def payments(view: Any) -> Payments:
    payments = Payments()
    view.script = payments.script
    return payments


def refusal(frames: list[Any]) -> str:
    """The code of a stream that is a refusal and nothing else."""
    assert kinds(frames) == ["RUN_ERROR"], frames
    return frames[0]["code"]


def outcome(frames: list[Any]) -> str:
    assert frames[0].kind == "RUN_STARTED"
    assert frames[-1].kind == "RUN_FINISHED", frames
    return frames[-1]["outcome"]["type"]


@awaited
async def test_s1_a_tool_is_approved_and_runs_once(view, client):
    seen: list[Any] = []

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            yield StateSnapshotEvent(snapshot={"step": 1})
            async for one in asks()(turn):
                seen.append(await stored(view.store))
                yield one
            return
        seen.append(await stored(view.store))
        assert await turn.settle("i1")
        seen.append(await stored(view.store))
        yield result("Paid.")
        for event in say("Done.", "m2"):
            yield event

    view.script = script
    frames = await client.run("r1")
    assert kinds(frames) == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        *MESSAGE,
        *TOOL_CALL,
        "STATE_SNAPSHOT",
        "RUN_FINISHED",
    ]
    assert [frame.id for frame in frames] == list(range(1, 11))
    assert seen.pop() == {"r1": "started"}
    assert frames[-1]["outcome"] == {
        "type": "interrupt",
        "interrupts": [
            {
                "id": "i1",
                "reason": "tool_call",
                "message": "Pay?",
                "toolCallId": "c1",
                "responseSchema": {"type": "object"},
            }
        ],
    }
    assert await stored(view.store) == {"r1": "interrupted", "i1": "open"}
    record = await view.store.afind("ann", "t1", "r1")
    assert (record.sequence, record.snapshot) == (10, {"step": 1})
    seen.clear()
    frames = await client.run("r2", resume=[resolved(approved=True)])
    assert kinds(frames) == ["RUN_STARTED", "TOOL_CALL_RESULT", *MESSAGE, "RUN_FINISHED"]
    assert frames[0]["runId"] == "r2"
    assert frames[-1]["outcome"] == {"type": "success"}
    assert seen == [
        {"r1": "interrupted", "i1": "held(r2)", "r2": "started"},
        {"r1": "interrupted", "i1": "settled(r2)", "r2": "started"},
    ]
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r2)",
        "r2": "succeeded",
    }


@awaited
async def test_s2_a_denial_reaches_the_agent_and_is_settled(view, client, payments):
    await client.run("r1")
    frames = await client.run("r2", resume=[resolved(approved=False)])
    assert kinds(frames) == ["RUN_STARTED", "TOOL_CALL_RESULT", *MESSAGE, "RUN_FINISHED"]
    assert (frames[1]["toolCallId"], frames[1]["content"]) == ("c1", "Denied.")
    assert outcome(frames) == "success"
    assert payments.paid == []
    interrupt = await view.store.afind_interrupt("ann", "t1", "i1")
    assert (interrupt.decision.status, interrupt.decided_by) == ("resolved", "ann")
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r2)",
        "r2": "succeeded",
    }


@awaited
async def test_s3_of_two_tabs_that_answer_the_first_wins(view, client, payments):
    await client.run("r1")
    await client.run("r2", resume=[resolved(approved=True)])
    before = await arows(view.store)
    frames = await AgentClient(view.root).run("r3", resume=[resolved(approved=False)])
    assert refusal(frames) == "interrupt_answered"
    frames = await AgentClient(view.root).run("r3", resume=[resolved(approved=True)])
    assert refusal(frames) == "interrupt_answered"
    assert await arows(view.store) == before
    frames = await AgentClient(view.root).run("r4", resume=[dropped()])
    assert outcome(frames) == "success"
    assert [f["content"] for f in frames if f.kind == "TOOL_CALL_RESULT"] == ["Outcome unknown."]
    assert payments.paid == ["i1"]
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r2)",
        "r2": "succeeded",
        "r4": "succeeded",
    }


@awaited
async def test_s3_of_two_tabs_at_once_one_is_refused(view, client):
    going, done = asyncio.Event(), asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            yield approval()
            return
        yield say("x")[0]
        going.set()
        await done.wait()

    view.script = script
    await client.run("r1")
    _, stream = await read_until(
        await client.open("r2", resume=[resolved(approved=True)]), "TEXT_MESSAGE_START"
    )
    before = await stored(view.store)
    assert before == {"r1": "interrupted", "i1": "held(r2)", "r2": "started"}
    assert refusal(await client.run("r3", resume=[resolved(approved=False)])) == (
        "interrupt_answered"
    )
    shown = (await client.get("t1")).json()
    assert (shown["run"]["runId"], shown["interrupts"]) == ("r2", [])
    assert await stored(view.store) == before
    done.set()
    assert kinds(await rest(stream))[-1] == "RUN_FINISHED"


@awaited
async def test_s4_a_server_that_dies_before_the_tool_leaves_the_answer_free(view, client, payments):
    view.attach_limit = 0.1
    approve = {"resume": [resolved(approved=True)]}
    await client.run("r1")
    await left_by_a_dead_server(view.store, run_id="r2", **approve)
    held = {"r1": "interrupted", "i1": "held(r2)", "r2": "started"}
    assert await stored(view.store) == held
    frames = await client.run("r2", **approve)
    assert kinds(frames) == ["RUN_STARTED", "RUN_ERROR"]
    assert frames[-1]["code"] == "run_in_progress"
    assert await stored(view.store) == held
    await asyncio.sleep(0.01)
    assert len(await view.store.afail_stalled(AGO)) == 1
    assert await stored(view.store) == {"r1": "interrupted", "i1": "free", "r2": "failed"}
    frames = await client.run("r2", **approve)
    assert kinds(frames) == ["RUN_STARTED", "RUN_ERROR"]
    assert frames[-1]["code"] == "stalled"
    before = await arows(view.store)
    assert refusal(await client.run("r3", resume=[resolved(approved=False)])) == (
        "interrupt_answered"
    )
    assert await arows(view.store) == before
    assert outcome(await client.run("r4", **approve)) == "success"
    assert payments.paid == ["i1"]
    assert (await stored(view.store))["i1"] == "settled(r4)"


@awaited
async def test_s4_a_free_approval_can_be_withdrawn(view, client, payments):
    await client.run("r1")
    await left_by_a_dead_server(view.store, run_id="r2", resume=[resolved(approved=True)])
    await asyncio.sleep(0.01)
    await view.store.afail_stalled(AGO)
    frames = await client.run("r3", resume=[dropped()])
    assert outcome(frames) == "success"
    assert frames[1]["content"] == "Cancelled by the user."
    assert payments.paid == []
    interrupt = await view.store.afind_interrupt("ann", "t1", "i1")
    assert (interrupt.decision.status, str(interrupt.state)) == ("cancelled", "settled")


@awaited
async def test_s5_a_server_that_dies_after_the_tool_never_has_it_run_again(view, client, payments):
    await client.run("r1")
    approve = {"resume": [resolved(approved=True)]}
    await left_by_a_dead_server(view.store, run_id="r2", acted=True, **approve)
    await asyncio.sleep(0.01)
    await view.store.afail_stalled(AGO)
    after = {"r1": "interrupted", "i1": "settled(r2)", "r2": "failed"}
    assert await stored(view.store) == after
    before = await arows(view.store)
    assert refusal(await client.run("r3", **approve)) == "interrupt_answered"
    assert await arows(view.store) == before
    frames = await client.run("r4", resume=[dropped()])
    assert outcome(frames) == "success"
    assert frames[1]["content"] == "Outcome unknown."
    assert payments.paid == []
    assert await stored(view.store) == after | {"r4": "succeeded"}


@awaited
async def test_s6_a_run_whose_client_is_gone_goes_on(view, client):
    gone = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        for event in say("x")[:2]:
            yield event
        await gone.wait()
        for number in range(1000):
            for event in say("y", f"n{number}"):
                yield event

    view.script = script
    response = await client.open("r1")
    await read_until(response, "TEXT_MESSAGE_CONTENT")
    await asyncio.to_thread(response.close)
    await asyncio.sleep(0.1)
    assert await stored(view.store) == {"r1": "started"}
    shown = (await client.get("t1")).json()
    assert (shown["run"]["status"], shown["interrupts"]) == ("started", [])
    gone.set()
    frames = await client.attach("t1", "r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert await stored(view.store) == {"r1": "succeeded"}


@awaited
async def test_s6_a_run_that_shall_stop_with_its_client_fails(view, client):
    view.on_disconnect = "stop"
    stopped = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    view.script = script
    response = await client.open("r1")
    await read_until(response, "TEXT_MESSAGE_START")
    await asyncio.to_thread(response.close)
    await asyncio.wait_for(stopped.wait(), 5)
    frames = await client.attach("t1", "r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_ERROR"]
    assert frames[-1]["code"] == "client_gone"
    assert await stored(view.store) == {"r1": "failed"}


@awaited
async def test_s6_a_reloaded_page_may_run_beside_a_running_one(view, client):
    waits = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        if turn.run_id == "r1":
            await waits.wait()
        for event in say("x"):
            yield event

    view.script = script
    _, stream = await read_until(await client.open("r1"), "RUN_STARTED")
    assert outcome(await client.run("r2")) == "success"
    assert await stored(view.store) == {"r1": "started", "r2": "succeeded"}
    waits.set()
    assert kinds(await rest(stream)) == [*MESSAGE, "RUN_FINISHED"]


@awaited
async def test_s6_a_reloaded_page_is_offered_what_is_open(view, client):
    view.script = asks()
    await client.run("r1", state={"a": 1})
    before = await arows(view.store)
    frames = await client.run("r2", text="Hello again")
    assert kinds(frames) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert frames[0]["runId"] == frames[-1]["runId"] == "r2"
    assert frames[1]["snapshot"] == {"a": 1}
    assert [one["id"] for one in frames[-1]["outcome"]["interrupts"]] == ["i1"]
    shown = (await client.get("t1")).json()
    assert shown["run"]["runId"] == "r1"
    assert [one["id"] for one in shown["interrupts"]] == ["i1"]
    assert await arows(view.store) == before
    view.offer = False
    assert refusal(await client.run("r2")) == "interrupts_pending"
    assert await arows(view.store) == before


@awaited
async def test_s7_a_retry_after_partial_delivery_is_attached(view, client):
    going = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        for event in say("x")[:2]:
            yield event
        await going.wait()

    view.script, view.attach_limit = script, 0.1
    response = await client.open("r1")
    await read_until(response, "TEXT_MESSAGE_CONTENT")
    half = [*body()["messages"], {"id": "m1", "role": "assistant", "content": "x"}]
    again = {"messages": half, "state": {"moved": True}}
    frames = await client.run("r1", **again)
    assert kinds(frames) == ["RUN_STARTED", "RUN_ERROR"]
    assert frames[-1]["code"] == "run_in_progress"
    before = await stored(view.store)
    assert refusal(await client.run("r1", text="Something else")) == "run_conflict"
    assert await stored(view.store) == before == {"r1": "started"}
    going.set()
    view.attach_limit = 10
    frames = await client.run("r1", **again)
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert outcome(frames) == "success"


@pytest.fixture
def later(view: Any) -> Any:
    """Moves the clock of the store on."""
    shift = [timedelta(0)]
    view.store.clock = lambda: timezone.now() + shift[0]

    def move(**by: float) -> None:
        shift[0] += timedelta(**by)

    return move


def soon() -> Any:
    return timezone.now() + timedelta(minutes=1)


@awaited
async def test_s8_an_expired_approval_is_refused_and_can_be_cancelled(
    view, client, payments, later
):
    view.script = asks(approval(expires_at=soon()))
    await client.run("r1")
    later(hours=1)
    before = await arows(view.store)
    assert refusal(await client.run("r2", resume=[resolved(approved=True)])) == (
        "interrupt_expired"
    )
    assert await arows(view.store) == before
    view.script = payments.script
    frames = await client.run("r3", resume=[dropped()])
    assert outcome(frames) == "success"
    assert frames[1]["content"] == "Cancelled by the user."
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r3)",
        "r3": "succeeded",
    }


@awaited
async def test_s8_an_expired_one_is_cancelled_beside_an_open_one(view, client, payments, later):
    view.script = asks(approval(expires_at=soon()), approval("i2", "c2"))
    await client.run("r1")
    later(hours=1)
    view.script = payments.script
    frames = await client.run("r2", resume=[dropped(), resolved("i2", approved=True)])
    assert outcome(frames) == "success"
    assert payments.paid == ["i2"]
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r2)",
        "i2": "settled(r2)",
        "r2": "succeeded",
    }


@awaited
async def test_s8_a_plain_run_goes_on_when_all_have_expired(view, client, payments, later):
    view.script = asks(approval(expires_at=soon()))
    await client.run("r1")
    later(hours=1)
    view.script = payments.script
    frames = await client.run("r2")
    assert outcome(frames) == "success"
    assert frames[1]["content"] == "Cancelled by the user."
    interrupt = await view.store.afind_interrupt("ann", "t1", "i1")
    assert (interrupt.decided_by, interrupt.decision.status) == ("expiry", "cancelled")


@awaited
async def test_s8_some_open_and_some_expired_are_all_offered(view, client, later):
    view.script = asks(approval(expires_at=soon()), approval("i2", "c2"))
    await client.run("r1")
    later(hours=1)
    before = await arows(view.store)
    frames = await client.run("r2")
    assert [one["id"] for one in frames[-1]["outcome"]["interrupts"]] == ["i1", "i2"]
    assert await arows(view.store) == before


@awaited
async def test_s8_a_replay_after_the_expiry_is_a_replay(view, client, payments, later):
    view.script = asks(approval(expires_at=soon()))
    await client.run("r1")
    view.script = payments.script
    await client.run("r2", resume=[resolved(approved=True)])
    later(hours=1)
    before = await arows(view.store)
    frames = await client.run("r2", resume=[resolved(approved=True)])
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert outcome(frames) == "success"
    assert await arows(view.store) == before
    assert payments.paid == ["i1"]


@awaited
async def test_s8_an_agent_that_sets_no_deadline_gets_that_of_the_view(view, client):
    view.script, view.interrupt_ttl = asks(approval(), approval("i2", expires_at=soon())), 3600
    begun = timezone.now()
    frames = await client.run("r1")
    interrupt = await view.store.afind_interrupt("ann", "t1", "i1")
    assert timedelta(minutes=59) < interrupt.expires_at - begun < timedelta(minutes=61)
    other = await view.store.afind_interrupt("ann", "t1", "i2")
    assert other.expires_at - begun < timedelta(minutes=2)
    assert all("expiresAt" in one for one in frames[-1]["outcome"]["interrupts"])


@awaited
async def test_s9_a_run_that_was_not_started_is_cancelled_at_once(view, client):
    await view.store.areserve("ann", "t1", "r1", "d")
    response = await client.cancel("r1")
    assert (response.status_code, response.json()["run"]["status"]) == (200, "cancelled")
    assert await stored(view.store) == {"r1": "cancelled"}


@awaited
async def test_s9_a_running_run_is_cancelled_by_another_tab(view, client):
    closed = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        if not turn.answers:
            yield approval()
            return
        for event in [*say("x")[:2], *call()[:1]]:
            yield event
        try:
            await asyncio.sleep(60)
        finally:
            closed.set()

    view.script = script
    await client.run("r1")
    _, stream = await read_until(
        await client.open("r2", resume=[resolved(approved=True)]), "TOOL_CALL_START"
    )
    response = await client.cancel("r2")
    assert (response.status_code, response.json()["run"]["status"]) == (202, "started")
    frames = await rest(stream)
    assert kinds(frames) == ["TOOL_CALL_END", "TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert closed.is_set()
    assert await stored(view.store) == {"r1": "interrupted", "i1": "free", "r2": "cancelled"}


@awaited
async def test_s9_a_cancel_of_another_process_is_seen_at_the_next_heartbeat(view, client):
    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        await asyncio.sleep(60)

    view.script = script
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    asked = await view.store.arequest_cancel("ann", "t1", "r1")
    assert not asked.ended
    assert kinds(await rest(stream)) == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert await stored(view.store) == {"r1": "cancelled"}


@awaited
async def test_s9_a_run_whose_owner_is_dead_is_cancelled_at_once(view, client):
    await left_by_a_dead_server(view.store, run_id="r1")
    await asyncio.sleep(0.01)
    view.store._stall_after = timedelta(milliseconds=1)
    assert (await client.cancel("r1")).status_code == 200
    assert await stored(view.store) == {"r1": "cancelled"}


@awaited
async def test_s9_a_tool_that_finishes_late_does_not_make_it_a_success(view, client):
    going, ended = asyncio.Event(), asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        yield say("x")[0]
        going.set()
        await ended.wait()

    view.script, view.heartbeat = script, 60
    _, stream = await read_until(await client.open("r1"), "TEXT_MESSAGE_START")
    view.store._stall_after = timedelta(milliseconds=1)
    await asyncio.sleep(0.01)
    assert (await view.store.arequest_cancel("ann", "t1", "r1")).ended
    ended.set()
    frames = await rest(stream)
    assert kinds(frames) == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert await stored(view.store) == {"r1": "cancelled"}


@awaited
async def test_s9_the_cancel_of_an_interrupted_run_abandons_what_it_asked(view, client):
    view.script = asks()
    await client.run("r1")
    response = await client.cancel("r1")
    assert (response.status_code, response.json()["run"]["status"]) == (200, "interrupted")
    assert await stored(view.store) == {"r1": "interrupted", "i1": "settled"}
    frames = await client.run("r1")
    assert kinds(frames) == ["RUN_STARTED", "RUN_FINISHED"]
    assert outcome(frames) == "success"


@awaited
async def test_s10_of_parallel_runs_the_one_reserved_last_may_be_answered(view, client, payments):
    first = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        if turn.run_id == "r1":
            await first.wait()
        yield approval(f"i{turn.run_id[1]}", f"c{turn.run_id[1]}")

    view.script = script
    _, stream = await read_until(await client.open("r1"), "RUN_STARTED")
    assert outcome(await client.run("r2")) == "interrupt"
    first.set()
    assert kinds(await rest(stream)) == ["RUN_FINISHED"]
    both = {"r1": "interrupted", "i1": "open", "r2": "interrupted", "i2": "open"}
    assert await stored(view.store) == both
    frames = await client.run("r3", resume=[resolved("i1", approved=True)])
    assert refusal(frames) == "resume_rejected"
    assert "'i1'" in frames[0]["message"]
    assert "'i2'" in frames[0]["message"]
    assert await stored(view.store) == both
    assert await view.store.aabandon("ann", "t1") == 2
    view.script = says("Hi")
    assert outcome(await client.run("r4")) == "success"


@awaited
async def test_s10_a_busy_thread_refuses_a_second_run(view, client):
    first = asyncio.Event()

    async def script(turn: Any) -> AsyncIterator[Any]:
        await first.wait()
        for event in say("x"):
            yield event

    view.script, view.policy = script, "reject"
    _, stream = await read_until(await client.open("r1"), "RUN_STARTED")
    assert refusal(await client.run("r2")) == "thread_busy"
    assert await stored(view.store) == {"r1": "started"}
    view.attach_limit = 0.05
    frames = await client.run("r1")
    assert frames[-1]["code"] == "run_in_progress"
    first.set()
    assert kinds(await rest(stream))[-1] == "RUN_FINISHED"


@awaited
async def test_s10_a_dead_run_does_not_keep_its_thread_busy(view, client):
    view.policy = "reject"
    await left_by_a_dead_server(view.store, run_id="r1")
    view.store._stall_after = timedelta(milliseconds=1)
    await asyncio.sleep(0.01)
    assert outcome(await client.run("r2")) == "success"
    assert await stored(view.store) == {"r1": "failed", "r2": "succeeded"}


def two_children() -> list[Any]:
    return [
        approval("i1", "c1", subagent_run_id="s1"),
        approval("i2", "c2", subagent_run_id="s2"),
    ]


@awaited
async def test_s11_two_subagents_ask_and_are_both_answered(view, client, payments):
    async def script(turn: Any) -> AsyncIterator[Any]:
        for child in ("s1", "s2"):
            yield SubagentStartedEvent(subagent_run_id=child, name="payer")
        for interrupt in two_children():
            yield interrupt

    view.script = script
    frames = await client.run("r1", parentRunId="r0")
    assert kinds(frames) == [
        "RUN_STARTED",
        *["SUBAGENT_STARTED"] * 2,
        *["SUBAGENT_FINISHED"] * 2,
        "RUN_FINISHED",
    ]
    assert frames[0]["parentRunId"] == "r0"
    suspended = {f["subagentRunId"]: f["outcome"] for f in frames[3:5]}
    assert suspended == {
        "s1": {"type": "suspended", "interruptIds": ["i1"]},
        "s2": {"type": "suspended", "interruptIds": ["i2"]},
    }
    asked = frames[-1]["outcome"]["interrupts"]
    assert [(one["id"], one["subagentRunId"]) for one in asked] == [("i1", "s1"), ("i2", "s2")]
    assert await stored(view.store) == {"r1": "interrupted", "i1": "open", "i2": "open"}
    view.script = payments.script
    frames = await client.run("r2", resume=[resolved("i1", approved=True)])
    assert refusal(frames) == "resume_rejected"
    assert "'i2'" in frames[0]["message"]
    assert "r2" not in await stored(view.store)
    both = [resolved("i1", approved=True), resolved("i2", approved=True)]
    assert outcome(await client.run("r3", resume=both)) == "success"
    assert payments.paid == ["i1", "i2"]


@awaited
async def test_s11_a_crash_between_two_tools_leaves_the_second_usable(view, client, payments):
    view.script = asks(*two_children())
    await client.run("r1")
    both = [resolved("i1", approved=True), resolved("i2", approved=True)]
    await left_by_a_dead_server(view.store, run_id="r2", resume=both)
    assert await view.store.asettle("ann", "t1", "i1", "r2")
    await asyncio.sleep(0.01)
    await view.store.afail_stalled(AGO)
    assert await stored(view.store) == {
        "r1": "interrupted",
        "i1": "settled(r2)",
        "i2": "free",
        "r2": "failed",
    }
    view.script = payments.script
    frames = await client.run("r3", resume=both)
    assert outcome(frames) == "success"
    assert payments.paid == ["i2"]
    told = {f["toolCallId"]: f["content"] for f in frames if f.kind == "TOOL_CALL_RESULT"}
    assert told == {"c1": "Outcome unknown.", "c2": "Paid."}
    assert (await stored(view.store))["i2"] == "settled(r3)"


@awaited
async def test_s12_a_scope_is_its_text(view, client, monkeypatch):
    async def scope_of(self: Any, request: Any) -> Any:
        return scopes[request.headers["X-User"]]

    key = UUID("AAAAAAAA-0000-0000-0000-000000000001")
    scopes = {"number": 1, "digits": "1", "uuid": key, "text": str(key)}
    monkeypatch.setattr(view, "scope_of", scope_of)
    await AgentClient(view.root, "number").run("r1")
    assert (await AgentClient(view.root, "digits").get("t1", "r1")).status_code == 200
    assert (await view.store.afind(1, "t1", "r1")).scope == "1"
    await AgentClient(view.root, "uuid").run("r2", "t2")
    assert (await AgentClient(view.root, "text").get("t2", "r2")).status_code == 200


@pytest.mark.parametrize("scope", ["", " ", "a\0b", "x" * 256])
@awaited
async def test_s12_text_that_names_no_tenant_is_nobodys(view, client, scope, monkeypatch):
    async def scope_of(self: Any, request: Any) -> Any:
        return scope

    monkeypatch.setattr(view, "scope_of", scope_of)
    for request in (client.open("r1"), client.get("t1"), client.cancel("r1")):
        assert (await request).status_code == 403


@pytest.mark.parametrize("scope", [True, 1.0, b"1", object()])
@awaited
async def test_s12_what_names_no_tenant_is_a_mistake_of_the_host(view, client, scope, monkeypatch):
    async def scope_of(self: Any, request: Any) -> Any:
        return scope

    monkeypatch.setattr(view, "scope_of", scope_of)
    for request in (client.open("r1"), client.get("t1"), client.cancel("r1")):
        with pytest.raises(ConfigurationError):
            await request


@awaited
async def test_s12_nobody_has_no_scope(view, client, monkeypatch):
    async def scope_of(self: Any, request: Any) -> Any:
        return None

    monkeypatch.setattr(view, "scope_of", scope_of)
    for request in (client.open("r1"), client.get("t1"), client.cancel("r1")):
        assert (await request).status_code == 403
