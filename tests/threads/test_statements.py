"""How often the stores in the database talk to it; BEGIN, COMMIT and savepoints apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.stores.database import DatabaseRunStore

pytestmark = pytest.mark.django_db

CONTROL = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET )")
USAGE = {"promptTokens": 3, "completionTokens": 4, "totalTokens": 7}

store = DatabaseRunStore("tenant")
interrupts = DatabaseInterruptStore("tenant")


@pytest.fixture(autouse=True)
def run() -> None:
    store.create_or_resume("r1", "t1", 10)


def assert_count(count: int, call: Callable[[], Any]) -> None:
    with CaptureQueriesContext(connection) as captured:
        call()
    found = [query["sql"] for query in captured if not CONTROL.match(query["sql"])]
    assert len(found) == count, "\n".join(found)


def test_a_new_run_is_one() -> None:
    assert_count(1, lambda: store.create_or_resume("r2", "t1", 20, name="writer"))


def test_a_run_that_is_there_is_two() -> None:
    assert_count(2, lambda: store.create_or_resume("r1", "t1", 20))


@pytest.mark.parametrize("patch", [{"usage": USAGE}, {"detached_since": None}], ids=repr)
def test_an_update_is_one(patch: dict[str, Any]) -> None:
    assert_count(1, lambda: store.update("r1", patch))


def test_an_update_of_nothing_known_is_one() -> None:
    assert_count(1, lambda: store.update("r9", {"usage": USAGE}))


def test_an_end_is_one_and_another_end_after_it_two() -> None:
    assert_count(1, lambda: store.update("r1", {"status": "completed", "finished_at": 20}))
    assert_count(2, lambda: store.update("r1", {"status": "failed"}))


def test_an_update_that_expects_something_is_one_whether_it_is_so_or_not() -> None:
    assert_count(1, lambda: store.update_if("r1", {"status": "failed"}, status="interrupted"))
    assert_count(1, lambda: store.update_if("r1", {"status": "failed"}, status="running"))


def test_a_read_is_one() -> None:
    assert_count(1, lambda: store.get("r1"))
    assert_count(1, lambda: store.find_active_run("t1"))
    assert_count(1, lambda: store.was_cancel_requested("r1"))


@pytest.mark.parametrize("count", [1, 50])
def test_a_list_is_one_at_any_length(count: int) -> None:
    for number in range(count):
        store.create_or_resume(f"c{number}", "t1", number, parent_run_id="r1")
        store.update(f"c{number}", {"detached_since": 5})
        store.claim(f"c{number}")
    assert_count(1, lambda: store.list_by_thread("t1"))
    assert_count(1, lambda: store.list_by_parent_run("r1"))
    assert_count(1, lambda: store.list_reclaimable(10, 0))
    assert_count(1, lambda: store.list_stalled(None, 0))


def test_a_claim_is_two_and_so_is_a_refusal() -> None:
    assert_count(2, lambda: store.claim("r1"))
    assert_count(2, lambda: store.claim("r1", detached_before=5))


def test_what_the_holder_of_a_claim_writes_is_one() -> None:
    claim = store.claim("r1")
    assert claim
    assert_count(1, claim.touch)
    assert_count(1, lambda: claim.update({"usage": USAGE}))
    assert_count(1, lambda: claim.update({"status": "interrupted"}))
    assert_count(1, lambda: claim.update({"status": "completed"}))


def test_a_request_to_cancel_is_one() -> None:
    assert_count(1, lambda: store.request_cancel("r1"))


def test_an_interrupt_is_created_answered_and_read_in_one_each() -> None:
    assert_count(1, lambda: interrupts.create("i1", "r1", "t1", 10, {}))
    assert_count(1, lambda: interrupts.resolve("i1", {"ok": True}))
    assert_count(1, lambda: interrupts.get("i1"))
    assert_count(1, lambda: interrupts.list_pending("t1"))
    assert_count(1, lambda: interrupts.list_by_run("r1"))
