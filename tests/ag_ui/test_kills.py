"""Processes that are killed in the middle of a run, and processes whose clocks are wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solid_runs.ag_ui.exceptions import ResumeRejectedError, StreamError
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore
from tests.ag_ui.racers import APPROVED, DENIED, SCOPE
from tests.races import Racer, race, racers

pytestmark = pytest.mark.usefixtures("committed")

CANCELLED = {"status": "cancelled"}
LIMIT = timedelta(milliseconds=200)
"""How long an owner may be silent here."""

store = DatabaseStore()
key = (SCOPE, "t")


@pytest.fixture
def field(committed: None) -> Iterator[list[Racer]]:
    with racers(2) as processes:
        yield processes


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where the tool of the agent leaves a line each time that it runs."""
    path = tmp_path / "ledger"
    path.touch()
    return path


def ran(ledger: Path) -> list[str]:
    return ledger.read_text().split()


def entry(decision: dict[str, Any]) -> dict[str, Any]:
    return {"interruptId": "i1", **decision}


def asked(**given: Any) -> None:
    record = store.reserve(*key, "r1", "d").record
    record = store.save(record.start(store.now()))
    store.save(record.interrupted([Interrupt(id="i1", reason="ask", **given)], store.now()))


def found(run: str) -> RunRecord:
    record = store.find(*key, run)
    assert record is not None
    return record


def answer() -> tuple[str, str | None]:
    interrupt = store.find_interrupt(*key, "i1")
    assert interrupt is not None
    return interrupt.state.value, interrupt.redeemed_by


def task(ledger: Path, run: str, **given: Any) -> dict[str, Any]:
    given = {"entries": [entry(APPROVED)], **given}
    return {"task": "work", "thread": "t", "run_id": run, "ledger": str(ledger), **given}


def kill(racer: Racer, work: dict[str, Any]) -> None:
    """Let a process work until it is killed, and wait until it has been silent for too long."""
    with pytest.raises((RuntimeError, ConnectionError), match=r"died|reset"):
        race([racer], [work])
    time.sleep(LIMIT.total_seconds() * 1.5)


def finish(racer: Racer, work: dict[str, Any]) -> int:
    """How often the tool was allowed to run."""
    (outcome,) = race([racer], [work])
    return int(outcome.result)


def reap() -> list[str]:
    return [record.run_id for record in store.fail_stalled(LIMIT)]


# S4: before the permission


def test_a_run_killed_before_its_permission_leaves_the_answer_to_the_next(
    field: list[Racer], ledger: Path
) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="settle"))
    assert (found("r2").status, answer()) == ("started", ("held", "r2"))
    assert store.admit(*key, "r2", "d", [entry(APPROVED)]).attached

    assert [record.run_id for record in store.stalled(LIMIT)] == ["r2"]
    assert reap() == ["r2"]
    assert found("r2").status == "failed"
    assert found("r2").failure["code"] == "stalled"
    assert answer() == ("free", None)
    assert store.admit(*key, "r2", "d", [entry(APPROVED)]).record.failure["code"] == "stalled"
    assert ran(ledger) == []

    assert finish(field[1], task(ledger, "r3")) == 1
    assert ran(ledger) == ["r3"]
    assert answer() == ("settled", "r3")


def test_a_retry_before_the_janitor_comes_neither_runs_nor_loses_the_answer(
    field: list[Racer], ledger: Path
) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="settle"))
    with pytest.raises(ResumeRejectedError) as refused:
        store.admit(*key, "r3", "d", [entry(APPROVED)])
    assert refused.value.code == "interrupt_answered"
    assert store.find(*key, "r3") is None
    assert answer() == ("held", "r2")


def test_a_changed_mind_is_refused_and_may_be_withdrawn_after_the_kill(
    field: list[Racer], ledger: Path
) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="settle"))
    assert reap() == ["r2"]
    with pytest.raises(ResumeRejectedError) as refused:
        store.admit(*key, "r3", "d", [entry(DENIED)])
    assert refused.value.code == "interrupt_answered"
    assert answer() == ("free", None)
    assert finish(field[1], task(ledger, "r4", entries=[entry(CANCELLED)])) == 0
    assert answer() == ("settled", "r4")
    assert ran(ledger) == []


def test_a_plain_run_takes_what_a_killed_one_left(field: list[Racer], ledger: Path) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="settle"))
    assert reap() == ["r2"]
    assert finish(field[1], task(ledger, "r3", entries=[])) == 1
    assert ran(ledger) == ["r3"]


# S5: after it


