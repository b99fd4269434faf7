"""The demo: its builder, its models, what it serves, and the scripts behind make."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "example_project"
pytestmark = pytest.mark.skipif(
    os.environ.get("SOLID_RUNS_DB", "sqlite") != "sqlite",
    reason="the demo is on SQLite, whatever the suite is on",
)

TABLES = ["agents_agentrun", "agent_runs", "solid_agent_runs"]
NAMES = ["pending", "running", "complete", "failed", "cancelled"]


def run(*command: str | Path, demo_dir: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=demo_dir.parent,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "example_project.settings",
            "PYTHONPATH": str(ROOT),
            "SOLID_RUNS_DEMO_DIR": str(demo_dir),
            **environment,
        },
        capture_output=True,
        text=True,
    )


def manage(demo_dir: Path, *arguments: str) -> str:
    done = run("-W", "error", EXAMPLE / "manage.py", *arguments, demo_dir=demo_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(demo_dir: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(demo_dir / "demo.sqlite3")) as connection, connection:
        return connection.execute(sql).fetchall()


def contents(demo_dir: Path) -> dict[str, list[Any]]:
    return {
        table: rows(demo_dir, f"SELECT * FROM {table} ORDER BY id")
        for table in [*TABLES, "agents_agent", "agents_document", "auth_user"]
    }


@pytest.fixture(scope="module")
def demo_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo that was built once; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("demo") / "built"
    manage(folder, "build_demo")
    return folder


@pytest.fixture
def own_demo(demo_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo_dir, tmp_path / "own"))


def test_every_table_has_runs_of_every_status(demo_dir):
    for table in TABLES:
        stored = {status for (status,) in rows(demo_dir, f"SELECT DISTINCT status FROM {table}")}
        assert stored == (set(range(5)) if table == "agent_runs" else set(NAMES)), table


def test_building_again_changes_nothing(own_demo):
    before = contents(own_demo)
    assert "all there" in manage(own_demo, "build_demo")
    assert contents(own_demo) == before


def test_an_interrupted_build_goes_on_where_it_stopped(own_demo):
    before = {table: len(content) for table, content in contents(own_demo).items()}
    for table in TABLES:
        assert rows(own_demo, f"SELECT count(*) FROM {table} WHERE id > 9") != [(0,)]
        rows(own_demo, f"DELETE FROM {table} WHERE id > 9")
    rows(own_demo, "DELETE FROM agents_document WHERE id = 4")
    manage(own_demo, "build_demo")
    assert {table: len(content) for table, content in contents(own_demo).items()} == before


def test_the_login_that_is_printed_is_made_true_again(own_demo):
    rows(own_demo, "UPDATE auth_user SET password = '!', is_active = 0, is_superuser = 0")
    manage(own_demo, "build_demo")
    ((active, superuser, password),) = rows(
        own_demo, "SELECT is_active, is_superuser, password FROM auth_user"
    )
    assert (active, superuser) == (1, 1)
    assert password != "!"


def test_the_past_of_the_runs_is_in_order(demo_dir):
    for table in TABLES:
        disorder = rows(
            demo_dir,
            f"SELECT id FROM {table} WHERE created_at > started_at OR started_at > completed_at"
            f" OR (completed_at IS NOT NULL AND started_at IS NULL) OR updated_at < created_at",
        )
        assert disorder == [], table
        assert rows(demo_dir, f"SELECT max(duration_ms) > 10000 FROM {table}") == [(1,)], table


def test_the_rows_that_rails_made_are_left_as_they_are(demo_dir):
    with closing(sqlite3.connect(":memory:")) as rails:
        rails.executescript((EXAMPLE / "rails.sql").read_text(encoding="utf-8"))
        for table in ["agent_runs", "solid_agent_runs"]:
            made = rails.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
            assert rows(demo_dir, f"SELECT * FROM {table} WHERE id <= 5 ORDER BY id") == made


def test_the_dump_of_the_example_is_the_one_that_the_suite_loads():
    assert (EXAMPLE / "rails.sql").read_bytes() == (
        ROOT / "tests" / "rails" / "sqlite.sql"
    ).read_bytes()


COMMANDS = """
import io
import json
import django
django.setup()
from django.core.management import call_command

def said(*arguments, **options):
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out, **options)
    return out.getvalue()

print(json.dumps({
    "first migration": said("sqlmigrate", "agents", "0001"),
    "new migrations": said("makemigrations", check_changes=True, dry_run=True),
    "unapplied": said("migrate", check_unapplied=True),
    "checks": said("check", databases=["default"], fail_level="INFO"),
}))
"""


@pytest.fixture(scope="module")
def said(demo_dir: Path) -> dict[str, str]:
    done = run("-W", "error", "-c", COMMANDS, demo_dir=demo_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_models_over_live_tables_stay_unmanaged(said):
    sql = said["first migration"]
    assert 'CREATE TABLE "agents_agentrun"' in sql
    assert '"agent_runs"' not in sql
    assert '"solid_agent_runs"' not in sql
    source = (EXAMPLE / "agents" / "models.py").read_text(encoding="utf-8")
    assert source.count("managed = False") == 2


def test_nothing_is_left_to_migrate(said):
    assert said["new migrations"] == "No changes detected\n"


def test_the_system_checks_find_nothing(said):
    assert said["checks"] == "System check identified no issues (0 silenced).\n"


CLIENT = """
import json
import django
django.setup()
from django.test import Client
from django.urls import reverse
from example_project.agents.jobs import MODELS

