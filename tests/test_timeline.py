from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from solid_runs.events import Numbered, Step, timeline
from tests.models import PlatformRun
from tests.rows import make, rails_shapes

NINE = "2026-01-15T09:00:00.000Z"


def event(seq: int, at: str | None = NINE, **said: Any) -> Numbered:
    entry = {"at": at, "kind": "tool", "label": "search", "status": "done"}
    return Numbered(seq, entry | said)


def at(second: float) -> datetime:
    return datetime(2026, 1, 15, 9, 0, int(second), round(second % 1 * 1_000_000), tzinfo=UTC)


def test_a_started_entry_is_closed_by_a_later_one_of_the_same_eid() -> None:
    [step] = timeline(
        [
            event(1, eid="1", status="started"),
            event(2, "2026-01-15T09:00:02.500Z", eid="1", status="done", detail="3 rows"),
        ]
    )

    assert step == Step(
        seq=1,
        kind="tool",
        label="search",
        status="done",
        eid="1",
        started_at=at(0),
        ended_at=at(2.5),
        duration_ms=2500,
        detail="3 rows",
        is_open=False,
    )


def test_an_error_closes_a_step_too() -> None:
    [step] = timeline([event(1, eid="1", status="started"), event(2, eid="1", status="error")])

    assert (step.status, step.is_open) == ("error", False)


def test_a_started_entry_without_an_end_is_open() -> None:
    [step] = timeline([event(1, eid="1", status="started")])

    assert (step.status, step.is_open, step.ended_at, step.duration_ms) == (
        "started",
        True,
        None,
        None,
    )


def test_only_done_or_error_ends_a_step() -> None:
    open_step, progress = timeline(
        [event(1, eid="1", status="started"), event(2, eid="1", status="progress")]
    )

    assert (open_step.is_open, open_step.ended_at) == (True, None)
    assert progress.status == "progress"


def test_a_progress_entry_does_not_keep_the_end_from_its_step() -> None:
    steps = timeline(
        [
            event(1, eid="1", status="started"),
            event(2, eid="1", status="progress"),
            event(3, eid="1", status="done"),
        ]
    )

    assert [(step.seq, step.status) for step in steps] == [(1, "done"), (2, "progress")]


def test_an_entry_of_another_eid_closes_nothing() -> None:
    first, second = timeline([event(1, eid="1", status="started"), event(2, eid="2")])

    assert (first.is_open, second.is_open) == (True, False)


def test_entries_without_an_eid_stand_alone() -> None:
    started, done = timeline([event(1, status="started"), event(2, status="done")])

    assert (started.seq, done.seq) == (1, 2)


def test_steps_stand_in_the_order_in_which_they_began() -> None:
    steps = timeline(
        [
            event(1, eid="outer", status="started"),
            event(2, eid="inner", status="started"),
            event(3, eid="inner"),
            event(4, label="single"),
            event(5, eid="outer"),
        ]
    )

    assert [(step.seq, step.eid) for step in steps] == [(1, "outer"), (2, "inner"), (4, None)]


def test_an_eid_may_be_used_again_after_its_step_ended() -> None:
    first, second = timeline(
        [
            event(1, eid="1", status="started"),
            event(2, eid="1"),
            event(3, eid="1", status="started"),
        ]
    )

    assert (first.is_open, second.is_open) == (False, True)


def test_an_eid_that_starts_twice_is_ended_by_its_latest_start() -> None:
    first, second = timeline(
        [
            event(1, eid="1", status="started"),
            event(2, eid="1", status="started"),
            event(3, eid="1"),
        ]
    )

    assert (first.is_open, second.is_open) == (True, False)


def test_an_end_without_a_start_stands_alone() -> None:
    [step] = timeline([event(1, eid="1", status="done", duration_ms=40)])

    assert (step.status, step.is_open, step.duration_ms) == ("done", False, 40)


