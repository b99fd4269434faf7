from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from rest_framework.filters import BaseFilterBackend
from rest_framework.test import APIRequestFactory, force_authenticate

from solid_runs.rest_framework.views import RunViewSet
from tests.models import FreshRun, GeneratorRun, PlatformRun
from tests.rest_client import client, reader, url, user, viewer
from tests.rows import make

pytestmark = pytest.mark.django_db

SECRET = "sk-x in /srv/app/agents.py"

CONTENT = {
    "input_preview",
    "error_preview",
    "instructions_digest",
    "instructions_codename",
    "instructions",
    "input_prompt",
    "input_params",
    "output",
    "output_metadata",
    "error_message",
    "error_backtrace",
}


def telling_run(model: Any = FreshRun) -> Any:
    run = make(
        model,
        input_prompt=SECRET,
        input_params={"key": SECRET},
        output=SECRET,
        output_metadata={"instructions": SECRET, "key": SECRET},
        error_message=SECRET,
        error_backtrace=SECRET,
        input_tokens=3,
    )
    run.record_instructions(SECRET)
    run.save()
    run.append_event("tool", "search", eid="1", detail=SECRET, duration_ms=5)
    run.add_log(SECRET, level="debug")
    return run


def addresses(run: Any) -> list[str]:
    model = type(run)
    return [url(model), url(model, run.pk), url(model, run.pk, "events/")]


@pytest.mark.parametrize("model", [FreshRun, PlatformRun, GeneratorRun])
@pytest.mark.parametrize("method", ["get", "head", "options"])
def test_who_is_not_logged_in_gets_nothing(model: Any, method: str) -> None:
    run = telling_run(model)
    for address in addresses(run):
        response = getattr(client(), method)(address)
        assert response.status_code in (401, 403), address
        assert "sk-x" not in response.text
        browser = getattr(client(), method)(address, headers={"accept": "text/html"})
        assert browser.status_code in (401, 403)
        assert "sk-x" not in browser.text


@pytest.mark.parametrize("method", ["get", "head", "options"])
def test_a_user_needs_the_view_permission_of_that_model(method: str) -> None:
    run = telling_run()
    others = user("other", "view_generatorrun", "add_freshrun", "change_freshrun")
    for address in addresses(run):
        assert getattr(client(others), method)(address).status_code == 403
    viewing = user("other", "view_freshrun")
    for address in addresses(run):
        assert getattr(client(viewing), method)(address).status_code == 200


def test_a_refusal_asks_for_no_run() -> None:
    run = telling_run()
    for api in (client(), client(user("nobody"))):
        with CaptureQueriesContext(connection) as captured:
            for address in addresses(run):
                api.get(address)
        table = FreshRun._meta.db_table
        assert not any(f'FROM "{table}"' in query["sql"].replace("`", '"') for query in captured)


@pytest.mark.parametrize("model", [FreshRun, PlatformRun, GeneratorRun])
def test_what_was_said_is_null_without_the_permission_for_it(model: Any) -> None:
    run = telling_run(model)
    api = viewer()
    (listed,) = (shown for shown in api.get(url(model)).json()["results"] if shown["id"] == run.pk)
    detail = api.get(url(model, run.pk)).json()
    for shown in (listed, detail):
        assert {name for name in CONTENT & set(shown) if shown[name] is not None} == set()
        assert shown["status"] == "pending"
        assert shown["tokens"] == {
            "input": 3,
            "output": 0 if model is GeneratorRun else None,
            "total": 3,
        }
    for address in addresses(run):
        assert "sk-x" not in api.get(address).text
        assert "sk-x" not in api.get(address, headers={"accept": "text/html"}).text
        assert "sk-x" not in api.options(address).text


def test_what_was_said_is_shown_with_the_permission_for_it() -> None:
    run = telling_run()
    shown = reader().get(url(FreshRun, run.pk)).json()
    assert {name for name in CONTENT if shown[name] is None} == set()
    assert shown["output"] == SECRET
    assert shown["input_params"] == {"key": SECRET}


