from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection
from django.utils import timezone

from solid_runs.exceptions import InvalidUsage, RunNotFound, UnknownStatusError
from solid_runs.mixin import CANCEL_REASON
from solid_runs.models import AgentRunMixin, PlatformAgentRun
from solid_runs.statuses import RunStatus
from tests.models import FreshRun, GeneratorRun, MinimalRun, PlatformJsonRun, PlatformRun
from tests.rows import (
    every_shape,
    full_shapes,
    get,
    has,
    listening,
    make,
    rails_shapes,
    row,
    statements_of_append,
    store_text,
    stored_text,
)
from tests.run_models import TightRun, create_tables

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

STARTED = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
MOVES: dict[str, Callable[[Any], bool]] = {
    "start": lambda run: run.start(),
    "finish": lambda run: run.finish("late"),
    "fail": lambda run: run.fail(ValueError("late")),
    "cancel": lambda run: run.cancel("late"),
    "restart": lambda run: run.restart(),
}
every_move = pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
every_end = pytest.mark.parametrize("end", ["complete", "failed", "cancelled"])


@pytest.fixture(scope="module", autouse=True)
def tight_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection, TightRun)


def warm(model: Model) -> None:
    """Have the one-time questions about the table's columns asked."""
    run = make(model)
    run.append_event("warm", "up")
    run.fail("warm")


def raised(error: BaseException, frames: int = 1) -> BaseException:
    """The error after it was really raised, ``frames`` calls deep."""
    try:
        if frames > 1:
            raise raised(error, frames - 1)
        raise error
    except BaseException as caught:
        return caught


# start


@every_shape
def test_start_makes_a_pending_run_running(model: Model) -> None:
    run = make(model)

    assert run.start() is True

    assert run.status is RunStatus.RUNNING
    assert row(run)["status"] is RunStatus.RUNNING


@full_shapes
def test_start_notes_the_time(model: Model) -> None:
    run = make(model)
    before = timezone.now()

    run.start()

    assert before <= run.started_at <= timezone.now()
    assert row(run)["started_at"] == run.started_at


@every_shape
def test_start_is_the_claim_so_only_one_of_two_copies_gets_true(model: Model) -> None:
    mine = make(model)
    theirs = get(mine)

    assert (mine.start(), theirs.start(), mine.start()) == (True, False, False)


@full_shapes
def test_a_lost_start_leaves_the_time_of_the_winner(model: Model) -> None:
    mine = make(model)
    theirs = get(mine)
    mine.start()
    before = row(mine)

    theirs.start()

    assert row(mine) == before
    assert theirs.started_at == mine.started_at


# finish


@full_shapes
def test_finish_completes_the_run_with_its_output(model: Model) -> None:
    run = make(model, "running", started_at=STARTED)
    before = timezone.now()

    assert run.finish("done", input_tokens=7, output_tokens=5) is True

    stored = row(run)
    assert stored["status"] is RunStatus.COMPLETE
    assert (stored["output"], stored["input_tokens"], stored["output_tokens"]) == ("done", 7, 5)
    assert before <= stored["completed_at"] <= timezone.now()


@every_shape
@pytest.mark.parametrize("move", ["finish", "fail", "cancel"])
def test_a_run_may_end_from_pending(model: Model, move: str) -> None:
    run = make(model)

    assert MOVES[move](run) is True

    assert get(run).finished


@full_shapes
@pytest.mark.parametrize("move", ["finish", "fail", "cancel"])
def test_a_run_that_never_started_has_no_duration(model: Model, move: str) -> None:
    run = make(model)

    MOVES[move](run)

    assert row(run)["duration_ms"] is None
    assert run.calculated_duration_ms() is None


@full_shapes
@pytest.mark.parametrize("move", ["finish", "fail", "cancel"])
def test_the_duration_is_the_time_since_the_start(model: Model, move: str) -> None:
    run = make(model, "running", started_at=timezone.now() - timedelta(seconds=90))

    MOVES[move](run)

    assert 90_000 <= row(run)["duration_ms"] < 100_000
    assert row(run)["duration_ms"] == run.duration_ms


@full_shapes
def test_the_duration_is_never_below_zero(model: Model) -> None:
    run = make(model, "running", started_at=timezone.now() + timedelta(hours=1))

    run.finish("from the future")

    assert row(run)["duration_ms"] == 0


