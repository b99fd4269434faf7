"""The async twins: the same facts, awaited, beside the sync forms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, connections, transaction

from solid_runs.exceptions import InvalidUsage, RunNotFound, StaleRun
from solid_runs.signals import run_status_changed
from solid_runs.statuses import RunStatus
from tests.models import (
    FreshRun,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
)

pytestmark = pytest.mark.django_db

SHAPES = [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TableRun]

Call: TypeAlias = Callable[..., Any]
Heard: TypeAlias = Callable[[], list[tuple[str, str]]]


def called(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(owner, name)(*args, **kwargs)


def awaited(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    async def inside() -> Any:
        return await getattr(owner, f"a{name}")(*args, **kwargs)

    return async_to_sync(inside)()


@pytest.fixture(params=[called, awaited])
def call(request: pytest.FixtureRequest) -> Call:
    """Calls a method by its name: itself, or its twin from inside an event loop."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """What was told so far, once what waits for the test's own transaction has run."""
    statuses: list[tuple[str, str]] = []

    def receiver(from_status: str, to_status: str, **facts: Any) -> None:
        statuses.append((str(from_status), str(to_status)))

    def committed() -> list[tuple[str, str]]:
        waiting, connection.run_on_commit = connection.run_on_commit, []
        for _, told, _ in waiting:
            told()
        return statuses

    run_status_changed.connect(receiver)
    yield committed
    run_status_changed.disconnect(receiver)


def entries(run: Any, call: Call) -> list[Any]:
    """events_log is a property, its twin a method."""
    return run.events_log if call is called else call(run, "events_log")  # type: ignore[no-any-return]


# The same facts over both


@pytest.mark.parametrize("model", SHAPES)
def test_a_whole_life_is_recorded_and_told_once(model: Any, call: Call, heard: Heard) -> None:
    run = model.objects.create(input_prompt="Find the total")
    assert call(run, "start") is True
    assert call(run, "start") is False
    event = call(run, "append_event", "tool", "search", eid="1", detail={"rows": 3})
    line = call(run, "add_log", "asking", level="warn")
    assert call(run, "finish", "done", {"model": "m"}, input_tokens=2, output_tokens=3) is True
    assert call(run, "finish", "again") is False
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == (RunStatus.COMPLETE, "done")
    assert stored.output_metadata["model"] == "m"
    assert stored.events_log == entries(run, call) == [event, line]
    assert call(run, "events_after", 1) == [(2, line)]
    assert heard() == [("pending", "running"), ("running", "complete")]


@pytest.mark.parametrize("model", SHAPES)
def test_a_failed_run_is_restarted_by_one_copy_and_cancelled(
    model: Any, call: Call, heard: Heard
) -> None:
    run = model.objects.create(status=RunStatus.RUNNING)
    assert call(run, "fail", ValueError("broken")) is True
    stale = model.objects.get(pk=run.pk)
    assert call(run, "restart") is True
    assert call(stale, "restart") is False
    assert call(run, "cancel", "not needed") is True
    assert call(stale, "cancel") is False
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.error_message) == (RunStatus.CANCELLED, "not needed")
    assert heard() == [("running", "failed"), ("failed", "running"), ("running", "cancelled")]


def test_a_host_with_three_columns_lives_too(call: Call, heard: Heard) -> None:
    run = MinimalRun.objects.create()
    assert call(run, "start")
    line = call(run, "add_log", "asking")
    assert call(run, "fail", "broken")
    assert entries(run, call) == [line]
    assert heard() == [("pending", "running"), ("running", "failed")]


def test_a_run_that_was_cancelled_never_leaves_its_end_but_takes_late_events(
    call: Call, heard: Heard
) -> None:
    run = PlatformRun.objects.create()
    stale = PlatformRun.objects.get(pk=run.pk)
    assert call(run, "cancel")
    assert call(stale, "start") is False
    assert stale.status is RunStatus.CANCELLED
    late = call(stale, "append_event", "tool", "late")
    assert PlatformRun.objects.get(pk=run.pk).events_log == [late]
    assert heard() == [("pending", "cancelled")]


