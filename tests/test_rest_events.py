from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from solid_runs.rest_framework.entries import shown_entry
from tests.models import FreshRun, GeneratorRun, PlatformJsonRun, PlatformRun, TableRun
from tests.rest_client import reader, url, viewer
from tests.rows import every_shape, make, store_text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, GeneratorRun])
def test_the_events_that_rails_wrote_come_as_they_are_stored(model: Any) -> None:
    page = reader().get(url(model, 2, "events/")).json()
    assert page == {
        "status": "running",
        "finished": False,
        "events": [
            {
                "seq": 1,
                "entry": {
                    "at": "2026-01-15T09:30:11.000Z",
                    "eid": "1",
                    "kind": "llm",
                    "label": "gpt-4o",
                    "status": "started",
                },
            },
            {
                "seq": 2,
                "entry": {
                    "timestamp": "2026-01-15T09:30:12Z",
                    "level": "info",
                    "message": "asking the model",
                },
            },
        ],
        "next_after": 2,
        "has_more": False,
    }


@every_shape
def test_a_caller_that_follows_next_after_sees_every_event_once(model: Any) -> None:
    run = make(model, "running")
    for number in range(7):
        run.append_event("tool", f"step {number}", detail="")
    api = reader()
    after, labels = 0, []
    for expected in ([1, 2, 3], [4, 5, 6], [7], []):
        page = api.get(url(model, run.pk, "events/"), {"after": after, "limit": 3}).json()
        assert [event["seq"] for event in page["events"]] == expected
        assert page["has_more"] is (len(expected) == 3 and expected[-1] != 7)
        labels += [event["entry"]["label"] for event in page["events"]]
        after = page["next_after"]
    assert labels == [f"step {number}" for number in range(7)]
    assert after == 7
    run.append_event("tool", "step 7")
    run.finish()
    page = api.get(url(model, run.pk, "events/"), {"after": after}).json()
    assert [event["entry"]["label"] for event in page["events"]] == ["step 7"]
    assert (page["status"], page["finished"]) == ("complete", True)


def test_events_come_by_the_hundred_and_at_most_by_the_thousand() -> None:
    run = make(FreshRun, events=[{"kind": "tool", "label": str(n)} for n in range(1500)])
    api = reader()
    page = api.get(url(FreshRun, run.pk, "events/")).json()
    assert (len(page["events"]), page["has_more"], page["next_after"]) == (100, True, 100)
    page = api.get(url(FreshRun, run.pk, "events/"), {"limit": 1000}).json()
    assert (len(page["events"]), page["has_more"]) == (1000, True)


@pytest.mark.parametrize("after", ["-1", "9" * 20, "9" * 5000, "1.5", "x", "%00", "１", "nan"])
def test_a_bad_place_in_the_log_is_refused(after: str) -> None:
    run = make(FreshRun)
    response = reader().get(url(FreshRun, run.pk, f"events/?after={after}"))
    assert (response.status_code, list(response.json())) == (400, ["after"])


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "9" * 20, "x", "%00"])
def test_a_bad_limit_is_refused(limit: str) -> None:
    run = make(FreshRun)
    response = reader().get(url(FreshRun, run.pk, f"events/?limit={limit}"))
    assert response.status_code == 400
    assert response.json() == {"limit": ["This must be a whole number from 1 to 1000."]}


def test_a_place_past_the_end_has_no_events_yet() -> None:
    run = make(FreshRun)
    run.append_event("tool", "search")
    for after in (1, 2, 2**63 - 1):
        page = reader().get(url(FreshRun, run.pk, "events/"), {"after": after}).json()
        assert (page["events"], page["next_after"], page["has_more"]) == ([], after, False)


@pytest.mark.parametrize("stored", [None, "{}", '"text"', "7", '"[]"'])
def test_a_log_that_is_no_list_has_no_events(stored: str | None) -> None:
    run = make(PlatformJsonRun)
    store_text(run, "logs", stored)
    assert reader().get(url(PlatformJsonRun, run.pk, "events/")).json()["events"] == []


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_the_log_is_read_once_and_nothing_else_that_is_big(model: Any) -> None:
    run = make(model)
    run.append_event("tool", "search")
    api = reader()
    with CaptureQueriesContext(connection) as captured:
        api.get(url(model, run.pk, "events/"))
    ours = [query["sql"] for query in captured if model._meta.db_table in query["sql"]]
    reads = [sql for sql in ours if "FROM" in sql]
    assert len(reads) == 2
    entries = connection.ops.quote_name("entry" if model is TableRun else "events")
    assert sum(entries in sql for sql in reads) == 1
    unread = ["output_metadata", "input_prompt", *(["events"] if model is TableRun else [])]
    names = [connection.ops.quote_name(name) for name in unread]
    assert not any(name in sql for sql in reads for name in names)


@pytest.mark.parametrize(
    ("entry", "seen", "read"),
    [
        ("text", {}, {"message": "text"}),
        (None, {}, {"message": None}),
        ([1, "a"], {}, {"message": '[1,"a"]'}),
        (
            {"kind": 7, "label": ["a"], "detail": {"x": 1}, "secret": "s"},
            {"kind": "7", "label": '["a"]'},
            {"kind": "7", "label": '["a"]', "detail": '{"x":1}', "secret": "s"},
        ),
        ({"eid": None, "detail": ""}, {"eid": None}, {"eid": None, "detail": ""}),
        ({"duration_ms": 0}, {"duration_ms": 0}, {"duration_ms": 0}),
        ({"duration_ms": 1.5}, {"duration_ms": 1.5}, {"duration_ms": 1.5}),
        ({"duration_ms": True}, {"duration_ms": None}, {"duration_ms": None}),
        ({"duration_ms": "12"}, {"duration_ms": None}, {"duration_ms": None}),
        ({"duration_ms": float("nan")}, {"duration_ms": None}, {"duration_ms": None}),
    ],
)
def test_an_entry_that_is_not_as_it_should_be_is_shown(
    entry: Any, seen: dict[str, Any], read: dict[str, Any]
) -> None:
    assert shown_entry(entry, content=False) == seen
    assert shown_entry(entry, content=True) == read


def test_what_others_put_into_an_entry_is_content() -> None:
    run = make(FreshRun, events=[{"kind": "tool", "label": "x", "args": "sk-x"}, "sk-x"])
    seen = viewer().get(url(FreshRun, run.pk, "events/"))
    assert "sk-x" not in seen.text
    assert [event["seq"] for event in seen.json()["events"]] == [1, 2]
    read = reader().get(url(FreshRun, run.pk, "events/")).json()["events"]
    assert [event["entry"] for event in read] == [
        {"kind": "tool", "label": "x", "args": "sk-x"},
        {"message": "sk-x"},
    ]


def test_a_run_that_is_deleted_meanwhile_is_not_found() -> None:
    run = make(FreshRun)

    reads = 0

    def between(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal reads
        if sql.startswith("SELECT") and FreshRun._meta.db_table in sql:
            reads += 1
            if reads == 2:
                FreshRun.objects.filter(pk=run.pk)._raw_delete("default")
        return execute(sql, params, many, context)

    api = reader()
    with connection.execute_wrapper(between):
        response = api.get(url(FreshRun, run.pk, "events/"))
    assert (response.status_code, response.json()) == (404, {"detail": "Not found."})
