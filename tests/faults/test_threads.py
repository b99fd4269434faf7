"""Runs of threads: killed workers, reapers that meet live ones, clocks, cancel against finish.

What takes real processes is told elsewhere: F17 (200 rounds of cancel against completion) in
tests/threads/test_races.py; F38 (SIGKILL), F39 (a worker that comes back), F40 (a long healthy run)
and F41 (wrong clocks) in tests/threads/test_kills.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from solid_runs.threads.models import ThreadRun
from solid_runs.threads.reaper import reap
from solid_runs.threads.records import RunRecord
from solid_runs.threads.signals import run_ended
from solid_runs.threads.stores.database import DatabaseRunStore
from solid_runs.threads.stores.memory import MemoryRunStore

pytestmark = pytest.mark.django_db

MINUTE = 60_000
TTL = 60 * MINUTE
LATEST = 2**53 - 1

on_every_store = pytest.mark.parametrize("make", [MemoryRunStore, DatabaseRunStore])


@pytest.fixture
def ended() -> Iterator[list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []

    def hear(*, run_id: str, status: str, **facts: Any) -> None:
        heard.append((run_id, str(status)))

    run_ended.connect(hear)
    yield heard
    run_ended.disconnect(hear)


def found(store: Any, run_id: str = "r1") -> RunRecord:
    record = store.get(run_id)
    assert record is not None
    return record


def swept(store: Any, **options: Any) -> dict[str, int]:
    counts = reap(store, ttl_ms=TTL, stall_ms=MINUTE, **options)
    return {outcome: count for outcome, count in counts.items() if count}


# F17: cancel against finish


@on_every_store
@pytest.mark.parametrize("first", ["aborted", "completed"])
def test_f17_what_was_cancelled_just_before_it_finished_stays_cancelled(
    make: Any, first: str
) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    second = "completed" if first == "aborted" else "aborted"
    wrote = [
        store.update_if("r1", {"status": status, "finished_at": at}, status="running")
        for status, at in ((first, 20), (second, 21))
    ]
    assert wrote == [True, False]
    assert (found(store).status, found(store).finished_at) == (first, 20)


@on_every_store
def test_f17_asking_to_cancel_is_no_status_and_loses_against_an_end(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    store.request_cancel("r1")
    assert found(store).status == "running"
    store.update("r1", {"status": "completed"})
    store.request_cancel("r1")
    assert found(store).status == "completed"


# F19: the children of an ended parent


@on_every_store
def test_f19_the_children_of_an_ended_parent_are_untouched_and_not_offered(make: Any) -> None:
    """A parent ends for itself: its children have drivers and viewers of their own."""
    store = make()
    now = store.now()
    store.create_or_resume("parent", "t", now)
    for child in ("watched", "detached"):
        store.create_or_resume(child, "t", now, parent_run_id="parent")
        assert store.claim(child)
    store.update("detached", {"detached_since": now})
    store.update("parent", {"status": "aborted", "finished_at": now})
    before = store.list_by_parent_run("parent")
    assert store.list_reclaimable(now, TTL) == []
    assert store.list_stalled() == []
    assert swept(store) in ({"unknown": 1}, {})  # which a clock of another process may not see yet
    assert store.list_by_parent_run("parent") == before
    assert [one.status for one in before] == ["running", "running"]


@on_every_store
def test_f19_a_child_left_for_too_long_ends_by_its_own_clock(make: Any) -> None:
    store = make()
    store.create_or_resume("parent", "t", 10)
    store.create_or_resume("child", "t", 10, parent_run_id="parent")
    store.update("child", {"detached_since": store.now() - TTL})
    store.update("parent", {"status": "aborted"})
    assert swept(store) == {"expired": 1}
    assert found(store, "child").status == "aborted"
    assert found(store, "parent").finished_at is None


# F38: a dead worker


@on_every_store
def test_f38_the_run_of_a_dead_worker_is_listed_failed_with_a_reason_and_never_repeated(
    make: Any, ended: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    store.claim("r1", now=store.now() - MINUTE)
    assert [one.run_id for one in store.list_stalled()] == ["r1"]
    with django_capture_on_commit_callbacks(execute=True):
        assert swept(store) == {"stalled": 1}
    assert ended == [("r1", "failed")]
    assert found(store).error == {
        "message": "Nothing was heard of its driver for 60 seconds or longer.",
        "code": "stalled",
    }
    assert store.list_stalled() == []
    assert swept(store) == {}
    assert store.create_or_resume("r1", "t", 20).status == "failed"


# F39: back from a stall


@on_every_store
def test_f39_a_worker_whose_run_was_given_away_is_refused_what_would_undo_it(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    w1 = store.claim("r1")
    w2 = store.claim("r1")
    before = found(store)
    assert w1.update({"status": "completed", "finished_at": 20}) is False
    assert w1.touch() is False
    assert w1.is_superseded() is True
    assert found(store) == before
    assert w2.update({"status": "completed", "finished_at": 30}) is True
    assert w1.update({"status": "failed"}) is False
    assert (found(store).status, found(store).finished_at) == ("completed", 30)


@on_every_store
def test_f39_a_revival_by_a_superseded_worker_is_refused(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    w1 = store.claim("r1")
    store.claim("r1").update({"status": "failed"})
    assert w1.update({"status": "running"}) is False
    assert found(store).status == "failed"


# F40: long and healthy


@on_every_store
def test_f40_a_run_that_lasts_is_not_stalled_while_it_gives_signs_of_life(make: Any) -> None:
    now = [10 * TTL]
    store = make(clock=lambda: now[0])
    store.create_or_resume("r1", "t", 10)
    worker = store.claim("r1")
    for _ in range(30):
        now[0] += MINUTE - 1
        assert swept(store) == {}
        assert worker.touch() is True
    assert found(store).status == "running"


# F41: other clocks


@pytest.mark.parametrize("wrong_by", [-10, 10])
def test_f41_a_sign_of_life_is_by_the_clock_of_the_database(
    wrong_by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DatabaseRunStore()
    store.create_or_resume("r1", "t", 10)
    right = time.time_ns() // 10**6
    wrong = time.time_ns() + wrong_by * MINUTE * 10**6
    monkeypatch.setattr(time, "time", lambda: wrong / 10**9)
    monkeypatch.setattr(time, "time_ns", lambda: wrong)
    assert store.claim("r1").touch()
    assert abs(ThreadRun.objects.get().heartbeat_at - right) < MINUTE
    assert abs(store.now() - right) < MINUTE
    monkeypatch.undo()
    assert swept(store) == {}


# F42: what counts as a sign of life


@on_every_store
def test_f42_silence_is_judged_by_the_heartbeat_and_not_by_other_writes(make: Any) -> None:
    """A viewer that comes and goes, or a cancel, says nothing of the driver."""
    store = make()
    now = store.now()
    store.create_or_resume("r1", "t", now)
    store.claim("r1", now=now - MINUTE)
    store.update("r1", {"detached_since": now})
    store.update("r1", {"detached_since": None, "usage": {"totalTokens": 7}})
    store.request_cancel("r1")
    store.create_or_resume("r1", "t", now)
    assert swept(store) == {"stalled": 1}


@on_every_store
def test_f42_a_heartbeat_that_changes_nothing_else_puts_it_off(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    worker = store.claim("r1", now=store.now() - MINUTE)
    before = found(store)
    assert worker.touch()
    assert found(store) == before
    assert swept(store) == {}


# F43: times of different clocks

TIMES: list[tuple[int, int | None]] = [(100, 20), (10, -5), (LATEST, -LATEST), (5, None), (0, 0)]


@on_every_store
def test_f43_times_in_any_order_are_kept_as_they_were_given_and_listed(make: Any) -> None:
    store = make()
    for number, (started_at, finished_at) in enumerate(TIMES):
        store.create_or_resume(f"r{number}", "t", started_at, parent_run_id="p")
        store.update(f"r{number}", {"status": "completed", "finished_at": finished_at})
    for records in (store.list_by_thread("t"), store.list_by_parent_run("p")):
        assert [(one.started_at, one.finished_at) for one in records] == sorted(
            TIMES, key=lambda times: times[0]
        )
        for one in records:
            assert RunRecord.from_json(one.to_json()) == one


@on_every_store
def test_f43_a_run_that_started_after_now_is_active_swept_and_pruned_like_any(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", LATEST)
    assert store.find_active_run("t") == found(store)
    store.update("r1", {"detached_since": -LATEST})
    assert swept(store) == {"expired": 1}
    assert found(store).finished_at < found(store).started_at
    store.create_or_resume("r2", "t", LATEST)
    assert store.prune(store.now() + MINUTE) == 1


@on_every_store
def test_f43_a_run_detached_after_now_waits_for_its_time(make: Any) -> None:
    store = make()
    store.create_or_resume("r1", "t", 10)
    store.update("r1", {"detached_since": LATEST})
    assert swept(store) == {}
    assert store.list_reclaimable(LATEST, 0) == [found(store)]
