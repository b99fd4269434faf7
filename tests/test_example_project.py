"""The demo: its builder, its models, what it serves, and the scripts behind make."""

from __future__ import annotations

import json
import os
import re
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
AG_UI_TABLES = ["solid_runs_ag_ui_reservedrun", "solid_runs_ag_ui_runinterrupt"]
THREAD_TABLES = ["solid_runs_threads_threadrun", "solid_runs_threads_threadinterrupt"]
SUBJECTS = ["agents_agent", "agents_document"]
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
        for table in [
            *TABLES,
            *AG_UI_TABLES,
            *THREAD_TABLES,
            *SUBJECTS,
            "agents_exchange",
            "auth_user",
        ]
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
    interrupts, runs = AG_UI_TABLES[1], AG_UI_TABLES[0]
    assert rows(own_demo, f"SELECT count(*) FROM {runs} WHERE thread_id > 'm'") != [(0,)]
    # With them go the runs of the agent that are beside them, all of which have a key above 9.
    rows(own_demo, f"DELETE FROM {interrupts}")
    rows(own_demo, f"DELETE FROM {runs}")
    manage(own_demo, "build_demo")
    assert {table: len(content) for table, content in contents(own_demo).items()} == before


def test_the_inbox_has_something_in_every_state(demo_dir):
    states = """
        SELECT CASE WHEN settled_at IS NOT NULL THEN 'settled' WHEN decision IS NULL THEN 'open'
               WHEN redeemed_by IS NULL THEN 'free' ELSE 'held' END,
               expires_at IS NOT NULL, expires_at < CURRENT_TIMESTAMP
        FROM solid_runs_ag_ui_runinterrupt
    """
    found = set(rows(demo_dir, states))
    assert {("open", 0, None), ("open", 1, 0), ("open", 1, 1), ("free", 0, None)} <= found
    assert ("settled", 0, None) in found
    stale = """
        SELECT run_id FROM solid_runs_ag_ui_reservedrun WHERE status = 'interrupted'
        GROUP BY thread_id HAVING count(*) > 1
    """
    assert len(rows(demo_dir, stale)) == 1
    statuses = "SELECT DISTINCT status FROM solid_runs_ag_ui_reservedrun"
    assert {status for (status,) in rows(demo_dir, statuses)} == {
        *("started", "succeeded", "interrupted", "cancelled", "failed")
    }


def test_the_conversations_of_threads_have_runs_in_every_state(demo_dir):
    table = THREAD_TABLES[0]
    statuses = {status for (status,) in rows(demo_dir, f"SELECT DISTINCT status FROM {table}")}
    assert statuses == {"running", "interrupted", "completed", "failed", "aborted"}
    for condition in (
        "detached_since IS NOT NULL",
        "heartbeat_at IS NOT NULL AND detached_since IS NULL",
        "cancel_requested",
        "parent_run_id IS NOT NULL",
    ):
        found = f"SELECT 1 FROM {table} WHERE status = 'running' AND {condition}"
        assert rows(demo_dir, found), condition
    assert rows(demo_dir, f"SELECT 1 FROM {THREAD_TABLES[1]} WHERE status = 'pending'")
    traces = f"SELECT trace_id FROM {table} WHERE trace_id IS NOT NULL"
    shared = f"SELECT 1 FROM agents_agentrun WHERE trace_id IN ({traces})"
    assert len(rows(demo_dir, shared)) == len(rows(demo_dir, traces)) > 1
    assert len(rows(demo_dir, f"SELECT DISTINCT scope FROM {table}")) > 1


def test_every_prepared_thread_has_a_conversation_and_events_that_were_sent(demo_dir):
    told = rows(
        demo_dir,
        "SELECT r.run_id, r.sequence, r.failure, e.messages FROM solid_runs_ag_ui_reservedrun r"
        " LEFT JOIN agents_exchange e ON e.scope = r.scope AND e.thread_id = r.thread_id"
        " AND e.run_id = r.run_id",
    )
    assert len(told) > len({run for run, *_ in told}) - 1 > 10
    for run, sequence, failure, messages in told:
        roles = [message["role"] for message in json.loads(messages)]
        assert sequence > len(roles), run
        # The second run of a thread takes what a person has answered.
        assert ("user" in roles) == (run.endswith("-1") or run == "prices-2"), run
        assert {"assistant", "tool"} & set(roles), run
        assert failure in (None, "null") or json.loads(failure)["message"].endswith("."), run


ENDS = {
    "started": "running",
    "succeeded": "complete",
    "interrupted": "complete",
    "cancelled": "cancelled",
    "failed": "failed",
}


