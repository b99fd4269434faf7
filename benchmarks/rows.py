"""Runs whose logs have a given length, to be appended to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from math import ceil
from typing import Any, TypeAlias

from benchmarks.entries import arguments, entries
from benchmarks.models import TableRun

Runs: TypeAlias = Iterator[Any]
"""Over and over."""


def runs_with(length: int, model: Any, *, added: int = 0, calls: int = 1) -> Runs:
    """Runs with logs of this length, for calls that together add so many entries.

    Enough of them that no log grows by more than a twentieth; one for each call at most.
    """
    count = min(calls, max(1, ceil(20 * added / length))) if length else calls
    return cycle((table_runs if model is TableRun else column_runs)(length, model, count))


def column_runs(length: int, model: Any, count: int) -> list[Any]:
    log = entries(length)
    runs = [model(status="running", **{model.events_column: log}) for _ in range(count)]
    made = model.objects.bulk_create(runs, batch_size=10)
    stored = model.objects.filter(pk__in=[run.pk for run in made])
    return list(stored.defer(model.events_column))


def table_runs(length: int, model: Any, count: int) -> list[Any]:
    made = arguments(seed=1)
    runs = [model.objects.create(status="running") for _ in range(count)]
    for run in runs:
        with run.buffer_events(max_entries=1000):
            for _ in range(length):
                run.append_event(**next(made))
    return runs
