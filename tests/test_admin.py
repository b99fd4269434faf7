from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, connection
from django.db.models import Max
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from solid_runs.admin import RunAdmin, display
from solid_runs.admin.access import CONTENT, content_fields
from solid_runs.admin.detail import backtrace_text, json_text, tick_text
from solid_runs.admin.paginator import CappedPaginator
from solid_runs.admin.timelines import TICK_STEPS, lay_out
from solid_runs.columns import columns_of
from solid_runs.events import Numbered, Step, timeline
from solid_runs.signals import run_status_changed
from solid_runs.statuses import RunStatus, UnknownStatus
from tests.admin import RUN_MODELS
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
    UUIDDocument,
)

pytestmark = pytest.mark.django_db

LEGACY = [PlatformRun, PlatformJsonRun, GeneratorRun]
SCRIPT = "<script>alert(1)</script>"
BREAKOUT = "</pre><img src=x onerror=alert(1)>"

each_model = pytest.mark.parametrize("model", RUN_MODELS)


def page(model, view="changelist", *args):
    opts = model._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_{view}", args=args)


def make(model, status="complete", /, **values):
    """A run with those of ``values`` that its model has; the pk goes on from the legacy rows."""
    names = {field.name for field in model._meta.fields}
    if model in LEGACY or model is AgentOwnedRun:
        values.setdefault("id", (model.objects.aggregate(Max("pk"))["pk__max"] or 0) + 1)
    kept = {name: value for name, value in values.items() if name in names}
    if "log" in values:
        kept[columns_of(model).log_name] = values["log"]
    return model.objects.create(status=status, **kept)


def execute(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def user_with(*codenames):
    user = User.objects.create_user(f"user-{uuid.uuid4()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def viewer():
    """May view every model, but neither cancel nor see the content of runs."""
    return user_with(
        *(f"view_{model._meta.model_name}" for model in [*RUN_MODELS, Document, UUIDDocument])
    )


# The list


@each_model
def test_list_shows_every_status_by_name(admin_client, model):
    for status in RunStatus:
        make(model, status, input_prompt="Find the total")
    html = text(admin_client.get(page(model)))
    for status in RunStatus:
        assert f'<span class="run-badge run-{status}">{status}</span>' in html


@pytest.mark.parametrize("model", LEGACY)
def test_list_of_a_live_table_shows_its_rows_with_right_times(admin_client, model):
    html = text(admin_client.get(page(model)))
    assert "Translate the manual — “où est la gare?” 🚆" in html
    assert 'title="2026-01-15 18:30:00 JST"' in html
    assert '<td class="field-duration">1.0 s</td>' in html


def test_columns_that_the_model_lacks_are_left_out(admin_client):
    make(MinimalRun)
    response = admin_client.get(page(MinimalRun))
    assert response.context["cl"].list_display == ["action_checkbox", "run_key", "status_badge"]
    assert len(response.context["cl"].filter_specs) == 1


@each_model
def test_list_costs_the_same_queries_for_5_rows_as_for_50(admin_client, model):
    documents = [Document.objects.create(title="Report") for _ in range(3)]

    def grow(number):
        for n in range(number):
            about = {"runnable_type": "Document", "runnable_id": documents[n % 3].pk}
            make(model, input_prompt="x", agent_name="A", agent_id=7, **about)

    def cost():
        with CaptureQueriesContext(connection) as queries:
            text(admin_client.get(page(model)))
        return len(queries)

    model.objects.all().delete()
    grow(5)
    few = cost()
    grow(45)
    assert cost() == few
    assert few <= 6


@each_model
def test_list_reads_no_big_column(admin_client, model):
    make(model, input_prompt="Find the total", log=[{"message": "x"}])
    with CaptureQueriesContext(connection) as queries:
        text(admin_client.get(page(model)))
    table = model._meta.db_table
    statements = [query["sql"] for query in queries if f"FROM {quoted(table)}" in query["sql"]]
    assert statements
    for name in content_fields(model):
        column = quoted(columns_of(model).fields[name].column)
        for sql in statements:
            bare = re.sub(rf"(LEFT|SUBSTR)\(\S+?\.{re.escape(column)}, [^)]*\)", "", sql)
            assert column not in bare


def quoted(name):
    return connection.ops.quote_name(name)


def test_a_column_that_the_host_lists_is_loaded_with_the_page(rf, admin_user):
    class Listed(RunAdmin):
        list_display = ("run_key", "error_message")

    make(FreshRun, "failed", error_message="boom")
    request = rf.get("/")
    request.user = admin_user
    changelist = Listed(FreshRun, admin.site).get_changelist_instance(request)
    with CaptureQueriesContext(connection) as queries:
        assert [run.error_message for run in changelist.result_list] == ["boom"]
    assert len(queries) == 0


def test_a_long_prompt_is_cut_in_the_database_and_shown_as_a_preview(admin_client):
    make(FreshRun, input_prompt="wörter \n " * 50)
    with CaptureQueriesContext(connection) as queries:
        html = text(admin_client.get(page(FreshRun)))
    assert "101" in " ".join(query["sql"] for query in queries)
    [shown] = re.findall(r'field-prompt_preview"><span class="run-clip"[^>]*>([^<]*)<', html)
    assert len(shown) <= 100
    assert shown.startswith("wörter wörter")


def test_figures_of_the_list(admin_client):
    make(FreshRun, input_tokens=3000, output_tokens=120, duration_ms=3260)
    html = text(admin_client.get(page(FreshRun)))
    assert '<td class="field-tokens">3,120</td>' in html
    assert '<td class="field-duration">3.3 s</td>' in html


def test_a_running_run_shows_how_long_it_has_been(admin_client):
    make(FreshRun, "running", started_at=timezone.now() - timedelta(seconds=62))
    html = text(admin_client.get(page(FreshRun)))
    assert re.search(r'<span class="run-live" title="going on">1:0\d</span>', html)


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, AgentOwnedRun])
def test_an_unknown_status_lists_and_renders(admin_client, model):
    execute(f"UPDATE {model._meta.db_table} SET status = 9 WHERE id = 1")
    assert "unknown (9)" in text(admin_client.get(page(model)))
    assert "unknown (9)" in text(admin_client.get(page(model, "change", 1)))
    assert len(admin_client.get(page(model), {"status": "pending"}).context["cl"].result_list) == 0


