"""What the store in the database does beside what every store does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from solid_runs.ag_ui.exceptions import ConfigurationError, StreamError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunThread
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore

YES = {"status": "resolved", "payload": {"approved": True}}

store = DatabaseStore()


def started(run_id: str = "r1") -> RunRecord:
    return store.save(store.reserve("acme", "t", run_id, "d").record.start(store.now()))


def asked(run_id: str = "r1") -> RunRecord:
    questions = [Interrupt(id="i1", reason="tool_call")]
    return store.save(started(run_id).interrupted(questions, store.now()))


@pytest.mark.django_db
def test_a_save_of_an_old_copy_does_not_lower_what_a_heartbeat_wrote_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = started().advance(store.now())
    ahead = copy
    for _ in range(5):
        ahead = ahead.advance(store.now())
    read = store._read

    def read_and_be_overtaken(key: Any) -> Any:
        found = read(key)
        monkeypatch.undo()
        store.heartbeat(ahead)
        return found

    monkeypatch.setattr(store, "_read", read_and_be_overtaken)
    with pytest.raises(StreamError, match="further than this copy"):
        store.save(copy)
    # The heartbeat came in the transaction that was undone, since there is one connection here.
    assert ReservedRun.objects.get().sequence == 0


@pytest.mark.django_db
def test_a_save_that_loses_to_a_reservation_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = RunRecord(
        scope="acme", thread_id="t", run_id="r1", digest="mine", created_at=timezone.now()
    )
    read = store._read

    def read_and_be_overtaken(key: Any) -> Any:
        found = read(key)
        monkeypatch.undo()
        store.reserve("acme", "t", "r1", "theirs")
        return found

    monkeypatch.setattr(store, "_read", read_and_be_overtaken)
    with pytest.raises(StreamError, match="reserved meanwhile"):
        store.save(mine)
    assert not ReservedRun.objects.exists()


@pytest.mark.django_db
def test_a_cancel_of_nothing_leaves_nothing() -> None:
    assert store.request_cancel("acme", "nowhere", "r1") is None
    assert not RunThread.objects.exists()


@pytest.mark.django_db
def test_an_answer_that_an_ended_run_took_can_be_withdrawn() -> None:
    asked()
    store.save(started("dead").finish("failed", store.now()))
    store.redeem_interrupt("acme", "t", "i1", YES, run_id="dead")
    assert store.settle("acme", "t", "i1", "dead") is False
    assert store.abandon("acme", "t", by="ann") == 1
    found = store.find_interrupt("acme", "t", "i1")
    assert found is not None
    assert (found.state, found.cancelled) == (AnswerState.SETTLED, True)


@pytest.mark.django_db
def test_the_order_of_reservation_is_that_of_the_database_whatever_clocks_show() -> None:
    now = timezone.now()
    for run_id, ago in (("r1", 0), ("r2", 10)):
        slow = DatabaseStore(clock=lambda ago=ago: now - timedelta(minutes=ago))
        slow.reserve("acme", "t", run_id, "d")
    latest = store.latest_run("acme", "t")
    assert latest is not None
    assert latest.run_id == "r2"


@contextmanager
def isolated_as(level: str | None) -> Iterator[None]:
    kept, connection.isolation_level = connection.isolation_level, level
    try:
        yield
    finally:
        connection.isolation_level = kept


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "mysql", reason="Others refuse such a write themselves.")
@pytest.mark.parametrize("level", ["repeatable read", "serializable", None])
def test_a_transaction_that_sees_old_rows_is_refused_on_mariadb(level: str | None) -> None:
    record = started()
    with isolated_as(level), transaction.atomic():
        for call in (
            lambda: store.reserve("acme", "t", "r2", "d"),
            lambda: store.save(record),
            lambda: store.redeem_interrupt("acme", "t", "i1", YES),
        ):
            with pytest.raises(ConfigurationError, match="READ COMMITTED"):
                call()
    assert ReservedRun.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("use_tz", [True, False])
def test_a_deadline_by_the_clock_of_django_is_met(settings: Any, use_tz: bool) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "America/Chicago"
    for ahead, is_in_time in ((10, True), (-10, False)):
        deadline = timezone.now() + timedelta(minutes=ahead)
        run_id = f"r{is_in_time}"
        question = Interrupt(id=run_id, reason="tool_call", expires_at=deadline)
        store.save(started(run_id).interrupted([question], store.now()))
        found = store.find_interrupt("acme", "t", run_id)
        assert found is not None
        assert found.expired(store.now()) is not is_in_time
    assert store.stalled(timezone.now() + timedelta(seconds=5)) == []
    started("alive")
    stalled = store.stalled(timezone.now() + timedelta(seconds=5))
    assert [record.run_id for record in stalled] == ["alive"]


def test_a_deadline_may_be_text_as_ag_ui_sends_it() -> None:
    question = Interrupt(id="i", reason="r", expires_at="2026-01-15T09:30:00+01:00")  # type: ignore[arg-type]
    assert question.expires_at == datetime.fromisoformat("2026-01-15T08:30:00Z")
    with pytest.raises(ConfigurationError, match="expires_at"):
        Interrupt(id="i", reason="r", expires_at="soon")  # type: ignore[arg-type]
