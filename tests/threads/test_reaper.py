"""The reaper: what it ends, what it leaves alone, and what it says of each."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections

from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.reaper import PRODUCING, UNKNOWN, Finished, Outcome, areap, reap
from solid_runs.threads.records import RunRecord
from solid_runs.threads.signals import run_ended
from solid_runs.threads.stores.database import DatabaseRunStore
from solid_runs.threads.stores.memory import MemoryRunStore
from solid_runs.threads.values import LARGEST

NOON = 1_768_478_400_000
TTL = 3_600_000
STALL = 60_000
PAST = NOON - TTL
RECENT = PAST + 1


class ManualClock:
    """Gives milliseconds, and stands still until it is moved."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, milliseconds: int) -> None:
        self.now += milliseconds


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture(
    params=["memory", pytest.param("database", marks=pytest.mark.django_db(transaction=True))]
)
def store(request: pytest.FixtureRequest, clock: ManualClock) -> Any:
    stores = {"memory": MemoryRunStore, "database": DatabaseRunStore}
    return stores[request.param]("tenant", clock=clock)


@pytest.fixture
def ended() -> Iterator[list[tuple[str, str]]]:
    """The ends that were announced."""
    heard: list[tuple[str, str]] = []

    def hear(*, run_id: str, status: str, **facts: Any) -> None:
        heard.append((run_id, str(status)))

    run_ended.connect(hear)
    yield heard
    run_ended.disconnect(hear)


def detached(store: Any, run_id: str = "r1", since: int = PAST, **patch: Any) -> RunRecord:
    """A run that was claimed and that nobody has watched since then."""
    store.create_or_resume(run_id, "t", 10)
    assert store.claim(run_id)
    store.update(run_id, {"detached_since": since, "sandbox_key": f"box of {run_id}", **patch})
    return found(store, run_id)


def watched(store: Any, run_id: str = "r1") -> RunRecord:
    """A run that was claimed, and whose driver has just given a sign of life."""
    store.create_or_resume(run_id, "t", 10)
    assert store.claim(run_id)
    return found(store, run_id)


def found(store: Any, run_id: str = "r1") -> RunRecord:
    record = store.get(run_id)
    assert record is not None
    return record


def told(counts: dict[str, int]) -> dict[str, int]:
    """Without those of which there are none."""
    return {outcome: count for outcome, count in counts.items() if count}


def swept(store: Any, **options: Any) -> dict[str, int]:
    return told(reap(store, ttl_ms=TTL, stall_ms=STALL, **options))


def raising(record: RunRecord) -> Any:
    raise RuntimeError(f"no word of {record.run_id}")


# What is always there


def test_every_outcome_is_counted_by_name_even_when_there_is_nothing(store: Any) -> None:
    assert reap(store) == {
        "finished": 0,
        "expired": 0,
        "finaliser_overran": 0,
        "finaliser_failed": 0,
        "stalled": 0,
        "producing": 0,
        "unknown": 0,
        "not_claimed": 0,
        "error": 0,
    }


# Live runs, and those that end in time


@pytest.mark.parametrize(
    ("probe", "outcome"),
    [
        (None, "unknown"),
        (lambda record: UNKNOWN, "unknown"),
        (lambda record: PRODUCING, "producing"),
    ],
    ids=["no probe", "unknown", "producing"],
)
def test_a_live_run_gets_no_write_at_all(store: Any, probe: Any, outcome: str) -> None:
    record = detached(store, since=RECENT)
    before = whole_row(store)
    assert swept(store, probe=probe, finalise=raising) == {outcome: 1}
    assert whole_row(store) == before
    assert found(store) == record


def whole_row(store: Any) -> Any:
    """With what is no part of the record."""
    if isinstance(store, MemoryRunStore):
        return dict(store.rows.by_key)
    return list(store._mine.values())


def test_a_watched_run_that_is_alive_is_not_even_asked_about(store: Any) -> None:
    record = watched(store)
    assert swept(store, probe=raising, finalise=raising) == {}
    assert found(store) == record


def test_a_run_that_nobody_ever_claimed_is_left_alone_while_somebody_watches(
    store: Any, clock: ManualClock
) -> None:
    store.create_or_resume("r1", "t", 10)
    clock.forward(10 * TTL)
    assert swept(store) == {}