@full_shapes
def test_a_copy_that_does_not_know_the_start_leaves_the_duration_to_be_calculated(
    model: Model,
) -> None:
    run = make(model)
    get(run).start()

    model.objects.defer("started_at").get(pk=run.pk).finish("done")

    stored = get(run)
    assert stored.duration_ms is None
    assert stored.calculated_duration_ms() is not None


@full_shapes
def test_a_copy_from_before_a_restart_does_not_measure_from_the_earlier_start(
    model: Model,
) -> None:
    stale = make(model, "failed", started_at=timezone.now() - timedelta(hours=1))
    get(stale).restart()

    assert stale.finish("done")

    assert get(stale).calculated_duration_ms() < 60_000


@full_shapes
def test_a_deferred_start_is_not_fetched_for_the_duration(model: Model) -> None:
    run = make(model, "running", started_at=STARTED)
    partial = model.objects.defer("started_at").get(pk=run.pk)

    partial.finish("done")

    assert "started_at" in partial.get_deferred_fields()
    assert row(run)["duration_ms"] is None


@full_shapes
def test_finish_without_an_output_keeps_an_earlier_one(model: Model) -> None:
    run = make(model, "running", output="so far")

    run.finish()

    assert row(run)["output"] == "so far"


@full_shapes
@pytest.mark.parametrize("output", [None, ""])
def test_an_output_that_is_given_replaces_the_earlier_one(model: Model, output: Any) -> None:
    run = make(model, "running", output="so far")

    run.finish(output)

    assert row(run)["output"] == output


@full_shapes
def test_an_output_that_is_no_text_is_stored_as_json_text(model: Model) -> None:
    run = make(model, "running")

    run.finish({"answer": [1, "é"]})

    assert row(run)["output"] == '{"answer":[1,"é"]}'
    assert run.output == '{"answer":[1,"é"]}'


@full_shapes
def test_a_token_count_that_is_none_falls_back_to_the_row(model: Model) -> None:
    run = make(model, "running", input_tokens=7, output_tokens=5, reported_total_tokens=30)
    stale = get(run)
    model.objects.filter(pk=run.pk).update(input_tokens=8)

    stale.finish("done", output_tokens=6)

    stored = get(run)
    assert (stored.input_tokens, stored.output_tokens) == (8, 6)
    assert stored.reported_total_tokens == (30 if has(model, "reported_total_tokens") else None)


@full_shapes
def test_the_computed_total_is_never_stored(model: Model) -> None:
    run = make(model, "running")

    run.finish("done", input_tokens=7, output_tokens=5)

    assert get(run).reported_total_tokens is None
    assert get(run).total_tokens == 12


@full_shapes
def test_a_reported_total_may_exceed_the_sum(model: Model) -> None:
    run = make(model, "running")

    run.finish("done", input_tokens=7, output_tokens=5, total_tokens=40)

    assert get(run).total_tokens == (40 if has(model, "reported_total_tokens") else 12)


@full_shapes
def test_a_token_count_of_zero_counts_as_given(model: Model) -> None:
    run = make(model, "running", input_tokens=7, output_tokens=5, reported_total_tokens=30)

    run.finish("done", input_tokens=0, output_tokens=0, total_tokens=0)

    assert (get(run).input_tokens, get(run).output_tokens, get(run).total_tokens) == (0, 0, 0)


# fail


@full_shapes
def test_fail_keeps_the_message_of_an_exception(model: Model) -> None:
    run = make(model, "running", started_at=STARTED)
    before = timezone.now()

    assert run.fail(ValueError("no such city")) is True

    stored = row(run)
    assert stored["status"] is RunStatus.FAILED
    assert stored["error_message"] == "no such city"
    assert before <= stored["completed_at"] <= timezone.now()


@full_shapes
@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("plain text", "plain text"),
        (IndexError(), "IndexError"),
        (ValueError("  "), "ValueError"),
        (404, "404"),
    ],
    ids=str,
)
def test_fail_always_leaves_a_reason(model: Model, error: Any, message: str) -> None:
    run = make(model, "running")

    run.fail(error)

    assert row(run)["error_message"] == message


