"""The helpers that hosts use in their own tests, in a project of its own as a host has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection, models, transaction

from solid_runs.columns import facts
from solid_runs.fields import RunJSONField, RunStatusField, UTCDateTimeField
from solid_runs.models import AgentRunMixin
from solid_runs.testing import tables
from solid_runs.testing.signals import capture_status_changes
from solid_runs.testing.tables import create_tables, drop_tables, unmanaged_tables
from tests.models import AgentOwnedRun, FreshRun, FreshRunProxy, PlatformRun

ROOT = Path(__file__).resolve().parent.parent
apart = Apps()
"""A registry of their own for the models here, so that no other test meets them."""


class LiveRun(AgentRunMixin):
    events_column = "log"

    status = RunStatusField(store="integer")
    log = RunJSONField(null=True)
    created_at = UTCDateTimeField(auto_now_add=True)
    updated_at = UTCDateTimeField(auto_now=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "testing_live_runs"


class SlimRun(AgentRunMixin):
    """A second model over the same table, which knows one column that the other does not."""

    events_column = "log"

    status = RunStatusField(store="integer")
    log = RunJSONField(null=True)
    label = models.CharField(max_length=20, unique=True, default="none")

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "testing_live_runs"


def table_names() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor))


@pytest.mark.django_db(transaction=True)
class TestUnmanagedTables:
    def test_the_table_is_there_inside_the_block_only_and_the_model_stays_unmanaged(self) -> None:
        with unmanaged_tables(LiveRun) as made:
            assert made == [LiveRun]
            assert not LiveRun._meta.managed
            assert "testing_live_runs" in table_names()
            run = LiveRun.objects.create()
            assert run.start()
            run.append_event("llm", "gpt-4o")
            assert LiveRun.objects.get().events_log[0]["label"] == "gpt-4o"
        assert "testing_live_runs" not in table_names()
        assert not LiveRun._meta.managed

    def test_it_is_dropped_when_the_block_raises(self) -> None:
        with pytest.raises(ZeroDivisionError), unmanaged_tables(LiveRun):
            raise ZeroDivisionError
        assert "testing_live_runs" not in table_names()

    def test_columns_have_the_types_of_their_fields(self, vendor: str) -> None:
        with unmanaged_tables(LiveRun):
            kind = facts(LiveRun._meta.get_field("log"), connection).kind
            with connection.cursor() as cursor:
                described = connection.introspection.get_table_description(
                    cursor, "testing_live_runs"
                )
            created = next(column for column in described if column.name == "created_at")
        assert kind == {"postgresql": "jsonb", "mysql": "longtext", "sqlite": "unknown"}[vendor]
        if vendor == "postgresql":
            assert created.type_code == 1114  # timestamp without time zone

    def test_two_models_over_one_table_make_it_once_with_the_columns_of_both(self) -> None:
        with unmanaged_tables(SlimRun, LiveRun) as made:
            assert made == [LiveRun]
            slim = SlimRun(label="both")
            wide = LiveRun.objects.create()
            LiveRun.objects.create()  # and null is not unique
            slim.pk = wide.pk
            slim._state.adding = False
            slim.save(update_fields=["label"])
            assert SlimRun.objects.get(label="both").pk == wide.pk
        assert "testing_live_runs" not in table_names()

    def test_a_table_that_is_there_is_left_alone(self) -> None:
        rows = PlatformRun.objects.count()
        with unmanaged_tables(PlatformRun, AgentOwnedRun, FreshRun, FreshRunProxy) as made:
            assert made == []
        assert PlatformRun.objects.count() == rows == 5

    def test_a_table_that_the_test_dropped_itself_is_no_error(self) -> None:
        with unmanaged_tables(LiveRun):
            drop_tables(LiveRun)
        assert "testing_live_runs" not in table_names()

    def test_without_arguments_it_takes_what_is_unmanaged_and_missing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tables, "run_models", lambda: [FreshRun, PlatformRun, LiveRun, SlimRun])
        with unmanaged_tables() as made:
            assert made == [LiveRun]

    def test_a_router_decides_which_databases_get_the_tables(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        monkeypatch.setattr(tables, "run_models", lambda: [LiveRun])
        settings.DATABASE_ROUTERS = ["tests.test_testing.OnlyOther"]
        with unmanaged_tables() as made:
            assert made == []


class OnlyOther:
    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "other"


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_tables_are_made_in_the_database_that_is_named() -> None:
    with unmanaged_tables(LiveRun, using="other"):
        assert LiveRun.objects.using("other").count() == 0
        assert "testing_live_runs" not in table_names()


@pytest.mark.django_db
def test_inside_a_transaction_it_says_where_to_go() -> None:
    with pytest.raises(RuntimeError, match="setUpModule"):
        create_tables(LiveRun)


@pytest.mark.django_db
class TestCapturedChanges:
    def test_changes_inside_a_transaction_arrive_at_the_end_of_the_block(self) -> None:
        run = FreshRun.objects.create()
        with capture_status_changes() as changes:
            run.start()
            run.finish("done")
            assert changes == []
        assert [(c.from_status, c.to_status, c.using) for c in changes] == [
            ("pending", "running", "default"),
            ("running", "complete", "default"),
        ]
        assert {c.trace_id for c in changes} == {run.trace_id}
        assert changes[0].run is run

    def test_what_is_rolled_back_is_not_there(self) -> None:
        run = FreshRun.objects.create()
        with capture_status_changes() as changes, transaction.atomic():
            run.start()
            transaction.set_rollback(True)
        assert changes == []

    def test_nothing_is_heard_after_the_block(self) -> None:
        run = FreshRun.objects.create()
        with capture_status_changes() as changes:
            pass
        with capture_status_changes() as later:
            run.start()
        assert (changes, len(later)) == ([], 1)


def test_changes_outside_a_transaction_arrive_at_once(committed: None) -> None:
    run = FreshRun.objects.create()
    with capture_status_changes() as changes:
        run.start()
        assert len(changes) == 1


SETTINGS = """
    from tests.settings import VENDOR, database

    DATABASES = {"default": database("clean")}
    SECRET_KEY = "only for tests"
    USE_TZ = True
    DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "solid_runs", "host"]
    TEST_RUNNER = "solid_runs.testing.tables.UnmanagedTablesRunner"