@pytest.mark.parametrize(("dies", "lines"), [("tool", []), ("finish", ["r2"])])
def test_a_run_killed_after_its_permission_is_never_repeated(
    dies: str, lines: list[str], field: list[Racer], ledger: Path
) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies=dies))
    assert reap() == ["r2"]
    assert (found("r2").status, answer()) == ("failed", ("settled", "r2"))
    with pytest.raises(ResumeRejectedError) as refused:
        store.admit(*key, "r3", "d", [entry(APPROVED)])
    assert refused.value.code == "interrupt_answered"
    assert store.find(*key, "r3") is None

    assert finish(field[1], task(ledger, "r4", entries=[entry(CANCELLED)])) == 0
    assert answer() == ("settled", "r2")
    assert store.find_interrupt(*key, "i1").decision.status == "resolved"  # type: ignore[union-attr]
    assert ran(ledger) == lines


def test_a_person_may_have_it_repeated(field: list[Racer], ledger: Path) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="tool"))
    assert reap() == ["r2"]
    store.release_settled(*key, "r1", "i1", by="anna")
    assert finish(field[1], task(ledger, "r3")) == 1
    assert ran(ledger) == ["r3"]


# What a killed or late owner can still do


def test_a_killed_reservation_is_found_and_never_repeated_by_itself(
    field: list[Racer], ledger: Path
) -> None:
    kill(field[0], task(ledger, "r1", entries=[], dies="finish"))
    before = ReservedRun.objects.count()
    assert reap() == ["r1"]
    assert reap() == []
    assert ReservedRun.objects.count() == before
    assert (found("r1").status, found("r1").failure["code"]) == ("failed", "stalled")


def test_an_owner_that_comes_back_late_changes_nothing(field: list[Racer], ledger: Path) -> None:
    asked()
    admitted = store.admit(*key, "r2", "d", [entry(APPROVED)])
    late = store.save(admitted.record.start(store.now()))
    time.sleep(LIMIT.total_seconds() * 1.5)
    assert reap() == ["r2"]
    holder = store.admit(*key, "r3", "d", [entry(APPROVED)])
    assert holder.answers[0].holds
    before = found("r2"), found("r3"), answer()

    for write in (
        partial(store.heartbeat, late.advance(store.now())),
        partial(store.save, late.advance(store.now())),
        partial(store.save, late.finish("succeeded", store.now())),
    ):
        with pytest.raises(StreamError):
            write()
    assert store.settle(*key, "i1", "r2") is False
    assert store.release(*key, "r2") == 0
    assert (found("r2"), found("r3"), answer()) == before
    assert store.settle(*key, "i1", "r3") is True


# Clocks


@pytest.mark.parametrize("wrong_by", [-10, 0, 10])
def test_a_run_that_lasts_is_not_failed_whatever_its_clock_shows(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    """It works three times as long as an owner may be silent."""
    work = task(ledger, "r1", entries=[], wrong_by=wrong_by, beats=3)
    worked, reaped = race(field, [work, {"task": "reap", "silent": 1, "again_for": 3.2}])
    assert reaped.result == []
    assert worked.result == 0
    assert found("r1").status == "succeeded"


@pytest.mark.parametrize("wrong_by", [-10, 10])
def test_a_janitor_with_a_wrong_clock_fails_no_live_run(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    work = task(ledger, "r1", entries=[], beats=1)
    janitor = {"task": "reap", "silent": 5, "again_for": 1.2, "wrong_by": wrong_by}
    assert [outcome.result for outcome in race(field, [work, janitor])] == [0, []]
    assert found("r1").status == "succeeded"


@pytest.mark.parametrize("wrong_by", [-10, 10])
def test_a_dead_run_is_found_whatever_its_clock_showed(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    asked()
    kill(field[0], task(ledger, "r2", dies="settle", wrong_by=wrong_by))
    (outcome,) = race(field[1:], [{"task": "reap", "silent": 0.2, "wrong_by": -wrong_by}])
    assert outcome.result == ["r2"]
    assert answer() == ("free", None)


@pytest.mark.parametrize("wrong_by", [-10, 10])
def test_a_cancel_tells_a_live_owner_from_a_dead_one_whatever_its_clock_shows(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    kill(field[0], task(ledger, "r1", entries=[], dies="finish", wrong_by=wrong_by))
    request = store.request_cancel(*key, "r1")
    assert request is not None
    assert not request.ended
    request = DatabaseStore(stall_after=LIMIT).request_cancel(*key, "r1")
    assert request is not None
    assert request.ended


@pytest.mark.parametrize("wrong_by", [-10, 10])
def test_the_latest_run_is_the_last_reserved_whatever_its_clock_shows(
    wrong_by: int, field: list[Racer], ledger: Path
) -> None:
    for run, shift in (("r1", -wrong_by), ("r2", wrong_by), ("r3", 0)):
        finish(field[0], task(ledger, run, entries=[], wrong_by=shift))
        latest = store.latest_run(*key)
        assert latest is not None
        assert latest.run_id == run
