"""One answer: the first one wins, in time, and one run holds it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.interrupts import AnswerState, Decision
from solid_runs.testing.ag_ui.base import CANCEL, NO, SCOPE, THREAD, YES, StoreTests, question

EQUAL: Final[list[tuple[Any, Any]]] = [
    ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
    ({"amount": 1}, {"amount": 1.0}),
    ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
    ("\u00e9", "é"),
]
DIFFERENT: Final[list[tuple[Any, Any]]] = [
    ([1, 2], [2, 1]),
    (1, "1"),
    (1, True),
    (0, False),
    (None, False),
    (None, {}),
    ({"a": None}, {}),
    ("a", "a "),
    ("\u00e9", "e\u0301"),
    (0.1, 0.1000000000000001),
]


def resolved(payload: Any) -> dict[str, Any]:
    return {"status": "resolved", "payload": payload}


class Redeeming(StoreTests):
    def test_the_first_answer_is_recorded(self) -> None:
        self.asked()
        self.clock.forward(minutes=5)
        redeemed = self.redeem(resolved({"rows": [1, None]}) | {"metadata": {"tab": 1}}, by="ann")
        self.assertEqual((redeemed.recorded, redeemed.holds), (True, False))
        stored = self.the_interrupt()
        self.assertEqual(stored.to_storage(), redeemed.interrupt.to_storage())
        decision = Decision(status="resolved", payload={"rows": [1, None]}, metadata={"tab": 1})
        self.assertEqual(stored.decision, decision)
        self.assertEqual((stored.decided_at, stored.decided_by), (self.clock(), "ann"))
        self.assertEqual(stored.state, AnswerState.FREE)

    def test_an_answer_is_taken_as_a_decision_too(self) -> None:
        self.asked("i1", "i2")
        self.redeem(Decision(status="resolved", payload=1), "i1")
        self.redeem(Decision(status="cancelled"), "i2")
        self.assertEqual(self.the_interrupt("i1").decision, Decision(status="resolved", payload=1))
        self.assertEqual(self.the_interrupt("i2").decision, Decision(status="cancelled"))

    def test_an_answer_leaves_the_status_and_the_other_questions(self) -> None:
        self.asked("i1", "i2", "i3")
        self.redeem(interrupt_id="i2")
        record = self.find()
        self.assertEqual(record.status, "interrupted")
        self.assertEqual([one.id for one in record.pending_interrupts], ["i1", "i3"])
        self.assertIs(record.awaiting_approval, True)

    def test_the_time_of_an_answer_is_the_given_one(self) -> None:
        self.asked()
        self.redeem(now=self.at(seconds=7))
        self.assertEqual(self.the_interrupt().decided_at, self.at(seconds=7))

    def test_the_same_answer_again_is_a_replay_and_changes_nothing(self) -> None:
        self.asked()
        first = self.redeem(by="ann").interrupt
        self.clock.forward(minutes=5)
        with self.unchanged("r1"):
            again = self.redeem(by="bob")
        self.assertEqual((again.recorded, again.holds), (False, False))
        self.assertEqual(again.interrupt.to_storage(), first.to_storage())

    def test_another_answer_is_refused_and_changes_nothing(self) -> None:
        self.asked()
        self.redeem(YES)
        for other in (NO, CANCEL, {"status": "resolved"}):
            with self.subTest(other=other), self.unchanged("r1"):
                with self.rejected("i1", code="interrupt_answered"):
                    self.redeem(other)
                with self.rejected("i1", code="interrupt_answered"):
                    self.redeem(other, run_id="r2")

    def test_an_unknown_interrupt_is_refused(self) -> None:
        self.asked()
        for run_id in (None, "r2"):
            with self.unchanged("r1", "r2"), self.rejected("i9", code="resume_rejected"):
                self.redeem(interrupt_id="i9", run_id=run_id)

    def test_equal_answers_agree_however_they_are_written(self) -> None:
        for number, (one, other) in enumerate(EQUAL):
            with self.subTest(one=one, other=other):
                thread_id = f"t{number}"
                self.asked(thread_id=thread_id)
                for payload, recorded in ((one, True), (other, False), (one, False)):
                    redeemed = self.store.redeem_interrupt(
                        SCOPE, thread_id, "i1", resolved(payload)
                    )
                    self.assertIs(redeemed.recorded, recorded)

    def test_an_absent_payload_is_a_null_one_and_metadata_is_not_compared(self) -> None:
        self.asked()
        self.redeem({"status": "resolved", "payload": None, "metadata": {"tab": 1}})
        self.assertIs(self.redeem({"status": "resolved"}).recorded, False)
        self.assertIs(self.redeem({"status": "resolved", "metadata": {"tab": 2}}).recorded, False)

    def test_different_answers_disagree_however_alike_they_look(self) -> None:
        for number, (one, other) in enumerate(DIFFERENT):
            with self.subTest(one=one, other=other):
                thread_id = f"t{number}"
                self.asked(thread_id=thread_id)
                self.store.redeem_interrupt(SCOPE, thread_id, "i1", resolved(one))
                with self.rejected("i1"):
                    self.store.redeem_interrupt(SCOPE, thread_id, "i1", resolved(other))

    def test_what_is_no_answer_is_refused(self) -> None:
        self.asked()
        for answer in ({"status": "maybe"}, {"status": None}, {"payload": 1}, {}):
            with (
                self.subTest(answer=answer),
                self.unchanged("r1"),
                self.assertRaises(ConfigurationError),
            ):
                self.redeem(answer)

    def test_a_stale_question_can_be_redeemed(self) -> None:
        self.asked("i1")
        self.asked("i2", run_id="r2")
        self.assertIs(self.redeem(interrupt_id="i1").recorded, True)


class Expiring(StoreTests):
    def test_an_answer_is_refused_from_the_deadline_on(self) -> None:
        deadline = self.at(minutes=5)
        self.asked(question(expires_at=deadline))
        for late in (timedelta(0), timedelta(microseconds=1), timedelta(days=400)):
            for run_id in (None, "r2"):
                with self.unchanged("r1"), self.rejected("i1", code="interrupt_expired"):
                    self.redeem(now=deadline + late, run_id=run_id)
        self.assert_state("open")

    def test_an_answer_is_taken_right_before_the_deadline(self) -> None:
        deadline = self.at(minutes=5)
        self.asked(question(expires_at=deadline))
        self.assertIs(self.redeem(now=deadline - timedelta(microseconds=1)).recorded, True)

    def test_the_deadline_is_judged_by_the_clock_of_the_store(self) -> None:
        self.asked(question(expires_at=self.at(minutes=5)))
        self.clock.forward(minutes=5)
        with self.rejected("i1", code="interrupt_expired"):
            self.redeem()

    def test_a_question_without_a_deadline_never_expires(self) -> None:
        self.asked()
        self.clock.forward(days=4000)
        self.assertIs(self.redeem().recorded, True)

    def test_a_replay_after_the_deadline_is_a_replay(self) -> None:
        self.asked(question(expires_at=self.at(minutes=5)))
        self.redeem()
        self.clock.forward(minutes=9)
        self.assertEqual(self.redeem()[1:], (False, False))
        self.assertEqual(self.redeem(run_id="r2")[1:], (False, True))

    def test_another_answer_after_the_deadline_disagrees_and_is_not_late(self) -> None:
        self.asked(question(expires_at=self.at(minutes=5)))
        self.redeem(YES)
        self.clock.forward(minutes=9)
        with self.rejected("i1", code="interrupt_answered"):
            self.redeem(NO)

    def test_a_deadline_may_be_iso_text(self) -> None:
        self.asked(question(expires_at="2026-01-15T21:05:00.000001+09:00"))
        deadline = self.at(minutes=5, microseconds=1)
        self.assertEqual(self.the_interrupt().expires_at, deadline)
        with self.rejected("i1", code="interrupt_expired"):
            self.redeem(now=deadline)
        self.assertIs(self.redeem(now=deadline - timedelta(microseconds=1)).recorded, True)

    def test_an_answer_that_was_given_in_time_is_acted_on_after_the_deadline(self) -> None:
        deadline = self.at(minutes=5)
        self.asked(*(question(name, expires_at=deadline) for name in ("i1", "i2")))
        for interrupt_id in ("i1", "i2"):
            self.answer_for("r2", interrupt_id)
        self.clock.forward(minutes=5)
        self.assertIs(self.settle("r2", "i1"), True)
        late = deadline + timedelta(days=400)
        self.assertIs(self.store.settle(SCOPE, THREAD, "i2", "r2", late), True)
        self.assertEqual(self.the_interrupt("i2").settled_at, late)


class Holding(StoreTests):
    def test_the_first_answer_of_a_run_is_recorded_and_held(self) -> None:
        self.asked()
        self.reserved("r2")
        self.clock.forward(minutes=5)
        redeemed = self.redeem(run_id="r2", by="ann")
        self.assertEqual((redeemed.recorded, redeemed.holds), (True, True))
        stored = self.the_interrupt()
        self.assertEqual(stored.to_storage(), redeemed.interrupt.to_storage())
        self.assertEqual(stored.state, AnswerState.HELD)
        self.assertEqual((stored.redeemed_by, stored.redeemed_at), ("r2", self.clock()))
        self.assertIsNone(stored.settled_at)

    def test_a_repeat_by_the_run_that_holds_it_holds_it_until_it_is_settled(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.clock.forward(minutes=5)
        with self.unchanged("r1"):
            self.assertEqual(self.redeem(run_id="r2")[1:], (False, True))
        self.settle()
        with self.unchanged("r1"):
            self.assertEqual(self.redeem(run_id="r2")[1:], (False, False))

    def test_an_equal_answer_of_another_run_is_refused_while_one_holds_it_and_after(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.reserved("r3")
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
            self.redeem(run_id="r3")
        self.settle("r2")
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
            self.redeem(run_id="r3")

    def test_an_equal_answer_without_a_run_is_a_replay_while_one_holds_it_and_after(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.assertEqual(self.redeem()[1:], (False, False))
        self.settle()
        self.assertEqual(self.redeem()[1:], (False, False))
        self.assert_state("settled")

    def test_a_run_takes_a_free_answer_with_an_equal_one(self) -> None:
        self.asked()
        first = self.redeem(by="ann").interrupt
        self.reserved("r2")
        self.clock.forward(minutes=5)
        taken = self.redeem(run_id="r2", by="bob")
        self.assertEqual((taken.recorded, taken.holds), (False, True))
        self.assertEqual(
            (taken.interrupt.decided_at, taken.interrupt.decided_by), (first.decided_at, "ann")
        )
        self.assertEqual(
            (taken.interrupt.redeemed_by, taken.interrupt.redeemed_at), ("r2", self.clock())
        )
        self.assert_state("held")

    def test_a_run_does_not_take_a_free_answer_with_another(self) -> None:
        self.asked()
        self.redeem(YES)
        for other in (NO, CANCEL):
            with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
                self.redeem(other, run_id="r2")

    def test_runs_that_differ_by_case_or_spaces_are_two_holders(self) -> None:
        self.asked()
        self.answer_for("run_a")
        for other in ("run_A", "run_a ", "run_ä"):
            with self.subTest(other=other):
                with self.rejected("i1"):
                    self.redeem(run_id=other)
                self.assertIs(self.settle(other), False)
                self.assertEqual(self.store.release(SCOPE, THREAD, other), 0)
        self.assertIs(self.settle("run_a"), True)
