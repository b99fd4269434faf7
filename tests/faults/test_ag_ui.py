"""Claiming a run once, answering a question once, and seeing only one's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connections, transaction

from solid_runs.ag_ui.digests import digest, digest_input
from solid_runs.ag_ui.exceptions import (
    InterruptsPendingError,
    ResumeRejectedError,
    RunConflictError,
    StreamError,
)
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from tests.models import Document

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TOKYO = timezone(timedelta(hours=9))  # the TIME_ZONE of the tests
YES = {"status": "resolved", "payload": {"approved": True}}
NO = {"status": "resolved", "payload": {"approved": False}}
ENTRIES = [{"interruptId": "i1", **YES}]

on_every_store = pytest.mark.parametrize("make", [MemoryStore, DatabaseStore])


def asked(store: Any, run_id: str = "r1", scope: Any = "s", **fields: Any) -> Any:
    """A run that ended with the question i1."""
    record = store.reserve(scope, "t", run_id, "d").record.start(store.now())
    question = Interrupt(id="i1", reason="tool_call", **fields)
    return store.save(record.interrupted([question], store.now()))


def lifecycle(store: Any, prefix: str = "") -> None:
    """Every method once, as a conversation comes by them."""
    r1, r2, r3 = (f"{prefix}{name}" for name in ("r1", "r2", "r3"))
    asked(store, r1)
    assert store.reserve("s", "t", r1, "d").attached
    assert store.admit("s", "t", r2, "d").offered
    assert store.admit("s", "t", r2, "d", ENTRIES).new
    record = store.save(store.find("s", "t", r2).start(store.now()))
    assert store.heartbeat(record) is False
    assert store.settle("s", "t", "i1", r2) is True
    assert store.request_cancel("s", "t", r2).ended is False
    assert store.heartbeat(record) is True
    store.save(record.finish("cancelled", store.now()))
    assert store.release_settled("s", "t", r1, "i1", by="ann").state is AnswerState.FREE
    assert store.redeem_interrupt("s", "t", "i1", YES, run_id=r3).holds is True
    assert store.release("s", "t", r3) == 1
    assert store.abandon("s", "t") == 1
    assert store.latest_run("s", "t").run_id == r2
    assert store.latest_interrupted("s", "t").run_id == r1
    assert store.find_interrupt("s", "t", "i1").state is AnswerState.SETTLED
    assert store.reserve("s", "t", r3, "d", policy="reject").new
    assert store.stalled(MINUTE) == []
    assert store.fail_stalled(timedelta(0) - MINUTE)[0].run_id == r3
    assert store.prune(timedelta(0) - MINUTE) == 1  # neither the last one nor the one that asked


# F21, F57: rows on another database


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_f21_a_store_on_another_alias_needs_no_transaction_of_the_caller(
    django_assert_num_queries: Any,
) -> None:
    with django_assert_num_queries(0, connection=connections["default"]):
        lifecycle(DatabaseStore("other"))
    assert ReservedRun.objects.using("other").exists()
    assert not ReservedRun.objects.using("default").exists()


class Elsewhere:
    """Sends the tables of the store to ``other``."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "solid_runs_ag_ui" else None

    db_for_write = db_for_read


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_f57_a_store_goes_where_the_router_says_and_nowhere_else(
    settings: Any, django_assert_num_queries: Any
) -> None:
    settings.DATABASE_ROUTERS = ["tests.faults.test_ag_ui.Elsewhere"]
    store = DatabaseStore()
    assert store.using == "other"
    with django_assert_num_queries(0, connection=connections["default"]):
        lifecycle(store)
    assert RunInterrupt.objects.using("other").exists()


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_f57_signals_wait_for_the_commit_of_the_database_that_the_rows_are_on() -> None:
    store, heard = DatabaseStore("other"), []

    def hear(**kwargs: Any) -> None:
        heard.append(kwargs)

    interrupt_decided.connect(hear)
    run_interrupted.connect(hear)
    try:
        with transaction.atomic("default"):
            asked(store)
            assert len(heard) == 1, "the other database has committed"
        with transaction.atomic("other"):
            store.redeem_interrupt("s", "t", "i1", YES)
            assert len(heard) == 1, "this one has not"
        assert len(heard) == 2
        with transaction.atomic("other"):
            asked(store, "r2")
            transaction.set_rollback(True, using="other")
        assert len(heard) == 2, "what was rolled back was not"
    finally:
        interrupt_decided.disconnect(hear)
        run_interrupted.disconnect(hear)


# F23: refusals inside a transaction


def attached(store: Any) -> None:
    assert store.reserve("s", "t", "r1", "d").attached


