from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import AppConfig, apps
from django.core import checks
from django.db import ConnectionHandler, connection, models
from django.db.models.functions import Now
from django.test import override_settings
from django.test.utils import isolate_apps

from solid_runs.columns import forget_facts
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.mixin import AgentRunMixin
from solid_runs.models import (
    AbstractAgentRun,
    AbstractRunEvent,
    GeneratorAgentRun,
    PlatformAgentRun,
)
from solid_runs.querysets import RunQuerySet
from tests import models as hosts
from tests.run_models import NarrowRun, create_narrow_table


@pytest.fixture
def apart() -> Iterator[AppConfig]:
    """An app without models, so that those of a test are all that the checks see."""
    with isolate_apps("tests") as registry:
        yield registry.get_app_config("tests")


def found(
    *app_configs: AppConfig, tags: Any = ("solid_runs",), **kwargs: Any
) -> list[checks.CheckMessage]:
    messages = checks.run_checks(app_configs=list(app_configs) or None, tags=tags, **kwargs)
    return [message for message in messages if message.id.startswith("solid_runs.")]


def ids(*app_configs: AppConfig, **kwargs: Any) -> list[str]:
    return [message.id for message in found(*app_configs, **kwargs)]


def test_the_models_of_the_suite_are_without_fault() -> None:
    assert found() == []


def test_every_message_has_a_hint(apart: AppConfig) -> None:
    class Run(PlatformAgentRun):
        events_column = "nope"
        delete = models.IntegerField(null=True)
        objects = models.Manager()

        class Meta:
            db_table = "live"

    with override_settings(SOLID_RUNS={"X": 1, "SUBJECTS": {"A": "b.C"}, "NOUNS": []}):
        messages = found(apart)

    assert {message.id[-4:] for message in messages} == {
        "W001",
        "W002",
        "E003",
        "E010",
        "E012",
        "W015",
        "E016",
    }
    assert all(message.hint for message in messages)


# Settings


@pytest.mark.parametrize(
    "configured",
    [
        None,
        {},
        {"SUBJECTS": None},
        {"SUBJECTS": {}},
        {"SUBJECTS": {"Document": "tests.Document"}, "ADJECTIVES": ["red"], "NOUNS": ("bus",)},
    ],
    ids=str,
)
def test_good_settings_are_passed_over(configured: Any) -> None:
    with override_settings(SOLID_RUNS=configured):
        assert ids() == []


@override_settings(SOLID_RUNS={"SUBJECT": {}})
def test_an_unknown_key_is_named_with_those_that_exist() -> None:
    [message] = found()

    assert message.id == "solid_runs.W001"
    assert "'SUBJECT'" in message.msg
    assert "SUBJECTS" in message.hint


@pytest.mark.parametrize("label", ["tests.Nothing", "nowhere.Document", "Document", "", None])
def test_a_subject_that_is_no_model_is_named(label: Any) -> None:
    with override_settings(SOLID_RUNS={"SUBJECTS": {"Book": label}}):
        [message] = found()

    assert message.id == "solid_runs.W002"
    assert "'Book'" in message.msg


@pytest.mark.parametrize("key", ["ADJECTIVES", "NOUNS"])
@pytest.mark.parametrize("words", ["red green", [], ()], ids=repr)
def test_words_that_are_no_list_of_words_are_an_error(key: str, words: Any) -> None:
    with override_settings(SOLID_RUNS={key: words}):
        [message] = found()

    assert message.id == "solid_runs.E003"
    assert key in message.msg


CAPS = ["COLUMN_LOG_ENTRIES", "TABLE_LOG_ENTRIES", "ENTRY_BYTES"]


@pytest.mark.parametrize("key", CAPS)
@pytest.mark.parametrize("cap", [0, -1, True, False, 1.5, "10", [10], float("inf")], ids=repr)
def test_a_cap_that_is_no_number_above_zero_is_an_error(key: str, cap: Any) -> None:
    with override_settings(SOLID_RUNS={key: cap}):
        [message] = found()

    assert message.id == "solid_runs.E004"
    assert repr(key) in message.msg
    assert "None for no cap" in message.msg