def test_an_unknown_name_lists_and_renders(admin_client):
    execute("UPDATE solid_agent_runs SET status = 'paused' WHERE id = 1")
    assert "unknown (paused)" in text(admin_client.get(page(GeneratorRun)))
    assert "unknown (paused)" in text(admin_client.get(page(GeneratorRun, "change", 1)))


def test_str_of_a_run_reads_nothing_that_the_list_has_deferred():
    run = make(FreshRun)
    deferred = FreshRun.objects.only("id").get(pk=run.pk)
    with CaptureQueriesContext(connection) as queries:
        assert str(deferred) == f"fresh run {run.pk}"
    assert len(queries) == 0


# Subjects


def test_a_subject_is_a_link_to_its_admin_page(admin_client):
    document = Document.objects.create(title="Report")
    make(GeneratorRun, runnable_type="Document", runnable_id=document.pk)
    link = f'<a href="{page(Document, "change", document.pk)}">'
    assert link in text(admin_client.get(page(GeneratorRun)))


def test_subjects_with_keys_of_any_kind_are_found(admin_client):
    document = UUIDDocument.objects.create(id=uuid.uuid4())
    large = Document.objects.create(id=2**40, title="Large")
    for subject in (document, large):
        run = FreshRun(status="complete")
        run.subject = subject
        run.save()
    html = text(admin_client.get(page(FreshRun)))
    assert page(UUIDDocument, "change", document.pk) in html
    assert page(Document, "change", large.pk) in html


def test_an_unresolved_subject_is_text(admin_client):
    html = text(admin_client.get(page(GeneratorRun)))
    assert ">Reports::Quarterly 2</span></td>" in html
    assert "Reports::Quarterly 2" in text(admin_client.get(page(GeneratorRun, "change", 2)))


def test_a_subject_is_no_link_for_somebody_who_may_not_see_it():
    document = Document.objects.create(title="Report")
    run = make(GeneratorRun, runnable_type="Document", runnable_id=document.pk)
    client = user_with("view_generatorrun")
    for address in (page(GeneratorRun), page(GeneratorRun, "change", run.pk)):
        html = text(client.get(address))
        assert str(document) in html
        assert page(Document, "change", document.pk) not in html


# Filters


@each_model
def test_status_filter_takes_a_name(admin_client, model):
    for status in RunStatus:
        make(model, status)
    for status in RunStatus:
        found = admin_client.get(page(model), {"status": status}).context["cl"].result_list
        assert {run.status for run in found} == {status}


def test_status_choices_stand_in_the_order_of_the_lifecycle(admin_client):
    [spec, _created] = admin_client.get(page(FreshRun)).context["cl"].filter_specs
    assert [value for value, _label in spec.lookup_choices] == RunStatus.values


@each_model
def test_a_value_that_means_nothing_is_no_error(admin_client, model):
    make(model)
    for query in (
        "status=bogus",
        "status=9",
        "status=99999999999999999999",
        "status=",
        "created=bogus",
        "pk__exact=99999999999999999999",
        "o=x.99.-1&p=x",
        "p=99999999999999999999",
    ):
        response = admin_client.get(f"{page(model)}?{query}", follow=True)
        assert response.status_code == 200, query


