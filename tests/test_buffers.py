"""Entries that are collected: when they are written, and what a failure or a crash costs."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.db.models import F, signals
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from solid_runs import buffers
from solid_runs.buffers import RETRY_SECONDS, STATEMENT_BYTES, STATEMENT_ENTRIES
from solid_runs.exceptions import InvalidUsage, NotAList, RunNotFound
from solid_runs.mixin import AgentRunMixin
from tests.models import FreshRun, MinimalRun, PlatformRun, TableRun, TableRunEvent
from tests.races import ROOT
from tests.rows import get, has, keeps_a_table, make, row, store_log
from tests.run_models import TightRun, create_tables

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

LOGS: list[Model] = [FreshRun, PlatformRun, MinimalRun, TableRun]
every_log = pytest.mark.parametrize("model", LOGS)
both_logs = pytest.mark.parametrize("model", [FreshRun, TableRun])
commits = pytest.mark.usefixtures("committed")

LONG_AGO = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
ONE_TRANSACTION = re.compile(r"BEGIN|START|COMMIT|SAVEPOINT|RELEASE")
FLUSH_SAYS = {"postgresql": 1, "sqlite": 2, "mysql": 3}
"""Statements that a flush into a table of entries takes, beginning and end apart."""


@pytest.fixture(scope="module", autouse=True)
def tight_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection, TightRun)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the time of the buffers on by so many seconds."""
    now = [time.monotonic()]
    monkeypatch.setattr(buffers, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    return pass_by


def begun(model: Model) -> Any:
    """A run whose first append has asked the database what its columns are."""
    run = make(model)
    run.append_event("tool", "first")
    return run


def append(run: AgentRunMixin, *names: Any) -> None:
    for name in names:
        run.append_event("tool", str(name))


def break_off(run: AgentRunMixin, error: BaseException) -> None:
    """Collect two entries; then the block ends in this way."""
    with run.buffer_events():
        append(run, "a", "b")
        raise error


def said(entry: dict[str, Any]) -> str:
    return str(entry.get("label", entry.get("message")))


def written(run: AgentRunMixin) -> list[str]:
    """What the database has of the log, whose coordinates must be 1 to n."""
    numbered = get(run).events_after()
    assert [seq for seq, _ in numbered] == list(range(1, len(numbered) + 1))
    return [said(entry) for _, entry in numbered]


def names(*numbers: int) -> list[str]:
    return [str(number) for number in range(*numbers)]


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is said to the database, beginnings and ends of transactions apart."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield found
    found += [q["sql"] for q in captured if not ONE_TRANSACTION.match(q["sql"])]


def statements_of_a_flush(model: Model) -> int:
    return FLUSH_SAYS[connection.vendor] if keeps_a_table(model) else 1


@contextmanager
def refusing() -> Iterator[list[str]]:
    """The driver fails on every append."""
    tried: list[str] = []

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "UPDATE" not in sql:
            return execute(sql, params, many, context)
        tried.append(sql)
        raise OperationalError("gone")

    with connection.execute_wrapper(refuse):
        yield tried


def in_threads(*works: Callable[[], Any]) -> list[BaseException]:
    """What went wrong in threads that did these, each on a connection of its own."""
    wrong: list[BaseException] = []

    def run_one(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            wrong.append(error)
        finally:
            connections.close_all()

    crowd = [threading.Thread(target=run_one, args=[work], daemon=True) for work in works]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in crowd), "a thread hangs"
    return wrong


def served(work: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a coroutine in a loop of its own, as a server has one; then all is quiet."""

    async def close() -> None:
        await sync_to_async(connections.close_all)()

    async def working() -> Any:
        return await work()

    try:
        return asyncio.run(working())
    finally:
        asyncio.run(close())


# When a flush comes


@every_log
def test_nothing_is_written_before_a_flush(model: Model) -> None:
    run = begun(model)

    with run.buffer_events() as buffer:
        with statements() as found:
            entry = run.append_event("tool", "search", eid="1", detail={"rows": 3}, duration_ms=0)
            line = run.add_log("asking", level="warn")
        assert found == []
        assert buffer.pending == [entry, line]
        assert written(run) == ["first"]

    assert get(run).events_log[1:] == [entry, line]
    assert buffer.pending == []


@every_log
def test_a_flush_comes_with_every_so_many_entries_and_is_one_statement(model: Model) -> None:
    run = begun(model)

    with run.buffer_events(max_entries=10, max_age=600) as buffer:
        append(run, *names(9))
        with statements() as found:
            append(run, 9)
        assert len(found) == statements_of_a_flush(model), found
        assert buffer.pending == []
        append(run, *names(10, 25))
        assert written(run) == ["first", *names(20)]

    assert written(run) == ["first", *names(25)]


@every_log
@commits
def test_a_flush_is_written_whole_or_not_at_all(model: Model) -> None:
    run = begun(model)
    before = row(run)

    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if "INSERT" in sql or not keeps_a_table(model):  # what comes last
            raise OperationalError("gone")
        return execute(sql, *rest)

    with run.buffer_events() as buffer:
        append(run, "a", "b")
        with connection.execute_wrapper(refuse), pytest.raises(OperationalError):
            buffer.flush()
        assert row(run) == before
        assert written(run) == ["first"]
    assert written(run) == ["first", "a", "b"]


@every_log
def test_an_entry_that_has_waited_long_enough_is_written_when_another_comes(
    model: Model, clock: Callable[[float], None]
) -> None:
    run = make(model)

    with run.buffer_events(max_age=5) as buffer:
        append(run, "a")
        clock(3)
        append(run, "b")
        clock(1.9)
        append(run, "c")
        assert written(run) == []
        clock(0.2)
        assert written(run) == [], "nothing has come"
        append(run, "d")
        assert written(run) == ["a", "b", "c", "d"]
        append(run, "e")
        clock(4.9)
        append(run, "f")
        assert [said(entry) for entry in buffer.pending] == ["e", "f"]


def test_at_an_age_of_zero_every_entry_is_written_at_once() -> None:
    run = make(FreshRun)
    with run.buffer_events(max_age=0):
        append(run, "a")
        assert written(run) == ["a"]


@every_log
def test_a_flush_by_hand_writes_what_is_there(model: Model) -> None:
    run = begun(model)

    with run.buffer_events() as buffer:
        append(run, "a", "b")
        buffer.flush()
        assert written(run) == ["first", "a", "b"]
        with statements() as found:
            buffer.flush()
        assert found == []
        append(run, "c")

    assert written(run) == ["first", "a", "b", "c"]


def test_a_block_in_which_nothing_was_said_says_nothing() -> None:
    run = begun(FreshRun)
    with statements() as found, run.buffer_events():
        pass
    assert found == []


@every_log
@pytest.mark.parametrize(
    ("status", "move"),
    [
        ("pending", ("start",)),
        ("running", ("finish", "done")),
        ("running", ("fail", "broken")),
        ("running", ("cancel",)),
        ("failed", ("restart",)),
    ],
    ids=str,
)
def test_what_was_said_before_a_transition_is_written_before_it(
    model: Model, status: str, move: tuple[str, ...]
) -> None:
    run = begun(model)
    model._base_manager.filter(pk=run.pk).update(status=status)
    run = get(run)

    with run.buffer_events() as buffer:
        append(run, "before")
        with statements() as found:
            assert getattr(run, move[0])(*move[1:]) is True
        assert buffer.pending == []
        append(run, "after")
        assert written(run) == ["first", "before"]

    moves = [bool(re.search(r"SET .*status\W = ", sql)) for sql in found]
    assert moves == [*[False] * statements_of_a_flush(model), True], found
    assert written(run) == ["first", "before", "after"]


def test_a_transition_that_comes_too_late_flushes_too() -> None:
    run = make(FreshRun, "complete")
    with run.buffer_events():
        append(run, "before")
        assert run.finish("again") is False
        assert written(run) == ["before"]


# Log lines


@every_log
def test_log_lines_move_the_time_with_the_flush_and_nothing_else(model: Model) -> None:
    run = make(model, input_prompt="before")
    if has(model, "updated_at"):
        model._base_manager.filter(pk=run.pk).update(updated_at=LONG_AGO)
        run = get(run)
        run.input_prompt = "after"
    before = row(run)
    saved: list[Any] = []

    def note(instance: Any, **facts: Any) -> None:
        saved.append(instance)

    signals.pre_save.connect(note)
    try:
        with run.buffer_events():
            append(run, "a")
            run.add_log("line")
            assert row(run) == before
    finally:
        signals.pre_save.disconnect(note)

    after = row(run)
    changed = {name for name in before if before[name] != after[name]}
    log = "events_count" if keeps_a_table(model) else model.events_column
    assert changed == {log, *({"updated_at"} & before.keys())}
    assert written(run) == ["a", "line"]
    assert saved == []


@pytest.mark.parametrize("model", [FreshRun, PlatformRun, TableRun])
def test_events_alone_leave_the_time_alone(model: Model) -> None:
    run = make(model)
    model._base_manager.filter(pk=run.pk).update(updated_at=LONG_AGO)
    with run.buffer_events(max_entries=2):
        append(run, "a", "b", "c")
    assert row(run)["updated_at"] == LONG_AGO
    assert written(run) == ["a", "b", "c"]


@pytest.mark.parametrize("model", [FreshRun, TightRun])
def test_a_save_after_the_block_does_not_take_the_time_back(model: Model) -> None:
    run = make(model)
    model._base_manager.filter(pk=run.pk).update(updated_at=LONG_AGO)
    run = get(run)
    with run.buffer_events():
        run.add_log("line")
    moved = row(run)["updated_at"]
    assert moved > LONG_AGO
    run.error_message = "changed"
    run.save()
    assert row(run)["updated_at"] >= moved


# The end of a block


BREAKS = [ValueError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, SystemExit]


@every_log
@pytest.mark.parametrize("kind", BREAKS)
def test_whatever_ends_the_block_is_raised_after_a_flush(
    model: Model, kind: type[BaseException]
) -> None:
    run, error = make(model), kind("stop")

    with pytest.raises(kind) as caught:
        break_off(run, error)

    assert caught.value is error
    assert written(run) == ["a", "b"]
    append(run, "c")
    assert written(run) == ["a", "b", "c"]


def test_a_generator_that_is_closed_has_flushed() -> None:
    run = make(FreshRun)

    def steps() -> Iterator[int]:
        with run.buffer_events():
            append(run, "a")
            yield 1

    working = steps()
    next(working)
    assert written(run) == []
    working.close()
    assert written(run) == ["a"]


@both_logs
def test_entries_after_the_block_are_written_directly(model: Model) -> None:
    run = make(model)
    with run.buffer_events() as buffer:
        append(run, "a")
    append(run, "b")
    run.add_log("c")
    assert written(run) == ["a", "b", "c"]
    assert buffer.pending == []
    assert run.events_log == get(run).events_log


def test_a_buffer_that_was_not_entered_collects_nothing() -> None:
    run = make(FreshRun)
    buffer = run.buffer_events()
    append(run, "a")
    assert (written(run), buffer.pending) == (["a"], [])


@both_logs
def test_a_block_inside_another_one_on_the_same_copy_shares_its_buffer(model: Model) -> None:
    run = make(model)
    with run.buffer_events(max_entries=100) as outer:
        append(run, "a")
        with run.buffer_events(max_entries=1) as inner:
            assert inner is outer
            append(run, "b")
            assert written(run) == []
        assert written(run) == ["a", "b"], "it ends like any block"
        append(run, "c")
        assert written(run) == ["a", "b"]
        with pytest.raises(ZeroDivisionError):
            break_off(run, ZeroDivisionError())
        assert written(run) == ["a", "b", "c", "a", "b"]
        append(run, "d")
    assert written(run)[5:] == ["d"]
    append(run, "e")
    assert written(run)[5:] == ["d", "e"]


def test_a_buffer_may_be_entered_again() -> None:
    run = make(FreshRun)
    buffer = run.buffer_events()
    with buffer:
        append(run, "a")
    append(run, "b")
    with buffer:
        append(run, "c")
    append(run, "d")
    assert written(run) == ["a", "b", "c", "d"]


def test_a_buffer_may_be_entered_inside_itself() -> None:
    run = make(FreshRun)
    buffer = run.buffer_events()
    with buffer, buffer:
        append(run, "a")
    append(run, "b")
    assert written(run) == ["a", "b"]


@both_logs
def test_two_copies_have_a_buffer_each(model: Model) -> None:
    run, other = make(model), None
    other = get(run)
    with run.buffer_events() as first, other.buffer_events() as second:
        assert first is not second
        append(run, "a1", "a2")
        append(other, "b1")
        append(get(run), "direct")
        append(run, "a3")
        assert [len(first.pending), len(second.pending)] == [3, 1]
    assert written(run) == ["direct", "b1", "a1", "a2", "a3"]
    append(run, "last")
    assert run.events_log == other.events_log == get(run).events_log


def test_what_the_caller_does_with_an_entry_is_not_written() -> None:
    """As without a buffer: a value that is not storable would stand in the way of all others."""
    run = make(FreshRun)
    with run.buffer_events():
        entry = run.append_event("tool", "a", detail="kept")
        entry["detail"] = "changed"
        entry["extra"] = object()
        append(run, "b")
    assert written(run) == ["a", "b"]
    assert get(run).events_log[0]["detail"] == "kept"


def test_a_reread_of_the_run_keeps_the_buffer() -> None:
    run = make(TableRun)
    with run.buffer_events():
        append(run, "a")
        run.refresh_from_db()
        run.input_prompt = "new"
        run.save()
        append(run, "b")
    assert written(run) == ["a", "b"]
    assert get(run).input_prompt == "new"


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))],
    ids=["copy", "deepcopy", "pickle"],
)
@both_logs
def test_a_copy_of_the_object_writes_directly(model: Model, copied: Any) -> None:
    run = make(model)
    with run.buffer_events():
        append(run, "mine")
        other = copied(run)
        append(other, "direct")
        assert written(run) == ["direct"]
        append(run, "mine too")
    assert written(run) == ["direct", "mine", "mine too"]
    assert other.events_log == get(run).events_log


# Much at once


@every_log
def test_what_is_more_than_a_statement_takes_is_written_in_several(model: Model) -> None:
    run = begun(model)
    with statements() as found, run.buffer_events(max_entries=100_000, max_age=600):
        append(run, *names(2 * STATEMENT_ENTRIES + 1))
    assert len(found) == 3 * statements_of_a_flush(model)
    assert written(run) == ["first", *names(2 * STATEMENT_ENTRIES + 1)]


@every_log
def test_a_statement_takes_no_more_than_so_many_bytes(model: Model) -> None:
    run = begun(model)
    size = 20_000
    with statements() as found, run.buffer_events(max_entries=100_000, max_age=600):
        for n in range(30):
            run.append_event("tool", f"{n:02}" + "ü" * (size // 2))
    flushes = -(-30 // (STATEMENT_BYTES // size))
    assert len(found) == flushes * statements_of_a_flush(model)
    assert [label[:2] for label in written(run)] == ["fi", *(f"{n:02}" for n in range(30))]


@every_log
@pytest.mark.parametrize("before", [0, 4, 10])
def test_a_flush_past_the_cap_writes_what_fits_and_one_marker(
    model: Model, before: int, caplog: pytest.LogCaptureFixture
) -> None:
    run = make(model, "running")
    with override_settings(SOLID_RUNS={"TABLE_LOG_ENTRIES": 10, "COLUMN_LOG_ENTRIES": 10}):
        append(run, *names(before))
        with run.buffer_events(max_entries=1000):
            append(run, *names(before, 25))
        assert written(run) == [*names(10), "log"]
        assert get(run).events_log[-1]["kind"] == "truncated"
        assert "is full" in caplog.text
        with run.buffer_events(max_entries=3):
            append(run, *names(25, 50))
        assert written(run) == [*names(10), "log"]
        assert run.finish("done") is True


@pytest.mark.parametrize(
    "wanted",
    [{"max_entries": 0}, {"max_entries": -1}, {"max_age": -0.001}],
    ids=str,
)
def test_a_buffer_that_could_never_flush_is_refused(wanted: dict[str, Any]) -> None:
    run = make(FreshRun)
    with pytest.raises(InvalidUsage, match=next(iter(wanted))):
        run.buffer_events(**wanted)
    append(run, "a")
    assert written(run) == ["a"]


# A flush that fails


@every_log
def test_a_flush_that_fails_keeps_the_entries_for_the_next_one(
    model: Model, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    run = begun(model)
    with run.buffer_events(max_entries=3, max_age=600) as buffer:
        with refusing() as tried:
            append(run, *names(5))
            assert len(tried) == 1, "not with every entry"
            append(run, 5)
            assert len(tried) == 2, "another three have come"
            clock(max(RETRY_SECONDS, 600))
            append(run, 6)
            assert len(tried) == 3
        assert len(buffer.pending) == 7
        assert "3 entries" in caplog.text
        assert "OperationalError: gone" in caplog.text
        append(run, 7, 8)
        assert written(run) == ["first"]
        append(run, 9)
        assert written(run) == ["first", *names(10)]
    assert written(run) == ["first", *names(10)]


def test_a_flush_that_fails_is_tried_again_after_a_while(
    clock: Callable[[float], None],
) -> None:
    run = begun(FreshRun)
    with run.buffer_events(max_entries=100, max_age=0) as buffer:
        with refusing() as tried:
            append(run, *names(20))
            assert len(tried) == 1
        clock(RETRY_SECONDS / 2)
        append(run, 20)
        assert len(buffer.pending) == 21
        clock(RETRY_SECONDS / 2 + 0.01)
        append(run, 21)
        assert buffer.pending == []


@every_log
def test_a_flush_that_fails_at_the_end_raises_and_may_be_tried_again(model: Model) -> None:
    run = begun(model)
    with (
        refusing(),
        pytest.raises(OperationalError, match="gone"),
        run.buffer_events() as buffer,
    ):
        append(run, "a", "b")

    assert [said(entry) for entry in buffer.pending] == ["a", "b"]
    assert written(run) == ["first"]
    buffer.flush()
    buffer.flush()
    assert written(run) == ["first", "a", "b"]


@every_log
@pytest.mark.parametrize("kind", BREAKS)
def test_what_ended_the_block_goes_before_a_flush_that_fails_then(
    model: Model, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    run, error = begun(model), kind("stop")
    with refusing(), pytest.raises(kind) as caught:
        break_off(run, error)

    assert caught.value is error
    [note] = error.__notes__
    assert re.search(r"2 entries of .* could not be written: .*gone", note)
    assert note in caplog.text
    assert written(run) == ["first"]


def test_a_flush_by_hand_that_fails_raises_and_keeps_the_entries() -> None:
    run = begun(FreshRun)
    with run.buffer_events() as buffer:
        append(run, "a")
        with refusing(), pytest.raises(OperationalError):
            buffer.flush()
        append(run, "b")
    assert written(run) == ["first", "a", "b"]


@every_log
def test_a_run_ends_though_its_entries_cannot_be_written(model: Model) -> None:
    run = make(model, "running")
    store_log(run, '{"not": "a list"}')
    buffer = run.buffer_events()

    def work() -> None:
        with buffer:
            append(run, "a")
            assert run.finish("done") is True

    with pytest.raises(NotAList):
        work()
    assert get(run).status == "complete"
    store_log(run, "[]")
    buffer.flush()
    assert written(run) == ["a"]


def test_of_several_statements_those_that_were_written_are_not_written_again() -> None:
    run = begun(FreshRun)
    calls: list[str] = []

    def fail_second(execute: Any, sql: str, *rest: Any) -> Any:
        if "UPDATE" in sql:
            calls.append(sql)
            if len(calls) == 2:
                raise OperationalError("gone")
        return execute(sql, *rest)

    with run.buffer_events(max_entries=100_000, max_age=600) as buffer:
        append(run, *names(STATEMENT_ENTRIES + 10))
        with connection.execute_wrapper(fail_second), pytest.raises(OperationalError):
            buffer.flush()
        assert len(buffer.pending) == 10
    assert written(run) == ["first", *names(STATEMENT_ENTRIES + 10)]


def test_a_run_that_is_deleted_inside_the_block_is_reported_at_its_end() -> None:
    run = make(TableRun)
    buffer = run.buffer_events()

    def work() -> None:
        with buffer:
            append(run, "a")
            TableRun.objects.all().delete()

    with pytest.raises(RunNotFound):
        work()
    assert len(buffer.pending) == 1


def test_a_run_without_a_row_keeps_its_entries_until_it_has_one() -> None:
    run = FreshRun()
    with run.buffer_events():
        append(run, "a")
        run.save()
        append(run, "b")
    assert written(run) == ["a", "b"]
    with pytest.raises(RunNotFound), FreshRun().buffer_events() as buffer:
        append(buffer.run, "a")


def test_a_handler_that_logs_to_the_run_what_went_wrong_with_it_hangs_nobody() -> None:
    run = begun(FreshRun)

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            run.add_log("warned")

    handler = Handler()
    logging.getLogger("solid_runs").addHandler(handler)
    try:
        with run.buffer_events(max_entries=1):
            with refusing() as tried:
                append(run, "a")
                assert len(tried) == 1
            append(run, "b")
    finally:
        logging.getLogger("solid_runs").removeHandler(handler)
    assert written(run) == ["first", "a", "warned", "b"]


def test_a_signal_handler_that_appends_while_an_entry_is_collected_hangs_nobody(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    run = make(FreshRun)
    interrupted: list[int] = []

    def monotonic() -> float:
        if not interrupted:  # whatever is called inside may be where the signal arrives
            interrupted.append(1)
            append(run, "terminated")
        return time.monotonic()

    def work() -> None:
        with run.buffer_events():
            append(run, "a")

    monkeypatch.setattr(buffers, "time", SimpleNamespace(monotonic=monotonic))
    thread = threading.Thread(
        target=lambda: (work(), connections.close_all()), daemon=True, name="interrupted"
    )
    thread.start()
    thread.join(timeout=5)
    assert not thread.is_alive(), "it waits for itself"
    assert sorted(written(run)) == ["a", "terminated"]


@contextmanager
def row_locked(run: AgentRunMixin) -> Iterator[None]:
    """Somebody else holds the run's row, and nobody waits long for it."""
    locked, free = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            type(run)._base_manager.filter(pk=run.pk).update(status=F("status"))
            locked.set()
            assert free.wait(timeout=30)
        connections.close_all()

    impatient = {
        "postgresql": "SET lock_timeout = '200ms'",
        "mysql": "SET SESSION innodb_lock_wait_timeout = 1",
        "sqlite": "PRAGMA busy_timeout = 200",
    }[connection.vendor]
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert locked.wait(timeout=10)
        with connection.cursor() as cursor:
            cursor.execute(impatient)
        yield
    finally:
        free.set()
        thread.join()


@pytest.fixture
def new_connection(transactional_db: None) -> Iterator[None]:
    """What a test has set on its connection is gone with it."""
    yield
    connection.close()


@every_log
@pytest.mark.usefixtures("committed", "new_connection")
def test_a_row_that_somebody_else_holds_delays_the_entries(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    run = begun(model)
    with run.buffer_events(max_entries=2, max_age=600) as buffer:
        with row_locked(run):
            append(run, "a", "b")
            assert len(buffer.pending) == 2
            assert "2 entries" in caplog.text
            with pytest.raises(OperationalError):
                buffer.flush()
        assert written(run) == ["first"]
    assert written(run) == ["first", "a", "b"]


@contextmanager
def table_away(model: Model) -> Iterator[None]:
    """The table that the entries go to is not there."""
    table = (TableRunEvent if keeps_a_table(model) else model)._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO away")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE away RENAME TO {table}")


@every_log
@commits
def test_a_table_that_is_not_there_delays_the_entries(model: Model) -> None:
    run = begun(model)
    with run.buffer_events(max_entries=2, max_age=600) as buffer:
        with table_away(model):
            append(run, "a", "b")
            with pytest.raises(DatabaseError):
                buffer.flush()
            assert len(buffer.pending) == 2
        assert written(run) == ["first"]
    assert written(run) == ["first", "a", "b"]


# Inside a transaction of the host


@every_log
@pytest.mark.usefixtures("committed", "new_connection")
def test_a_flush_that_fails_leaves_the_hosts_transaction_usable(model: Model) -> None:
    run, other = begun(model), make(model)
    with run.buffer_events(max_entries=2, max_age=600) as buffer:
        if connection.vendor == "sqlite":  # where whoever writes has locked every row
            with transaction.atomic():
                append(other, "in the transaction")
                with refusing():
                    append(run, "a", "b")
                append(other, "and after it")
        else:
            with row_locked(run), transaction.atomic():
                append(other, "in the transaction")
                append(run, "a", "b")
                assert len(buffer.pending) == 2
                append(other, "and after it")
        assert written(other) == ["in the transaction", "and after it"]
    assert written(run) == ["first", "a", "b"]


@every_log
@commits
def test_a_rollback_takes_back_what_was_flushed_inside_it_and_no_more(model: Model) -> None:
    """As with entries that are written directly; what was only collected is flushed later."""
    run = begun(model)
    with run.buffer_events(max_entries=2, max_age=600) as buffer:
        append(run, "before")
        with suppress(ZeroDivisionError), transaction.atomic():
            append(run, "inside")
            append(run, "collected")
            raise ZeroDivisionError
        assert written(run) == ["first"]
        assert [said(entry) for entry in buffer.pending] == ["collected"]
        append(run, "after")
    append(run, "direct")
    assert written(run) == ["first", "collected", "after", "direct"]
    assert run.events_log == get(run).events_log


@every_log
@commits
def test_a_rollback_around_the_block_takes_back_its_entries(model: Model) -> None:
    run = begun(model)
    with suppress(ZeroDivisionError), transaction.atomic(), run.buffer_events():
        append(run, "a")
        raise ZeroDivisionError
    assert written(run) == ["first"]
    append(run, "b")
    assert written(run) == ["first", "b"]
    assert run.events_log == get(run).events_log


# Threads


@every_log
@commits
def test_eight_threads_lose_nothing_in_one_buffer(model: Model) -> None:
    run = begun(model)

    def work(thread: int) -> Callable[[], None]:
        return lambda: append(run, *(f"{thread}-{n}" for n in range(50)))

    with run.buffer_events(max_entries=7, max_age=600):
        assert in_threads(*map(work, range(8))) == []

    found = written(run)[1:]
    assert sorted(found) == sorted(f"{thread}-{n}" for thread in range(8) for n in range(50))
    for thread in range(8):
        own = [label for label in found if label.startswith(f"{thread}-")]
        assert own == [f"{thread}-{n}" for n in range(50)]


@both_logs
@commits
def test_threads_that_add_while_a_block_ends_lose_nothing(model: Model) -> None:
    run = begun(model)
    stop = threading.Event()
    counts = [0, 0, 0]

    def work(thread: int) -> Callable[[], None]:
        def keep_adding() -> None:
            while not stop.is_set() and counts[thread] < 400:
                append(run, f"{thread}-{counts[thread]}")
                counts[thread] += 1
                if counts[thread] % 5 == 0:
                    time.sleep(0.001)

        return keep_adding

    def open_and_close() -> None:
        for _ in range(60):
            with run.buffer_events(max_entries=1000, max_age=600):
                time.sleep(0.002)
        stop.set()

    assert in_threads(open_and_close, *map(work, range(3))) == []

    found = written(run)[1:]
    assert all(counts)
    assert sorted(found) == sorted(f"{t}-{n}" for t in range(3) for n in range(counts[t]))


# In an event loop


@every_log
def test_tasks_share_a_buffer_and_lose_nothing(model: Model) -> None:
    run = begun(model)

    async def task(number: int) -> None:
        for n in range(20):
            if n % 2:
                await run.aappend_event("tool", f"{number}-{n}")
            else:
                run.append_event("tool", f"{number}-{n}")
                await asyncio.sleep(0)

    async def work() -> None:
        async with run.buffer_events(max_entries=16, max_age=600):
            await asyncio.gather(*map(task, range(10)))

    async_to_sync(work)()

    found = written(run)[1:]
    assert len(found) == 200
    for number in range(10):
        own = [label for label in found if label.startswith(f"{number}-")]
        assert own == [f"{number}-{n}" for n in range(20)]


@both_logs
@commits
def test_tasks_of_a_server_share_a_buffer_and_lose_nothing(model: Model) -> None:
    """Every connection in the executor's thread, none in the loop's."""
    run = begun(model)

    async def task(number: int) -> None:
        for n in range(20):
            run.append_event("tool", f"{number}-{n}")
            await asyncio.sleep(0.001)

    async def work() -> None:
        async with run.buffer_events(max_entries=16, max_age=0.01):
            await asyncio.gather(*map(task, range(10)))

    served(work)
    assert sorted(written(run)[1:]) == sorted(f"{t}-{n}" for t in range(10) for n in range(20))


@every_log
def test_a_sync_append_in_the_loop_does_no_input_or_output(model: Model) -> None:
    run = begun(model)

    async def work() -> None:
        async with run.buffer_events(max_entries=10, max_age=600) as buffer:
            append(run, *names(25))
            run.add_log("25")
            assert len(buffer.pending) == 26, "nothing was awaited"
            await buffer.aflush()
            assert buffer.pending == []
            append(run, 26)

    async_to_sync(work)()
    assert written(run) == ["first", *names(27)]


def test_a_buffer_that_is_full_flushes_by_itself_once_the_loop_is_free() -> None:
    run = begun(FreshRun)

    async def work() -> None:
        async with run.buffer_events(max_entries=10, max_age=600) as buffer:
            append(run, *names(10))
            for _ in range(100):
                if not buffer.pending:
                    return
                await asyncio.sleep(0.02)
            pytest.fail("nobody flushed")

    async_to_sync(work)()
    assert written(run) == ["first", *names(10)]


@both_logs
def test_the_oldest_entry_waits_no_longer_than_its_age(model: Model) -> None:
    run = begun(model)
    waited: list[float] = []

    async def work() -> None:
        async with run.buffer_events(max_entries=100, max_age=1.0) as buffer:
            await asyncio.sleep(0.2)
            append(run, "a")
            began = time.monotonic()
            while buffer.pending and time.monotonic() - began < 3:
                await asyncio.sleep(0.02)
            waited.append(time.monotonic() - began)

    async_to_sync(work)()
    assert written(run) == ["first", "a"]
    assert 0.9 < waited[0] < 1.5


@pytest.mark.parametrize("move", [("astart",), ("afinish", "x"), ("afail", "x"), ("acancel",)])
def test_an_awaited_transition_flushes_first(move: tuple[str, ...]) -> None:
    run = make(TableRun)

    async def work() -> None:
        async with run.buffer_events(max_age=600) as buffer:
            append(run, "before")
            assert await getattr(run, move[0])(*move[1:]) is True
            assert buffer.pending == []
            append(run, "after")

    async_to_sync(work)()
    assert written(run) == ["before", "after"]


@every_log
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
def test_an_exception_in_an_async_block_is_raised_after_a_flush(
    model: Model, kind: type[BaseException]
) -> None:
    run = make(model)

    async def block() -> None:
        async with run.buffer_events():
            append(run, "a")
            raise kind("stop")

    async def work() -> None:
        with pytest.raises(kind, match="stop"):
            await block()

    async_to_sync(work)()
    assert written(run) == ["a"]


def test_an_async_generator_that_is_closed_has_flushed() -> None:
    run = make(FreshRun)

    async def steps() -> AsyncIterator[int]:
        async with run.buffer_events():
            append(run, "a")
            yield 1

    async def work() -> None:
        working: Any = steps()
        await anext(working)
        await working.aclose()

    async_to_sync(work)()
    assert written(run) == ["a"]


def test_a_flush_that_fails_in_the_loop_keeps_the_entries_and_raises_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = begun(FreshRun)
    buffer = run.buffer_events(max_entries=2, max_age=600)

    async def work() -> None:
        async with buffer:
            append(run, "a", "b")
            await asyncio.sleep(0.2)
            assert "2 entries" in caplog.text
            append(run, "c")

    with refusing(), pytest.raises(OperationalError, match="gone"):
        async_to_sync(work)()
    assert [said(entry) for entry in buffer.pending] == ["a", "b", "c"]
    async_to_sync(buffer.aflush)()
    assert written(run) == ["first", "a", "b", "c"]


def test_a_flush_that_fails_in_the_loop_is_tried_again_by_itself() -> None:
    run = begun(FreshRun)
    failing = [1]

    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if "UPDATE" in sql and failing:
            failing.pop()
            raise OperationalError("gone")
        return execute(sql, *rest)

    async def work() -> None:
        async with run.buffer_events(max_age=0.05) as buffer:
            append(run, "a")
            for _ in range(100):
                if not buffer.pending:
                    break
                await asyncio.sleep(0.05)
            assert buffer.pending == []

    with connection.execute_wrapper(refuse):
        async_to_sync(work)()
    assert not failing
    assert written(run) == ["first", "a"]


@every_log
def test_a_sync_block_in_the_loop_is_told_so_at_its_end_and_keeps_the_entries(
    model: Model,
) -> None:
    run = begun(model)

    async def work() -> Any:
        with pytest.raises(SynchronousOnlyOperation), run.buffer_events(max_entries=2) as buffer:
            append(run, "a", "b", "c")
        assert len(buffer.pending) == 3
        with pytest.raises(SynchronousOnlyOperation):
            append(run, "d")
        await buffer.aflush()

    async_to_sync(work)()
    assert written(run) == ["first", "a", "b", "c"]


def test_a_sync_block_inside_an_async_one_leaves_the_entries_to_that_one() -> None:
    run = make(FreshRun)

    async def work() -> None:
        async with run.buffer_events(max_age=600):
            with pytest.raises(SynchronousOnlyOperation), run.buffer_events():
                append(run, "a")
            append(run, "b")

    async_to_sync(work)()
    assert written(run) == ["a", "b"]


def test_blocks_of_tasks_that_overlap_on_one_copy_go_on_collecting() -> None:
    """The one that began first need not be the one that ends last."""
    run = make(FreshRun)

    async def task(number: int) -> None:
        async with run.buffer_events(max_age=600):
            append(run, f"{number} begins")
            await asyncio.sleep(0.05 * number)
            append(run, f"{number} ends")

    async def work() -> None:
        await asyncio.gather(*map(task, range(1, 4)))
        with pytest.raises(SynchronousOnlyOperation):
            append(run, "outside")

    async_to_sync(work)()
    assert sorted(written(run)) == sorted(f"{n} {m}" for n in (1, 2, 3) for m in ("begins", "ends"))


# Cancellation


@pytest.fixture
def slow_writes(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every write takes its time; set once one has begun."""
    begun = threading.Event()
    write = AgentRunMixin._write_entries

    def slow(self: Any, entries: Any, **also: Any) -> None:
        begun.set()
        time.sleep(0.3)
        write(self, entries, **also)

    monkeypatch.setattr(AgentRunMixin, "_write_entries", slow)
    return begun


async def until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.005)


@both_logs
@pytest.mark.parametrize("times", [1, 2, 3])
@commits
def test_a_task_that_is_cancelled_during_its_last_flush_goes_when_all_is_written(
    model: Model, times: int, slow_writes: threading.Event
) -> None:
    run = make(model)
    kept: list[Any] = []

    async def block() -> None:
        async with run.buffer_events() as buffer:
            kept.append(buffer)
            append(run, "a", "b")

    async def work() -> list[Any]:
        task = asyncio.create_task(block())
        await until(slow_writes)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.02)
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(kept[0].pending)

    assert served(work) == []
    assert written(run) == ["a", "b"]


@both_logs
@pytest.mark.parametrize("times", [1, 2, 3])
@commits
def test_a_task_that_is_cancelled_before_its_last_flush_has_written_it(
    model: Model, times: int, slow_writes: threading.Event
) -> None:
    """Another flush is still under way when the block ends."""
    run = make(model)

    async def block() -> None:
        async with run.buffer_events(max_entries=1):
            append(run, "a")
            await until(slow_writes)
            append(run, "b")

    async def work() -> None:
        task = asyncio.create_task(block())
        await until(slow_writes)
        for _ in range(times):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    served(work)
    assert written(run) == ["a", "b"]


@both_logs
@pytest.mark.parametrize("times", [1, 2, 3])
@commits
def test_a_task_that_is_cancelled_while_the_thread_is_busy_loses_nothing(
    model: Model, times: int
) -> None:
    """Django's one thread does something else when the block ends, and then the loop ends."""
    run = make(model)
    busy = threading.Event()

    def be_busy() -> None:
        busy.set()
        time.sleep(0.5)

    async def block() -> None:
        async with run.buffer_events(max_age=600):
            append(run, "a")
            await until(busy)

    async def work() -> None:
        task = asyncio.create_task(block())
        other = asyncio.create_task(sync_to_async(be_busy)())
        await until(busy)
        for _ in range(times):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other.cancel()

    served(work)
    assert written(run) == ["a"]


@both_logs
@commits
def test_a_loop_that_ends_around_a_block_loses_nothing(model: Model) -> None:
    """asyncio.run() cancels every task that is left, the buffer's own among them."""
    run = make(model)

    async def block() -> None:
        async with run.buffer_events(max_age=600):
            append(run, "a")
            await asyncio.sleep(60)

    async def work() -> None:
        background.append(asyncio.create_task(block()))
        await asyncio.sleep(0.1)

    background: list[Any] = []
    served(work)
    assert background[0].cancelled()
    assert written(run) == ["a"]


@both_logs
@commits
def test_a_block_that_runs_out_of_time_has_flushed(model: Model) -> None:
    run = make(model)

    async def work() -> None:
        async with asyncio.timeout(0.1), run.buffer_events(max_age=600):
            append(run, "a")
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        served(work)
    assert written(run) == ["a"]


# A crash


CRASH = """
import json, os, signal, sys
import django
from django.apps import apps
from django.db import connections

django.setup()
names, model, pk = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
for alias, name in names.items():
    connections.settings[alias]["NAME"] = name
run = apps.get_model("tests", model)._base_manager.get(pk=pk)
with run.buffer_events(max_entries=30, max_age=600):
    for n in range(50):
        run.append_event("tool", str(n))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@every_log
@commits
def test_a_process_that_is_killed_loses_what_was_not_flushed_and_nothing_else(
    model: Model,
) -> None:
    run = begun(model)
    databases = {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
    process = subprocess.run(
        [sys.executable, "-c", CRASH, json.dumps(databases), model.__name__, str(run.pk)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        timeout=60,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert written(run) == ["first", *names(30)]
    append(run, "next")
    assert written(run)[-1] == "next"


@both_logs
def test_the_end_of_a_block_waits_for_no_thread_that_waits_for_its_transaction(
    model: Model, transactional_db: None
) -> None:
    run, begun_by_another = begun(model), threading.Event()
    wrong: list[BaseException] = []

    def from_another_thread() -> None:
        try:
            begun_by_another.set()
            append(run, "of the other")
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=from_another_thread)
    with transaction.atomic():
        with run.buffer_events(max_entries=1):
            append(run, "mine")
            other.start()
            assert begun_by_another.wait(timeout=10)
            time.sleep(0.3)
            began = time.monotonic()
        assert time.monotonic() - began < 2
    other.join()
    assert wrong == []
    assert written(run) == ["first", "mine", "of the other"]


@both_logs
def test_a_transition_waits_for_the_flush_of_another_thread(
    model: Model, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    """Who tails the log stops at the end of the run."""
    run = make(model, "running")
    writing, go_on = threading.Event(), threading.Event()
    write = AgentRunMixin._write_entries

    def slow(self: Any, entries: Any, **also: Any) -> None:
        writing.set()
        go_on.wait(timeout=10)
        write(self, entries, **also)

    def finish() -> None:
        assert writing.wait(timeout=10)
        threading.Timer(0.5, go_on.set).start()
        run.finish("done")
        seen_at_the_end.extend(written(run))

    seen_at_the_end: list[str] = []
    with run.buffer_events() as buffer:
        append(run, "a")
        monkeypatch.setattr(AgentRunMixin, "_write_entries", slow)
        assert in_threads(buffer.flush, finish) == []

    assert seen_at_the_end == ["a"]
