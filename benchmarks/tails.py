"""What a reader that follows a run pays for the newest entries, by the length of the log."""

from __future__ import annotations

from typing import Any

from benchmarks.floor import insert_by_driver
from benchmarks.models import ColumnRun, TableRun
from benchmarks.names import COLUMN, FLOOR, TABLE
from benchmarks.plans import TAIL, Plan
from benchmarks.rows import runs_with
from benchmarks.scratch import settle
from benchmarks.turns import Way, ratios, take_turns

SHORT, LONG = 100, 10_000
LOGS = {TABLE: TableRun, COLUMN: ColumnRun}


def measure(plan: Plan) -> dict[str, Any]:
    """``{log: {"long / short": figures, "floors": {length: figures}}}``"""
    ways: dict[str, Way] = {FLOOR: insert_by_driver()}
    for length in (SHORT, LONG):
        for log, model in LOGS.items():
            ways[f"{log} at {length}"] = read_tail(next(runs_with(length, model)), length)
    settle()
    turns = dict.fromkeys(ways, plan.tails) | {f"{COLUMN} at {LONG}": max(1, plan.tails // 8)}
    found = take_turns(ways, turns, plan.repeats)
    return {
        log: {
            "long / short": ratios(found[f"{log} at {LONG}"], found[f"{log} at {SHORT}"]),
            "floors": {
                length: ratios(found[f"{log} at {length}"], found[FLOOR])
                for length in (SHORT, LONG)
            },
        }
        for log in LOGS
    }


def read_tail(run: Any, length: int) -> Way:
    assert len(run.events_after(length - TAIL)) == TAIL
    return lambda: run.events_after(length - TAIL)