def test_an_interrupted_run_waits_for_as_long_as_it_takes(store: Any, clock: ManualClock) -> None:
    detached(store, status="interrupted")
    clock.forward(10 * TTL)
    assert swept(store, probe=raising) == {}


def test_ended_runs_are_over(store: Any, clock: ManualClock) -> None:
    for status in ("completed", "failed", "aborted"):
        detached(store, status, status=status)
    clock.forward(10 * TTL)
    assert swept(store, probe=raising) == {}


def test_runs_of_another_scope_are_not_seen(store: Any, clock: ManualClock) -> None:
    detached(store)
    rows = {"rows": store.rows} if isinstance(store, MemoryRunStore) else {}
    other = type(store)("another", clock=clock, **rows)
    assert swept(other) == {}
    assert swept(store) == {"expired": 1}


# T6: the agent finished while nobody watched


def test_t6_a_run_that_finished_while_detached_is_completed_and_stays_detached(
    store: Any, ended: Any
) -> None:
    before = detached(store, since=RECENT)
    usage = {"totalTokens": 7}
    assert swept(
        store, probe=lambda record: Finished(usage=usage, finished_at=99), finalise=raising
    ) == {"finished": 1}
    after = found(store)
    assert (after.status, after.usage, after.finished_at) == ("completed", usage, 99)
    assert (after.detached_since, after.cancel_requested) == (RECENT, None)
    assert after.driver_epoch == (before.driver_epoch or 0) + 1
    assert ended == [("r1", "completed")]


@pytest.mark.parametrize("given", [{}, {"finished_at": None}], ids=repr)
def test_an_end_without_a_time_is_at_the_time_of_the_store(store: Any, given: Any) -> None:
    detached(store, since=RECENT)
    swept(store, probe=lambda record: Finished(**given))
    assert found(store).finished_at == NOON


def test_a_probe_may_say_that_it_failed_and_why(store: Any) -> None:
    detached(store, since=RECENT)
    error = {"message": "out of memory", "code": "oom"}
    assert swept(store, probe=lambda record: Finished("failed", error=error)) == {"finished": 1}
    assert (found(store).status, found(store).error) == ("failed", error)


def test_the_probe_is_given_the_record(store: Any) -> None:
    record, asked = detached(store, since=RECENT), []
    swept(store, probe=asked.append)
    assert asked == [record]


@pytest.mark.parametrize(
    "answer", [None, True, "done", Finished, {"status": "completed"}], ids=repr
)
def test_an_answer_that_is_none_is_an_error_and_writes_nothing(
    answer: Any, store: Any, caplog: Any
) -> None:
    record = detached(store, since=RECENT)
    assert swept(store, probe=lambda record: answer) == {"error": 1}
    assert found(store) == record
    assert "A probe gives Finished(...), PRODUCING or UNKNOWN, not" in caplog.text


def test_one_bad_run_stops_none_of_the_others_and_is_named_in_the_log(
    store: Any, caplog: Any
) -> None:
    for run_id in ("r1", "r2", "r3"):
        detached(store, run_id, since=RECENT)

    def probe(record: RunRecord) -> Any:
        return raising(record) if record.run_id == "r2" else Finished()

    assert swept(store, probe=probe) == {"finished": 2, "error": 1}
    assert [found(store, run_id).status for run_id in ("r1", "r2", "r3")] == [
        "completed",
        "running",
        "completed",
    ]
    assert "'r2'" in caplog.text
    assert "no word of r2" in caplog.text


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"status": "running"}, "status"),
        ({"status": "interrupted"}, "status"),
        ({"status": "done"}, "status"),
        ({"detached_since": None}, "detached_since"),
        ({"driver_epoch": 1}, "driver_epoch"),
        ({"cancel_requested": True}, "cancel_requested"),
        ({"thread_id": "t2"}, "thread_id"),
        ({"finished_at": "now"}, "finished_at"),
        ({"usage": 7}, "usage"),
    ],
    ids=repr,
)
@pytest.mark.once
def test_a_probe_that_says_what_it_may_not_is_told_so_where_it_says_it(
    given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRecord) as refused:
        Finished(**given)
    assert refused.value.field == field


