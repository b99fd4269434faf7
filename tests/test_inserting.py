"""INSERTs that say whether a key was taken, and the clock of the database that they write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from solid_runs.ag_ui.models import ReservedRun, RunThread
from solid_runs.database_time import DatabaseNow
from solid_runs.inserting import insert_or_touch, insert_unless_taken

pytestmark = pytest.mark.django_db(databases=["default", "other"])

MOMENT = datetime(2026, 1, 15, 9, 30, 11, 123456, tzinfo=UTC)


def values(**more: Any) -> dict[str, Any]:
    times = dict.fromkeys(("reserved_at", "created_at", "updated_at", "alive_at"), MOMENT)
    given = {"scope": "s", "thread_id": "t", "run_id": "r", "digest": "d", "status": "started"}
    return {**given, **times, "sequence": 0, "questions": 0, **more}


def insert(using: str = "default", **more: Any) -> bool:
    return insert_unless_taken(ReservedRun, values(**more), using)


def test_a_row_is_inserted_once() -> None:
    assert insert() is True
    assert insert(digest="another") is False
    run = ReservedRun.objects.get()
    assert (run.digest, run.created_at, run.snapshot) == ("d", MOMENT, None)


def test_a_taken_key_leaves_the_transaction_usable() -> None:
    with transaction.atomic():
        insert()
        insert()
        assert ReservedRun.objects.count() == 1


def test_only_the_database_that_is_named_is_written() -> None:
    insert("other")
    assert ReservedRun.objects.using("other").exists()
    assert not ReservedRun.objects.using("default").exists()


@pytest.mark.parametrize("wrong", [{"digest": None}, {"status": None}])
def test_what_is_wrong_with_a_row_is_no_taken_key(wrong: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        insert(**wrong)
    assert not ReservedRun.objects.exists()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite knows no length.")
def test_what_does_not_fit_is_an_error_and_not_cut() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        insert(status="x" * 40)
    assert not ReservedRun.objects.exists()


def test_a_row_is_touched_where_it_is_there_already() -> None:
    later = MOMENT + timedelta(minutes=1)
    for moment in (MOMENT, later):
        insert_or_touch(RunThread, {"key": "k", "changed_at": moment}, "changed_at", "default")
    assert [row.changed_at for row in RunThread.objects.all()] == [later]


@pytest.mark.parametrize("ago", [timedelta(0), timedelta(minutes=90), timedelta(seconds=-30)])
def test_the_database_tells_its_time_and_how_long_ago(ago: timedelta) -> None:
    before = datetime.now(UTC)
    insert(alive_at=DatabaseNow(ago))
    written = ReservedRun.objects.get().alive_at + ago
    assert abs(written - before) < timedelta(seconds=5), "server and test share a clock here"
    assert not ReservedRun.objects.filter(alive_at__lt=DatabaseNow(ago + timedelta(seconds=5)))
    assert ReservedRun.objects.filter(alive_at__lt=DatabaseNow(ago - timedelta(seconds=5)))
