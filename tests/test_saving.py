from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import django
import pytest
from django.db import DatabaseError, connection, models, transaction
from django.db.models import signals
from django.utils import timezone

from solid_runs.exceptions import StaleRun
from solid_runs.models import AgentRunMixin
from solid_runs.statuses import RunStatus
from tests.models import FreshRun, GeneratorRun, MinimalRun, PlatformJsonRun, PlatformRun
from tests.rows import (
    every_shape,
    full_shapes,
    get,
    keeps_a_table,
    listening,
    log_field,
    make,
    rails_shapes,
    row,
    store_text,
    stored_text,
)

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

LONG_AGO = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
LEGAL = [
    ("pending", "running"),
    ("pending", "complete"),
    ("pending", "failed"),
    ("pending", "cancelled"),
    ("running", "complete"),
    ("running", "failed"),
    ("running", "cancelled"),
]
ILLEGAL = [
    (read, assigned)
    for read in RunStatus.values
    for assigned in RunStatus.values
    if read != assigned and (read, assigned) not in LEGAL
]


# The log


@every_shape
def test_a_new_run_is_saved_with_its_log(model: Model) -> None:
    run = model.objects.create(**{log_field(model): [{"kind": "first"}]})

    assert get(run).events_log == [{"kind": "first"}]


@every_shape
def test_a_save_of_a_stale_copy_keeps_the_events_that_came_since(model: Model) -> None:
    run = make(model)
    stale = get(run)
    assert stale.events_log == []
    run.append_event("tool", "search")

    stale.action_name = "renamed"
    stale.save()

    assert [entry["label"] for entry in get(run).events_log] == ["search"]


@every_shape
def test_a_log_that_was_changed_on_the_copy_is_not_written(model: Model) -> None:
    run = make(model)
    run.append_event("tool", "search")

    setattr(run, log_field(model), [])
    run.save()

    assert len(get(run).events_log) == 1


@every_shape
def test_naming_the_log_in_update_fields_is_refused(model: Model) -> None:
    run = make(model, output="before")
    run.output = "after"
    name = log_field(model)
    setattr(run, name, [{"kind": "forged"}])

    with pytest.raises(ValueError, match=rf"leave '{name}' out .* append_event\(\)"):
        run.save(update_fields=[name, "status"])

    assert get(run).events_log == []


@every_shape
def test_update_or_create_of_the_log_is_refused_too(model: Model) -> None:
    run = make(model)

    with pytest.raises(ValueError, match="never writes the event log"):
        model.objects.update_or_create(pk=run.pk, defaults={log_field(model): []})


def test_queryset_updates_are_stock_and_go_round_the_lifecycle() -> None:
    run = make(PlatformRun, "complete")

    with listening() as heard:
        PlatformRun.objects.filter(pk=run.pk).update(status="running", logs=[{"kind": "put"}])
        copy = get(run)
        copy.status = "failed"
        copy.logs = []
        PlatformRun.objects.bulk_update([copy], ["status", "logs"])

    assert (get(run).status, get(run).events_log) == ("failed", [])
    assert heard == []


# The status


@every_shape
@pytest.mark.parametrize("end", ["complete", "failed", "cancelled"])
def test_a_save_of_a_stale_copy_does_not_bring_its_old_status_back(model: Model, end: str) -> None:
    stale = make(model, "running")
    model.objects.filter(pk=stale.pk).update(status=end)

    stale.input_prompt = "edited"
    stale.save()

    assert row(stale)["status"] == end


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun, MinimalRun])
@pytest.mark.parametrize(("read", "assigned"), LEGAL)
def test_a_status_that_this_copy_changed_legally_is_written(
    model: Model, read: str, assigned: str, django_capture_on_commit_callbacks: Any
) -> None:
    run = make(model, read)

    run.status = assigned
    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        run.save()
        run.save()

    assert row(run)["status"] == assigned
    assert [(change.pk, change.from_status, change.to_status) for change in heard] == [
        (run.pk, read, assigned)
    ]


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun, MinimalRun])
@pytest.mark.parametrize(("read", "assigned"), ILLEGAL)
def test_an_illegal_change_is_refused_and_nothing_is_written(
    model: Model, read: str, assigned: str
) -> None:
    run = make(model, read, output="before")
    before = row(run)

    run.output, run.status = "after", assigned
    with listening() as heard, pytest.raises(StaleRun, match=f"from {read} to {assigned}"):
        run.save()

    assert row(run) == before
    assert heard == []