# Past the ttl


def test_a_run_left_for_longer_than_the_ttl_is_aborted(store: Any, ended: Any) -> None:
    detached(store)
    assert swept(store) == {"expired": 1}
    run = found(store)
    assert (run.status, run.finished_at) == ("aborted", NOON)
    assert (run.cancel_requested, run.detached_since) == (True, PAST)
    assert (run.driver_epoch, run.error) == (2, None)
    assert ended == [("r1", "aborted")]


def test_the_ttl_is_reached_on_the_millisecond(store: Any) -> None:
    detached(store, "r1", since=PAST)
    detached(store, "r2", since=PAST + 1)
    assert swept(store) == {"expired": 1, "unknown": 1}
    assert found(store, "r2").status == "running"


def test_past_the_ttl_the_probe_is_not_asked(store: Any) -> None:
    detached(store)
    assert swept(store, probe=raising) == {"expired": 1}


def test_the_superseded_worker_may_report_its_usage_and_not_its_end(store: Any) -> None:
    store.create_or_resume("r1", "t", 10)
    worker = store.claim("r1")
    store.update("r1", {"detached_since": PAST})
    swept(store)
    assert worker.update({"status": "completed", "finished_at": 5}) is False
    assert worker.update({"usage": {"totalTokens": 7}}) is True
    run = found(store)
    assert (run.status, run.finished_at, run.usage) == ("aborted", NOON, {"totalTokens": 7})


def test_it_is_finalised_once_it_was_asked_to_cancel_and_before_it_is_aborted(
    store: Any,
) -> None:
    detached(store)
    seen: list[Any] = []

    def finalise(record: RunRecord) -> None:
        seen.append((record, threading.current_thread()))

    assert swept(store, finalise=finalise) == {"expired": 1}
    ((record, thread),) = seen
    assert (record.run_id, record.sandbox_key) == ("r1", "box of r1")
    assert (record.status, record.cancel_requested, record.driver_epoch) == ("running", True, 2)
    assert thread.daemon
    assert thread is not threading.current_thread()


@pytest.mark.django_db(transaction=True)
def test_a_finaliser_sees_the_rows_and_leaves_no_connection_open(clock: ManualClock) -> None:
    store = DatabaseRunStore("tenant", clock=clock)
    detached(store)
    used: list[Any] = []

    def finalise(record: RunRecord) -> None:
        used.append((found(store).cancel_requested, connections["default"]))
        assert used[0][1].connection is not None

    assert swept(store, finalise=finalise) == {"expired": 1}
    ((cancel_requested, theirs),) = used
    assert cancel_requested is True
    assert theirs is not connections["default"]
    assert theirs.connection is None


@pytest.mark.parametrize("error", [RuntimeError("no such box"), SystemExit(3)], ids=repr)
def test_a_run_whose_finaliser_fails_is_aborted_and_counted_apart(
    error: BaseException, store: Any, ended: Any, caplog: Any
) -> None:
    detached(store)

    def finalise(record: RunRecord) -> None:
        raise error

    assert swept(store, finalise=finalise) == {"finaliser_failed": 1}
    assert (found(store).status, found(store).finished_at) == ("aborted", NOON)
    assert ended == [("r1", "aborted")]
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]
    assert "'r1'" in caplog.text


def test_a_run_whose_finaliser_takes_too_long_is_aborted_and_counted_apart(
    store: Any, ended: Any, caplog: Any
) -> None:
    detached(store, "r1", since=PAST - 1)
    detached(store, "r2")
    release = threading.Event()

    def finalise(record: RunRecord) -> None:
        if record.run_id == "r1":
            release.wait(30)

    try:
        assert swept(store, finalise=finalise, budget_ms=50) == {
            "finaliser_overran": 1,
            "expired": 1,
        }
    finally:
        release.set()
    assert [found(store, run_id).status for run_id in ("r1", "r2")] == ["aborted"] * 2
    assert sorted(ended) == [("r1", "aborted"), ("r2", "aborted")]
    assert "takes longer than 0.05 seconds for run 'r1'" in caplog.text