"""
MODELS = """
    from solid_runs.models import PlatformAgentRun


    class Run(PlatformAgentRun):
        class Meta(PlatformAgentRun.Meta):
            managed = False
            db_table = "agent_runs"
"""
TESTS = """
    from django.test import TestCase, TransactionTestCase

    from host.models import Run


    class RunTests(TestCase):
        def test_a_run_is_recorded(self):
            self.assertFalse(Run._meta.managed)
            run = Run.objects.create(input_prompt="Find the invoice total")
            self.assertTrue(run.start())
            run.append_event("llm", "gpt-4o")
            self.assertTrue(run.finish("The total is 1,284.50 EUR."))
            self.assertEqual(len(Run.objects.get().events_log), 1)


    class CommittingTests(TransactionTestCase):
        def test_a_run_is_recorded(self):
            Run.objects.create()
            self.assertEqual(Run.objects.count(), 1)
            Run.objects.all().delete()
"""
MANAGE = """
    import os
    import sys

    from django.core.management import execute_from_command_line

    os.environ["DJANGO_SETTINGS_MODULE"] = "project"
    execute_from_command_line(sys.argv)
"""
RECIPE = dedent((tables.__doc__ or "").partition("``conftest.py``::\n")[2].partition("A Trans")[0])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    files = {"project.py": SETTINGS, "manage.py": MANAGE, "host/models.py": MODELS}
    for name, text in (files | {"host/tests.py": TESTS, "host/__init__.py": ""}).items():
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def in_project(project: Path, *command: str) -> str:
    suffix = os.environ.get("SOLID_RUNS_TEST_SUFFIX", "")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{project}{os.pathsep}{ROOT}",
        "SOLID_RUNS_TEST_DIR": str(project),
        "SOLID_RUNS_TEST_SUFFIX": f"{suffix}{os.environ.get('PYTEST_XDIST_WORKER', '')}",
        "DJANGO_SETTINGS_MODULE": "project",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def test_f51_a_clean_project_tests_its_unmanaged_model_with_manage_py_test(project: Path) -> None:
    output = in_project(project, "manage.py", "test", "--noinput")
    assert "Ran 2 tests" in output


def test_f51_the_tables_are_in_the_copies_of_a_parallel_run(project: Path) -> None:
    output = in_project(project, "manage.py", "test", "--noinput", "--parallel", "2")
    assert "Ran 2 tests" in output


def test_f51_a_kept_database_gets_a_fresh_table_in_every_run(project: Path) -> None:
    in_project(project, "manage.py", "test", "--noinput", "--keepdb")
    models = project / "host" / "models.py"
    wider = models.read_text().replace("PlatformAgentRun\n", "PlatformAgentRun, models\n", 1)
    wider = wider.replace(
        "    class Meta", "    seen = models.IntegerField(default=0)\n\n    class Meta"
    )
    models.write_text(wider)
    in_project(project, "manage.py", "test", "--noinput", "--keepdb")
    in_project(project, "manage.py", "test", "--noinput")


def test_f51_the_documented_pytest_recipe_makes_the_table(project: Path) -> None:
    imports = "import pytest\n\nfrom solid_runs.testing.tables import create_tables\n\n"
    (project / "conftest.py").write_text(imports + RECIPE)
    output = in_project(project, "-m", "pytest", "-q", "-p", "no:randomly", "host/tests.py")
    assert "2 passed" in output