def test_a_stale_copy_overwrites_neither_the_end_nor_the_log(call: Call, heard: Heard) -> None:
    run = FreshRun.objects.create(status=RunStatus.RUNNING)
    a, b = FreshRun.objects.get(pk=run.pk), FreshRun.objects.get(pk=run.pk)
    event = call(b, "append_event", "tool", "x")
    assert call(b, "finish", "done")
    a.agent_name = "n"
    call(a, "save", update_fields=["agent_name"])
    assert call(a, "fail", ValueError("late")) is False
    stored = FreshRun.objects.get(pk=run.pk)
    assert (stored.status, stored.output, stored.agent_name) == (RunStatus.COMPLETE, "done", "n")
    assert stored.events_log == [event]
    assert heard() == [("running", "complete")]


def test_a_status_is_saved_once_and_refused_from_a_stale_copy(call: Call, heard: Heard) -> None:
    run = FreshRun.objects.create(status=RunStatus.RUNNING)
    stale = FreshRun.objects.get(pk=run.pk)
    run.status = "complete"
    call(run, "save")
    stale.status, stale.agent_name = "failed", "n"
    with pytest.raises(StaleRun):
        call(stale, "save")
    stored = FreshRun.objects.get(pk=run.pk)
    assert (stored.status, stored.agent_name) == (RunStatus.COMPLETE, None)
    assert heard() == [("running", "complete")]


def test_work_between_two_changes_tells_nothing_more(call: Call, heard: Heard) -> None:
    run = PlatformJsonRun.objects.create()
    call(run, "start")
    call(run, "append_event", "tool", "x")
    call(run, "add_log", "y")
    run.input_prompt = "changed"
    call(run, "save")
    call(run, "finish", "x")
    call(run, "finish", "x")
    assert heard() == [("pending", "running"), ("running", "complete")]


def test_the_sum_of_tokens_counts_what_was_reported_or_added_up(call: Call) -> None:
    FreshRun.objects.create(input_tokens=1, output_tokens=2)
    FreshRun.objects.create(input_tokens=1, output_tokens=2, total_tokens=10)
    FreshRun.objects.create()
    assert call(FreshRun.objects.all(), "total_tokens_sum") == 13
    assert call(FreshRun.objects.none(), "total_tokens_sum") == 0


@pytest.mark.parametrize(
    "act",
    [
        ("append_event", "tool", "x"),
        ("add_log", "x"),
        ("start",),
        ("finish", "x"),
        ("fail", "x"),
        ("cancel",),
        ("restart",),
        ("events_after",),
    ],
)
def test_a_deleted_run_is_reported(act: tuple[str, ...], call: Call, heard: Heard) -> None:
    run = FreshRun.objects.create()
    FreshRun.objects.all().delete()
    with pytest.raises(RunNotFound):
        call(run, *act)
    assert heard() == []


def test_bad_input_is_refused_before_anything_is_written(call: Call, heard: Heard) -> None:
    run = FreshRun.objects.create(status=RunStatus.RUNNING)
    with pytest.raises(TypeError):
        call(run, "finish", "x", tokens=3)
    with pytest.raises(InvalidUsage):
        call(run, "finish", "x", input_tokens=-1)
    stored = FreshRun.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == (RunStatus.RUNNING, None)
    assert heard() == []


# When the signal comes


