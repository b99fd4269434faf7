from __future__ import annotations

import json
import random
import uuid
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from solid_runs.rest_framework.pagination import (
    Position,
    RunPagination,
    beyond,
    decode,
    encode,
    keyset,
)
from solid_runs.rest_framework.parameters import parse_key
from tests.models import (
    ChildRun,
    FreshRun,
    GeneratorRun,
    MinimalRun,
    NamedDocument,
    PlatformRun,
    UUIDDocument,
)
from tests.rest_client import every_page, reader, url
from tests.rows import make

pytestmark = pytest.mark.django_db

MOMENT = datetime(2031, 3, 2, 1, 2, 3, 123456, UTC)
MODELS = [PlatformRun, GeneratorRun, FreshRun, ChildRun, MinimalRun]


def at(model: Any, *moments: datetime) -> list[int]:
    """New runs that were created then, by key."""
    runs = [make(model) for _ in moments]
    if model is not MinimalRun:
        for run, moment in zip(runs, moments, strict=True):
            model.objects.filter(pk=run.pk).update(created_at=moment)
    return [run.pk for run in runs]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("ordering", ["-created", "created"])
def test_every_old_run_is_seen_once_while_new_ones_arrive(model: Any, ordering: str) -> None:
    old = set(at(model, *[MOMENT] * 30))
    api = reader()
    seen: list[int] = []
    address: str | None = f"{url(model)}?limit=10&ordering={ordering}"
    while address:
        page = api.get(address).json()
        seen += [run["id"] for run in page["results"]]
        address = page["next"]
        if len(seen) < 40:
            at(model, *[MOMENT] * 2, MOMENT - timedelta(days=1), *[MOMENT + timedelta(days=1)] * 2)
    assert len(seen) == len(set(seen))
    assert old <= set(seen)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("ordering", ["-created", "created"])
def test_pages_go_back_the_way_they_came(model: Any, ordering: str) -> None:
    moments = [MOMENT + timedelta(microseconds=n // 3) for n in range(23)]
    random.shuffle(moments)
    at(model, *moments)
    api = reader()
    start = f"{url(model)}?limit=4&ordering={ordering}"
    forward = every_page(api, start)
    address = start
    while address:
        page = api.get(address).json()
        last, address = page, page["next"]
    backward = every_page(api, last["previous"], link="previous") + last["results"]
    assert [run["id"] for run in forward] == [run["id"] for run in backward]
    assert len({run["id"] for run in forward}) == model.objects.count()
    first = api.get(start).json()
    second = api.get(first["next"]).json()
    again = api.get(second["previous"]).json()
    assert (first["previous"], last["next"], again["previous"]) == (None, None, None)
    assert again["results"] == first["results"]
    assert api.get(again["next"]).json()["results"] == second["results"]


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun, ChildRun])
def test_runs_a_microsecond_apart_keep_their_order(model: Any) -> None:
    keys = at(model, *[MOMENT + timedelta(microseconds=n) for n in (3, 1, 2, 0)])
    page = every_page(reader(), f"{url(model)}?limit=1&created_after=2031-01-01")
    assert [run["id"] for run in page] == [keys[0], keys[2], keys[1], keys[3]]


def test_a_table_without_an_index_on_its_creation_is_ordered_by_key() -> None:
    keys = at(PlatformRun, MOMENT + timedelta(days=1), MOMENT)
    assert keyset(PlatformRun) == keyset(MinimalRun) == ("pk",)
    assert keyset(FreshRun) == keyset(GeneratorRun) == keyset(ChildRun) == ("created_at", "pk")
    newest = reader().get(url(PlatformRun)).json()["results"]
    assert [run["id"] for run in newest[:2]] == keys[::-1]


def test_filters_hold_on_every_page() -> None:
    at(FreshRun, *[MOMENT] * 5)
    FreshRun.objects.filter(pk__in=at(FreshRun, *[MOMENT] * 5)).update(status="failed")
    page = reader().get(f"{url(FreshRun)}?status=failed&status=complete&limit=2").json()
    runs = page["results"] + every_page(reader(), page["next"])
    assert [run["status"] for run in runs] == ["failed"] * 5


