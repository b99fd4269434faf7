from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.utils import timezone

from solid_runs.rest_framework.filters import RunFilterSet, offered
from solid_runs.rest_framework.parameters import parse_moment
from tests.models import (
    AgentOwnedRun,
    FreshRun,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
)
from tests.rest_client import reader, url
from tests.rows import make

pytestmark = pytest.mark.django_db


def found(model: Any, query: str) -> set[int]:
    response = reader().get(f"{url(model)}?{query}")
    assert response.status_code == 200, response.content
    return {run["id"] for run in response.json()["results"]}


def refused(model: Any, query: str) -> dict[str, list[str]]:
    response = reader().get(f"{url(model)}?{query}")
    assert response.status_code == 400, response.content
    errors: dict[str, list[str]] = response.json()
    return errors


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, GeneratorRun])
@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("status=running", {2}),
        ("status=RUNNING", {2}),
        ("status=1", {2}),
        ("status=running&status=failed", {2, 4}),
        ("status=running,failed", {2, 4}),
        ("status=Running,%204&status=0", {1, 2, 5}),
        ("status=failed,failed", {4}),
        ("status=", {1, 2, 3, 4, 5}),
        ("status=,", {1, 2, 3, 4, 5}),
        ("status=&status=complete", {3}),
    ],
)
def test_status_is_filtered_by_name_or_integer(model: Any, query: str, ids: set[int]) -> None:
    assert found(model, query) == ids


@pytest.mark.parametrize(
    "value",
    [
        "bogus",
        "9",
        "-1",
        "running,bogus",
        "%00",
        "running%00",
        "true",
        "1.0",
        "9" * 5000,
        "１",
        "²",
    ],
)
def test_a_status_that_is_none_is_refused_with_those_that_are(value: str) -> None:
    errors = refused(PlatformRun, f"status={value}")
    assert list(errors) == ["status"]
    for name in ("pending", "running", "complete", "failed", "cancelled"):
        assert name in errors["status"][0]


def test_agent_action_and_trace_are_matched_exactly() -> None:
    assert found(GeneratorRun, "agent=InvoiceAgent") == {3}
    assert found(GeneratorRun, "agent=Invoice") == set()
    assert found(GeneratorRun, "trace=5f0c9d7e-3b1a-4c7b-9f59-0d6a1f2b3c4d") == {3}
    run = make(FreshRun, action_name="translate")
    assert found(FreshRun, "action=translate") == {run.pk}
    assert found(FreshRun, "action=trans%25") == set()
    assert found(FreshRun, "agent=%F0%9F%9A%86'%22--") == set()
    assert found(FreshRun, "agent=" + "a" * 3000) == set()


@pytest.mark.parametrize("model", [PlatformRun, AgentOwnedRun])
def test_an_agent_without_a_name_is_found_by_its_key(model: Any) -> None:
    assert found(model, "agent=3") == {3}
    assert found(model, "agent=4242") == found(model, "agent=0") == set()
    for value in ("abc", "9" * 20, "9" * 5000, "1.5", "１"):
        assert list(refused(model, f"agent={value}")) == ["agent"]


def test_an_empty_value_counts_as_not_given() -> None:
    query = "agent=&action=&trace=&created_after=&created_before=&status=&limit=&ordering=&cursor="
    assert found(GeneratorRun, query) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", ["agent", "action", "trace", "created_after", "created_before"])
def test_a_nul_character_is_refused_by_name(name: str) -> None:
    for model in (GeneratorRun, FreshRun):
        assert list(refused(model, f"{name}=a%00")) == [name]
        assert list(refused(model, f"{name}=%00")) == [name]


def test_a_filter_whose_column_is_not_there_is_not_offered() -> None:
    for name in ("agent", "action", "trace", "created_after", "created_before"):
        errors = refused(MinimalRun, f"{name}=2026-01-01")
        assert list(errors) == [name]
        assert "status" in errors[name][0]
        assert "created_after" not in errors[name][0]
    assert list(offered(RunFilterSet, MinimalRun).base_filters) == ["status"]
    assert list(RunFilterSet.base_filters) == [
        "status",
        "agent",
        "action",
        "trace",
        "created_after",
        "created_before",
    ]


