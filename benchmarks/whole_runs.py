"""A run from its creation to its end, without entries and with twenty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.entries import arguments
from benchmarks.floor import insert_by_driver
from benchmarks.models import ColumnRun, TableRun
from benchmarks.names import COLUMN, FLOOR, PLAIN, TABLE
from benchmarks.plans import ENTRIES_A_RUN, Plan
from benchmarks.scratch import settle
from benchmarks.turns import Way, ratios, take_turns

PROMPT, ANSWER = "Which invoices are overdue? " * 9, "There are three overdue invoices. " * 7
"""About 250 bytes each."""


def measure(plan: Plan) -> dict[str, Any]:
    """``{way: {"floors": figures, "rate": runs a second, "statements": count}}``

    BEGIN and COMMIT count as statements.
    """
    ways = {
        FLOOR: insert_by_driver(),
        PLAIN: record(TableRun),
        f"{PLAIN} ({COLUMN})": record(ColumnRun),
        f"with {ENTRIES_A_RUN} entries, {COLUMN}": record_with_entries(ColumnRun),
        f"with {ENTRIES_A_RUN} entries, {TABLE}": record_with_entries(TableRun),
        f"with {ENTRIES_A_RUN} entries, {TABLE}, buffered": record_buffered(TableRun),
    }
    settle()
    turns = {name: plan.floors if name == FLOOR else plan.runs for name in ways}
    found = take_turns(ways, turns, plan.repeats)
    return {
        name: {
            "floors": ratios(found[name], found[FLOOR]),
            "rate": [1 / figure for figure in found[name]],
            "statements": statements_of(way),
        }
        for name, way in ways.items()
        if name != FLOOR
    }


def statements_of(way: Way) -> int:
    with CaptureQueriesContext(connection) as captured:
        way()
    return len(captured)


def begun(model: Any) -> Any:
    run = model.objects.create(agent_name="invoices", input_prompt=PROMPT)
    run.start()
    return run


def end(run: Any) -> None:
    run.finish(output=ANSWER, input_tokens=1200, output_tokens=300)


def record(model: Any) -> Way:
    return lambda: end(begun(model))


def record_with_entries(model: Any) -> Way:
    made = arguments()

    def work() -> None:
        run = begun(model)
        append_some(run, made)
        end(run)

    return work


def record_buffered(model: Any) -> Way:
    made = arguments()

    def work() -> None:
        run = begun(model)
        with run.buffer_events():
            append_some(run, made)
        end(run)

    return work


def append_some(run: Any, made: Iterator[dict[str, Any]]) -> None:
    for _ in range(ENTRIES_A_RUN):
        run.append_event(**next(made))