def test_an_end_that_the_agent_writes_while_it_is_finalised_stays(store: Any, ended: Any) -> None:
    detached(store)

    def finalise(record: RunRecord) -> None:
        store.update("r1", {"status": "completed", "finished_at": 7})

    assert swept(store, finalise=finalise) == {"not_claimed": 1}
    assert (found(store).status, found(store).finished_at) == ("completed", 7)
    assert ended == [("r1", "completed")]


def test_a_run_that_is_taken_over_while_it_is_finalised_is_left_to_the_new_driver(
    store: Any,
) -> None:
    detached(store)

    def finalise(record: RunRecord) -> None:
        assert store.claim("r1")

    assert swept(store, finalise=finalise) == {"not_claimed": 1}
    assert (found(store).status, found(store).driver_epoch) == ("running", 3)


def test_a_run_that_pauses_while_it_is_finalised_is_aborted_all_the_same(store: Any) -> None:
    detached(store)

    def finalise(record: RunRecord) -> None:
        store.update("r1", {"status": "interrupted"})

    assert swept(store, finalise=finalise) == {"expired": 1}
    assert found(store).status == "aborted"


# T5: somebody else was quicker


class Meanwhile:
    """A store whose runs change once they were listed."""

    def __init__(self, store: Any, listing: str, change: Callable[[], Any]) -> None:
        self.store, self.listing, self.change = store, listing, change

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.store, name)
        if name != self.listing:
            return call

        def listed(*args: Any, **kwargs: Any) -> Any:
            records = call(*args, **kwargs)
            self.change()
            return records

        return listed


@pytest.mark.parametrize(
    "back", [{"detached_since": None}, {"detached_since": NOON}], ids=["stays", "looks in"]
)
@pytest.mark.parametrize(
    ("since", "options"),
    [(PAST, {"finalise": raising}), (RECENT, {"probe": lambda record: Finished()})],
    ids=["past the ttl", "finished"],
)
def test_t5_a_viewer_that_comes_back_between_listing_and_claim_keeps_the_run(
    store: Any, since: int, options: Any, back: Any, ended: Any
) -> None:
    record = detached(store, since=since)
    between = Meanwhile(store, "list_reclaimable", lambda: store.update("r1", back))
    assert swept(between, **options) == {"not_claimed": 1}
    run = found(store)
    assert (run.status, run.cancel_requested) == ("running", None)
    assert run.driver_epoch == record.driver_epoch, "the live worker must not be superseded"
    assert (run.detached_since, ended) == (back["detached_since"], [])


def test_a_run_that_somebody_claims_while_it_is_probed_is_theirs(store: Any) -> None:
    detached(store, since=RECENT)

    def probe(record: RunRecord) -> Any:
        assert store.claim("r1")
        return Finished()

    assert swept(store, probe=probe) == {"not_claimed": 1}
    assert (found(store).status, found(store).driver_epoch) == ("running", 2)


@pytest.mark.parametrize("status", ["completed", "failed", "interrupted"])
def test_what_its_agent_made_of_it_since_it_was_listed_stays(store: Any, status: str) -> None:
    detached(store)
    between = Meanwhile(store, "list_reclaimable", lambda: store.update("r1", {"status": status}))
    assert swept(between, finalise=raising) == {"not_claimed": 1}
    run = found(store)
    assert (run.status, run.cancel_requested, run.driver_epoch) == (status, None, 1)


def test_a_second_reaper_leaves_a_run_alone_while_the_first_finalises_it(
    store: Any, ended: Any
) -> None:
    detached(store)
    second: list[Any] = []
    finalised: list[str] = []

    def finalise(record: RunRecord) -> None:
        finalised.append(record.run_id)
        if not second:
            second.append(None)
            second[0] = swept(store, finalise=finalise)

    assert swept(store, finalise=finalise) == {"expired": 1}
    assert second == [{"not_claimed": 1}]
    assert (finalised, ended) == (["r1"], [("r1", "aborted")])


def test_what_a_killed_reaper_left_is_ended_after_its_lease(store: Any, clock: ManualClock) -> None:
    detached(store)
    assert store.claim("r1", PAST, lease_ms=60_000)
    assert swept(store) == {"not_claimed": 1}
    clock.forward(60_000)
    assert swept(store) == {"expired": 1}


# T8: its driver is gone while somebody watches


