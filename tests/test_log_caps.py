"""What a run's log takes: how many entries, and how many bytes each."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from solid_runs.event_logs.log import event_log_of
from solid_runs.event_logs.moving import move_events
from solid_runs.models import AgentRunMixin
from solid_runs.storable import compact_json
from tests.models import TableRun, TableRunEvent
from tests.rows import (
    every_shape,
    full_shapes,
    get,
    has,
    keeps_a_table,
    log_field,
    make,
    row,
    store_log,
)
from tests.run_models import TextLogRun, create_text_table

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]


@pytest.fixture(scope="module", autouse=True)
def text_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_text_table(connection)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What the application's log was told since it was last asked."""

    def said() -> list[str]:
        messages = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return messages

    with caplog.at_level(logging.WARNING, "solid_runs"):
        yield said


def capped(entries: int | None) -> AbstractContextManager[Any]:
    return override_settings(
        SOLID_RUNS={"COLUMN_LOG_ENTRIES": entries, "TABLE_LOG_ENTRIES": entries}
    )


def labels(run: Any) -> list[str]:
    return [entry["label"] for entry in get(run).events_log]


def append(run: Any, *wanted: str) -> list[Any]:
    return [run.append_event("tool", label) for label in wanted]


def assert_marker(entry: Any, count: str) -> None:
    assert entry == {
        "at": entry["at"],
        "kind": "truncated",
        "label": "log",
        "status": "done",
        "detail": f"The log is full at {count} entries; what came later was left out.",
    }


# Entries


@every_shape
def test_a_full_log_ends_in_one_marker_and_says_so_once(
    model: Model, told: Callable[[], list[str]]
) -> None:
    run = make(model, "running")
    with capped(3):
        kept = [*append(run, "1", "2"), run.add_log("3")]
        assert told() == []
        late = run.append_event("tool", "late")
        assert told() == [f"The log of {run} is full; what comes from now on is left out."]
        run.add_log("later")
        get(run).append_event("tool", "of another copy")
        assert told() == [], "it is told once"

    *stored, marker = get(run).events_log
    assert stored == kept
    assert_marker(marker, "3")
    assert late["label"] == "late", "the caller is given its entry, as ever"
    assert [seq for seq, _ in run.events_after()] == [1, 2, 3, 4]
    assert run.events_after(4) == []


@every_shape
@pytest.mark.parametrize("cap", [1, 2])
def test_the_smallest_caps_hold(model: Model, cap: int) -> None:
    run = make(model)
    with capped(cap):
        append(run, "1", "2", "3", "4")

    assert labels(run) == [*"12"[:cap], "log"]


MOVES: dict[str, Callable[[Any], bool]] = {
    "start": lambda run: run.start(),
    "finish": lambda run: run.finish("done", metadata={"a": 1}),
    "fail": lambda run: run.fail(RuntimeError("broken")),
    "cancel": lambda run: run.cancel(),
    "restart": lambda run: run.restart(),
}


@every_shape
@pytest.mark.parametrize("move", MOVES)
def test_the_status_changes_at_the_cap(model: Model, move: str) -> None:
    run = make(model, "failed" if move == "restart" else "pending")
    with capped(2):
        append(run, "1", "2", "3")
        assert MOVES[move](run) is True
        run.append_event("tool", "after the change")

    assert get(run).status not in ("pending", "failed") or move == "fail"
    assert labels(run) == ["1", "2", "log"]


@full_shapes
def test_a_line_that_is_left_out_moves_the_time_all_the_same(model: Model) -> None:
    run = make(model)
    with capped(1):
        append(run, "1", "2")
        before = row(run)["updated_at"]
        run.add_log("left out")

    assert row(run)["updated_at"] > before
    assert labels(run) == ["1", "log"]


@every_shape
def test_a_raised_cap_lets_entries_in_again(model: Model) -> None:
    run = make(model)
    with capped(2):
        append(run, "1", "2", "3", "4")
    with capped(5):
        append(run, "5", "6", "7", "8")

    assert labels(run) == ["1", "2", "log", "5", "6", "log"]
    first, second = (entry for entry in get(run).events_log if entry["kind"] == "truncated")
    assert_marker(first, "2")
    assert_marker(second, "5")


@every_shape
def test_a_cap_that_was_lowered_leaves_what_is_there_and_one_marker(model: Model) -> None:
    run = make(model)
    append(run, "1", "2", "3", "4", "5")
    with capped(3):
        append(run, "6", "7", "8")

    assert labels(run) == ["1", "2", "3", "4", "5", "log"]
    assert_marker(get(run).events_log[-1], "5")


