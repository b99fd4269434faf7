"""One append, by the length of the log it is added to.

Rails' way (lock, read and rewrite, through the ORM) and the column log over the tables that Rails
made, the table log, and both logs through a buffer, for one entry of a flush. All ways at all
lengths take turns in one run, each on rows of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.db import connection, transaction

from benchmarks.entries import arguments
from benchmarks.floor import insert_by_driver
from benchmarks.models import RailsJsonRun, RailsRun, TableRun
from benchmarks.names import BUFFERED_COLUMN, BUFFERED_TABLE, FLOOR, TABLE, column, rails
from benchmarks.plans import PER_FLUSH, Plan
from benchmarks.rows import Runs, runs_with
from benchmarks.scratch import settle
from benchmarks.turns import Figures, Way, ratios, take_turns
from solid_runs.events import event_entry


class Contestant(NamedTuple):
    name: str
    model: Any
    write: Callable[[Runs], Way]
    turns: int
    entries: int = 1
    """What one turn adds."""


def measure(plan: Plan) -> dict[str, Any]:
    """``{"floor": seconds, "floors": {way: {length: floors an entry}}}``"""
    ways, turns = {FLOOR: insert_by_driver()}, {FLOOR: plan.floors}
    field: dict[str, tuple[int, Contestant]] = {}
    for length in plan.lengths:
        for each in contestants(plan, length):
            name = f"{each.name} at {length}"
            calls = each.turns * plan.repeats + 1
            runs = runs_with(length, each.model, added=calls * each.entries, calls=calls)
            field[name], ways[name], turns[name] = (length, each), each.write(runs), each.turns
    settle()
    found = take_turns(ways, turns, plan.repeats)
    floors: dict[str, dict[int, Figures]] = {}
    for name, (length, each) in field.items():
        figures = [figure / each.entries for figure in ratios(found[name], found[FLOOR])]
        floors.setdefault(each.name, {})[length] = figures
    return {"floor": found[FLOOR], "floors": floors}


def contestants(plan: Plan, length: int) -> Iterator[Contestant]:
    few = plan.column_appends_at(length)
    models: dict[str, Any] = {"json": RailsJsonRun}
    if connection.vendor == "postgresql":
        models = {"jsonb": RailsRun, **models}
    for kind, model in models.items():
        yield Contestant(rails(kind), model, lock_read_rewrite, few)
        yield Contestant(column(kind), model, append, few)
    best, flushes = next(iter(models.values())), min(few, plan.flushes)
    yield Contestant(TABLE, TableRun, append, plan.table_appends)
    yield Contestant(BUFFERED_COLUMN, best, append_buffered, flushes, PER_FLUSH)
    yield Contestant(BUFFERED_TABLE, TableRun, append_buffered, flushes, PER_FLUSH)


def append(runs: Runs) -> Way:
    made = arguments()
    return lambda: next(runs).append_event(**next(made))


def append_buffered(runs: Runs) -> Way:
    made = arguments()

    def flush() -> None:
        run = next(runs)
        with run.buffer_events(max_entries=PER_FLUSH):
            for _ in range(PER_FLUSH):
                run.append_event(**next(made))

    return flush


def lock_read_rewrite(runs: Runs) -> Way:
    """As Rails does it, by hand and as lean as the ORM allows: the row's log and nothing else."""
    made = arguments()

    def rewrite() -> None:
        run = next(runs)
        rows = type(run).objects.filter(pk=run.pk)
        entry = event_entry(**next(made))
        with transaction.atomic():
            log = rows.select_for_update().values_list(run.events_column, flat=True).get()
            rows.update(**{run.events_column: [*log, entry]})

    return rewrite
