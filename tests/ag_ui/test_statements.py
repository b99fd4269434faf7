"""How often the database store talks to its database; BEGIN, COMMIT and savepoints apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from solid_runs.ag_ui.exceptions import ResumeRejectedError
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore

pytestmark = pytest.mark.django_db

CONTROL = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET )")
APPROVED = {"status": "resolved", "payload": {"approved": True}}
ENTRY = {"interruptId": "i1", **APPROVED}

store = DatabaseStore()
key = ("tenant", "t")


def statements(call: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        call()
    return [query["sql"] for query in captured if not CONTROL.match(query["sql"])]


def assert_count(count: int, call: Callable[[], Any]) -> None:
    found = statements(call)
    assert len(found) == count, "\n".join(found)


def started(run: str = "r1") -> RunRecord:
    record = store.reserve(*key, run, "d").record
    return store.save(record.start(store.now(), {"step": 1}))


def asked(count: int = 1) -> RunRecord:
    interrupts = [Interrupt(id=f"i{n}", reason="tool_call") for n in range(1, count + 1)]
    return store.save(started().interrupted(interrupts, store.now()))


def test_a_new_reserve_is_one_statement() -> None:
    assert_count(1, lambda: store.reserve(*key, "r1", "d", trace_id="t"))


def test_an_attached_reserve_is_two_and_three_where_the_run_has_asked() -> None:
    started()
    assert_count(2, lambda: store.reserve(*key, "r1", "d"))
    store.save(started("r2").interrupted([Interrupt(id="i1", reason="ask")], store.now()))
    assert_count(3, lambda: store.reserve(*key, "r2", "d"))


def test_a_reserve_that_rejects_is_four() -> None:
    assert_count(4, lambda: store.reserve(*key, "r1", "d", policy="reject"))
    assert_count(2, lambda: store.reserve(*key, "r1", "d", policy="reject"))


def test_an_admission_is_four_and_with_an_answer_seven() -> None:
    assert_count(4, lambda: store.admit(*key, "r1", "d"))
    record = store.find(*key, "r1")
    assert record is not None
    store.save(record.interrupted([Interrupt(id="i1", reason="ask")], store.now()))
    assert_count(7, lambda: store.admit(*key, "r2", "d", [ENTRY]))


@pytest.mark.parametrize("run_id", [None, "r2"])
def test_a_redeem_is_four(run_id: str | None) -> None:
    asked()
    assert_count(4, lambda: store.redeem_interrupt(*key, "i1", APPROVED, run_id=run_id))


def test_a_replayed_redeem_is_two() -> None:
    asked()
    store.redeem_interrupt(*key, "i1", APPROVED, run_id="r2")
    assert_count(2, lambda: store.redeem_interrupt(*key, "i1", APPROVED, run_id="r2"))


def test_a_redeem_of_a_free_answer_is_four() -> None:
    asked()
    store.answer(*key, "i1", APPROVED, by="anna")
    assert_count(4, lambda: store.redeem_interrupt(*key, "i1", APPROVED, run_id="r2"))


def test_a_refused_redeem_is_at_most_four() -> None:
    asked()
    store.redeem_interrupt(*key, "i1", APPROVED, run_id=started("r2").run_id)

    def refused() -> None:
        with pytest.raises(ResumeRejectedError):
            store.redeem_interrupt(*key, "i1", APPROVED, run_id="r3")

    assert len(statements(refused)) <= 4


@pytest.mark.parametrize("run_id", ["r2", "r3"])
def test_a_settle_is_one_whether_it_permits_or_not(run_id: str) -> None:
    asked()
    store.redeem_interrupt(*key, "i1", APPROVED, run_id="r2")
    assert_count(1, lambda: store.settle(*key, "i1", run_id))


def test_a_heartbeat_is_two() -> None:
    record = started()
    assert_count(2, lambda: store.heartbeat(record.advance(store.now())))


def test_a_save_of_a_start_is_three() -> None:
    record = store.reserve(*key, "r1", "d").record
    assert_count(3, lambda: store.save(record.start(store.now(), {"step": 1})))


def test_a_save_of_an_end_is_four() -> None:
    record = started()
    assert_count(4, lambda: store.save(record.finish("succeeded", store.now())))


@pytest.mark.parametrize("count", [1, 5])
def test_many_questions_are_asked_in_as_many_statements_as_one(count: int) -> None:
    record = started()
    interrupts = [Interrupt(id=f"i{n}", reason="ask") for n in range(count)]
    found = statements(lambda: store.save(record.interrupted(interrupts, store.now())))
    assert len(found) <= 7, "\n".join(found)


@pytest.mark.parametrize("read", ["find", "latest_run", "latest_interrupted", "find_interrupt"])
def test_a_read_is_at_most_two(read: str) -> None:
    asked(3)
    arguments = {"find": ["r1"], "find_interrupt": ["i1"]}.get(read, [])
    assert len(statements(lambda: getattr(store, read)(*key, *arguments))) <= 2


def test_a_search_for_stalled_runs_is_one_at_any_number() -> None:
    for number in range(10):
        started(f"r{number}")
    past = timedelta(seconds=-1)
    assert_count(1, lambda: store.stalled(past))
    assert len(store.stalled(past)) == 10
