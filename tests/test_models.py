from __future__ import annotations

import copy
import io
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.migrations import CreateModel
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.graph import MigrationGraph
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ProjectState
from django.db.migrations.writer import MigrationWriter

from solid_runs.exceptions import StaleRun
from solid_runs.models import AbstractAgentRun, AgentRunMixin
from solid_runs.statuses import RunStatus
from tests.models import (
    AgentOwnedRun,
    ChildRun,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableChildRun,
    TableRun,
    TableRunEvent,
    TableRunProxy,
)
from tests.rows import (
    EVERY_SHAPE,
    every_shape,
    full_shapes,
    get,
    has,
    keeps_a_table,
    listening,
    log_field,
    make,
    rails_shapes,
    row,
    statements_of_append,
)

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

NINE = datetime(2026, 1, 15, 9, 0, tzinfo=UTC)
LIVE = [PlatformRun, PlatformJsonRun, GeneratorRun, AgentOwnedRun]


# The tables of Rails


@pytest.mark.parametrize("model", LIVE)
def test_every_column_of_the_real_table_is_mapped_and_nothing_else(model: Model) -> None:
    with connection.cursor() as cursor:
        table = connection.introspection.get_table_description(cursor, model._meta.db_table)

    assert {field.column for field in model._meta.concrete_fields} == {c.name for c in table}


@pytest.mark.parametrize("model", LIVE)
def test_what_the_real_table_does_not_require_is_not_required(model: Model) -> None:
    """But for the statuses and times that have a value always."""
    with connection.cursor() as cursor:
        table = connection.introspection.get_table_description(cursor, model._meta.db_table)
    required = {column.name for column in table if not column.null_ok} - {"id"}

    assert required == {"status", "created_at", "updated_at"}
    for field in model._meta.concrete_fields:
        assert field.primary_key or field.null == (field.column not in required), field.name


@rails_shapes
def test_the_rows_of_rails_read_right(model: Model) -> None:
    runs = list(model.objects.order_by("pk"))

    assert [run.status for run in runs] == [
        RunStatus.PENDING,
        RunStatus.RUNNING,
        RunStatus.COMPLETE,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
    ]
    done = runs[2]
    assert done.started_at == datetime(2026, 1, 15, 9, 30, 20, tzinfo=UTC)
    assert done.completed_at - done.started_at == timedelta(milliseconds=3250)
    assert done.output_metadata["model"] == "claude-sonnet"
    assert runs[1].input_prompt == "Translate the manual — “où est la gare?” 🚆"
    assert runs[3].error_message == "Faraday::TimeoutError: execution expired"
    assert (runs[0].output_metadata or {}, runs[0].events_log) == ({}, [])


