"""The indexes that the store and the inbox read by, on tens of thousands of rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from solid_runs.ag_ui.inbox.shelves import shelf
from solid_runs.ag_ui.interrupts import Decision
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt, RunThread
from solid_runs.ag_ui.stores.database import DatabaseStore
from tests.plans import assert_read_by, plans

pytestmark = pytest.mark.django_db

RUNS: Final = 30_000
THREADS: Final = 3_000
LONG: Final = 5_000
"""The last so many runs are of one thread."""
ASKED: Final = 8
"""How many questions an interrupted run has."""
SCOPES: Final = 10
BEGUN: Final = datetime(2026, 1, 1, tzinfo=UTC)
TABLES: Final = (ReservedRun, RunInterrupt)
DENIED: Final = Decision(status="resolved", payload=False).to_storage()

IDENTITY = "solid_runs_ag_ui_identity"
THREAD = "solid_runs_ag_ui_thread"
ALIVE = "solid_runs_ag_ui_alive"
TRACE = "solid_runs_ag_ui_trace"
WAITING = "solid_runs_ag_ui_waiting"
INTERRUPT = "solid_runs_ag_ui_interrupt"

store = DatabaseStore()


def key(number: int) -> dict[str, str]:
    """Threads of each scope bear the names of those of the others."""
    if number >= RUNS - LONG:
        return {"scope": "tenant-1", "thread_id": "long", "run_id": f"run-{number}"}
    return {
        "scope": f"tenant-{number % SCOPES}",
        "thread_id": f"thread-{number // SCOPES % (THREADS // SCOPES)}",
        "run_id": f"run-{number}",
    }


def run(number: int) -> ReservedRun:
    """Most succeeded; every tenth was interrupted, every hundredth is running."""
    at = BEGUN + timedelta(minutes=number)
    status = "succeeded"
    if number % 10 == 3:
        status = "interrupted"
    if number % 100 == 1:
        status = "started"
    times = dict.fromkeys(("reserved_at", "created_at", "updated_at", "alive_at"), at)
    return ReservedRun(
        **key(number),
        **times,
        status=status,
        digest="d",
        trace_id=f"trace-{number // 2}",
        questions=ASKED if status == "interrupted" else 0,
    )


def interrupts(asking: ReservedRun) -> Iterator[RunInterrupt]:
    """Most are settled; a few are open, and half of these expire."""
    number = int(asking.run_id.removeprefix("run-"))
    at = BEGUN + timedelta(minutes=number)
    answered = {"decision": DENIED, "decided_at": at, "settled_at": at, "redeemed_by": "r"}
    for position in range(ASKED):
        yield RunInterrupt(
            run=asking,
            position=position,
            interrupt_id=f"i-{number}-{position}",
            reason="tool_call",
            expires_at=at + timedelta(days=7) if number % 200 == 3 else None,
            **({} if number % 100 == 3 and position < 2 else answered),
        )


@pytest.fixture(scope="module", autouse=True)
def rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Committed, once for the module: MariaDB ends a transaction to analyse."""
    with django_db_blocker.unblock():
        ReservedRun.objects.bulk_create(map(run, range(RUNS)), batch_size=1000)
        asking = ReservedRun.objects.filter(status="interrupted")
        asked = chain.from_iterable(map(interrupts, asking))
        RunInterrupt.objects.bulk_create(asked, batch_size=1000)
        with connection.cursor() as cursor:
            for model in TABLES:
                word = "ANALYZE TABLE" if connection.vendor == "mysql" else "ANALYZE"
                cursor.execute(f"{word} {model._meta.db_table}")
        yield
        for model in (RunInterrupt, ReservedRun, RunThread):
            model.objects.all()._raw_delete(connection.alias)
        connection.close()


def thread(number: int) -> tuple[str, str]:
    return key(number)["scope"], key(number)["thread_id"]


# The store


def test_a_run_is_found_by_its_identity() -> None:
    (steps,) = plans(lambda: store.find(**key(12_340)))
    assert_read_by(steps, IDENTITY)


