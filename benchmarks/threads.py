"""The store of the runs of threads: in floors, beside the ORM alone, and among many runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from benchmarks import filling
from benchmarks.costs import Costs, costs, made
from benchmarks.filling import divided, numbered
from benchmarks.names import BY_ORM, IDLE, RUNNING
from benchmarks.plans import Plan
from benchmarks.scratch import second_database, settle
from benchmarks.turns import Figures, Way, ratios, take_turns
from solid_runs.threads.claims import Claim
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.stores.database import DatabaseRunStore

SCOPE: Final = "tenant"
RUNS_A_THREAD: Final = 10
RUNS_OF_IDLE: Final = 500
"""All of one thread, and ended. Of the other threads each has a running run, its last."""
store = DatabaseRunStore(SCOPE)
number: Iterator[int] = count()


def measure(plan: Plan) -> dict[str, Any]:
    """``{"floors": {way: figures}, "statements": {way: count}, "beside the ORM": {method: figures},
    "many / few": {thread: figures}, "runs": [few, many]}``

    BEGIN and COMMIT do not count as statements.
    """
    few, many = plan.stored_runs
    fill(0, few)
    found = costs({**methods(plan), **by_orm(plan)}, plan)
    fill(few, many)
    return {
        "floors": found.floors,
        "statements": found.statements,
        "beside the ORM": beside_the_orm(found),
        "many / few": many_beside_few(plan),
        "runs": [few, many],
    }


def methods(plan: Plan) -> dict[str, Way]:
    """A call of each method; what ends a run has one of its own each time."""
    run, claim = created(), claimed()
    running, ended = made(created, plan), made(claimed, plan)
    threads = active_threads(plan.stored_runs[0])
    return {
        "create_or_resume": created,
        "create_or_resume, of one that is there": lambda: store.create_or_resume(run, "t", 1),
        "update": lambda: store.update(run, usual()),
        "update, an end": lambda: store.update(next(running), end()),
        "get": lambda: store.get(run),
        "find_active_run": lambda: store.find_active_run(next(threads)),
        "claim": lambda: store.claim(run),
        "touch of a claim": claim.touch,
        "update of a claim": lambda: claim.update(usual()),
        "update of a claim, an end": lambda: next(ended).update(end()),
    }


def by_orm(plan: Plan) -> dict[str, Way]:
    """What a host would write itself, in two steps that others may come between."""
    run, running = created(), made(created, plan)

    def create(run_id: str) -> Any:
        first = {"thread_id": "thread", "started_at": 1, "status": "running"}
        return ThreadRun.objects.get_or_create(scope=SCOPE, run_id=run_id, defaults=first)

    def get(run_id: str) -> ThreadRun:
        return ThreadRun.objects.get(scope=SCOPE, run_id=run_id)

    def save(run_id: str, patch: dict[str, Any]) -> None:
        row = get(run_id)
        for name, value in patch.items():
            setattr(row, name, value)
        row.save()

    ways: list[Way] = [
        lambda: create(f"new-{next(number)}"),
        lambda: create(run),
        lambda: save(run, usual()),
        lambda: save(next(running), end()),
        lambda: get(run),
    ]
    return dict(zip(BY_ORM.values(), ways, strict=True))


def usual() -> dict[str, Any]:
    """Another one each time: to write what is there already costs some databases nothing."""
    used = next(number)
    return {"usage": {"promptTokens": 1200, "completionTokens": used, "totalTokens": 1200 + used}}


def end() -> dict[str, Any]:
    return {"status": "completed", "finished_at": next(number), **usual()}


def created() -> str:
    return store.create_or_resume(f"new-{next(number)}", "thread", 1).run_id


def claimed() -> Claim:
    claim = store.claim(created())
    assert isinstance(claim, Claim)
    return claim


def beside_the_orm(found: Costs) -> dict[str, Figures]:
    seconds = found.seconds
    return {ours: ratios(seconds[ours], seconds[theirs]) for ours, theirs in BY_ORM.items()}


def many_beside_few(plan: Plan) -> dict[str, Figures]:
    """The active run of a thread in a table of many runs / in one of few, taking turns."""
    few, many = plan.stored_runs
    with second_database() as second:
        fill(0, few, second)
        small, large = DatabaseRunStore(SCOPE, using=second), store
        ways = {
            f"{kind} of {runs}": way
            for runs, table in ((few, small), (many, large))
            for kind, way in lookups(table, runs).items()
        }
        settle()
        settle(second)
        found = take_turns(ways, dict.fromkeys(ways, plan.lookups), plan.repeats)
    return {
        kind: ratios(found[f"{kind} of {many}"], found[f"{kind} of {few}"])
        for kind in (RUNNING, IDLE)
    }


def lookups(table: DatabaseRunStore, runs: int) -> dict[str, Way]:
    threads = active_threads(runs)

    def running() -> None:
        assert table.find_active_run(next(threads)) is not None

    def idle() -> None:
        assert table.find_active_run("thread-0") is None

    return {RUNNING: running, IDLE: idle}


def active_threads(runs: int) -> Iterator[str]:
    """Those with a running run, from all over the table, without end."""
    first, last = RUNS_OF_IDLE // RUNS_A_THREAD, runs // RUNS_A_THREAD
    return (f"thread-{first + one * 7919 % (last - first)}" for one in count())


def fill(stored: int, wanted: int, using: str = "default") -> None:
    thread = numbered("thread-", divided("(n - 1)", RUNS_A_THREAD, using), using)
    last = f"n % {RUNS_A_THREAD} = 0"
    of_idle = f"CASE WHEN n <= {RUNS_OF_IDLE} THEN {{}} ELSE {{}} END"
    status = of_idle.format("'completed'", f"CASE WHEN {last} THEN 'running' ELSE 'completed' END")
    values = {
        "scope": f"'{SCOPE}'",
        "run_id": numbered("run-", "n", using),
        "thread_id": of_idle.format("'thread-0'", thread),
        "status": status,
        "started_at": "1000 + n",
    }
    filling.fill(ThreadRun, values, stored + 1, wanted, using)