@pytest.mark.parametrize("cap", [256, 2**40, None])
def test_a_whole_number_or_none_is_a_cap(cap: Any) -> None:
    with override_settings(SOLID_RUNS=dict.fromkeys(CAPS, cap)):
        assert ids() == []


PERIODS = ["AG_UI_ATTACH_LIMIT", "AG_UI_HEARTBEAT", "AG_UI_KEEP_ALIVE", "AG_UI_STALL_AFTER"]
WRONG: list[tuple[str, Any]] = [
    *((key, value) for key in PERIODS for value in (0, -1, True, None, "2", float("nan"), 1e12)),
    *(("AG_UI_BODY_BYTES", value) for value in (0, -1, True, None, 1.5, "10")),
    *(("AG_UI_INTERRUPT_TTL", value) for value in (0, -1, True, "10", float("inf"))),
    *(("AG_UI_OFFER", value) for value in (0, 1, None, "no")),
    *(("CLOCK", value) for value in ("nowhere.now", "django.utils.timezone.later", 5, "")),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=repr)
def test_a_setting_of_the_wrong_kind_is_an_error_that_says_the_right_one(
    key: str, value: Any
) -> None:
    with override_settings(SOLID_RUNS={key: value}):
        [message] = found()

    assert message.id == "solid_runs.E005"
    assert repr(key) in message.msg


def test_settings_of_the_right_kind_are_none() -> None:
    right: dict[str, Any] = {
        **dict.fromkeys(PERIODS, 0.5),
        "AG_UI_STALL_AFTER": 2,
        "AG_UI_BODY_BYTES": 1,
        "AG_UI_INTERRUPT_TTL": 3600,
        "AG_UI_OFFER": False,
        "CLOCK": "django.utils.timezone.now",
    }
    with override_settings(SOLID_RUNS=right):
        assert ids() == []


def test_a_stall_limit_close_to_the_heartbeat_is_warned_of() -> None:
    with override_settings(SOLID_RUNS={"AG_UI_HEARTBEAT": 30}):
        assert ids() == ["solid_runs.W006"]


# Models


def test_good_hosts_are_passed_over(apart: AppConfig) -> None:
    class Live(PlatformAgentRun):
        class Meta(PlatformAgentRun.Meta):
            managed = False
            db_table = "live"

    class Polymorphic(GeneratorAgentRun):
        class Meta(GeneratorAgentRun.Meta):
            managed = False
            db_table = "polymorphic"

    class Own(AbstractAgentRun):
        label = models.CharField(max_length=10)

    class OwnProxy(Own):
        class Meta:
            proxy = True

    class Child(Own):
        note = models.CharField(max_length=10)

        class Meta:
            pass

    class Least(AgentRunMixin):
        status = RunStatusField()
        events = RunJSONField(null=True)

    assert ids(apart) == []


def test_a_log_column_that_is_not_there_is_an_error(apart: AppConfig) -> None:
    class Run(AbstractAgentRun):
        events_column = "evnts"

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E010", Run)
    assert "'evnts'" in message.msg
    assert "events_column" in message.msg


def test_a_log_that_is_no_json_field_is_an_error(apart: AppConfig) -> None:
    class Run(AbstractAgentRun):
        events = models.TextField()

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E011", Run)
    assert "RunJSONField" in message.hint


@pytest.mark.parametrize("shape", [PlatformAgentRun, GeneratorAgentRun])
def test_a_host_that_forgot_managed_is_caught(apart: AppConfig, shape: Any) -> None:
    meta = type("Meta", (), {"db_table": "live"})  # inherits nothing from the Meta of the shape
    namespace = {"__module__": __name__, "__qualname__": "Forgot", "Meta": meta}
    forgot = type("Forgot", (shape,), namespace)

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E012", forgot)
    assert f"class Meta({shape.__name__}.Meta)" in message.hint
    assert "managed = False" in message.hint


@pytest.mark.parametrize(
    "model",
    [hosts.PlatformRun, hosts.PlatformJsonRun, hosts.GeneratorRun, hosts.AgentOwnedRun],
)
def test_the_models_over_live_tables_stay_unmanaged(model: Any) -> None:
    assert model._meta.managed is False
    assert model._meta.db_table in ("agent_runs", "agent_runs_json", "solid_agent_runs")


