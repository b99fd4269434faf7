from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import Value
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIRequestFactory, force_authenticate

from solid_runs.rest_framework.views import RunViewSet
from tests.models import (
    AgentOwnedRun,
    ChildRun,
    Document,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
    TableRunEvent,
)
from tests.rest_client import reader, url, user, viewer
from tests.rows import make, store_text

pytestmark = pytest.mark.django_db

EVERY_MODEL = [
    PlatformRun,
    PlatformJsonRun,
    AgentOwnedRun,
    GeneratorRun,
    FreshRun,
    TableRun,
    FreshRunProxy,
    ChildRun,
    MinimalRun,
]

LIST_FIELDS = {
    "id",
    "status",
    "subject",
    "agent",
    "action",
    "provider",
    "model",
    "trace_id",
    "created_at",
    "started_at",
    "completed_at",
    "updated_at",
    "duration_ms",
    "tokens",
    "input_preview",
    "error_preview",
    "instructions_digest",
    "instructions_codename",
}
DETAIL_FIELDS = LIST_FIELDS | {
    "instructions",
    "input_prompt",
    "input_params",
    "output",
    "output_metadata",
    "error_message",
    "error_backtrace",
}


def by_id(page: Any) -> dict[int, Any]:
    return {run["id"]: run for run in page["results"]}


@pytest.mark.parametrize("model", EVERY_MODEL)
def test_every_model_has_the_same_fields(model: Any) -> None:
    run = make(model, input_prompt="Hello")
    api = reader()
    assert set(by_id(api.get(url(model)).json())[run.pk]) == LIST_FIELDS
    assert set(api.get(url(model, run.pk)).json()) == DETAIL_FIELDS


def test_the_platform_rows_of_rails_are_listed_as_they_are() -> None:
    runs = by_id(reader().get(url(PlatformRun)).json())
    assert list(runs) == [5, 4, 3, 2, 1]
    assert [run["status"] for run in runs.values()] == [
        "cancelled",
        "failed",
        "complete",
        "running",
        "pending",
    ]
    assert runs[3] == {
        "id": 3,
        "status": "complete",
        "subject": {"type": "Agent", "id": "3", "label": "Agent 3"},
        "agent": "3",
        "action": None,
        "provider": None,
        "model": None,
        "trace_id": None,
        "created_at": "2026-01-15T18:30:19+09:00",
        "started_at": "2026-01-15T18:30:20+09:00",
        "completed_at": "2026-01-15T18:30:23.250000+09:00",
        "updated_at": "2026-01-15T18:30:23.250000+09:00",
        "duration_ms": 3250,
        "tokens": {"input": 120, "output": 40, "total": 260},
        "input_preview": "Find the invoice total",
        "error_preview": None,
        "instructions_digest": None,
        "instructions_codename": None,
    }
    assert runs[4]["error_preview"] == "Faraday::TimeoutError: execution expired"


def test_the_detail_looks_into_the_metadata_for_what_has_no_column() -> None:
    run = reader().get(url(PlatformRun, 3)).json()
    assert (run["action"], run["provider"], run["model"]) == (
        "extract",
        "anthropic",
        "claude-sonnet",
    )
    assert run["instructions"] == "Answer with the figure only."
    assert run["instructions_digest"] == PlatformRun.objects.get(pk=3).instructions_digest
    assert run["instructions_codename"] == PlatformRun.objects.get(pk=3).instructions_codename
    assert run["output"] == "The total is 1,284.50 EUR."
    assert run["output_metadata"]["instructions"] == "Answer with the figure only."
    assert run["input_params"] is None
    failed = reader().get(url(PlatformRun, 4)).json()
    assert failed["error_message"] == "Faraday::TimeoutError: execution expired"
    assert failed["error_backtrace"].splitlines()[0] == "app/agents/travel.rb:12:in `call'"


def test_the_generator_rows_of_rails_show_their_subjects_known_or_not() -> None:
    Document.objects.create(pk=3, title="Invoice")
    runs = by_id(reader().get(url(GeneratorRun)).json())
    assert runs[3]["subject"] == {"type": "Document", "id": "3", "label": "Document object (3)"}
    assert runs[2]["subject"] == {
        "type": "Reports::Quarterly",
        "id": "2",
        "label": "Reports::Quarterly 2",
    }
    assert runs[3]["agent"] == "InvoiceAgent"
    assert runs[3]["tokens"] == {"input": 120, "output": 40, "total": 160}


def test_a_table_with_a_status_and_a_log_only_shows_null_for_the_rest() -> None:
    run = make(MinimalRun, "running")
    shown = reader().get(url(MinimalRun, run.pk)).json()
    said = {name: value for name, value in shown.items() if value is not None}
    assert said == {
        "id": run.pk,
        "status": "running",
        "action": "ask",
        "tokens": {"input": None, "output": None, "total": 0},
    }