def test_created_filter_takes_half_open_ranges_of_local_days(admin_client, monkeypatch):
    now = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)  # half past midnight of the 11th in Tokyo
    monkeypatch.setattr(timezone, "now", lambda: now)
    ages = {
        "at once": timedelta(minutes=10),
        "yesterday": timedelta(minutes=31),
        "an hour ago": timedelta(minutes=61),
        "last week": timedelta(days=7, minutes=29),
        "long ago": timedelta(days=8, minutes=31),
    }
    for name, age in ages.items():
        run = make(FreshRun, agent_name=name)
        FreshRun.objects.filter(pk=run.pk).update(created_at=now - age)

    def found(choice):
        runs = admin_client.get(page(FreshRun), {"created": choice}).context["cl"].result_list
        return {run.agent_name for run in runs}

    assert found("hour") == {"at once", "yesterday"}
    assert found("today") == {"at once"}
    assert found("week") == {"at once", "yesterday", "an hour ago", "last week"}


@pytest.mark.parametrize("model", LEGACY)
def test_created_filter_compares_the_bare_column(admin_client, model):
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(page(model), {"created": "week"})
    [listed] = [q["sql"] for q in queries if "LIMIT" in q["sql"] and "WHERE" in q["sql"]][-1:]
    column = f"{quoted(model._meta.db_table)}.{quoted('created_at')}"
    assert f"{column} >= " in listed
    assert f"{column} < " in listed


@pytest.mark.parametrize(
    "query",
    [
        "output__contains=secret",
        "input_prompt__startswith=a",
        "error_message=x",
        "output_metadata__x=1",
        "run_prompt_start__startswith=a",
        "agent_name__icontains=a",
        "agent_name__regex=(a%2B)%2B%24",
        "created_at__date=2026-01-01",
        "trace_id=%00",
        "status__exact=%00",
    ],
)
def test_an_address_cannot_ask_what_is_hidden_or_scan_a_text(admin_client, query):
    make(FreshRun, output="secret", input_prompt="abc", agent_name="aaa")
    response = admin_client.get(f"{page(FreshRun)}?{query}")
    assert response.status_code in (302, 400)  # 302: Django's answer to what is no field


def test_an_address_can_compare_a_plain_column(admin_client):
    run = make(FreshRun, duration_ms=900)
    make(FreshRun, duration_ms=100)
    found = admin_client.get(page(FreshRun), {"duration_ms__gt": 500}).context["cl"].result_list
    assert [each.pk for each in found] == [run.pk]
    assert (
        len(
            admin_client.get(page(FreshRun), {"status__exact": "complete"})
            .context["cl"]
            .result_list
        )
        == 2
    )


# Search


@each_model
def test_search_finds_a_run_by_its_key(admin_client, model):
    run = make(model)
    make(model)
    found = admin_client.get(page(model), {"q": f" {run.pk} "}).context["cl"].result_list
    assert [each.pk for each in found] == [run.pk]


def test_search_finds_by_trace_agent_and_action_exactly(admin_client):
    trace = str(uuid.uuid4())
    run = make(FreshRun, trace_id=trace, agent_name="InvoiceAgent", action_name="extract all")
    make(FreshRun, agent_name="InvoiceAgentTwo")

    def found(query):
        return [
            each.pk
            for each in admin_client.get(page(FreshRun), {"q": query}).context["cl"].result_list
        ]

    assert found(trace) == found("InvoiceAgent") == found("extract all") == [run.pk]
    assert found("Invoice") == found("extract") == []


ODD_SEARCHES = [
    "\0",
    "'%",
    "a b c d e f g h i j",
    "5f0c9d7e-3b1a-4c7b-9f59-0d6a1f2b3c4d",
    "9" * 30,
    "9" * 5000,
    "-1",
    "1e400",
    "😀",
    "\u202e",
]


@each_model
def test_search_takes_anything_and_scans_no_text(admin_client, model):
    make(model)
    for query in ODD_SEARCHES:
        with CaptureQueriesContext(connection) as queries:
            response = admin_client.get(page(model), {"q": query})
        assert response.status_code == 200, query
        assert query == "\0" or len(response.context["cl"].result_list) <= 1
        for sql in (each["sql"].upper() for each in queries):
            assert "LIKE" not in sql
            assert "::TEXT" not in sql.partition(" WHERE ")[2]


# Counting and ordering


def test_rows_past_the_cap_are_not_counted(admin_client, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "cap", 3)
    monkeypatch.setattr(RunAdmin, "list_per_page", 2)
    for _ in range(5):
        make(FreshRun)
    with CaptureQueriesContext(connection) as queries:
        html = text(admin_client.get(page(FreshRun), {"p": 2}))
    assert "3+ fresh runs" in html
    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
    assert len(counts) == 1
    assert "LIMIT 4" in counts[0]


def test_a_count_under_the_cap_is_shown_as_it_is(admin_client, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "cap", 3)
    for _ in range(3):
        make(FreshRun)
    html = text(admin_client.get(page(FreshRun)))
    assert "3 fresh runs" in html
    assert "3+ fresh runs" not in html


def test_the_count_reads_keys_only(admin_client):
    make(FreshRun, input_prompt="x")
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(page(FreshRun))
    [sql] = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
    assert "input_prompt" not in sql
    assert "ORDER BY" not in sql


