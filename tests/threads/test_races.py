"""Races for runs between real processes, on whatever database the suite has.

No racer may meet an error of the database: the race fails with its traceback if one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from solid_runs.threads.models import ThreadRun
from solid_runs.threads.records import RunRecord
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.races import Racer, race, racers
from tests.threads.racers import SCOPE

pytestmark = pytest.mark.usefixtures("committed")

ROUNDS = 200

store = DatabaseRunStore(SCOPE)


@pytest.fixture(scope="module")
def field(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Racer]]:
    """Eight processes for the whole module."""
    with racers(8) as processes:
        yield processes


def task(name: str, **given: Any) -> dict[str, Any]:
    return {"task": f"threads.{name}", **given}


def act(method: str, pause: float = 0, **arguments: Any) -> dict[str, Any]:
    return task("act", method=method, arguments=arguments, pause=pause)


def raced(field: list[Racer], tasks: list[dict[str, Any]], turn: int = 0) -> list[Any]:
    """What each gave, when every task is the first to hear the pistol once in so many turns."""
    shift = turn % len(tasks)
    told = [outcome.result for outcome in race(field, [*tasks[shift:], *tasks[:shift]])]
    return [*told[len(tasks) - shift :], *told[: len(tasks) - shift]]


def found(run_id: str) -> RunRecord:
    record = store.get(run_id)
    assert record is not None
    return record


def running(run_id: str, **patch: Any) -> None:
    store.create_or_resume(run_id, "t", 10)
    assert store.claim(run_id)
    if patch:
        store.update(run_id, patch)


# Claims


def test_two_that_claim_for_five_seconds_never_hold_the_same_epoch(field: list[Racer]) -> None:
    """Nor does a superseded one ever end the run."""
    store.create_or_resume("r1", "t", 10)
    seconds, least = (2, 2) if connection.vendor == "sqlite" else (5, 50)
    one = task("claim_again_and_again", run_id="r1", seconds=seconds)
    told = raced(field, [one, one])
    epochs = [epoch for each in told for epoch in each["epochs"]]
    assert min(len(each["epochs"]) for each in told) >= least, "they hardly met"
    assert sorted(epochs) == list(range(1, len(epochs) + 1))
    assert [each["wrong"] for each in told] == [[], []]
    assert (found("r1").status, found("r1").driver_epoch) == ("running", len(epochs))

    last = {each["epochs"][-1] for each in told}
    ends = [
        task("end_as", run_id="r1", epoch=each["epochs"][-1], status=status)
        for each, status in zip(told, ("completed", "failed"), strict=True)
    ]
    wrote = raced(field, ends)
    assert wrote == [each["epochs"][-1] == max(last) for each in told]
    assert found("r1").finished_at == max(last)


def test_eight_claims_of_one_epoch_give_one(field: list[Racer]) -> None:
    for turn in range(20):
        store.create_or_resume(f"r{turn}", "t", 10)
        told = raced(field, [act("claim", run_id=f"r{turn}", epoch=None)] * 8)
        assert Counter(one["gave"] for one in told) == {1: 1, "superseded": 7}
        assert found(f"r{turn}").driver_epoch == 1


def test_of_eight_that_want_a_lease_one_gets_it(field: list[Racer]) -> None:
    for turn in range(20):
        store.create_or_resume(f"r{turn}", "t", 10)
        told = raced(field, [act("claim", run_id=f"r{turn}", lease_ms=60_000)] * 8)
        assert Counter(one["gave"] for one in told) == {1: 1, "condition": 7}
        assert found(f"r{turn}").driver_epoch == 1


# Creating and ending


def test_eight_that_create_one_run_get_one_record(field: list[Racer]) -> None:
    for turn in range(20):
        creates = [
            act("create_or_resume", run_id=f"r{turn}", thread_id=f"t{n}", started_at=n)
            for n in range(8)
        ]
        told = raced(field, creates, turn)
        stored = found(f"r{turn}").to_json()
        assert [one["gave"] for one in told] == [stored] * 8
        assert ThreadRun.objects.filter(run_id=f"r{turn}").count() == 1


def test_a_cancel_against_a_completion_has_one_winner_and_one_signal(field: list[Racer]) -> None:
    """F17: a run that was cancelled just before it finished stays so."""
    won: Counter[str] = Counter()
    for turn in range(ROUNDS):
        run_id = f"r{turn}"
        running(run_id)
        ends = {"aborted": 1, "completed": 2}
        tasks = [
            act(
                "update_if",
                run_id=run_id,
                patch={"status": status, "finished_at": at},
                status="running",
            )
            for status, at in ends.items()
        ]
        told = raced(field, tasks, turn)
        record = found(run_id)
        assert [one["gave"] for one in told] == [record.status == status for status in ends]
        assert record.finished_at == ends[record.status]
        announced = [end for one in told for end in one["announced"]]
        assert announced == [[run_id, record.status]]
        won[record.status] += 1
    assert sum(won.values()) == ROUNDS


def test_eight_unguarded_ends_are_announced_once(field: list[Racer]) -> None:
    for turn in range(20):
        running(f"r{turn}")
        end = act("update", run_id=f"r{turn}", patch={"status": "completed", "finished_at": 1})
        told = raced(field, [end] * 8)
        assert sum(len(one["announced"]) for one in told) == 1


# The reaper


def test_a_watched_run_is_never_ended_by_a_reaper_that_meets_its_returning_viewer(
    field: list[Racer],
) -> None:
    """Who finds the run at the epoch of its worker has it: no end, no claim, no cancel."""
    seen: Counter[str] = Counter()
    for turn in range(ROUNDS):
        run_id = f"r{turn}"
        running(run_id, detached_since=10)
        lead = (turn % 10) / 1000  # seconds, for the listing that the reaper begins with
        reaped, viewer = raced(
            field,
            [
                task("sweep", limit=None, stall_ms=3_600_000),
                task("look_in", run_id=run_id, pause=lead),
            ],
            turn,
        )
        record = found(run_id)
        assert record.detached_since is None
        if viewer["epoch"] == 1:
            assert reaped["counts"] in ({}, {"not_claimed": 1}), viewer
            assert (record.status, record.driver_epoch) == ("running", 1)
            assert record.cancel_requested is None
            assert reaped["announced"] == []
            store.update(run_id, {"status": "completed"})  # out of the next one's way
        else:
            assert reaped["counts"] == {"expired": 1}
            assert reaped["announced"] == [[run_id, "aborted"]]
            assert record.status == "aborted"
        seen["viewer" if viewer["epoch"] == 1 else "reaper"] += 1
    assert seen["viewer"], seen
    assert seen["reaper"], seen


def test_eight_reapers_end_each_run_once(field: list[Racer], tmp_path: Any) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    for n in range(40):
        running(f"r{n}", detached_since=10)
    told = raced(field, [task("sweep", ledger=str(ledger), limit=None)] * 8)
    total: Counter[str] = Counter()
    for one in told:
        total.update(one["counts"])
    assert total["expired"] == 40
    assert set(total) <= {"expired", "not_claimed"}
    announced = sorted(run_id for one in told for run_id, _ in one["announced"])
    assert announced == sorted(ledger.read_text().split()) == sorted(f"r{n}" for n in range(40))


def test_all_at_once_on_a_few_runs_gives_no_error(field: list[Racer]) -> None:
    """Every task fails its race over an error of the database: a deadlock, say."""
    seconds = 2 if connection.vendor == "sqlite" else 6
    told = raced(field, [task("churn", seconds=seconds, seed=number) for number in range(8)])
    assert min(told) > 10, "they hardly met"