def test_t8_a_watched_run_whose_driver_is_silent_fails_and_stays_watched(
    store: Any, clock: ManualClock, ended: Any
) -> None:
    watched(store)
    clock.forward(STALL)
    assert swept(store, finalise=raising, probe=raising) == {"stalled": 1}
    run = found(store)
    assert (run.status, run.finished_at) == ("failed", clock.now)
    assert run.error == {
        "message": "Nothing was heard of its driver for 60 seconds or longer.",
        "code": "stalled",
    }
    assert (run.detached_since, run.cancel_requested, run.driver_epoch) == (None, None, 2)
    assert ended == [("r1", "failed")]


def test_a_sign_of_life_puts_it_off(store: Any, clock: ManualClock) -> None:
    store.create_or_resume("r1", "t", 10)
    worker = store.claim("r1")
    clock.forward(STALL - 1)
    assert swept(store) == {}
    assert worker.touch()
    clock.forward(STALL - 1)
    assert swept(store) == {}
    clock.forward(1)
    assert swept(store) == {"stalled": 1}
    assert worker.touch() is False


def test_silence_of_a_detached_run_means_nothing(store: Any, clock: ManualClock) -> None:
    detached(store, since=NOON)
    clock.forward(TTL - 1)
    assert swept(store) == {"unknown": 1}
    assert found(store).status == "running"


@pytest.mark.parametrize("life", ["touch", "claim"])
def test_a_sign_of_life_between_listing_and_claim_keeps_the_run(
    store: Any, clock: ManualClock, life: str
) -> None:
    store.create_or_resume("r1", "t", 10)
    worker = store.claim("r1")
    clock.forward(STALL)
    change = worker.touch if life == "touch" else lambda: store.claim("r1")
    between = Meanwhile(store, "list_stalled", change)
    assert swept(between) == {"not_claimed": 1}
    assert found(store).status == "running"
    assert found(store).driver_epoch == (1 if life == "touch" else 2)


# Several at once


def test_a_sweep_takes_no_more_than_its_limit_of_each_kind(store: Any, clock: ManualClock) -> None:
    for number in range(3):
        watched(store, f"w{number}")
    clock.forward(STALL)
    for number in range(3):
        detached(store, f"d{number}", since=clock.now - TTL)
        detached(store, f"r{number}", since=clock.now)
    assert swept(store, limit=2) == {"expired": 2, "stalled": 2}
    assert swept(store, limit=2) == {"expired": 1, "unknown": 1, "stalled": 1}
    assert swept(store, limit=None) == {"unknown": 3}
    assert swept(store, limit=0) == {}


def test_those_past_the_ttl_come_first(store: Any) -> None:
    for number in range(5):
        detached(store, f"r{number}", since=RECENT)
    detached(store, "old")
    assert swept(store, limit=1) == {"expired": 1}


def test_none_is_left_out_for_ever_by_those_before_it(store: Any) -> None:
    """One of thirty has ended, and those before it go on: it is met by chance."""
    for number in range(30):
        detached(store, f"r{number:02}", since=RECENT + number)

    def probe(record: RunRecord) -> Any:
        return Finished() if record.run_id == "r29" else PRODUCING

    sweeps = 0
    while found(store, "r29").status == "running":
        assert sum(swept(store, limit=10, probe=probe).values()) == 10
        sweeps += 1
        assert sweeps < 100  # chances are one in 10 ** 17
    assert found(store, "r29").status == "completed"