def test_no_counts_beside_the_filters(admin_client):
    assert admin_client.get(f"{page(FreshRun)}?_facets").context["cl"].add_facets is False


@pytest.mark.parametrize(
    ("model", "sortable"),
    [(FreshRun, {"run_key", "created"}), (PlatformRun, {"run_key"}), (MinimalRun, {"run_key"})],
)
def test_only_what_an_index_orders_is_offered_for_sorting(admin_client, model, sortable):
    changelist = admin_client.get(page(model)).context["cl"]
    assert set(changelist.sortable_by) == sortable
    offered = {
        name for name in changelist.list_display if changelist.get_ordering_field(name) is not None
    }
    assert offered == sortable


@each_model
def test_the_newest_run_comes_first(admin_client, model):
    runs = [make(model) for _ in range(3)]
    found = admin_client.get(page(model)).context["cl"].result_list
    assert [run.pk for run in found][:3] == [run.pk for run in reversed(runs)]


def test_created_sorts_both_ways(admin_client):
    runs = [make(FreshRun) for _ in range(3)]
    changelist = admin_client.get(page(FreshRun)).context["cl"]
    column = changelist.list_display.index("created")
    found = admin_client.get(page(FreshRun), {"o": column}).context["cl"].result_list
    assert [run.pk for run in found] == [run.pk for run in runs]


# The page of a run


@each_model
def test_the_page_of_a_run_renders(admin_client, model):
    for status in RunStatus:
        run = make(model, status, input_prompt="Find the total", log=[{"message": "hello there"}])
        html = text(admin_client.get(page(model, "change", run.pk)))
        assert f'<span class="run-badge run-{status}">' in html
        assert "hello there" in html
        assert ("Find the total" in html) is ("input_prompt" in columns_of(model))


@pytest.mark.parametrize("model", LEGACY)
@pytest.mark.parametrize("pk", range(1, 6))
def test_the_page_of_a_row_that_rails_wrote_renders(admin_client, model, pk):
    text(admin_client.get(page(model, "change", pk)))


def test_the_page_shows_what_a_run_was_asked_and_said(admin_client):
    html = text(admin_client.get(page(PlatformRun, "change", 3)))
    for shown in (
        "Find the invoice total",
        "The total is 1,284.50 EUR.",
        "Answer with the figure only.",
        "anthropic · claude-sonnet",
        "search_invoices",
        "3 rows",
        "120 in · 40 out",
        "2026-01-15 18:30:23 JST",
    ):
        assert shown in html
    html = text(admin_client.get(page(PlatformRun, "change", 4)))
    assert "Faraday::TimeoutError: execution expired" in html
    assert "app/jobs/run_job.rb:5:in `perform&#x27;" in html
    assert "run-s-error" in html


def test_the_page_costs_a_bounded_number_of_queries(admin_client):
    run = make(FreshRun, log=[{"message": str(n)} for n in range(200)])
    with CaptureQueriesContext(connection) as queries:
        text(admin_client.get(page(FreshRun, "change", run.pk)))
    assert len(queries) <= 6


@pytest.mark.parametrize(
    "log",
    [
        None,
        [],
        {"an": "object"},
        "a string",
        7,
        ["a string", None, 7, [], {}],
        [{"at": "yesterday", "kind": None, "label": 5, "status": ["x"], "duration_ms": -1}],
        [{"at": "0001-01-01T00:00:00Z", "kind": "llm", "label": "x", "duration_ms": 10**30}],
        [{"at": "2026-01-01T00:00:00Z", "eid": {"a": 1}, "kind": "x", "status": "started"}],
        [
            {"at": "2026-01-01T00:00:02Z", "eid": "1", "status": "started"},
            {"eid": "1", "at": "1970"},
        ],
    ],
)
@pytest.mark.parametrize("model", [*LEGACY, FreshRun, MinimalRun])
def test_a_log_of_any_shape_renders(admin_client, model, log):
    run = make(model, "running")
    model.objects.filter(pk=run.pk).update(**{columns_of(model).log_name: log})
    text(admin_client.get(page(model, "change", run.pk)))


@pytest.mark.parametrize("backtrace", [None, "", "[]", "[broken", '["a.rb:1", "b.rb:2"]'])
def test_a_backtrace_of_any_shape_renders(admin_client, backtrace):
    PlatformRun.objects.filter(pk=4).update(error_backtrace=backtrace)
    html = text(admin_client.get(page(PlatformRun, "change", 4)))
    assert ("Backtrace" in html) is bool(backtrace_text(backtrace))


def test_a_failure_without_a_traceback_renders(admin_client):
    run = make(FreshRun, "running")
    run.fail(ValueError("never raised"))
    assert "never raised" in text(admin_client.get(page(FreshRun, "change", run.pk)))


