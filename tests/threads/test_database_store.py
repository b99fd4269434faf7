"""What the stores in the database do beside what every store does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from solid_runs import pruning
from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.signals import run_ended
from solid_runs.threads.stores.database import DatabaseRunStore

pytestmark = pytest.mark.django_db

store = DatabaseRunStore()


@pytest.fixture
def ended() -> Any:
    heard: list[tuple[str, str]] = []

    def note(store: Any, run_id: str, status: str, **kwargs: Any) -> None:
        heard.append((run_id, status))

    run_ended.connect(note)
    yield heard
    run_ended.disconnect(note)


def test_the_clock_of_the_store_is_that_of_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            {
                "sqlite": "SELECT strftime('%s', 'now')",
                "postgresql": "SELECT extract(epoch from clock_timestamp())",
                "mysql": "SELECT UNIX_TIMESTAMP()",
            }[connection.vendor]
        )
        seconds = float(cursor.fetchone()[0])
    assert abs(store.now() - seconds * 1000) < 5_000


@pytest.mark.django_db(databases=["default", "other"])
def test_a_store_uses_no_other_database_than_its_own() -> None:
    elsewhere = DatabaseRunStore(using="other")
    elsewhere.create_or_resume("r1", "t1", 10)
    assert elsewhere.using == "other"
    assert store.get("r1") is None
    assert ThreadRun.objects.using("other").get().run_id == "r1"


def test_an_unknown_stored_status_can_be_ended_and_is_listed_nowhere() -> None:
    store.create_or_resume("r1", "t1", 10)
    store.update("r1", {"detached_since": 5, "driver_epoch": 1})
    ThreadRun.objects.update(status="paused")
    record = store.get("r1")
    assert record is not None
    assert (record.status, record.terminal) == ("paused", False)
    assert store.find_active_run("t1") is None
    assert store.list_reclaimable(10, 0) == store.list_stalled(10, 0) == []
    claim = store.claim("r1")
    assert claim
    assert claim.update({"status": "failed"})


def test_a_signal_is_sent_after_the_commit_and_once(
    ended: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    store.create_or_resume("r1", "t1", 10)
    with django_capture_on_commit_callbacks(execute=True):
        store.update("r1", {"status": "completed"})
        assert ended == []
    assert ended == [("r1", "completed")]
    with django_capture_on_commit_callbacks(execute=True):
        store.update("r1", {"status": "failed"})
        store.update("r1", {"usage": {}})
    assert ended == [("r1", "completed")]


@pytest.mark.django_db(transaction=True)
def test_an_end_that_is_undone_is_not_announced(ended: list[Any]) -> None:
    store.create_or_resume("r1", "t1", 10)
    with transaction.atomic():
        store.update("r1", {"status": "completed"})
        transaction.set_rollback(True)
    assert ended == []
    store.update("r1", {"status": "failed"})
    assert ended == [("r1", "failed")]


def test_a_receiver_that_fails_stops_nobody(django_capture_on_commit_callbacks: Any) -> None:
    def fail(**kwargs: Any) -> None:
        raise ValueError("not mine")

    run_ended.connect(fail)
    try:
        store.create_or_resume("r1", "t1", 10)
        with django_capture_on_commit_callbacks(execute=True):
            store.update("r1", {"status": "completed"})
    finally:
        run_ended.disconnect(fail)
    record = store.get("r1")
    assert record is not None
    assert record.status == "completed"


def test_scopes_are_named_by_their_key() -> None:
    for scope in ("a", 7):
        DatabaseRunStore(scope).create_or_resume("r1", "t1", 10)
    store.create_or_resume("r1", "t1", 10)
    assert DatabaseRunStore.scopes() == ["", "7", "a"]
    assert DatabaseRunStore.scopes_to_sweep() == []
    DatabaseRunStore(7).claim("r1")
    DatabaseRunStore("a").update("r1", {"detached_since": 1})
    assert DatabaseRunStore.scopes_to_sweep() == ["7", "a"]
    assert DatabaseRunStore.of_key("").scope == store.scope
    assert DatabaseRunStore.of_key("7").get("r1") == DatabaseRunStore(7).get("r1")


def test_a_store_that_cannot_be_read_supersedes_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store.create_or_resume("r1", "t1", 10)
    claim = store.claim("r1")
    assert claim

    def unreadable(run_id: str) -> Any:
        raise OperationalError("gone away")

    monkeypatch.setattr(store, "_read", unreadable)
    assert claim.is_superseded() is False
    assert "cannot be read" in caplog.text


def test_what_a_superseded_holder_could_not_write_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store.create_or_resume("r1", "t1", 10)
    claim = store.claim("r1")
    assert claim
    store.claim("r1")
    assert claim.update({"status": "completed"}) is False
    assert re.search("'r1' .* taken over .*since claim 1: its status", caplog.text)


# Pruning


def ended_runs(count: int, thread_id: str = "t1") -> None:
    for number in range(count):
        store.create_or_resume(f"{thread_id}-{number}", thread_id, number)
        store.update(f"{thread_id}-{number}", {"status": "completed", "finished_at": number + 1})


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_pruning_takes_any_number_at_a_time(batch_size: int) -> None:
    ended_runs(5)
    assert store.prune(100, batch_size=batch_size) == 4
    assert [record.run_id for record in store.list_by_thread("t1")] == ["t1-4"]


def test_what_a_pruned_run_asked_goes_with_it() -> None:
    ended_runs(2)
    interrupts = DatabaseInterruptStore()
    for run_id in ("t1-0", "t1-1"):
        interrupts.create(f"of-{run_id}", run_id, "t1", 1, {})
    DatabaseInterruptStore("other").create("of-t1-0", "t1-0", "t1", 1, {})
    assert store.prune(100) == 1
    left = ThreadInterrupt.objects.order_by("pk").values_list("scope", "interrupt_id")
    assert list(left) == [("", "of-t1-1"), ("other", "of-t1-0")]


def test_a_run_that_is_written_while_it_is_pruned_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_runs(3)
    batches = pruning.batches

    def revived(*args: Any) -> Any:
        for keys in batches(*args):
            ThreadRun.objects.filter(run_id="t1-0").update(status="running")
            yield keys

    monkeypatch.setattr(pruning, "batches", revived)
    assert store.prune(100) == 1
    assert store.get("t1-0") is not None


def test_a_batch_of_which_nothing_is_left_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_runs(2)
    batches = pruning.batches

    def taken(*args: Any) -> Any:
        for keys in batches(*args):
            ThreadRun.objects.filter(pk__in=keys).delete()
            yield keys

    monkeypatch.setattr(pruning, "batches", taken)
    assert store.prune(100) == 0
