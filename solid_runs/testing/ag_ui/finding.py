"""What a thread is doing, by the order in which its runs were reserved."""

from __future__ import annotations

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.testing.ag_ui.base import SCOPE, THREAD, StoreTests, question
from solid_runs.testing.ag_ui.capabilities import needs


class Finding(StoreTests):
    def test_a_thread_without_runs_has_nothing(self) -> None:
        self.reserved(thread_id="another")
        self.assertIsNone(self.find())
        self.assertIsNone(self.store.latest_run(SCOPE, THREAD))
        self.assertIsNone(self.store.latest_interrupted(SCOPE, THREAD))
        self.assertIsNone(self.store.find_interrupt(SCOPE, THREAD, "i1"))

    def test_the_latest_run_is_the_one_reserved_last_and_not_the_one_that_ended_last(self) -> None:
        first = self.reserved("z")
        self.clock.forward(seconds=1)
        second = self.ended("a")
        self.clock.forward(seconds=1)
        self.saved(first.finish("failed", self.clock()))
        self.assert_same(self.store.latest_run(SCOPE, THREAD), second)

    def test_the_latest_run_has_any_status(self) -> None:
        for status in ("succeeded", "cancelled", "failed", "interrupted"):
            with self.subTest(status):
                self.clock.forward(seconds=1)
                record = self.ended(status, status)
                self.assert_same(self.store.latest_run(SCOPE, THREAD), record)

    def test_under_a_clock_that_stands_still_the_order_is_that_of_the_reservations(self) -> None:
        for run_id in ("m", "z", "a", "Z", "10", "9"):
            self.reserved(run_id)
            self.assertEqual(self.store.latest_run(SCOPE, THREAD).run_id, run_id)

    def test_under_a_clock_that_goes_back_the_order_is_that_of_the_reservations(self) -> None:
        for run_id in ("m", "z", "a"):
            self.asked(run_id=run_id)
            self.assertEqual(self.store.latest_run(SCOPE, THREAD).run_id, run_id)
            self.assertEqual(self.store.latest_interrupted(SCOPE, THREAD).run_id, run_id)
            self.assertIs(self.redeem().recorded, True, "the newest is answered")
            self.assertTrue(self.the_interrupt(run_id=run_id).decided)
            self.clock.back(hours=1)

    def test_questions_under_a_clock_that_stands_still_have_that_order_too(self) -> None:
        for run_id in ("m", "z", "a"):
            self.asked(run_id=run_id)
            self.assertEqual(self.store.latest_interrupted(SCOPE, THREAD).run_id, run_id)

    def test_an_attached_reserve_does_not_make_a_run_the_latest(self) -> None:
        self.reserved("r1")
        self.clock.forward(seconds=1)
        self.reserved("r2")
        self.clock.forward(seconds=1)
        self.reserved("r1")
        self.assertEqual(self.store.latest_run(SCOPE, THREAD).run_id, "r2")

    def test_the_latest_interrupted_run_stays_so_when_later_runs_exist(self) -> None:
        asked = self.asked()
        for status in ("succeeded", "cancelled", "failed"):
            self.clock.forward(seconds=1)
            self.ended(status, status)
        self.clock.forward(seconds=1)
        self.reserved("r9")
        self.assert_same(self.store.latest_interrupted(SCOPE, THREAD), asked)

    def test_of_two_interrupted_runs_the_one_reserved_last_is_the_latest(self) -> None:
        early = self.started("a")
        self.clock.forward(seconds=1)
        late = self.started("b")
        self.saved(late.interrupted([question("ib")], self.clock()))
        self.clock.forward(seconds=1)
        self.saved(early.interrupted([question("ia")], self.clock()))
        self.assertEqual(self.store.latest_interrupted(SCOPE, THREAD).run_id, "b")

    def test_a_run_that_ended_interrupted_without_questions_is_the_latest_interrupted(self) -> None:
        self.asked(run_id="r1")
        self.clock.forward(seconds=1)
        quiet = self.ended("r2", "interrupted")
        self.assert_same(self.store.latest_interrupted(SCOPE, THREAD), quiet)
        self.assertIs(quiet.awaiting_approval, False)

    def test_an_interrupt_is_found_anywhere_on_its_thread(self) -> None:
        self.asked(question("i1", message="the older"))
        self.clock.forward(seconds=1)
        self.asked("i2", run_id="r2")
        self.clock.forward(seconds=1)
        self.ended("r3")
        self.assertEqual(self.the_interrupt("i1").message, "the older")
        self.assertEqual(self.the_interrupt("i2").id, "i2")
        self.assertIsNone(self.store.find_interrupt(SCOPE, THREAD, "i3"))
        self.assertIsNone(self.store.find_interrupt(SCOPE, "t2", "i1"))

    def test_of_two_interrupts_with_one_id_that_of_the_newest_run_is_found(self) -> None:
        early = self.started("a")
        late = self.started("b")
        self.saved(late.interrupted([question(message="of b")], self.clock()))
        self.clock.forward(seconds=1)
        self.saved(early.interrupted([question(message="of a")], self.clock()))
        self.assertEqual(self.the_interrupt().message, "of b")

    def test_an_answer_goes_to_the_newest_of_two_interrupts_with_one_id(self) -> None:
        self.asked(run_id="a")
        self.asked(run_id="b")
        self.assertIs(self.redeem().recorded, True)
        self.assertTrue(self.the_interrupt(run_id="b").decided)
        self.assertTrue(self.the_interrupt(run_id="a").pending)

    def test_an_interrupt_is_found_by_its_very_id(self) -> None:
        self.asked("call_aB")
        for other in (
            "call_Ab",
            "CALL_AB",
            "call_aB ",
            " call_aB",
            "call_aB\t",
            "call_äB",
            "call%",
        ):
            with self.subTest(other=other), self.unchanged("r1"):
                self.assertIsNone(self.store.find_interrupt(SCOPE, THREAD, other))
                with self.rejected(other, code="resume_rejected"):
                    self.redeem(interrupt_id=other)
        self.answer_for("r2", "call_aB")
        for other in ("call_Ab", "call_aB "):
            with self.subTest(other=other), self.unchanged("r1"):
                self.assertIs(self.settle("r2", other), False)
        self.assertIs(self.settle("r2", "call_aB"), True)


