"""What becomes of an answer: acted on at most once, given back, withdrawn, or left for the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solid_runs.ag_ui.exceptions import ResumeRejectedError
from solid_runs.ag_ui.interrupts import AnswerState, Decision
from solid_runs.testing.ag_ui.base import CANCEL, NO, SCOPE, THREAD, YES, StoreTests, question
from solid_runs.testing.ag_ui.capabilities import needs


class Settling(StoreTests):
    def test_an_answer_is_settled_once(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.clock.forward(minutes=5)
        self.assertIs(self.settle(), True)
        self.assertEqual(self.the_interrupt().settled_at, self.clock())
        self.clock.forward(minutes=5)
        with self.unchanged("r1"):
            self.assertIs(self.settle(), False)

    def test_settling_keeps_the_answer_and_who_held_it(self) -> None:
        self.asked()
        self.answer_for("r2")
        held = self.the_interrupt()
        self.settle()
        settled = self.the_interrupt()
        self.assertEqual(replace(settled, settled_at=None), held)
        self.assertEqual(self.find("r1").status, "interrupted")

    def test_only_what_a_run_holds_is_settled_by_it(self) -> None:
        self.asked("i1", "i2", "i3")
        self.redeem(interrupt_id="i1")
        self.answer_for("r2", "i2")
        with self.unchanged("r1"):
            self.assertIs(self.settle("r2", "i1"), False, "free")
            self.assertIs(self.settle("r3", "i2"), False, "another run holds it")
            self.assertIs(self.settle("r2", "i3"), False, "open")
            self.assertIs(self.settle("r2", "i9"), False, "unknown")
            self.assertIs(self.store.settle(SCOPE, "t2", "i2", "r2"), False, "another thread")
            self.assertIs(self.store.settle("globex", THREAD, "i2", "r2"), False, "another scope")

    def test_a_run_that_has_ended_settles_nothing_even_if_it_is_said_to_hold_it(self) -> None:
        for status in ("succeeded", "interrupted", "cancelled", "failed"):
            self.ended(status, status)
            held = replace(
                question(f"i-{status}"),
                decision=Decision(status="resolved"),
                redeemed_by=status,
                redeemed_at=self.clock(),
            )
            self.asked(held, "open", run_id=f"{status}-asked")
            with self.subTest(status), self.unchanged(f"{status}-asked"):
                self.assertIs(self.settle(status, held.id), False)

    def test_two_answers_of_one_run_are_settled_one_by_one(self) -> None:
        self.asked("i1", "i2")
        for interrupt_id in ("i1", "i2"):
            self.answer_for("r2", interrupt_id)
        self.assertIs(self.settle("r2", "i2"), True)
        self.assert_state("held", "i1")
        self.assertIs(self.settle("r2", "i1"), True)

    def test_what_was_released_is_not_settled_by_the_run_that_held_it(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.store.release(SCOPE, THREAD, "r2")
        self.assertIs(self.settle("r2"), False)
        self.answer_for("r3")
        self.assertIs(self.settle("r2"), False)
        self.assertIs(self.settle("r3"), True)

    def test_a_question_asked_again_under_its_id_is_settled_on_its_own(self) -> None:
        self.asked(run_id="r1")
        self.started("r2")
        self.redeem(run_id="r2")
        self.assertIs(self.settle("r2"), True)
        self.saved(self.find("r2").interrupted([question()], self.clock()))
        self.assertEqual(self.resume("r3", i1=NO)["i1"][1:], (True, True))
        self.assertIs(self.settle("r2"), False)
        self.assertIs(self.settle("r3"), True)
        self.assertIs(self.settle("r3"), False)
        first, second = self.the_interrupt(run_id="r1"), self.the_interrupt(run_id="r2")
        self.assertEqual((first.redeemed_by, second.redeemed_by), ("r2", "r3"))

    def test_a_run_that_holds_two_answers_under_one_id_is_allowed_to_act_once(self) -> None:
        self.asked(run_id="r1")
        other = self.started("r2")
        self.answer_for("r3")
        self.saved(other.interrupted([question()], self.clock()))
        self.assertIs(self.redeem(run_id="r3").holds, True)
        self.assertIs(self.settle("r3"), True)
        self.assertIs(self.settle("r3"), False)


class Releasing(StoreTests):
    def test_a_release_frees_what_a_run_holds(self) -> None:
        self.asked("i1", "i2", "i3")
        for interrupt_id in ("i1", "i2", "i3"):
            self.answer_for("r2", interrupt_id)
        self.settle("r2", "i2")
        held = self.the_interrupt("i1")
        self.assertEqual(self.store.release(SCOPE, THREAD, "r2"), 2)
        self.assertEqual(
            self.the_interrupt("i1"), replace(held, redeemed_by=None, redeemed_at=None)
        )
        self.assert_state("free", "i3")
        self.assert_state("settled", "i2")
        self.assertEqual(self.store.release(SCOPE, THREAD, "r2"), 0)

    def test_a_release_leaves_what_others_hold(self) -> None:
        self.asked("i1", "i2", "i3")
        self.answer_for("r2", "i1")
        self.redeem(interrupt_id="i2")
        with self.unchanged("r1"):
            self.assertEqual(self.store.release(SCOPE, THREAD, "r3"), 0)
            self.assertEqual(self.store.release(SCOPE, "t2", "r2"), 0)

    def test_a_release_frees_what_a_run_holds_of_older_runs(self) -> None:
        self.asked("i1", run_id="r1")
        self.answer_for("r3", "i1")
        self.asked("i2", run_id="r2")
        self.answer_for("r3", "i2")
        self.assertEqual(self.store.release(SCOPE, THREAD, "r3"), 2)
        self.assert_state("free", "i1")
        self.assert_state("free", "i2")

    def test_the_next_run_takes_what_was_released_and_acts_on_it(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.store.release(SCOPE, THREAD, "r2")
        self.reserved("r3")
        self.assertEqual(self.redeem(run_id="r3")[1:], (False, True))
        self.assertIs(self.settle("r3"), True)


class Abandoning(StoreTests):
    def test_open_and_free_answers_are_settled_as_cancelled(self) -> None:
        self.asked("i1", "i2")
        self.redeem(YES, "i2", by="ann")
        self.clock.forward(minutes=5)
        self.assertEqual(self.store.abandon(SCOPE, THREAD, self.clock(), "bob"), 2)
        for interrupt_id in ("i1", "i2"):
            stored = self.the_interrupt(interrupt_id)
            self.assertEqual(stored.state, AnswerState.SETTLED)
            self.assertEqual(stored.decision, Decision(status="cancelled"))
            self.assertEqual((stored.decided_at, stored.settled_at), (self.clock(),) * 2)
            self.assertEqual((stored.decided_by, stored.redeemed_by), ("bob", None))
        self.assertEqual(self.find().status, "interrupted")

    def test_expired_questions_are_abandoned_too(self) -> None:
        self.asked(question(expires_at=self.at(minutes=1)))
        self.clock.forward(minutes=5)
        self.assertEqual(self.store.abandon(SCOPE, THREAD), 1)
        self.assert_state("settled")

    def test_what_is_held_or_was_acted_on_stays(self) -> None:
        self.asked("i1", "i2")
        self.answer_for("r2", "i1")
        self.answer_for("r2", "i2")
        self.settle("r2", "i2")
        with self.unchanged("r1"):
            self.assertEqual(self.store.abandon(SCOPE, THREAD), 0)
        self.assertIs(self.settle("r2", "i1"), True)

    def test_questions_of_older_runs_are_abandoned_too(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", run_id="r2")
        self.assertEqual(self.store.abandon(SCOPE, THREAD), 2)
        self.assert_state("settled", "i1")
        self.assert_state("settled", "i2")

    def test_questions_of_other_threads_stay(self) -> None:
        self.asked(thread_id="t2")
        self.asked()
        self.store.abandon(SCOPE, THREAD)
        self.assertTrue(self.store.find_interrupt(SCOPE, "t2", "i1").pending)

    def test_nothing_is_abandoned_twice(self) -> None:
        self.asked()
        self.store.abandon(SCOPE, THREAD)
        self.clock.forward(minutes=5)
        with self.unchanged("r1"):
            self.assertEqual(self.store.abandon(SCOPE, THREAD), 0)

    def test_an_approval_that_was_withdrawn_cannot_be_acted_on(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.end("r2")
        self.store.abandon(SCOPE, THREAD)
        self.reserved("r3")
        for answer in (YES, CANCEL):
            with self.rejected("i1", code="interrupt_answered"):
                self.redeem(answer, run_id="r3")
        self.assertIs(self.settle("r2"), False)


@needs("answer")
class Inbox(StoreTests):
    """Answers that a person gives outside of a run."""

    def answer(self, interrupt_id: str = "i1", answer: Any = YES, **options: Any) -> Any:
        return self.store.answer(SCOPE, THREAD, interrupt_id, answer, by="ann", **options)

    def test_an_answer_of_the_inbox_is_free_for_the_next_run(self) -> None:
        self.asked()
        answered = self.answer()
        self.assertEqual((answered.recorded, answered.holds), (True, False))
        stored = self.the_interrupt()
        self.assertEqual((stored.state, stored.decided_by), (AnswerState.FREE, "ann"))
        self.assertEqual(self.resume("r2", i1=YES)["i1"][1:], (False, True))
        self.assertIs(self.settle("r2"), True)

    def test_the_same_answer_again_is_a_replay(self) -> None:
        self.asked()
        self.answer()
        with self.unchanged("r1"):
            self.assertIs(self.answer().recorded, False)

    def test_somebody_who_was_slower_and_disagrees_is_told_so(self) -> None:
        self.asked()
        self.answer()
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
            self.answer(answer=NO)

    def test_an_expired_question_is_refused(self) -> None:
        self.asked(question(expires_at=self.at(minutes=1)))
        self.clock.forward(minutes=1)
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_expired"):
            self.answer()

    def test_a_stale_or_unknown_question_is_refused(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", run_id="r2")
        for interrupt_id in ("i1", "i9"):
            with self.unchanged("r1", "r2"), self.rejected(interrupt_id, code="resume_rejected"):
                self.answer(interrupt_id)

    def test_an_answer_counts_for_the_run_whose_question_was_meant(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i1", run_id="r2")
        with self.unchanged("r1", "r2"), self.rejected("i1", code="resume_rejected"):
            self.answer(asked_by="r1")
        self.assertIs(self.answer(asked_by="r2").recorded, True)


@needs("release_settled")
class ReleasingSettled(StoreTests):
    """A person knows that a tool did not run."""

    def acted_on(self) -> None:
        """r2 acted on what r1 asked."""
        self.asked()
        self.started("r2")
        self.redeem(run_id="r2")
        self.settle("r2")

    def free(self, interrupt_id: str = "i1", run_id: str = "r1") -> Any:
        return self.store.release_settled(SCOPE, THREAD, run_id, interrupt_id, by="ann")

    def test_an_answer_that_a_dead_run_acted_on_can_be_taken_again(self) -> None:
        self.acted_on()
        self.end("r2")
        freed = self.free()
        self.assertEqual(freed.to_storage(), self.the_interrupt().to_storage())
        self.assertEqual(freed.state, AnswerState.FREE)
        self.assertEqual(self.resume("r3", i1=YES)["i1"][1:], (False, True))
        self.assertIs(self.settle("r2"), False)
        self.assertIs(self.settle("r3"), True)

    def test_an_answer_that_a_living_run_acted_on_stays(self) -> None:
        self.acted_on()
        with self.unchanged("r1"), self.rejected("i1"):
            self.free()

    def test_an_answer_that_nobody_acted_on_stays(self) -> None:
        self.acted_on()
        self.end("r2")
        self.asked("i2", "i3", run_id="r3")
        self.redeem(YES, "i3")
        for interrupt_id in ("i2", "i3", "i9"):
            with self.unchanged("r3"), self.rejected(interrupt_id):
                self.free(interrupt_id, "r3")

    def test_a_question_that_was_abandoned_stays(self) -> None:
        self.acted_on()
        self.end("r2")
        self.asked("i2", run_id="r3")
        self.store.abandon(SCOPE, THREAD)
        with self.unchanged("r3"), self.rejected("i2"):
            self.free("i2", "r3")

    def test_an_unknown_run_is_refused(self) -> None:
        self.acted_on()
        with self.assertRaises(ResumeRejectedError):
            self.free(run_id="r9")