def test_a_model_without_a_status_is_an_error(apart: AppConfig) -> None:
    class Run(AgentRunMixin):
        events = RunJSONField(null=True)

    assert ids(apart) == ["solid_runs.E013"]


def test_a_composite_primary_key_is_an_error(apart: AppConfig) -> None:
    class Run(AgentRunMixin):
        pk = models.CompositePrimaryKey("tenant", "number")
        tenant = models.IntegerField()
        number = models.IntegerField()
        status = RunStatusField()
        events = RunJSONField(null=True)

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E017", Run)


def test_a_primary_key_of_one_column_is_fine_whatever_it_is(apart: AppConfig) -> None:
    class Base(AgentRunMixin):
        uuid = models.UUIDField(primary_key=True)
        status = RunStatusField()
        events = RunJSONField(null=True)

    class Child(Base):
        number = models.IntegerField(primary_key=True)
        base = models.OneToOneField(Base, models.CASCADE, parent_link=True)

    assert ids(apart) == []


@pytest.mark.parametrize("field", [models.CharField(max_length=20), models.IntegerField()])
def test_a_status_that_is_no_run_status_field_is_an_error(
    apart: AppConfig, field: models.Field[Any, Any]
) -> None:
    class Run(AgentRunMixin):
        status = field.clone()
        events = RunJSONField(null=True)

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E018", Run)
    assert "RunStatusField" in message.hint


@pytest.mark.parametrize("store", ["name", "integer"])
def test_a_status_of_the_hosts_own_run_status_field_is_fine(apart: AppConfig, store: Any) -> None:
    class OwnStatusField(RunStatusField):
        pass

    class Run(AgentRunMixin):
        status = OwnStatusField(store=store)
        events = RunJSONField(null=True)

    assert ids(apart) == []


def test_a_lifecycle_over_two_tables_is_an_error(apart: AppConfig) -> None:
    class Base(AgentRunMixin):
        status = RunStatusField()
        events = RunJSONField(null=True)

    class Child(Base):
        output = models.TextField(null=True)
        completed_at = models.DateTimeField(null=True)

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E014", Child)
    assert "output, completed_at" in message.msg
    assert "Base" in message.msg


def test_a_log_in_another_table_than_the_status_is_an_error(apart: AppConfig) -> None:
    class Base(models.Model):
        status = RunStatusField()

    class Child(AgentRunMixin, Base):
        events = RunJSONField(null=True)

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E014", Child)
    assert "events" in message.msg


def test_a_default_manager_that_is_not_one_of_runs_is_warned_of(apart: AppConfig) -> None:
    class Plain(models.Model):
        objects = models.Manager()

        class Meta:
            abstract = True

    class Run(Plain, AbstractAgentRun):
        pass

    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.W015", Run)
    assert "RunQuerySet.as_manager()" in message.hint


def test_a_manager_of_the_hosts_own_queryset_is_fine(apart: AppConfig) -> None:
    class HostQuerySet(RunQuerySet):
        pass

    class Run(AbstractAgentRun):
        objects = HostQuerySet.as_manager()

    assert ids(apart) == []


CLASHES = ["delete", "save", "check", "clean", "objects", "start", "finish", "summary", "subject"]


@pytest.mark.parametrize("name", CLASHES)
def test_a_field_that_hides_a_member_of_the_run_is_an_error(apart: AppConfig, name: str) -> None:
    """F49."""
    field = models.IntegerField(null=True, db_column="old_name")
    namespace = {"__module__": __name__, "__qualname__": "Run", name: field}
    run = type("Run", (AbstractAgentRun,), namespace)

    messages = [message for message in found(apart) if message.id == "solid_runs.E016"]

    assert [message.obj for message in messages] == [run]
    assert repr(name) in messages[0].msg
    assert "db_column='old_name'" in messages[0].hint


@pytest.mark.parametrize("name", ["logs", "type", "errors", "order", "model", "group", "select"])
def test_an_ordinary_word_makes_a_good_field(apart: AppConfig, name: str) -> None:
    """F49."""
    namespace = {
        "__module__": __name__,
        "__qualname__": "Run",
        name: models.IntegerField(null=True),
    }
    type("Run", (AbstractAgentRun,), namespace)

    assert ids(apart) == []