def test_metadata_that_is_no_object_renders(admin_client):
    for stored in (["a"], "text", 7, {"a": {"b": [1]}}):
        PlatformRun.objects.filter(pk=3).update(output_metadata=stored)
        text(admin_client.get(page(PlatformRun, "change", 3)))


def test_a_lone_surrogate_that_an_older_writer_left_renders(admin_client, vendor):
    log = r"""[{"kind": "\ud800", "label": "\ud800", "detail": "\ud800", "status": "\ud800"}]"""
    metadata = r"""{"model": "\ud800", "action": "\ud800", "instructions": "\ud800"}"""
    sql = "UPDATE agent_runs_json SET logs = %s, output_metadata = %s WHERE id = 3"
    if vendor == "mysql":
        with pytest.raises(IntegrityError):
            execute(sql, log, metadata)
        return
    execute(sql, log, metadata)
    html = text(admin_client.get(page(PlatformJsonRun, "change", 3)))
    assert html.count("\ufffd") >= 7


def test_a_run_before_its_start_and_with_negative_times_renders(admin_client):
    now = timezone.now()
    run = make(FreshRun, started_at=now, completed_at=now - timedelta(hours=1), duration_ms=-5)
    text(admin_client.get(page(FreshRun, "change", run.pk)))
    text(admin_client.get(page(FreshRun)))


def test_steps_past_the_limit_are_counted_not_shown(admin_client, monkeypatch):
    monkeypatch.setattr("solid_runs.admin.detail.MOST_STEPS", 3)
    run = make(FreshRun, log=[{"message": f"line {n}"} for n in range(10)])
    html = text(admin_client.get(page(FreshRun, "change", run.pk)))
    assert "line 2" in html
    assert "line 3" not in html
    assert "and 7 steps more" in html
    assert "10 entries" in html


def test_a_very_long_output_is_cut_and_says_so(admin_client):
    run = make(FreshRun, output="x" * 150_000)
    html = text(admin_client.get(page(FreshRun, "change", run.pk)))
    assert "The first 100,000 of 150,000 characters." in html
    assert "x" * 100_001 not in html


def test_columns_of_the_hosts_own_are_shown(admin_client):
    run = ChildRun.objects.create(status="complete", note="the note")
    html = text(admin_client.get(page(ChildRun, "change", run.pk)))
    assert "the note" in html


@pytest.mark.parametrize("key", ["9" * 40, "abc", "1_00", "-1"])
def test_a_key_that_is_none_is_not_found(admin_client, key):
    response = admin_client.get(page(FreshRun, "change", key))
    assert response.status_code == 302
    assert response.url == reverse("admin:index")


def test_times_are_right_without_time_zones(admin_client, settings):
    settings.USE_TZ = False
    make(
        FreshRun,
        "running",
        started_at=datetime.now() - timedelta(seconds=62),
        log=[{"at": datetime.now(UTC).isoformat(), "eid": "1", "status": "started"}],
    )
    html = text(admin_client.get(page(FreshRun)))
    assert re.search(r">1:0\d</span>", html)
    assert "just now" in html
    html = text(admin_client.get(page(FreshRun, "change", FreshRun.objects.get().pk)))
    assert re.search(r'class="run-offset">1:0\d|class="run-offset">6\d', html)


# Who may see what


def secretive(model):
    secret = {
        name: "s3cret"
        for name in CONTENT - {"output_metadata", "input_params"}
        if name in columns_of(model)
    }
    return make(
        model,
        "failed",
        output_metadata={"instructions": "s3cret", "model": "s3cret", "action": "s3cret"},
        input_params={"s3cret": "s3cret"},
        log=[
            {"at": "2026-01-01T00:00:00Z", "kind": "tool", "label": "search", "detail": "s3cret"},
            {"timestamp": "2026-01-01T00:00:00Z", "level": "info", "message": "s3cret"},
            "s3cret",
        ],
        **secret,
    )


@each_model
def test_content_takes_a_permission(viewer, model):
    run = secretive(model)
    assert "s3cret" not in text(viewer.get(page(model)))
    html = text(viewer.get(page(model, "change", run.pk)))
    assert "s3cret" not in html
    assert "hidden from you" in html
    assert "search" in html


@pytest.mark.parametrize("model", [*LEGACY, FreshRun, FreshRunProxy, ChildRun])
def test_content_is_shown_to_those_who_have_the_permission(model):
    run = secretive(model)
    client = user_with(f"view_{model._meta.model_name}", "view_run_content")
    assert "s3cret" in text(client.get(page(model, "change", run.pk)))
    assert "s3cret" in text(client.get(page(model)))


def test_a_listed_content_column_takes_the_permission_too(rf):
    class Listed(RunAdmin):
        list_display = ("run_key", "error_message")

    request = rf.get("/")
    request.user = User.objects.create_user("nobody")
    assert Listed(FreshRun, admin.site).get_list_display(request) == ["run_key"]


@each_model
def test_without_any_permission_nothing_is_seen(model):
    run = make(model)
    client = user_with()
    assert client.get(page(model)).status_code == 403
    assert client.get(page(model, "change", run.pk)).status_code == 403


