"""NaN and Infinity, values that JSON does not know, cycles and depth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.faults.tables import on_every_log, on_every_table

pytestmark = pytest.mark.django_db


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = {"in": [value]}
    return value


@on_every_table
def test_f04_nan_and_infinity_become_null_and_the_run_is_complete(model: Any) -> None:
    run = model.objects.create()
    metadata = {"cost": float("nan"), "p": [float("inf"), float("-inf"), 1.5]}
    assert run.finish(output="x", metadata=metadata)
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("complete", "x")
    assert stored.output_metadata == {"cost": None, "p": [None, None, 1.5]}


@on_every_table
def test_f04_nan_in_a_detail_or_in_a_saved_value_is_null_too(model: Any) -> None:
    run = model.objects.create(output_metadata={"n": float("nan")})
    run.append_event("x", "y", detail={"n": float("inf")}, duration_ms=float("nan"))
    stored = model.objects.get(pk=run.pk)
    assert stored.output_metadata == {"n": None}
    assert stored.events_log[0]["detail"] == '{"n":null}'
    assert stored.events_log[0]["duration_ms"] is None


VALUES = {
    "at": datetime(2026, 1, 15, 9, 30, tzinfo=UTC),
    "p": Decimal("1.10"),
    "u": UUID(int=7),
    "d": timedelta(seconds=3),
    "s": {2, 1},
    "b": b"bytes",
    "o": ValueError("inner"),
}
AS_JSON = {
    "at": "2026-01-15T09:30:00+00:00",
    "p": "1.10",
    "u": "00000000-0000-0000-0000-000000000007",
    "d": "P0DT00H00M03S",
    "s": [1, 2],
    "b": "bytes",
    "o": "ValueError: inner",
}


@on_every_table
def test_f05_values_that_json_does_not_know_are_written_as_text(model: Any) -> None:
    run = model.objects.create(output_metadata=VALUES)
    assert model.objects.get(pk=run.pk).output_metadata == AS_JSON
    assert run.finish(metadata={"more": VALUES, 5: object})
    stored = model.objects.get(pk=run.pk).output_metadata
    assert stored == {**AS_JSON, "more": AS_JSON, "5": "<class 'object'>"}


@on_every_log
def test_f05_a_detail_takes_them_too(model: Any) -> None:
    run = model.objects.create()
    run.append_event("x", "y", detail={"at": VALUES["at"], "p": VALUES["p"], "d": VALUES["d"]})
    assert model.objects.get(pk=run.pk).events_log[0]["detail"] == (
        '{"at":"2026-01-15T09:30:00+00:00","p":"1.10","d":"P0DT00H00M03S"}'
    )


@on_every_log
def test_f06_a_cycle_is_marked_and_the_rest_of_the_event_kept(model: Any) -> None:
    run = model.objects.create()
    ring: dict[str, Any] = {"name": "ring"}
    ring["self"] = ring
    run.append_event("x", "y", detail=ring)
    (entry,) = model.objects.get(pk=run.pk).events_log
    assert entry["detail"] == '{"name":"ring","self":"<cycle>"}'
    assert ring["self"] is ring


@on_every_table
def test_f06_a_cycle_in_the_metadata_ends_the_run(model: Any) -> None:
    run = model.objects.create()
    ring: list[Any] = [1]
    ring.append(ring)
    assert run.finish(metadata={"ring": ring, "twice": [ring[:1], ring[:1]]})
    stored = model.objects.get(pk=run.pk)
    assert stored.output_metadata == {"ring": [1, "<cycle>"], "twice": [[1], [1]]}
    assert ring[1] is ring


@pytest.mark.usefixtures("mode")
@on_every_table
def test_f06_a_hundred_levels_lose_nothing(model: Any) -> None:
    run = model.objects.create()
    run.append_event("first", "f")
    run.append_event("deep", "d", detail=nested(50))
    run.append_event("last", "l")
    assert run.finish(metadata={"deep": nested(50), "flat": 1})
    stored = model.objects.get(pk=run.pk)
    assert [entry["kind"] for entry in stored.events_log] == ["first", "deep", "last"]
    assert "core" in stored.events_log[1]["detail"]
    assert stored.output_metadata["flat"] == 1
    assert "core" in str(stored.output_metadata["deep"])
    stored.append_event("after", "a")
    assert len(model.objects.get(pk=run.pk).events_log) == 4


@on_every_table
def test_f06_a_hundred_thousand_levels_end_the_run(model: Any) -> None:
    run = model.objects.create()
    bottomless: Any = []
    for _ in range(100_000):
        bottomless = [bottomless]
    run.append_event("deep", "d", detail=bottomless)
    assert run.finish(metadata={"deep": bottomless})
    assert model.objects.get(pk=run.pk).status == "complete"
    while bottomless:  # freed a level at a time: the interpreter's own way down is not endless
        bottomless = bottomless[0]