@rails_shapes
def test_a_run_of_rails_is_driven_through_its_whole_life(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    run = model.objects.get(pk=1)

    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        assert run.start()
        run.append_event("llm", "gpt-4o", eid="1", status="started")
        run.append_event("llm", "gpt-4o", eid="1", duration_ms=900)
        run.add_log("summarised")
        assert run.finish("It went well.", metadata={"provider": "openai"}, input_tokens=12)

    stored = model.objects.get(pk=1)
    assert (stored.status, stored.output, stored.input_tokens) == ("complete", "It went well.", 12)
    assert (len(stored.events_log), stored.provider) == (3, "openai")
    assert stored.input_prompt == "Summarise the quarterly report"
    assert len(heard) == 2


@rails_shapes
def test_a_new_run_fills_what_rails_requires(model: Model) -> None:
    run = model.objects.create(input_prompt="x")

    stored = row(run)
    assert stored["status"] is RunStatus.PENDING
    assert stored["created_at"] is not None
    assert stored["updated_at"] is not None


def test_the_generator_shape_starts_with_what_its_columns_default_to() -> None:
    stored = row(GeneratorRun.objects.create())

    assert (stored["input_tokens"], stored["output_tokens"], stored["events"]) == (0, 0, [])


def test_a_foreign_key_of_the_host_replaces_the_column() -> None:
    agent = AgentOwnedRun._meta.get_field("agent")

    assert (agent.column, agent.attname) == ("agent_id", "agent_id")
    assert [f.name for f in AgentOwnedRun._meta.fields].count("agent_id") == 0
    assert AgentOwnedRun.objects.get(pk=3).agent_id == PlatformRun.objects.get(pk=3).agent_id == 3


# Migrations


def changes(before: ProjectState, after: ProjectState) -> dict[str, Any]:
    questioner = MigrationQuestioner(specified_apps={"tests"})
    return MigrationAutodetector(before, after, questioner).changes(MigrationGraph())


def test_the_package_brings_no_tables_and_no_migrations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(apps.get_app_config("solid_runs").get_models()) == []

    call_command("makemigrations", "solid_runs", check=True, dry_run=True)

    assert "No changes detected" in capsys.readouterr().out


def test_a_state_made_of_the_models_shows_no_changes() -> None:
    state = ProjectState.from_apps(apps)

    assert changes(state, ProjectState.from_apps(apps)) == {}


def test_what_a_migration_writes_down_is_what_the_model_says() -> None:
    """A second makemigrations finds nothing: fields come back from their deconstructed form."""
    for model in (FreshRun, MinimalRun, PlatformRun, GeneratorRun, TableRunEvent):
        for field in model._meta.local_fields:
            name, path, args, kwargs = field.deconstruct()
            again = type(field)(*args, **kwargs)
            again.set_attributes_from_name(name)
            assert again.deconstruct() == (name, path, args, kwargs)
            assert not path.startswith("solid_runs.fields.") or path.count(".") == 2


@pytest.fixture
def first_migration() -> list[CreateModel]:
    """The models that makemigrations would write down for a host with those of the suite."""
    detected = changes(ProjectState(), ProjectState.from_apps(apps))["tests"]
    for migration in detected:
        compile(MigrationWriter(migration).as_string(), "migration", "exec")
    operations = [operation for migration in detected for operation in migration.operations]
    return [operation for operation in operations if isinstance(operation, CreateModel)]


class TableMaker:
    """A schema editor that only notes which tables it is asked to create."""

    connection = connection

    def __init__(self) -> None:
        self.created: list[str] = []

    def create_model(self, model: type[models.Model]) -> None:
        self.created.append(model._meta.db_table)


def test_a_migration_creates_the_tables_of_our_own_and_none_of_rails(
    first_migration: list[CreateModel],
) -> None:
    state, maker = ProjectState.from_apps(apps), TableMaker()

    for operation in first_migration:
        operation.database_forwards("tests", maker, state, state)  # type: ignore[arg-type]

    assert {operation.name for operation in first_migration} >= {m.__name__ for m in LIVE}
    assert {"tests_freshrun", "tests_minimalrun", "tests_childrun"} <= set(maker.created)
    assert set(maker.created).isdisjoint(model._meta.db_table for model in LIVE)


@pytest.mark.parametrize("model", LIVE)
def test_a_migration_says_that_a_live_table_is_unmanaged(
    model: Model, first_migration: list[CreateModel]
) -> None:
    [operation] = [each for each in first_migration if each.name == model.__name__]

    assert operation.options["managed"] is False


def test_index_names_of_a_table_of_our_own_fit_any_host() -> None:
    assert FreshRun._meta.indexes
    for index in AbstractAgentRun._meta.indexes:
        assert not index.name
    assert all(len(index.name) <= 30 for index in FreshRun._meta.indexes)


# Proxies and children


heirs = pytest.mark.parametrize(
    ("model", "parent"),
    [
        (FreshRunProxy, FreshRun),
        (ChildRun, FreshRun),
        (TableRunProxy, TableRun),
        (TableChildRun, TableRun),
    ],
)


@heirs
def test_a_proxy_and_a_child_live_as_their_parent(
    model: Model, parent: Model, django_assert_num_queries: Any
) -> None:
    run = get(model.objects.create())
    run.append_event("warm", "up")

    with django_assert_num_queries(1):
        assert run.start() is True
    with django_assert_num_queries(statements_of_append(model)):
        run.append_event("tool", "search")
    run.add_log("asking")
    assert run.finish("done", metadata={"a": 1}) is True

    stored = parent.objects.get(pk=run.pk)
    assert (stored.status, stored.output, stored.output_metadata) == ("complete", "done", {"a": 1})
    assert len(stored.events_log) == 3
    assert stored.events_log == get(run).events_log


@heirs
@pytest.mark.parametrize("move", ["start", "finish", "fail", "cancel"])
def test_a_stale_copy_of_a_proxy_or_a_child_keeps_the_guard(
    model: Model, parent: Model, move: str
) -> None:
    stale = get(model.objects.create())
    parent.objects.filter(pk=stale.pk).update(status="cancelled")
    before = row(stale)

    arguments = ["late"] if move in ("fail", "cancel") else []
    assert getattr(stale, move)(*arguments) is False

    assert row(stale) == before
    assert stale.status == "cancelled"


@pytest.mark.parametrize("model", [ChildRun, TableChildRun])
def test_the_update_of_a_child_compares_the_status_in_the_database(model: Model) -> None:
    """Through the child Django would select the keys first and update without the condition."""
    run = get(model.objects.create())

    with connection.execute_wrapper(only_updates := _Recorder()):
        run.start()

    [sql] = only_updates.statements
    assert sql.startswith("UPDATE")
    assert "status" in sql[sql.index("WHERE") :]


class _Recorder:
    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements.append(sql)
        return execute(sql, params, many, context)


@pytest.mark.parametrize("model", [ChildRun, TableChildRun])
def test_a_child_saves_its_own_columns_and_the_rules_hold(model: Model) -> None:
    run = get(model.objects.create())
    stale = get(run)
    run.append_event("tool", "search")
    run.cancel()

    stale.note = "seen"
    stale.save()
    assert (row(run)["note"], row(run)["status"]) == ("seen", "cancelled")
    assert len(get(run).events_log) == 1

    stale.note, stale.status = "lost", "running"
    with pytest.raises(StaleRun):
        stale.save()
    assert row(run)["note"] == "seen"


@pytest.mark.parametrize(("model", "parent"), [(ChildRun, FreshRun), (TableChildRun, TableRun)])
def test_a_deleted_child_is_deleted_with_its_run(model: Model, parent: Model) -> None:
    run = get(model.objects.create())
    run.append_event("tool", "search")

    run.delete()

    assert not parent.objects.exists()
    assert not TableRunEvent.objects.exists()


# Partial copies


@every_shape
def test_listing_only_keys_is_one_query_and_transitions_are_bounded(
    model: Model, django_assert_num_queries: Any
) -> None:
    """F59."""
    model.objects.all().delete()
    for _ in range(20):
        make(model)
    get(model.objects.first()).append_event("warm", "up")

    with django_assert_num_queries(1):
        runs = list(model.objects.only("pk").order_by("pk"))
        for run in runs:
            str(run)
            repr(run)
            hash(run)

    with django_assert_num_queries(statements_of_append(model)):
        runs[0].append_event("tool", "search")
    # Whether the run is pending or running is a guess that costs one look when it is wrong.
    with django_assert_num_queries(3):
        assert runs[1].cancel() is True


@full_shapes
def test_deferred_fields_are_not_fetched_by_a_transition(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model, input_prompt="long")
    run.append_event("warm", "up")
    partial = model.objects.defer(log_field(model), "output", "input_prompt").get(pk=run.pk)

    with django_assert_num_queries(1):
        assert partial.start() is True
    with django_assert_num_queries(1):
        assert partial.finish("done") is True

    assert partial.get_deferred_fields() == {log_field(model), "input_prompt"}


@every_shape
def test_a_transition_of_a_copy_that_never_read_the_status_is_decided_by_the_row(
    model: Model,
) -> None:
    for status, expected in (("pending", True), ("running", True), ("complete", False)):
        run = make(model, status)
        partial = model.objects.only("pk").get(pk=run.pk)

        assert partial.fail("no") is expected
        assert row(run)["status"] == ("failed" if expected else status)
        assert partial.status == row(run)["status"]


@every_shape
def test_refreshing_makes_a_copy_current(model: Model) -> None:
    stale = make(model)
    other = get(stale)
    other.start()
    other.append_event("tool", "search")

    stale.refresh_from_db()
    stale.status = "complete"
    stale.save()

    assert row(stale)["status"] == "complete"
    assert len(stale.events_log) == 1


@every_shape
def test_refreshing_another_field_does_not_make_the_status_current(model: Model) -> None:
    stale = make(model)
    get(stale).start()

    stale.refresh_from_db(fields=[log_field(model)])
    stale.status = "cancelled"
    with pytest.raises(StaleRun):
        stale.save()


# Copied copies

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda run: pickle.loads(pickle.dumps(run)),
}
every_copy = pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)