@full_shapes
def test_fail_with_nothing_still_leaves_a_reason(model: Model) -> None:
    run = make(model, "running")

    run.fail(None)

    assert row(run)["error_message"].strip()


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, FreshRun])
def test_the_backtrace_keeps_ten_frames_with_the_failing_one_first(model: Model) -> None:
    run = make(model, "running")

    def innermost() -> None:
        raise KeyError("city")

    try:
        innermost()
    except KeyError as error:
        run.fail(raised(error, frames=30))

    lines = row(run)["error_backtrace"].splitlines()
    assert len(lines) == 10
    assert lines[0].endswith(":in innermost")
    path, number, _ = lines[0].rsplit(":", 2)
    assert path == __file__
    assert number.isdecimal()


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, FreshRun])
@pytest.mark.parametrize("error", ["plain text", ValueError("never raised")], ids=str)
def test_there_is_no_backtrace_without_a_raise(model: Model, error: Any) -> None:
    run = make(model, "running", error_backtrace="of an earlier attempt")

    run.fail(error)

    assert row(run)["error_backtrace"] is None


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_the_ten_frames_of_a_recursion_are_the_innermost(model: Model) -> None:
    run = make(model, "running")

    def forever() -> None:
        forever()

    try:
        forever()
    except RecursionError as error:
        run.fail(error)

    lines = row(run)["error_backtrace"].splitlines()
    assert len(lines) == 10
    assert all(line.endswith(":in forever") for line in lines)


# cancel


@every_shape
@pytest.mark.parametrize("status", ["pending", "running"])
def test_cancel_ends_a_run_in_progress(model: Model, status: str) -> None:
    run = make(model, status)

    assert run.cancel() is True

    assert row(run)["status"] is RunStatus.CANCELLED


@full_shapes
@pytest.mark.parametrize("message", [None, "", " \t\n "])
def test_cancel_gives_its_reason_where_no_message_stands(model: Model, message: Any) -> None:
    run = make(model, "running", error_message=message)

    run.cancel()

    assert row(run)["error_message"] == "Cancelled by user" == CANCEL_REASON
    assert run.error_message == "Cancelled by user"


@full_shapes
def test_white_space_of_any_script_is_blank(model: Model) -> None:
    run = make(model, "running", error_message="\u3000\u00a0")

    run.cancel("budget spent")

    assert row(run)["error_message"] == "budget spent"


@full_shapes
@pytest.mark.parametrize("message", ["half broken", "\nwarned", "  0"])
def test_cancel_leaves_a_message_that_stands(model: Model, message: str) -> None:
    run = make(model, "running")
    model.objects.filter(pk=run.pk).update(error_message=message)  # unknown to this copy

    run.cancel("budget spent")

    assert row(run)["error_message"] == message
    assert run.error_message == message


@full_shapes
def test_cancel_without_a_reason_writes_no_message(model: Model) -> None:
    run = make(model, "running")

    assert run.cancel(None) is True

    assert row(run)["error_message"] is None


@full_shapes
def test_cancel_of_an_ended_run_is_false_and_no_fault(model: Model) -> None:
    run = make(model, "complete", output="made it")
    before = row(run)

    assert run.cancel() is False

    assert row(run) == before


# restart


@every_shape
@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ("pending", False),
        ("running", False),
        ("complete", False),
        ("failed", True),
        ("cancelled", True),
    ],
)
def test_restart_is_the_way_back_from_failed_and_cancelled(
    model: Model, status: str, allowed: bool
) -> None:
    run = make(model, status)

    assert run.restart() is allowed

    assert row(run)["status"] == ("running" if allowed else status)


@full_shapes
def test_restart_clears_what_went_wrong_and_keeps_the_rest(model: Model) -> None:
    run = make(model, "running", started_at=STARTED, output="half", input_tokens=7)
    run.append_event("tool", "search")
    run.fail(raised(ValueError("no")))
    before = timezone.now()

    run.restart()

    stored = get(run)
    for name in ("completed_at", "duration_ms", "error_message", "error_backtrace"):
        assert getattr(stored, name) is None, name
    assert before <= stored.started_at <= timezone.now()
    assert (stored.output, stored.input_tokens, len(stored.events_log)) == ("half", 7, 1)


@every_shape
def test_only_one_of_two_copies_restarts_a_run(model: Model) -> None:
    mine = make(model, "failed")
    theirs = get(mine)

    assert (mine.restart(), theirs.restart()) == (True, False)


# What holds for every transition


@every_shape
@every_end
@pytest.mark.parametrize("move", ["start", "finish", "fail", "cancel"])
def test_an_end_is_never_left(model: Model, end: str, move: str) -> None:
    run = make(model, end, output="kept", error_message="kept", completed_at=STARTED)
    before = row(run)

    with listening() as heard:
        assert MOVES[move](run) is False

    assert row(run) == before
    assert heard == []
    assert run.status == end