def test_events_come_without_details_and_messages_but_with_the_rest() -> None:
    run = telling_run()
    event, line = (
        item["entry"] for item in viewer().get(url(FreshRun, run.pk, "events/")).json()["events"]
    )
    assert set(event) == {"at", "eid", "kind", "label", "status", "duration_ms"}
    assert set(line) == {"timestamp", "level"}
    event, line = (
        item["entry"] for item in reader().get(url(FreshRun, run.pk, "events/")).json()["events"]
    )
    assert (event["detail"], line["message"]) == (SECRET, SECRET)


def test_a_superuser_may_read_all() -> None:
    run = telling_run()
    boss = user("boss")
    boss.is_superuser = True
    boss.save()
    assert client(boss).get(url(FreshRun, run.pk)).json()["output"] == SECRET


def test_the_permissions_exist_for_models_over_live_tables() -> None:
    names = Permission.objects.filter(
        content_type__app_label="tests", content_type__model="platformrun"
    ).values_list("codename", flat=True)
    assert {"view_platformrun", "view_run_content", "cancel_run"} <= set(names)


@pytest.mark.parametrize(
    "query", ["ordering=error_backtrace", "ordering=-output", "search=sk-x", "output=sk-x"]
)
def test_what_is_hidden_cannot_be_felt_for(query: str) -> None:
    telling_run()
    response = viewer().get(f"{url(FreshRun)}?{query}")
    assert response.status_code == 400
    assert "results" not in response.json()


def test_a_run_of_another_tenant_is_the_same_as_none() -> None:
    ann, ben = user("ann", "view_"), user("ben", "view_")
    theirs = make(FreshRun, agent_name="ann", trace_id="t-1", input_prompt=SECRET)
    theirs.append_event("tool", "search")
    api = client(ben)
    for then in ("", "events/"):
        found = client(ann).get(f"/api/tenant-runs/{theirs.pk}/{then}")
        hidden = api.get(f"/api/tenant-runs/{theirs.pk}/{then}")
        missing = api.get(f"/api/tenant-runs/{theirs.pk + 1000}/{then}")
        assert found.status_code == 200
        assert (hidden.status_code, hidden.content) == (404, missing.content)
        assert hidden.headers == missing.headers
    for query in ("", "agent=ann", "trace=t-1", "status=pending", "ordering=created"):
        assert api.get(f"/api/tenant-runs/?{query}").json()["results"] == [], query
    assert len(client(ann).get("/api/tenant-runs/").json()["results"]) == 1


def test_a_cursor_of_another_tenant_shows_only_ones_own_runs() -> None:
    ann, ben = user("ann", "view_"), user("ben", "view_")
    for name in ("ann", "ben", "ann", "ben"):
        make(FreshRun, agent_name=name)
    page = client(ann).get("/api/tenant-runs/?limit=1").json()
    shown = client(ben).get(page["next"]).json()["results"]
    assert {run["agent"] for run in shown} == {"ben"}


class OwnRuns(BaseFilterBackend):
    def filter_queryset(self, request: Any, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        return queryset.filter(agent_name=request.user.get_username())


class FilteredRuns(RunViewSet):
    queryset = FreshRun.objects.all()
    filter_backends = [OwnRuns]


@pytest.mark.parametrize("action", ["retrieve", "events"])
def test_a_filter_backend_of_the_host_that_hides_a_run_hides_it_everywhere(action: str) -> None:
    theirs = make(FreshRun, agent_name="ann")
    request = APIRequestFactory().get("/")
    force_authenticate(request, user("ben", "view_"))
    assert FilteredRuns.as_view({"get": action})(request, pk=str(theirs.pk)).status_code == 404


class ManyLinks(RunViewSet):
    """A host that joins what repeats a run."""

    queryset = FreshRun.objects.all()

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(childrun__isnull=True)

    def may_see_content(self) -> bool:
        return True


def test_a_host_decides_itself_who_may_read_what_was_said() -> None:
    run = telling_run()
    request = APIRequestFactory().get("/")
    force_authenticate(request, user("ann", "view_freshrun"))
    assert ManyLinks.as_view({"get": "retrieve"})(request, pk=str(run.pk)).data["output"] == SECRET
    listed = ManyLinks.as_view({"get": "list"})(request).data["results"]
    assert [shown["input_preview"] for shown in listed] == [SECRET]
