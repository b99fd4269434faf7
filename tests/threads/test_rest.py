from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from solid_runs.threads import conversations
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.records import Status
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.threads.looking import fresh, made, silent, staff

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.threads.admin_urls")]

RUNS, MINE = "/api/runs-of-threads/", "/api/tenant-runs-of-threads/"
TALK = f"{RUNS}conversation/"
CONTENT = {
    "error": {"message": "/srv/app/agent.py api_key=sk-x", "code": "boom"},
    "usage": {"promptTokens": 4711},
    "sandbox_key": "sbx-1",
}


def client(user):
    api = APIClient()
    api.force_login(user)
    return api


@pytest.fixture
def viewer():
    return client(staff("viewer", "view_threadrun"))


@pytest.fixture
def operator():
    return client(staff("operator", "view_threadrun", "cancel_run"))


@pytest.fixture
def tenant():
    """Sees what is of the scope s2, and may ask it to stop and read it."""
    return client(staff("s2", "view_threadrun", "cancel_run", "view_run_content"))


def ids(response):
    assert response.status_code == 200, response.content
    return [one["run_id"] for one in response.json()["results"]]


def page(run, then="", prefix=RUNS):
    return f"{prefix}{run.pk}/{then}"


# Who may


def test_nobody_sees_anything_without_the_permission():
    run = made()
    outsider = client(staff("outsider", "cancel_run", "view_run_content"))
    for api in (APIClient(), outsider):
        for url in (RUNS, page(run), f"{TALK}?thread=t1"):
            assert api.get(url).status_code == 403, url
        assert api.post(page(run, "cancel/")).status_code == 403
    assert fresh(run).cancel_requested is None


def test_seeing_is_not_asking_to_stop(viewer):
    run = made()
    assert viewer.post(page(run, "cancel/")).status_code == 403
    assert fresh(run).cancel_requested is None


def test_of_another_tenant_there_is_nothing(tenant):
    """F36 and F66: what one may not see is the same as what is not there."""
    theirs, mine = made("r1", scope="s1"), made("r1", scope="s2", parent_run_id="parent")
    made("parent", scope="s1")
    for query in ("", "?thread=t1", "?run=r1", "?condition=active", "?status=running"):
        found = tenant.get(f"{MINE}{query}").json()["results"]
        assert [one["id"] for one in found] == [mine.pk], query
    talk = tenant.get(f"{MINE}conversation/?thread=t1").json()
    assert [(one["id"], one["depth"]) for one in talk["runs"]] == [(mine.pk, 0)]
    named = tenant.get(f"{MINE}conversation/?thread=t1&scope=s1").json()
    nobody = tenant.get(f"{MINE}conversation/?thread=t1&scope=s9").json()
    assert named["runs"] == nobody["runs"] == []
    assert {**named, "scope": ""} == {**nobody, "scope": ""}
    for then, call in (("", tenant.get), ("cancel/", tenant.post)):
        refused, gone = call(page(theirs, then, MINE)), call(f"{MINE}999999/{then}")
        assert refused.status_code == gone.status_code == 404
        assert refused.content == gone.content
    assert fresh(theirs).cancel_requested is None
    assert tenant.post(page(mine, "cancel/", MINE)).status_code == 202
    assert fresh(theirs).cancel_requested is None


def test_content_is_null_without_the_permission(viewer):
    """F67."""
    run = made(status="failed", **CONTENT)
    reader = client(staff("reader", "view_threadrun", "view_run_content"))
    shown = reader.get(page(run)).json()
    assert {name: shown[name] for name in CONTENT} == CONTENT
    hidden = viewer.get(page(run)).json()
    assert {name: hidden[name] for name in CONTENT} == dict.fromkeys(CONTENT)
    for api in (viewer, reader):
        for url in (RUNS, f"{TALK}?thread=t1"):
            body = api.get(url).content.decode()
            for secret in ("sk-x", "4711", "sbx-1"):
                assert secret not in body
    for query in ("ordering=error", "error=boom", "search=sk-x", "sandbox_key=sbx-1"):
        assert viewer.get(f"{RUNS}?{query}").status_code == 400


