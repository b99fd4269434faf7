"""What every part of the conformance suite stands on: a store, its clock, runs to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from solid_runs.ag_ui.exceptions import AGUIError, ResumeRejectedError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.records import RunRecord
from solid_runs.testing.ag_ui.capabilities import CAPABILITIES
from solid_runs.testing.ag_ui.clocks import ManualClock
from solid_runs.testing.stores import StoreSuite

SCOPE: Final = "acme"
THREAD: Final = "t1"
STALL_AFTER: Final = timedelta(minutes=1)

YES: Final = {"status": "resolved", "payload": {"approved": True}}
NO: Final = {"status": "resolved", "payload": {"approved": False}}
CANCEL: Final = {"status": "cancelled"}


def question(interrupt_id: str = "i1", **fields: Any) -> Interrupt:
    return Interrupt(id=interrupt_id, reason="tool_call", **fields)


def entries(**answers: dict[str, Any]) -> list[dict[str, Any]]:
    """A batch of answers as AG-UI sends it: ``entries(i1=YES, i2=CANCEL)``."""
    return [{"interruptId": name, **answer} for name, answer in answers.items()]


class StoreTests(StoreSuite):
    """``leaves_out`` takes names out of capabilities.OPTIONAL."""

    capabilities = CAPABILITIES
    errors = AGUIError

    clock: ManualClock

    def make_store(self, **options: Any) -> Any:
        """Make the store under test, over storage that is empty at the start of each test.

        ``clock``: a callable that the times of records, the signs of life and the deadlines are
        judged by. ``stall_after``: a timedelta, how long an owner may be silent. ``policy``: only
        where a test is about it.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a make_store().")

    def setUp(self) -> None:
        super().setUp()
        self.clock = ManualClock()
        self.store = self.new_store()

    def new_store(self, **options: Any) -> Any:
        options = {"clock": self.clock, "stall_after": STALL_AFTER, **options}
        return self.called(self.make_store(**options))

    def connect(self) -> None:
        self.find("warm", "up")

    # Runs to begin with

    def reserved(
        self,
        run_id: str = "r1",
        *,
        scope: Any = SCOPE,
        thread_id: str = THREAD,
        digest: str = "d1",
        **options: Any,
    ) -> RunRecord:
        record: RunRecord = self.store.reserve(scope, thread_id, run_id, digest, **options).record
        return record

    def started(self, run_id: str = "r1", snapshot: Any = None, **options: Any) -> RunRecord:
        return self.saved(self.reserved(run_id, **options).start(self.clock(), snapshot))

    def ended(self, run_id: str = "r1", status: str = "succeeded", **options: Any) -> RunRecord:
        return self.saved(self.started(run_id, **options).finish(status, self.clock()))

    def asked(self, *interrupts: Interrupt | str, run_id: str = "r1", **options: Any) -> RunRecord:
        """A run that ended with these questions."""
        asked = [question(one) if isinstance(one, str) else one for one in interrupts or ("i1",)]
        return self.saved(self.started(run_id, **options).interrupted(asked, self.clock()))

    def saved(self, record: RunRecord) -> RunRecord:
        stored: RunRecord = self.store.save(record)
        return stored

    def answer_for(self, run_id: str, interrupt_id: str = "i1", answer: Any = YES) -> None:
        """Reserve a run that holds this answer."""
        self.reserved(run_id)
        self.redeem(answer, interrupt_id, run_id=run_id)

    def resume(self, run_id: str = "r2", **answers: Any) -> dict[str, Any]:
        """What became of each answer of a batch that a run brings; the run is reserved if new."""
        self.reserved(run_id)
        redeemed = self.store.resume(SCOPE, THREAD, entries(**answers), run_id)
        return {one.interrupt.id: one for one in redeemed}

    def settle(self, run_id: str = "r2", interrupt_id: str = "i1") -> bool:
        allowed: bool = self.store.settle(SCOPE, THREAD, interrupt_id, run_id)
        return allowed

    def end(self, run_id: str = "r2", status: str = "failed") -> RunRecord:
        return self.saved(self.find(run_id).finish(status, self.clock()))

    def redeem(self, answer: Any = YES, interrupt_id: str = "i1", **options: Any) -> Any:
        return self.store.redeem_interrupt(SCOPE, THREAD, interrupt_id, answer, **options)

    # What is stored

    def find(self, run_id: str = "r1", thread_id: str = THREAD, scope: Any = SCOPE) -> Any:
        return self.store.find(scope, thread_id, run_id)

    def the_interrupt(self, interrupt_id: str = "i1", run_id: str | None = None) -> Interrupt:
        """As it is stored: that of ``run_id``, else the one that the thread shows."""
        found = (
            self.store.find_interrupt(SCOPE, THREAD, interrupt_id)
            if run_id is None
            else self.find(run_id).interrupt(interrupt_id)
        )
        self.assertIsInstance(found, Interrupt, f"{interrupt_id} is not found")
        interrupt: Interrupt = found
        return interrupt

    def assert_state(self, state: str, interrupt_id: str = "i1", run_id: str | None = None) -> None:
        self.assertEqual(self.the_interrupt(interrupt_id, run_id).state, AnswerState(state))

    def assert_same(self, one: RunRecord | None, other: RunRecord | None) -> None:
        """Equal in all that is stored."""
        self.assertEqual(one and one.to_storage(), other and other.to_storage())

    @contextmanager
    def unchanged(self, *run_ids: str) -> Iterator[None]:
        """A block after which these runs are stored as they were before it, absent ones too."""
        before = {run_id: self.find(run_id) for run_id in run_ids}
        yield
        for run_id, record in before.items():
            self.assert_same(self.find(run_id), record)

    @contextmanager
    def rejected(self, *interrupt_ids: str, code: str | None = None) -> Iterator[None]:
        """A block that ends in a ResumeRejectedError about exactly these."""
        with self.assertRaises(ResumeRejectedError) as caught:
            yield
        self.assertEqual(sorted(set(caught.exception.interrupt_ids)), sorted(interrupt_ids))
        if code is not None:
            self.assertEqual(caught.exception.code, code)

    def at(self, **span: float) -> datetime:
        """A moment so far from the clock's."""
        return self.clock() + timedelta(**span)