@pytest.mark.usefixtures("committed")
def test_a_receiver_that_raises_stops_nobody_else_and_is_logged(
    call: Call, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    def receiver(**facts: Any) -> None:
        raise ValueError("receiver is broken")

    run = FreshRun.objects.create(status=RunStatus.RUNNING)
    # The one that raises comes first.
    run_status_changed.receivers.reverse()
    run_status_changed.connect(receiver)
    run_status_changed.receivers.reverse()
    try:
        with caplog.at_level(logging.ERROR):
            assert call(run, "finish", "x") is True
    finally:
        run_status_changed.disconnect(receiver)
    assert heard() == [("running", "complete")]
    logged = [record for record in caplog.records if record.exc_info]
    assert "receiver is broken" in str(logged[0].exc_info)


@pytest.mark.usefixtures("committed")
def test_the_signal_waits_for_the_outer_commit_and_keeps_the_order(heard: Heard) -> None:
    told = heard()
    run = FreshRun.objects.create()
    with transaction.atomic():
        run.start()
        run.finish("x")
        assert told == []
    assert told == [("pending", "running"), ("running", "complete")]


@pytest.mark.usefixtures("committed")
def test_nothing_is_told_of_work_that_was_rolled_back(heard: Heard) -> None:
    run = FreshRun.objects.create()

    def roll_back() -> None:
        with transaction.atomic():
            assert run.start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        roll_back()
    run.refresh_from_db()
    with transaction.atomic():
        with pytest.raises(ZeroDivisionError):
            roll_back()
        assert not transaction.get_connection().needs_rollback
    assert heard() == []
    assert FreshRun.objects.get(pk=run.pk).status is RunStatus.PENDING


# In the loop


@pytest.mark.usefixtures("committed")
def test_twins_work_in_a_loop_of_its_own_thread_and_tell_once(heard: Heard) -> None:
    """As a server runs them: no Django thread outside, every connection in the executor's."""
    run = PlatformRun.objects.create()
    seen: list[str] = []

    async def receiver(run: Any, **facts: Any) -> None:
        stored = await PlatformRun.objects.aget(pk=run.pk)
        seen.append(str(stored.status))

    async def work() -> list[Any]:
        copy = await PlatformRun.objects.aget(pk=run.pk)
        assert await copy.astart()
        await asyncio.gather(*(copy.aappend_event("tool", f"{n}") for n in range(10)))
        assert await copy.afinish("done")
        log = await copy.aevents_log()
        await sync_to_async(connections.close_all)()
        return log

    run_status_changed.connect(receiver)
    try:
        log = asyncio.run(work())
    finally:
        run_status_changed.disconnect(receiver)
    assert sorted(entry["label"] for entry in log) == [str(n) for n in range(10)]
    assert heard() == [("pending", "running"), ("running", "complete")]
    assert seen == ["running", "complete"]


def test_one_of_many_tasks_claims_the_run(heard: Heard) -> None:
    run = FreshRun.objects.create()

    async def work() -> list[bool]:
        copies = [await FreshRun.objects.aget(pk=run.pk) for _ in range(20)]
        return await asyncio.gather(*(copy.astart() for copy in copies))

    assert async_to_sync(work)().count(True) == 1
    assert heard() == [("pending", "running")]


@pytest.mark.parametrize(
    "act",
    [
        lambda run: run.start(),
        lambda run: run.finish("x"),
        lambda run: run.fail("x"),
        lambda run: run.cancel(),
        lambda run: run.restart(),
        lambda run: run.append_event("tool", "x"),
        lambda run: run.add_log("x"),
        lambda run: run.events_after(0),
        lambda run: run.save(),
        lambda run: type(run).objects.all().total_tokens_sum(),
    ],
)
def test_a_sync_call_in_the_loop_raises_and_writes_nothing(
    act: Callable[[Any], Any], heard: Heard
) -> None:
    run = FreshRun.objects.create(input_prompt="before")
    before = FreshRun.objects.values().get(pk=run.pk)
    run.input_prompt = "after"

    async def work() -> None:
        with pytest.raises(SynchronousOnlyOperation):
            act(run)

    async_to_sync(work)()
    assert FreshRun.objects.values().get(pk=run.pk) == before
    assert heard() == []


def test_the_log_after_an_append_is_read_by_its_twin_only(heard: Heard) -> None:
    run = FreshRun.objects.create()

    async def work() -> None:
        event = await run.aappend_event("tool", "x")
        with pytest.raises(SynchronousOnlyOperation):
            run.events_log  # noqa: B018
        assert await run.aevents_log() == [event]
        assert run.events_log == [event]

    async_to_sync(work)()


@pytest.mark.parametrize("model", SHAPES)
def test_the_summary_after_an_end_with_metadata_is_made_by_its_twin(model: Any) -> None:
    run = model.objects.create(status="running")

    async def inside() -> Any:
        await run.afinish("done", metadata={"provider": "anthropic", "model": "claude-sonnet"})
        return await run.asummary()

    said = async_to_sync(inside)()

    assert (said["status"], said["output_preview"]) == ("complete", "done")
    assert (said["provider"], said["model"]) == ("anthropic", "claude-sonnet")
    assert said == run.summary()


def test_nothing_of_a_transition_asks_the_database_in_the_loop(heard: Heard) -> None:
    """What a view shows after an await: the instance holds it all, for winner and loser."""
    run = PlatformRun.objects.create()

    async def work() -> None:
        loser = await PlatformRun.objects.aget(pk=run.pk)
        assert await run.astart()
        assert await run.afinish("done", metadata={"model": "m"}, input_tokens=1)
        assert await loser.afail("late") is False
        assert (loser.status, loser.output) == (RunStatus.COMPLETE, "done")
        assert str(run) == str(loser)
        assert loser.summary()["model"] == "m"
        assert run.calculated_duration_ms() == loser.calculated_duration_ms()

    async_to_sync(work)()