@every_shape
def test_many_at_once_fill_a_log_to_its_cap(model: Model, told: Callable[[], list[str]]) -> None:
    run = make(model)
    entries = [{"kind": "tool", "label": str(n), "status": "done"} for n in range(8)]
    log = event_log_of(model)
    with capped(5):
        assert log.append(run.pk, entries[:3], "default").left_out == 0
        assert log.append(run.pk, entries[3:], "default").left_out == 3
        assert log.append(run.pk, entries[:4], "default").left_out == 4

    assert labels(run) == ["0", "1", "2", "3", "4", "log"]


def seed(run: Any, count: int) -> None:
    """A log of so many entries, written by nobody in particular."""
    if keeps_a_table(type(run)):
        type(run).objects.filter(pk=run.pk).update(events_count=count)
        return
    entry = {"at": "2026-01-15T09:30:11.000Z", "kind": "tool", "label": "old", "status": "done"}
    store_log(run, json.dumps([entry] * count))


@every_shape
def test_a_cap_of_none_is_no_cap(model: Model, told: Callable[[], list[str]]) -> None:
    run = make(model)
    seed(run, 100_000 if keeps_a_table(model) else 10_000)
    before = len(get(run).events_log)
    with capped(None):
        first, second = append(run, "1", "2")

    assert get(run).events_log[before:] == [first, second]
    assert told() == []


@every_shape
def test_by_default_a_column_takes_ten_thousand_and_a_table_ten_times_as_many(model: Model) -> None:
    run = make(model)
    cap = 100_000 if keeps_a_table(model) else 10_000
    seed(run, cap - 1)
    append(run, "fits", "left out", "left out too")

    assert [n.seq for n in run.events_after(cap - 1)] == [cap, cap + 1]
    fits, marker = get(run).events_log[-2:]
    assert fits["label"] == "fits"
    assert_marker(marker, f"{cap:,}")


def test_the_cap_of_a_run_is_that_of_the_place_where_its_entries_are() -> None:
    caps = {"COLUMN_LOG_ENTRIES": 1, "TABLE_LOG_ENTRIES": 2}
    in_table, in_column = make(TableRun), make(TableRun)
    store_log(in_column, "[]")
    with override_settings(SOLID_RUNS=caps):
        for run in (in_table, in_column):
            append(run, "1", "2", "3")

    assert labels(in_table) == ["1", "2", "log"]
    assert labels(in_column) == ["1", "log"]


def test_a_list_in_a_text_column_is_capped_too() -> None:
    run = make(TextLogRun)
    with capped(2):
        append(run, "1", "2", "3", "4")

    assert labels(run) == ["1", "2", "log"]


@every_shape
def test_an_entry_that_only_looks_like_a_marker_is_an_entry(model: Model) -> None:
    run = make(model)
    with capped(2):
        append(run, "1")
        run.append_event("truncated", "output")
        append(run, "3", "4")

    assert labels(run) == ["1", "output", "log"]


@every_shape
def test_a_full_log_writes_nothing_more(model: Model) -> None:
    run = make(model)
    with capped(1):
        append(run, "1", "2")
        before = row(run)
        with CaptureQueriesContext(connection) as captured:
            append(run, "3")

    assert row(run) == before
    assert not any(query["sql"].startswith("INSERT") for query in captured)
    assert TableRunEvent.objects.count() == (2 if keeps_a_table(model) else 0)


@pytest.mark.usefixtures("committed")
@every_shape
def test_a_copy_that_found_its_log_full_lets_entries_in_under_a_raised_cap(model: Model) -> None:
    run = make(model)
    with capped(1):
        append(run, "1", "2", "3")
    with capped(3):
        append(run, "4", "5")

    assert labels(run) == ["1", "log", "4", "log"]
    assert [n.entry["label"] for n in run.events_after(1)] == ["log", "4", "log"]


@pytest.mark.usefixtures("committed")
def test_a_clone_of_a_copy_that_found_its_log_full_has_room() -> None:
    run = make(TableRun)
    with capped(2):
        append(run, "1", "2", "3", "4")
        first = get(run)
        run.pk = None
        run.save()
        append(run, "of the clone")

    assert labels(run) == ["of the clone"]
    assert labels(first) == ["1", "2", "log"]