@every_shape
@every_end
@pytest.mark.parametrize("held", ["pending", "running"])
@pytest.mark.parametrize("move", ["start", "finish", "fail", "cancel"])
def test_a_copy_that_has_not_heard_of_the_end_writes_nothing_either(
    model: Model, end: str, held: str, move: str
) -> None:
    stale = make(model, held)
    model.objects.filter(pk=stale.pk).update(status=end)
    before = row(stale)

    assert MOVES[move](stale) is False

    assert row(stale) == before
    assert stale.status == end


@pytest.mark.parametrize("move", ["finish", "fail", "cancel"])
def test_a_copy_that_has_not_heard_of_the_start_ends_the_run(move: str) -> None:
    stale = make(PlatformRun)
    get(stale).start()

    assert MOVES[move](stale) is True

    assert get(stale).finished


@full_shapes
def test_the_loser_shows_what_is_stored(model: Model) -> None:
    loser = make(model, "running", started_at=STARTED, output="draft")
    winner = get(loser)
    winner.finish(
        "the answer",
        metadata={"provider": "openai", "model": "gpt-4o"},
        input_tokens=7,
        output_tokens=5,
    )

    assert loser.fail(ValueError("too late")) is False

    stored = get(loser)
    names = [field.attname for field in model._meta.concrete_fields]
    assert {n: getattr(loser, n) for n in names} == {n: getattr(stored, n) for n in names}
    assert loser.summary() == stored.summary()


@full_shapes
@every_move
def test_the_winner_shows_what_is_stored(model: Model, move: Callable[[Any], bool]) -> None:
    run = make(model, "running", started_at=STARTED)
    if move in (MOVES["start"], MOVES["restart"]):
        model.objects.filter(pk=run.pk).update(
            status="pending" if move is MOVES["start"] else "failed"
        )
        run = get(run)

    assert move(run) is True

    assert {name: getattr(run, name) for name in row(run)} == row(run)


@full_shapes
def test_reading_a_finished_run_asks_nothing_more(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model, "running", started_at=STARTED)
    run.finish("done", input_tokens=1, output_tokens=2)

    with django_assert_num_queries(0):
        run.summary()


@every_shape
def test_other_unsaved_changes_stay_unsaved(model: Model) -> None:
    run = make(model, action_name="ask")
    run.action_name = "unsaved"

    run.start()
    run.finish("done")

    assert get(run).action_name == ("ask" if has(model, "action_name") else None)


@full_shapes
@every_move
def test_every_transition_moves_updated_at(model: Model, move: Callable[[Any], bool]) -> None:
    run = make(model, "failed" if move is MOVES["restart"] else "pending")
    model.objects.filter(pk=run.pk).update(updated_at=STARTED)

    move(run)

    assert timezone.now() - row(run)["updated_at"] < timedelta(minutes=1)


@every_shape
@pytest.mark.parametrize(
    ("status", "in_progress", "finished"),
    [
        ("pending", True, False),
        ("running", True, False),
        ("complete", False, True),
        ("failed", False, True),
        ("cancelled", False, True),
    ],
)
def test_a_run_is_in_progress_or_finished(
    model: Model, status: str, in_progress: bool, finished: bool
) -> None:
    run = make(model, status)

    assert (run.in_progress, run.finished) == (in_progress, finished)


@every_shape
def test_an_unknown_status_is_neither_in_progress_nor_finished(model: Model) -> None:
    run = make(model)
    store_text(run, "status", "9")

    assert (get(run).in_progress, get(run).finished) == (False, False)


@every_shape
@every_move
def test_an_unknown_status_refuses_to_move(model: Model, move: Callable[[Any], bool]) -> None:
    run = make(model)
    store_text(run, "status", "9")
    stale, fresh = run, get(run)

    for copy in (stale, fresh):
        with pytest.raises(UnknownStatusError, match="9"):
            move(copy)

    assert stored_text(run, "status") == "9"


@every_shape
@every_move
def test_a_deleted_run_is_not_found(model: Model, move: Callable[[Any], bool]) -> None:
    run = make(model, "failed" if move is MOVES["restart"] else "pending")
    get(run).delete()

    with pytest.raises(RunNotFound, match=f"{model.__name__} with primary key {run.pk}"):
        move(run)


