"""The answers that a run brings: all of them or none."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from solid_runs.ag_ui.answers import Answer
from solid_runs.ag_ui.exceptions import ConfigurationError, StreamError
from solid_runs.ag_ui.interrupts import Decision
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

MALFORMED: Final[list[Any]] = [
    *(None, "i1", 1, {"interruptId": "i1", "status": "resolved"}, [None], ["i1"], [[]], [{}]),
    [{"interruptId": "i1"}],
    [{"interruptId": "i1", "status": "maybe"}],
    [{"interruptId": None, "status": "resolved"}],
    [{"interruptId": 1, "status": "resolved"}],
    [{"interruptId": "i\0", "status": "resolved"}],
    [{"interruptId": "i" * 256, "status": "cancelled"}],
    [{"status": "resolved"}],
]


class Resuming(StoreTests):
    def test_a_batch_is_recorded_and_held_by_the_run_that_brings_it(self) -> None:
        self.asked("i1", "i2")
        self.clock.forward(minutes=5)
        self.reserved("r2")
        given = [
            {"interruptId": "i2", **NO, "metadata": {"tab": 1}},
            {"interruptId": "i1", **YES},
        ]
        redeemed = self.store.resume(SCOPE, THREAD, given, "r2", self.at(seconds=1), by="ann")
        self.assertEqual({one.interrupt.id for one in redeemed}, {"i1", "i2"})
        for one in redeemed:
            self.assertEqual((one.recorded, one.holds), (True, True))
            stored = self.the_interrupt(one.interrupt.id)
            self.assertEqual(stored.to_storage(), one.interrupt.to_storage())
            self.assertEqual((stored.decided_by, stored.redeemed_by), ("ann", "r2"))
            self.assertEqual((stored.decided_at, stored.redeemed_at), (self.at(seconds=1),) * 2)
        self.assertEqual(
            self.the_interrupt("i2").decision,
            Decision(status="resolved", payload={"approved": False}, metadata={"tab": 1}),
        )
        self.assertIs(self.settle("r2", "i1"), True)
        self.assertIs(self.settle("r2", "i2"), True)

    def test_a_batch_may_be_any_iterable_of_answers(self) -> None:
        self.asked("i1", "i2")
        self.reserved("r2")
        given = (Answer(name, Decision(status="resolved")) for name in ("i1", "i2"))
        self.assertEqual(len(self.store.resume(SCOPE, THREAD, given, "r2")), 2)
        self.assert_state("held", "i2")

    def test_nothing_needs_no_answer(self) -> None:
        self.assertEqual(self.resume("r1"), {})
        self.asked(run_id="r2")
        self.store.abandon(SCOPE, THREAD)
        self.assertEqual(self.resume("r3"), {})

    def test_a_batch_given_again_by_its_run_is_a_replay(self) -> None:
        self.asked("i1", "i2")
        self.resume("r2", i1=YES, i2=CANCEL)
        with self.unchanged("r1"):
            again = self.resume("r2", i1=YES, i2=CANCEL)
        self.assertEqual((again["i1"][1:], again["i2"][1:]), ((False, True), (False, False)))
        self.settle("r2")
        with self.unchanged("r1"):
            again = self.resume("r2", i1=YES, i2=CANCEL)
        self.assertEqual((again["i1"][1:], again["i2"][1:]), ((False, False), (False, False)))

    def test_a_cancelled_entry_beside_a_resolved_one_is_settled_at_once(self) -> None:
        self.asked("i1", "i2")
        redeemed = self.resume("r2", i1=CANCEL, i2=YES)
        self.assertEqual(redeemed["i1"][1:], (True, False))
        self.assertEqual(redeemed["i2"][1:], (True, True))
        gone = self.the_interrupt("i1")
        self.assertEqual(gone.decision, Decision(status="cancelled"))
        self.assertEqual((gone.state, gone.redeemed_by), ("settled", "r2"))
        self.assert_state("held", "i2")

    def test_a_cancelled_entry_keeps_its_metadata(self) -> None:
        for number, other in enumerate((YES, CANCEL), 1):
            with self.subTest(other=other):
                run_id = f"asking{number}"
                self.asked("i1", "i2", run_id=run_id)
                self.resume(f"r{number}", i1={**CANCEL, "metadata": {"tab": 1}}, i2=other)
                decision = self.the_interrupt("i1", run_id).decision
                self.assertEqual(decision and decision.metadata, {"tab": 1})

    def test_a_run_that_has_ended_takes_nothing(self) -> None:
        self.asked()
        for status in ("succeeded", "cancelled", "failed"):
            self.ended(status, status)
            with self.subTest(status), self.unchanged("r1"), self.assertRaises(StreamError):
                self.resume(status, i1=YES)

    def test_a_run_that_has_ended_keeps_no_answer_from_others(self) -> None:
        self.asked()
        self.ended("dead", "failed")
        with suppress(StreamError):
            self.redeem(run_id="dead")
        self.assertIs(self.resume("r2", i1=YES)["i1"].holds, True)
        self.assertIs(self.settle("dead"), False)
        self.assertIs(self.settle("r2"), True)

    def test_a_malformed_batch_is_refused(self) -> None:
        self.asked()
        self.reserved("r2")
        for given in MALFORMED:
            with (
                self.subTest(given=given),
                self.unchanged("r1"),
                self.assertRaises(ConfigurationError),
            ):
                self.store.resume(SCOPE, THREAD, given, "r2")


class Refusing(StoreTests):
    """A batch that is not taken says which of its entries are the reason, and changes nothing."""

    def refuses(self, *named: str, code: str | None = None, **answers: Any) -> None:
        with self.unchanged("r1", "r2"), self.rejected(*named, code=code):
            self.resume("r3", **answers)

    def test_an_entry_that_comes_twice(self) -> None:
        self.asked("i1", "i2")
        self.reserved("r3")
        for second in (YES, NO, CANCEL):
            twice = [*entries(i1=YES, i2=YES), *entries(i1=second)]
            with self.unchanged("r1"), self.rejected("i1", code="resume_rejected"):
                self.store.resume(SCOPE, THREAD, twice, "r3")

    def test_an_entry_that_nobody_asked(self) -> None:
        self.asked("i1")
        self.refuses("i9", code="resume_rejected", i1=YES, i9=YES)
        self.refuses("i9", code="resume_rejected", i1=CANCEL, i9=CANCEL)

    def test_an_entry_on_a_thread_that_asked_nothing(self) -> None:
        self.ended("r1")
        self.refuses("i1", i1=YES)
        self.refuses("i1", i1=CANCEL)

    def test_a_stale_entry(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", run_id="r2")
        self.refuses("i1", code="resume_rejected", i1=YES, i2=YES)
        self.refuses("i1", code="resume_rejected", i1=CANCEL, i2=CANCEL)

    def test_the_questions_of_an_older_run_instead_of_the_latest(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", run_id="r2")
        self.refuses("i1", "i2", code="resume_rejected", i1=YES)

    def test_an_open_question_without_an_entry(self) -> None:
        self.asked("i1", "i2", "i3")
        self.refuses("i2", "i3", code="resume_rejected", i1=YES)
        self.refuses("i2", "i3", code="resume_rejected", i1=CANCEL)
        self.refuses("i1", "i2", "i3", code="resume_rejected")

    def test_an_expired_question_without_an_entry(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.clock.forward(minutes=5)
        self.refuses("i1", code="resume_rejected", i2=YES)

    def test_an_entry_that_disagrees_with_a_free_answer(self) -> None:
        self.asked("i1", "i2")
        self.redeem(YES, "i1")
        self.refuses("i1", code="interrupt_answered", i1=NO, i2=YES)
        self.assert_state("open", "i2")

    def test_an_entry_that_another_run_holds(self) -> None:
        self.asked("i1", "i2")
        self.resume("r2", i1=YES, i2=YES)
        self.refuses("i1", code="interrupt_answered", i1=YES)
        self.refuses("i1", code="interrupt_answered", i1=NO)

    def test_an_entry_that_was_acted_on_already(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.settle("r2")
        self.refuses("i1", code="interrupt_answered", i1=YES)
        self.refuses("i1", code="interrupt_answered", i1=NO)
        self.end("r2")
        self.refuses("i1", code="interrupt_answered", i1=YES)

    def test_an_expired_question_that_is_resolved(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.clock.forward(minutes=1)
        self.refuses("i1", code="interrupt_expired", i1=YES, i2=YES)
        self.assert_state("open", "i2")

    def test_all_the_reasons_at_once(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", "i3", run_id="r2")
        self.reserved("r3")
        given = [*entries(i1=YES, i2=YES, i9=YES), *entries(i2=YES)]
        with self.rejected("i1", "i2", "i3", "i9", code="resume_rejected"):
            self.store.resume(SCOPE, THREAD, given, "r3")


class Cancelling(StoreTests):
    """A full set of cancelled entries is always taken: nobody is locked out."""

    def test_open_questions_are_settled_as_cancelled(self) -> None:
        self.asked("i1", "i2")
        self.clock.forward(minutes=5)
        redeemed = self.resume("r2", i1=CANCEL, i2=CANCEL)
        for interrupt_id in ("i1", "i2"):
            self.assertEqual(redeemed[interrupt_id][1:], (True, False))
            stored = self.the_interrupt(interrupt_id)
            self.assertEqual(stored.to_storage(), redeemed[interrupt_id].interrupt.to_storage())
            self.assertEqual((stored.state, stored.redeemed_by), ("settled", "r2"))
            self.assertEqual(stored.decision, Decision(status="cancelled"))
        self.assertIs(self.settle("r2"), False, "there is nothing to act on")

    def test_expired_questions_are_settled_as_cancelled(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.clock.forward(minutes=5)
        self.resume("r2", i1=CANCEL, i2=CANCEL)
        self.assert_state("settled", "i1")
        self.assert_state("settled", "i2")

    def test_an_expired_question_is_cancelled_beside_one_that_is_resolved(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.clock.forward(minutes=5)
        redeemed = self.resume("r2", i1=CANCEL, i2=YES)
        self.assertEqual((redeemed["i1"].holds, redeemed["i2"].holds), (False, True))
        self.assert_state("settled", "i1")
        self.assert_state("held", "i2")

    def test_an_approval_that_nobody_used_is_withdrawn(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.end("r2")
        self.assert_state("free")
        redeemed = self.resume("r3", i1=CANCEL)
        self.assertIs(redeemed["i1"].holds, False)
        stored = self.the_interrupt()
        self.assertEqual((stored.state, stored.redeemed_by), ("settled", "r3"))
        self.assertEqual(stored.decision, Decision(status="cancelled"))

    def test_what_another_run_holds_is_acknowledged_and_stays(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        with self.unchanged("r1"):
            redeemed = self.resume("r3", i1=CANCEL)
        self.assertEqual(redeemed["i1"][1:], (False, False))
        self.assertIs(self.settle("r3"), False)
        self.assertIs(self.settle("r2"), True)

    def test_what_was_acted_on_is_acknowledged_and_stays(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.settle("r2")
        self.end("r2")
        with self.unchanged("r1"):
            redeemed = self.resume("r3", i1=CANCEL)
        self.assertEqual(redeemed["i1"][1:], (False, False))

    def test_a_set_over_every_state_at_once_is_taken(self) -> None:
        self.asked("open", "free", "held", "settled", question("late", expires_at=self.at(hours=1)))
        self.redeem(YES, "free")
        for interrupt_id in ("held", "settled"):
            self.answer_for("r2", interrupt_id)
        self.settle("r2", "settled")
        self.clock.forward(hours=2)
        before = {name: self.the_interrupt(name) for name in ("held", "settled")}
        names = ("open", "free", "held", "settled", "late")
        redeemed = self.resume("r3", **dict.fromkeys(names, CANCEL))
        self.assertEqual({name for name, one in redeemed.items() if one.holds}, set())
        for name, interrupt in before.items():
            self.assertEqual(self.the_interrupt(name).to_storage(), interrupt.to_storage())
        for name in ("open", "free", "late"):
            self.assertEqual(self.the_interrupt(name).redeemed_by, "r3")
            self.assert_state("settled", name)

    def test_a_set_given_again_is_taken_again(self) -> None:
        self.asked("i1", "i2")
        self.resume("r2", i1=CANCEL, i2=CANCEL)
        with self.unchanged("r1"):
            self.resume("r2", i1=CANCEL, i2=CANCEL)
            self.resume("r3", i1=CANCEL, i2=CANCEL)

    def test_a_set_may_leave_out_what_is_answered_and_takes_it_along(self) -> None:
        self.asked("i1", "i2")
        self.redeem(YES, "i1")
        taken = self.resume("r2", i2=CANCEL)
        self.assert_state("settled", "i2")
        self.assert_state("held", "i1")
        self.assertEqual((taken["i1"].recorded, taken["i1"].holds), (False, True))


class Crashing(StoreTests):
    """A run dies with its answers."""

    def test_answers_that_were_not_used_are_used_by_the_next_run(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.end("r2")
        self.assertEqual(self.resume("r3", i1=YES)["i1"][1:], (False, True))
        self.assertIs(self.settle("r2"), False)
        self.assertIs(self.settle("r3"), True)

    def crash_between(self, **answers: Any) -> None:
        """r2 acted on i1 and died before i2."""
        self.asked("i1", "i2")
        self.resume("r2", **(answers or {"i1": YES, "i2": YES}))
        self.settle("r2", "i1")
        self.end("r2")
        self.assert_state("settled", "i1")

    def test_an_equal_answer_to_what_was_acted_on_is_a_replay_beside_one_that_is_held(self) -> None:
        self.crash_between()
        redeemed = self.resume("r3", i1=YES, i2=YES)
        self.assertEqual(redeemed["i1"][1:], (False, False))
        self.assertEqual(redeemed["i2"][1:], (False, True))
        self.assertEqual(self.the_interrupt("i1").redeemed_by, "r2")
        self.assertIs(self.settle("r3", "i1"), False)
        self.assertIs(self.settle("r3", "i2"), True)

    def test_an_equal_answer_to_what_was_acted_on_is_refused_on_its_own(self) -> None:
        self.crash_between()
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
            self.resume("r3", i1=YES)

    def test_another_answer_to_what_was_acted_on_is_refused(self) -> None:
        self.crash_between()
        with self.unchanged("r1"), self.rejected("i1", code="interrupt_answered"):
            self.resume("r3", i1=NO, i2=YES)

    def test_the_answer_that_is_left_is_enough(self) -> None:
        self.crash_between()
        self.assertEqual(self.resume("r3", i2=YES)["i2"][1:], (False, True))

    def test_a_batch_with_a_cancelled_entry_is_taken_by_the_next_run(self) -> None:
        self.asked("i1", "i2")
        self.resume("r2", i1=CANCEL, i2=YES)
        self.end("r2")
        redeemed = self.resume("r3", i1=CANCEL, i2=YES)
        self.assertEqual((redeemed["i1"].holds, redeemed["i2"].holds), (False, True))

    def test_a_batch_with_a_cancelled_entry_that_gives_a_reason_is_taken_by_the_next_run(
        self,
    ) -> None:
        self.asked("i1", "i2")
        reason = {**CANCEL, "payload": {"reason": "closed the tab"}}
        self.resume("r2", i1=reason, i2=YES)
        self.end("r2")
        redeemed = self.resume("r3", i1=reason, i2=YES)
        self.assertEqual((redeemed["i1"].holds, redeemed["i2"].holds), (False, True))