@pytest.mark.django_db
def test_a_field_named_pk_is_refused_by_django_itself(apart: AppConfig) -> None:
    class Run(AbstractAgentRun):
        pk = models.IntegerField(null=True)

    assert "fields.E003" in {message.id for message in Run.check(databases=[])}


# A log in a table


def a_run(**namespace: Any) -> Any:
    return type("Run", (AbstractAgentRun,), {"__module__": __name__, **namespace})


def entries_of(model: Any, **namespace: Any) -> Any:
    """The model of this run's entries, which the run names."""
    key = models.ForeignKey(model, models.CASCADE, related_name="+", db_index=False)
    members = {"__module__": __name__, "run": key, **namespace}
    model.events_model = type("Entry", (AbstractRunEvent,), members)
    return model.events_model


def test_hosts_with_a_table_of_entries_are_passed_over(apart: AppConfig) -> None:
    run = a_run()

    class Child(run):
        note = models.CharField(max_length=10)

        class Meta:
            pass

    class Proxy(run):
        class Meta:
            proxy = True

    class Meta(AbstractRunEvent.Meta):
        db_table = "entries"

    entries_of(run, Meta=Meta)

    assert found(apart) == []


def test_a_run_without_a_counter_is_told_to_have_one(apart: AppConfig) -> None:
    class Run(AgentRunMixin):
        status = RunStatusField()
        events = RunJSONField(null=True)

    entries_of(Run)
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E023", Run)
    assert "Add events_count = models.BigIntegerField(null=True" in message.msg

    class Counted(AgentRunMixin):
        status = RunStatusField()
        events = RunJSONField(null=True)
        events_count = models.BigIntegerField(null=True)

    Run.events_model = None
    Counted.events_model = type(
        "CountedEntry",
        (AbstractRunEvent,),
        {"__module__": __name__, "run": models.ForeignKey(Counted, models.CASCADE)},
    )
    assert found(apart) == []


def test_a_counter_in_another_table_than_the_log_is_no_counter(apart: AppConfig) -> None:
    class Base(AgentRunMixin):
        status = RunStatusField()
        events = RunJSONField(null=True)

    class Child(Base):
        events_count = models.BigIntegerField(null=True)

    entries_of(Child)
    messages = found(apart)

    assert [(message.id, message.obj) for message in messages] == [("solid_runs.E023", Child)]


@pytest.mark.parametrize(
    "named",
    ["tests.Nothing", "Nothing", "nowhere.Entry", "tests.a.Entry", "", "tests.Document"],
)
def test_entries_of_a_model_that_is_none_are_an_error(apart: AppConfig, named: str) -> None:
    run = a_run(events_model=named)
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E024", run)
    assert repr(named) in message.msg
    assert "AbstractRunEvent" in message.hint


def test_entries_of_a_class_that_is_no_model_at_all_are_an_error(apart: AppConfig) -> None:
    a_run(events_model=Iterator)

    assert ids(apart) == ["solid_runs.E024"]


@pytest.mark.parametrize("named", ["tests.TableRunEvent", "TableRunEvent"])
def test_entries_may_be_named_with_and_without_their_app(apart: AppConfig, named: str) -> None:
    a_run(events_model=named)

    assert ids(apart) == ["solid_runs.E025"], "they are there, but of another run"


def test_entries_of_another_run_are_an_error(apart: AppConfig) -> None:
    run = a_run()
    other = type("Other", (AbstractAgentRun,), {"__module__": __name__})
    entry = entries_of(other)
    run.events_model = entry
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E025", run)
    assert f"{entry._meta.label}.run is no foreign key to {run._meta.label}" in message.msg
    assert "ForeignKey(Run, models.CASCADE" in message.hint


def test_entries_without_a_foreign_key_are_an_error(apart: AppConfig) -> None:
    entries_of(a_run(), run=models.BigIntegerField())

    assert ids(apart) == ["solid_runs.E025"]


def test_a_foreign_key_to_a_model_that_is_not_there_is_left_to_django(apart: AppConfig) -> None:
    run = a_run()
    entries_of(run, run=models.ForeignKey("tests.Rnu", models.CASCADE))

    assert set(ids(apart)) <= {"solid_runs.E025"}, "and the check did not raise"


def constrained(*constraints: models.BaseConstraint, **more: Any) -> type:
    return type("Meta", (), {"constraints": list(constraints), **more})


