from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from solid_runs.ag_ui.models import RunInterrupt
from solid_runs.ag_ui.stores.database import DatabaseStore
from tests.ag_ui.asking import (
    APPROVED,
    DENIED,
    acted_on,
    asked,
    expire,
    fresh,
    question,
    row,
    staff,
    started,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.ag_ui.urls")]

INTERRUPTS, RUNS = "/api/interrupts/", "/api/ag-ui-runs/"
MINE, MY_RUNS = "/api/tenant-interrupts/", "/api/tenant-ag-ui-runs/"
VIEW = ("view_runinterrupt", "view_reservedrun")
SECRET = {"code": "boom", "message": "/srv/app/agent.py api_key=sk-x"}


def client(user):
    api = APIClient()
    api.force_login(user)
    return api


@pytest.fixture
def viewer():
    return client(staff("viewer", *VIEW))


@pytest.fixture
def decider():
    return client(staff("maria", *VIEW, "decide_interrupt", "cancel_run"))


@pytest.fixture
def tenant():
    """Sees what is of the scope s2, and may answer and cancel it."""
    return client(staff("s2", *VIEW, "decide_interrupt", "cancel_run", "view_run_content"))


def ids(response):
    assert response.status_code == 200, response.content
    return [one["interrupt_id"] for one in response.json()["results"]]


def answer(api, interrupt, body=APPROVED, prefix=INTERRUPTS):
    return api.post(f"{prefix}{interrupt.pk}/answer/", body, format="json")


# Who may


def test_nobody_sees_anything_without_the_permission():
    interrupt = asked()
    outsider = client(staff("outsider", "decide_interrupt", "cancel_run"))
    for api in (APIClient(), outsider):
        for url in (INTERRUPTS, f"{INTERRUPTS}{interrupt.pk}/", RUNS, f"{RUNS}{interrupt.run_id}/"):
            assert api.get(url).status_code == 403, url
        assert answer(api, interrupt).status_code == 403
        assert api.post(f"{RUNS}{interrupt.run_id}/cancel/").status_code == 403
    assert fresh(interrupt).decision is None


def test_seeing_is_not_deciding(viewer):
    interrupt = asked()
    assert answer(viewer, interrupt).status_code == 403
    assert viewer.post(f"{RUNS}{interrupt.run_id}/cancel/").status_code == 403
    assert fresh(interrupt).decision is None


def test_of_another_tenant_there_is_nothing(tenant):
    """F36 and F66: what one may not see is the same as what is not there."""
    theirs, mine = asked(scope="s1"), asked(scope="s2")
    assert [one["id"] for one in tenant.get(f"{MINE}?state=all").json()["results"]] == [mine.pk]
    assert [one["id"] for one in tenant.get(MY_RUNS).json()["results"]] == [mine.run_id]
    for query in ("?thread=t1", "?run=r1", "?state=waiting"):
        assert [one["id"] for one in tenant.get(f"{MINE}{query}").json()["results"]] == [mine.pk]
    for theirs_url, gone_url in [
        (f"{MINE}{theirs.pk}/", f"{MINE}999999/"),
        (f"{MY_RUNS}{theirs.run_id}/", f"{MY_RUNS}999999/"),
    ]:
        refused, gone = tenant.get(theirs_url), tenant.get(gone_url)
        assert refused.status_code == gone.status_code == 404
        assert refused.content == gone.content
    assert answer(tenant, theirs, prefix=MINE).status_code == 404
    assert tenant.post(f"{MY_RUNS}{theirs.run_id}/cancel/").status_code == 404
    assert fresh(theirs).decision is None
    assert row(scope="s1").cancel_requested_at is None


def test_the_same_ids_of_two_tenants_are_two_answers(tenant):
    theirs, mine = asked(scope="s1"), asked(scope="s2")
    assert answer(tenant, mine, prefix=MINE).status_code == 200
    assert fresh(theirs).decision is None
    assert fresh(mine).decided_by == "s2"


# Lists


def test_what_may_be_answered_is_listed_unless_something_else_is_asked_for(viewer):
    asked(question("late"), thread_id="late")
    expire(RunInterrupt.objects.get(interrupt_id="late"))
    asked(question("stale"), thread_id="twice")
    asked(question("open"), thread_id="twice", run_id="r2")
    free = asked(question("free"), thread_id="free")
    DatabaseStore().answer("s1", "free", "free", DENIED, by="maria")
    acted_on(asked(question("settled"), thread_id="settled"))
    held = asked(question("held"), thread_id="held")
    DatabaseStore().redeem_interrupt("s1", "held", "held", APPROVED, run_id="taker")
    assert (fresh(free).state, fresh(held).state) == ("free", "held")

    shown = {
        state: set(ids(viewer.get(f"{INTERRUPTS}?state={state}")))
        for state in ("waiting", "expired", "stale", "answered", "all")
    }
    assert shown == {
        "waiting": {"open"},
        "expired": {"late"},
        "stale": {"stale"},
        "answered": {"free", "held", "settled"},
        "all": {"late", "stale", "open", "free", "held", "settled"},
    }
    for state in ("held", "free", "settled"):
        assert ids(viewer.get(f"{INTERRUPTS}?state={state}")) == [state]
    assert set(ids(viewer.get(f"{INTERRUPTS}?state=open"))) == {"late", "stale", "open"}
    assert ids(viewer.get(INTERRUPTS)) == ids(viewer.get(f"{INTERRUPTS}?state=")) == ["open"]


def test_lists_are_narrowed_by_exact_ids(viewer):
    asked(question("a"), run_id="r1", thread_id="T")
    asked(question("b"), run_id="R1", thread_id="t")
    assert ids(viewer.get(f"{INTERRUPTS}?thread=T")) == ["a"]
    assert ids(viewer.get(f"{INTERRUPTS}?run=R1")) == ["b"]
    assert ids(viewer.get(f"{INTERRUPTS}?run=R1&thread=T")) == []
    started("traced", trace_id="tr")
    for query, found in {
        "thread=T": 1,
        "run=R1": 1,
        "trace=tr": 1,
        "status=interrupted": 2,
    }.items():
        assert len(viewer.get(f"{RUNS}?{query}").json()["results"]) == found, query


def test_answers_with_an_unknown_outcome_are_a_state_of_their_own(viewer):
    acted_on(asked(question("lost"), thread_id="a"), status="failed")
    acted_on(asked(question("fine"), thread_id="b"), status="succeeded")
    assert ids(viewer.get(f"{INTERRUPTS}?state=attention")) == ["lost"]


@pytest.mark.parametrize(
    "query",
    [
        *("state=nosuch", "state=%00", "thread=%00", "run=a%00", "thread=a&thread=b"),
        *("nosuch=1", "ordering=reason", "limit=0", "limit=-1", "limit=1000000", "limit=x"),
        *("limit=99999999999999999999", "cursor=x", "cursor=%00", "run__scope=s1"),
    ],
)
def test_a_parameter_that_means_nothing_is_a_400_that_names_it(viewer, query):
    """F68 and F73."""
    asked()
    response = viewer.get(f"{INTERRUPTS}?{query}")
    assert response.status_code == 400
    assert list(response.json()) == [query.partition("=")[0]]


@pytest.mark.parametrize("query", ["status=nosuch", "status=%00", "trace=%00", "scope=s1"])
def test_a_parameter_of_runs_that_means_nothing_is_a_400_that_names_it(viewer, query):
    response = viewer.get(f"{RUNS}?{query}")
    assert response.status_code == 400
    assert list(response.json()) == [query.partition("=")[0]]


@pytest.mark.parametrize("pk", ["99999999999999999999", "-1", "x", "1%00", "1.0"])
def test_a_key_that_no_row_can_have_is_a_404(decider, pk):
    for prefix in (INTERRUPTS, RUNS):
        assert decider.get(f"{prefix}{pk}/").status_code == 404
    assert decider.post(f"{INTERRUPTS}{pk}/answer/", APPROVED, format="json").status_code == 404
    assert decider.post(f"{RUNS}{pk}/cancel/").status_code == 404


def test_pages_show_every_row_once_while_rows_arrive(viewer):
    """F72."""
    for number in range(7):
        asked(question(f"i{number}"), thread_id=f"t{number}")
    seen, url = [], f"{INTERRUPTS}?limit=3"
    while url:
        page = viewer.get(url).json()
        seen += [one["interrupt_id"] for one in page["results"]]
        asked(question("new"), thread_id=f"new{len(seen)}")
        url, last = page["next"], page
    assert seen == [f"i{number}" for number in reversed(range(7))]
    back = viewer.get(last["previous"]).json()["results"]
    assert [one["interrupt_id"] for one in back] == ["i3", "i2", "i1"]
    oldest = ids(viewer.get(f"{INTERRUPTS}?limit=2&ordering=created"))
    assert oldest == ["i0", "i1"]


@pytest.mark.parametrize("url", [INTERRUPTS, RUNS])
def test_a_list_costs_the_same_for_any_number_of_rows(viewer, url):
    def queries():
        with CaptureQueriesContext(connection) as made:
            assert viewer.get(url).status_code == 200
        return len(made), " ".join(query["sql"] for query in made.captured_queries)

    asked(thread_id="first")
    few, sql = queries()
    for number in range(20):
        asked(thread_id=f"t{number}")
    assert queries()[0] == few
    assert "COUNT(" not in sql.upper()
    assert "snapshot" not in sql


# Answers


def test_an_answer_is_recorded_once_with_who_gave_it_and_is_free(decider):
    interrupt = asked(question(metadata={"toolName": "refund"}))
    shown = answer(
        decider, interrupt, {"status": "resolved", "payload": {"approved": True, "n": 1}}
    )
    assert shown.status_code == 200
    body = shown.json()
    assert (body["state"], body["decided_by"], body["answerable"]) == ("free", "maria", False)
    assert body["decision"]["payload"] == {"approved": True, "n": 1}
    again = answer(
        decider, interrupt, {"status": "resolved", "payload": {"n": 1.0, "approved": True}}
    )
    assert again.status_code == 200
    assert fresh(interrupt).decided_at == RunInterrupt.objects.get().decided_at
    taken = DatabaseStore().admit("s1", "t1", "r2", "digest").answers
    assert [one.holds for one in taken] == [True]


def test_a_cancellation_is_an_answer_too(decider):
    interrupt = asked()
    assert answer(decider, interrupt, {"status": "cancelled"}).status_code == 200
    assert fresh(interrupt).decision["status"] == "cancelled"


def test_who_was_slower_is_told_what_holds(decider):
    interrupt = asked()
    DatabaseStore().answer("s1", "t1", "i1", DENIED, by="jonas")
    refused = answer(decider, interrupt)
    assert refused.status_code == 409
    body = refused.json()
    assert body["code"] == "interrupt_answered"
    assert "i1" in body["message"]
    assert body["interrupt"]["decided_by"] == "jonas"
    assert fresh(interrupt).decision["payload"] == {"approved": False}


def test_an_answer_that_comes_too_late_is_refused(decider):
    interrupt = asked()
    expire(interrupt)
    refused = answer(decider, interrupt)
    assert (refused.status_code, refused.json()["code"]) == (409, "interrupt_expired")
    assert fresh(interrupt).decision is None


def test_a_stale_interrupt_is_refused(decider):
    stale = asked(question("old"))
    asked(question("new"), run_id="r2")
    refused = answer(decider, stale)
    assert (refused.status_code, refused.json()["code"]) == (409, "resume_rejected")
    assert refused.json()["interrupt"]["stale"] is True
    assert fresh(stale).decision is None


def test_an_answer_never_reaches_the_same_id_of_a_later_run(decider):
    """Ids are unique within a run only: what was not looked at is not approved."""
    looked_at = asked(question("confirm", message="Send one mail?"))
    later = asked(question("confirm", message="Delete everything?"), run_id="r2")
    refused = answer(decider, looked_at)
    assert (refused.status_code, refused.json()["code"]) == (409, "resume_rejected")
    assert fresh(looked_at).decision is None
    assert fresh(later).decision is None
    assert answer(decider, later).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "status"),
        ({"status": "approved"}, "status"),
        ({"status": None}, "status"),
        ({"status": ["resolved"]}, "status"),
        ({"status": "resolved", "paylod": {"approved": False}}, "paylod"),
        ({"status": "resolved", "decided_by": "root"}, "decided_by"),
        ([APPROVED], "non_field_errors"),
        ("resolved", "non_field_errors"),
    ],
)
def test_a_body_that_is_no_answer_is_a_400_that_names_the_field(decider, body, field):
    interrupt = asked()
    refused = answer(decider, interrupt, body)
    assert refused.status_code == 400
    assert list(refused.json()) == [field]
    assert fresh(interrupt).decision is None


