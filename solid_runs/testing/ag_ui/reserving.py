"""An identity is claimed once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any, Final

from solid_runs.ag_ui.exceptions import ConfigurationError, RunConflictError
from solid_runs.ag_ui.records import Status
from solid_runs.testing.ag_ui.base import SCOPE, THREAD, StoreTests
from solid_runs.testing.ag_ui.capabilities import needs

ALIKE: Final = [
    ("run_aB", "run_Ab"),
    ("r", "r "),
    ("r", " r"),
    ("r", "r\t"),
    ("resume", "résumé"),
    ("\u00e9", "e\u0301"),
    ("strasse", "straße"),
    ("1", "１"),
    ("\U0001f600", "\U0001f601"),
    ("a" * 254 + "b", "a" * 254 + "c"),
    ("%", "_"),
    ("a\\b", "a\\\\b"),
    ("'", "''"),
]
"""Pairs of ids that are two, whatever a collation makes of them."""

NO_IDS: Final = {
    "over-long": "x" * 256,
    "a NUL": "r\0",
    "half of a character": "r\ud800",
    "empty": "",
    "blank": " \t",
    "None": None,
    "bytes": b"r1",
    "a number": 1,
}


class Reserving(StoreTests):
    def test_a_first_reserve_is_new(self) -> None:
        reservation = self.store.reserve(SCOPE, THREAD, "r1", "d1")
        self.assertIs(reservation.new, True)
        self.assertIs(reservation.attached, False)
        record = reservation.record
        self.assertEqual(
            (record.scope, record.thread_id, record.run_id, record.digest),
            (SCOPE, THREAD, "r1", "d1"),
        )
        self.assertEqual((record.status, record.sequence), (Status.RESERVED, 0))
        self.assertEqual((record.snapshot, record.failure, record.interrupts), (None, None, ()))
        self.assert_same(self.find(), record)

    def test_a_reserved_record_has_the_time_of_the_clock(self) -> None:
        self.clock.forward(microseconds=123456)
        record = self.reserved()
        self.assertEqual((record.created_at, record.updated_at), (self.clock(), self.clock()))
        self.assertEqual(record.created_at.utcoffset(), self.clock().astimezone(UTC).utcoffset())

    def test_a_second_reserve_is_attached_and_writes_nothing(self) -> None:
        first = self.reserved()
        self.clock.forward(minutes=5)
        second = self.store.reserve(SCOPE, THREAD, "r1", "d1")
        self.assertEqual((second.new, second.attached), (False, True))
        self.assert_same(second.record, first)
        self.assert_same(self.find(), first)

    def test_a_reserve_is_attached_whatever_became_of_the_run(self) -> None:
        made = [self.started("started"), self.asked(run_id="interrupted")]
        made += [self.ended(status, status) for status in ("succeeded", "cancelled", "failed")]
        self.clock.forward(minutes=5)
        for record in made:
            with self.subTest(record.status):
                again = self.store.reserve(SCOPE, THREAD, record.run_id, "d1")
                self.assertIs(again.attached, True)
                self.assert_same(again.record, record)
                self.assert_same(self.find(record.run_id), record)

    def test_another_digest_is_a_conflict_and_writes_nothing(self) -> None:
        for run_id, record in (("r1", self.reserved("r1")), ("r2", self.ended("r2"))):
            with self.subTest(record.status):
                with self.assertRaises(RunConflictError) as caught, self.unchanged(run_id):
                    self.store.reserve(SCOPE, THREAD, run_id, "d2")
                self.assertEqual(
                    (caught.exception.thread_id, caught.exception.run_id), (THREAD, run_id)
                )

    def test_a_digest_that_differs_by_case_or_spaces_is_another(self) -> None:
        self.reserved(digest="abc")
        for digest in ("ABC", "abc ", "äbc"):
            with self.subTest(digest=digest), self.assertRaises(RunConflictError):
                self.store.reserve(SCOPE, THREAD, "r1", digest)

    def test_one_run_id_in_two_threads_is_two_runs(self) -> None:
        self.ended(thread_id="t1")
        other = self.store.reserve(SCOPE, "t2", "r1", "another digest")
        self.assertIs(other.new, True)
        self.assertEqual(self.find(thread_id="t1").status, Status.SUCCEEDED)
        self.assertEqual(self.find(thread_id="t2").status, Status.RESERVED)

    @needs("labels")
    def test_a_trace_and_a_parent_are_no_part_of_the_record(self) -> None:
        plain, labelled = (
            self.reserved("r1"),
            self.reserved("r2", trace_id="0af7", parent_run_id="r1"),
        )
        self.assertEqual(labelled.to_storage(), plain.to_storage() | {"runId": "r2"})
        again = self.store.reserve(SCOPE, THREAD, "r2", "d1", trace_id="b7ad", parent_run_id="r0")
        self.assertIs(again.attached, True)

    @needs("labels")
    def test_a_trace_that_no_key_can_hold_is_refused(self) -> None:
        for label in ("trace_id", "parent_run_id"):
            for value in ("x" * 256, "a\0b"):
                with (
                    self.subTest(label=label, value=value[:3]),
                    self.unchanged("r1"),
                    self.assertRaises(ConfigurationError),
                ):
                    self.store.reserve(SCOPE, THREAD, "r1", "d1", **{label: value})


class Identities(StoreTests):
    """Ids are text that an attacker may have chosen."""

    def test_run_ids_that_look_alike_are_two(self) -> None:
        for number, (one, other) in enumerate(ALIKE):
            with self.subTest(one=one, other=other):
                thread_id = f"t{number}"
                self.reserved(one, thread_id=thread_id)
                reservation = self.store.reserve(SCOPE, thread_id, other, "another digest")
                self.assertIs(reservation.new, True)
                self.assertEqual(self.find(one, thread_id).run_id, one)
                self.assertEqual(self.find(other, thread_id).run_id, other)

    def test_thread_ids_that_look_alike_are_two(self) -> None:
        for one, other in ALIKE:
            with self.subTest(one=one, other=other):
                self.reserved("r1", thread_id=one)
                self.assertIsNone(self.store.latest_run(SCOPE, other))
                self.assertIsNone(self.find("r1", other))

    def test_scopes_that_look_alike_are_two(self) -> None:
        for one, other in ALIKE:
            with self.subTest(one=one, other=other):
                self.reserved("r1", scope=one)
                self.assertIsNone(self.store.latest_run(other, THREAD))
                self.assertIsNone(self.find("r1", scope=other))

    def test_interrupt_ids_that_look_alike_are_two(self) -> None:
        for number, (one, other) in enumerate(ALIKE):
            with self.subTest(one=one, other=other):
                thread_id = f"t{number}"
                self.asked(one, other, thread_id=thread_id)
                self.store.redeem_interrupt(SCOPE, thread_id, one, {"status": "cancelled"})
                self.assertTrue(self.store.find_interrupt(SCOPE, thread_id, one).decided)
                self.assertTrue(self.store.find_interrupt(SCOPE, thread_id, other).pending)

    def test_ids_of_the_greatest_length_in_the_widest_characters_are_kept(self) -> None:
        widest = "\U0001f9ea" * 255
        record = self.asked(widest, run_id=widest, thread_id=widest, scope=widest, digest=widest)
        self.assert_same(self.store.find(widest, widest, widest), record)
        found = self.store.find_interrupt(widest, widest, widest)
        self.assertEqual(found.id, widest)
        redeemed = self.store.redeem_interrupt(widest, widest, widest, {"status": "cancelled"})
        self.assertIs(redeemed.recorded, True)

    def test_what_is_no_id_is_refused_and_nothing_is_written(self) -> None:
        for why, value in NO_IDS.items():
            for arguments in ((value, "r1", "d1"), (THREAD, value, "d1"), (THREAD, "r1", value)):
                with (
                    self.subTest(why, arguments=arguments),
                    self.assertRaises(ConfigurationError),
                ):
                    self.store.reserve(SCOPE, *arguments)
        self.assertIsNone(self.store.latest_run(SCOPE, THREAD))

    def test_what_is_no_id_is_refused_by_every_query(self) -> None:
        self.asked()
        for why, value in NO_IDS.items():
            calls: dict[str, Callable[[Any], Any]] = {
                "find": lambda v: self.store.find(SCOPE, THREAD, v),
                "latest_run": lambda v: self.store.latest_run(SCOPE, v),
                "latest_interrupted": lambda v: self.store.latest_interrupted(SCOPE, v),
                "find_interrupt": lambda v: self.store.find_interrupt(SCOPE, THREAD, v),
                "redeem_interrupt": lambda v: self.redeem(interrupt_id=v),
            }
            for name, call in calls.items():
                with self.subTest(why, method=name), self.assertRaises(ConfigurationError):
                    call(value)
        self.assert_state("open")