def conflict(store: Any) -> None:
    for call in (store.reserve, store.admit):
        with pytest.raises(RunConflictError):
            call("s", "t", "r1", "another")


def stale_save(store: Any) -> None:
    copy = store.reserve("s", "t", "r2", "d").record
    store.save(copy.finish("failed", store.now()))
    with pytest.raises(StreamError):
        store.save(copy.finish("succeeded", store.now()))
    with pytest.raises(StreamError):
        store.heartbeat(copy)


def refused_answer(store: Any) -> None:
    store.redeem_interrupt("s", "t", "i1", YES)
    with pytest.raises(ResumeRejectedError):
        store.redeem_interrupt("s", "t", "i1", NO)


def refused_admission(store: Any) -> None:
    with pytest.raises(ResumeRejectedError):
        store.admit("s", "t", "r3", "d", [*ENTRIES, *ENTRIES])
    with pytest.raises(InterruptsPendingError):
        store.admit("s", "t", "r3", "d", offer=False)
    assert store.find("s", "t", "r3") is None


REFUSALS = [attached, conflict, stale_save, refused_answer, refused_admission]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda refuse: refuse.__name__)
def test_f23_the_surrounding_transaction_stays_usable(refuse: Callable[[Any], None]) -> None:
    store = DatabaseStore()
    asked(store)
    with transaction.atomic():
        Document.objects.create(title="before")
        refuse(store)
        Document.objects.create(title="after")
        assert store.reserve("s", "t9", "r9", "d").new
    assert set(Document.objects.values_list("title", flat=True)) >= {"before", "after"}
    assert store.find("s", "t9", "r9") is not None


# F30, F31, F32: one identity, claimed once


@pytest.mark.django_db
@on_every_store
def test_f30_a_run_id_with_another_input_is_a_conflict(make: Any) -> None:
    store = make()
    first = store.reserve("s", "t", "r", "digest A").record
    with pytest.raises(RunConflictError):
        store.reserve("s", "t", "r", "digest B")
    assert store.find("s", "t", "r").to_storage() == first.to_storage()