@every_shape
def test_a_change_over_a_status_that_has_moved_since_is_refused(model: Model) -> None:
    stale = make(model, output="before")
    get(stale).cancel()
    before = row(stale)

    stale.output, stale.status = "after", "running"
    with pytest.raises(StaleRun) as caught:
        stale.save()

    error = caught.value
    assert (error.model, error.pk, error.read, error.assigned) == (
        model,
        stale.pk,
        "pending",
        "running",
    )
    assert f"{model.__name__} {stale.pk}" in str(error)
    assert "refresh_from_db()" in str(error)
    assert row(stale) == before


@every_shape
def test_a_refused_save_leaves_the_transaction_of_the_caller_usable(model: Model) -> None:
    stale = make(model)
    get(stale).cancel()
    stale.status = "running"

    with transaction.atomic():
        with pytest.raises(StaleRun):
            stale.save()
        other = model.objects.create()

    assert model.objects.filter(pk=other.pk).exists()


@every_shape
def test_a_status_that_was_never_read_is_not_written(model: Model) -> None:
    run = make(model)
    partial = model.objects.only("pk").get(pk=run.pk)

    partial.status = "running"
    with pytest.raises(StaleRun, match="without ever having been read") as caught:
        partial.save()

    assert caught.value.read is None
    assert row(run)["status"] == "pending"


@every_shape
def test_a_deferred_status_may_be_changed_after_it_was_read(model: Model) -> None:
    run = make(model)
    partial = model.objects.defer("status").get(pk=run.pk)
    assert partial.status == "pending"

    partial.status = "running"
    partial.save()

    assert row(run)["status"] == "running"


@pytest.mark.skipif(django.VERSION < (6, 1), reason="fetch modes came with Django 6.1")
def test_a_status_that_was_fetched_for_all_peers_counts_as_read() -> None:
    first, second = make(FreshRun), make(FreshRun)
    runs = FreshRun.objects.defer("status").fetch_mode(models.FETCH_PEERS).order_by("pk")
    mine, theirs = runs.filter(pk__in=[first.pk, second.pk])
    assert mine.status == "pending"

    theirs.status = "running"
    theirs.save()

    assert row(second)["status"] == "running"


@every_shape
def test_after_a_refresh_the_change_is_judged_anew(model: Model) -> None:
    run = make(model)
    get(run).start()
    run.status = "complete"
    with pytest.raises(StaleRun):
        run.save()

    run.refresh_from_db()
    run.status = "complete"
    run.save()

    assert row(run)["status"] == "complete"