def test_a_run_that_leaves_the_list_between_the_two_queries_is_left_out() -> None:
    keys = at(FreshRun, *[MOMENT] * 3)
    reads = 0

    def between(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal reads
        if sql.startswith("SELECT") and FreshRun._meta.db_table in sql:
            reads += 1
            if reads == 2:
                FreshRun.objects.filter(pk=keys[2]).update(status="failed")
                FreshRun.objects.filter(pk=keys[1])._raw_delete("default")
        return execute(sql, params, many, context)

    api = reader()
    with connection.execute_wrapper(between):
        page = api.get(f"{url(FreshRun)}?status=pending&limit=2").json()
    assert page["results"] == []
    assert [run["id"] for run in api.get(page["next"]).json()["results"]] == [keys[0]]


def test_a_page_past_the_end_leads_back_to_the_beginning() -> None:
    keys = at(FreshRun, *[MOMENT] * 3)
    api = reader()
    page = api.get(f"{url(FreshRun)}?limit=2&status=pending").json()
    FreshRun.objects.filter(pk=keys[0]).delete()
    past = api.get(page["next"]).json()
    assert (past["results"], past["next"]) == ([], None)
    assert api.get(past["previous"]).json()["results"] == page["results"]


def test_pages_hold_50_runs_and_never_more_than_200() -> None:
    FreshRun.objects.bulk_create([FreshRun() for _ in range(205)])
    api = reader()
    assert len(api.get(url(FreshRun)).json()["results"]) == 50
    assert len(api.get(url(FreshRun), {"limit": "200"}).json()["results"]) == 200
    assert (RunPagination.default_limit, RunPagination.max_limit) == (50, 200)


@pytest.mark.parametrize(
    "limit", ["0", "-1", "201", "1000000", "9" * 20, "9" * 5000, "1.5", "ten", "%00", "１", "1e2"]
)
def test_a_limit_out_of_bounds_is_refused(limit: str) -> None:
    response = reader().get(f"{url(FreshRun)}?limit={limit}")
    assert response.status_code == 400
    assert response.json() == {"limit": ["This must be a whole number from 1 to 200."]}


@pytest.mark.parametrize("name", ["offset", "page", "page_size"])
def test_there_are_no_pages_by_number(name: str) -> None:
    response = reader().get(url(FreshRun), {name: str(10**20)})
    assert (response.status_code, list(response.json())) == (400, [name])


@pytest.mark.parametrize(
    "ordering",
    [
        "nosuch",
        "events",
        "-output",
        "owner__password",
        ",",
        "-created_at,created_at",
        "created,",
        "-created,created",
        "--created",
        "pk",
        "%00",
        "Created",
    ],
)
def test_an_ordering_that_is_not_offered_is_refused(ordering: str) -> None:
    response = reader().get(f"{url(FreshRun)}?ordering={ordering}")
    assert response.status_code == 400
    assert response.json() == {"ordering": ["Use -created (newest first) or created."]}


def written(*data: Any) -> str:
    return urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%00",
        "é",
        "🚆",
        "=",
        "====",
        "bnVsbA",
        "9" * 5000,
        "W1tbW1tb" * 5000,
        written(),
        written(0),
        written(0, "5"),
        written(2, MOMENT.isoformat(), "5"),
        written("0", MOMENT.isoformat(), "5"),
        written(0, MOMENT.isoformat(), 5),
        written(0, MOMENT.isoformat(), "abc"),
        written(0, MOMENT.isoformat(), "5\x00"),
        written(0, MOMENT.isoformat(), "9" * 20),
        written(0, MOMENT.isoformat(), "9" * 5000),
        written(0, "yesterday", "5"),
        written(0, None, "5"),
        written(0, MOMENT.isoformat(), "5", "6"),
        written(0, {"a": 1}, "5"),
    ],
)
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    response = reader().get(url(FreshRun), {"cursor": cursor})
    assert response.status_code == 400
    assert response.json() == {
        "cursor": ["This is no cursor of this list; start again without it."]
    }


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_forged_cursor_at_the_end_of_time_is_only_a_place(moment: str) -> None:
    response = reader().get(url(FreshRun), {"cursor": written(0, moment, "5")})
    assert response.status_code == 200


def test_a_cursor_of_a_list_with_another_order_is_refused() -> None:
    at(FreshRun, *[MOMENT] * 2)
    api = reader()
    cursor = api.get(f"{url(FreshRun)}?limit=1").json()["next"].split("cursor=")[1].split("&")[0]
    assert api.get(f"{url(PlatformRun)}?cursor={cursor}").status_code == 400
    assert api.get(f"{url(FreshRun)}?cursor={cursor}").status_code == 200


@pytest.mark.parametrize("is_before", [True, False])
def test_a_cursor_is_read_as_it_was_written(is_before: bool) -> None:
    position = Position(is_before, (MOMENT, 2**63 - 1))
    assert decode(encode(position), keyset(FreshRun), FreshRun, "default") == position


def test_the_condition_of_a_page_can_walk_the_index(vendor: str) -> None:
    condition = beyond(("created_at", "pk"), (MOMENT, 7), descending=True)
    runs = FreshRun.objects.filter(condition).order_by("-created_at", "-pk").only("pk")[:50]
    sql = str(runs.query)
    assert " OR " not in sql
    assert "<= " in sql
    assert "NOT (" in sql
    if vendor == "sqlite":
        assert "USING COVERING INDEX" in runs.explain() or "USING INDEX" in runs.explain()


def test_a_page_is_two_queries_wherever_it_is() -> None:
    FreshRun.objects.bulk_create([FreshRun() for _ in range(30)])
    api = reader()
    address: str | None = f"{url(FreshRun)}?limit=10"
    counts = []
    while address:
        with CaptureQueriesContext(connection) as captured:
            page = api.get(address).json()
        address = page["next"]
        counts.append(sum("FROM" in q["sql"] and "freshrun" in q["sql"] for q in captured))
        assert not any("OFFSET" in query["sql"] for query in captured)
    assert set(counts) == {2}


@pytest.mark.parametrize(
    ("model", "text", "value"),
    [
        (FreshRun, "5", 5),
        (FreshRun, "-5", -5),
        (ChildRun, "5", 5),
        (UUIDDocument, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", None),
        (NamedDocument, "a b/é", "a b/é"),
    ],
)
def test_a_key_is_read_by_the_kind_of_its_column(model: Any, text: str, value: Any) -> None:
    value = uuid.UUID(text) if value is None else value
    assert parse_key(model._meta.pk, text, "default") == value


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (FreshRun, str(2**63)),
        (FreshRun, str(-(2**63) - 1)),
        (FreshRun, ""),
        (ChildRun, str(2**63)),
        (ChildRun, "abc"),
        (UUIDDocument, "5"),
        (UUIDDocument, ""),
        (NamedDocument, "a\x00"),
    ],
)
def test_a_key_that_no_row_can_have_is_a_value_error(model: Any, text: str) -> None:
    with pytest.raises(ValueError):
        parse_key(model._meta.pk, text, "default")
