"""What racers do with a store of AG-UI runs: tasks for tests.races.

An error of the database is no outcome: it ends the race, as nothing here may ever meet one.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

from django.utils import timezone

from solid_runs.ag_ui.exceptions import AGUIError
from solid_runs.ag_ui.interrupts import Interrupt, Redemption
from solid_runs.ag_ui.records import Admission, CancelRequest, Reservation, RunRecord, Status
from solid_runs.ag_ui.stores.database import DatabaseStore

SCOPE = "tenant"
APPROVED = {"status": "resolved", "payload": {"approved": True}}
DENIED = {"status": "resolved", "payload": {"approved": False}}

Task: TypeAlias = Generator[None, None, Any]


def ask(
    method: str,
    arguments: dict[str, Any],
    *,
    at: float | None = None,
    until: str | None = None,
    options: dict[str, Any] | None = None,
) -> Task:
    """Call a method of a store; what it gave, or what it refused.

    ``at``: the seconds since 1970 to call it at. ``until``: call it until this fact is true of
    what it gives. A ``record`` comes as its storage, ``before`` in seconds.
    """
    store = DatabaseStore(**(options or {}))
    given = {"scope": SCOPE, **arguments}
    if "record" in arguments:
        given = {**arguments, "record": RunRecord.from_storage(arguments["record"])}
    if "before" in arguments:
        given = {**arguments, "before": timedelta(seconds=arguments["before"])}
    call = getattr(store, method)
    store.find(SCOPE, "warm", "up")  # connects
    yield
    while at is not None and time.time() < at:
        pass
    end = time.monotonic() + 10
    while True:
        try:
            told = shown(call(**given))
        except AGUIError as error:
            return {"refused": type(error).__name__, "code": getattr(error, "code", None)}
        if until is None or told[until] or time.monotonic() > end:
            return {"refused": None, "gave": told}


def shown(given: Any) -> Any:
    """What a store gave, as JSON."""
    if isinstance(given, Reservation):
        return {"new": given.new, "status": given.record.status.value}
    if isinstance(given, Admission):
        return {
            "new": given.new,
            "offered": given.offered,
            "run": given.record.run_id,
            "answers": [shown(one) for one in given.answers],
        }
    if isinstance(given, Redemption):
        return {"recorded": given.recorded, "holds": given.holds, "id": given.interrupt.id}
    if isinstance(given, CancelRequest):
        return {"ended": given.ended, "status": given.record.status.value}
    if isinstance(given, RunRecord):
        return given.run_id
    return [shown(one) for one in given] if isinstance(given, list | tuple) else given


def work(
    thread: str,
    run_id: str,
    ledger: str,
    *,
    entries: list[dict[str, Any]],
    dies: str | None = None,
    wrong_by: int = 0,
    beats: float = 0,
) -> Task:
    """A whole run of an agent whose tool writes a line to a file; what it was allowed to do.

    ``dies``: the step before which the process is killed: settle, tool or finish. ``wrong_by``: the
    minutes that its clock is wrong by. ``beats``: the seconds that it works with a sign of life
    each tenth.
    """
    yield
    with clock(wrong_by):
        store, allowed = DatabaseStore(), 0

        def die(step: str) -> None:
            if dies == step:
                os.kill(os.getpid(), signal.SIGKILL)

        admitted = store.admit(SCOPE, thread, run_id, "d", entries)
        record = store.save(admitted.record.start(store.now()))
        end = time.monotonic() + beats
        while time.monotonic() < end:
            record = record.advance(store.now())
            store.heartbeat(record)
            time.sleep(0.1)
        for one in admitted.answers:
            die("settle")
            if one.holds and store.settle(SCOPE, thread, one.interrupt.id, run_id):
                die("tool")
                with Path(ledger).open("a") as lines:
                    lines.write(f"{run_id}\n")
                allowed += 1
        die("finish")
        store.save(record.finish("succeeded", store.now()))
        return allowed


def reap(silent: float, *, wrong_by: int = 0, again_for: float = 0) -> Task:
    """Fail runs that were silent for so many seconds, for a while; those that were failed."""
    yield
    store, reaped = DatabaseStore(), []
    end = time.monotonic() + again_for
    with clock(wrong_by):
        while True:
            reaped += [one.run_id for one in store.fail_stalled(timedelta(seconds=silent))]
            if time.monotonic() >= end:
                return reaped
            time.sleep(0.05)


@contextmanager
def clock(wrong_by: int) -> Iterator[None]:
    """Let Django's clock be wrong by so many minutes."""

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=wrong_by)

    with mock.patch.object(timezone, "now", now):
        yield


def reserve_each(threads: list[str], run_id: str, policy: str) -> Task:
    """Reserve a run on each of these threads, in this order; how many are new."""
    store = DatabaseStore()
    store.find(SCOPE, "warm", "up")
    yield
    given = [store.reserve(SCOPE, one, run_id, "d", policy=policy) for one in threads]  # type: ignore[arg-type]
    return sum(one.new for one in given)


