"""Hosts hear of questions and of answers, after the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted
from solid_runs.testing.ag_ui.base import (
    CANCEL,
    NO,
    SCOPE,
    THREAD,
    YES,
    StoreTests,
    entries,
    question,
)
from solid_runs.testing.ag_ui.capabilities import needs


@needs("signals")
class Signals(StoreTests):
    def test_a_run_that_ends_with_questions_is_told(self) -> None:
        started = self.started()
        with self.heard(run_interrupted) as said:
            self.saved(started.interrupted([question()], self.clock()))
        (told,) = said
        self.assert_same(told["record"], self.find())
        self.assertIs(told["sender"], type(self.store.store))

    def test_a_run_that_ends_otherwise_is_not_told(self) -> None:
        with self.heard(run_interrupted) as said:
            for status in ("succeeded", "cancelled", "failed"):
                self.ended(status, status)
        self.assertEqual(said, [])

    def test_a_run_that_is_saved_again_is_not_told_again(self) -> None:
        asked = self.asked()
        with self.heard(run_interrupted) as said:
            self.saved(asked)
            self.saved(asked.advance(self.clock()))
            self.redeem()
        self.assertEqual(said, [])

    def test_a_refused_save_is_not_told(self) -> None:
        started = self.started()
        self.end("r1", "cancelled")
        with self.heard(run_interrupted) as said, self.assertRaises(StreamError):
            self.saved(started.interrupted([question()], self.clock()))
        self.assertEqual(said, [])

    def test_an_answer_that_no_run_holds_is_told_as_free(self) -> None:
        self.asked()
        with self.heard(interrupt_decided) as said:
            self.redeem(by="ann")
        (told,) = said
        self.assertEqual(told["interrupt"].to_storage(), self.the_interrupt().to_storage())
        self.assertEqual((told["decided_by"], told["free"]), ("ann", True))
        self.assert_same(told["record"], self.find())
        self.assertIs(told["sender"], type(self.store.store))

    def test_the_answers_that_a_run_brings_are_told_one_by_one_as_held(self) -> None:
        self.asked("i1", "i2")
        with self.heard(interrupt_decided) as said:
            self.resume("r2", i1=YES, i2=CANCEL)
        told = [(one["interrupt"].id, one["free"], one["decided_by"]) for one in said]
        self.assertEqual(sorted(told), [("i1", False, None), ("i2", False, None)])

    def test_an_answer_is_told_once_whatever_becomes_of_it(self) -> None:
        self.asked()
        self.redeem()
        with self.heard(interrupt_decided) as said:
            self.redeem()
            self.started("r2")
            self.redeem(run_id="r2")
            self.end("r2")
            self.resume("r3", i1=YES)
            self.settle("r3")
        self.assertEqual(said, [])

    def test_an_answer_that_is_refused_is_not_told(self) -> None:
        self.asked("i1", question("i2", expires_at=self.clock()))
        self.redeem()
        with self.heard(interrupt_decided) as said:
            with self.rejected("i1"):
                self.redeem(NO)
            with self.rejected("i2"):
                self.redeem(interrupt_id="i2")
            with self.rejected("i9"):
                self.resume("r2", i1=YES, i2=CANCEL, i9=YES)
        self.assertEqual(said, [])

    def test_a_batch_that_is_refused_is_not_told(self) -> None:
        for case, code in (
            ("answered", "interrupt_answered"),
            ("expired", "interrupt_expired"),
            ("missing", "resume_rejected"),
        ):
            thread_id = case
            expires_at = self.clock() if case == "expired" else None
            asked = (question("i1"), question("i2", expires_at=expires_at), question("i3"))
            self.asked(*asked, thread_id=thread_id)
            if case == "answered":
                self.store.redeem_interrupt(SCOPE, thread_id, "i2", NO)
            answers = {"i1": YES, "i2": YES, "i3": YES}
            if case == "missing":
                del answers["i2"]
            self.reserved("r2", thread_id=thread_id)
            before = self.find(thread_id=thread_id)
            with (
                self.subTest(case),
                self.heard(interrupt_decided) as said,
                self.rejected("i2", code=code),
            ):
                self.store.resume(SCOPE, thread_id, entries(**answers), "r2")
            self.assertEqual(said, [])
            self.assert_same(self.find(thread_id=thread_id), before)

    def test_an_open_question_that_is_abandoned_is_told(self) -> None:
        self.asked()
        with self.heard(interrupt_decided) as said:
            self.store.abandon(SCOPE, THREAD, by="ann")
        (told,) = said
        self.assertEqual((told["decided_by"], told["free"]), ("ann", False))
        self.assertEqual(told["interrupt"].decision.status, "cancelled")

    def test_a_receiver_sees_what_it_is_told_of(self) -> None:
        self.asked()
        states = []

        def receive(interrupt: Any, **kwargs: Any) -> None:
            states.append(self.the_interrupt(interrupt.id).state)

        interrupt_decided.connect(receive)
        try:
            with self.committed():
                self.redeem()
        finally:
            interrupt_decided.disconnect(receive)
        self.assertEqual(states, ["free"])

    def test_a_receiver_that_fails_stops_nobody(self) -> None:
        self.asked()

        def fail(**kwargs: Any) -> None:
            raise RuntimeError("a receiver failed")

        interrupt_decided.connect(fail)
        try:
            with self.heard(interrupt_decided) as said:
                self.assertIs(self.redeem().recorded, True)
        finally:
            interrupt_decided.disconnect(fail)
        self.assertEqual(len(said), 1)
        self.assert_state("free")


class ClockStopped(Exception):
    pass


class FailingClock:
    """The time of another clock, but ClockStopped at its ``fails_at``-th reading from now."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock, self.fails_at = clock, 0

    def __call__(self) -> datetime:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise ClockStopped
        return self.clock()