# Text stays text


@pytest.mark.parametrize(
    "payload", [SCRIPT, BREAKOUT, '" onmouseover="alert(1)', "javascript:alert(1)"]
)
def test_whatever_a_run_says_is_shown_as_text(admin_client, payload):
    run = make(
        FreshRun,
        "failed",
        **dict.fromkeys(
            (
                "agent_name",
                "action_name",
                "input_prompt",
                "output",
                "error_message",
                "provider",
                "error_backtrace",
                "model",
                "trace_id",
                "runnable_type",
                "runnable_id",
            ),
            payload,
        ),
        output_metadata={payload: payload, "instructions": payload},
        input_params={payload: payload},
        log=[
            {
                "at": "2026-01-01T00:00:00Z",
                "eid": payload,
                "kind": payload,
                "label": payload,
                "status": payload,
                "detail": payload,
            },
            {"timestamp": payload, "level": payload, "message": payload},
            payload,
        ],
    )
    admin_client.post(page(FreshRun), {"action": "cancel_selected", "_selected_action": [run.pk]})
    for address in (
        page(FreshRun),
        f"{page(FreshRun)}?{urlencode({'q': payload})}",
        page(FreshRun, "change", run.pk),
        page(FreshRun, "history", run.pk),
        page(FreshRun, "delete", run.pk),
    ):
        html = text(admin_client.get(address))
        assert SCRIPT not in html
        assert "<img src=x" not in html
        assert '" onmouseover' not in html
        assert 'href="javascript' not in html.lower()


def test_nothing_of_the_admin_is_marked_safe_by_hand():
    from pathlib import Path

    import solid_runs

    root = Path(solid_runs.__file__).parent
    sources = [*(root / "admin").rglob("*.py"), *(root / "templates").rglob("*.html")]
    for source in sources:
        code = source.read_text()
        assert "mark_safe" not in code
        assert not re.search(r"\|\s*safe\b|autoescape off", code)


# Read-only


@each_model
def test_nothing_can_be_added_or_changed(admin_client, model):
    run = make(model, "running")
    assert admin_client.get(page(model, "add")).status_code == 403
    response = admin_client.post(page(model, "change", run.pk), {"status": "complete"})
    assert response.status_code == 403
    assert model.objects.get(pk=run.pk).status == "running"
    assert '<select name="status"' not in text(admin_client.get(page(model, "change", run.pk)))


# Cancelling


@each_model
def test_a_run_in_progress_is_cancelled_from_its_page(
    admin_client, model, django_capture_on_commit_callbacks
):
    run = make(model, "running")
    address = page(model, "cancel", run.pk)
    assert f'action="{address}"' in text(admin_client.get(page(model, "change", run.pk)))
    heard = []

    def listen(**kwargs):
        heard.append((kwargs["from_status"], kwargs["to_status"]))

    run_status_changed.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            response = admin_client.post(address, follow=True)
    finally:
        run_status_changed.disconnect(listen)
    assert messages_of(response) == ["1 run was cancelled."]
    assert heard == [("running", "cancelled")]
    run = model.objects.get(pk=run.pk)
    assert run.status == "cancelled"
    if "error_message" in columns_of(model):
        assert run.error_message == "Cancelled by admin"
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.get_change_message()) == (str(run.pk), "Cancelled.")


def test_an_ended_run_has_no_cancel_button_and_stays_as_it_is(admin_client):
    run = make(FreshRun, "complete")
    address = page(FreshRun, "cancel", run.pk)
    assert address not in text(admin_client.get(page(FreshRun, "change", run.pk)))
    response = admin_client.post(address, follow=True)
    assert messages_of(response) == ["1 run was skipped: it was no longer in progress."]
    assert FreshRun.objects.get().status == "complete"
    assert not LogEntry.objects.exists()


def test_cancel_takes_a_post(admin_client):
    run = make(FreshRun, "running")
    assert admin_client.get(page(FreshRun, "cancel", run.pk)).status_code == 405
    assert FreshRun.objects.get().status == "running"


def test_cancel_takes_a_csrf_token(admin_user):
    run = make(FreshRun, "running")
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    assert client.post(page(FreshRun, "cancel", run.pk)).status_code == 403
    assert FreshRun.objects.get().status == "running"


def test_cancel_of_a_run_that_is_not_there_is_not_found(admin_client):
    for key in ("12345", "abc", "9" * 40):
        assert admin_client.post(page(FreshRun, "cancel", key)).status_code == 404


def test_cancel_takes_its_own_permission(viewer):
    run = make(FreshRun, "running")
    assert viewer.post(page(FreshRun, "cancel", run.pk)).status_code == 403
    address = page(FreshRun, "cancel", run.pk)
    assert address not in text(viewer.get(page(FreshRun, "change", run.pk)))
    viewer.post(page(FreshRun), {"action": "cancel_selected", "_selected_action": [run.pk]})
    assert FreshRun.objects.get().status == "running"
    client = user_with("view_freshrun", "cancel_run")
    client.post(page(FreshRun), {"action": "cancel_selected", "_selected_action": [run.pk]})
    assert FreshRun.objects.get().status == "cancelled"