@every_shape
@every_copy
def test_a_duplicate_knows_what_its_original_knew(model: Model, duplicate: Any) -> None:
    run = make(model, output="x", output_metadata={"a": [1]})
    run.append_event("tool", "search")

    twin = duplicate(run)

    assert twin == run
    assert type(twin.status) is RunStatus
    assert twin.get_deferred_fields() == run.get_deferred_fields()
    assert twin.summary() == run.summary()
    assert twin.events_log == run.events_log


@every_shape
@every_copy
def test_a_duplicate_saves_by_the_same_rules(model: Model, duplicate: Any) -> None:
    run = make(model)
    twin, late = duplicate(run), duplicate(run)

    twin.status = "running"
    twin.save()
    late.status = "cancelled"
    with pytest.raises(StaleRun):
        late.save()

    assert row(run)["status"] == "running"


@every_shape
@every_copy
def test_a_duplicate_moves_by_the_same_rules(model: Model, duplicate: Any) -> None:
    run = make(model)
    twin = duplicate(run)

    assert (run.start(), twin.start()) == (True, False)


@every_copy
def test_a_duplicate_of_an_unknown_status_keeps_what_is_stored(duplicate: Any) -> None:
    PlatformRun.objects.filter(pk=1).update(status=models.Value(9, models.IntegerField()))
    run = PlatformRun.objects.get(pk=1)

    twin = duplicate(run)

    assert (twin.status, twin.status.stored) == ("unknown (9)", 9)