def in_threads(count: int, call: Callable[[int], Any]) -> list[Any]:
    """What each of so many threads got, or the error that it met."""
    ready, results = threading.Barrier(count), [None] * count

    def run(number: int) -> None:
        try:
            ready.wait(30)
            results[number] = call(number)
        except Exception as error:
            results[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


@pytest.mark.django_db(transaction=True)
@on_every_store
def test_f31_of_twenty_that_reserve_one_identity_one_is_new(make: Any) -> None:
    store = make()
    results = in_threads(20, lambda number: store.reserve("s", "t", "r", "d"))
    assert [one for one in results if isinstance(one, Exception)] == []
    assert [one.new for one in results].count(True) == 1
    assert len({str(one.record.to_storage()) for one in results}) == 1
    if make is DatabaseStore:
        assert ReservedRun.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@on_every_store
def test_f31_of_twenty_that_admit_one_identity_one_is_new(make: Any) -> None:
    store = make()
    results = in_threads(20, lambda number: store.admit("s", "t", "r", "d"))
    assert [one for one in results if isinstance(one, Exception)] == []
    assert [one.new for one in results].count(True) == 1


@pytest.mark.django_db
@on_every_store
def test_f32_a_run_id_of_another_tenant_is_a_row_of_its_own(make: Any) -> None:
    store = make()
    mine = store.save(store.reserve("a", "t", "R1", "d").record.start(NOON, {"secret": 1}))
    theirs = store.reserve("b", "t", "R1", "d")
    assert theirs.new
    assert theirs.record.snapshot is None
    store.save(theirs.record.finish("failed", NOON))
    assert store.find("a", "t", "R1").to_storage() == mine.to_storage()
    assert store.admit("c", "t", "R1", "another digest").new


# F33: ids are compared exactly


@pytest.mark.django_db
@on_every_store
@pytest.mark.parametrize(
    ("one", "other"), [("run_aB", "run_Ab"), ("run", "run "), ("run", "rün"), ("ss", "ß")]
)
def test_f33_ids_that_a_collation_would_merge_are_two(make: Any, one: str, other: str) -> None:
    store = make()
    store.reserve("s", "t", one, "d1")
    assert store.reserve("s", "t", other, "d2").new
    assert store.find("s", "t", one).digest == "d1"
    assert store.find("s", "t", other).digest == "d2"


@pytest.mark.django_db
@on_every_store
def test_f33_only_the_run_that_holds_an_answer_may_act_on_it(make: Any) -> None:
    store = make()
    asked(store)
    store.redeem_interrupt("s", "t", "i1", YES, run_id="run_a")
    for other in ("run_A", "run_a "):
        assert store.settle("s", "t", "i1", other) is False
        assert store.settle("S", "t", "i1", "run_a") is False
    assert store.settle("s", "t", "I1", "run_a") is False
    assert store.settle("s", "t", "i1", "run_a") is True


# F34: the digest of a request


def test_f34_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest([1, 2]) != digest([2, 1])
    assert digest("1") != digest(1)


@pytest.mark.django_db
def test_f34_a_digest_of_what_was_stored_is_that_of_what_was_given() -> None:
    store = DatabaseStore()
    given = {"b": 1.0, "a": [1, {"z": None, "y": "é"}], "forwardedProps": {"n": 10**20}}
    store.save(store.reserve("s", "t", "r", "d").record.start(NOON, given))
    assert digest(store.find("s", "t", "r").snapshot) == digest(given)


@pytest.mark.django_db
@on_every_store
def test_f34_a_retry_with_its_keys_in_another_order_is_attached(make: Any) -> None:
    store = make()
    first = {"messages": [{"role": "user", "id": "m1", "content": "Hi"}], "forwardedProps": {}}
    retry = {"forwardedProps": {}, "messages": [{"content": "Hi", "id": "m1", "role": "user"}]}
    store.reserve("s", "t", "r", digest(digest_input(first)))
    assert store.reserve("s", "t", "r", digest(digest_input(retry))).attached


# F35, F36: an answer is given once, by those who may


@pytest.mark.django_db(transaction=True)
@on_every_store
def test_f35_of_twenty_runs_that_bring_an_answer_one_holds_it(make: Any) -> None:
    store = make()
    asked(store)
    results = in_threads(
        20, lambda n: store.redeem_interrupt("s", "t", "i1", YES, run_id=f"run{n}")
    )
    refused = [one for one in results if isinstance(one, Exception)]
    (taken,) = [one for one in results if not isinstance(one, Exception)]
    assert {type(one) for one in refused} == {ResumeRejectedError}
    assert {one.code for one in refused} == {"interrupt_answered"}
    assert taken[1:] == (True, True)
    assert store.find_interrupt("s", "t", "i1") == taken.interrupt


@pytest.mark.django_db(transaction=True)
@on_every_store
def test_f35_of_twenty_answers_that_disagree_the_first_is_stored(make: Any) -> None:
    store = make()
    asked(store)
    results = in_threads(
        20,
        lambda n: store.redeem_interrupt("s", "t", "i1", {"status": "resolved", "payload": n}),
    )
    (taken,) = [one for one in results if not isinstance(one, Exception)]
    assert {type(one) for one in results if one is not taken} == {ResumeRejectedError}
    assert store.find_interrupt("s", "t", "i1").decision == taken.interrupt.decision


@pytest.mark.django_db(transaction=True)
@on_every_store
def test_f35_of_twenty_that_act_on_an_answer_one_may(make: Any) -> None:
    store = make()
    asked(store)
    store.redeem_interrupt("s", "t", "i1", YES, run_id="r2")
    results = in_threads(20, lambda number: store.settle("s", "t", "i1", "r2"))
    assert sorted(map(str, results)) == ["False"] * 19 + ["True"]


@pytest.mark.django_db
@on_every_store
def test_f36_an_interrupt_of_another_tenant_is_not_found_and_stays_open(make: Any) -> None:
    store = make()
    asked(store, scope="a")
    store.reserve("b", "t", "r1", "d")
    for call in (
        lambda: store.redeem_interrupt("b", "t", "i1", YES),
        lambda: store.redeem_interrupt("b", "t", "i1", YES, run_id="r1"),
        lambda: store.answer("b", "t", "i1", YES, by="mallory"),
        lambda: store.resume("b", "t", ENTRIES, "r1"),
        lambda: store.admit("b", "t", "r2", "d", ENTRIES),
        lambda: store.release_settled("b", "t", "r1", "i1", by="mallory"),
    ):
        with pytest.raises(ResumeRejectedError) as caught:
            call()
        assert caught.value.code == "resume_rejected"
    assert store.abandon("b", "t") == 0
    assert store.find_interrupt("a", "t", "i1").pending


@pytest.mark.django_db
@on_every_store
def test_f36_an_interrupt_of_another_thread_is_not_found(make: Any) -> None:
    store = make()
    asked(store)
    store.reserve("s", "t2", "r1", "d")
    with pytest.raises(ResumeRejectedError):
        store.redeem_interrupt("s", "t2", "i1", YES, run_id="r1")
    assert store.find_interrupt("s", "t", "i1").pending


# F37: deadlines


@pytest.fixture(params=[True, False], ids=["USE_TZ", "no USE_TZ"])
def zone(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    settings.USE_TZ = request.param
    return


@pytest.mark.django_db
@pytest.mark.usefixtures("zone")
@on_every_store
def test_f37_a_naive_deadline_means_utc_or_local_time_without_use_tz(
    make: Any, settings: Any
) -> None:
    store = make()
    asked(store, expires_at=datetime(2030, 1, 1))
    deadline = datetime(2030, 1, 1, tzinfo=UTC if settings.USE_TZ else TOKYO)
    assert store.find_interrupt("s", "t", "i1").expires_at == deadline
    with pytest.raises(ResumeRejectedError):
        store.redeem_interrupt("s", "t", "i1", YES, deadline)
    in_time = deadline - timedelta(microseconds=1)
    assert store.redeem_interrupt("s", "t", "i1", YES, in_time).recorded


@pytest.mark.django_db
@pytest.mark.usefixtures("zone")
@on_every_store
@pytest.mark.parametrize(
    "now",
    [
        datetime(2030, 1, 1),
        datetime(2030, 1, 1, tzinfo=UTC),
        datetime(2030, 1, 1, 9, tzinfo=TOKYO),
    ],
)
def test_f37_an_answer_after_the_deadline_has_expired(
    make: Any, now: datetime, settings: Any
) -> None:
    store = make()
    naive_is_local = now.tzinfo is None and not settings.USE_TZ
    asked(store, expires_at=datetime(2030, 1, 1, tzinfo=TOKYO if naive_is_local else UTC))
    with pytest.raises(ResumeRejectedError) as caught:
        store.redeem_interrupt("s", "t", "i1", YES, now)
    assert caught.value.code == "interrupt_expired"
    assert store.redeem_interrupt("s", "t", "i1", YES, now - timedelta(microseconds=1)).recorded


@pytest.mark.django_db
@pytest.mark.usefixtures("zone")
@on_every_store
def test_f37_times_are_aware_and_right_whatever_the_settings_say(make: Any) -> None:
    store, before = make(), datetime.now(UTC)
    record = asked(store, expires_at=before + timedelta(hours=1))
    store.redeem_interrupt("s", "t", "i1", YES)
    found = store.find("s", "t", "r1")
    for moment in (record.created_at, found.created_at, found.interrupts[0].decided_at):
        assert moment.utcoffset() == timedelta(0)
        assert timedelta(0) <= moment - before < MINUTE
    assert found.created_at == record.created_at


@pytest.mark.django_db
@pytest.mark.usefixtures("zone")
@on_every_store
def test_f37_silence_is_told_right_whatever_the_settings_say(make: Any) -> None:
    store = make()
    store.save(store.reserve("s", "t", "r", "d").record.start(store.now()))
    assert store.stalled(MINUTE) == []
    assert store.stalled(datetime.now(UTC) - MINUTE) == []
    assert len(store.stalled(-MINUTE)) == 1
    assert len(store.stalled(datetime.now(UTC) + MINUTE)) == 1


# F66: a row fetched by its id alone


def said_to(store: Any, scope: str) -> list[Any]:
    """What a tenant is told of the runs of thread t, by every method."""
    calls: list[Callable[[], Any]] = [
        lambda: store.find(scope, "t", "r1"),
        lambda: store.latest_run(scope, "t"),
        lambda: store.latest_interrupted(scope, "t"),
        lambda: store.find_interrupt(scope, "t", "i1"),
        lambda: store.redeem_interrupt(scope, "t", "i1", YES),
        lambda: store.answer(scope, "t", "i1", YES, by="bob"),
        lambda: store.resume(scope, "t", ENTRIES, "r2"),
        lambda: store.request_cancel(scope, "t", "r1"),
        lambda: store.settle(scope, "t", "i1", "r2"),
        lambda: store.release(scope, "t", "r2"),
        lambda: store.abandon(scope, "t"),
        lambda: store.release_settled(scope, "t", "r1", "i1", by="bob"),
    ]
    told: list[Any] = []
    for call in calls:
        try:
            told.append(call())
        except ResumeRejectedError as refused:
            told.append((str(refused), refused.code, refused.interrupt_ids))
    return told


@pytest.mark.django_db
@on_every_store
def test_f66_another_tenant_is_told_what_it_would_be_told_of_nothing(make: Any) -> None:
    store = make()
    of_nothing = said_to(store, "b")
    asked(store, scope="a")
    assert said_to(store, "b") == of_nothing
    assert said_to(store, "a") != of_nothing
