"""SELECTs that are compiled once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections

from solid_runs import lookups
from solid_runs.threads.models import ThreadRun

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "_known", {})


def made(run_id: str, using: str = "default", **values: Any) -> None:
    row = {"thread_id": "t", "status": "running", "started_at": 1, **values}
    ThreadRun.objects.using(using).create(run_id=run_id, **row)


def found(run_id: str, using: str = "default", **counted: Any) -> list[Any]:
    def rows() -> Any:
        counted.setdefault("calls", []).append(run_id)
        runs = ThreadRun.objects.using(using).filter(run_id=run_id)
        return runs.values_list("run_id", "cancel_requested", "usage")[:1]

    return [tuple(row) for row in lookups.look_up("one", rows, (run_id,), using)]


def test_a_statement_is_run_again_with_other_values() -> None:
    made("a", cancel_requested=True, usage={"n": 1})
    made("b", cancel_requested=False)
    calls: list[str] = []
    assert found("a", calls=calls) == [("a", True, {"n": 1})]
    assert found("b", calls=calls) == [("b", False, None)]
    assert found("c", calls=calls) == []
    assert calls == ["a"]


def test_values_come_back_as_django_gives_them() -> None:
    made("a", cancel_requested=True, usage={"n": [1.5, "ü"]})
    runs = ThreadRun.objects.filter(run_id="a").values_list("run_id", "cancel_requested", "usage")
    for _ in range(2):
        assert found("a") == list(runs)
    assert found("a")[0][1] is True


def test_a_query_whose_parameters_stand_otherwise_is_left_to_django() -> None:
    made("a", thread_id="b")
    made("b", thread_id="a")

    def look(run_id: str, thread_id: str) -> list[Any]:
        def rows() -> Any:
            runs = ThreadRun.objects.filter(run_id=run_id, thread_id=thread_id)
            return runs.values_list("run_id")

        return [row[0] for row in lookups.look_up("two", rows, (thread_id, run_id), "default")]

    for _ in range(2):
        assert look("a", "b") == ["a"]
        assert look("b", "a") == ["b"]
    assert lookups._known[("two", "default", connection.vendor)] is None


@pytest.mark.django_db(databases=["default", "other"])
def test_each_database_has_statements_of_its_own() -> None:
    made("a", usage={"in": "default"})
    made("a", using="other", usage={"in": "other"})
    for _ in range(2):
        assert found("a")[0][2] == {"in": "default"}
        assert found("a", using="other")[0][2] == {"in": "other"}


@pytest.mark.django_db(transaction=True)
def test_another_thread_reads_by_its_own_connection() -> None:
    made("a", cancel_requested=True)
    here = found("a")

    def there() -> Any:
        try:
            return found("a")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(there).result(30) == here
