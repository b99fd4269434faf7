"""The fields of tables of our own: exact text, JSON as text, and moments that are always aware."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from django.db.models import F

from solid_runs.ag_ui.models import ReservedRun

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 1, 15, 9, 30, 11, 123456, tzinfo=UTC)


def made(run_id: str = "r", **values: Any) -> ReservedRun:
    times = dict.fromkeys(("reserved_at", "created_at", "updated_at", "alive_at"), MOMENT)
    given = {"scope": "s", "thread_id": "t", "digest": "d", "status": "started"}
    return ReservedRun.objects.create(run_id=run_id, **{**given, **times, **values})


@pytest.mark.parametrize("other", ["A", "a ", " a", "á", "ａ", "a\u0301", "😀"])
def test_exact_text_tells_apart_what_collations_merge(other: str) -> None:
    made("a")
    made(other)
    assert [run.run_id for run in ReservedRun.objects.filter(run_id=other)] == [other]
    assert ReservedRun.objects.filter(run_id="a").count() == 1


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [1.5, None, True]},
        {"text": "😀 \u0000 ' \\ % \u2028"},
        10**30,
        0,
        "",
        "null",
        [],
        nested(200),
    ],
)
def test_json_as_text_comes_back_as_it_was(value: Any) -> None:
    made(snapshot=value)
    stored = ReservedRun.objects.get().snapshot
    assert json.dumps(stored) == json.dumps(value)


def test_no_json_is_null() -> None:
    made(snapshot=None)
    assert ReservedRun.objects.filter(snapshot__isnull=True).exists()


def test_json_as_text_is_stored_in_ascii() -> None:
    made(snapshot={"text": "é😀"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT snapshot FROM solid_runs_ag_ui_reservedrun")
        assert cursor.fetchone()[0].isascii()


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_a_fixture_brings_back_the_same_row(format: str) -> None:
    # Django writes moments of a fixture in milliseconds.
    run = made(snapshot={"a": [1, {"b": None}]}, failure={"message": "é", "code": "x"})
    rounded = MOMENT.replace(microsecond=123_000)
    times = dict.fromkeys(("reserved_at", "created_at", "updated_at", "alive_at"), rounded)
    before = ReservedRun.objects.values().get() | times
    dumped = serializers.serialize(format, [run])
    run.delete()
    for one in serializers.deserialize(format, dumped):
        one.save()
    assert ReservedRun.objects.values().get() == before


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Chicago"])
def test_a_moment_is_aware_whatever_use_tz_says(settings: Any, use_tz: bool, zone: str) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
    made()
    run = ReservedRun.objects.get(created_at=MOMENT)
    assert (run.created_at, run.created_at.utcoffset()) == (MOMENT, MOMENT.utcoffset())
    run.save()
    assert ReservedRun.objects.filter(created_at=MOMENT, created_at__lte=F("alive_at")).exists()