@pytest.mark.parametrize("text", ['{"status": "resolved", "payload": NaN}', "{", "[" * 100_000])
def test_a_body_that_is_no_json_is_a_400(decider, text):
    url = f"{INTERRUPTS}{asked().pk}/answer/"
    assert decider.post(url, text, content_type="application/json").status_code == 400


@pytest.mark.parametrize(
    "payload",
    [{"a": "\0"}, {"a": "\ud800"}, "x" * 100_000, [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]], 2**70],
)
def test_any_json_is_a_payload(decider, payload):
    interrupt = asked()
    text = json.dumps({"status": "resolved", "payload": payload})  # in ASCII: half characters too
    url = f"{INTERRUPTS}{interrupt.pk}/answer/"
    assert decider.post(url, text, content_type="application/json").status_code == 200
    assert decider.get(f"{INTERRUPTS}{interrupt.pk}/").status_code == 200


def test_rows_are_written_by_no_other_way(decider):
    interrupt = asked()
    for url in (INTERRUPTS, f"{INTERRUPTS}{interrupt.pk}/", RUNS, f"{RUNS}{interrupt.run_id}/"):
        for method in (decider.put, decider.patch, decider.delete):
            assert method(url, {}, format="json").status_code == 405
    assert decider.post(INTERRUPTS, {}, format="json").status_code == 405