def test_every_reserved_run_has_one_run_of_the_agent_that_ended_as_it_did(demo_dir):
    pairs = rows(
        demo_dir,
        "SELECT r.run_id, r.status, a.status FROM solid_runs_ag_ui_reservedrun r"
        " LEFT JOIN agents_agentrun a ON a.trace_id = r.trace_id",
    )
    assert len({run for run, _, _ in pairs}) == len(pairs)
    assert [(run, ENDS[status], ended) for run, status, ended in pairs] == [
        (run, ended, ended) for run, _, ended in pairs
    ]


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
from example_project.agents.models import AgentRun
from solid_runs.ag_ui.models import ReservedRun

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
pages = [
    "/admin/solid_runs_ag_ui/runinterrupt/",
    "/admin/solid_runs_ag_ui/reservedrun/",
    "/admin/agents/refund/",
    "/assistant/",
    "/api/interrupts/",
    "/api/reserved-runs/",
    "/api/refunds/",
]
found["ag-ui"] = {
    page: [program.get(page).status_code, stranger.get(page).status_code] for page in pages
}
reserved = ReservedRun.objects.get(run_id="order-980-2")
beside = AgentRun.objects.get(trace_id=reserved.trace_id)
here = reverse("admin:solid_runs_ag_ui_reservedrun_change", args=[reserved.pk])
there = reverse("admin:agents_agentrun_change", args=[beside.pk])
found["links"] = [
    there in program.get(here).content.decode(),
    here in program.get(there).content.decode(),
]
token = {"Authorization": "Bearer demo-token"}
found["with token"] = stranger.get("/api/interrupts/", headers=token).json()["results"]
wrong = {"Authorization": "Bearer nobody"}
found["with a wrong token"] = stranger.get("/api/interrupts/", headers=wrong).status_code
found["conversation"] = "/assistant/#order-980" in program.get(there).content.decode()
icon = stranger.get("/favicon.ico")
found["icon"] = [icon.status_code, icon["Content-Type"]]
found["page"] = program.get("/assistant/").content.decode()
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


def test_the_pages_of_ag_ui_are_for_those_who_are_logged_in(answers):
    for page, (known, stranger) in answers["ag-ui"].items():
        assert known == 200, page
        assert stranger in ((401, 403) if page.startswith("/api/") else (302,)), page


def test_a_reserved_run_and_the_run_of_the_agent_lead_to_each_other(answers):
    assert answers["links"] == [True, True]


def test_the_run_of_the_agent_leads_to_the_conversation(answers):
    assert answers["conversation"] is True


def test_what_every_browser_asks_for_is_there(answers):
    assert answers["icon"] == [200, "image/svg+xml"]


def test_a_program_with_a_token_sees_what_waits(answers):
    assert {one["state"] for one in answers["with token"]} == {"open"}
    assert answers["with a wrong token"] in (401, 403)


def test_the_page_says_what_the_agent_understands_and_loads_nothing_from_outside(answers):
    for phrase in ["refund 12.50", "ask twice", "survey", "count to 100", "fail", "crash"]:
        assert f'data-say="{phrase}"' in answers["page"]
    assert "://" not in answers["page"]
    assert not re.search(r"(src|href)=.//", answers["page"])


AGENT = """
import asyncio
import json
import sys
import django
django.setup()
from django.test import AsyncClient
from django.test.utils import setup_test_environment
from example_project.agents.models import AgentRun, Refund
from solid_runs.ag_ui.models import ReservedRun

setup_test_environment(debug=True)  # its client calls the host testserver
program = AsyncClient()
headers = {"Authorization": "Bearer demo-token"}

async def run(thread, run_id, text=None, until=None, **more):
    messages = [{"id": run_id, "role": "user", "content": text}] if text else []
    body = {"threadId": thread, "runId": run_id, "state": {}, "messages": messages, "tools": [],
            "context": [], "forwardedProps": {}} | more
    response = await program.post("/ag-ui/", body, content_type="application/json", headers=headers)
    events = []
    async for chunk in response.streaming_content:
        lines = chunk.decode().splitlines()
        events += [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        if until and until in str(events):
            until = None
            await program.post(f"/ag-ui/{thread}/{run_id}/cancel", headers=headers)
    return events

async def told(thread):
    accept = headers | {"Accept": "text/event-stream"}
    response = await program.get(f"/ag-ui/{thread}", headers=accept)
    frames = b"".join([chunk async for chunk in response.streaming_content]).decode().splitlines()
    events = [json.loads(line[6:]) for line in frames if line.startswith("data: ")]
    return [one for one in events if one["type"] == "MESSAGES_SNAPSHOT"][-1]["messages"]

async def beside(run_id):
    reserved = await ReservedRun.objects.aget(run_id=run_id)
    found = [one async for one in AgentRun.objects.filter(trace_id=reserved.trace_id)]
    log = await found[0].aevents_log()
    return {
        "reserved": reserved.status,
        "statuses": [str(one.status) for one in found],
        "steps": [entry.get("label") for entry in log if entry.get("status") != "started"],
        "output": found[0].output,
        "error": found[0].error_message,
        "metadata": found[0].output_metadata,
    }

async def main():
    found = {}
    asked = await run("t1", "asked", "refund 12.50")
    found["asked"] = {"last": asked[-1], **await beside("asked")}
    approved = [
        {"interruptId": one["id"], "status": "resolved", "payload": {"approved": True}}
        for one in asked[-1]["outcome"]["interrupts"]
    ]
    await run("t1", "settled", resume=approved)
    await run("t1", "settled", resume=approved)
    late = await run("t1", "late", resume=approved)
    found["settled"] = {"refunds": await Refund.objects.acount(), **await beside("settled")}
    found["late"] = [event["type"] for event in late]
    counted = await run("t2", "counted", "count to 1000", until="'4 '")
    found["counted"] = {"last": counted[-1], **await beside("counted")}
    for word in ("fail", "crash"):
        events = await run("t3", word, word)
        found[word] = {"last": events[-1], **await beside(word)}
    found["told"] = {thread: await told(thread) for thread in ("t1", "t2", "t3", "order-982")}
    nobody = await program.get("/ag-ui/t1")
    found["nobody"] = nobody.status_code
    print(json.dumps(found))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def talked(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the agent said and left, in a demo of its own."""
    own = shutil.copytree(demo_dir, tmp_path_factory.mktemp("talk") / "own")
    done = run("-c", AGENT, demo_dir=Path(own))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_agent_that_asks_leaves_a_complete_run_that_says_what_it_waits_for(talked):
    asked = talked["asked"]
    (interrupt,) = asked["last"]["outcome"]["interrupts"]
    assert interrupt["metadata"]["arguments"]["amount"] == "12.50"
    assert (asked["reserved"], asked["statuses"]) == ("interrupted", ["complete"])
    assert asked["metadata"]["waits_for"] == [interrupt["id"]]
    assert asked["output"].startswith("I can refund 12.50 EUR.")


