"""Workers that are killed, or that stall and come back, and workers whose clocks are wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solid_runs.threads.records import RunRecord
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.races import Racer, race, racers
from tests.threads.racers import SCOPE

pytestmark = pytest.mark.usefixtures("committed")

LIMIT = 300
"""How many milliseconds a worker may be silent here, or a run unwatched."""
NEVER = 3_600_000

RUNS = [f"r{n}" for n in range(10)]

store = DatabaseRunStore(SCOPE)


@pytest.fixture
def field(committed: None) -> Iterator[list[Racer]]:
    with racers(3) as processes:
        yield processes


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where a finaliser leaves a line for each run that it is called for."""
    path = tmp_path / "ledger"
    path.touch()
    return path


def task(name: str, **given: Any) -> dict[str, Any]:
    return {"task": f"threads.{name}", **given}


def found(run_id: str) -> RunRecord:
    record = store.get(run_id)
    assert record is not None
    return record


def kill(racer: Racer, **given: Any) -> None:
    """Let a worker be killed, and wait until it was silent for too long."""
    with pytest.raises((RuntimeError, ConnectionError), match=r"died|reset"):
        race([racer], [task("drive", run_ids=RUNS, dies=True, **given)])
    time.sleep(LIMIT / 1000 * 1.5)


def two_reapers(field: list[Racer], ledger: Path, **options: Any) -> tuple[Counter[str], Any]:
    """What both counted, and announced."""
    one = task("sweep", ledger=str(ledger), **options)
    told = [outcome.result for outcome in race(field, [one, one])]
    total: Counter[str] = Counter()
    for each in told:
        total.update(each["counts"])
    return total, sorted(end for each in told for end in each["announced"])


# F38: killed


@pytest.mark.parametrize("wrong_by", [-10, 0, 10])
def test_the_detached_runs_of_a_killed_worker_are_each_ended_once_by_two_reapers(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    kill(field[0], detached=True, wrong_by=wrong_by)
    since = {run_id: found(run_id).detached_since for run_id in RUNS}
    total, announced = two_reapers(field[1:], ledger, ttl_ms=LIMIT, stall_ms=LIMIT)
    assert total["expired"] == len(RUNS)
    assert set(total) <= {"expired", "not_claimed"}
    assert announced == [[run_id, "aborted"] for run_id in RUNS]
    assert sorted(ledger.read_text().split()) == RUNS, "each is finalised once"
    for run_id in RUNS:
        record = found(run_id)
        assert (record.status, record.cancel_requested) == ("aborted", True)
        assert record.detached_since == since[run_id] is not None


@pytest.mark.parametrize("wrong_by", [-10, 0, 10])
def test_the_watched_runs_of_a_killed_worker_are_each_failed_once_by_two_reapers(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    kill(field[0], beats=0.3, wrong_by=wrong_by)
    total, announced = two_reapers(field[1:], ledger, ttl_ms=LIMIT, stall_ms=LIMIT)
    assert total["stalled"] == len(RUNS)
    assert set(total) <= {"stalled", "not_claimed"}
    assert announced == [[run_id, "failed"] for run_id in RUNS]
    assert ledger.read_text() == ""
    for run_id in RUNS:
        record = found(run_id)
        assert (record.status, record.error["code"]) == ("failed", "stalled")
        assert (record.detached_since, record.cancel_requested) == (None, None)


def test_what_was_ended_is_not_ended_again(field: list[Racer], ledger: Path) -> None:
    kill(field[0], detached=True)
    for expected in (len(RUNS), 0):
        total, announced = two_reapers(field[1:], ledger, ttl_ms=LIMIT)
        assert (total["expired"], len(announced)) == (expected, expected)
    assert len(ledger.read_text().split()) == len(RUNS)


# F39: back from a stall


@pytest.mark.parametrize(
    ("detached", "options", "status"),
    [
        (True, {"ttl_ms": LIMIT, "stall_ms": NEVER}, "aborted"),
        (False, {"ttl_ms": NEVER, "stall_ms": LIMIT}, "failed"),
    ],
    ids=["detached", "watched"],
)
def test_a_worker_that_comes_back_cannot_overwrite_the_end_of_the_reaper(
    detached: bool, options: Any, status: str, field: list[Racer]
) -> None:
    store.create_or_resume("r1", "t", 10)
    if detached:
        store.update("r1", {"detached_since": store.now()})
    late, reaped = (
        outcome.result
        for outcome in race(
            field,
            [task("stall", run_id="r1", seconds=1.5), task("sweep", again_for=1, **options)],
        )
    )
    assert reaped["announced"] == [["r1", status]]
    assert late == {
        "ended": False,
        "counted": True,
        "beats": False,
        "superseded": True,
        "announced": [],
    }
    record = found("r1")
    assert (record.status, record.driver_epoch) == (status, 2)
    assert record.finished_at != 7
    assert record.usage == {"totalTokens": 7}


def test_a_worker_that_comes_back_cannot_overwrite_the_end_of_the_new_one(
    field: list[Racer],
) -> None:
    store.create_or_resume("r1", "t", 10)
    late, took = (
        outcome.result
        for outcome in race(
            field,
            [
                task("stall", run_id="r1", seconds=1.2),
                task("take_over", run_id="r1", pause=0.7, silent_ms=LIMIT, status="failed"),
            ],
        )
    )
    assert (took, late["ended"], late["counted"]) == (True, False, True)
    assert (found("r1").status, found("r1").finished_at) == ("failed", 9)


# F40, F41: alive


@pytest.mark.parametrize("wrong_by", [-10, 0, 10])
def test_a_worker_that_gives_signs_of_life_is_never_reaped_whatever_its_clock_shows(
    wrong_by: int, field: list[Racer]
) -> None:
    """It works three times as long as a worker may be silent."""
    work = task("drive", run_ids=["r1"], beats=3, wrong_by=wrong_by)
    reaper = task("sweep", again_for=3.2, stall_ms=1_000, ttl_ms=NEVER)
    worked, reaped = (outcome.result for outcome in race(field, [work, reaper]))
    assert worked == [True]
    assert reaped == {"counts": {}, "announced": []}
    assert found("r1").status == "completed"