# Runs


def test_content_is_null_without_the_permission(viewer):
    """F67."""
    interrupt = asked(snapshot={"secret": 1})
    store = DatabaseStore()
    record = started("failed", "t2")
    store.save(record.finish("failed", store.now(), failure=SECRET))
    reader = client(staff("reader", *VIEW, "view_run_content"))
    assert reader.get(f"{RUNS}{interrupt.run_id}/").json()["snapshot"] == {"secret": 1}
    failed = f"{RUNS}{row('failed', 't2').pk}/"
    assert reader.get(failed).json()["failure"] == SECRET
    for url in (RUNS, f"{RUNS}{interrupt.run_id}/", failed):
        body = viewer.get(url).content.decode()
        assert "secret" not in body
        assert "sk-x" not in body
        assert "digest" not in body
    assert viewer.get(failed).json()["failure"] is None
    for query in ("ordering=failure", "failure=boom", "search=sk-x"):
        assert viewer.get(f"{RUNS}?{query}").status_code == 400


def test_a_cancelled_run_has_ended_or_its_owner_is_asked(decider):
    DatabaseStore().reserve("s1", "t1", "reserved", "digest")
    started("running", "t2")
    interrupt = asked(thread_id="t3")

    def cancel(run):
        return decider.post(f"{RUNS}{run.pk}/cancel/")

    ended = cancel(row("reserved"))
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    requested = cancel(row("running", "t2"))
    assert (requested.status_code, requested.json()["status"]) == (202, "started")
    assert requested.json()["cancel_requested_at"] is not None
    abandoned = cancel(interrupt.run)
    assert (abandoned.status_code, abandoned.json()["status"]) == (200, "interrupted")
    assert fresh(interrupt).state == "settled"
    assert fresh(interrupt).decided_by == "maria"