@each_model
def test_the_action_cancels_what_is_in_progress_and_reports_the_rest(admin_client, model):
    runs = [make(model, status) for status in RunStatus]
    response = admin_client.post(
        page(model),
        {"action": "cancel_selected", "_selected_action": [run.pk for run in runs]},
        follow=True,
    )
    assert messages_of(response) == [
        "2 runs were cancelled.",
        "3 runs were skipped: they were no longer in progress.",
    ]
    now = [model.objects.get(pk=run.pk).status for run in runs]
    assert now == ["cancelled", "cancelled", "complete", "failed", "cancelled"]
    assert LogEntry.objects.count() == 2


def test_a_run_that_ends_while_it_is_being_cancelled_is_skipped(admin_client, monkeypatch):
    run = make(FreshRun, "running")
    cancel = FreshRun.cancel

    def too_late(self, reason):
        FreshRun.objects.get(pk=self.pk).finish("done")
        return cancel(self, reason)

    monkeypatch.setattr(FreshRun, "cancel", too_late)
    response = admin_client.post(page(FreshRun, "cancel", run.pk), follow=True)
    assert messages_of(response) == ["1 run was skipped: it was no longer in progress."]
    assert FreshRun.objects.get().status == "complete"


def test_a_host_may_refuse_single_runs(rf, admin_user, monkeypatch):
    class Careful(RunAdmin):
        def has_cancel_permission(self, request, obj=None):
            return obj is None or obj.agent_name != "Precious"

    told = []
    monkeypatch.setattr(
        Careful, "message_user", lambda self, request, message, level: told.append(message)
    )
    request = rf.post("/")
    request.user = admin_user
    precious = make(FreshRun, "running", agent_name="Precious")
    other = make(FreshRun, "running")
    Careful(FreshRun, admin.site).cancel_selected(request, FreshRun.objects.all())
    assert FreshRun.objects.get(pk=precious.pk).status == "running"
    assert FreshRun.objects.get(pk=other.pk).status == "cancelled"
    assert told == ["1 run was cancelled.", "1 run was skipped: you may not cancel it."]


# Deleting


@each_model
def test_only_an_ended_run_can_be_deleted(admin_client, model):
    for status in RunStatus:
        run = make(model, status)
        address, ended = page(model, "delete", run.pk), status.is_terminal
        assert (address in text(admin_client.get(page(model, "change", run.pk)))) is ended
        assert admin_client.post(address, {"post": "yes"}).status_code == (302 if ended else 403)
        assert model.objects.filter(pk=run.pk).exists() is not ended


@each_model
def test_bulk_deletion_leaves_runs_in_progress_alone(admin_client, model):
    runs = {status: make(model, status) for status in RunStatus}
    chosen = {
        "action": "delete_selected",
        "_selected_action": [run.pk for run in runs.values()],
    }
    asked = admin_client.post(page(model), chosen)
    assert messages_of(asked) == ["2 runs are left alone: they have not ended. Cancel them first."]
    assert len(asked.context["queryset"]) == 3
    admin_client.post(page(model), {**chosen, "post": "yes"})
    left = {status for status, run in runs.items() if model.objects.filter(pk=run.pk).exists()}
    assert left == {"pending", "running"}


def test_bulk_deletion_of_runs_in_progress_alone_does_nothing(admin_client):
    run = make(FreshRun, "running")
    response = admin_client.post(
        page(FreshRun),
        {"action": "delete_selected", "_selected_action": [run.pk], "post": "yes"},
        follow=True,
    )
    assert messages_of(response) == ["1 run is left alone: it has not ended. Cancel it first."]
    assert FreshRun.objects.exists()


def test_an_unknown_status_is_neither_cancelled_nor_deleted(admin_client):
    execute("UPDATE agent_runs SET status = 9 WHERE id = 1")
    response = admin_client.post(page(PlatformRun, "cancel", 1), follow=True)
    assert messages_of(response) == ["1 run was skipped: it was no longer in progress."]
    assert admin_client.post(page(PlatformRun, "delete", 1), {"post": "yes"}).status_code == 403
    for action in ("cancel_selected", "delete_selected"):
        admin_client.post(page(PlatformRun), {"action": action, "_selected_action": [1], "post": 1})
    assert PlatformRun.objects.get(pk=1).status == UnknownStatus(9)


# The pure parts