@needs("status")
class Statuses(StoreTests):
    def test_the_status_is_that_of_the_run(self) -> None:
        self.asked(run_id="before")
        for made in (self.reserved, self.started, self.ended, self.asked):
            run_id = made.__name__
            record = made(run_id=run_id)
            status = self.store.status(SCOPE, THREAD, run_id)
            self.assertIs(status, record.status)
            self.assertEqual(status, self.find(run_id).status)

    def test_the_status_follows_the_run(self) -> None:
        record = self.started()
        self.store.heartbeat(record.advance(self.clock()))
        self.assertEqual(self.store.status(SCOPE, THREAD, "r1"), "started")
        self.end("r1", "cancelled")
        self.assertEqual(self.store.status(SCOPE, THREAD, "r1"), "cancelled")

    def test_a_run_that_is_not_there_has_no_status(self) -> None:
        self.reserved()
        self.assertIsNone(self.store.status(SCOPE, THREAD, "R1"))
        self.assertIsNone(self.store.status(SCOPE, "t2", "r1"))
        self.assertIsNone(self.store.status("globex", THREAD, "r1"))

    def test_what_is_no_id_has_no_status_and_is_refused(self) -> None:
        for thread_id, run_id in ((THREAD, ""), ("", "r1"), (THREAD, "r\0"), (THREAD, None)):
            with self.assertRaises(ConfigurationError):
                self.store.status(SCOPE, thread_id, run_id)