@needs("signals")
class Undone(StoreTests):
    """A change that is undone was never there, and nobody hears of it."""

    def setUp(self) -> None:
        super().setUp()
        self.failing = FailingClock(self.clock)
        self.store = self.new_store(clock=self.failing)

    def fail_at_every_reading(self, signal: Signal, change: Callable[[], Any]) -> None:
        """Stop a change at each point where it looks at the clock; in the end it succeeds."""
        runs = ("r1", "r2", "r3")
        for reading in count(1):
            before = [self.find(run_id) for run_id in runs]
            stopped = False
            with self.heard(signal) as said:
                self.failing.fails_at = reading
                try:
                    change()
                except ClockStopped:
                    stopped = True
                self.failing.fails_at = 0
            if not stopped:
                self.assertTrue(said, "a change that succeeds is told")
                return
            self.assertEqual(said, [], f"told, but undone at reading {reading}")
            for run_id, record in zip(runs, before, strict=True):
                self.assert_same(self.find(run_id), record)

    def test_questions_of_two_runs_are_abandoned_together_or_not_at_all(self) -> None:
        for run_id in ("r1", "r2"):
            self.asked(f"i-{run_id}", run_id=run_id)
        self.fail_at_every_reading(interrupt_decided, lambda: self.store.abandon(SCOPE, THREAD))

    def test_a_batch_of_answers_is_taken_whole_or_not_at_all(self) -> None:
        self.asked("i1", "i2", run_id="r2")
        self.reserved("r3")
        brought = entries(i1=YES, i2=NO)
        self.fail_at_every_reading(
            interrupt_decided, lambda: self.store.resume(SCOPE, THREAD, brought, "r3")
        )

    def test_a_run_ends_and_gives_back_all_that_it_holds_or_does_not_end(self) -> None:
        for number in (1, 2):
            self.asked(f"i{number}", run_id=f"r{number}")
            self.answer_for("r3", f"i{number}")
        ended = self.find("r3").start(self.clock()).interrupted([question("i3")], self.clock())
        self.fail_at_every_reading(run_interrupted, lambda: self.saved(ended))
        for interrupt_id in ("i1", "i2"):
            self.assert_state("free", interrupt_id)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """A transaction of the caller's that is undone, if the test has a database."""
        if self.using not in getattr(self, "databases", ()):
            yield
            return
        with transaction.atomic(self.using):
            yield
            transaction.set_rollback(True, self.using)

    def test_what_the_callers_transaction_undoes_is_not_told(self) -> None:
        self.asked()
        started = self.started("r2")
        with self.heard(interrupt_decided) as said, self.rolled_back():
            self.redeem()
        self.assertEqual(len(said), int(self.the_interrupt().decided))
        with self.heard(run_interrupted) as said, self.rolled_back():
            self.saved(started.interrupted([question("i2")], self.clock()))
        self.assertEqual(len(said), int(self.find("r2").terminal))
