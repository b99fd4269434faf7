"""The store of AG-UI runs: its writes in floors, its statements, and a table of many runs."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from benchmarks import filling, streams
from benchmarks.costs import costs, made
from benchmarks.filling import divided, numbered
from benchmarks.plans import Plan
from benchmarks.turns import Way, ratios
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
    found = costs(methods(plan), plan)
    short = costs(growing(few), plan).floors
    fill(few, many)
    long = costs(growing(many), plan).floors
    return {
        "floors": found.floors,
        "statements": found.statements,
        "many / few": {name: ratios(long[name], short[name]) for name in short},
        "runs": [few, many],
        "stream": streams.measure(plan),
    }


def methods(plan: Plan) -> dict[str, Way]:
    """A call of each method, on rows of its own."""
    waiting, held = made(asked, plan), made(holding, plan)
    answered, ended = made(asked, plan), made(started, plan)
    reserved, alive = made(reserve, plan), started()
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
    """Add runs that ended, ten to a thread."""
    values = {
        "scope": f"'{SCOPE}'",
        "thread_id": numbered("thread-", divided("n", RUNS_A_THREAD)),
        "run_id": numbered("run-", "n"),
        "digest": "'d'",
        "status": "'succeeded'",
        "sequence": "1",
        "questions": "0",
    }
    times = ("reserved_at", "created_at", "updated_at", "alive_at")
    values |= dict.fromkeys(times, "'2026-01-01 00:00:00'")
    filling.fill(ReservedRun, values, stored + 1, wanted)