def test_none_is_left_out_for_ever_by_those_that_fail_each_time(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        detached(store, f"r{number}", since=PAST - 5 + number)
    claim = store.claim

    def broken(run_id: str, *args: Any, **kwargs: Any) -> Any:
        if run_id != "r4":
            raise RuntimeError("locked")
        return claim(run_id, *args, **kwargs)

    monkeypatch.setattr(store, "claim", broken)
    for _ in range(200):
        swept(store, limit=2)
        if found(store, "r4").status == "aborted":
            return
    raise AssertionError("it was never met")


def test_each_run_is_reported_with_its_outcome(store: Any, clock: ManualClock) -> None:
    watched(store, "w")
    clock.forward(STALL)
    detached(store, "d", since=clock.now - TTL)
    detached(store, "p", since=clock.now)
    reported: list[tuple[str, Outcome]] = []
    swept(
        store,
        probe=lambda record: PRODUCING,
        report=lambda record, outcome: reported.append((record.run_id, outcome)),
    )
    assert reported == [
        ("d", Outcome.EXPIRED),
        ("p", Outcome.PRODUCING),
        ("w", Outcome.STALLED),
    ]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    store: Any, clock: ManualClock, ended: Any
) -> None:
    watched(store, "w")
    clock.forward(STALL)
    detached(store, "d", since=clock.now - TTL)
    detached(store, "p", since=clock.now)
    detached(store, "f", since=clock.now)
    detached(store, "e", since=clock.now)
    before = whole_row(store)

    def probe(record: RunRecord) -> Any:
        return {"p": PRODUCING, "f": Finished()}.get(record.run_id)

    assert swept(store, dry_run=True, probe=probe, finalise=raising) == {
        "expired": 1,
        "producing": 1,
        "finished": 1,
        "error": 1,
        "stalled": 1,
    }
    assert whole_row(store) == before
    assert ended == []


# How it is told what to do


def test_a_time_may_be_given_instead_of_the_clock(store: Any) -> None:
    detached(store, since=10)
    assert swept(store, now=TTL + 9) == {"unknown": 1}
    assert swept(store, now=TTL + 10) == {"expired": 1}
    assert found(store).finished_at == TTL + 10


def test_the_settings_say_what_the_caller_does_not(store: Any, settings: Any) -> None:
    settings.SOLID_RUNS = {
        "THREADS_DETACHED_TTL": 10,
        "THREADS_STALL_AFTER": 0.5,
        "THREADS_FINALISE_BUDGET": 0.01,
        "THREADS_PROBE": "tests.threads.test_reaper.probe_of_settings",
        "THREADS_FINALISE": lambda record: threading.Event().wait(0.5),
    }
    watched(store, "w")
    store.clock.forward(500)
    detached(store, "d", since=store.clock.now - 10_000)
    detached(store, "p", since=store.clock.now - 9_999)
    assert told(reap(store)) == {"finaliser_overran": 1, "finished": 1, "stalled": 1}
    assert found(store, "p").usage == {"asked": "p"}
    assert "for 0.5 seconds" in found(store, "w").error["message"]


def probe_of_settings(record: RunRecord) -> Finished:
    return Finished(usage={"asked": record.run_id})


def test_without_settings_an_hour_and_a_minute_are_allowed(store: Any, clock: ManualClock) -> None:
    watched(store, "w")
    clock.forward(59_999)
    detached(store, "d", since=clock.now - 3_599_999)
    assert told(reap(store)) == {"unknown": 1}
    clock.forward(1)
    assert told(reap(store)) == {"expired": 1, "stalled": 1}


async def async_probe(record: RunRecord) -> Any:
    await asyncio.sleep(0)
    return Finished()


async def async_finaliser(record: RunRecord) -> None:
    await asyncio.sleep(0)
    raise RuntimeError("async")


def test_probe_and_finaliser_may_be_async(store: Any) -> None:
    detached(store, "d")
    detached(store, "p", since=RECENT)
    assert swept(store, probe=async_probe, finalise=async_finaliser) == {
        "finished": 1,
        "finaliser_failed": 1,
    }


