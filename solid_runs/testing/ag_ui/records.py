"""What is saved is what is found, and a stale copy changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.records import RunRecord, Status
from solid_runs.testing.ag_ui.base import (
    SCOPE,
    THREAD,
    YES,
    StoreTests,
    entries,
    question,
)
from solid_runs.testing.ag_ui.clocks import NOON

ENDINGS: Final = ("succeeded", "interrupted", "cancelled", "failed")

SNAPSHOTS: Final[list[Any]] = [
    *(None, {}, [], "", 0, False, "null", "text", -1.5, 2**63, 0.1),
    {"b": {"y": [1, [2, {"z": None}]]}, "a": "\U0001f600 é ' \" \\ \u2028", "": {" ": 0}},
    {"text": "x" * 100_000},
]

FULL: Final = Interrupt(
    id="i1",
    reason="input_required",
    message="How many? \U0001f600",
    tool_call_id="call_" + "x" * 300,
    response_schema={"type": "object", "properties": {"b": {}, "a": {"type": "number"}}},
    expires_at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    metadata={"risk": [0.1, None, "high"]},
    subagent_run_id="s1",
)


class Saving(StoreTests):
    def test_a_save_returns_what_is_stored(self) -> None:
        record = self.reserved().start(self.at(seconds=1), {"step": 1})
        self.assert_same(self.saved(record), record)
        self.assert_same(self.find(), record)

    def test_every_snapshot_comes_back_as_it_was(self) -> None:
        for number, snapshot in enumerate(SNAPSHOTS):
            with self.subTest(snapshot=str(snapshot)[:40]):
                record = replace(
                    self.reserved(f"r{number}"), snapshot=snapshot, status=Status.STARTED
                )
                self.saved(record)
                found = self.find(f"r{number}")
                self.assertEqual(repr(found.snapshot), repr(snapshot))
                self.assert_same(found, record)

    def test_a_failure_comes_back_as_it_was(self) -> None:
        failure = {"message": "The model is away. \U0001f600", "code": "internal_error"}
        self.saved(self.started().finish("failed", self.clock(), failure))
        self.assertEqual(self.find().failure, failure)

    def test_an_interrupt_with_all_that_it_may_have_comes_back_as_it_was(self) -> None:
        decided = replace(
            question("i2"),
            decision=Decision(status="resolved", payload=[{"a": 1}], metadata={"from": "tab"}),
            decided_at=self.clock(),
            decided_by="ann",
            redeemed_by="r2",
            redeemed_at=self.at(microseconds=1),
            settled_at=self.at(seconds=2),
        )
        self.asked(FULL, decided)
        found = self.find()
        self.assertEqual(found.interrupts[0].to_storage(), FULL.to_storage())
        self.assertEqual(found.interrupts[1].to_storage(), decided.to_storage())
        self.assertEqual(self.the_interrupt("i2").to_storage(), decided.to_storage())

    def test_interrupts_keep_their_order(self) -> None:
        asked = ["i9", "i10", "I1", "a", "i1"]
        self.asked(*asked)
        self.assertEqual([one.id for one in self.find().interrupts], asked)
        self.redeem(interrupt_id="i10")
        self.assertEqual([one.id for one in self.find().interrupts], asked)

    def test_moments_keep_their_microseconds_and_are_read_in_any_offset(self) -> None:
        tokyo = datetime(2026, 3, 1, 8, 30, 0, 1, tzinfo=timezone(timedelta(hours=9)))
        self.asked(question(expires_at=tokyo))
        found = self.the_interrupt().expires_at
        self.assertEqual(found, tokyo)
        self.assertEqual(found and found.utcoffset(), timedelta(0))

    def test_every_moment_keeps_its_microseconds(self) -> None:
        def tick() -> datetime:
            return self.clock.forward(seconds=1, microseconds=1)

        self.clock.forward(microseconds=123455)
        made = tick()
        record = self.reserved()
        record = self.saved(record.start(tick()))
        self.assertEqual((self.find().created_at, self.find().updated_at), (made, self.clock()))
        self.store.heartbeat(record, tick())
        self.assertEqual(self.find().updated_at, self.clock())
        ended, deadline = tick(), self.at(days=1, microseconds=1)
        asked = [question("i1", expires_at=deadline), question("i2")]
        self.saved(self.find().interrupted(asked, ended))
        self.assertEqual((self.find().created_at, self.find().updated_at), (made, ended))
        decided = tick()
        self.redeem(interrupt_id="i1")
        self.assertEqual(self.find().updated_at, decided)
        redeemed = tick()
        self.redeem(interrupt_id="i1", run_id="r2")
        settled = tick()
        self.settle("r2", "i1")
        told = self.the_interrupt("i1")
        self.assertEqual(
            (told.expires_at, told.decided_at, told.redeemed_at, told.settled_at),
            (deadline, decided, redeemed, settled),
        )
        gone = tick()
        self.store.abandon(SCOPE, THREAD)
        told = self.the_interrupt("i2")
        self.assertEqual((told.decided_at, told.settled_at), (gone, gone))
        self.assertEqual(self.find().updated_at, gone)

    def test_a_record_that_was_never_reserved_is_inserted(self) -> None:
        record = RunRecord(
            scope=SCOPE,
            thread_id=THREAD,
            run_id="r1",
            digest="d1",
            status=Status.INTERRUPTED,
            sequence=7,
            snapshot={"a": 1},
            interrupts=(question("i1"), question("i2")),
            created_at=NOON,
            updated_at=NOON + timedelta(seconds=3),
        )
        self.assert_same(self.saved(record), record)
        self.assert_same(self.find(), record)
        self.assertIs(self.store.reserve(SCOPE, THREAD, "r1", "d1").attached, True)

    def test_a_save_changes_no_other_run(self) -> None:
        self.asked(run_id="r1")
        self.reserved("r2")
        mine = self.reserved("r3")
        with self.unchanged("r1", "r2"):
            self.saved(mine.start(self.clock(), {"step": 1}))
            self.saved(self.find("r3").interrupted([question()], self.clock()))

    def test_a_snapshot_is_kept_by_a_save_that_ends_the_run(self) -> None:
        self.saved(self.started(snapshot={"step": 1}).finish("succeeded", self.clock()))
        self.assertEqual(self.find().snapshot, {"step": 1})

    def test_an_event_after_the_end_is_counted(self) -> None:
        record = self.ended()
        self.saved(record.advance(self.at(seconds=1)))
        self.assertEqual((self.find().sequence, self.find().status), (1, "succeeded"))


class StaleCopies(StoreTests):
    def test_an_ended_run_is_moved_to_no_other_status(self) -> None:
        for was in ENDINGS:
            started = self.started(was)
            self.saved(started.finish(was, self.clock()))
            for status in {*ENDINGS, "started", "reserved"} - {was}:
                with (
                    self.subTest(f"{was} to {status}"),
                    self.unchanged(was),
                    self.assertRaises(StreamError),
                ):
                    self.saved(replace(started, status=Status(status)))

    def test_two_ends_of_one_copy_are_one_outcome(self) -> None:
        started = self.started()
        self.saved(started.finish("failed", self.clock(), {"message": "first", "code": "a"}))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(started.finish("succeeded", self.at(seconds=1)))

    def test_a_second_failure_leaves_the_first(self) -> None:
        started = self.started()
        self.saved(started.finish("failed", self.clock(), {"message": "first", "code": "a"}))
        late = started.finish("failed", self.at(seconds=1), {"message": "second", "code": "b"})
        told = self.saved(late)
        self.assertEqual(self.find().failure, {"message": "first", "code": "a"})
        self.assertEqual(told.failure, {"message": "first", "code": "a"})

    def test_the_sequence_is_never_lowered(self) -> None:
        copy = self.started()
        ahead = self.saved(copy.advance(self.clock()).advance(self.clock()))
        self.assertEqual(ahead.sequence, 2)
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(copy.advance(self.clock()))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(copy.finish("succeeded", self.clock()))

    def test_an_answer_is_not_taken_back(self) -> None:
        copy = self.asked()
        self.redeem()
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(copy)
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(copy.advance(self.clock()))

    def test_an_answer_is_not_replaced(self) -> None:
        self.asked()
        self.redeem()
        other = replace(question(), decision=Decision(status="resolved", payload="other"))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(self.find().replace_interrupt(other, self.clock()))

    def test_an_answered_interrupt_is_not_dropped(self) -> None:
        self.asked("i1", "i2")
        self.redeem()
        for kept in ((), (question("i2"),)):
            with self.unchanged("r1"), self.assertRaises(StreamError):
                self.saved(replace(self.find(), interrupts=kept))

    def test_an_ended_run_asks_nothing_else_than_what_it_has_asked(self) -> None:
        asked = self.asked("i1", "i2")
        one, two = asked.interrupts
        for otherwise in (
            (one, two, question("i3")),
            (one, replace(two, message="otherwise")),
            (one, replace(two, expires_at=self.at(days=1))),
            (two, one),
            (one,),
        ):
            with (
                self.subTest(otherwise=[str(each) for each in otherwise]),
                self.unchanged("r1"),
                self.assertRaises(StreamError),
            ):
                self.saved(replace(asked, interrupts=otherwise))

    def test_a_run_that_ended_without_questions_gets_none(self) -> None:
        for status in ENDINGS:
            ended = self.ended(status, status)
            with self.subTest(status), self.unchanged(status), self.assertRaises(StreamError):
                self.saved(replace(ended, interrupts=(question(),)))

    def test_an_ended_run_gets_answers_by_a_save(self) -> None:
        self.asked("i1", "i2")
        given = replace(question("i2"), decision=Decision(status="cancelled"))
        self.saved(self.find().replace_interrupt(given, self.clock()))
        self.assert_state("free", "i2")
        self.assert_state("open", "i1")

    def test_a_copy_from_before_a_settle_does_not_undo_it(self) -> None:
        self.asked()
        self.answer_for("r2")
        held = self.find()
        self.store.settle(SCOPE, THREAD, "i1", "r2")
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(held.advance(self.clock()))

    def test_a_copy_from_before_a_hold_does_not_undo_it(self) -> None:
        self.asked()
        self.redeem()
        free = self.find()
        self.answer_for("r2")
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(free.advance(self.clock()))


class Copies(StoreTests):
    """Nobody changes what is stored from outside."""

    def test_a_snapshot_that_is_changed_after_the_save_stays_as_it_was_saved(self) -> None:
        state = {"steps": [1]}
        record = self.started(snapshot=state)
        state["steps"].append(2)
        record.snapshot["steps"].append(3)
        self.find().snapshot["steps"].append(4)
        self.assertEqual(self.find().snapshot, {"steps": [1]})

    def test_an_answer_that_is_changed_after_it_was_given_stays_as_it_was_given(self) -> None:
        self.asked()
        answer: dict[str, Any] = {"status": "resolved", "payload": {"rows": [1]}}
        redeemed = self.redeem(answer).interrupt
        answer["payload"]["rows"].append(2)
        redeemed.decision.payload["rows"].append(3)
        decision = self.the_interrupt().decision
        self.assertEqual(decision and decision.payload, {"rows": [1]})

    def test_entries_that_are_changed_after_they_were_given_stay_as_they_were_given(self) -> None:
        self.asked()
        self.reserved("r2")
        given = entries(i1={"status": "resolved", "payload": {"rows": [1]}})
        self.store.resume(SCOPE, THREAD, given, "r2")
        given[0]["payload"]["rows"].append(2)
        decision = self.the_interrupt().decision
        self.assertEqual(decision and decision.payload, {"rows": [1]})

    def test_a_schema_that_is_changed_after_the_save_stays_as_it_was_saved(self) -> None:
        schema: dict[str, Any] = {"properties": {"a": {}}}
        self.asked(question(response_schema=schema))
        schema["properties"]["b"] = {}
        self.the_interrupt().response_schema["properties"]["c"] = {}
        self.assertEqual(self.the_interrupt().response_schema, {"properties": {"a": {}}})

    def test_equal_runs_of_two_threads_share_nothing(self) -> None:
        state = {"steps": [1]}
        self.started(snapshot=state, thread_id="t1")
        two = self.started(snapshot=state, thread_id="t2")
        self.saved(two.checkpoint({"steps": [1, 2]}, self.clock()))
        self.assertEqual(self.find(thread_id="t1").snapshot, {"steps": [1]})
        self.assertEqual(self.find(thread_id="t2").snapshot, {"steps": [1, 2]})


class Endings(StoreTests):
    """A run that ends gives back what it holds."""

    def test_a_run_that_ends_gives_back_what_it_holds(self) -> None:
        self.asked()
        for number, status in enumerate(("failed", "cancelled", "succeeded", "interrupted"), 2):
            with self.subTest(status):
                run_id = f"r{number}"
                self.started(run_id)
                self.assertIs(self.redeem(run_id=run_id).holds, True)
                self.saved(self.find(run_id).finish(status, self.clock()))
                self.assert_state("free", run_id="r1")

    def test_a_run_that_ends_with_a_question_gives_back_what_it_holds(self) -> None:
        self.asked()
        self.started("r2")
        self.redeem(YES, run_id="r2")
        self.saved(self.find("r2").interrupted([question("i2")], self.clock()))
        self.assert_state("free", "i1")
        self.assert_state("open", "i2")

    def test_a_run_that_ends_leaves_what_it_has_acted_on(self) -> None:
        self.asked("i1", "i2")
        self.started("r2")
        for interrupt_id in ("i1", "i2"):
            self.redeem(YES, interrupt_id, run_id="r2")
        self.store.settle(SCOPE, THREAD, "i1", "r2")
        self.saved(self.find("r2").finish("failed", self.clock()))
        self.assert_state("settled", "i1")
        self.assert_state("free", "i2")

    def test_a_run_that_ends_leaves_what_another_holds(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.saved(self.started("r3").finish("failed", self.clock()))
        self.assert_state("held")

    def test_a_save_that_is_refused_gives_nothing_back(self) -> None:
        self.asked()
        copy = self.started("r2")
        self.redeem(run_id="r2")
        self.saved(copy.advance(self.clock()))
        with self.assertRaises(StreamError):
            self.saved(copy.finish("failed", self.clock()))
        self.assert_state("held")

    def test_a_save_that_ends_nothing_gives_nothing_back(self) -> None:
        self.asked()
        started = self.started("r2")
        self.redeem(run_id="r2")
        self.saved(started.checkpoint({"step": 2}, self.clock()))
        self.assert_state("held")
