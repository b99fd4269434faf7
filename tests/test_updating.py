"""UPDATEs under conditions."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError

from solid_runs.database_time import DatabaseMilliseconds, database_milliseconds
from solid_runs.patience import past_deadlocks
from solid_runs.threads.models import ThreadRun
from solid_runs.updating import update_where

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def run() -> ThreadRun:
    return ThreadRun.objects.create(run_id="r", thread_id="t", status="running", started_at=1)


def update(values: dict[str, Any], *conditions: Any, using: str = "default") -> int:
    return update_where(ThreadRun, values, conditions or [("run_id = %s", ["r"])], using)


def test_what_is_named_is_written_and_nothing_else(run: ThreadRun) -> None:
    assert update({"usage": {"100%": "%s"}, "cancel_requested": False, "finished_at": None}) == 1
    run.refresh_from_db()
    assert (run.usage, run.cancel_requested, run.finished_at) == ({"100%": "%s"}, False, None)
    assert (run.status, run.started_at) == ("running", 1)


def test_all_conditions_must_hold(run: ThreadRun) -> None:
    known, wrong = ("run_id = %s", ["r"]), ("status IN (%s, %s)", ["failed", "aborted"])
    assert update({"finished_at": 5}, known, wrong) == 0
    assert update({"finished_at": 5}, known, ("finished_at IS NULL", [])) == 1
    run.refresh_from_db()
    assert run.finished_at == 5


def test_a_row_that_is_so_already_counts() -> None:
    assert update({"status": "running"}) == 1


def test_an_expression_is_computed_by_the_database(run: ThreadRun) -> None:
    assert update({"heartbeat_at": DatabaseMilliseconds(), "leased_until": DatabaseMilliseconds(5)})
    run.refresh_from_db()
    assert run.leased_until - run.heartbeat_at == 5
    assert abs(database_milliseconds(connection) - run.heartbeat_at) < 60_000


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database_is_left_alone(run: ThreadRun) -> None:
    assert update({"status": "failed"}, using="other") == 0
    run.refresh_from_db()
    assert run.status == "running"


def test_a_statement_that_fails_ends_its_transaction() -> None:
    with transaction.atomic():
        with pytest.raises(DatabaseError):
            update({"status": "failed"}, ("there_is_no_such_column = %s", [1]))
        with pytest.raises(TransactionManagementError):
            ThreadRun.objects.exists()
        transaction.set_rollback(True)


DEADLOCK = OperationalError(1213, "Deadlock found")


def failing(error: Exception, times: int) -> Any:
    left = [error] * times

    def work() -> str:
        if left:
            raise left.pop()
        return "done"

    return work


@pytest.mark.django_db(transaction=True)
def test_the_victim_of_a_deadlock_tries_again() -> None:
    assert past_deadlocks(failing(DEADLOCK, 4), "default") == "done"
    with pytest.raises(OperationalError):
        past_deadlocks(failing(DEADLOCK, 5), "default")


@pytest.mark.django_db(transaction=True)
def test_another_error_is_not_tried_again() -> None:
    with pytest.raises(OperationalError, match="gone away"):
        past_deadlocks(failing(OperationalError(2006, "gone away"), 1), "default")


def test_a_transaction_of_the_callers_is_left_to_the_caller() -> None:
    with pytest.raises(OperationalError):
        past_deadlocks(failing(DEADLOCK, 1), "default")