# Lists


def test_a_run_is_shown_as_it_is_stored_with_times_in_milliseconds(viewer):
    run = made(
        parent_run_id="p",
        subagent_run_id="s",
        name="Bot",
        trace_id="tr",
        started_at=-1,
        finished_at=2**63 - 1,
        detached_since=10,
        cancel_requested=False,
        driver_epoch=3,
        heartbeat_at=1_000,
    )
    expected = {
        "id": run.pk,
        "scope": "s1",
        "thread_id": "t1",
        "run_id": "r1",
        "parent_run_id": "p",
        "subagent_run_id": "s",
        "name": "Bot",
        "trace_id": "tr",
        "status": "running",
        "started_at": -1,
        "finished_at": 2**63 - 1,
        "detached_since": 10,
        "cancel_requested": False,
        "driver_epoch": 3,
        "heartbeat_at": 1_000,
        "detached": True,
        "stalled": True,
    }
    assert viewer.get(RUNS).json()["results"] == [expected]
    made("bare", scope="")
    bare = viewer.get(f"{RUNS}?run=bare").json()["results"][0]
    assert {name for name, value in bare.items() if value is None} == {
        *("parent_run_id", "subagent_run_id", "name", "trace_id", "finished_at"),
        *("detached_since", "cancel_requested", "driver_epoch", "heartbeat_at"),
    }
    assert (bare["scope"], bare["detached"], bare["stalled"]) == ("", False, False)


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_numbers_whatever_the_settings_say(viewer, use_tz):
    with override_settings(USE_TZ=use_tz):
        run = made(started_at=1_768_478_400_123)
        assert viewer.get(page(run)).json()["started_at"] == 1_768_478_400_123


def test_lists_are_narrowed_by_exact_ids(viewer):
    made("r1", "T", parent_run_id="p1", trace_id="tr")
    made("R1", "t", parent_run_id="P1", trace_id="TR")
    for query in ("run=r1", "thread=T", "parent=p1", "trace=tr", "run=r1&thread=T"):
        assert ids(viewer.get(f"{RUNS}?{query}")) == ["r1"], query
    assert ids(viewer.get(f"{RUNS}?run=r1&thread=t")) == []


def test_lists_are_narrowed_by_status_and_by_condition(viewer, settings):
    made("running")
    made("left", detached_since=1)
    silent("quiet", ago=90_000)
    made("odd", status="exploded")
    made("ended", status="completed", detached_since=1)
    expected = {
        "status=running": ["quiet", "left", "running"],
        "status=completed": ["ended"],
        "status=": ["ended", "odd", "quiet", "left", "running"],
        "condition=active": ["quiet", "left", "running"],
        "condition=detached": ["left"],
        "condition=stalled": ["quiet"],
        "condition=stalled&status=completed": [],
    }
    assert {query: ids(viewer.get(f"{RUNS}?{query}")) for query in expected} == expected
    assert viewer.get(f"{RUNS}?run=odd").json()["results"][0]["status"] == "exploded"
    settings.SOLID_RUNS = {"THREADS_STALL_AFTER": 120}
    assert ids(viewer.get(f"{RUNS}?condition=stalled")) == []


@pytest.mark.parametrize(
    "query",
    [
        *("status=nosuch", "status=%00", "condition=asked", "condition=%00", "thread=a%00"),
        *("trace=%00", "thread=a&thread=b", "scope=s1", "nosuch=1", "ordering=name", "limit=0"),
        *("limit=99999999999999999999", "cursor=x", "cursor=%00", "stalled=true", "detached=1"),
    ],
)
def test_a_parameter_that_means_nothing_is_a_400_that_names_it(viewer, query):
    """F68 and F73."""
    made()
    response = viewer.get(f"{RUNS}?{query}")
    assert response.status_code == 400
    assert list(response.json()) == [query.partition("=")[0]]


@pytest.mark.parametrize("pk", ["99999999999999999999", "-1", "x", "1%00", "1.0"])
def test_a_key_that_no_row_can_have_is_a_404(operator, pk):
    assert operator.get(f"{RUNS}{pk}/").status_code == 404
    assert operator.post(f"{RUNS}{pk}/cancel/").status_code == 404