@every_shape
@every_move
def test_an_unsaved_run_must_be_saved_first(model: Model, move: Callable[[Any], bool]) -> None:
    with pytest.raises(RunNotFound, match=r"save\(\) it first"):
        move(model())


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_run_with_a_chosen_key_must_be_saved_first(move: Callable[[Any], bool]) -> None:
    with pytest.raises(RunNotFound):
        move(PlatformRun(pk=1))

    assert PlatformRun.objects.get(pk=1).status == "pending"


# Trace ids


@full_shapes
def test_every_save_gives_a_trace_id(model: Model) -> None:
    run = model.objects.create()

    assert len(run.trace_id) == 36
    assert row(run)["trace_id"] == run.trace_id


@full_shapes
def test_a_given_trace_id_stays(model: Model) -> None:
    run = make(model, trace_id="mine")

    run.start()

    assert row(run)["trace_id"] == "mine"


@rails_shapes
def test_a_transition_heals_an_old_row_in_the_same_statement(
    model: Model, django_assert_num_queries: Any
) -> None:
    warm(model)
    run = model.objects.get(pk=2)
    assert run.trace_id is None

    with django_assert_num_queries(1):
        run.finish("done")

    assert len(run.trace_id) == 36
    assert row(run)["trace_id"] == run.trace_id


@rails_shapes
def test_a_trace_id_that_another_copy_gave_is_not_replaced(model: Model) -> None:
    run = model.objects.get(pk=2)
    model.objects.filter(pk=2).update(trace_id="theirs")

    assert run.finish("done") is True

    assert row(run)["trace_id"] == "theirs"
    assert run.trace_id == "theirs"


@rails_shapes
def test_a_deferred_trace_id_is_left_alone(model: Model) -> None:
    run = model.objects.defer("trace_id").get(pk=2)

    run.finish("done")

    assert row(run)["trace_id"] is None


# Statements


@every_shape
@every_move
def test_a_won_transition_is_one_statement(
    model: Model, move: Callable[[Any], bool], django_assert_num_queries: Any
) -> None:
    warm(model)
    run = make(model, "failed" if move is MOVES["restart"] else "pending")

    with django_assert_num_queries(1):
        assert move(run) is True


@full_shapes
def test_a_finish_with_metadata_is_one_statement(
    model: Model, django_assert_num_queries: Any
) -> None:
    warm(model)
    run = make(model, "running", output_metadata={"a": 1})

    with django_assert_num_queries(1):
        assert run.finish("done", metadata={"provider": "openai", "usage": {"cached": 3}})


@every_shape
@every_move
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_lost_transition_is_two_statements(
    model: Model, move: Callable[[Any], bool], known: bool, django_assert_num_queries: Any
) -> None:
    warm(model)
    run = make(model, "failed" if move is MOVES["restart"] else "pending")
    model.objects.filter(pk=run.pk).update(status="complete")
    if known:
        run = get(run)

    with django_assert_num_queries(2):
        assert move(run) is False


@every_shape
def test_an_append_reads_nothing_first(model: Model, django_assert_num_queries: Any) -> None:
    warm(model)
    run = make(model)

    with django_assert_num_queries(statements_of_append(model)):
        run.append_event("tool", "search")


# Bad input


def test_an_unknown_keyword_is_refused() -> None:
    run = make(FreshRun, "running")

    with pytest.raises(TypeError, match="usage"):
        run.finish("done", usage={"input": 3})

    assert row(run)["status"] == "running"


@pytest.mark.parametrize("model", [PlatformRun, MinimalRun])
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "total_tokens"])
@pytest.mark.parametrize("count", [-1, True, False, "12", 1.5, 3.0, [3]], ids=repr)
def test_a_token_count_that_cannot_be_one_is_refused_before_anything_is_written(
    model: Model, name: str, count: Any
) -> None:
    run = make(model, "running")
    before = row(run)

    with pytest.raises(InvalidUsage, match=f"^{name} must be a whole number") as caught:
        run.finish("done", **{name: count})

    assert isinstance(caught.value, ValueError)
    assert repr(count) in str(caught.value)
    assert row(run) == before
    assert run.status == "running"


