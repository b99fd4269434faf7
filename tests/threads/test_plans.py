"""The indexes that the stores read by, on a hundred thousand rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.plans import assert_read_by, plans

pytestmark = pytest.mark.django_db

RUNS: Final = 100_000
LONG: Final = 20_000
"""The last so many runs are of one thread, and of one parent."""
SCOPES: Final = 10
THREADS: Final = 8_000
NOW: Final = 10_000_000

ENDS: Final = ("completed", "failed", "aborted")

IDENTITY = "solid_runs_threads_identity"
THREAD = "solid_runs_threads_thread"
ACTIVE = "solid_runs_threads_active"
PARENT = "solid_runs_threads_parent"
DETACHED = "solid_runs_threads_detached"
STALLED = "solid_runs_threads_stalled"
ENDED = "solid_runs_threads_ended"
TRACE = "solid_runs_threads_trace"

store = DatabaseRunStore("tenant-1")
interrupts = DatabaseInterruptStore("tenant-1")


def run(number: int) -> ThreadRun:
    """Most have ended; every fiftieth runs, and a share of these is detached or claimed."""
    is_long = number >= RUNS - LONG
    running = number % 50 == 1
    return ThreadRun(
        scope="tenant-1" if is_long else f"tenant-{number % SCOPES}",
        thread_id="long" if is_long else f"thread-{number // SCOPES % (THREADS // SCOPES)}",
        run_id=f"run-{number}",
        parent_run_id="parent" if is_long else f"run-{number - 1}" if number % 7 == 0 else None,
        trace_id=f"trace-{number // 2}",
        status="running" if running else ENDS[number % 3],
        started_at=number,
        finished_at=None if running else number + 10,
        detached_since=number if number % 100 == 51 else None,
        driver_epoch=1 if number % 100 == 1 else None,
        heartbeat_at=number if number % 100 == 1 else None,
    )


def interrupt(number: int) -> ThreadInterrupt:
    return ThreadInterrupt(
        scope="tenant-1",
        interrupt_id=f"i-{number}",
        run_id=f"run-{number // 2}",
        thread_id=f"thread-{number // 20}",
        status="pending",
        requested_at=number,
        payload={},
    )


@pytest.fixture(scope="module", autouse=True)
def rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Committed, once for the module: MariaDB ends a transaction to analyse."""
    with django_db_blocker.unblock():
        ThreadRun.objects.bulk_create(map(run, range(RUNS)), batch_size=2000)
        ThreadInterrupt.objects.bulk_create(map(interrupt, range(20_000)), batch_size=2000)
        with connection.cursor() as cursor:
            for model in (ThreadRun, ThreadInterrupt):
                word = "ANALYZE TABLE" if connection.vendor == "mysql" else "ANALYZE"
                cursor.execute(f"{word} {model._meta.db_table}")
        yield
        for model in (ThreadRun, ThreadInterrupt):
            model.objects.all()._raw_delete(connection.alias)
        connection.close()


def test_a_run_is_found_by_its_id() -> None:
    (steps,) = plans(lambda: store.get("run-51"))
    assert_read_by(steps, IDENTITY)


def test_an_update_finds_its_run_by_its_id() -> None:
    for steps in plans(lambda: store.update("run-51", {"status": "completed"})):
        assert_read_by(steps, IDENTITY)


def test_a_claim_finds_its_run_by_its_id() -> None:
    update, read = plans(lambda: store.claim("run-51", detached_before=NOW))
    assert_read_by(update, IDENTITY)
    assert_read_by(read, IDENTITY)


@pytest.mark.parametrize("thread", ["long", "thread-5"])
def test_the_active_run_is_the_first_along_its_index(thread: str) -> None:
    (steps,) = plans(lambda: store.find_active_run(thread))
    assert_read_by(steps, ACTIVE, ordered=True)


def test_a_thread_is_read_in_order() -> None:
    (steps,) = plans(lambda: store.list_by_thread("thread-5"))
    assert_read_by(steps, THREAD, ordered=True)


def test_children_are_read_in_order() -> None:
    (steps,) = plans(lambda: store.list_by_parent_run("run-6"))
    assert_read_by(steps, PARENT, ordered=True)


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize("now", [2_000, NOW])
def test_detached_runs_are_read_by_when_they_were_left(now: int, limit: int | None) -> None:
    (steps,) = plans(lambda: store.list_reclaimable(now, 0, limit=limit))
    assert_read_by(steps, DETACHED)


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize("now", [2_000, None])
def test_stalled_runs_are_read_by_their_sign_of_life(now: int | None, limit: int | None) -> None:
    (steps,) = plans(lambda: store.list_stalled(now, 0, limit=limit))
    assert_read_by(steps, STALLED)


def test_the_scopes_to_sweep_are_found_among_running_runs() -> None:
    for steps in plans(DatabaseRunStore.scopes_to_sweep):
        assert_read_by(steps, DETACHED, STALLED, ENDED)


def test_what_is_pruned_is_read_by_its_end() -> None:
    def prune() -> None:
        assert store.prune(2_000, batch_size=20) > 100

    pages = [steps for steps in plans(prune) if "LIMIT 20" in steps]
    assert len(pages) > 5
    for steps in pages:
        assert_read_by(steps, ENDED)


@pytest.mark.parametrize(
    ("call", "index"),
    [
        (lambda: interrupts.get("i-50"), "solid_runs_threads_interrupt"),
        (lambda: interrupts.list_by_thread("thread-5"), "solid_runs_threads_asked"),
        (lambda: interrupts.list_by_run("run-50"), "solid_runs_threads_asked_by"),
        (lambda: interrupts.resolve("i-50"), "solid_runs_threads_interrupt"),
    ],
    ids=["get", "list_by_thread", "list_by_run", "resolve"],
)
def test_interrupts_are_found_by_an_index(call: Callable[[], Any], index: str) -> None:
    (steps,) = plans(call)
    assert_read_by(steps, index)


@pytest.mark.parametrize(
    ("field", "value", "index"),
    [
        ("run_id", "run-50", IDENTITY),
        ("thread_id", "thread-5", THREAD),
        ("trace_id", "trace-5", TRACE),
    ],
)
def test_people_find_runs_by_what_they_know(field: str, value: str, index: str) -> None:
    (steps,) = plans(lambda: list(ThreadRun.objects.filter(**{field: value})))
    assert_read_by(steps, index, ACTIVE if field == "thread_id" else index)