def test_what_a_duplicate_changes_is_not_the_originals() -> None:
    run = make(FreshRun)

    twin = copy.copy(run)
    twin.status = "running"
    twin.save()

    run.status = "failed"
    with pytest.raises(StaleRun):  # the original still believes in pending
        run.save()


# Computed beats stored


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, FreshRun])
def test_total_tokens_is_taken_by_constructors_and_create(model: Model) -> None:
    assert model(total_tokens=5).reported_total_tokens == 5
    run = model.objects.create(total_tokens=5, input_tokens=1, output_tokens=1)

    assert (get(run).total_tokens, get(run).reported_total_tokens) == (5, 5)


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_the_digest_is_taken_by_constructors_and_create(model: Model) -> None:
    assert model(instructions_digest="0badc0de").stored_instructions_digest == "0badc0de"
    run = model.objects.create(instructions_digest="0badc0de")

    assert get(run).instructions_digest == "0badc0de"


@pytest.mark.parametrize("model", [GeneratorRun, MinimalRun])
def test_a_total_without_a_column_is_skipped(model: Model) -> None:
    run = model.objects.create(total_tokens=5)

    assert get(run).total_tokens == 0


@pytest.mark.parametrize("model", [GeneratorRun, MinimalRun])
def test_a_total_without_a_column_reads_the_same_before_and_after_a_save(model: Model) -> None:
    run = model.objects.create(total_tokens=5)
    assert run.total_tokens == get(run).total_tokens

    run.total_tokens = 7
    run.save()
    assert run.total_tokens == get(run).total_tokens


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, FreshRun])
def test_a_save_never_stores_the_computed_total(model: Model) -> None:
    run = make(model, input_tokens=7, output_tokens=5)
    assert run.total_tokens == 12

    run.save()
    run.refresh_from_db()

    assert row(run)["reported_total_tokens"] is None
    assert run.reported_total_tokens is None


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_total_tokens_may_be_annotated(model: Model) -> None:
    run = make(model, input_tokens=7)

    found = model.objects.annotate(total_tokens=models.Value(3)).get(pk=run.pk)

    assert found.total_tokens == 3


