"""A store sees the runs of its scope and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solid_runs.testing.stores import Caller
from solid_runs.testing.threads.base import OTHER_SCOPE, StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.testing.threads.updating import FULL


@needs("scopes")
class Scopes(StoreTests):
    def theirs(self) -> Caller:
        """A store of another scope over the same storage."""
        return self.new_store(scope=OTHER_SCOPE)

    def left_behind(self) -> None:
        """A run that every method would find: a detached, claimed child."""
        self.create(parent_run_id="p1")
        self.update(detached_since=1, driver_epoch=1)

    def test_get_finds_no_run_of_another_scope(self) -> None:
        self.create()
        self.assertIsNone(self.theirs().get("r1"))

    def test_no_run_of_another_scope_is_active(self) -> None:
        self.create()
        self.assertIsNone(self.theirs().find_active_run("t1"))

    def test_an_update_changes_no_run_of_another_scope(self) -> None:
        self.create()
        with self.unchanged("r1"):
            self.theirs().update("r1", {"status": "completed", **FULL})

    def test_a_create_resumes_no_run_of_another_scope(self) -> None:
        self.create(started_at=1, name="mine")
        record = self.theirs().create_or_resume("r1", "t9", 9)
        self.assertEqual((record.thread_id, record.started_at, record.name), ("t9", 9, None))

    def test_equal_ids_of_two_scopes_are_two_runs(self) -> None:
        theirs = self.theirs()
        mine = self.create(started_at=1)
        theirs.create_or_resume("r1", "t1", 2)
        theirs.update("r1", {"status": "failed", "usage": {"a": 1}})
        self.assert_same(self.get(), mine)
        self.assertEqual(theirs.get("r1").status, "failed")
        self.assertEqual(self.store.find_active_run("t1").started_at, 1)
        self.assertIsNone(theirs.find_active_run("t1"))

    def test_the_scope_is_no_part_of_the_json(self) -> None:
        theirs = self.theirs()
        self.assertEqual(theirs.create_or_resume("r1", "t1", 1).to_json(), self.create().to_json())

    def test_scopes_that_look_alike_are_two(self) -> None:
        for number, (one, other) in enumerate([("acme", "ACME"), ("acme", "acme "), ("1", "01")]):
            run_id = f"r{number}"
            with self.subTest(one=one, other=other):
                self.new_store(scope=one).create_or_resume(run_id, "t1", 1)
                self.assertIsNone(self.new_store(scope=other).get(run_id))

    @needs("list_by_thread")
    def test_a_thread_is_listed_without_the_runs_of_another_scope(self) -> None:
        self.left_behind()
        theirs = self.theirs()
        self.assertEqual(theirs.list_by_thread("t1"), [])
        theirs.create_or_resume("r2", "t1", 2)
        self.assertEqual(self.ids(theirs.list_by_thread("t1")), ["r2"])
        self.assertEqual(self.ids(self.store.list_by_thread("t1")), ["r1"])

    @needs("list_by_parent_run")
    def test_children_are_listed_without_those_of_another_scope(self) -> None:
        self.left_behind()
        theirs = self.theirs()
        self.assertEqual(theirs.list_by_parent_run("p1"), [])
        theirs.create_or_resume("r2", "t1", 2, parent_run_id="p1")
        self.assertEqual(self.ids(theirs.list_by_parent_run("p1")), ["r2"])
        self.assertEqual(self.ids(self.store.list_by_parent_run("p1")), ["r1"])

    @needs("list_reclaimable")
    def test_what_is_reclaimable_in_another_scope_is_not_listed(self) -> None:
        self.left_behind()
        theirs = self.theirs()
        self.assertEqual(theirs.list_reclaimable(1000, 0), [])
        theirs.create_or_resume("r2", "t1", 2)
        theirs.update("r2", {"detached_since": 2})
        self.assertEqual(self.ids(theirs.list_reclaimable(1000, 0)), ["r2"])
        self.assertEqual(self.ids(self.store.list_reclaimable(1000, 0)), ["r1"])

    @needs("list_stalled", "claim")
    def test_what_is_stalled_in_another_scope_is_not_listed(self) -> None:
        self.left_behind()
        self.claim()
        theirs = self.theirs()
        theirs.create_or_resume("r2", "t1", 2)
        theirs.claim("r2")
        self.later(1000)
        self.assertEqual(self.ids(theirs.list_stalled(None, 1000)), ["r2"])
        self.assertEqual(self.ids(self.store.list_stalled(None, 1000)), ["r1"])

    @needs("claim")
    def test_a_run_of_another_scope_cannot_be_claimed(self) -> None:
        self.create()
        with self.unchanged("r1"):
            self.assertEqual(self.theirs().claim("r1").reason, "unknown")

    @needs("claim")
    def test_a_claim_of_an_equal_run_of_another_scope_supersedes_nobody(self) -> None:
        self.create()
        holder = self.claim()
        theirs = self.theirs()
        theirs.create_or_resume("r1", "t1", 1)
        self.assertEqual([theirs.claim("r1").epoch for _ in range(2)], [1, 2])
        self.assertIs(holder.is_superseded(), False)
        self.assertIs(holder.update({"status": "completed"}), True)
        self.assertEqual(theirs.get("r1").status, "running")

    @needs("touch")
    def test_a_run_of_another_scope_cannot_be_touched(self) -> None:
        self.left_behind()
        self.assertIs(self.theirs().touch("r1", 1), False)

    @needs("update_if")
    def test_a_run_of_another_scope_is_not_as_expected(self) -> None:
        self.create()
        with self.unchanged("r1"):
            told = self.theirs().update_if("r1", {"status": "failed"}, status="running")
        self.assertIs(told, False)

    @needs("request_cancel")
    def test_a_run_of_another_scope_cannot_be_asked_to_stop(self) -> None:
        theirs = self.theirs()
        self.create()
        with self.unchanged("r1"):
            theirs.request_cancel("r1")
        self.store.request_cancel("r1")
        self.assertIs(theirs.was_cancel_requested("r1"), False)

    @needs("prune")
    def test_the_runs_of_another_scope_are_not_pruned(self) -> None:
        theirs = self.theirs()
        for store in (self.store, theirs):
            for number in (1, 2):
                store.create_or_resume(f"r{number}", "t1", number, status="completed")
        with self.unchanged("r1", "r2"):
            self.assertEqual(theirs.prune(1000), 1)
        self.assertIsNone(theirs.get("r1"))

    @needs("prune")
    def test_a_later_run_of_another_scope_is_not_the_latest_of_an_equal_thread(self) -> None:
        self.ended()
        self.theirs().create_or_resume("r2", "t1", 1000)
        with self.unchanged("r1"):
            self.assertEqual(self.store.prune(1000), 0)

    def test_bad_input_of_one_scope_changes_nothing_in_another(self) -> None:
        self.create()
        theirs = self.theirs()
        for call in REFUSED:
            with self.unchanged("r1"), self.assertRaises(self.errors):
                call(theirs)


REFUSED: Final[tuple[Callable[[Any], Any], ...]] = (
    lambda store: store.update("r1", {"status": "paused"}),
    lambda store: store.create_or_resume("r1", "", 1),
)