@pytest.mark.parametrize(
    "meta",
    [
        constrained(),
        constrained(models.UniqueConstraint(fields=["run", "id"], name="a")),
        constrained(models.UniqueConstraint(fields=["seq"], name="b")),
        constrained(
            models.UniqueConstraint(fields=["run", "seq"], name="c", condition=models.Q(seq__gt=0))
        ),
        constrained(models.UniqueConstraint("run", "seq", name="d")),
    ],
    ids=["none", "another field", "too few", "some rows only", "of expressions"],
)
def test_entries_that_are_not_unique_by_their_number_are_an_error(
    apart: AppConfig, meta: type
) -> None:
    run = a_run()
    entry = entries_of(run, Meta=meta)
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E026", run)
    assert f"{entry._meta.label} has no unique constraint on (run, seq)" in message.msg
    assert "AbstractRunEvent.Meta" in message.hint


@pytest.mark.parametrize(
    "meta",
    [
        constrained(models.UniqueConstraint(fields=["run", "seq"], name="own")),
        constrained(unique_together=[("run", "seq")]),
    ],
    ids=["constraint", "unique_together"],
)
def test_entries_may_have_a_unique_constraint_of_their_own(apart: AppConfig, meta: type) -> None:
    entries_of(a_run(), Meta=meta)

    assert ids(apart) == []


UNFILLED: list[Any] = [
    models.CharField(max_length=10),
    models.CharField(max_length=10, default="x"),
    models.DateTimeField(auto_now_add=True),
    models.ForeignKey("tests.Agent", models.CASCADE),
]
FILLED: list[Any] = [
    models.CharField(max_length=10, null=True),
    models.CharField(max_length=10, db_default="x"),
    models.DateTimeField(db_default=Now()),
    models.GeneratedField(
        expression=models.F("seq"), output_field=models.BigIntegerField(), db_persist=True
    ),
    models.ForeignKey("tests.Agent", models.CASCADE, null=True),
]


@pytest.mark.parametrize("field", UNFILLED)
def test_a_column_that_an_append_leaves_empty_is_an_error(
    apart: AppConfig, field: models.Field[Any, Any]
) -> None:
    run = a_run()
    entries_of(run, extra=field.clone(), note=models.TextField(null=True))
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E027", run)
    assert message.msg.endswith("nothing would fill extra.")
    assert "db_default" in message.hint


@pytest.mark.parametrize("field", FILLED)
def test_a_column_that_fills_itself_is_fine(
    apart: AppConfig, field: models.Field[Any, Any]
) -> None:
    entries_of(a_run(), extra=field.clone())

    assert ids(apart) == []


def test_a_key_that_only_python_makes_is_filled_by_nobody(apart: AppConfig) -> None:
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    run = a_run()
    entries_of(run, id=key)
    [message] = found(apart)

    assert (message.id, message.obj) == ("solid_runs.E027", run)
    assert message.msg.endswith("nothing would fill id.")


@pytest.mark.parametrize("key", [models.AutoField, models.SmallAutoField, models.BigAutoField])
def test_a_key_that_counts_by_itself_is_fine(apart: AppConfig, key: Any) -> None:
    entries_of(a_run(), id=key(primary_key=True))

    assert ids(apart) == []


# Databases


@pytest.fixture(scope="module")
def narrow_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_narrow_table(connection)
        forget_facts()


def database_ids() -> list[str]:
    return ids(apps.get_app_config("tests"), databases=["default"], tags=["database"])


def test_no_database_is_asked_that_is_not_named() -> None:
    assert ids(apps.get_app_config("tests"), tags=["database"], databases=[]) == []


@pytest.mark.django_db
def test_the_default_database_of_the_suite() -> None:
    assert database_ids() == (["solid_runs.I022"] if connection.vendor == "sqlite" else [])


@pytest.fixture
def not_strict(db: None) -> Iterator[None]:
    if connection.vendor != "mysql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (before,) = cursor.fetchone()
        cursor.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")
        yield
        cursor.execute("SET SESSION sql_mode = %s", [before])