stranger, program = Client(SERVER_NAME="localhost"), Client(SERVER_NAME="localhost")
assert program.login(username="demo", password="demo")
found = {}
for model in MODELS:
    admin, api = (
        reverse(f"admin:agents_{model._meta.model_name}_changelist"),
        reverse(f"{model._meta.model_name}-list"),
    )
    page, runs, row = program.get(admin), program.get(api), program.get(f"{api}3/")
    detail = program.get(
        reverse(f"admin:agents_{model._meta.model_name}_change", args=[3]), follow=True
    )
    found[model._meta.db_table] = {
        "codes": [page.status_code, runs.status_code, row.status_code, detail.status_code],
        "events": program.get(f"{api}3/events/").status_code,
        "strangers": [stranger.get(admin).status_code, stranger.get(api).status_code],
        "row": row.json(),
        "page": page.content.decode(),
    }
found["schema"] = program.get(reverse("schema")).status_code
found["root"] = program.get("/").status_code
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(demo_dir: Path) -> dict[str, Any]:
    done = run("-c", CLIENT, demo_dir=demo_dir)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("table", TABLES)
def test_the_admin_and_the_api_show_every_table(answers, table):
    assert answers[table]["codes"] == [200, 200, 200, 200]
    assert answers[table]["events"] == 200


@pytest.mark.parametrize("table", TABLES)
def test_strangers_see_no_run(answers, table):
    admin, api = answers[table]["strangers"]
    assert admin == 302
    assert api in (401, 403)


@pytest.mark.parametrize("table", ["agent_runs", "solid_agent_runs"])
def test_the_rows_of_rails_come_with_right_times_and_statuses(answers, table):
    row = answers[table]["row"]
    assert row["status"] == "complete"
    assert row["started_at"] == "2026-01-15T09:30:20Z"
    assert row["completed_at"] == "2026-01-15T09:30:23.250000Z"
    assert "Find the invoice total" in answers[table]["page"]


def test_a_ruby_class_without_a_model_here_is_shown_by_its_name(answers):
    assert "Reports::Quarterly 4" in answers["solid_agent_runs"]["page"]


def test_the_schema_and_the_root_are_served(answers):
    assert answers["schema"] == 200
    assert answers["root"] == 302


def test_more_runs_can_be_simulated_and_one_seed_gives_the_same_ones(own_demo):
    count = "SELECT count(*) FROM agents_agentrun"
    ((before,),) = rows(own_demo, count)
    manage(own_demo, "simulate_runs", "6", "--seed", "7")
    assert rows(own_demo, count) == [(before + 2,)]
    manage(own_demo, "simulate_runs", "6", "--seed", "7")
    assert rows(own_demo, count) == [(before + 2,)]


def test_simulating_without_a_built_demo_says_what_to_do(tmp_path):
    done = run(EXAMPLE / "manage.py", "simulate_runs", demo_dir=tmp_path / "empty")
    assert done.returncode == 1
    assert "run build_demo first" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_said_plainly(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        taken = run(ROOT / "scripts/free_port.py", port, demo_dir=tmp_path)
    assert taken.returncode == 1
    assert taken.stderr == f"port {port} is taken; choose another: make demo PORT=8001\n"
    assert run(ROOT / "scripts/free_port.py", port, demo_dir=tmp_path).returncode == 0


@pytest.mark.parametrize("port", ["", "abc", "0", "65536", "-1", "８０００"])
def test_what_is_no_port_is_said_plainly(tmp_path, port):
    done = run(ROOT / "scripts/free_port.py", port, demo_dir=tmp_path)
    assert done.returncode == 1
    assert "is no port" in done.stderr


def unused_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.parametrize(("name", "variable"), [("postgresql", "PG"), ("mariadb", "MYSQL_")])
def test_a_database_that_was_asked_for_and_is_not_there_fails_the_tests(tmp_path, name, variable):
    where = {f"{variable}HOST": "127.0.0.1", f"{variable}PORT": unused_port()}
    script = ROOT / "scripts/run_tests.py"
    done = run(script, "--databases", name, demo_dir=tmp_path, **where)
    assert done.returncode == 1
    address = f"127.0.0.1:{where[f'{variable}PORT']}"
    assert f"REQUIRED, but left out: nothing answers at {address}" in done.stdout
    assert f"{variable}HOST and {variable}PORT say where" in done.stdout


def test_an_unknown_database_is_refused_before_anything_runs(tmp_path):
    done = run(ROOT / "scripts/run_tests.py", "--databases", "oracle", demo_dir=tmp_path)
    assert done.returncode == 1
    assert "the suite knows sqlite, postgresql, mariadb" in done.stderr