def test_a_numeric_eid_of_another_writer_pairs_with_itself() -> None:
    [step] = timeline([event(1, eid=7, status="started"), event(2, eid=7)])

    assert (step.eid, step.is_open) == ("7", False)


@pytest.mark.parametrize("reported", [0, 900])
def test_a_reported_duration_goes_before_the_measured_one(reported: int) -> None:
    [step] = timeline(
        [
            event(1, eid="1", status="started"),
            event(2, "2026-01-15T09:00:02.500Z", eid="1", duration_ms=reported),
        ]
    )

    assert step.duration_ms == reported


def test_clocks_that_disagree_never_give_a_negative_duration() -> None:
    [step] = timeline(
        [
            event(1, "2026-01-15T09:00:02.500Z", eid="1", status="started"),
            event(2, NINE, eid="1"),
        ]
    )

    assert step.duration_ms == 0


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-15T09:00:00.000Z",
        "2026-01-15T18:00:00+09:00",
        "2026-01-15T04:00:00.000000-05:00",
        "2026-01-15T14:30:00+0530",
        "2026-01-15 09:00:00",
        "2026-01-15T09:00:00.000000000Z",
    ],
)
def test_a_time_may_carry_any_offset(text: str) -> None:
    [step] = timeline([event(1, text)])

    assert step.started_at == at(0)


@pytest.mark.parametrize("text", [None, "", "yesterday", 5, "9999-99-99T00:00:00Z"])
def test_a_time_that_is_none_is_left_out(text: Any) -> None:
    [step] = timeline([event(1, text)])

    assert (step.started_at, step.ended_at, step.duration_ms) == (None, None, None)


def test_a_log_line_is_a_message() -> None:
    entry = {"timestamp": "2026-01-15T09:00:12Z", "level": "warn", "message": "asking"}

    [step] = timeline([Numbered(4, entry)])

    assert (step.seq, step.kind, step.label, step.is_message) == (4, "warn", "asking", True)
    assert step.started_at == step.ended_at == at(12)


def test_both_details_of_a_step_are_kept() -> None:
    [step] = timeline(
        [event(1, eid="1", status="started", detail="query"), event(2, eid="1", detail="3 rows")]
    )

    assert step.detail == "query\n3 rows"


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "text",
        5,
        [],
        ["a"],
        {},
        {"at": []},
        {"label": None, "kind": 5, "status": [], "eid": {}, "detail": [1], "duration_ms": "x"},
        {"message": None},
        {"status": "started", "eid": ["a"]},
        {"eid": "1", "status": "done", "duration_ms": 10**30},
    ],
    ids=repr,
)
def test_whatever_an_older_writer_left_gives_one_step(entry: Any) -> None:
    [step] = timeline([Numbered(1, entry)])

    assert step.seq == 1
    for value in (step.kind, step.label, step.status):
        assert isinstance(value, str)


def test_an_empty_log_has_no_steps() -> None:
    assert timeline([]) == []


@pytest.mark.django_db
@rails_shapes
def test_the_log_that_rails_wrote_pairs_into_steps(model: Any) -> None:
    llm, tool = timeline(model.objects.get(pk=3).events_after(0))

    assert (llm.seq, llm.label, llm.status, llm.duration_ms) == (1, "claude-sonnet", "done", 900)
    assert (tool.seq, tool.label, tool.detail, tool.duration_ms) == (
        3,
        "search_invoices",
        "3 rows",
        1100,
    )


@pytest.mark.django_db
def test_the_log_of_a_run_pairs_into_steps() -> None:
    run = make(PlatformRun)
    run.append_event("tool", "search", eid="1", status="started")
    run.add_log("asking")
    run.append_event("tool", "search", eid="1", status="error", detail="timed out")

    tool, message = timeline(run.events_after(0))

    assert (tool.status, tool.detail, tool.is_open) == ("error", "timed out", False)
    assert (message.label, message.is_message) == ("asking", True)