def test_mariadb_outside_strict_mode_is_warned_of(not_strict: None) -> None:
    warned = "solid_runs.W020" in database_ids()

    assert warned is (connection.vendor == "mysql")


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL"])
def test_every_strict_mode_of_mariadb_is_passed_over(mode: str, not_strict: None) -> None:
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = %s", [mode])

    assert "solid_runs.W020" not in database_ids()


@pytest.mark.django_db
def test_a_table_without_four_byte_characters_is_warned_of(
    narrow_table: None, apart: AppConfig
) -> None:
    class Run(AgentRunMixin):
        status = RunStatusField()
        output = models.TextField(null=True)
        events = RunJSONField(null=True)

        class Meta:
            managed = False
            db_table = "narrow_runs"

    messages = found(apart, databases=["default"], tags=["database"])

    narrow = [message for message in messages if message.id == "solid_runs.W021"]
    if connection.vendor != "mysql":
        assert narrow == []
        return
    [message] = narrow
    assert message.obj is Run
    assert "status, output, events in 'narrow_runs'" in message.msg
    assert "utf8mb4" in message.hint


@pytest.mark.django_db
def test_what_a_run_says_in_emoji_does_not_stop_its_end(narrow_table: None) -> None:
    """F52."""
    run = NarrowRun.objects.create()

    run.append_event("tool", "🚆", detail={"mood": "😀"})
    assert run.finish("hi 😀 there", metadata={"mood": "😀", "😀": 1}) is True

    stored = NarrowRun.objects.get(pk=run.pk)
    emoji = "\ufffd" if connection.vendor == "mysql" else "😀"
    assert (stored.status, stored.output) == ("complete", f"hi {emoji} there")
    assert stored.events_log[0]["label"] == "🚆"
    assert stored.output_metadata["mood"] in ("😀", "\ufffd")
    assert len(stored.output_metadata) == 2


@pytest.mark.parametrize(
    ("options", "advised"),
    [
        ({}, True),
        ({"transaction_mode": None}, True),
        ({"transaction_mode": "DEFERRED"}, True),
        ({"transaction_mode": "IMMEDIATE"}, False),
        ({"transaction_mode": "immediate"}, False),
        ({"transaction_mode": "EXCLUSIVE"}, False),
    ],
    ids=str,
)
def test_immediate_transactions_are_advised_on_sqlite(
    options: Any, advised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "OPTIONS": options}
    handler = ConnectionHandler({"default": sqlite})  # not connected yet, as in a command
    monkeypatch.setattr("solid_runs.checks.connections", handler)

    assert ("solid_runs.I022" in database_ids()) is advised


def test_an_entry_of_no_size_is_an_error() -> None:
    with override_settings(SOLID_RUNS={"ENTRY_BYTES": 255}):
        [message] = found()

    assert message.id == "solid_runs.E004"
    assert "256 or more" in message.msg


def test_entries_that_point_at_another_column_of_the_run_are_an_error(apart: AppConfig) -> None:
    """By their relation they would belong to another run than the one that they were said to."""
    run = type(
        "Run",
        (AbstractAgentRun,),
        {"__module__": __name__, "number": models.IntegerField(unique=True), "events_model": None},
    )
    run.events_model = entries_of(
        run, run=models.ForeignKey(run, models.CASCADE, to_field="number", db_index=False)
    )

    assert ids(apart) == ["solid_runs.E025"]


def test_entries_one_to_one_are_an_error(apart: AppConfig) -> None:
    run = a_run()
    run.events_model = entries_of(run, run=models.OneToOneField(run, models.CASCADE))

    assert ids(apart) == ["solid_runs.E025"]


@pytest.mark.parametrize(
    "fields",
    [{"entry": models.TextField()}, {"seq": models.CharField(max_length=9)}],
    ids=["entry", "seq"],
)
def test_entries_of_other_fields_are_an_error(apart: AppConfig, fields: dict[str, Any]) -> None:
    entries_of(a_run(), **fields)

    assert ids(apart) == ["solid_runs.E028"]


def test_a_counter_that_is_never_null_is_an_error(apart: AppConfig) -> None:
    """Every log that is in its column would read as empty."""

    class Run(AgentRunMixin):
        status = RunStatusField(store="name")
        events = RunJSONField(null=True)
        events_count = models.BigIntegerField(default=0)

    Run.events_model = entries_of(Run)

    assert ids(apart) == ["solid_runs.E028"]