def test_the_tool_runs_once_however_often_the_approval_comes(talked):
    settled = talked["settled"]
    assert settled["refunds"] == 1
    assert (settled["reserved"], settled["statuses"]) == ("succeeded", ["complete"])
    assert settled["steps"] == ["refund"]
    assert talked["late"] == ["RUN_ERROR"]


def test_a_cancelled_agent_leaves_a_cancelled_run(talked):
    counted = talked["counted"]
    assert counted["last"]["outcome"] == {"type": "cancelled"}
    assert (counted["reserved"], counted["statuses"]) == ("cancelled", ["cancelled"])
    assert counted["steps"] == ["scripted", "count"]


def test_a_failing_agent_leaves_a_failed_run_with_its_error(talked):
    assert talked["fail"]["last"]["code"] == "closed"
    assert talked["crash"]["last"]["code"] == "internal_error"
    for word, error in [("fail", "closed on Sundays"), ("crash", "ledger.internal")]:
        assert (talked[word]["reserved"], talked[word]["statuses"]) == ("failed", ["failed"])
        assert error in talked[word]["error"]
    assert "ledger" not in str(talked["crash"]["last"])


def test_a_page_that_is_loaded_again_is_told_the_conversation(talked):
    said = [
        (one["role"], one.get("content") or one["toolCalls"][0]["function"])
        for one in talked["told"]["t1"]
        if one["role"] != "activity"
    ]
    assert said == [
        ("user", "refund 12.50"),
        ("assistant", "I can refund 12.50 EUR. May I?"),
        ("assistant", {"name": "refund", "arguments": '{"amount": "12.50", "currency": "EUR"}'}),
        ("tool", "Refunded 12.50 EUR."),
        ("assistant", "The refund is made."),
    ]


def activities(messages: list[Any]) -> list[tuple[str, Any]]:
    found = [one for one in messages if one["role"] == "activity"]
    return [(one["activityType"], one["content"]) for one in found]


def test_the_conversation_says_what_was_answered_and_by_whom(talked):
    ((kind, answer),) = activities(talked["told"]["t1"])
    assert (kind, answer["payload"], answer["by"]) == ("answer", {"approved": True}, "demo")
    assert answer["waits"] is False
    ((_, answer),) = activities(talked["told"]["order-982"])
    assert (answer["by"], answer["waits"]) == ("maria", True)


def test_the_conversation_says_what_failed_and_what_was_cancelled(talked):
    messages = talked["told"]["t2"]
    assert [one["role"] for one in messages] == ["user", "assistant", "activity"]
    assert messages[1]["content"].startswith("1 2 3 4 ")
    assert activities(messages) == [("cancelled", {})]
    closed = {"message": "The booking system is closed on Sundays.", "code": "closed"}
    silent = {"message": "The run failed.", "code": "internal_error"}
    assert activities(talked["told"]["t3"]) == [("failed", closed), ("failed", silent)]


def test_the_endpoint_shows_strangers_no_run(talked):
    assert talked["nobody"] == 403


@pytest.mark.parametrize(
    ("folder", "package"),
    [("npm", '"@ag-ui/client": "1.0.0"'), ("tanstack", '"@tanstack/ai": "0.58.0"')],
)
def test_the_lock_file_of_npm_names_no_registry(folder, package):
    lock = (ROOT / "tests" / folder / "package-lock.json").read_text(encoding="utf-8")
    assert package in lock
    assert "resolved" not in lock
    assert "tarball" not in lock


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