# Rails created row 3 at 09:30:19 UTC, which is 18:30:19 in Tokyo; row 4 ten seconds later.
AFTER_ROW_3 = [
    "2026-01-15T09:30:20+00:00",
    "2026-01-15T09:30:20%2B00:00",
    "2026-01-15T09:30:20+0000",
    "2026-01-15T09:30:20Z",
    "2026-01-15t09:30:20z",
    "2026-01-15T09:30:20.000000+00:00",
    "2026-01-15 09:30:20+00:00",
    "2026-01-15T05:30:20-04:00",
    "2026-01-15T18:30:20%2B09:00",
    "2026-01-15T18:30:20",
    "2026-01-15 18:30:20",
    "2026-01-15T15:00:20+05:30",
]


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
@pytest.mark.parametrize("moment", AFTER_ROW_3)
def test_a_moment_is_taken_in_every_usual_form(model: Any, moment: str) -> None:
    assert found(model, f"created_after={moment}") == {4, 5}
    assert found(model, f"created_before={moment}") == {1, 2, 3}


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_after_takes_the_moment_in_and_before_leaves_it_out(model: Any) -> None:
    at = "2026-01-15T09:30:19Z"
    assert found(model, f"created_after={at}") == {3, 4, 5}
    assert found(model, f"created_before={at}") == {1, 2}
    assert found(model, f"created_after={at}&created_before=2026-01-15T09:30:29Z") == {3}
    assert found(model, f"created_after={at}&created_before={at}") == set()


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun, FreshRun])
def test_a_date_is_its_local_midnight(model: Any) -> None:
    before, at, after = (make(model) for _ in range(3))
    midnight = datetime(2031, 3, 2, tzinfo=ZoneInfo("Asia/Tokyo"))
    for run, moment in (
        (before, midnight - timedelta(microseconds=1)),
        (at, midnight),
        (after, midnight + timedelta(microseconds=1)),
    ):
        model.objects.filter(pk=run.pk).update(created_at=moment)
    assert found(model, "created_after=2031-03-02") == {at.pk, after.pk}
    assert found(model, "created_after=2031-03-01&created_before=2031-03-02") == {before.pk}
    assert found(model, "created_after=2031-03-01T15:00:00Z") == {at.pk, after.pk}
    assert found(model, "created_after=2031-03-01T15:00:00.000001Z") == {after.pk}


@pytest.mark.parametrize("name", ["created_after", "created_before"])
@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "2026-01-15T25:00",
        "2026-01-15T09:30:20+99:00",
        "1768469419",
        "nan",
        "1e400",
        "2026-01-15T09:30:20 UTC",
        "99999-01-01",
        "9" * 5000,
        "%F0%9F%9A%86",
        "2026-01-15'--",
    ],
)
def test_what_is_no_moment_is_refused_by_name(name: str, value: str) -> None:
    errors = refused(PlatformRun, f"{name}={value}")
    assert list(errors) == [name]
    assert "ISO 8601" in errors[name][0]


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun, FreshRun])
def test_the_ends_of_time_are_taken(model: Any) -> None:
    run = make(model)
    for early in ("0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00%2B14:00"):
        assert run.pk in found(model, f"created_after={early}")
        assert found(model, f"created_before={early}") == set()
    for late in ("9999-12-31", "9999-12-31T23:59:59.999999-12:00"):
        assert run.pk in found(model, f"created_before={late}")
        assert found(model, f"created_after={late}") == set()


def test_a_moment_follows_the_time_zone_of_the_request() -> None:
    with timezone.override("America/New_York"):
        assert parse_moment("2026-01-15T04:30") == datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
        assert parse_moment("2026-07-15") == datetime(2026, 7, 15, 4, tzinfo=UTC)


def test_midnight_that_the_clocks_left_out_is_still_a_moment() -> None:
    with timezone.override("America/Sao_Paulo"):
        assert parse_moment("2018-11-04") == datetime(2018, 11, 4, 3, tzinfo=UTC)


def test_without_time_zones_a_moment_is_local_and_naive() -> None:
    with override_settings(USE_TZ=False):
        assert parse_moment("2026-01-15T09:30Z") == datetime(2026, 1, 15, 18, 30)
        assert parse_moment("2026-01-15") == datetime(2026, 1, 15)


def test_filters_are_combined() -> None:
    after = quote("2026-01-15T09:30:19+00:00")
    assert found(GeneratorRun, f"status=complete,failed&created_after={after}") == {3, 4}
    assert found(GeneratorRun, f"status=failed&created_after={after}&agent=InvoiceAgent") == set()
