"""Eight processes that append at once, to one run and to a run each.

Each process has a connection of its own. They start together; the throughput is all entries over
the time from the first start to the last end. Afterwards the logs are read back and compared with
what every process was told had been stored.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from statistics import median, quantiles
from typing import Any

from django.db import DatabaseError, connection, connections

from benchmarks.entries import arguments
from benchmarks.floor import insert_by_driver
from benchmarks.models import ColumnRun, TableRun
from benchmarks.names import COLUMN, EACH, ONE, TABLE
from benchmarks.plans import WRITERS, Plan
from benchmarks.scratch import settle
from benchmarks.turns import seconds

LOGS = {TABLE: TableRun, COLUMN: ColumnRun}
PATIENCE = 120


@dataclass
class Written:
    """What one process saw: when it began and ended, and what was acknowledged."""

    begun: float = 0.0
    ended: float = 0.0
    latencies: list[float] = field(default_factory=list)
    eids: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def measure(plan: Plan) -> dict[str, Any]:
    """``{log: {ONE: figures, EACH: figures, "faults": {kind: count}}}``

    The figures are "a_floor", entries stored in the time of one floor; "p99", that of an append
    in floors; and "rate", entries a second.
    """
    each = {TABLE: plan.table_entries_a_writer, COLUMN: plan.column_entries_a_writer}
    found: dict[str, Any] = {log: {ONE: {}, EACH: {}, "faults": {}} for log in LOGS}
    rng = random.Random(0)
    settle()
    for _ in range(plan.repeats):
        floor = median(seconds(insert) for insert in [insert_by_driver()] * plan.floors)
        races = [(log, shape) for log in LOGS for shape in (ONE, EACH)]
        rng.shuffle(races)
        for log, shape in races:
            figures, faults = race(LOGS[log], shape, each[log], floor)
            for name, figure in figures.items():
                found[log][shape].setdefault(name, []).append(figure)
            found[log]["faults"] = Counter(found[log]["faults"]) + faults
    return found


def race(model: Any, shape: str, each: int, floor: float) -> tuple[dict[str, float], Counter[str]]:
    count = 1 if shape == ONE else WRITERS
    runs = [model.objects.create(status="running") for _ in range(count)]
    pks = [runs[n % count].pk for n in range(WRITERS)]
    written = start_together(model, pks, each)
    stored = sum(len(writer.eids) for writer in written)
    lasted = max(writer.ended for writer in written) - min(writer.begun for writer in written)
    latencies = [latency for writer in written for latency in writer.latencies]
    figures = {
        "a_floor": stored / lasted * floor,
        "p99": quantiles(latencies, n=100)[98] / floor,
        "rate": stored / lasted,
    }
    faults = Counter({"refused": sum(len(writer.errors) for writer in written)})
    for run in runs:
        mine = [writer for writer, pk in zip(written, pks, strict=True) if pk == run.pk]
        faults += faults_of(run, [eid for writer in mine for eid in writer.eids])
    return figures, faults


def faults_of(run: Any, acknowledged: Iterable[str]) -> Counter[str]:
    """What the log holds beside what the writers were told; empty if it is as it should be."""
    numbered = run.events_after(0)
    seqs = Counter(seq for seq, _ in numbered)
    eids = Counter(entry["eid"] for _, entry in numbered)
    return Counter(
        {
            "lost": len(set(acknowledged) - set(eids)),
            "twice": sum(count - 1 for count in eids.values()),
            "seq twice": sum(count - 1 for count in seqs.values()),
            "seq missing": len(set(range(1, max(seqs, default=0) + 1)) - set(seqs)),
        }
    )


def start_together(model: Any, pks: list[Any], each: int) -> list[Written]:
    """Fork a process for each key and wait for what they saw."""
    connections.close_all()  # a child must not talk on its parent's connection
    processes = multiprocessing.get_context("fork")
    barrier = processes.Barrier(len(pks))
    ends, children = [], []
    for number, pk in enumerate(pks):
        mine, theirs = processes.Pipe(duplex=False)
        child = processes.Process(target=write, args=(theirs, barrier, model, pk, number, each))
        child.start()
        theirs.close()
        ends.append(mine)
        children.append(child)
    written = [end.recv() for end in ends]
    for child in children:
        child.join()
    return written


def write(end: Connection, barrier: Barrier, model: Any, pk: Any, number: int, each: int) -> None:
    """The life of a child."""
    run = model.objects.get(pk=pk)
    made, seen = arguments(seed=number), Written()
    events = [{**next(made), "eid": f"{number}-{n}"} for n in range(each)]
    barrier.wait(PATIENCE)
    seen.begun = time.perf_counter()
    for event in events:
        begun = time.perf_counter()
        try:
            run.append_event(**event)
        except DatabaseError as error:
            seen.errors.append(str(error))
        else:
            seen.eids.append(event["eid"])
        seen.latencies.append(time.perf_counter() - begun)
    seen.ended = time.perf_counter()
    connection.close()
    end.send(seen)
    end.close()
