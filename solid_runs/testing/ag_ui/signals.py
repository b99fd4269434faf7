"""Hosts hear of questions and of answers, after the commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.dispatch import Signal

from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted
from solid_runs.testing.ag_ui.base import CANCEL, NO, SCOPE, THREAD, YES, StoreTests, question
from solid_runs.testing.ag_ui.capabilities import needs


class Listening(StoreTests):
    @contextmanager
    def heard(self, signal: Signal) -> Iterator[list[dict[str, Any]]]:
        """What the signal says of what happens in the block; look at it after the block."""
        said: list[dict[str, Any]] = []

        def receive(**kwargs: Any) -> None:
            said.append(kwargs)

        signal.connect(receive)
        try:
            with self.committed():
                yield said
        finally:
            signal.disconnect(receive)


@needs("signals")
class Signals(Listening):
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