def test_the_latest_run_is_read_from_the_end_of_its_thread() -> None:
    (steps,) = plans(lambda: store.latest_run(*thread(RUNS - 2)))
    assert_read_by(steps, THREAD, ordered=True)


def test_the_latest_interrupted_run_is_read_along_its_thread() -> None:
    steps, asked = plans(lambda: store.latest_interrupted(*thread(RUNS - 2)))
    assert_read_by(steps, THREAD, ordered=True)
    assert_read_by(asked)


def test_an_interrupt_is_found_by_its_id_or_along_its_thread() -> None:
    (steps,) = plans(lambda: store.find_interrupt(*thread(12_343), "i-12343-7"))
    assert_read_by(steps, THREAD, INTERRUPT)


def test_active_runs_are_read_along_their_thread() -> None:
    _, *steps = plans(lambda: store.reserve(*thread(12_340), "new", "d", policy="reject"))
    assert THREAD in "".join(steps)
    for step in steps:
        if step.startswith("SELECT"):
            assert_read_by(step)


def test_each_statement_of_a_save_finds_its_rows_by_a_key() -> None:
    record = store.find(**key(12_301))
    assert record is not None
    for steps in plans(lambda: store.save(record.finish("succeeded", store.now())))[1:]:
        assert_read_by(steps)


def test_each_statement_of_a_redeem_finds_its_rows_by_a_key() -> None:
    decision = Decision(status="resolved", payload=1)
    redeem = plans(
        lambda: store.redeem_interrupt(*thread(12_303), "i-12303-1", decision, run_id="r")
    )
    assert len(redeem) == 4
    for steps in redeem[1:]:
        assert_read_by(steps)


def test_a_permission_finds_its_interrupt_by_a_key() -> None:
    (steps,) = plans(lambda: store.settle(*thread(12_303), "i-12303-1", "run-12303"))
    assert_read_by(steps)


def test_a_heartbeat_finds_its_run_by_its_identity() -> None:
    record = store.find(**key(12_301))
    assert record is not None
    found, beat = plans(lambda: store.heartbeat(record))
    assert_read_by(found, IDENTITY)
    assert_read_by(beat)


@pytest.mark.parametrize("limit", [None, 20])
def test_stalled_runs_are_read_along_the_signs_of_life(limit: int | None) -> None:
    (steps,) = plans(lambda: store.stalled(BEGUN + timedelta(minutes=3_000), limit))
    assert_read_by(steps, ALIVE)


def test_a_page_to_prune_is_read_along_the_signs_of_life() -> None:
    def prune() -> None:
        assert store.prune(BEGUN + timedelta(minutes=900), batch_size=100) > 500

    pages = [steps for steps in plans(prune) if "ORDER BY" in steps and "LIMIT 100" in steps]
    assert len(pages) > 5
    for steps in pages:
        assert_read_by(steps, ALIVE)


# People


@pytest.mark.parametrize("name", ["waiting", "expired", "stale"])
def test_the_inbox_reads_open_interrupts_and_no_others(name: str) -> None:
    def look() -> None:
        interrupts = RunInterrupt.objects.with_stale().select_related("run")
        list(shelf(interrupts, name, BEGUN + timedelta(days=5))[:50])

    (steps,) = plans(look)
    assert_read_by(steps, WAITING)


@pytest.mark.parametrize(
    ("field", "value", "index", "count"),
    [
        ("thread_id", "thread-234", THREAD, 80),
        ("run_id", "run-12340", IDENTITY, 1),
        ("trace_id", "trace-6170", TRACE, 2),
    ],
)
def test_people_find_runs_by_what_they_know(field: str, value: str, index: str, count: int) -> None:
    def search() -> None:
        assert len(list(ReservedRun.objects.filter(**{field: value}))) == count

    (steps,) = plans(search)
    assert_read_by(steps, index)


def test_people_find_interrupts_by_their_id() -> None:
    def search() -> None:
        assert len(list(RunInterrupt.objects.filter(interrupt_id="i-12343-7"))) == 1

    (steps,) = plans(search)
    assert_read_by(steps, INTERRUPT)
