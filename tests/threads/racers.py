"""What racers do with a store of the runs of threads: tasks for tests.races.

An error of the database is no outcome: it ends the race, as nothing here may ever meet one.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

from django.utils import timezone

from solid_runs.threads.claims import Claim, Refusal
from solid_runs.threads.reaper import reap
from solid_runs.threads.records import RunRecord
from solid_runs.threads.signals import run_ended
from solid_runs.threads.stores.database import DatabaseRunStore

SCOPE = "tenant"

Task: TypeAlias = Generator[None, None, Any]


def connected() -> DatabaseRunStore:
    store = DatabaseRunStore(SCOPE)
    store.get("warm up")
    return store


@contextmanager
def ends() -> Iterator[list[list[str]]]:
    """The ends that this process announces."""
    heard: list[list[str]] = []

    def hear(*, run_id: str, status: str, **facts: Any) -> None:
        heard.append([run_id, str(status)])

    run_ended.connect(hear)
    try:
        yield heard
    finally:
        run_ended.disconnect(hear)


@contextmanager
def clock(wrong_by: int) -> Iterator[None]:
    """Let the clocks of this process be wrong by so many minutes."""
    shift, time_ns = wrong_by * 60 * 10**9, time.time_ns

    def wrong_ns() -> int:
        return time_ns() + shift

    def wrong() -> float:
        return wrong_ns() / 10**9

    def now() -> datetime:
        return datetime.fromtimestamp(wrong(), UTC)

    with (
        mock.patch.object(timezone, "now", now),
        mock.patch.object(time, "time", wrong),
        mock.patch.object(time, "time_ns", wrong_ns),
    ):
        yield


def act(method: str, arguments: dict[str, Any], pause: float = 0) -> Task:
    """Call a method of the store after so many seconds; what it gave, and what it announced."""
    store = connected()
    yield
    time.sleep(pause)
    with ends() as announced:
        given = getattr(store, method)(**arguments)
    if isinstance(given, Claim):
        given = given.epoch
    elif isinstance(given, Refusal):
        given = given.reason
    elif isinstance(given, RunRecord):
        given = given.to_json()
    return {"gave": given, "announced": announced}


def claim_again_and_again(run_id: str, seconds: float) -> Task:
    """Claim, and try to end the run by the claim before, which is superseded by then.

    The epochs that it got; those with which it could have ended the run.
    """
    store = connected()
    yield
    logging.getLogger("solid_runs.threads").setLevel(logging.ERROR)  # of each refusal
    epochs, wrong = [], []
    last = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.002)  # SQLite hands its lock to whoever asks at the right moment
        claim = store.claim(run_id)
        assert isinstance(claim, Claim)
        epochs.append(claim.epoch)
        if last is not None and last.update({"status": "failed", "usage": {"by": last.epoch}}):
            wrong.append(last.epoch)
        last = claim
    return {"epochs": epochs, "wrong": wrong}


def end_as(run_id: str, epoch: int, status: str) -> Task:
    """End the run by the claim of this epoch; whether it did."""
    claim = Claim(connected(), run_id, epoch)
    yield
    return claim.update({"status": status, "finished_at": epoch})


def drive(
    run_ids: list[str],
    *,
    detached: bool = False,
    beats: float = 0,
    wrong_by: int = 0,
    dies: bool = False,
) -> Task:
    """Drive runs for so many seconds with a sign of life each tenth; complete them, or be killed.

    Whether each could be completed.
    """
    store = connected()
    yield
    with clock(wrong_by):
        claims = []
        for run_id in run_ids:
            store.create_or_resume(run_id, "t", time.time_ns() // 1_000_000)
            claims.append(store.claim(run_id))
            if detached:
                store.update(run_id, {"detached_since": store.now()})
        end = time.monotonic() + beats
        while time.monotonic() < end:
            alive = [claim.touch() for claim in claims if claim]
            assert all(alive)
            time.sleep(0.1)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        done = {"status": "completed", "finished_at": time.time_ns() // 1_000_000}
        return [claim.update(done) for claim in claims if claim]


def stall(run_id: str, seconds: float) -> Task:
    """Claim, be silent for so many seconds, and come back with an end and with what it cost."""
    store = connected()
    yield
    claim = store.claim(run_id)
    assert isinstance(claim, Claim)
    time.sleep(seconds)
    with ends() as announced:
        ended = claim.update({"status": "completed", "finished_at": 7})
    counted = claim.update({"usage": {"totalTokens": 7}})
    return {
        "ended": ended,
        "counted": counted,
        "beats": claim.touch(),
        "superseded": claim.is_superseded(),
        "announced": announced,
    }


def take_over(run_id: str, pause: float, silent_ms: int, status: str) -> Task:
    """Claim after so many seconds what was silent, and end it."""
    store = connected()
    yield
    time.sleep(pause)
    claim = store.claim(run_id, silent_before=store.now() - silent_ms)
    assert isinstance(claim, Claim), claim
    return claim.update({"status": status, "finished_at": 9})


def look_in(run_id: str, pause: float) -> Task:
    """Watch a run again; whose it is by then, as a viewer sees it."""
    store = connected()
    yield
    time.sleep(pause)
    store.update(run_id, {"detached_since": None})
    record = store.get(run_id)
    assert record is not None
    return {"epoch": record.driver_epoch, "status": str(record.status)}


def sweep(
    ledger: str | None = None, *, again_for: float = 0, pause: float = 0, **options: Any
) -> Task:
    """Reap, for a while; the counts, what was announced.

    Each finalised run becomes a line of the ledger.
    """
    store = connected()
    finalise = None if ledger is None else partial(write_down, ledger)
    yield
    time.sleep(pause)
    total: dict[str, int] = {}
    end = time.monotonic() + again_for
    with ends() as announced:
        while True:
            for outcome, count in reap(store, finalise=finalise, **options).items():
                total[outcome] = total.get(outcome, 0) + count
            if time.monotonic() >= end:
                break
            time.sleep(0.02)
    return {"counts": {name: n for name, n in total.items() if n}, "announced": announced}


def write_down(ledger: str, record: RunRecord) -> None:
    with Path(ledger).open("a") as lines:
        lines.write(f"{record.run_id}\n")
    time.sleep(0.01)


def churn(seconds: float, seed: int) -> Task:
    """All that a store can be asked for, on few runs of few threads; how many calls that was."""
    store, chance, calls = connected(), random.Random(seed), 0
    yield
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run_id = f"r{chance.randrange(12)}"
        started = chance.randrange(1_000)
        status = chance.choice(["running", "interrupted", "completed", "failed"])
        calls += 1
        match chance.randrange(8):
            case 0:
                store.create_or_resume(run_id, f"t{started % 3}", started)
            case 1:
                store.update(run_id, {"status": status, "finished_at": started})
            case 2:
                store.update_if(run_id, {"status": status}, status="running")
            case 3:
                store.update(run_id, {"detached_since": chance.choice([None, started])})
            case 4:
                claim = store.claim(run_id)
                if claim:
                    claim.update({"usage": {"totalTokens": calls}})
                    claim.update({"status": status})
            case 5:
                store.touch(run_id, 1)
            case 6:
                reap(store, ttl_ms=chance.randrange(10_000), stall_ms=0, limit=3)
            case 7:
                store.prune(started)
    return calls


TASKS = {
    f"threads.{task.__name__}": task
    for task in (act, churn, claim_again_and_again, drive, end_as, look_in, stall, sweep, take_over)
}