def test_every_status_has_a_badge_of_its_own():
    assert set(display.BADGES) == set(RunStatus)
    assert len(set(display.BADGES.values())) == len(RunStatus)


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (None, "-"),
        (-1, "-"),
        (0, "0 ms"),
        (900, "900 ms"),
        (3260, "3.3 s"),
        (59_949, "59.9 s"),
        (59_999, "0:59"),
        (90_000, "1:30"),
        (3_723_000, "1:02:03"),
        (2 * 86_400_000 + 4 * 3_600_000 + 600_000, "2 d 04:10"),
    ],
)
def test_durations_are_short_and_plain(ms, shown):
    assert display.duration_text(ms) == shown


def test_relative_times():
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert display.relative_time(now, now) == "just now"
    assert display.relative_time(now + timedelta(seconds=2), now) == "just now"
    assert display.relative_time(now - timedelta(minutes=3), now) == "3\xa0minutes ago"
    assert display.relative_time(now + timedelta(days=1), now) == "2026-01-02 21:00:00 JST"


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 s"),
        (37, "37 ms"),
        (200, "200 ms"),
        (1500, "1.5 s"),
        (90_000, "90 s"),
        (150_000, "2:30"),
    ],
)
def test_places_on_the_axis(ms, shown):
    assert tick_text(ms) == shown


def test_json_for_people_keeps_letters_and_survives_depth():
    deep = []
    for _ in range(900):
        deep = [deep]
    assert json_text({"a": "ü"}) == '{\n  "a": "ü"\n}'
    assert json_text(deep)
    assert json_text({}) == json_text(None) == ""
    assert json_text(0) == "0"


T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def entry(seconds, status, eid, **more):
    return {
        "at": at(seconds).isoformat(),
        "eid": eid,
        "kind": "tool",
        "label": eid,
        "status": status,
        **more,
    }


def placed(*entries, **times):
    steps = timeline(Numbered(seq, each) for seq, each in enumerate(entries, 1))
    return lay_out(steps, **times)


def test_a_paired_step_is_a_bar_on_the_axis_of_the_run():
    [row] = placed(
        entry(2, "started", "a"), entry(5, "done", "a"), started_at=at(0), ended_at=at(10)
    ).rows
    assert (row.left, row.width, row.offset_ms) == (20, 30, 2000)


def test_an_event_told_when_it_was_over_began_its_duration_earlier():
    [row] = placed(entry(5, "done", "a", duration_ms=3000), started_at=at(0), ended_at=at(10)).rows
    assert (row.left, row.width) == (20, 30)


def test_an_open_step_lasts_until_now():
    [row] = placed(entry(5, "started", "a"), started_at=at(0), now=at(20)).rows
    assert (row.left, row.width) == (25, 75)


def test_an_open_step_of_long_ago_does_not_flatten_the_rest():
    rows = placed(
        entry(0, "started", "a"),
        entry(4, "done", "a"),
        entry(4, "started", "b"),
        started_at=at(0),
        now=at(10_000_000),
    ).rows
    assert [row.width for row in rows] == [80, 20]


def test_steps_within_another_are_nested():
    rows = placed(
        entry(0, "started", "agent"),
        entry(1, "started", "x"),
        entry(2, "started", "y"),
        entry(3, "done", "x"),
        entry(4, "done", "y"),
        {"timestamp": at(5).isoformat(), "level": "info", "message": "m"},
        entry(6, "done", "agent"),
        entry(7, "done", "after"),
    ).rows
    assert [(row.step.label, row.depth) for row in rows] == [
        ("agent", 0),
        ("x", 1),
        ("y", 1),
        ("m", 1),
        ("after", 0),
    ]


def test_a_moment_has_no_width_and_a_timeless_step_no_place():
    rows = placed({"timestamp": at(5).isoformat(), "message": "m"}, "text", started_at=at(0)).rows
    assert (rows[0].left, rows[0].width) == (100, None)
    assert (rows[1].left, rows[1].width, rows[1].offset_ms) == (None, None, None)


def test_a_timeline_of_nothing_is_empty():
    assert lay_out([]).rows == []


@pytest.mark.parametrize("length", [0, 1, 7, 999, 1000, 59_000, 61_000, 3_600_001, 10**9, 10**14])
def test_the_axis_has_a_few_marks_within_it(length):
    steps = [Step(1, "", "", "", None, T0, T0, is_message=True)]
    ticks = lay_out(
        steps, started_at=T0, ended_at=T0 + timedelta(milliseconds=min(length, 10**13))
    ).ticks
    assert 1 <= len(ticks) <= 7
    assert ticks[0].left == 0
    assert all(0 <= tick.left <= 100 for tick in ticks)


def test_the_distances_of_the_axis_ascend():
    assert list(TICK_STEPS) == sorted(set(TICK_STEPS))


def test_styles_are_numbers_that_a_language_does_not_touch(admin_client, settings):
    settings.LANGUAGE_CODE = "de"
    run = make(
        FreshRun,
        started_at=at(0),
        completed_at=at(7),
        log=[entry(1, "started", "a"), entry(3, "done", "a")],
    )
    html = text(admin_client.get(page(FreshRun, "change", run.pk)))
    assert "left:14.286%;width:28.571%" in html