@every_shape
def test_a_transition_and_a_change_follow_each_other_on_one_copy(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    run = make(model)

    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        run.start()
        run.save()
        run.status = "failed"
        run.save()

    assert [(change.from_status, change.to_status) for change in heard] == [
        ("pending", "running"),
        ("running", "failed"),
    ]


@every_shape
def test_creating_a_run_sends_nothing(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        run = model.objects.create(status="running")
        run.save()

    assert heard == []


@every_shape
def test_an_unknown_status_is_kept_by_a_save(model: Model) -> None:
    run = make(model)
    store_text(run, "status", "9")
    run = get(run)

    run.input_prompt = "edited"
    run.save()

    assert stored_text(run, "status") == "9"
    assert row(run).get("input_prompt") == (None if model is MinimalRun else "edited")


@every_shape
def test_an_unknown_status_refuses_to_be_changed(model: Model) -> None:
    run = make(model)
    store_text(run, "status", "9")
    run = get(run)

    run.status = "running"
    with pytest.raises(StaleRun, match=r"unknown \(9\)"):
        run.save()

    assert stored_text(run, "status") == "9"


@every_shape
def test_a_failing_receiver_takes_the_change_back(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    run = make(model)

    def refuse(**kwargs: Any) -> None:
        raise RuntimeError("not today")

    run.status = "running"
    signals.post_save.connect(refuse, sender=model)
    try:
        with (
            listening() as heard,
            django_capture_on_commit_callbacks(execute=True),
            pytest.raises(RuntimeError),
        ):
            run.save()
    finally:
        signals.post_save.disconnect(refuse, sender=model)

    assert row(run)["status"] == "pending"
    assert heard == []
    run.save()
    assert row(run)["status"] == "running"


# What else is written


@full_shapes
def test_a_save_writes_what_this_copy_changed(model: Model) -> None:
    run = make(model)

    run.output, run.input_tokens, run.output_metadata = "draft", 7, {"a": [1]}
    run.save()

    stored = get(run)
    assert (stored.output, stored.input_tokens, stored.output_metadata) == ("draft", 7, {"a": [1]})


@full_shapes
def test_a_save_does_not_write_what_was_deferred(model: Model) -> None:
    run = make(model, output="before")
    partial = model.objects.defer("output").get(pk=run.pk)
    model.objects.filter(pk=run.pk).update(output="written by another")

    partial.action_name = "ask"
    partial.save()

    assert (row(run)["output"], row(run)["action_name"]) == ("written by another", "ask")


@every_shape
def test_a_save_of_an_existing_run_is_one_statement(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model)
    get(run).save()

    # Beside its log and its status, which did not change, a MinimalRun has nothing to write.
    with django_assert_num_queries(0 if model is MinimalRun else 1):
        run.save()


@full_shapes
def test_update_fields_are_respected(model: Model) -> None:
    run = make(model, output="before", action_name="before")

    run.output = run.action_name = "after"
    run.save(update_fields=["output"])

    assert (row(run)["output"], row(run)["action_name"]) == ("after", "before")


@every_shape
def test_a_changed_status_stays_unsaved_when_update_fields_do_not_name_it(model: Model) -> None:
    run = make(model)
    if model is MinimalRun:
        run.status = "running"
        run.save(update_fields=[])
    else:
        run.status = "running"
        run.save(update_fields=["output"])

    assert row(run)["status"] == "pending"
    run.save()
    assert row(run)["status"] == "running"


@every_shape
def test_a_status_named_in_update_fields_follows_the_same_rules(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    run = make(model)
    stale = get(run)

    run.status = "running"
    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        run.save(update_fields=["status"])
    stale.status = "cancelled"
    with pytest.raises(StaleRun):
        stale.save(update_fields=["status"])

    assert row(run)["status"] == "running"
    assert len(heard) == 1


@full_shapes
@pytest.mark.parametrize("update_fields", [None, ["output"]], ids=str)
def test_every_save_moves_updated_at(model: Model, update_fields: Any) -> None:
    run = make(model)
    model.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)

    run.save(update_fields=update_fields)

    assert timezone.now() - row(run)["updated_at"] < timedelta(minutes=1)


@every_shape
def test_empty_update_fields_write_and_send_nothing(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model)

    with saves(model) as sent, django_assert_num_queries(0):
        run.save(update_fields=[])

    assert sent == []


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (PlatformRun, "total_tokens", 40),
        (FreshRun, "total_tokens", 40),
        (GeneratorRun, "instructions_digest", "0badc0de"),
        (FreshRun, "instructions_digest", "0badc0de"),
    ],
)
def test_update_fields_take_the_names_of_the_contract(model: Model, name: str, value: Any) -> None:
    run = make(model)

    setattr(run, name, value)
    run.save(update_fields=[name])

    assert getattr(get(run), name) == value


def test_update_fields_that_do_not_exist_are_refused() -> None:
    run = make(PlatformRun)

    with pytest.raises(ValueError, match="no_such"):
        run.save(update_fields=["no_such"])


@rails_shapes
@pytest.mark.parametrize("update_fields", [None, ["output"]], ids=str)
def test_a_save_heals_a_row_without_a_trace_id(model: Model, update_fields: Any) -> None:
    run = model.objects.get(pk=1)
    assert run.trace_id is None

    run.save(update_fields=update_fields)

    assert len(row(run)["trace_id"]) == 36


@rails_shapes
def test_a_save_leaves_a_deferred_trace_id_alone(model: Model) -> None:
    run = model.objects.defer("trace_id").get(pk=1)

    run.save()

    assert row(run)["trace_id"] is None


class saves:
    """Collect what pre_save and post_save say."""

    def __init__(self, model: Model) -> None:
        self.model, self.sent = model, []

    def receive(self, signal: Any, update_fields: Any, using: str, **kwargs: Any) -> None:
        name = "pre_save" if signal is signals.pre_save else "post_save"
        self.sent.append((name, update_fields))

    def __enter__(self) -> list[Any]:
        signals.pre_save.connect(self.receive, sender=self.model)
        signals.post_save.connect(self.receive, sender=self.model)
        return self.sent

    def __exit__(self, *args: Any) -> None:
        signals.pre_save.disconnect(self.receive, sender=self.model)
        signals.post_save.disconnect(self.receive, sender=self.model)


@full_shapes
def test_save_signals_say_what_is_written(model: Model) -> None:
    run = make(model)

    with saves(model) as sent:
        run.output = "draft"
        run.save()
        run = get(run)  # in a transaction, what a copy wrote itself is not known to stay
        run.status = "running"
        run.save()

    [first, _, second, _] = [names for _, names in sent]
    assert [name for name, _ in sent] == ["pre_save", "post_save"] * 2
    assert {"output", "updated_at"} <= first
    assert first.isdisjoint({"id", "status", log_field(model)})
    assert {"status", "updated_at"} <= second
    assert second.isdisjoint({"id", "output", log_field(model)})


@full_shapes
def test_a_run_that_was_deleted_is_not_put_back_by_a_save(model: Model) -> None:
    run = make(model)
    get(run).delete()

    run.action_name = "renamed"
    with pytest.raises(DatabaseError), transaction.atomic():
        run.save()

    assert not model.objects.filter(pk=run.pk).exists()


@every_shape
def test_a_changed_status_of_a_deleted_run_is_refused(model: Model) -> None:
    run = make(model)
    get(run).delete()

    run.status = "running"
    with pytest.raises((StaleRun, DatabaseError)), transaction.atomic():
        run.save()

    assert not model.objects.filter(pk=run.pk).exists()


@every_shape
def test_a_copy_without_its_key_is_saved_as_a_new_run(model: Model) -> None:
    run = make(model, "complete", output="answer", action_name="ask")
    original = run.pk
    before = row(run)

    run.pk = None
    run.status = "pending"  # of the clone: no change of an existing run
    run.save()

    assert run.pk not in (None, original)
    assert row(run)["status"] == "pending"
    assert row(run).get("output") == before.get("output")
    assert model._base_manager.filter(pk=original).values().get() == before


@every_shape
@pytest.mark.parametrize("how", ["deferred", "appended"])
def test_a_clone_that_would_lose_what_its_copy_does_not_know_is_refused(
    model: Model, how: str
) -> None:
    run = make(model)
    if how == "deferred":
        run = model.objects.defer(log_field(model)).get(pk=run.pk)
    elif keeps_a_table(model):
        return  # nothing is lost: the log of a clone begins anew, see tests/test_table_log.py
    else:
        run.append_event("tool", "search")  # the database computed the log, so it was dropped
    count = model.objects.count()

    run.pk = None
    with pytest.raises((ValueError, AttributeError, model.DoesNotExist)), transaction.atomic():
        run.save()

    assert model.objects.count() == count


@full_shapes
@pytest.mark.parametrize("name", ["output_metadata", "error_message"])
def test_a_deferred_field_of_a_copy_without_its_key_does_not_read_as_empty(
    model: Model, name: str
) -> None:
    run = make(model, "running", output_metadata={"a": 1}, error_message="half broken")
    run = model.objects.defer(name).get(pk=run.pk)

    run.pk = None
    with pytest.raises((ValueError, AttributeError, model.DoesNotExist)):
        getattr(run, name)


@every_shape
def test_a_forced_insert_is_an_insert(model: Model) -> None:
    run = make(model)

    with pytest.raises(DatabaseError), transaction.atomic():
        run.save(force_insert=True)

    run.pk = None
    run.save(force_insert=True)
    assert model.objects.filter(pk=run.pk).exists()


@full_shapes
def test_text_that_no_database_stores_is_cleaned_by_create_and_save(model: Model) -> None:
    run = model.objects.create(input_prompt="PDF\x00text", output_metadata={"k": "a\x00b"})
    run.output = "ok \udc81 end"
    run.save()

    stored = get(run)
    assert stored.input_prompt == run.input_prompt == "PDF\ufffdtext"
    assert stored.output == run.output == "ok \ufffd end"
    assert stored.output_metadata == {"k": "a\ufffdb"}


@full_shapes
def test_text_past_its_column_is_cut_by_a_save(model: Model) -> None:
    run = make(model)

    run.action_name = "x" * 10_000
    run.save()

    stored = row(run)["action_name"]
    assert stored == run.action_name
    if connection.vendor == "sqlite" or (
        connection.vendor == "postgresql" and model in (PlatformRun, PlatformJsonRun, GeneratorRun)
    ):
        assert stored == "x" * 10_000  # a varchar without a limit
    else:
        assert len(stored) == 255
        assert stored.endswith("… [cut, 10000 characters]")


@pytest.mark.parametrize("name", ["provider", "model"])
def test_a_provider_or_model_past_its_column_is_cut_by_create_and_save(name: str) -> None:
    long = "x" * 10_000
    run = FreshRun.objects.create(**{name: long})
    stored = [row(run)[name]]
    assert stored == [getattr(run, name)]

    run = make(FreshRun)
    setattr(run, name, long)
    run.save()
    stored.append(row(run)[name])
    assert stored[1] == getattr(run, name)

    if connection.vendor == "sqlite":
        assert stored == [long, long]  # its varchar has no limit
    else:
        for text in stored:
            assert len(text) == FreshRun._meta.get_field(name).max_length
            assert text.endswith("… [cut, 10000 characters]")


@full_shapes
def test_two_copies_of_which_one_is_stale(model: Model) -> None:
    """F16, step by step."""
    stale = make(model, "running")
    other = get(stale)
    other.append_event("tool", "x")
    other.finish("done")

    stale.action_name = "n"
    stale.save()
    assert stale.fail(ValueError("late")) is False

    stored = get(stale)
    assert (stored.status, stored.action_name) == ("complete", "n")
    assert [entry["label"] for entry in stored.events_log] == ["x"]
    assert stored.error_message is None


@full_shapes
def test_a_save_of_a_stale_copy_keeps_the_outcome_that_came_since(model: Model) -> None:
    stale = make(model, "running", started_at=LONG_AGO)
    get(stale).finish("done", metadata={"provider": "openai"}, input_tokens=7, output_tokens=5)
    before = row(stale)

    stale.action_name = "n"
    stale.save()

    assert row(stale) == before | {"action_name": "n", "updated_at": row(stale)["updated_at"]}


@full_shapes
def test_a_save_of_a_stale_copy_writes_what_it_changed_of_the_outcome(model: Model) -> None:
    stale = make(model, "running")
    get(stale).finish("done", input_tokens=7)

    stale.output = "corrected"
    stale.save()

    assert (row(stale)["output"], row(stale)["input_tokens"]) == ("corrected", 7)


@full_shapes
def test_metadata_that_was_changed_in_place_is_written(model: Model) -> None:
    run = make(model, output_metadata={"a": {"b": [1]}})

    run.output_metadata["a"]["b"].append(2)
    run.save()

    assert row(run)["output_metadata"] == {"a": {"b": [1, 2]}}


@full_shapes
def test_a_value_that_is_changed_and_changed_back_is_written_each_time(model: Model) -> None:
    run = make(model, output="a")

    for output in ("b", "a", None, "a"):
        run.output = output
        run.save()
        assert row(run)["output"] == output


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
@pytest.mark.parametrize("update_fields", [None, ["total_tokens"]], ids=str)
def test_a_total_that_is_changed_and_changed_back_is_written_each_time(
    model: Model, update_fields: Any
) -> None:
    run = make(model)

    run.total_tokens = 40
    run.save(update_fields=update_fields)
    assert row(run)["reported_total_tokens"] == 40

    run.total_tokens = None
    run.save()
    assert row(run)["reported_total_tokens"] is None


@full_shapes
@pytest.mark.parametrize("update_fields", [None, ["output"]], ids=str)
def test_what_a_rollback_took_back_is_written_by_the_next_save(
    model: Model, update_fields: Any
) -> None:
    run = make(model, output="before")

    run.output = "after"
    with transaction.atomic():
        run.save(update_fields=update_fields)
        transaction.set_rollback(True)
    assert row(run)["output"] == "before"

    run.save()

    assert row(run)["output"] == "after"


@full_shapes
def test_a_value_that_was_fetched_later_counts_as_read(model: Model) -> None:
    stale = model.objects.defer("output").get(pk=make(model, "running", output="draft").pk)
    assert stale.output == "draft"
    get(stale).finish("done")

    stale.save()

    assert row(stale)["output"] == "done"


@full_shapes
def test_after_a_cancel_the_reason_is_not_overwritten_by_a_save(model: Model) -> None:
    run = make(model, "running")

    run.cancel("budget spent")
    run.save()
    assert run.error_message == "budget spent"
    run.save()

    assert row(run)["error_message"] == "budget spent"