@pytest.mark.parametrize(
    ("model", "stored", "shown"),
    [
        (PlatformRun, 9, "unknown (9)"),
        (GeneratorRun, "1", "unknown (1)"),
        (FreshRun, "paused", "unknown (paused)"),
    ],
)
def test_a_stored_status_out_of_the_set_lists_and_shows(
    model: Any, stored: Any, shown: str
) -> None:
    run = make(model)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {model._meta.db_table} SET status = %s WHERE id = %s", [stored, run.pk]
        )
    api = reader()
    assert by_id(api.get(url(model)).json())[run.pk]["status"] == shown
    assert api.get(url(model, run.pk)).json()["status"] == shown
    events = api.get(url(model, run.pk, "events/")).json()
    assert (events["status"], events["finished"]) == (shown, False)
    names = "pending,running,complete,failed,cancelled"
    assert run.pk not in by_id(api.get(url(model), {"status": names}).json())


def list_statements(model: Any, api: Any) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert api.get(url(model), {"limit": "200"}).status_code == 200
    table = ChildRun._meta.db_table if model is ChildRun else model._meta.db_table
    return [query["sql"] for query in captured if f"{table}" in query["sql"]]


@pytest.mark.parametrize("model", EVERY_MODEL)
@pytest.mark.parametrize("caller", [reader, viewer])
def test_a_list_reads_no_big_column_and_counts_nothing(model: Any, caller: Any) -> None:
    for _ in range(3):
        make(model, input_prompt="p" * 300, error_message="e" * 300, output="o")
    statements = list_statements(model, caller())
    assert len(statements) == 2, statements
    for sql in statements:
        bare = re.sub(r"SUBSTR(ING)?\([^()]*\)", "", sql)
        for name in (
            "logs",
            "events",
            "log",
            "output",
            "input_prompt",
            "input_params",
            "output_metadata",
            "error_message",
            "error_backtrace",
        ):
            assert not re.search(rf"[`\"]{name}[`\"]", bare), f"{name} is read by {sql}"
        assert "COUNT(" not in sql
    if caller is viewer:
        assert not any("SUBSTR" in sql for sql in statements)
    assert "SUBSTR" not in statements[0], "the keys of a page are sorted without the previews"


@pytest.mark.parametrize("model", EVERY_MODEL)
def test_a_list_of_50_costs_as_many_queries_as_one_of_5(model: Any) -> None:
    api = reader()
    counts = []
    for more in (5, 45):
        for number in range(1, more + 1):
            make(
                model,
                input_prompt="Hello",
                runnable_type="Document",
                runnable_id=number,
                agent_id=number,
            )
        with CaptureQueriesContext(connection) as captured:
            page = api.get(url(model), {"limit": "50"}).json()["results"]
        counts.append(len(captured))
        assert len(page) >= more
    assert counts[0] == counts[1], counts


def test_previews_are_cut_at_their_limits() -> None:
    run = make(FreshRun, input_prompt="é" * 101, error_message="x" * 200)
    exact = make(FreshRun, input_prompt="é" * 100, error_message="x" * 201)
    api = reader()
    for shown in (
        by_id(api.get(url(FreshRun)).json()),
        {pk: api.get(url(FreshRun, pk)).json() for pk in (run.pk, exact.pk)},
    ):
        assert shown[run.pk]["input_preview"] == "é" * 97 + "..."
        assert shown[exact.pk]["input_preview"] == "é" * 100
        assert shown[run.pk]["error_preview"] == "x" * 200
        assert shown[exact.pk]["error_preview"] == "x" * 197 + "..."


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_the_detail_does_not_read_the_log(model: Any) -> None:
    run = make(model)
    api = reader()
    with CaptureQueriesContext(connection) as captured:
        api.get(url(model, run.pk))
    log = connection.ops.quote_name("events")
    entries = TableRunEvent._meta.db_table
    assert not any(log in query["sql"] or entries in query["sql"] for query in captured)


NO_KEYS = [
    "4242",
    "0",
    "99999999999999999999",
    "-99999999999999999999",
    "9" * 5000,
    "abc",
    "%00",
    "1%00",
    "1_0",
    "%EF%BC%91",
    "%201",
    "0x1",
    "1e0",
    "%F0%9F%9A%86",
]


@pytest.mark.parametrize("model", EVERY_MODEL)
@pytest.mark.parametrize("then", ["", "events/"])
def test_a_key_that_no_row_has_is_the_one_404(model: Any, then: str) -> None:
    api = reader()
    for key in NO_KEYS:
        response = api.get(url(model, key, then))
        assert (response.status_code, response.json()) == (404, {"detail": "Not found."}), key


def test_a_parameter_that_means_nothing_is_named_with_those_that_do() -> None:
    api = reader()
    response = api.get(url(FreshRun), {"staus": "running"})
    assert response.status_code == 400
    assert list(response.json()) == ["staus"]
    (message,) = response.json()["staus"]
    for name in ("status", "agent", "action", "trace", "created_after", "cursor", "limit"):
        assert name in message
    assert api.get(url(FreshRun), {"format": "json", "limit": "1"}).status_code == 200
    run = make(FreshRun)
    assert api.get(url(FreshRun, run.pk), {"status": "running"}).status_code == 400
    assert api.get(url(FreshRun, run.pk, "events/"), {"status": "done"}).status_code == 400


