"""Copies of a run that know less than its row: stale, deferred, copied and pickled ones."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from solid_runs.exceptions import StaleRun
from tests.faults.tables import on_every_log, on_every_table, raw, set_raw
from tests.models import FreshRun, PlatformRun

pytestmark = pytest.mark.django_db


@on_every_table
def test_f16_a_stale_copy_overwrites_neither_the_end_nor_the_log(model: Any) -> None:
    pk = model.objects.create().pk
    a, b = model.objects.get(pk=pk), model.objects.get(pk=pk)
    b.append_event("x", "kept")
    assert b.finish("done", metadata={"cost": 1})
    a.action_name = "renamed"
    a.save()
    stored = model.objects.get(pk=pk)
    assert (stored.status, stored.action_name) == ("complete", "renamed")
    assert [entry["label"] for entry in stored.events_log] == ["kept"]
    assert a.fail(RuntimeError("late")) is False
    assert a.status == "complete"
    assert model.objects.get(pk=pk).error_message is None


@on_every_table
def test_f16_a_stale_copy_leaves_the_outcome_that_it_did_not_touch(model: Any) -> None:
    pk = model.objects.create().pk
    a, b = model.objects.get(pk=pk), model.objects.get(pk=pk)
    assert b.start()
    assert b.finish("done", metadata={"cost": 1}, input_tokens=3)
    a.action_name = "renamed"
    a.save()
    stored = model.objects.get(pk=pk)
    assert (stored.status, stored.output, stored.input_tokens) == ("complete", "done", 3)
    assert (stored.started_at, stored.completed_at) == (b.started_at, b.completed_at)
    assert stored.output_metadata == {"cost": 1}


@on_every_table
def test_f16_a_stale_copy_that_saves_a_status_of_its_own_is_refused(model: Any) -> None:
    pk = model.objects.create().pk
    a, b = model.objects.get(pk=pk), model.objects.get(pk=pk)
    assert b.finish("done")
    a.status, a.action_name = "failed", "renamed"
    with pytest.raises(StaleRun, match="refresh_from_db") as refused:
        a.save()
    assert (refused.value.read, refused.value.assigned) == ("pending", "failed")
    stored = model.objects.get(pk=pk)
    assert (stored.status, stored.action_name, stored.output) == ("complete", None, "done")


@on_every_table
def test_f16_two_copies_cannot_both_start(model: Any) -> None:
    pk = model.objects.create().pk
    a, b = model.objects.get(pk=pk), model.objects.get(pk=pk)
    assert (a.start(), b.start()) == (True, False)
    assert b.started_at == a.started_at


@on_every_table
def test_f59_fifty_deferred_rows_are_listed_in_one_query(
    model: Any, django_assert_num_queries: Any
) -> None:
    for _ in range(50):
        model.objects.create()
    log = model.events_column
    newest = model.objects.order_by("-pk")
    with django_assert_num_queries(1):
        assert all(str(run) for run in newest.only("id")[:50])
    with django_assert_num_queries(1):
        shown = [(str(run), run.in_progress) for run in newest.defer(log, "output")[:50]]
    assert len(shown) == 50
    assert all("pending" in text for text, _ in shown)


@on_every_log
@pytest.mark.parametrize("fields", [("id",), ("id", "status")], ids=", ".join)
def test_f59_a_transition_of_a_deferred_copy_costs_what_any_does(
    model: Any, fields: tuple[str, ...], django_assert_num_queries: Any
) -> None:
    pk = model.objects.create().pk
    run = model.objects.only(*fields).get(pk=pk)
    with django_assert_num_queries(1):
        assert run.start()
    deferred = model.objects.only(*fields).get(pk=pk)
    with django_assert_num_queries(1):
        assert deferred.finish()
    assert deferred.status == "complete"
    late = model.objects.only(*fields).get(pk=pk)
    with django_assert_num_queries(2):
        assert late.fail("late") is False
    assert late.status == "complete"


@on_every_table
def test_f59_a_transition_loads_no_column_that_was_deferred(model: Any) -> None:
    pk = model.objects.create(input_prompt="big", output="big").pk
    run = model.objects.only("id").get(pk=pk)
    assert run.start()
    assert {"input_prompt", "output", model.events_column} <= run.get_deferred_fields()
    model.objects.get(pk=pk).finish("done")
    assert run.fail("late") is False
    assert {"input_prompt", model.events_column} <= run.get_deferred_fields()


@on_every_table
def test_f59_saving_a_deferred_copy_writes_what_it_holds(
    model: Any, django_assert_num_queries: Any
) -> None:
    pk = model.objects.create(input_prompt="kept").pk
    run = model.objects.only("id").get(pk=pk)
    run.action_name = "renamed"
    with django_assert_num_queries(1):
        run.save(update_fields=["action_name"])
    stored = model.objects.get(pk=pk)
    assert (stored.action_name, stored.input_prompt, stored.status) == (
        "renamed",
        "kept",
        "pending",
    )


@on_every_table
@pytest.mark.parametrize(
    "double",
    [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_f59_a_copied_run_behaves_like_the_one_it_came_from(model: Any, double: Any) -> None:
    run = model.objects.create(input_prompt="asked")
    run.append_event("x", "y")
    for original in (run, model.objects.only("id", "status").get(pk=run.pk)):
        twin = double(original)
        assert twin == original
        assert str(twin) == str(original)
        assert twin.input_prompt == "asked"
        assert len(twin.events_log) == 1
    twin = double(model.objects.get(pk=run.pk))
    assert twin.start()
    stale = double(run)
    stale.status = "cancelled"
    with pytest.raises(StaleRun):
        stale.save()
    twin.status = "failed"
    twin.save()
    assert model.objects.get(pk=run.pk).status == "failed"


def test_f59_a_pickled_unknown_status_comes_back_unchanged() -> None:
    set_raw(PlatformRun(pk=1), "status", "9")
    for double in (copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))):
        twin = double(PlatformRun.objects.get(pk=1))
        assert str(twin.status) == "unknown (9)"
        twin.save()
        assert raw(twin, "status") == "9"


@pytest.mark.parametrize("double", [copy.copy, lambda run: pickle.loads(pickle.dumps(run))])
def test_f59_a_copy_of_a_new_run_saves_a_row_of_its_own(double: Any) -> None:
    run = FreshRun(input_prompt="asked")
    twin = double(run)
    run.save()
    twin.save()
    assert FreshRun.objects.filter(input_prompt="asked").count() == 2
    clone = FreshRun.objects.get(pk=run.pk)
    clone.pk = None
    clone.save()
    assert clone.pk not in (None, run.pk)


@on_every_table
def test_f59_iterating_copies_and_moving_each_is_one_statement_each(model: Any) -> None:
    pks = [model.objects.create().pk for _ in range(5)]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        for run in model.objects.filter(pk__in=pks).only("id", "status"):
            assert run.start()
    assert len(queries) == 6
