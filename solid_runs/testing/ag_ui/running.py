"""One active run a thread where a host wants that, requests to cancel, and signs of life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solid_runs.ag_ui.exceptions import (
    ConfigurationError,
    RunConflictError,
    StreamError,
    ThreadBusyError,
)
from solid_runs.testing.ag_ui.base import (
    NO,
    SCOPE,
    STALL_AFTER,
    THREAD,
    YES,
    StoreTests,
    question,
)
from solid_runs.testing.ag_ui.capabilities import needs


@needs("policy")
class OneAtATime(StoreTests):
    def test_two_runs_of_a_thread_may_be_active_unless_the_policy_says_otherwise(self) -> None:
        self.started("r1")
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r2", "d1").new, True)
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r3", "d1", policy="allow").new, True)

    def test_a_second_run_is_refused_while_one_is_active(self) -> None:
        for made in (self.reserved, self.started):
            thread_id = made.__name__
            made("r1", thread_id=thread_id)
            with self.subTest(thread_id), self.assertRaises(ThreadBusyError) as caught:
                self.store.reserve(SCOPE, thread_id, "r2", "d1", policy="reject")
            self.assertEqual(
                (caught.exception.thread_id, caught.exception.active_run_id), (thread_id, "r1")
            )
            self.assertIsNone(self.find("r2", thread_id))

    def test_the_policy_can_be_that_of_the_store(self) -> None:
        self.store = self.new_store(policy="reject")
        self.reserved("r1")
        with self.assertRaises(ThreadBusyError):
            self.reserved("r2")
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r2", "d1", policy="allow").new, True)

    def test_an_unknown_policy_is_refused(self) -> None:
        with self.assertRaises(ConfigurationError):
            self.new_store(policy="queue")
        with self.assertRaises(ConfigurationError):
            self.store.reserve(SCOPE, THREAD, "r1", "d1", policy="queue")

    def test_a_run_is_attached_to_itself(self) -> None:
        self.started("r1")
        self.reserved("r2")
        for run_id in ("r1", "r2"):
            again = self.store.reserve(SCOPE, THREAD, run_id, "d1", policy="reject")
            self.assertIs(again.attached, True)
        with self.assertRaises(RunConflictError):
            self.store.reserve(SCOPE, THREAD, "r1", "d2", policy="reject")

    def test_an_ended_run_is_not_active(self) -> None:
        for number, status in enumerate(("succeeded", "interrupted", "cancelled", "failed")):
            with self.subTest(status):
                reserved = self.store.reserve(SCOPE, THREAD, f"r{number}", "d1", policy="reject")
                self.assertIs(reserved.new, True)
                self.saved(reserved.record.finish(status, self.clock()))

    def test_a_run_elsewhere_keeps_nobody_busy(self) -> None:
        self.started("r1", thread_id="t2")
        self.started("r1", scope="globex")
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r2", "d1", policy="reject").new, True)

    def test_a_run_whose_owner_is_gone_is_failed_and_keeps_nobody_busy(self) -> None:
        self.asked(run_id="r0")
        self.started("r1", snapshot={"step": 1})
        self.redeem(YES, run_id="r1")
        self.clock.forward(minutes=5)
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r2", "d1", policy="reject").new, True)
        gone = self.find("r1")
        self.assertEqual((gone.status, gone.failure["code"]), ("failed", "stalled"))
        self.assertEqual(gone.snapshot, {"step": 1})
        self.assert_state("free")

    def test_a_run_within_the_limit_is_active(self) -> None:
        record = self.started("r1")
        for _ in range(5):
            self.clock.forward(seconds=STALL_AFTER.total_seconds() * 0.9)
            with self.assertRaises(ThreadBusyError):
                self.store.reserve(SCOPE, THREAD, "r2", "d1", policy="reject")
            self.store.heartbeat(record)
        self.assertEqual(self.find("r1").status, "started")

    def test_of_a_dead_run_and_a_living_one_nothing_is_written(self) -> None:
        self.started("dead")
        self.clock.forward(minutes=5)
        self.started("living")
        with self.unchanged("dead", "living", "r3"), self.assertRaises(ThreadBusyError) as caught:
            self.store.reserve(SCOPE, THREAD, "r3", "d1", policy="reject")
        self.assertEqual(caught.exception.active_run_id, "living")


class SignsOfLife(StoreTests):
    def test_a_heartbeat_writes_how_far_the_run_is(self) -> None:
        record = self.started(snapshot={"step": 1})
        self.clock.forward(seconds=2)
        ahead = record.advance(self.clock()).advance(self.clock())
        self.assertIs(self.store.heartbeat(ahead, self.clock()), False)
        stored = self.find()
        self.assertEqual((stored.sequence, stored.updated_at), (2, self.clock()))
        self.assertEqual((stored.status, stored.snapshot), ("started", {"step": 1}))

    def test_the_time_of_a_heartbeat_is_that_of_the_clock(self) -> None:
        record = self.started()
        self.clock.forward(seconds=2)
        self.store.heartbeat(record)
        self.assertEqual(self.find().updated_at, self.clock())

    def test_a_heartbeat_may_bring_the_state_along(self) -> None:
        record = self.started(snapshot={"step": 1})
        for state in ({"step": [2]}, {}, None):
            self.store.heartbeat(record, snapshot=state)
            self.assertEqual(self.find().snapshot, state)

    def test_a_heartbeat_that_is_refused_leaves_the_state(self) -> None:
        copy = self.started(snapshot={"step": 1})
        self.store.heartbeat(copy.advance(self.clock()))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.store.heartbeat(copy, snapshot={"step": 9})

    def test_a_heartbeat_of_a_run_that_has_ended_is_refused(self) -> None:
        for status in ("succeeded", "interrupted", "cancelled", "failed"):
            copy = self.started(status)
            self.end(status, status)
            with (
                self.subTest(status),
                self.unchanged(status),
                self.assertRaises(StreamError),
            ):
                self.store.heartbeat(copy, self.at(seconds=2))

    def test_a_heartbeat_of_a_copy_that_is_behind_is_refused(self) -> None:
        copy = self.started()
        self.store.heartbeat(copy.advance(self.clock()))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.store.heartbeat(copy, self.at(seconds=2))

    def test_a_heartbeat_of_a_run_that_was_never_reserved_is_refused(self) -> None:
        copy = self.started(thread_id="t2")
        self.reserved()
        changes: list[dict[str, Any]] = [{"run_id": "r9"}, {"thread_id": "t9"}, {"scope": "x"}]
        for change in changes:
            stranger = replace(copy, **change)
            with self.subTest(change=change), self.assertRaises(StreamError):
                self.store.heartbeat(stranger)
            self.assertIsNone(self.find(stranger.run_id, stranger.thread_id, stranger.scope))

    def test_a_heartbeat_asks_for_the_end_once_somebody_has(self) -> None:
        record = self.started()
        self.assertIs(self.store.heartbeat(record), False)
        self.store.request_cancel(SCOPE, THREAD, "r1")
        for _ in range(2):
            self.assertIs(self.store.heartbeat(record), True)
        self.saved(record.checkpoint({"step": 2}, self.clock()))
        self.assertIs(self.store.heartbeat(record), True)


class CancelRequests(StoreTests):
    def cancel(self, run_id: str = "r1") -> tuple[str, bool]:
        asked = self.store.request_cancel(SCOPE, THREAD, run_id, by="ann")
        self.assert_same(asked.record, self.find(run_id))
        return asked.record.status.value, asked.ended

    def test_there_is_nothing_to_cancel_where_no_run_is(self) -> None:
        self.reserved(thread_id="t2")
        self.assertIsNone(self.store.request_cancel(SCOPE, THREAD, "r1"))
        self.assertIsNone(self.find())

    def test_a_run_that_was_not_started_is_cancelled_at_once(self) -> None:
        self.reserved()
        self.assertEqual(self.cancel(), ("cancelled", True))

    def test_a_run_that_was_not_started_gives_back_what_it_holds(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.assertEqual(self.cancel("r2"), ("cancelled", True))
        self.assert_state("free")

    def test_a_running_run_is_asked_and_goes_on(self) -> None:
        started = self.started()
        for _ in range(2):
            self.assertEqual(self.cancel(), ("started", False))
        self.assert_same(self.find(), started)
        self.saved(started.finish("cancelled", self.clock()))
        self.assertEqual(self.find().status, "cancelled")

    def test_a_run_that_was_asked_may_still_succeed(self) -> None:
        started = self.started()
        self.cancel()
        self.saved(started.finish("succeeded", self.clock()))
        self.assertEqual(self.find().status, "succeeded")

    def test_a_request_is_no_sign_of_life(self) -> None:
        self.started()
        self.clock.forward(seconds=40)
        self.assertEqual(self.cancel(), ("started", False))
        self.clock.forward(seconds=40)
        self.assertEqual(self.cancel(), ("cancelled", True))

    def test_a_run_whose_owner_is_gone_is_cancelled_at_once(self) -> None:
        self.asked()
        started = self.started("r2")
        self.redeem(YES, run_id="r2")
        self.clock.forward(minutes=5)
        self.assertEqual(self.cancel("r2"), ("cancelled", True))
        self.assert_state("free")
        with self.unchanged("r2"), self.assertRaises(StreamError):
            self.saved(started.finish("succeeded", self.clock()))

    def test_an_owner_that_gives_signs_of_life_is_not_gone(self) -> None:
        record = self.started()
        for _ in range(4):
            self.clock.forward(seconds=40)
            self.store.heartbeat(record)
        self.assertEqual(self.cancel(), ("started", False))

    def test_a_run_that_saves_gives_a_sign_of_life(self) -> None:
        record = self.started()
        self.clock.forward(seconds=40)
        self.saved(record.checkpoint({"step": 2}, self.clock()))
        self.clock.forward(seconds=40)
        self.assertEqual(self.cancel(), ("started", False))

    def test_the_open_questions_of_an_interrupted_run_are_abandoned(self) -> None:
        late = question("i5", expires_at=self.clock())
        self.asked("i1", "i2", "i3", "i4", late)
        self.redeem(NO, "i4", by="bob")
        free = self.the_interrupt("i4")
        self.answer_for("r2", "i2")
        self.answer_for("r2", "i3")
        self.settle("r2", "i3")
        self.assertEqual(self.cancel(), ("interrupted", True))
        for interrupt_id in ("i1", "i5"):
            gone = self.the_interrupt(interrupt_id)
            self.assertEqual((gone.state, gone.decided_by), ("settled", "ann"))
            self.assertEqual(gone.decision and gone.decision.status, "cancelled")
        self.assertEqual(self.the_interrupt("i4"), free, "an answer that was given stays")
        self.assert_state("held", "i2")
        self.assertIs(self.settle("r2", "i2"), True)
        with self.unchanged("r1"):
            self.assertEqual(self.cancel(), ("interrupted", True))

    def test_the_questions_of_other_runs_stay(self) -> None:
        self.asked("i1", run_id="r1")
        self.asked("i2", run_id="r2")
        self.cancel("r1")
        self.assert_state("open", "i2")

    def test_an_ended_run_stays_as_it_ended(self) -> None:
        for status in ("succeeded", "cancelled", "failed"):
            self.ended(status, status)
            with self.subTest(status), self.unchanged(status):
                self.assertEqual(self.cancel(status), (status, True))
