"""Random walks over one thread: people answer, runs act, crash, stall and fail."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.exceptions import AGUIError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.records import TERMINAL, RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from solid_runs.testing.ag_ui import ManualClock

SCOPE, THREAD = "acme", "t1"
MINUTE = timedelta(minutes=1)

ANSWERS = [
    {"status": "resolved", "payload": {"approved": True}},
    {"status": "resolved", "payload": {"approved": False}},
    {"status": "cancelled"},
]


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Each answer that a person releases is logged, a thousand times here."""
    logger = logging.getLogger("solid_runs.ag_ui")
    logger.disabled = True
    yield
    logger.disabled = False


class Walk:
    """A thread, what is known of it, and what may be done to it; numbers choose who and what."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.clock = store.clock
        self.told: list[Any] = []
        self.runs: list[str] = []
        self.alive: dict[str, RunRecord] = {}
        self.copies: list[RunRecord] = []
        self.acted: Counter[str] = Counter()
        self.released: Counter[str] = Counter()
        self.checked: dict[str, RunRecord] = {}
        self.ended: dict[str, str] = {}
        self.settled: dict[str, Interrupt] = {}

    # What happens

    def say(self, number: int, what: int) -> None:
        """Somebody sends a run, with no answers."""
        self.admit(self.new_id(), ())

    def answer(self, number: int, what: int) -> None:
        """Somebody sends a run with answers, each of them chosen."""
        asking = self.store.latest_interrupted(SCOPE, THREAD)
        asked = asking.interrupts if asking else ()
        self.admit(
            self.new_id(),
            [
                {"interruptId": one.id, **ANSWERS[(what + n * number) % len(ANSWERS)]}
                for n, one in enumerate(asked)
                if one.pending or number % 2
            ],
        )

    def cancel_all(self, number: int, what: int) -> None:
        self.admit(self.new_id(), self.all_cancelled())

    def send_again(self, number: int, what: int) -> None:
        if self.runs:
            self.admit(self.pick(self.runs, number), ())

    def inbox(self, number: int, what: int) -> None:
        asked = self.interrupts()
        if asked:
            one = self.pick(asked, number)
            self.store.answer(SCOPE, THREAD, one.id, self.pick(ANSWERS, what), by="ann")

    def redeem(self, number: int, what: int) -> None:
        asked = self.interrupts()
        if asked:
            one, run_id = self.pick(asked, number), self.pick([None, *self.runs], what)
            self.store.redeem_interrupt(
                SCOPE, THREAD, one.id, self.pick(ANSWERS, number + what), run_id=run_id
            )

    def act(self, number: int, what: int) -> None:
        """A run, dead or alive, asks whether it may run a tool, and runs it."""
        asked = self.interrupts()
        if asked and self.runs:
            one = self.pick(asked, number)
            holder = self.find(one.redeemed_by) if one.redeemed_by and what % 2 else None
            run_id = holder.run_id if holder else self.pick(self.runs, what)
            allowed = self.store.settle(SCOPE, THREAD, one.id, run_id)
            self.told.append(allowed)
            self.acted[one.id] += allowed

    def ask(self, number: int, what: int) -> None:
        """A living run ends with questions."""
        for run_id, record in self.living(number):
            questions = [
                Interrupt(
                    id=f"{run_id}-i{n}",
                    reason="tool_call",
                    expires_at=self.clock() + n * 3 * MINUTE if what % 3 == n else None,
                )
                for n in range(1, 2 + what % 3)
            ]
            self.end(run_id, record.interrupted(questions, self.clock(), {"asked": what}))

    def finish(self, number: int, what: int) -> None:
        for run_id, record in self.living(number):
            status = ("succeeded", "failed", "cancelled", "interrupted")[what % 4]
            self.end(run_id, record.finish(status, self.clock(), {"message": "m", "code": "c"}))

    def crash(self, number: int, what: int) -> None:
        for run_id, _ in self.living(number):
            del self.alive[run_id]

    def go_on(self, number: int, what: int) -> None:
        for run_id, record in self.living(number):
            self.alive[run_id] = self.seen(self.store.save(record.advance(self.clock())))

    def stall(self, number: int, what: int) -> None:
        """Time passes, in which only the living give signs of life."""
        for _ in range(4):
            self.clock.forward(seconds=30)
            for record in self.alive.values():
                self.store.heartbeat(record)
        self.told += [record.to_storage() for record in self.store.fail_stalled(MINUTE)]

    def ask_to_cancel(self, number: int, what: int) -> None:
        if self.runs:
            run_id = self.pick(self.runs, number)
            asked = self.store.request_cancel(SCOPE, THREAD, run_id, by="ann")
            self.told.append(asked and asked.ended)
            if asked and asked.record.terminal:
                self.alive.pop(run_id, None)

    def save_a_copy(self, number: int, what: int) -> None:
        """A copy of a run that was pruned is a run that was never reserved, and saved as one."""
        copies = [copy for copy in self.copies if self.find(copy.run_id)]
        if copies:
            copy = self.pick(copies, number)
            self.store.save(copy if what % 2 else copy.advance(self.clock()))

    def release(self, number: int, what: int) -> None:
        if self.runs:
            self.told.append(self.store.release(SCOPE, THREAD, self.pick(self.runs, number)))

    def abandon(self, number: int, what: int) -> None:
        if what == 0:
            self.told.append(self.store.abandon(SCOPE, THREAD, by="ann"))

    def release_settled(self, number: int, what: int) -> None:
        """A person says that a tool did not run, though it may have."""
        asked = self.interrupts()
        if asked:
            one = self.pick(asked, number)
            self.store.release_settled(SCOPE, THREAD, one.id.rpartition("-")[0], one.id, by="ann")
            self.released[one.id] += 1
            self.settled.pop(one.id, None)

    def prune(self, number: int, what: int) -> None:
        if what == 0:
            self.told.append(self.store.prune(MINUTE))

    STEPS = (
        *(say, answer, answer, cancel_all, send_again, inbox, redeem, act, act, act, ask, ask, ask),
        *(finish, crash, go_on, stall, ask_to_cancel, save_a_copy, release, abandon),
        *(release_settled, release_settled, prune),
    )

    # How

    def step(self, index: int, number: int, what: int) -> None:
        step = self.STEPS[index % len(self.STEPS)]
        self.clock.forward(seconds=1)
        try:
            step(self, number, what)
        except AGUIError as refused:
            ids = getattr(refused, "interrupt_ids", ())
            self.told.append((step.__name__, type(refused).__name__, refused.code, ids))

    def admit(self, run_id: str, entries: Any) -> None:
        admission = self.store.admit(SCOPE, THREAD, run_id, "d1", entries)
        self.told.append(
            (
                run_id,
                admission.new,
                admission.offered,
                [(one.interrupt.to_storage(), *one[1:]) for one in admission.answers],
            )
        )
        if admission.new:
            self.runs.append(run_id)
            self.alive[run_id] = self.seen(
                self.store.save(admission.record.start(self.clock(), {"run": run_id}))
            )

    def new_id(self) -> str:
        return f"r{len(self.runs) + 1}"

    def end(self, run_id: str, record: RunRecord) -> None:
        del self.alive[run_id]
        self.seen(self.store.save(record))

    def living(self, number: int) -> list[tuple[str, RunRecord]]:
        return [self.pick(list(self.alive.items()), number)] if self.alive else []

    def pick(self, among: Any, number: int) -> Any:
        return among[number % len(among)]

    def seen(self, record: RunRecord) -> RunRecord:
        self.copies.append(record)
        return record

    def find(self, run_id: str) -> RunRecord | None:
        found: RunRecord | None = self.store.find(SCOPE, THREAD, run_id)
        return found

    def stored(self) -> list[RunRecord]:
        return [record for run_id in self.runs if (record := self.find(run_id))]

    def interrupts(self) -> list[Interrupt]:
        return [one for record in self.stored() for one in record.interrupts]

    def all_cancelled(self) -> list[dict[str, Any]]:
        asking = self.store.latest_interrupted(SCOPE, THREAD)
        asked = asking.interrupts if asking else ()
        return [{"interruptId": one.id, "status": "cancelled"} for one in asked]

    # What always holds

    def check(self) -> None:
        for record in self.stored():
            if self.checked.get(record.run_id) is record:
                continue
            self.checked[record.run_id] = record
            assert RunRecord.from_storage(json.loads(json.dumps(record.to_storage()))) == record
            before = self.ended.get(record.run_id)
            assert before in (None, record.status), "an ended run was moved"
            if record.terminal:
                self.ended[record.run_id] = record.status
            for one in record.interrupts:
                assert self.settled.get(one.id, one) == one, "a settled answer was moved"
                if one.state is AnswerState.SETTLED:
                    self.settled[one.id] = one
        for interrupt_id, count in self.acted.items():
            assert count <= 1 + self.released[interrupt_id], "a tool ran twice"
        self.check_that_nobody_is_locked_out()

    def check_that_nobody_is_locked_out(self) -> None:
        with self.trying() as store:
            plain = store.admit(SCOPE, THREAD, "plain", "d1")
            assert plain.new or plain.offered
            for one in plain.answers:
                assert store.settle(SCOPE, THREAD, one.interrupt.id, "plain") is one.holds
        with self.trying() as store:
            assert store.admit(SCOPE, THREAD, "cancels", "d1", self.all_cancelled()).new
        if plain.offered:
            with self.trying() as store:
                answers = [
                    {
                        "interruptId": one.id,
                        "status": "cancelled" if one.expired(self.clock()) else "resolved",
                    }
                    for one in plain.record.pending_interrupts
                ]
                answered = store.admit(SCOPE, THREAD, "answers", "d1", answers)
                assert answered.new
                assert any(one.holds for one in answered.answers)
                for one in answered.answers:
                    assert store.settle(SCOPE, THREAD, one.interrupt.id, "answers") is one.holds

    @contextmanager
    def trying(self) -> Iterator[Any]:
        """The store, with what happens in the block undone."""
        if isinstance(self.store, DatabaseStore):
            with transaction.atomic():
                yield self.store
                transaction.set_rollback(True)
        else:
            copy = MemoryStore(clock=self.clock)
            copy._rows = dict(self.store._rows)
            yield copy


numbers = st.integers(0, 11)
steps = st.tuples(st.integers(0, len(Walk.STEPS) - 1), numbers, st.integers(0, 5))
walks = st.lists(steps, min_size=25, max_size=50)  # a short one comes by nothing


in_the_database = partial(
    settings,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink one would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def taken(walk: Walk, path: list[tuple[int, int, int]], *, checked: int = 1) -> Walk:
    """Go a path, with a check after so many steps; without any if 0."""
    for number, step in enumerate(path, 1):
        walk.step(*step)
        if checked and (number % checked == 0 or number == len(path)):
            walk.check()
    return walk


@given(path=walks)
@settings(max_examples=40, deadline=None)
def test_a_walk_over_memory_locks_nobody_out_and_runs_no_tool_twice(path):
    taken(Walk(MemoryStore(clock=ManualClock(), stall_after=MINUTE)), path)


@pytest.mark.django_db
@given(path=walks)
@in_the_database(max_examples=5)
def test_a_walk_over_the_database_locks_nobody_out_and_runs_no_tool_twice(path):
    with transaction.atomic():
        taken(Walk(DatabaseStore(clock=ManualClock(), stall_after=MINUTE)), path, checked=10)
        transaction.set_rollback(True)


@pytest.mark.django_db
@given(path=walks)
@in_the_database(max_examples=12)
def test_a_walk_goes_the_same_way_over_both_stores(path):
    with transaction.atomic():
        one, other = (
            taken(Walk(store(clock=ManualClock(), stall_after=MINUTE)), path, checked=0)
            for store in (MemoryStore, DatabaseStore)
        )
        assert one.told == other.told
        assert one.runs == other.runs
        for run_id in one.runs:
            mine, theirs = one.find(run_id), other.find(run_id)
            assert (mine and mine.to_storage()) == (theirs and theirs.to_storage())
        transaction.set_rollback(True)


def test_a_walk_comes_by_every_state():
    """The walks would hold anything if nothing happened in them."""
    seen: Counter[str] = Counter()
    chance = random.Random(7)
    for _ in range(120):
        walk = Walk(MemoryStore(clock=ManualClock(), stall_after=MINUTE))
        met = set()
        for _ in range(50):
            walk.step(chance.randrange(100), chance.randrange(12), chance.randrange(6))
            met |= {str(one.state) for one in walk.interrupts()}
            met |= {str(record.status) for record in walk.stored()}
        seen.update(met)
        seen["acted"] += any(walk.acted.values())
        seen["released"] += any(walk.released.values())
        seen["stalled"] += any(
            (record.failure or {}).get("code") == "stalled" for record in walk.stored()
        )
    for state in (*AnswerState, *TERMINAL, "acted", "released", "stalled"):
        assert seen[str(state)] >= 2, f"{state}: {seen}"
