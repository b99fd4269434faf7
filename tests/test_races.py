"""Races between real processes, on whatever database the suite runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from solid_runs.columns import columns_of, facts
from solid_runs.event_logs.column import append_form
from solid_runs.signals import run_status_changed
from solid_runs.statuses import RunStatus
from tests.models import (
    FreshRun,
    GeneratorRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
    TableRunEvent,
)
from tests.races import Outcome, Racer, Sent, race, racers

pytestmark = pytest.mark.usefixtures("committed")

SHAPES = [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TableRun]


@pytest.fixture(scope="module")
def field(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Racer]]:
    """Eight processes for the whole module."""
    with racers(8) as processes:
        yield processes


def created(model: Any, count: int, status: RunStatus, trace_id: str | None = "t") -> list[Any]:
    """So many runs; without a trace id, as old rows are, the healing would guard them too."""
    model.objects.bulk_create([model(status=status, trace_id=trace_id) for _ in range(count)])
    return list(model.objects.order_by("-pk")[:count])


def moves(run: Any, *hows: str | tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    calls = [(how, {}) if isinstance(how, str) else how for how in hows]
    return [
        {"task": "move", "model": type(run).__name__, "pk": run.pk, "how": how, **arguments}
        for how, arguments in calls
    ]


def race_in_turns(
    field: Sequence[Racer], tasks: Sequence[dict[str, Any]], turn: int
) -> list[Outcome]:
    """A race in which every task is the first to hear the pistol once in so many turns."""
    shift = turn % len(tasks)
    outcomes = race(field, [*tasks[shift:], *tasks[:shift]])
    return [*outcomes[len(tasks) - shift :], *outcomes[: len(tasks) - shift]]


def the_winner(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    winners = [outcome.result for outcome in outcomes if outcome.result["won"]]
    assert len(winners) == 1, outcomes
    return dict(winners[0])


def signals(outcomes: Sequence[Outcome]) -> list[Sent]:
    return [sent for outcome in outcomes for sent in outcome.signals]


def eids(run: Any) -> list[str]:
    run.refresh_from_db()
    return [entry["eid"] for entry in run.events_log if "eid" in entry]


def assert_nothing_lost(written: list[str], *, writers: int, count: int) -> None:
    assert sorted(written) == sorted(f"{w}-{n}" for w in range(writers) for n in range(count))
    for writer in range(writers):
        own = [eid for eid in written if eid.startswith(f"{writer}-")]
        assert own == [f"{writer}-{n}" for n in range(count)], "a writer's own order was changed"


# Appending


@pytest.mark.parametrize("model", SHAPES)
def test_eight_processes_lose_no_entry_and_keep_their_order(model: Any, field: list[Racer]) -> None:
    run = model.objects.create(status=RunStatus.RUNNING)
    append = {"task": "append", "model": model.__name__, "pk": run.pk, "count": 50}
    race(field, [{**append, "writer": writer} for writer in range(8)])
    written = eids(run)
    assert_nothing_lost(written, writers=8, count=50)
    if connection.vendor != "sqlite":  # where one may well be through before another wakes up
        assert [eid.split("-")[0] for eid in written[:50]] != ["0"] * 50, "nobody raced"
    assert {entry["detail"] for entry in run.events_log} == {"ü" * 40}
    assert [numbered.seq for numbered in run.events_after()] == list(range(1, 401))


def test_eight_processes_leave_no_gap_and_no_duplicate_in_the_table(field: list[Racer]) -> None:
    run = TableRun.objects.create(status=RunStatus.RUNNING)
    append = {"task": "append", "model": "TableRun", "pk": run.pk, "count": 50}
    race(field, [{**append, "writer": writer} for writer in range(8)])
    rows = TableRunEvent.objects.filter(run=run)
    assert sorted(rows.values_list("seq", flat=True)) == list(range(1, 401))
    assert list(rows.order_by("seq").values_list("pk", flat=True)) == sorted(
        rows.values_list("pk", flat=True)
    ), "a later row has an earlier number"
    assert TableRun.objects.get(pk=run.pk).events_count == 400


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_eight_processes_on_eight_runs_stay_apart(model: Any, field: list[Racer]) -> None:
    runs = created(model, 8, RunStatus.RUNNING)
    common = {"task": "append", "model": model.__name__, "count": 25}
    race(field, [{**common, "pk": run.pk, "writer": writer} for writer, run in enumerate(runs)])
    for writer, run in enumerate(runs):
        assert eids(run) == [f"{writer}-{n}" for n in range(25)]
        assert [numbered.seq for numbered in run.events_after()] == list(range(1, 26))


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_who_reads_on_from_the_last_number_misses_nothing(model: Any, field: list[Racer]) -> None:
    """Some commit at once, some after others have come and gone."""
    run = model.objects.create(status=RunStatus.RUNNING)
    common = {"model": model.__name__, "pk": run.pk}
    tasks: list[dict[str, Any]] = [{"task": "tail", "expected": 115, "limit": 7, **common}]
    tasks += [{"task": "append", "writer": w, "count": 25, **common} for w in range(4)]
    slow = {"task": "append_slowly", "count": 5, **common}
    tasks += [{**slow, "writer": w, "pause": 0.02 * (w - 3)} for w in (4, 5, 6)]
    found = race(field, tasks)[0].result
    assert [seq for seq, _ in found] == list(range(1, 116))
    assert [eid for _, eid in found] == eids(run)


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_transactions_over_two_runs_in_one_order_lose_nothing(
    model: Any, field: list[Racer]
) -> None:
    one, two = created(model, 2, RunStatus.RUNNING)
    both = {"task": "append_to_each", "model": model.__name__, "pks": [one.pk, two.pk]}
    race(field, [{**both, "writer": writer, "count": 10} for writer in range(8)])
    assert eids(one) == eids(two)
    assert_nothing_lost(eids(one), writers=8, count=10)
    assert [numbered.seq for numbered in two.events_after()] == list(range(1, 81))


@pytest.mark.parametrize(("model", "cap"), [(FreshRun, 10_000), (TableRun, 100_000)])
def test_eight_processes_that_fill_a_log_leave_one_marker(
    model: Any, cap: int, field: list[Racer]
) -> None:
    room = 20
    run = model.objects.create(status=RunStatus.RUNNING)
    filled = {"events_count": cap - room} if model is TableRun else {"events": [0] * (cap - room)}
    model.objects.filter(pk=run.pk).update(**filled)
    append = {"task": "append", "model": model.__name__, "pk": run.pk, "count": 5}
    race(field, [{**append, "writer": writer} for writer in range(8)])
    newest = run.events_after(cap - room)
    assert [numbered.seq for numbered in newest] == list(range(cap - room + 1, cap + 2))
    kinds = [numbered.entry["kind"] for numbered in newest]
    assert kinds == ["tool"] * room + ["truncated"]


def test_a_row_lock_loses_no_entry_where_the_database_has_no_append(field: list[Racer]) -> None:
    run = PlatformJsonRun.objects.create(status=RunStatus.RUNNING)
    if connection.vendor == "sqlite":
        # Without row locks that form would meet "database is locked"; SQLite never takes it.
        log = columns_of(PlatformJsonRun).log
        assert append_form(connection, facts(log, connection)) is not None
        return
    append = {"task": "append", "model": "PlatformJsonRun", "pk": run.pk, "count": 25}
    race(field, [{**append, "writer": writer, "locked": True} for writer in range(4)])
    assert_nothing_lost(eids(run), writers=4, count=25)


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_four_processes_meet_no_lock_error_on_default_isolation(
    model: Any, field: list[Racer]
) -> None:
    run = model.objects.create(status=RunStatus.RUNNING)
    append = {"task": "append", "model": model.__name__, "pk": run.pk, "count": 25, "timeout": 5}
    race(field, [{**append, "writer": writer} for writer in range(4)])
    assert_nothing_lost(eids(run), writers=4, count=25)


@pytest.mark.parametrize("model", [PlatformRun, TableRun])
def test_events_and_log_lines_share_one_list_without_loss(model: Any, field: list[Racer]) -> None:
    run = model.objects.create(status=RunStatus.RUNNING)
    common = {"model": model.__name__, "pk": run.pk, "count": 20}
    tasks = [{"task": "append", "writer": writer, **common} for writer in range(4)]
    tasks += [{"task": "add_log", "writer": writer, **common} for writer in range(4)]
    race(field, tasks)
    assert_nothing_lost(eids(run), writers=4, count=20)
    lines = [entry["message"] for entry in run.events_log if "message" in entry]
    assert_nothing_lost(lines, writers=4, count=20)


@pytest.mark.parametrize("model", [PlatformRun, FreshRun, TableRun])
def test_a_stale_copy_that_is_saved_whole_erases_no_entry(model: Any, field: list[Racer]) -> None:
    run = model.objects.create(status=RunStatus.RUNNING)
    common = {"model": model.__name__, "pk": run.pk, "count": 30}
    tasks = [{"task": "append", "writer": writer, **common} for writer in range(2)]
    tasks += [{"task": "save_prompt", "writer": writer, **common} for writer in range(2)]
    race(field, tasks)
    assert_nothing_lost(eids(run), writers=2, count=30)
    assert run.input_prompt in {"0-29", "1-29"}


@pytest.mark.parametrize("model", [FreshRun, TableRun])
def test_transactions_that_cross_leave_nothing_half_written(model: Any, field: list[Racer]) -> None:
    one, two = created(model, 2, RunStatus.RUNNING)
    orders = [[one.pk, two.pk], [two.pk, one.pk]]
    tasks = [
        {"task": "append_to_both", "model": model.__name__, "pks": pks, "writer": writer}
        for writer, pks in enumerate(orders)
    ]
    errors = [outcome.result for outcome in race(field, tasks)]
    kept = [str(writer) for writer, error in enumerate(errors) if error is None]
    assert kept, "the database let both fail"
    assert set(errors) <= {None, "OperationalError"}
    if connection.vendor == "sqlite":
        assert kept == ["0", "1"], "the second waits for the first: the first statement is a write"
    assert sorted(eids(one)) == sorted(eids(two)) == kept


# Ending


@pytest.mark.parametrize(
    ("model", "rounds"), [(PlatformRun, 200), (GeneratorRun, 50), (FreshRun, 50)]
)
def test_cancel_against_finish_has_one_end_and_one_signal(
    model: Any, rounds: int, field: list[Racer]
) -> None:
    for turn, run in enumerate(created(model, rounds, RunStatus.RUNNING)):
        tasks = moves(run, "cancel", ("finish", {"output": "done"}))
        outcomes = race_in_turns(field, tasks, turn)
        winner = the_winner(outcomes)
        run.refresh_from_db()
        assert signals(outcomes) == [Sent("running", winner["status"], "t", "default")]
        assert run.status == winner["status"]
        assert run.completed_at.isoformat() == winner["completed_at"], "the end was set twice"
        assert [outcome.result["status"] for outcome in outcomes] == [run.status] * 2
        assert run.output == ("done" if run.status == RunStatus.COMPLETE else None)
        assert run.error_message == (
            "Cancelled by user" if run.status == RunStatus.CANCELLED else None
        )


def test_every_kind_of_end_races_every_other_to_one_end(field: list[Racer]) -> None:
    for turn, run in enumerate(created(PlatformJsonRun, 40, RunStatus.RUNNING)):
        tasks = moves(
            run,
            "cancel",
            ("fail", {"error": "broken"}),
            ("finish", {"metadata": {"model": "m"}}),
            ("finish", {"metadata": {'"odd" ключ': 1}}),
        )
        outcomes = race_in_turns(field, tasks, turn)
        winner = the_winner(outcomes)
        run.refresh_from_db()
        assert [sent.to_status for sent in signals(outcomes)] == [winner["status"]]
        assert run.status == winner["status"]
        assert (run.output_metadata is not None) == (run.status == RunStatus.COMPLETE)


def test_a_status_saved_by_hand_races_a_cancel_to_one_end(field: list[Racer]) -> None:
    for turn, run in enumerate(created(FreshRun, 50, RunStatus.RUNNING)):
        save = {"task": "save_status", "model": "FreshRun", "pk": run.pk, "status": "complete"}
        outcomes = race_in_turns(field, [*moves(run, "cancel"), save], turn)
        winner = the_winner(outcomes)
        run.refresh_from_db()
        assert [sent.to_status for sent in signals(outcomes)] == [winner["status"]]
        assert run.status == winner["status"]


def test_a_late_end_is_told_truly_where_the_run_came_from(field: list[Racer]) -> None:
    for turn, run in enumerate(created(GeneratorRun, 50, RunStatus.PENDING)):
        outcomes = race_in_turns(field, moves(run, "start", "cancel"), turn)
        run.refresh_from_db()
        assert run.status == RunStatus.CANCELLED
        steps = sorted(signals(outcomes), key=lambda sent: sent.to_status == RunStatus.CANCELLED)
        assert steps[0].from_status == RunStatus.PENDING
        assert all(earlier.to_status == later.from_status for earlier, later in pairwise(steps))
        assert len(steps) == sum(outcome.result["won"] for outcome in outcomes)


# Claiming


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun, FreshRun])
def test_twenty_starts_in_five_processes_give_one_claim(model: Any, field: list[Racer]) -> None:
    for run in created(model, 5, RunStatus.PENDING):
        task = {"task": "start_in_threads", "model": model.__name__, "pk": run.pk, "threads": 4}
        outcomes = race(field, [task] * 5)
        claims = [won for outcome in outcomes for won in outcome.result]
        assert len(claims) == 20
        assert claims.count(True) == 1
        assert [sent[:2] for sent in signals(outcomes)] == [("pending", "running")]
        run.refresh_from_db()
        assert run.status == RunStatus.RUNNING


@pytest.mark.parametrize("ended", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_eight_restarts_give_one_claim(ended: RunStatus, field: list[Racer]) -> None:
    for run in created(PlatformRun, 15, ended):
        outcomes = race(field, moves(run, *["restart"] * 8))
        winner = the_winner(outcomes)
        assert [sent[:2] for sent in signals(outcomes)] == [(ended, "running")]
        run.refresh_from_db()
        assert run.status == RunStatus.RUNNING
        assert run.started_at.isoformat() == winner["started_at"]


# Healing


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_racing_transitions_heal_an_old_row_to_one_trace(model: Any, field: list[Racer]) -> None:
    for turn, run in enumerate(created(model, 25, RunStatus.PENDING, None)):
        assert run.trace_id is None
        tasks = moves(run, "start", "finish", "start", ("fail", {"error": "broken"}), "cancel")
        outcomes = race_in_turns(field, tasks, turn)
        run.refresh_from_db()
        assert {sent.trace_id for sent in signals(outcomes)} == {run.trace_id}
        assert {outcome.result["trace_id"] for outcome in outcomes} == {run.trace_id}
        assert run.finished


def test_a_saved_stale_copy_keeps_the_trace_that_a_transition_gave(field: list[Racer]) -> None:
    for turn, run in enumerate(created(PlatformRun, 25, RunStatus.PENDING, None)):
        save = {"task": "save_prompt", "model": "PlatformRun", "pk": run.pk, "count": 1}
        tasks = [*moves(run, "start"), {**save, "writer": 0}, {**save, "writer": 1}]
        outcomes = race_in_turns(field, tasks, turn)
        run.refresh_from_db()
        assert [sent.trace_id for sent in signals(outcomes)] == [run.trace_id]
        assert {outcome.result["trace_id"] for outcome in outcomes} == {run.trace_id}


# When the signal comes


def test_another_process_sees_the_end_when_the_signal_comes(field: list[Racer]) -> None:
    run = FreshRun.objects.create(status=RunStatus.RUNNING)
    seen = []

    def receiver(**facts: Any) -> None:
        (outcome,) = race(field[:1], [{"task": "look", "model": "FreshRun", "pk": run.pk}])
        seen.append(outcome.result["status"])

    run_status_changed.connect(receiver, weak=False, dispatch_uid="look")
    try:
        assert run.finish("done")
    finally:
        run_status_changed.disconnect(dispatch_uid="look")
    assert seen == ["complete"]