class Finaliser:
    """Says how often it ran, whatever it is called as."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self, record: RunRecord) -> None:
        await asyncio.sleep(0)
        self.ran += 1


def test_whatever_gives_a_coroutine_is_waited_for(store: Any) -> None:
    finaliser = Finaliser()
    for run_id, finalise in (("a", finaliser), ("b", lambda record: finaliser(record))):
        detached(store, run_id)
        assert swept(store, finalise=finalise) == {"expired": 1}
    assert finaliser.ran == 2
    detached(store, "p", since=RECENT)
    assert swept(store, probe=lambda record: async_probe(record)) == {"finished": 1}


def test_the_async_twin_holds_up_no_other_work(store: Any) -> None:
    detached(store)
    beats: list[float] = []

    async def beat() -> None:
        while True:
            await store.aget("r1")
            beats.append(time.monotonic())
            await asyncio.sleep(0.02)

    async def sweep() -> dict[str, int]:
        beating = asyncio.create_task(beat())
        options = {"ttl_ms": TTL, "stall_ms": STALL, "budget_ms": 1_000}
        counts = await areap(store, finalise=lambda record: time.sleep(5), **options)
        beating.cancel()
        return counts

    assert told(async_to_sync(sweep)()) == {"finaliser_overran": 1}
    longest = max(after - before for before, after in pairwise(beats))
    assert longest < 0.7, beats


def test_a_sweep_breaks_off_between_two_runs_where_it_is_told_to(store: Any) -> None:
    for number in range(4):
        detached(store, f"r{number}")
    seen: list[str] = []
    options = {"report": lambda record, outcome: seen.append(record.run_id)}
    assert swept(store, is_stopped=lambda: len(seen) == 2, **options) == {"expired": 2}
    ended = [f"r{number}" for number in range(4) if found(store, f"r{number}").terminal]
    assert sorted(seen) == ended


@pytest.mark.parametrize("budget_ms", [0, LARGEST])
def test_any_budget_will_do(store: Any, budget_ms: int) -> None:
    detached(store)
    assert swept(store, budget_ms=budget_ms) == {"expired": 1}


@pytest.mark.django_db
def test_a_run_whose_row_cannot_be_read_keeps_no_other_from_being_reaped() -> None:
    store = DatabaseRunStore(clock=ManualClock(NOON))
    for run_id in ("bad", "good"):
        detached(store, run_id)
    with connection.cursor() as cursor:
        table = ThreadRun._meta.db_table
        column = connection.ops.quote_name("usage")
        cursor.execute(f"UPDATE {table} SET {column} = '{{oops' WHERE run_id = 'bad'")
    assert found(store, "bad").usage == "{oops"
    assert swept(store) == {"expired": 2}
    store.update("bad", {"usage": {"totalTokens": 3}})
    assert found(store, "bad").usage == {"totalTokens": 3}


def test_a_viewer_who_leaves_a_silent_run_between_listing_and_claim_leaves_it_to_the_ttl(
    store: Any, clock: ManualClock
) -> None:
    watched(store)
    clock.forward(STALL)

    class Leaving:
        """The viewer leaves once the silent runs were listed."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def list_stalled(self, *arguments: Any, **options: Any) -> Any:
            listed = store.list_stalled(*arguments, **options)
            store.update("r1", {"detached_since": clock.now})
            return listed

    assert swept(Leaving()) == {"not_claimed": 1}
    record = found(store)
    assert (record.status, record.driver_epoch) == ("running", 1)


def test_the_async_twin_does_the_same(store: Any) -> None:
    detached(store, "d")
    detached(store, "p", since=RECENT)

    counts = async_to_sync(areap)(store, ttl_ms=TTL, stall_ms=STALL, probe=async_probe)
    assert told(counts) == {"expired": 1, "finished": 1}
    assert found(store, "d").status == "aborted"


@pytest.mark.parametrize("name", ["ttl_ms", "stall_ms", "budget_ms", "limit"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "1"], ids=repr)
def test_a_number_that_is_none_is_refused_before_anything_is_done(
    name: str, value: Any, clock: ManualClock
) -> None:
    store = MemoryRunStore(clock=clock)
    detached(store)
    with pytest.raises(InvalidRecord, match=name):
        reap(store, **{name: value})
    assert found(store).status == "running"


@pytest.mark.once
@pytest.mark.parametrize("name", ["claim", "list_reclaimable", "list_stalled", "update_if"])
def test_a_store_that_omits_what_a_reaper_needs_is_named_with_what_it_omits(name: str) -> None:
    class Plain:
        """A store by composition, without one of the optional methods."""

        def __getattr__(self, wanted: str) -> Any:
            if wanted == name:
                raise AttributeError(wanted)
            return getattr(MemoryRunStore(), wanted)

    with pytest.raises(ImproperlyConfigured, match=f"a Plain, which omits {name}"):
        reap(Plain())


def test_what_the_reaper_does_about_live_runs_is_not_logged(store: Any, caplog: Any) -> None:
    detached(store, since=RECENT)
    with caplog.at_level(logging.WARNING):
        swept(store)
    assert caplog.records == []