# The rest


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_in_utc_whatever_the_settings_say(viewer, use_tz):
    deadline = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    with override_settings(USE_TZ=use_tz):
        interrupt = asked(question(expires_at=deadline))
        shown = viewer.get(f"{INTERRUPTS}{interrupt.pk}/").json()
        assert shown["expires_at"] == "2030-01-02T03:04:05.678901Z"
        assert shown["answerable"] is True
        made = viewer.get(f"{RUNS}{interrupt.run_id}/").json()["created_at"]
    age = datetime.now(UTC) - datetime.fromisoformat(made)
    assert timedelta(0) <= age < timedelta(minutes=1)


def test_the_schema_has_nothing_to_warn_of(tmp_path: Path):
    """F75."""
    file, errors = tmp_path / "schema.yml", StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(file), stderr=errors)
    assert errors.getvalue() == ""
    written = yaml.safe_load(file.read_text())
    answering = written["paths"]["/api/interrupts/{id}/answer/"]["post"]
    assert set(answering["responses"]) == {"200", "409"}
    cancelling = written["paths"]["/api/ag-ui-runs/{id}/cancel/"]["post"]
    assert set(cancelling["responses"]) == {"200", "202"}
    components = written["components"]["schemas"]
    assert components["AGUIAnswerState"]["enum"] == ["open", "held", "free", "settled"]
    assert not [name for name in components if name.endswith("Enum")]
