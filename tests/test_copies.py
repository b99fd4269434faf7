"""What a copy knows of its row decides what its next save writes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any

import pytest
from django.db import models, transaction
from django.db.models import F, signals
from django.dispatch import Signal

from solid_runs.exceptions import StaleRun
from solid_runs.models import AgentRunMixin
from solid_runs.signals import run_status_changed
from tests.models import FreshRun
from tests.rows import every_shape, full_shapes, get, listening, make, row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed")]

Model = type[AgentRunMixin]


class Undone(Exception):
    """Takes a transaction back."""


def undone(work: Callable[[], Any]) -> None:
    """Do the work in a transaction that is rolled back."""
    with suppress(Undone), transaction.atomic():
        work()
        raise Undone


@contextmanager
def receiving(signal: Signal, receiver: Callable[..., None], sender: Model) -> Iterator[None]:
    signal.connect(receiver, sender=sender)
    try:
        yield
    finally:
        signal.disconnect(receiver, sender=sender)


def status_of(run: AgentRunMixin) -> str:
    return str(get(run).status)


# Rollbacks


@full_shapes
def test_a_save_after_an_end_that_was_rolled_back_writes_the_end_whole(model: Model) -> None:
    run = make(model, "running")
    undone(lambda: run.finish("done", input_tokens=7))
    assert status_of(run) == "running"

    with listening() as heard:
        run.save()

    stored = get(run)
    assert (stored.status, stored.output, stored.input_tokens) == ("complete", "done", 7)
    assert stored.completed_at == run.completed_at is not None
    assert [(change.from_status, change.to_status) for change in heard] == [("running", "complete")]


@full_shapes
def test_a_save_after_a_failure_that_was_rolled_back_keeps_its_reason(model: Model) -> None:
    run = make(model, "running")
    undone(lambda: run.fail("boom"))

    run.save()

    assert (row(run)["status"], row(run)["error_message"]) == ("failed", "boom")


@every_shape
def test_a_transition_that_was_rolled_back_can_be_tried_again(model: Model) -> None:
    run = make(model)
    undone(run.start)

    with listening() as heard:
        assert run.start() is True

    assert status_of(run) == "running"
    assert [change.to_status for change in heard] == ["running"]


@every_shape
@pytest.mark.parametrize("update_fields", [None, ["status"]], ids=str)
def test_a_status_that_was_rolled_back_is_written_by_the_next_save(
    model: Model, update_fields: Any
) -> None:
    run = make(model)
    run.status = "running"
    undone(run.save)
    assert status_of(run) == "pending"

    with listening() as heard:
        run.save(update_fields=update_fields)

    assert status_of(run) == "running"
    assert [(change.from_status, change.to_status) for change in heard] == [("pending", "running")]


@every_shape
def test_a_status_that_was_rolled_back_is_not_forced_over_what_came_since(model: Model) -> None:
    run = make(model)
    run.status = "running"
    undone(run.save)
    get(run).cancel()

    with listening() as heard, pytest.raises(StaleRun):
        run.save()

    assert status_of(run) == "cancelled"
    assert heard == []


@full_shapes
def test_what_was_refreshed_in_a_transaction_that_was_rolled_back_is_written_again(
    model: Model,
) -> None:
    run = make(model, output="before")
    run.output = "after"

    def work() -> None:
        run.save()
        run.refresh_from_db()

    undone(work)
    run.save()

    assert row(run)["output"] == "after"


@every_shape
def test_a_status_that_was_refreshed_in_a_transaction_that_was_rolled_back_is_written_again(
    model: Model,
) -> None:
    run = make(model)
    run.status = "running"

    def work() -> None:
        run.save()
        run.refresh_from_db()

    undone(work)
    run.save()

    assert status_of(run) == "running"


# Commits


@full_shapes
def test_a_commit_does_not_bring_an_older_knowledge_back(model: Model) -> None:
    run = make(model)
    with transaction.atomic():
        run.output = "first"
        run.save()
        model.objects.filter(pk=run.pk).update(output="another's")
        run.refresh_from_db()
    assert run.output == "another's"

    run.output = "first"
    run.save()

    assert row(run)["output"] == "first"


@full_shapes
def test_a_commit_does_not_bring_an_older_status_back(model: Model) -> None:
    with transaction.atomic():
        run = model.objects.create()
        assert get(run).start() is True
        run.refresh_from_db()

    run.action_name = "renamed"
    run.save()

    assert (row(run)["status"], row(run)["action_name"]) == ("running", "renamed")


# New rows


@every_shape
def test_runs_made_by_bulk_create_are_saved_by_the_rules(model: Model) -> None:
    [run] = model.objects.bulk_create([model()])
    run.save()

    run.status = "running"
    run.save()
    assert status_of(run) == "running"

    get(run).cancel()
    run.status = "complete"
    with pytest.raises(StaleRun):
        run.save()
    assert status_of(run) == "cancelled"


@full_shapes
def test_what_was_set_after_bulk_create_is_written(model: Model) -> None:
    [run] = model.objects.bulk_create([model(output="draft")])

    run.output = "final"
    run.save()

    assert row(run)["output"] == "final"


@full_shapes
@pytest.mark.parametrize(
    ("key", "stored"), [(date(2026, 1, 1), "2026-01-01"), ((1, 2), "(1, 2)"), (7, "7")]
)
def test_metadata_with_a_key_that_is_no_json_key_is_created_once(
    model: Model, key: Any, stored: str
) -> None:
    count = model.objects.count()

    run = model.objects.create(output_metadata={key: 3})

    assert model.objects.count() == count + 1
    assert get(run).output_metadata == {stored: 3}


@full_shapes
def test_metadata_that_contains_itself_is_created_once(model: Model) -> None:
    count = model.objects.count()
    cycle: dict[str, Any] = {"kept": 1}
    cycle["self"] = cycle

    run = model.objects.create(output_metadata=cycle)
    run.save()

    assert model.objects.count() == count + 1
    assert get(run).output_metadata["kept"] == 1


# Receivers


@every_shape
def test_a_receiver_may_save_a_run_that_was_just_created(model: Model) -> None:
    def save_again(instance: Any, created: bool, **said: Any) -> None:
        if created:
            instance.save()

    with receiving(signals.post_save, save_again, model):
        run = model.objects.create()

    assert status_of(run) == "pending"


@every_shape
def test_a_receiver_may_save_inside_a_change_of_status(model: Model) -> None:
    run, saved = make(model), []

    def save_again(instance: Any, **said: Any) -> None:
        if not saved:
            saved.append(instance)
            instance.save()

    run.status = "running"
    with receiving(signals.post_save, save_again, model), listening() as heard:
        run.save()

    assert saved == [run]
    assert status_of(run) == "running"
    assert [(change.from_status, change.to_status) for change in heard] == [("pending", "running")]


@full_shapes
@pytest.mark.parametrize("signal", [signals.pre_save, signals.post_save], ids=["pre", "post"])
def test_a_field_that_a_receiver_changed_is_written_by_the_next_save(
    model: Model, signal: Signal
) -> None:
    run = make(model)

    def note(instance: Any, **said: Any) -> None:
        instance.error_message = "noted"

    run.action_name = "renamed"
    with receiving(signal, note, model):
        run.save()
    run.save()

    assert row(run)["error_message"] == "noted"


@full_shapes
def test_a_field_that_a_receiver_changed_after_it_was_written_is_written_again(
    model: Model,
) -> None:
    run = make(model)

    def correct(instance: Any, **said: Any) -> None:
        instance.output = "corrected"

    run.output = "draft"
    with receiving(signals.post_save, correct, model):
        run.save()
    run.save()

    assert row(run)["output"] == "corrected"


@full_shapes
def test_what_a_receiver_of_the_status_sets_is_written_by_the_next_save(model: Model) -> None:
    run = make(model)

    def note(run: Any, **said: Any) -> None:
        run.error_message = "noted"

    run.status = "running"
    with receiving(run_status_changed, note, model):
        run.save()
    run.save()

    assert row(run)["error_message"] == "noted"


@full_shapes
@pytest.mark.parametrize("status", ["pending", "complete"])
def test_a_receiver_that_sets_another_status_during_a_change_is_refused(
    model: Model, status: str
) -> None:
    run = make(model)
    before = row(run)

    def interfere(instance: Any, **said: Any) -> None:
        instance.status = status

    run.status, run.action_name = "running", "renamed"
    with (
        receiving(signals.pre_save, interfere, model),
        listening() as heard,
        pytest.raises(StaleRun, match="receiver of pre_save"),
    ):
        run.save()

    assert row(run) == before
    assert heard == []


# Values


@full_shapes
def test_an_expression_that_is_assigned_twice_counts_twice(model: Model) -> None:
    run = make(model, input_tokens=1)

    for _ in range(2):
        run.input_tokens = F("input_tokens") + 1
        run.save()

    assert row(run)["input_tokens"] == 3


@full_shapes
def test_what_changes_inside_a_value_that_cannot_change_is_written(model: Model) -> None:
    run, inner = make(model), [1]
    run.output_metadata = (inner,)
    run.save()

    inner.append(2)
    run.save()

    assert row(run)["output_metadata"] == [[1, 2]]


@every_shape
def test_the_log_is_not_kept_twice_in_memory(model: Model) -> None:
    run = make(model)
    run.append_event("tool", "needle")
    assert [entry["label"] for entry in run.events_log] == ["needle"]

    run.save()

    assert b"needle" not in pickle.dumps(run._state)


def test_what_a_copy_knows_is_not_shared_with_its_duplicate() -> None:
    run = make(FreshRun, output="before")
    twin: models.Model = pickle.loads(pickle.dumps(run))

    run.output = "after"
    run.save()
    twin.output = "after"  # type: ignore[attr-defined]
    FreshRun.objects.filter(pk=run.pk).update(output="another's")
    twin.save()

    assert row(run)["output"] == "after"


@full_shapes
def test_what_was_committed_counts_as_known(model: Model) -> None:
    run = make(model, "running")
    with transaction.atomic():
        run.output = "draft"
        run.save()
    get(run).finish("done")

    run.action_name = "renamed"
    run.save()

    assert row(run)["output"] == "done"


@full_shapes
def test_a_save_after_a_committed_restart_keeps_the_outcome_that_came_since(model: Model) -> None:
    run = make(model, "failed", error_message="first")
    with transaction.atomic():
        assert run.restart() is True
    get(run).fail("second")
    before = row(run)

    run.action_name = "renamed"
    run.save()

    after = row(run)
    assert after == before | {"action_name": "renamed", "updated_at": after["updated_at"]}


@full_shapes
def test_a_save_after_a_committed_creation_keeps_the_outcome_that_came_since(model: Model) -> None:
    with transaction.atomic():
        run = model.objects.create()
    get(run).fail("boom")
    before = row(run)

    run.action_name = "renamed"
    run.save()

    after = row(run)
    assert after == before | {"action_name": "renamed", "updated_at": after["updated_at"]}


@full_shapes
def test_an_end_that_was_rolled_back_is_not_saved_without_its_metadata(
    model: Model,
) -> None:
    run = make(model, "running", output_metadata={"a": 1})
    undone(lambda: run.finish("done", metadata={"b": 2}))

    with pytest.raises(StaleRun, match="rolled back"):
        run.save()

    assert (row(run)["status"], row(run)["output_metadata"]) == ("running", {"a": 1})
    assert run.finish("done", metadata={"b": 2}) is True
    assert row(run)["output_metadata"] == {"a": 1, "b": 2}


@full_shapes
def test_a_cancel_that_was_rolled_back_is_not_saved_without_its_reason(
    model: Model,
) -> None:
    run = make(model, "running")
    undone(lambda: run.cancel("budget spent"))

    with pytest.raises(StaleRun, match="rolled back"):
        run.save()

    assert (row(run)["status"], row(run)["error_message"]) == ("running", None)
    assert run.cancel("budget spent") is True
    assert row(run)["error_message"] == "budget spent"


@every_shape
def test_a_receiver_may_move_a_run_that_was_just_created(model: Model) -> None:
    def start(instance: Any, created: bool, **said: Any) -> None:
        if created:
            assert instance.start() is True

    with receiving(signals.post_save, start, model), listening() as heard:
        run = model.objects.create()
    run.save()

    assert status_of(run) == run.status == "running"
    assert [change.to_status for change in heard] == ["running"]


@full_shapes
def test_what_a_receiver_saved_inside_a_save_is_what_the_row_is_known_to_hold(
    model: Model,
) -> None:
    run, saved = make(model), []

    def correct(instance: Any, **said: Any) -> None:
        if not saved:
            saved.append(instance)
            instance.output = "corrected"
            instance.save()

    run.output = "draft"
    with receiving(signals.post_save, correct, model):
        run.save()
    assert row(run)["output"] == "corrected"

    run.output = "draft"
    run.save()

    assert row(run)["output"] == "draft"


@every_shape
def test_a_receiver_of_post_save_may_end_the_run_inside_a_change_of_status(model: Model) -> None:
    run = make(model)

    def finish(instance: Any, **said: Any) -> None:
        if instance.status == "running":
            assert instance.finish("done") is True

    run.status = "running"
    with receiving(signals.post_save, finish, model), listening() as heard:
        run.save()

    assert status_of(run) == "complete"
    assert {change.to_status for change in heard} == {"running", "complete"}
