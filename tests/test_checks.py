from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import AppConfig, apps
from django.core import checks
from django.db import ConnectionHandler, connection, models
from django.test import override_settings
from django.test.utils import isolate_apps

from solid_runs.columns import forget_facts
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.mixin import AgentRunMixin
from solid_runs.models import AbstractAgentRun, GeneratorAgentRun, PlatformAgentRun
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
