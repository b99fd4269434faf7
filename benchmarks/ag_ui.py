"""The store of AG-UI runs: its writes in floors, its statements, and a table of many runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks import streams
from benchmarks.floor import insert_by_driver
from benchmarks.names import FLOOR
from benchmarks.plans import Plan
from benchmarks.scratch import settle
from benchmarks.turns import Figures, Way, ratios, take_turns
from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore

SCOPE: Final = "tenant"
RUNS_A_THREAD: Final = 10
APPROVED: Final = Decision(status="resolved", payload={"approved": True})
STATE: Final = {"invoices": list(range(40))}

store = DatabaseStore()
number = count()


def measure(plan: Plan) -> dict[str, Any]:
    """``{"floors": {method: figures}, "statements": {method: count}, "many / few": {method:
    figures}, "runs": [few, many], "stream": figures of a stream}``

    BEGIN and COMMIT do not count as statements.
    """
    few, many = plan.stored_runs
    fill(0, few)
    floors, statements = costs(methods(plan), plan)
    short, _ = costs(growing(few), plan)
    fill(few, many)
    long, _ = costs(growing(many), plan)
    return {
        "floors": floors,
        "statements": statements,
        "many / few": {name: ratios(long[name], short[name]) for name in short},
        "runs": [few, many],
        "stream": streams.measure(plan),
    }


def costs(ways: dict[str, Way], plan: Plan) -> tuple[dict[str, Figures], dict[str, int]]:
    """In floors of the same turns, and in statements."""
    settle()
    every = {FLOOR: insert_by_driver(), **ways}
    turns = {name: plan.floors if name == FLOOR else plan.runs for name in every}
    found = take_turns(every, turns, plan.repeats)
    floors = {name: ratios(found[name], found[FLOOR]) for name in ways}
    return floors, {name: len(statements_of(way)) for name, way in ways.items()}


def statements_of(way: Way) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        way()
    return [each["sql"] for each in captured if not CONTROL.match(each["sql"])]


CONTROL: Final = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET ")


def methods(plan: Plan) -> dict[str, Way]:
    """A call of each method, on rows of its own."""
    calls = plan.runs * plan.repeats + 2
    waiting, held = made(asked, calls), made(holding, calls)
    answered, ended = made(asked, calls), made(started, calls)
    reserved, alive = made(reserve, calls), started()
    attached = reserve()

    def attach() -> None:
        assert store.reserve(SCOPE, attached.thread_id, attached.run_id, "d").attached

    def redeem() -> None:
        asking = next(waiting)
        assert store.redeem_interrupt(SCOPE, asking.thread_id, "i", APPROVED, run_id="taker").holds

    def act() -> None:
        assert store.settle(SCOPE, next(held).thread_id, "i", "taker")

    def answer() -> None:
        assert admit(next(answered).thread_id, "taker").new

    def start() -> None:
        store.save(next(reserved).start(store.now(), STATE))

    def end() -> None:
        store.save(next(ended).finish("succeeded", store.now()))

    return {
        "reserve": reserve,
        "reserve, attached": attach,
        "admit": lambda: store.admit(SCOPE, f"new-{next(number)}", "run", "d"),
        "admit, with an answer": answer,
        "redeem": redeem,
        "settle": act,
        "heartbeat": lambda: store.heartbeat(alive),
        "save, a start": start,
        "save, an end": end,
    }


def growing(runs: int) -> dict[str, Way]:
    """What must cost the same in a table of any size."""
    threads = count(1)

    def latest_run() -> None:
        thread = next(threads) * 7919 % (runs // RUNS_A_THREAD)
        assert store.latest_run(SCOPE, f"thread-{thread}") is not None

    return {"reserve": reserve, "latest_run": latest_run}


def made(make: Callable[[], RunRecord], calls: int) -> Iterator[RunRecord]:
    return iter([make() for _ in range(calls)])


def reserve() -> RunRecord:
    return store.reserve(SCOPE, f"new-{next(number)}", "run", "d", trace_id="trace").record


def started() -> RunRecord:
    return store.save(reserve().start(store.now(), STATE))


def asked() -> RunRecord:
    return store.save(started().interrupted([Interrupt(id="i", reason="tool_call")], store.now()))


def holding() -> RunRecord:
    asking = asked()
    store.redeem_interrupt(SCOPE, asking.thread_id, "i", APPROVED, run_id="taker")
    return asking


def admit(thread_id: str, run_id: str) -> Any:
    entry = {"interruptId": "i", "status": "resolved", "payload": {"approved": True}}
    return store.admit(SCOPE, thread_id, run_id, "d", [entry])


def fill(stored: int, wanted: int) -> None:
    """Add runs that ended, ten to a thread, by the database alone."""
    table = connection.ops.quote_name(ReservedRun._meta.db_table)
    series = SERIES[connection.vendor].format(first=stored + 1, last=wanted)
    moment = "'2026-01-01 00:00:00'"
    times = ("reserved_at", "created_at", "updated_at", "alive_at")
    names = f"scope, thread_id, run_id, digest, status, sequence, questions, {', '.join(times)}"
    moments = ", ".join([moment] * len(times))
    values = f"'{SCOPE}', {{thread}}, {{run}}, 'd', 'succeeded', 1, 0, {moments}"
    joined = "CONCAT('{}', {})" if connection.vendor == "mysql" else "'{}' || {}"
    within = "FLOOR(n / {})" if connection.vendor == "mysql" else "(n / {})"
    values = values.format(
        thread=joined.format("thread-", within.format(RUNS_A_THREAD)),
        run=joined.format("run-", "n"),
    )
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM {series}")


SERIES: Final = {
    "postgresql": "generate_series({first}, {last}) AS n",
    "mysql": "(SELECT seq AS n FROM seq_{first}_to_{last}) AS numbers",
    "sqlite": (
        "(WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL"
        " SELECT n + 1 FROM numbers WHERE n < {last}) SELECT n FROM numbers)"
    ),
}