@pytest.mark.parametrize("query", ["", "&condition=stalled"])
def test_pages_show_every_row_once_while_rows_arrive(viewer, query):
    """F72."""
    for number in range(7):
        silent(f"r{number}", ago=90_000 + number)
    seen, url = [], f"{RUNS}?limit=3{query}"
    while url:
        shown = viewer.get(url).json()
        seen += [one["run_id"] for one in shown["results"]]
        silent(f"new{len(seen)}")
        url, last = shown["next"], shown
    assert seen == [f"r{number}" for number in reversed(range(7))]
    back = viewer.get(last["previous"]).json()["results"]
    assert [one["run_id"] for one in back] == ["r3", "r2", "r1"]


@pytest.mark.parametrize("url", [RUNS, f"{RUNS}?condition=stalled", f"{TALK}?thread=t1"])
def test_a_list_costs_the_same_for_any_number_of_rows(viewer, url):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(url).status_code == 200
        return len(captured), " ".join(query["sql"] for query in captured.captured_queries)

    silent("r0", **CONTENT)
    few, sql = queries()
    for number in range(1, 30):
        silent(f"r{number}", parent_run_id=f"r{number - 1}", **CONTENT)
    assert queries()[0] == few <= 8
    assert "COUNT(" not in sql.upper()
    for name in CONTENT:
        assert connection.ops.quote_name(name) not in sql


# A conversation


def test_a_conversation_is_in_order_with_depths_and_who_is_active(viewer):
    made("first", started_at=1, status="completed")
    made("second", started_at=2, status="interrupted")
    made("child", started_at=3, parent_run_id="first", detached_since=4)
    made("lost", started_at=4, parent_run_id="elsewhere", status="failed")
    made("elsewhere", "t2", started_at=5)
    talk = viewer.get(f"{TALK}?thread=t1").json()
    assert [(one["run_id"], one["depth"], one["active"]) for one in talk.pop("runs")] == [
        ("first", 0, False),
        ("child", 1, True),
        ("second", 0, False),
        ("lost", 0, False),
    ]
    assert talk == {"thread_id": "t1", "scope": "s1", "has_earlier": False}


def test_a_conversation_of_several_scopes_is_asked_for_by_one(viewer):
    made("r1", scope="", started_at=1)
    made("r1", scope="s2", started_at=2)
    refused = viewer.get(f"{TALK}?thread=t1")
    assert refused.status_code == 400
    assert list(refused.json()) == ["scope"]
    for scope, started in (("", 1), ("s2", 2)):
        talk = viewer.get(f"{TALK}?thread=t1&scope={scope}").json()
        assert [one["started_at"] for one in talk["runs"]] == [started]
        assert talk["scope"] == scope


def test_a_conversation_without_a_run_is_empty(viewer):
    talk = viewer.get(f"{TALK}?thread=nosuch").json()
    assert talk == {"thread_id": "nosuch", "scope": None, "has_earlier": False, "runs": []}


def test_a_long_conversation_says_that_there_is_more(viewer, monkeypatch):
    monkeypatch.setattr(conversations, "MOST_RUNS", 3)
    for number in range(5):
        made(f"r{number}", started_at=number)
    talk = viewer.get(f"{TALK}?thread=t1").json()
    assert [one["run_id"] for one in talk["runs"]] == ["r2", "r3", "r4"]
    assert talk["has_earlier"] is True


def test_circles_and_deep_chains_are_shown(viewer):
    made("a", parent_run_id="b", started_at=1)
    made("b", parent_run_id="a", started_at=2)
    for number in range(60):
        made(f"r{number}", parent_run_id=f"r{number - 1}", started_at=3 + number)
    talk = viewer.get(f"{TALK}?thread=t1").json()
    depths = {one["run_id"]: one["depth"] for one in talk["runs"]}
    assert depths == {"a": 0, "b": 1, **{f"r{number}": number for number in range(60)}}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *(("", "thread"), ("thread=", "thread"), ("thread=%00", "thread")),
        *(("thread=a&thread=b", "thread"), ("thread=a&scope=%00", "scope")),
        *(
            ("thread=a&run=b", "run"),
            ("thread=a&cursor=x", "cursor"),
            ("thread=a&limit=1", "limit"),
        ),
    ],
)
def test_a_parameter_of_a_conversation_that_means_nothing_is_a_400(viewer, query, field):
    response = viewer.get(f"{TALK}?{query}")
    assert response.status_code == 400
    assert list(response.json()) == [field]


