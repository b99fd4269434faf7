"""A request to run: reserved with its answers, offered the open questions, or refused whole."""

from __future__ import annotations

from typing import Any

from solid_runs.ag_ui.exceptions import (
    ConfigurationError,
    InterruptsPendingError,
    RunConflictError,
    ThreadBusyError,
)
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
from solid_runs.testing.ag_ui.capabilities import needs


@needs("admit")
class Admitting(StoreTests):
    def admit(self, run_id: str = "r2", digest: str = "d1", **options: Any) -> Any:
        return self.store.admit(SCOPE, THREAD, run_id, digest, **options)

    def test_a_plain_run_is_reserved(self) -> None:
        admission = self.admit("r1")
        self.assertEqual(
            (admission.new, admission.attached, admission.offered), (True, False, False)
        )
        self.assertEqual((admission.record.status, admission.answers), ("reserved", ()))
        self.assertEqual(admission.record.created_at, self.clock())
        self.assert_same(self.find("r1"), admission.record)

    def test_a_run_that_is_there_is_attached_whatever_the_request_brings(self) -> None:
        self.asked("i1", "i2")
        brought = entries(i1=YES, i2=NO)
        first = self.admit(entries=brought)
        self.clock.forward(minutes=5)
        for again in (brought, (), entries(i9=YES), entries(i1=CANCEL, i2=CANCEL)):
            with self.subTest(again=again), self.unchanged("r1", "r2"):
                admission = self.admit(entries=again)
                self.assertEqual((admission.new, admission.attached), (False, True))
                self.assertEqual((admission.offered, admission.answers), (False, ()))
                self.assert_same(admission.record, first.record)

    def test_a_run_that_has_ended_is_attached(self) -> None:
        for run_id, status in (("r2", "succeeded"), ("r3", "interrupted"), ("r4", "failed")):
            ended = self.ended(run_id, status)
            admission = self.admit(run_id)
            self.assertIs(admission.attached, True)
            self.assert_same(admission.record, ended)

    def test_the_run_that_asked_is_attached_and_not_offered(self) -> None:
        asked = self.asked()
        admission = self.admit("r1")
        self.assertEqual((admission.attached, admission.offered), (True, False))
        self.assert_same(admission.record, asked)

    def test_another_digest_is_a_conflict(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        with self.unchanged("r1", "r2"), self.assertRaises(RunConflictError):
            self.admit("r2", "d2", entries=entries(i1=NO))

    def test_answers_are_held_by_the_run_that_is_reserved(self) -> None:
        self.asked("i1", "i2")
        admission = self.admit(entries=entries(i2=NO, i1=YES), by="ann")
        self.assertIs(admission.new, True)
        self.assertEqual([one.holds for one in admission.answers], [True, True])
        self.assertEqual(
            [one.interrupt.id for one in admission.answers],
            ["i1", "i2"],
            "the answers are in the order of the interrupts",
        )
        self.assertEqual(self.the_interrupt("i1").decided_by, "ann")
        self.assertIs(self.settle("r2", "i1"), True)

    def test_an_answer_out_of_the_inbox_comes_with_the_answers_of_a_request(self) -> None:
        self.asked("i1", "i2")
        self.redeem(interrupt_id="i1")
        admission = self.admit(entries=entries(i2=NO))
        taken = {one.interrupt.id: one.holds for one in admission.answers}
        self.assertEqual(taken, {"i1": True, "i2": True})
        self.assertIs(self.settle("r2", "i1"), True)

    def test_answers_that_are_refused_leave_no_row(self) -> None:
        self.asked("i1", "i2")
        for brought, named in (
            (entries(i1=YES), "i2"),
            (entries(i1=YES, i2=YES, i9=YES), "i9"),
            (entries(i1=YES, i2=YES) + entries(i1=YES), "i1"),
        ):
            with (
                self.subTest(brought=brought),
                self.unchanged("r1", "r2"),
                self.rejected(named, code="resume_rejected"),
            ):
                self.admit(entries=brought)
        self.assertIsNone(self.find("r2"))
        self.assertEqual(self.store.latest_run(SCOPE, THREAD).run_id, "r1")

    def test_answers_that_make_no_sense_leave_no_row(self) -> None:
        self.asked()
        with self.unchanged("r1", "r2"), self.assertRaises(ConfigurationError):
            self.admit(entries=[{"interruptId": "i1", "status": "maybe"}])

    def test_late_and_disagreeing_answers_leave_no_row(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.redeem(YES, "i2")
        with self.unchanged("r1", "r2"), self.rejected("i2", code="interrupt_answered"):
            self.admit(entries=entries(i1=YES, i2=NO))
        self.clock.forward(minutes=1)
        with self.unchanged("r1", "r2"), self.rejected("i1", code="interrupt_expired"):
            self.admit(entries=entries(i1=YES, i2=YES))

    def test_a_full_set_of_cancelled_answers_makes_an_ordinary_run(self) -> None:
        self.asked("i1", "i2")
        self.redeem(YES, "i2", run_id="r9")
        admission = self.admit(entries=entries(i1=CANCEL, i2=CANCEL))
        self.assertIs(admission.new, True)
        self.assertEqual([one.holds for one in admission.answers], [False, False])
        self.assert_state("settled", "i1")
        self.assert_state("held", "i2")

    def test_a_plain_run_is_offered_the_open_questions_and_leaves_no_row(self) -> None:
        asked = self.asked("i1", "i2")
        self.ended("r0")
        with self.unchanged("r1", "r2"):
            admission = self.admit()
        self.assertEqual(
            (admission.new, admission.attached, admission.offered), (False, False, True)
        )
        self.assert_same(admission.record, asked)
        self.assertEqual(admission.answers, ())

    def test_a_plain_run_is_refused_instead_where_nothing_shall_be_offered(self) -> None:
        self.asked("i1", "i2")
        with self.unchanged("r1", "r2"), self.assertRaises(InterruptsPendingError) as caught:
            self.admit(offer=False)
        self.assertEqual(caught.exception.interrupt_ids, ("i1", "i2"))
        self.assertEqual(caught.exception.thread_id, THREAD)

    def test_questions_of_which_some_have_expired_are_all_offered(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.clock.forward(minutes=5)
        with self.unchanged("r1", "r2"):
            self.assertIs(self.admit().offered, True)

    def test_an_open_question_beside_an_answered_one_is_offered(self) -> None:
        self.asked("i1", "i2")
        self.redeem(YES, "i1")
        with self.unchanged("r1", "r2"):
            self.assertIs(self.admit().offered, True)

    def test_a_run_goes_on_when_all_the_questions_have_expired(self) -> None:
        expiring = (question(name, expires_at=self.at(minutes=1)) for name in ("i1", "i2"))
        self.asked(*expiring)
        self.clock.forward(minutes=1)
        admission = self.admit()
        self.assertEqual((admission.new, admission.offered), (True, False))
        self.assertFalse(any(one.holds for one in admission.answers))
        for interrupt_id in ("i1", "i2"):
            stored = self.the_interrupt(interrupt_id)
            self.assertEqual((stored.state, stored.decided_by), ("settled", "expiry"))
            self.assertEqual(stored.decision, Decision(status="cancelled"))
        self.assertIs(self.settle("r2"), False)

    def test_a_run_takes_the_free_answers_beside_questions_that_have_expired(self) -> None:
        self.asked(question("i1", expires_at=self.at(minutes=1)), "i2")
        self.redeem(YES, "i2")
        self.clock.forward(minutes=1)
        admission = self.admit()
        self.assertEqual([one.interrupt.id for one in admission.answers if one.holds], ["i2"])
        self.assert_state("settled", "i1")
        self.assert_state("held", "i2")

    def test_a_plain_run_takes_the_free_answers(self) -> None:
        self.asked("i1", "i2")
        self.redeem(NO, "i2", by="ann")
        self.redeem(YES, "i1", by="ann")
        admission = self.admit()
        self.assertIs(admission.new, True)
        self.assertEqual(
            [(one.interrupt.id, *one[1:]) for one in admission.answers],
            [("i1", False, True), ("i2", False, True)],
        )
        stored = self.the_interrupt("i1")
        self.assertEqual((stored.redeemed_by, stored.decided_by), ("r2", "ann"))
        self.assertIs(self.settle("r2", "i1"), True)

    def test_a_plain_run_leaves_what_others_hold_or_have_acted_on(self) -> None:
        self.asked("i1", "i2")
        self.resume("r9", i1=YES, i2=YES)
        self.settle("r9", "i1")
        with self.unchanged("r1"):
            admission = self.admit()
        self.assertEqual((admission.new, admission.answers), (True, ()))

    def test_a_plain_run_takes_what_a_dead_run_left(self) -> None:
        self.asked("i1", "i2")
        self.resume("r9", i1=YES, i2=NO)
        self.settle("r9", "i1")
        self.end("r9")
        admission = self.admit()
        self.assertEqual([one.interrupt.id for one in admission.answers], ["i2"])
        self.assertIs(admission.answers[0].holds, True)

    def test_an_approval_in_the_inbox_and_one_in_the_browser_make_one_tool_call(self) -> None:
        self.asked()
        self.redeem(YES, by="ann")
        browser = self.admit("r2", entries=entries(i1=YES))
        self.assertEqual(browser.answers[0][1:], (False, True))
        started_by_the_host = self.admit("r3")
        self.assertEqual((started_by_the_host.new, started_by_the_host.answers), (True, ()))
        self.assertIs(self.settle("r3"), False)
        self.assertIs(self.settle("r2"), True)


@needs("admit", "policy")
class AdmittingOne(StoreTests):
    def test_a_busy_thread_admits_nobody_and_takes_no_answer(self) -> None:
        self.asked()
        self.started("r2")
        for brought in ((), entries(i1=YES), entries(i1=CANCEL)):
            with (
                self.subTest(brought=brought),
                self.unchanged("r1", "r2", "r3"),
                self.assertRaises(ThreadBusyError) as caught,
            ):
                self.store.admit(SCOPE, THREAD, "r3", "d1", brought, policy="reject")
            self.assertEqual(caught.exception.active_run_id, "r2")

    def test_a_run_admits_itself_to_the_thread_that_it_keeps_busy(self) -> None:
        self.store.admit(SCOPE, THREAD, "r1", "d1", policy="reject")
        self.assertIs(self.store.admit(SCOPE, THREAD, "r1", "d1", policy="reject").attached, True)

    def test_the_answer_that_a_dead_run_held_is_taken_by_the_next_one(self) -> None:
        self.asked()
        self.started("r2")
        self.redeem(run_id="r2")
        self.clock.forward(minutes=5)
        admission = self.store.admit(SCOPE, THREAD, "r3", "d1", entries(i1=YES), policy="reject")
        self.assertEqual(admission.answers[0][1:], (False, True))
        self.assertEqual(self.find("r2").failure["code"], "stalled")

    def test_a_dead_run_stays_as_it_was_when_the_answers_are_refused(self) -> None:
        self.asked()
        self.started("r2")
        self.redeem(run_id="r2")
        self.clock.forward(minutes=5)
        with self.unchanged("r1", "r2", "r3"), self.rejected("i1"):
            self.store.admit(SCOPE, THREAD, "r3", "d1", entries(i1=NO), policy="reject")