@pytest.mark.parametrize("metadata", ["text", [("a", 1)], 5], ids=repr)
def test_metadata_that_is_no_mapping_is_refused(metadata: Any) -> None:
    run = make(FreshRun, "running")

    with pytest.raises(TypeError, match="metadata must be a mapping"):
        run.finish("done", metadata=metadata)

    assert row(run)["status"] == "running"


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, GeneratorRun])
def test_a_figure_past_the_column_is_dropped_with_a_warning_and_the_end_is_saved(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    run = make(model, "running", input_tokens=7)
    too_many = 2**63 if connection.vendor == "sqlite" else 2**31  # SQLite knows one integer

    with caplog.at_level(logging.WARNING, "solid_runs"):
        assert run.finish("done", input_tokens=too_many, output_tokens=5) is True

    stored = row(run)
    assert (stored["status"], stored["output"]) == ("complete", "done")
    assert (stored["input_tokens"], stored["output_tokens"]) == (7, 5)
    [record] = caplog.records
    assert f"{model.__name__}.input_tokens cannot hold {too_many}" in record.getMessage()


def test_the_largest_figure_that_fits_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    run = make(PlatformRun, "running")

    run.finish("done", input_tokens=2**31 - 1)

    assert row(run)["input_tokens"] == 2**31 - 1
    assert caplog.records == []


def test_a_table_of_our_own_takes_figures_of_64_bits() -> None:
    run = make(FreshRun, "running")

    run.finish("done", input_tokens=2**31, total_tokens=2**40)

    assert (get(run).input_tokens, get(run).total_tokens) == (2**31, 2**40)


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_a_duration_past_the_column_does_not_stop_the_end(model: Model) -> None:
    run = make(model, "running", started_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert run.finish("after all these years") is True

    stored = get(run)
    assert stored.status == "complete"
    assert stored.calculated_duration_ms() > 2**31


def test_a_host_without_the_columns_still_ends_its_runs() -> None:
    run = make(MinimalRun)

    assert run.start() is True
    assert run.finish("done", metadata={"a": 1}, input_tokens=3, total_tokens=9) is True

    assert row(run)["status"] is RunStatus.COMPLETE
    assert (run.output, run.started_at, run.duration_ms, run.total_tokens) == (None, None, None, 0)


LACKING = [
    field.name
    for field in PlatformAgentRun._meta.local_fields
    if field.name not in ("id", "status", "logs")
]


@pytest.mark.parametrize("name", LACKING)
def test_any_other_column_may_be_missing(name: str) -> None:
    meta = type(
        "Meta",
        (PlatformAgentRun.Meta,),
        {"app_label": "tests", "apps": Apps(), "managed": False, "db_table": "agent_runs"},
    )
    namespace = {"__module__": __name__, "Meta": meta, name: None}
    model: Any = type("LackingRun", (PlatformAgentRun,), namespace)
    run = model.objects.get(pk=1)

    assert run.start() is True
    run.append_event("tool", "search")
    run.add_log("asking")
    run.save()
    assert run.fail(raised(ValueError("no"))) is True
    assert run.restart() is True
    assert run.finish("done", metadata={"a": 1}, input_tokens=1, total_tokens=2) is True
    assert model.objects.get(pk=4).cancel() is False
    assert model.objects.get(pk=2).cancel() is True

    assert run.summary()["id"] == 1
    assert (run.status, len(run.events_log)) == ("complete", 2)
    assert model.objects.recent().finished().total_tokens_sum() >= 0
    assert run.subject is None or name != "agent_id"


def test_texts_that_must_not_be_null_do_not_stop_a_failure() -> None:
    run = make(TightRun, "running")

    assert run.fail("boom") is True

    assert (row(run)["error_message"], row(run)["error_backtrace"]) == ("boom", "")


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_texts_that_must_not_be_null_are_emptied_by_a_restart(end: str) -> None:
    run = make(TightRun, end, error_message="boom", error_backtrace="line 1")

    assert run.restart() is True

    assert (row(run)["error_message"], row(run)["error_backtrace"]) == ("", "")
    assert (run.error_message, run.error_backtrace) == ("", "")


def test_a_trace_id_is_made_as_short_as_its_column() -> None:
    TightRun.objects.all().delete()
    TightRun.objects.bulk_create([TightRun()])
    old = TightRun.objects.get()
    assert old.trace_id is None

    assert old.fail("boom") is True
    new = TightRun.objects.create()

    for run in (old, new):
        assert row(run)["trace_id"] == run.trace_id
        assert len(run.trace_id) == 32


@full_shapes
def test_a_start_that_was_given_as_text_does_not_stop_the_end(model: Model) -> None:
    run = model.objects.create(status="running", started_at="2026-01-15T09:30:00Z")

    assert run.finish("done") is True

    stored = get(run)
    assert (stored.status, stored.started_at) == ("complete", STARTED)
    assert stored.calculated_duration_ms() > 0
