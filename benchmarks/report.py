"""The figures as tables in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

import django

from benchmarks.bars import BARS, Bar, Parts
from benchmarks.names import BY_ORM, EACH, HEARTBEAT, ONE, OURS, WITH, WITHOUT
from benchmarks.plans import FULL, PER_FLUSH, QUICK, TAIL, WRITERS
from benchmarks.turns import Figures
from scripts.databases import LABELS, Database


class Measured(NamedTuple):
    """A database that answered, and its figures."""

    database: Database
    parts: Parts

    @property
    def label(self) -> str:
        return LABELS[self.database.name]

    def has(self, part: str) -> bool:
        return part in self.parts


def report(
    found: Sequence[tuple[Database, Parts | None]], load: float, *, quick: bool = False
) -> str:
    measured = [Measured(database, parts) for database, parts in found if parts is not None]
    blocks = [
        *head(found, load, quick),
        *bars(measured),
        *appends([each for each in measured if each.has("appends")]),
        *writers([each for each in measured if each.has("writers")]),
        *whole_runs([each for each in measured if each.has("whole_runs")]),
        *peers([each for each in measured if each.has("peers")]),
        *tails([each for each in measured if each.has("tails")]),
        *memory([each for each in measured if each.has("memory")]),
        *ag_ui([each for each in measured if each.has("ag_ui")]),
        *threads([each for each in measured if each.has("threads")]),
    ]
    return "\n\n".join(blocks) + "\n"


def head(found: Sequence[tuple[Database, Parts | None]], load: float, quick: bool) -> Iterator[str]:
    yield "# What a write costs"
    if quick:
        yield "**A quick try: too few repeats for the figures to mean anything.**"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield (
        f"Measured by `make bench` on {datetime.now(UTC):%Y-%m-%d}, with Python"
        f" {platform.python_version()} and Django {django.__version__}, on {cores} cores of"
        f" {platform.machine()} that had a load of {load:.1f} before."
    )
    yield (
        "Figures are ratios, measured side by side in one run, the ways taking turns in shuffled"
        f" order. Each is the median of {(QUICK if quick else FULL).repeats} repeats, with the"
        " lowest and the highest behind it. A **floor** is one INSERT of 250 bytes through the"
        " driver, in autocommit, at the database's default durability (SQLite: write-ahead log,"
        " full sync)."
    )
    rows = []
    for database, parts in found:
        if parts is None:
            rows.append([database.label, "left out: " + str(database.left_out), ""])
            continue
        floor = f"{median(parts['appends']['floor']) * 1e3:.2f}" if "appends" in parts else ""
        rows.append([database.label.split(" at ")[0], parts["driver"], floor])
    yield table(["database", "driver", "a floor in ms"], rows)


def bars(measured: Sequence[Measured]) -> Iterator[str]:
    yield "## The bars"
    rows = [[bar.says, *(verdict(bar, each) for each in measured)] for bar in BARS]
    yield table(["bar", *(each.label for each in measured)], rows)


def verdict(bar: Bar, each: Measured) -> str:
    name = each.database.name
    try:
        figures = bar.figures(each.parts)
    except KeyError:
        figures = []
    if not figures:
        return "not measured" if name in bar.limits else ""
    if name not in bar.limits:
        return shown(figures)
    word = "met" if bar.met(name, figures) else "**missed**"
    return f"{shown(figures)} {bar.limit(name)}: {word}"


def appends(measured: Sequence[Measured]) -> Iterator[str]:
    for n, each in enumerate(measured):
        if n == 0:
            yield "## One append, by the length of the log"
            yield (
                "In floors. Rails' way locks, reads and rewrites the log through the ORM;"
                f" a buffered figure is for one entry of a flush of {PER_FLUSH}."
            )
        floors = each.parts["appends"]["floors"]
        lengths = list(next(iter(floors.values())))
        rows = [[way, *map(shown, by_length.values())] for way, by_length in floors.items()]
        yield table([each.label, *(f"{int(length):,}" for length in lengths)], rows)


def writers(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    yield f"## {WRITERS} processes at once"
    yield (
        "Entries stored in the time of one floor, the slowest hundredth of the appends in floors,"
        " and what the logs had lost, had twice or lacked afterwards, in all repeats."
    )
    headings = ["", "log", "one run", "a run each", "one / each", "p99, one", "p99, each", "faults"]
    rows = []
    for each in measured:
        for log, figures in each.parts["writers"].items():
            one, own = figures[ONE], figures[EACH]
            faults = [f"{count} {kind}" for kind, count in figures["faults"].items() if count]
            rows.append(
                [
                    each.label,
                    log,
                    shown(one["a_floor"]),
                    shown(own["a_floor"]),
                    shown([a / b for a, b in zip(one["rate"], own["rate"], strict=True)]),
                    shown(one["p99"]),
                    shown(own["p99"]),
                    ", ".join(faults) or "none",
                ]
            )
    yield table(headings, rows)


def whole_runs(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    yield "## A whole run"
    yield "BEGIN and COMMIT count as statements."
    rows = [
        [each.label, way, shown(cost["floors"]), str(cost["statements"]), rate(cost["rate"])]
        for each in measured
        for way, cost in each.parts["whole_runs"].items()
    ]
    yield table(["", "run", "floors", "statements", "runs a second"], rows)


def peers(measured: Sequence[Measured]) -> Iterator[str]:
    for each in measured:
        found = each.parts["peers"]
        yield "## The same record in other projects"
        yield f"On the same {each.label}, from the prompt to the answer, about 250 bytes each."
        beside = {OURS: [1.0], **found["of ours"]}
        rows = [
            [name, shown(floors), shown(beside[name])] for name, floors in found["floors"].items()
        ]
        rows += [[name, "left out", why] for name, why in found["left out"].items()]
        yield table(["", "floors", "its throughput / ours"], rows)
        yield "\n".join(f"- {name}: {text}" for name, text in found["includes"].items())


def tails(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    yield f"## The last {TAIL} entries, in floors"
    rows = [
        [each.label, log, *map(shown, cost["floors"].values()), shown(cost["long / short"])]
        for each in measured
        for log, cost in each.parts["tails"].items()
    ]
    lengths = next(iter(measured[0].parts["tails"].values()))["floors"]
    yield table(["", "", *(f"of {int(length):,}" for length in lengths), "ratio"], rows)


def memory(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    yield "## Memory"
    yield (
        f"By how many MB a process grows, at the most, that appends {FULL.followed:,} entries to"
        " the table log and reads them as they come and then again in pages. Measured once."
    )
    rows = [[each.label, f"{each.parts['memory']['MB']:.1f}"] for each in measured]
    yield table(["", "MB"], rows)


def ag_ui(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    few, many = measured[0].parts["ag_ui"]["runs"]
    yield "## The store of AG-UI runs"
    yield (
        f"In floors, in a table of {few:,} runs, with the statements, BEGIN and COMMIT apart,"
        f" behind them; and in one of {many:,} / of {few:,}."
    )
    rows = []
    for method in measured[0].parts["ag_ui"]["floors"]:
        parts = [each.parts["ag_ui"] for each in measured]
        cells = [f"{shown(one['floors'][method])}; {one['statements'][method]}" for one in parts]
        rows.append([method, *cells])
    for method in measured[0].parts["ag_ui"]["many / few"]:
        cells = [shown(each.parts["ag_ui"]["many / few"][method]) for each in measured]
        rows.append([f"{method}, {many:,} / {few:,}", *cells])
    yield table(["", *(each.label for each in measured)], rows)
    yield from streams([each for each in measured if each.parts["ag_ui"]["stream"]])


def streams(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    found = {each.label: each.parts["ag_ui"]["stream"] for each in measured}
    frames = next(iter(found.values()))["frames"]
    yield (
        f"A run that streams {frames:,} frames through the endpoint, by the store behind it, with"
        f" a sign of life each {HEARTBEAT} s, which are the writes beside its start and end."
    )
    headings = ["", *(f"{store}, frames a second" for store in (WITH, WITHOUT)), "ratio", "writes"]
    rows = [
        [
            *(label, rate(stream["rate"][WITH]), rate(stream["rate"][WITHOUT])),
            *(shown(stream["kept"]), shown(stream["updates"])),
        ]
        for label, stream in found.items()
    ]
    yield table(headings, rows)


def threads(measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    found = [each.parts["threads"] for each in measured]
    few, many = found[0]["runs"]
    yield "## The store of the runs of threads"
    yield (
        f"In floors, in a table of {few:,} runs, with the statements, BEGIN and COMMIT apart,"
        " behind them. In brackets is what does the same with the ORM alone: a write in two steps,"
        " which others may come between."
    )
    labels = ["", *(each.label for each in measured)]
    rows = [
        [
            f"({way})" if way in BY_ORM.values() else way,
            *(f"{shown(one['floors'][way])}; {one['statements'][way]}" for one in found),
        ]
        for way in found[0]["floors"]
    ]
    yield table(labels, rows)
    yield f"Ratios: of time, to that of the ORM; and with {many:,} runs / with {few:,}."
    rows = [
        [f"{ours} / {theirs}", *(shown(one["beside the ORM"][ours]) for one in found)]
        for ours, theirs in BY_ORM.items()
    ]
    rows += [
        [f"find_active_run of a thread {kind}", *(shown(one["many / few"][kind]) for one in found)]
        for kind in found[0]["many / few"]
    ]
    yield table(labels, rows)


def shown(figures: Figures) -> str:
    if len(figures) == 1:
        return number(figures[0])
    low, high = number(min(figures)), number(max(figures))
    return f"{number(median(figures))} ({low} to {high})"


def rate(figures: Figures) -> str:
    return number(median(figures))


def number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(headings)]
    lines.append(["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *map(list, rows)])