def test_ids_may_hold_anything(viewer):
    for number, name in enumerate(["a/b", "../x", "a&b=c", "?#", "<script>", "日本", " a "]):
        made(name, name, started_at=number)
        assert viewer.get(RUNS, {"run": name}).json()["results"][0]["run_id"] == name
        assert len(viewer.get(TALK, {"thread": name}).json()["runs"]) == 1, name


# Asking to stop


def test_a_run_is_asked_to_stop_and_its_driver_ends_it(operator):
    run = made()
    for _ in range(2):
        asked = operator.post(page(run, "cancel/"))
        assert asked.status_code == 202
        body = asked.json()
        assert (body["status"], body["cancel_requested"]) == ("running", True)
    assert DatabaseRunStore("s1").was_cancel_requested("r1")
    assert operator.get(page(run, "cancel/")).status_code == 405


@pytest.mark.parametrize("status", ["completed", "failed", "aborted"])
def test_a_run_that_has_ended_is_left_as_it_is(operator, status):
    run = made(status=status)
    response = operator.post(page(run, "cancel/"))
    assert (response.status_code, response.json()["status"]) == (200, status)
    assert fresh(run).cancel_requested is None


@pytest.mark.parametrize("status", ["interrupted", "exploded"])
def test_a_run_that_has_not_ended_can_be_asked(operator, status):
    run = made(status=status)
    assert operator.post(page(run, "cancel/")).status_code == 202
    assert fresh(run).cancel_requested is True


def test_a_request_goes_to_the_run_of_its_scope(operator):
    shared, same = made("r1", scope=""), made("r1", scope="s1")
    assert operator.post(page(shared, "cancel/")).status_code == 202
    assert (fresh(shared).cancel_requested, fresh(same).cancel_requested) == (True, None)


def test_rows_are_written_by_no_other_way(operator):
    run = made()
    for url in (RUNS, page(run)):
        for method in (operator.put, operator.patch, operator.delete, operator.post):
            assert method(url, {}, format="json").status_code == 405
    assert ThreadRun.objects.count() == 1


# The schema


def test_the_schema_has_nothing_to_warn_of(tmp_path: Path):
    """F75."""
    file, errors = tmp_path / "schema.yml", StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(file), stderr=errors)
    assert errors.getvalue() == ""
    written = yaml.safe_load(file.read_text())
    asking = written["paths"][f"{RUNS}{{id}}/cancel/"]["post"]
    assert set(asking["responses"]) == {"200", "202"}
    assert "requestBody" not in asking
    components = written["components"]["schemas"]
    known, other = components["ThreadRunStatus"]["anyOf"]
    assert known["enum"] == [*Status]
    assert other == {"type": "string"}
    ours = {name for name in components if "ThreadStore" not in name}
    assert ours == {
        "PaginatedThreadRunList",
        "ThreadConversation",
        "ThreadConversationRun",
        "ThreadRun",
        "ThreadRunDetail",
        "ThreadRunStatus",
    }
    listed = {one["name"] for one in written["paths"][RUNS]["get"]["parameters"]}
    assert listed == {
        *("condition", "cursor", "limit", "ordering", "parent"),
        *("run", "status", "thread", "trace"),
    }
    talk = written["paths"][TALK]["get"]
    assert {one["name"]: one.get("required", False) for one in talk["parameters"]} == {
        "thread": True,
        "scope": False,
    }
    for name in ("started_at", "finished_at", "detached_since", "heartbeat_at"):
        assert components["ThreadRun"]["properties"][name]["type"] == "integer"