@pytest.mark.usefixtures("committed")
@pytest.mark.django_db(databases=["default", "other"])
def test_a_copy_that_found_its_log_full_has_room_in_another_database() -> None:
    run = make(TableRun)
    with capped(2):
        append(run, "1", "2", "3", "4")
        run.save(using="other")
        append(run, "there")

    there = TableRun.objects.using("other").get(pk=run.pk)
    assert [entry["label"] for entry in there.events_log] == ["there"]


@pytest.mark.usefixtures("committed")
def test_a_copy_that_was_full_in_its_column_has_room_in_the_table() -> None:
    run = make(TableRun)
    store_log(run, "[]")
    run = get(run)
    caps = {"COLUMN_LOG_ENTRIES": 1, "TABLE_LOG_ENTRIES": 5}
    with override_settings(SOLID_RUNS=caps):
        append(run, "1", "2", "3")
        move_events(TableRun)
        append(run, "4")

    assert labels(run) == ["1", "log", "4"]


# Bytes


def in_bytes(entry: Any) -> int:
    return len(compact_json(entry).encode())


def limited(size: int | None) -> AbstractContextManager[Any]:
    return override_settings(SOLID_RUNS={"ENTRY_BYTES": size})


@every_shape
@pytest.mark.parametrize("text", ["x", "é", "🚆", '"', "\\", "\n", "\x00"], ids=ascii)
def test_an_entry_that_is_too_long_is_cut_and_returned_as_stored(model: Model, text: str) -> None:
    run = make(model)
    with limited(400):
        event = run.append_event(text * 300, text * 300, eid="1", detail=text * 300, duration_ms=7)
        line = run.add_log(text * 600)

    assert get(run).events_log == [event, line]
    assert in_bytes(event) <= 400
    assert in_bytes(line) <= 400
    assert (event["eid"], event["status"], event["duration_ms"]) == ("1", "done", 7)
    assert (line["level"], len(line["timestamp"])) == ("info", 20)
    assert len(event["at"]) == 24


def test_the_longest_texts_are_cut_to_equal_shares_and_the_others_not_at_all() -> None:
    run = make(TableRun)
    with limited(1000):
        entry = run.append_event("k" * 150, "l" * 700, eid="e" * 900, detail="d" * 1100)

    assert entry["kind"] == "k" * 150
    sizes = [in_bytes(entry[name]) for name in ("label", "eid", "detail")]
    assert max(sizes) - min(sizes) <= 1
    assert 990 <= in_bytes(entry) <= 1000


@every_shape
def test_an_entry_that_just_fits_is_left_alone(model: Model) -> None:
    run = make(model)
    size = in_bytes(run.append_event("tool", "é" * 100, detail="x" * 50))

    with limited(size):
        fits = run.append_event("tool", "é" * 100, detail="x" * 50)
        cut = run.append_event("tool", "é" * 100, detail="x" * 51)

    assert (fits["label"], fits["detail"]) == ("é" * 100, "x" * 50)
    assert in_bytes(cut) <= size
    assert get(run).events_log[1:] == [fits, cut]


@every_shape
@pytest.mark.parametrize("size", [1, 2, 10, 60, 100])
def test_a_limit_that_no_entry_fits_stores_one_all_the_same(model: Model, size: int) -> None:
    run = make(model)
    with limited(size):
        entry = run.append_event("tool", "search", eid="1", detail="x" * 500, duration_ms=12_345)
        line = run.add_log("asking")

    assert get(run).events_log == [entry, line]
    assert set(entry) == {"at", "eid", "kind", "label", "status", "detail", "duration_ms"}
    assert (len(entry["at"]), entry["duration_ms"], line["message"]) == (24, 12_345, "asking")
    assert in_bytes(entry) <= 256, "no limit is less"


@every_shape
def test_a_limit_of_none_is_no_limit(model: Model) -> None:
    run = make(model)
    with limited(None):
        entry = run.append_event("tool", "x" * 60_000, eid="y" * 60_000)

    assert (entry["label"], entry["eid"]) == ("x" * 60_000, "y" * 60_000)
    assert get(run).events_log == [entry]


@every_shape
def test_by_default_an_entry_takes_24_000_bytes(model: Model) -> None:
    run = make(model)

    entry = run.append_event("tool", "é" * 60_000)

    assert 23_900 <= in_bytes(entry) <= 24_000
    assert get(run).events_log == [entry]


def test_every_shape_has_a_log_of_one_kind() -> None:
    assert keeps_a_table(TableRun)
    assert has(TableRun, "events_count")
    assert log_field(TableRun) == "events"