def converse(writer: int, count: int, threads: list[str], prune: bool = False) -> Task:
    """So many steps of every kind on these threads; what was told to have happened."""
    player = Player(writer, threads, prune)
    player.store.find(SCOPE, "warm", "up")
    yield
    for number in range(count):
        player.step(number)
    return player.told


class Player:
    """Agents, people and janitors on a few threads, all in one process."""

    def __init__(self, writer: int, threads: list[str], prune: bool) -> None:
        self.store, self.writer, self.threads = DatabaseStore(), writer, threads
        self.rng = random.Random(writer)
        self.told: dict[str, Any] = {"acted": [], "denied": [], "ended": [], "steps": {}}
        steps: list[Callable[[str, str], None]] = [
            *(self.run, self.run, *[self.resume] * 6),
            *(self.answer, self.cancel, self.beat, self.abandon, self.reap, self.redeem),
            *([self.prune] if prune else []),
        ]
        self.steps = steps

    def step(self, number: int) -> None:
        step, thread = self.rng.choice(self.steps), self.rng.choice(self.threads)
        try:
            step(thread, f"{self.writer}-{number}")
            outcome = "done"
        except AGUIError as error:
            outcome = type(error).__name__
        counted = self.told["steps"].setdefault(step.__name__, Counter())
        counted[outcome] += 1

    def run(self, thread: str, run_id: str) -> None:
        policy = self.rng.choice(["allow", "reject"])
        admitted = self.store.admit(SCOPE, thread, run_id, "d", policy=policy)  # type: ignore[arg-type]
        if admitted.new:
            self.work(admitted)

    def resume(self, thread: str, run_id: str) -> None:
        asking = self.store.latest_interrupted(SCOPE, thread)
        unsettled = [one for one in (asking.interrupts if asking else ()) if not one.settled_at]
        decision = self.rng.choice([APPROVED, APPROVED, APPROVED, DENIED, {"status": "cancelled"}])
        entries = [{"interruptId": one.id, **decision} for one in unsettled]
        admitted = self.store.admit(SCOPE, thread, run_id, "d", entries)
        if admitted.new:
            self.work(admitted)

    def work(self, admitted: Admission) -> None:
        record, store = admitted.record, self.store
        record = store.save(record.start(store.now(), {"n": 1}))
        for one in admitted.answers:
            if one.holds and self.rng.random() < 0.8:
                self.act(record, one.interrupt.id)
        record = record.advance(store.now())
        store.heartbeat(record)
        ending = self.rng.choice([*Status][2:] + [Status.INTERRUPTED] * 3 + [None])
        if ending is Status.INTERRUPTED:
            count = self.rng.randint(1, 2)
            asked = [Interrupt(id=f"{record.run_id}/{n}", reason="ask") for n in range(count)]
            store.save(record.interrupted(asked, store.now()))
        elif ending is not None:
            store.save(record.finish(ending, store.now()))
        if ending is not None:
            self.told["ended"].append([record.thread_id, record.run_id, ending.value])

    def act(self, record: RunRecord, interrupt_id: str) -> None:
        asked = (record.thread_id, interrupt_id)
        allowed = self.store.settle(SCOPE, *asked, record.run_id)
        self.told["acted" if allowed else "denied"].append([*asked, record.run_id])

    def answer(self, thread: str, run_id: str) -> None:
        for one in self.open(thread):
            self.store.answer(SCOPE, thread, one.id, APPROVED, by="inbox")

    def redeem(self, thread: str, run_id: str) -> None:
        for one in self.open(thread):
            self.store.redeem_interrupt(SCOPE, thread, one.id, DENIED, by="host")

    def open(self, thread: str) -> tuple[Interrupt, ...]:
        asking = self.store.latest_interrupted(SCOPE, thread)
        return asking.pending_interrupts if asking else ()

    def cancel(self, thread: str, run_id: str) -> None:
        latest = self.store.latest_run(SCOPE, thread)
        if latest is not None:
            self.store.request_cancel(SCOPE, thread, latest.run_id)

    def beat(self, thread: str, run_id: str) -> None:
        latest = self.store.latest_run(SCOPE, thread)
        if latest is not None:
            self.store.heartbeat(latest)

    def abandon(self, thread: str, run_id: str) -> None:
        self.store.abandon(SCOPE, thread)

    def reap(self, thread: str, run_id: str) -> None:
        self.store.fail_stalled(timedelta(seconds=1))

    def prune(self, thread: str, run_id: str) -> None:
        self.store.prune(timedelta(milliseconds=100), batch_size=5)


TASKS = {task.__name__: task for task in (ask, converse, reap, reserve_each, work)}
