"""JSON, times, statuses and names as other programs left them in the columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.core import checks
from django.db import connection, models
from django.db.models import Count, Max, Q
from django.utils import timezone

from solid_runs import checks as run_checks
from solid_runs.exceptions import UnknownStatusError
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.models import AgentRunMixin
from solid_runs.statuses import RunStatus
from tests.faults.tables import apart, execute, on_every_table, raw, set_raw, table
from tests.models import FreshRun, GeneratorRun, PlatformJsonRun, PlatformRun

pytestmark = pytest.mark.django_db

legacy = pytest.mark.parametrize(
    "model", [PlatformRun, PlatformJsonRun, GeneratorRun], ids=lambda m: m.__name__
)


def run_model(name: str, db_table: str, **members: Any) -> Any:
    options = {"app_label": "tests", "apps": apart, "managed": False, "db_table": db_table}
    members |= {"__module__": __name__, "Meta": type("Meta", (), options)}
    return type(name, (AgentRunMixin,), members)


class TestJSON:
    @legacy
    def test_f44_json_is_decoded_once(self, model: Any) -> None:
        run = model.objects.get(pk=2)
        assert run.output_metadata["model"] == "gpt-4o"
        assert run.events_log[0]["label"] == "gpt-4o"
        run.output_metadata = {"text": '"123"', "list": "[1]", "n": "123"}
        run.save()
        assert model.objects.get(pk=2).output_metadata == run.output_metadata

    @legacy
    def test_f44_a_string_that_looks_like_json_stays_a_string(self, model: Any) -> None:
        set_raw(model(pk=2), "output_metadata", '"123"')
        assert model.objects.get(pk=2).output_metadata == "123"
        assert model.objects.get(pk=2).summary()["model"] is None

    @pytest.mark.parametrize("kind", ["json", "jsonb", "text", "longtext"])
    def test_f44_every_type_of_column_goes_through_a_lifecycle(
        self, kind: str, transactional_db: None
    ) -> None:
        kinds = {"jsonb": "json"} if connection.vendor == "mysql" else {"longtext": "text"}
        column = kinds.get(kind, kind)
        with table("fault_kinds", f"status integer, log {column}, output_metadata {column}"):
            model = JSON_RUN
            run = model.objects.create(output_metadata={"a": 1})
            assert run.start()
            run.append_event("x", "“y” 🚆")
            assert run.finish(metadata={"b": [None, True, 1.5, "'\"\\"]})
            stored = model.objects.get(pk=run.pk)
            assert stored.output_metadata == {"a": 1, "b": [None, True, 1.5, "'\"\\"]}
            assert stored.events_log[0]["label"] == "“y” 🚆"

    @on_every_table
    def test_f45_distinct_grouping_and_union_work_on_any_json_column(self, model: Any) -> None:
        model.objects.all().delete()
        for _ in range(2):
            model.objects.create(output_metadata={"provider": "openai"})
        rows = model.objects.filter(output_metadata__provider="openai")
        assert rows.distinct().count() == 2
        assert len(rows.distinct()) == 2
        assert len(rows.annotate(n=Count("pk"))) == 2
        grouped = rows.values("output_metadata").annotate(n=Count("pk"))
        assert [group["n"] for group in grouped] == [2]
        assert list(rows.values_list("status").annotate(n=Count("pk"))) == [("pending", 2)]
        assert rows.union(model.objects.filter(status="running")).count() == 2
        assert len(rows.order_by("-output_metadata__provider").distinct()) == 2


JSON_RUN = run_model(
    "JSONRun",
    "fault_kinds",
    events_column="log",
    status=RunStatusField(store="integer"),
    log=RunJSONField(null=True),
    output_metadata=RunJSONField(null=True),
)


class TestTimestamps:
    @legacy
    def test_f46_naive_utc_columns_read_as_aware_times(self, model: Any) -> None:
        run = model.objects.get(pk=3)
        assert run.started_at == datetime(2026, 1, 15, 9, 30, 20, tzinfo=UTC)
        assert timezone.now() - run.started_at > timedelta(0)
        runs = [*model.objects.all(), FreshRun(created_at=timezone.now())]
        assert sorted(runs, key=lambda run: run.created_at)[-1] is runs[-1]
        assert run.calculated_duration_ms() == 3250
        run.duration_ms = None
        assert run.calculated_duration_ms() == 3250

    @legacy
    def test_f46_what_is_written_reads_as_rails_writes_it(self, model: Any) -> None:
        run = model.objects.create()
        before = datetime.now(UTC).replace(tzinfo=None)
        assert run.start()
        stored = datetime.fromisoformat(raw(run, "started_at"))
        assert abs(stored - before) < timedelta(minutes=1), "UTC, whatever TIME_ZONE says"
        assert model.objects.get(pk=run.pk).started_at == run.started_at
        assert run.finish()
        assert run.duration_ms is not None
        assert model.objects.filter(started_at__gte=run.started_at).get() == run


class TestStatuses:
    @on_every_table
    def test_f47_statuses_are_found_by_name_member_and_integer(self, model: Any) -> None:
        model.objects.all().delete()
        for status in RunStatus:
            model.objects.create(status=status)
        for asked in ("running", RunStatus.RUNNING, 1):
            assert model.objects.get(status=asked).status is RunStatus.RUNNING
            assert model.objects.for_status(asked).count() == 1
            assert model.objects.exclude(status=asked).count() == 4
        assert model.objects.filter(status__in=["running", 3]).count() == 2
        assert model.objects.aggregate(n=Count("pk", filter=Q(status="failed")))["n"] == 1

    @on_every_table
    @pytest.mark.parametrize("bogus", ["bogus", "RUNNING", 9, True, 1.5, ""])
    def test_f47_what_is_no_status_is_refused_and_told_the_names(
        self, model: Any, bogus: Any
    ) -> None:
        with pytest.raises(ValueError, match="pending, running"):
            model.objects.for_status(bogus)

    @on_every_table
    def test_f48_an_unknown_status_lists_and_refuses_to_move(self, model: Any) -> None:
        run = model.objects.create()
        stored: Any = 9 if model in (PlatformRun, PlatformJsonRun) else "paused"
        set_raw(run, "status", str(stored))
        found = model.objects.get(pk=run.pk)
        assert str(found.status) == found.summary()["status"] == f"unknown ({stored})"
        assert found.status.stored == stored
        assert (found.in_progress, found.finished) == (False, False)
        assert f"unknown ({stored})" in str(found)
        for copy in (found, run):
            for move in (copy.start, copy.finish, copy.cancel, partial(copy.fail, "x")):
                with pytest.raises(UnknownStatusError, match=repr(stored)):
                    move()
        found.append_event("x", "y")
        found.add_log("still")
        found.action_name = "renamed"
        found.save()
        assert raw(run, "status") == str(stored)
        assert found in model.objects.exclude(status="running")
        counts = dict(model.objects.values_list("status").annotate(n=Count("pk")).order_by())
        assert counts[f"unknown ({stored})"] == 1

    def test_f48_a_number_in_a_column_of_names_is_unknown(self) -> None:
        run = GeneratorRun.objects.create()
        set_raw(run, "status", "1")
        found = GeneratorRun.objects.get(pk=run.pk)
        assert str(found.status) == "unknown (1)"
        with pytest.raises(UnknownStatusError):
            found.finish()
        assert found not in GeneratorRun.objects.in_progress()

    @pytest.mark.parametrize("store", ["integer", "name"])
    def test_f48_a_null_status_is_unknown(self, store: str, transactional_db: None) -> None:
        model = {"integer": JSON_RUN, "name": NAMED_RUN}[store]
        column = {"integer": "integer", "name": "varchar(20)"}[store]
        with table("fault_kinds", f"status {column}, log text, output_metadata text"):
            execute("INSERT INTO fault_kinds (status) VALUES (NULL)")
            run = model.objects.get()
            assert str(run.status) == "unknown (null)"
            with pytest.raises(UnknownStatusError, match="None"):
                run.start()
            run.append_event("x", "y")
            run.save()
            assert raw(run, "status") is None
            assert model.objects.aggregate(m=Max("status"), n=Count("status")) == {
                "m": None,
                "n": 0,
            }
            assert model.objects.in_progress().count() == 0

    def test_f48_a_boolean_column_is_unknown(self, transactional_db: None) -> None:
        with table("fault_kinds", "status boolean, log text, output_metadata text"):
            execute("INSERT INTO fault_kinds (status) VALUES (true)")
            run = JSON_RUN.objects.get()
            if connection.vendor != "postgresql":  # a number, to the others
                assert run.status is RunStatus.RUNNING
                return
            assert str(run.status) == "unknown (True)"
            assert run.summary()["status"] == "unknown (True)"
            with pytest.raises(UnknownStatusError):
                run.finish()
            counts = list(JSON_RUN.objects.values_list("status").annotate(n=Count("pk")))
            assert counts == [("unknown (True)", 1)]


NAMED_RUN = run_model(
    "NamedRun",
    "fault_kinds",
    events_column="log",
    status=RunStatusField(store="name"),
    log=RunJSONField(null=True),
    output_metadata=RunJSONField(null=True),
)

RESERVED = ["type", "check", "delete", "save", "objects", "pk", "model", "errors", "order"]
ODD_RUN = run_model(
    "OddRun",
    "fault order",
    events_column="journal",
    key=models.BigAutoField(primary_key=True, db_column="pk"),
    status=RunStatusField(store="integer", db_column="check"),
    journal=RunJSONField(null=True, blank=True, db_column="order"),
    output=models.TextField(null=True, blank=True, db_column="delete"),
    output_metadata=RunJSONField(null=True, blank=True, db_column="group"),
    action_name=models.CharField(max_length=50, null=True, blank=True, db_column="type"),
    error_message=models.TextField(null=True, blank=True, db_column="errors"),
    trace_id=models.CharField(max_length=50, null=True, blank=True, db_column="select"),
)


@pytest.fixture
def odd_table(transactional_db: None) -> Iterator[None]:
    with connection.schema_editor() as editor:
        editor.create_model(ODD_RUN)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(ODD_RUN)


class TestNames:
    @pytest.mark.usefixtures("odd_table")
    def test_f49_columns_with_reserved_names_go_through_a_lifecycle(self) -> None:
        run = ODD_RUN.objects.create(action_name="ask")
        assert run.start()
        first = run.append_event("x", "100% 'quoted'")
        run.add_log("%s")
        assert run.finish("out", metadata={"a": 1, "b%": {"c": "%s"}})
        stored = ODD_RUN.objects.get(pk=run.pk)
        assert (stored.status, stored.output) == ("complete", "out")
        assert stored.output_metadata == {"a": 1, "b%": {"c": "%s"}}
        assert stored.events_log[0] == first
        assert [numbered.seq for numbered in stored.events_after(1)] == [2]
        assert ODD_RUN.objects.create().cancel("enough")
        assert ODD_RUN.objects.total_tokens_sum() == 0
        assert run_checks.check_models(app_configs=None) == []

    @pytest.mark.parametrize("name", ["check", "delete", "save", "objects", "pk", "start"])
    def test_f49_a_field_that_hides_a_member_is_named_by_a_check(self, name: str) -> None:
        clash = run_model(
            f"Clash{name}",
            "fault_clash",
            status=RunStatusField(),
            events=RunJSONField(null=True),
            **{name: models.TextField(null=True)},
        )
        problems = [*run_checks._shadowed_names(clash), *django_check(clash)]
        assert [p for p in problems if p.level >= checks.ERROR and repr(name) in p.msg]

    @pytest.mark.parametrize("name", ["logs", "type", "model", "errors", "order"])
    def test_f49_a_field_that_hides_nothing_is_no_clash(self, name: str) -> None:
        harmless = run_model(
            f"Harmless{name}",
            "fault_clash",
            events_column="events",
            status=RunStatusField(),
            events=RunJSONField(null=True),
            **{name: models.TextField(null=True)},
        )
        assert [*run_checks._shadowed_names(harmless), *django_check(harmless)] == []


def django_check(model: Any) -> list[Any]:
    """Django's own checks of a model, even of one whose check() is hidden by a field."""
    return list(models.Model.check.__func__(model))  # type: ignore[attr-defined]