@pytest.mark.parametrize(
    "name", ["metadata__a')) OR 1=1 --", "search", "status__regex", "agent__password", "a\x00"]
)
def test_no_lookup_can_be_spelt_in_a_parameter(name: str) -> None:
    response = reader().get(url(FreshRun), {name: "x"})
    assert response.status_code == 400
    assert list(response.json()) == [name]


def test_a_parameter_given_twice_is_refused_unless_it_is_a_status() -> None:
    api = reader()
    response = api.get(url(FreshRun) + "?agent=a&agent=b")
    assert (response.status_code, list(response.json())) == (400, ["agent"])
    assert api.get(url(FreshRun) + "?status=failed&status=running").status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(method: str) -> None:
    run = make(FreshRun)
    api = reader()
    for address in (url(FreshRun), url(FreshRun, run.pk), url(FreshRun, run.pk, "events/")):
        assert getattr(api, method)(address, {"status": "complete"}).status_code in (403, 405)
    run.refresh_from_db()
    assert run.status == "pending"


def test_metadata_that_is_no_json_is_shown_as_its_text() -> None:
    run = make(FreshRun, output_metadata={})
    if connection.vendor == "postgresql":
        FreshRun.objects.filter(pk=run.pk).update(output_metadata=Value('"{oops"'))
    else:
        store_text(run, "output_metadata", "{oops")
    shown = reader().get(url(FreshRun, run.pk)).json()
    assert shown["output_metadata"] == "{oops"
    assert (shown["provider"], shown["model"], shown["action"]) == (None, None, "ask")


def test_json_that_no_client_could_read_is_mended() -> None:
    run = make(PlatformJsonRun, output_metadata={})
    metadata = '{"half": "a\\ud800b", "nul": "a\\u0000b", "big": 12345678901234567890}'
    log = '[{"kind": "tool", "label": "a\\ud800b", "status": "done", "detail": "c\\u0000"}]'
    if connection.vendor != "postgresql":
        metadata = metadata.replace("}", ', "nan": NaN, "inf": -Infinity}')
    store_text(run, "output_metadata", metadata)
    store_text(run, "logs", log)
    api = reader()
    shown = json.loads(api.get(url(PlatformJsonRun, run.pk)).content)["output_metadata"]
    assert shown["half"] == "a�b"
    assert shown["big"] == 12345678901234567890
    assert shown.get("nan") is None
    assert shown.get("inf") is None
    (event,) = api.get(url(PlatformJsonRun, run.pk, "events/")).json()["events"]
    assert event["entry"]["label"] == "a�b"


def test_names_in_the_metadata_that_are_no_text_are_left_out() -> None:
    run = make(PlatformRun, output_metadata={"provider": {"key": "sk-x"}, "model": 7})
    shown = viewer().get(url(PlatformRun, run.pk)).json()
    assert (shown["provider"], shown["model"]) == (None, None)


def test_times_before_the_zone_moved_keep_their_moment() -> None:
    run = make(FreshRun, started_at=datetime(2026, 1, 15, 23, 59, 59, 999999, UTC))
    shown = reader().get(url(FreshRun, run.pk)).json()
    assert shown["started_at"] == "2026-01-16T08:59:59.999999+09:00"


@pytest.mark.parametrize("model", EVERY_MODEL)
def test_a_browser_gets_pages_that_work(model: Any) -> None:
    run = make(model, input_prompt="<script>alert(1)</script>")
    make(model)
    api = reader()
    for address in (
        url(model) + "?limit=1",
        url(model) + "?status=bogus",
        url(model) + "?status=failed,running&limit=2",
        url(model, run.pk),
        url(model, run.pk, "events/"),
        url(model, 4242),
    ):
        response = api.get(address, headers={"accept": "text/html"})
        assert response["content-type"].startswith("text/html"), address
        assert "<script>alert(1)" not in response.text
    page = api.get(url(model) + "?limit=1", headers={"accept": "text/html"})
    assert "cursor=" in page.text


@pytest.mark.django_db(databases=["default", "other"])
def test_a_view_over_another_database_reads_all_of_it_there() -> None:
    class OtherRuns(RunViewSet):
        queryset = FreshRun.objects.using("other")

    run = FreshRun(status="running", agent_name="elsewhere")
    run.save(using="other")
    run.append_event("tool", "search")
    caller = user("reader", "view_")

    def get(actions: dict[str, str], **kwargs: Any) -> Any:
        request = APIRequestFactory().get("/")
        force_authenticate(request, caller)
        return OtherRuns.as_view(actions)(request, **kwargs).data

    assert [shown["agent"] for shown in get({"get": "list"})["results"]] == ["elsewhere"]
    assert get({"get": "retrieve"}, pk=str(run.pk))["agent"] == "elsewhere"
    assert get({"get": "events"}, pk=str(run.pk))["events"][0]["seq"] == 1
