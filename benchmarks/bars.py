"""What the project promises, and whether a run of the benchmarks kept it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

from benchmarks.names import (
    BUFFERED_COLUMN,
    BUFFERED_TABLE,
    BY_ORM,
    EACH,
    IDLE,
    ONE,
    PLAIN,
    RUNNING,
    TABLE,
    column,
    rails,
)
from benchmarks.turns import Figures, ratios

Parts: TypeAlias = Mapping[str, Any]
"""The figures of one database, as JSON gives them back: lengths are text."""

EVERYWHERE = ("postgresql", "mariadb", "sqlite")


@dataclass(frozen=True)
class Bar:
    says: str
    limits: Mapping[str, float]
    """For the databases it holds on; on others the figure is only shown."""
    figures: Callable[[Parts], Figures]
    """Raises KeyError when it was not measured."""
    at_least: bool = False

    def limit(self, database: str) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limits[database]:g}"

    def met(self, database: str, figures: Figures) -> bool:
        limit, figure = self.limits[database], median(figures)
        return figure >= limit if self.at_least else figure <= limit


def on(limit: float, databases: tuple[str, ...] = ("postgresql",)) -> dict[str, float]:
    return dict.fromkeys(databases, limit)


def floors(way: str, length: int) -> Callable[[Parts], Figures]:
    return lambda parts: parts["appends"]["floors"][way][str(length)]


def append_beside_rails(kind: str) -> Callable[[Parts], Figures]:
    ours, theirs = floors(column(kind), 1_000), floors(rails(kind), 1_000)
    return lambda parts: ratios(ours(parts), theirs(parts))


def append_at_10_000_beside_0(parts: Parts) -> Figures:
    return ratios(floors(TABLE, 10_000)(parts), floors(TABLE, 0)(parts))


def one_run_beside_eight(parts: Parts) -> Figures:
    log = parts["writers"][TABLE]
    return ratios(log[ONE]["rate"], log[EACH]["rate"])


def ag_ui(figures: str, method: str) -> Callable[[Parts], Figures]:
    return lambda parts: parts["ag_ui"][figures][method]


def ag_ui_statements(method: str) -> Callable[[Parts], Figures]:
    return lambda parts: [parts["ag_ui"]["statements"][method]]


def threads(figures: str, name: str) -> Callable[[Parts], Figures]:
    return lambda parts: parts["threads"][figures][name]


def threads_statements(method: str) -> Callable[[Parts], Figures]:
    return lambda parts: [parts["threads"]["statements"][method]]


def bars_of_threads() -> Iterator[Bar]:
    for method in (*BY_ORM, "find_active_run"):
        says = f"thread run store, {method}"
        yield Bar(f"{says}, in floors", on(3), threads("floors", method))
        yield Bar(f"{says}, statements", on(2, EVERYWHERE), threads_statements(method))
    for kind in (RUNNING, IDLE):
        yield Bar(
            f"thread run store, find_active_run of a thread {kind}, among 1,000,000 runs / 1,000",
            on(1.5),
            threads("many / few", kind),
        )


BARS = (
    Bar(
        "table log, an append at 10,000 entries / at 0",
        on(1.25),
        append_at_10_000_beside_0,
    ),
    Bar(
        "table log, an append at 10,000 entries, in floors",
        {"postgresql": 1.6, "sqlite": 1.6, "mariadb": 2.5},
        floors(TABLE, 10_000),
    ),
    Bar(
        "column log (json), an append at 1,000 entries / Rails' way",
        on(0.5, EVERYWHERE),
        append_beside_rails("json"),
    ),
    Bar(
        "column log (jsonb), an append at 1,000 entries / Rails' way",
        on(0.5),
        append_beside_rails("jsonb"),
    ),
    Bar(
        "buffered, table log, an entry at 10,000 entries, in floors",
        on(0.15),
        floors(BUFFERED_TABLE, 10_000),
    ),
    Bar(
        "buffered, column log, an entry at 0 entries, in floors",
        on(0.15),
        floors(BUFFERED_COLUMN, 0),
    ),
    Bar(
        "create + start + finish, in floors",
        on(7),
        lambda parts: parts["whole_runs"][PLAIN]["floors"],
    ),
    Bar(
        "create + start + finish, statements",
        on(3),
        lambda parts: [parts["whole_runs"][PLAIN]["statements"]],
    ),
    Bar(
        "create + start + finish, throughput / that of the fastest peer",
        on(1.3),
        lambda parts: parts["peers"]["ours / fastest"],
        at_least=True,
    ),
    Bar(
        "8 processes, table log: entries lost, twice or refused, seqs twice or missing",
        on(0, EVERYWHERE),
        lambda parts: [sum(parts["writers"][TABLE]["faults"].values())],
    ),
    Bar(
        "8 processes, table log: throughput on one run / on 8 runs",
        on(0.4, EVERYWHERE),
        one_run_beside_eight,
        at_least=True,
    ),
    Bar(
        "table log, the last 50 of 10,000 entries / the last 50 of 100",
        on(1.5),
        lambda parts: parts["tails"][TABLE]["long / short"],
    ),
    Bar(
        "table log, memory of appending and following 10,000 entries, in MB",
        on(30, EVERYWHERE),
        lambda parts: [parts["memory"]["MB"]],
    ),
    Bar("AG-UI store, a reserve, in floors", on(4), ag_ui("floors", "reserve")),
    *(
        Bar(f"AG-UI store, a {method}, statements", on(most, EVERYWHERE), ag_ui_statements(method))
        for method, most in {"reserve": 3, "redeem": 4, "settle": 1}.items()
    ),
    *(
        Bar(
            f"AG-UI store, {method} among 1,000,000 runs / 1,000",
            on(1.5),
            ag_ui("many / few", method),
        )
        for method in ("reserve", "latest_run")
    ),
    Bar(
        "AG-UI endpoint, rows written a heartbeat in a stream of 2,000 frames",
        on(1, EVERYWHERE),
        ag_ui("stream", "updates a heartbeat"),
    ),
    *bars_of_threads(),
)