# Stock ways of writing


@full_shapes
def test_update_or_create_updates_without_touching_status_and_log(model: Model) -> None:
    run = make(model, "running", trace_id="t-1")
    run.append_event("tool", "search")

    found, created = model.objects.update_or_create(trace_id="t-1", defaults={"output": "x"})

    assert (found.pk, created) == (run.pk, False)
    stored = get(run)
    assert (stored.status, stored.output, len(stored.events_log)) == ("running", "x", 1)


@full_shapes
def test_update_or_create_creates(model: Model) -> None:
    run, created = model.objects.update_or_create(trace_id="t-1", defaults={"output": "x"})

    assert created
    assert (row(run)["output"], row(run)["status"]) == ("x", "pending")


@full_shapes
def test_update_or_create_moves_a_status_by_the_rules(
    model: Model, django_capture_on_commit_callbacks: Any
) -> None:
    run = make(model, "complete", trace_id="t-1")
    other = make(model, "pending", trace_id="t-2")

    with listening() as heard, django_capture_on_commit_callbacks(execute=True):
        with pytest.raises(StaleRun), transaction.atomic():
            model.objects.update_or_create(trace_id="t-1", defaults={"status": "running"})
        model.objects.update_or_create(trace_id="t-2", defaults={"status": "running"})

    assert (row(run)["status"], row(other)["status"]) == ("complete", "running")
    assert [change.pk for change in heard] == [other.pk]


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_update_or_create_takes_the_names_of_the_contract(model: Model) -> None:
    run = make(model, trace_id="t-1")

    model.objects.update_or_create(trace_id="t-1", defaults={"total_tokens": 5})

    assert get(run).total_tokens == 5


@every_shape
def test_bulk_create_makes_whole_runs(model: Model) -> None:
    log = [{"kind": "first"}]
    model.objects.all().delete()

    model.objects.bulk_create([model(status="running", **{log_field(model): log})] * 1)

    [run] = model.objects.all()
    assert (run.status, run.events_log) == ("running", log)


@pytest.mark.parametrize("model", EVERY_SHAPE)
@pytest.mark.parametrize("form", ["json", "python"])
def test_fixtures_carry_runs_over_whole(model: Model, form: str) -> None:
    run = make(model, "failed", output="é", output_metadata={"a": [1]}, error_message="no")
    run.append_event("tool", "search")
    if has(model, "created_at"):  # Django's JSON has times to the millisecond
        model.objects.filter(pk=run.pk).update(created_at=NINE, updated_at=NINE)
    before = row(run)
    log = get(run).events_log
    entries = TableRunEvent.objects.filter(run_id=run.pk) if keeps_a_table(model) else []
    dumped = serializers.serialize(form, [get(run), *entries])
    model._base_manager.filter(pk=run.pk).delete()

    for loaded in serializers.deserialize(form, dumped):
        loaded.save()

    assert row(run) == before
    assert get(run).events_log == log


def test_dumpdata_names_what_is_stored() -> None:
    out = io.StringIO()

    call_command("dumpdata", "tests.PlatformRun", stdout=out)

    assert '"status": "failed"' in out.getvalue()
    assert '"reported_total_tokens": 260' in out.getvalue()
