"""A run is created once, and found again as it is."""

from __future__ import annotations

from typing import Any, Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import TERMINAL, Status

MOMENTS: Final = [0, 1, 10, 1000, -1, 1_768_478_400_123, 2**53 - 1, -(2**53 - 1)]

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
    ("a/b", "a%2Fb"),
    (".", ".."),
    ("a+b", "a b"),
    ("a?b", "a#b"),
    ("null", "None"),
]
"""Pairs of ids that are two, whatever a collation or an address makes of them."""

OF_CREATION: Final[dict[str, Any]] = {
    "parent_run_id": "r0",
    "subagent_run_id": "s1",
    "name": "Researcher",
}


class Creating(StoreTests):
    def test_a_run_that_was_never_created_is_none(self) -> None:
        self.assertIsNone(self.get("r1"))

    def test_a_new_run_is_running(self) -> None:
        self.assertEqual(self.create().status, Status.RUNNING)

    def test_a_new_run_may_have_any_status(self) -> None:
        for status in Status:
            with self.subTest(status):
                self.assertEqual(self.create(status, status=status).status, status)
                self.assertEqual(self.get(status).status, status)

    def test_a_status_may_be_given_as_plain_text(self) -> None:
        self.assertIs(self.create(status="interrupted").status, Status.INTERRUPTED)

    def test_a_new_run_is_returned_as_it_is_found(self) -> None:
        self.assert_same(self.create(**OF_CREATION), self.get())

    def test_a_new_run_has_what_was_given(self) -> None:
        self.assertEqual(
            self.create("r1", "t1", 1000, **OF_CREATION).to_json(),
            {
                "runId": "r1",
                "threadId": "t1",
                "startedAt": 1000,
                "status": "running",
                "parentRunId": "r0",
                "subagentRunId": "s1",
                "name": "Researcher",
            },
        )

    def test_what_was_not_given_is_absent(self) -> None:
        record = self.create("r1", "t1", 1)
        for name in OF_CREATION:
            self.assertIsNone(getattr(record, name), name)
        self.assertEqual(
            record.to_json(),
            {"runId": "r1", "threadId": "t1", "startedAt": 1, "status": "running"},
        )

    def test_the_start_is_kept_to_the_millisecond(self) -> None:
        for moment in MOMENTS:
            with self.subTest(moment=moment):
                self.create(f"r{moment}", started_at=moment)
                self.assertEqual(self.get(f"r{moment}").started_at, moment)

    def test_an_empty_name_is_a_name(self) -> None:
        self.create(name="")
        self.assertEqual(self.get().name, "")

    def test_a_second_create_returns_the_first(self) -> None:
        first = self.create("r1", "t1", 1)
        self.assert_same(self.store.create_or_resume("r1", "t2", 99), first)

    def test_a_second_create_stores_nothing(self) -> None:
        self.create("r1", "t1", 1)
        with self.unchanged("r1"):
            self.store.create_or_resume("r1", "t2", 99)

    def test_a_second_create_ignores_every_value(self) -> None:
        given = {"status": "failed", "parent_run_id": "p", "subagent_run_id": "s", "name": "n"}
        plain, full = self.create("r1"), self.create("r2", **OF_CREATION)
        for record in (plain, full):
            for name, value in given.items():
                with self.subTest(run=record.run_id, field=name), self.unchanged(record.run_id):
                    again = self.store.create_or_resume(record.run_id, "t1", 1, **{name: value})
                    self.assert_same(again, record)

    def test_a_second_create_brings_the_run_into_no_other_thread(self) -> None:
        self.create("r1", "t1", 1)
        self.store.create_or_resume("r1", "t2", 99)
        self.assertIsNone(self.store.find_active_run("t2"))
        self.assertEqual(self.store.find_active_run("t1").run_id, "r1")

    def test_a_create_after_an_update_returns_all_that_is_stored(self) -> None:
        self.create(**OF_CREATION)
        self.update(
            usage={"totalTokens": 3}, sandbox_key="box", detached_since=5, cancel_requested=False
        )
        again = self.store.create_or_resume("r1", "t1", 1)
        self.assertEqual(again.usage, {"totalTokens": 3})
        self.assert_same(again, self.get())

    def test_a_create_on_a_finished_run_returns_it_as_it_ended(self) -> None:
        for status in sorted(TERMINAL):
            with self.subTest(status):
                self.ended(status, status)
                again = self.store.create_or_resume(status, "t1", 99, status="running")
                self.assertEqual((again.status, again.finished_at), (status, 10))
                self.assert_same(again, self.get(status))

    def test_a_create_on_a_finished_run_revives_nothing(self) -> None:
        for status in sorted(TERMINAL):
            self.ended(status, status)
            with self.subTest(status), self.unchanged(status):
                self.store.create_or_resume(status, "t1", 99, status="running")
        self.assertIsNone(self.store.find_active_run("t1"))

    def test_a_create_on_an_interrupted_run_does_not_resume_it(self) -> None:
        self.create(status="interrupted")
        with self.unchanged("r1"):
            self.assertEqual(self.store.create_or_resume("r1", "t1", 99).status, Status.INTERRUPTED)

    def test_runs_of_one_thread_are_told_apart(self) -> None:
        first, second = self.create("r1", started_at=1), self.create("r2", started_at=2)
        self.assert_same(self.get("r1"), first)
        self.assert_same(self.get("r2"), second)

    @needs("labels")
    def test_a_trace_is_no_part_of_the_record(self) -> None:
        self.assert_same(self.create(trace_id="0af7"), self.get())
        self.assertEqual(self.get().to_json().keys(), self.create("r2").to_json().keys())

    @needs("labels")
    def test_a_second_create_with_another_trace_returns_the_first(self) -> None:
        first = self.create(trace_id="0af7")
        self.assert_same(self.store.create_or_resume("r1", "t1", 1, trace_id="b7ad"), first)


class Identities(StoreTests):
    def test_run_ids_that_look_alike_are_two_runs(self) -> None:
        for number, (one, other) in enumerate(ALIKE):
            with self.subTest(one=one, other=other):
                self.create(one, f"t{number}", 1)
                self.assertEqual(self.create(other, f"t{number}", 2).started_at, 2)
                self.update(other, status="completed")
                self.assertEqual(self.get(one).status, Status.RUNNING)
                self.update(other, status="running")

    def test_a_run_is_not_found_by_an_id_that_looks_alike(self) -> None:
        for one, other in ALIKE:
            self.create(one)
            with self.subTest(one=one, other=other):
                self.assertEqual(self.get(one).run_id, one)
                self.assertIsNone(self.get(other))

    def test_threads_that_look_alike_are_two(self) -> None:
        for number, pair in enumerate(ALIKE):
            one, other = (text if len(text) == 255 else f"{number}{text}" for text in pair)
            with self.subTest(one=one, other=other):
                self.create(f"a{number}", one)
                self.assertIsNone(self.store.find_active_run(other))
                self.create(f"b{number}", other)
                self.assertEqual(self.store.find_active_run(one).run_id, f"a{number}")

    def test_ids_are_kept_to_the_character(self) -> None:
        fields = ("thread_id", "parent_run_id", "subagent_run_id", "name")
        for number, pair in enumerate(ALIKE):
            for one in pair:
                run_id = one if len(one) == 255 else f"{number}{one}"
                with self.subTest(one=one):
                    given: dict[str, Any] = dict.fromkeys(fields, one)
                    self.create(run_id, **given)
                    found = self.get(run_id)
                    self.assertEqual(found.run_id, run_id)
                    for name in fields:
                        self.assertEqual(getattr(found, name), one, name)
