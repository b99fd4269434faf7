"""Old ended runs go; what somebody may still ask for stays."""

from __future__ import annotations

from typing import Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import TERMINAL

BEFORE: Final = 1000


@needs("prune")
class Pruning(StoreTests):
    def old(self, run_id: str = "old", finished_at: int | None = BEFORE - 1) -> None:
        """A run that has ended, in a thread with a later one."""
        self.create(run_id, started_at=1)
        self.update(run_id, status="completed", finished_at=finished_at)
        self.create("latest", started_at=5000)

    def prune(self) -> int:
        count: int = self.store.prune(BEFORE)
        return count

    def test_an_old_ended_run_is_pruned(self) -> None:
        self.old()
        self.assertEqual(self.prune(), 1)
        self.assertIsNone(self.get("old"))

    def test_every_end_is_an_end(self) -> None:
        for status in sorted(TERMINAL):
            self.old(status)
            self.update(status, status=status)
        self.assertEqual(self.prune(), len(TERMINAL))

    def test_nothing_is_pruned_where_nothing_is_old(self) -> None:
        self.assertEqual(self.prune(), 0)

    def test_a_run_that_ended_at_the_very_moment_is_kept(self) -> None:
        self.old(finished_at=BEFORE)
        with self.unchanged("old"):
            self.assertEqual(self.prune(), 0)

    def test_an_ended_run_without_a_time_of_its_end_goes_by_its_start(self) -> None:
        self.old("old", None)
        self.create("young", started_at=BEFORE, status="failed")
        self.assertEqual(self.prune(), 1)
        self.assertIsNone(self.get("old"))
        self.assertIsNotNone(self.get("young"))

    def test_a_run_that_started_long_ago_and_ended_just_now_is_kept(self) -> None:
        self.old(finished_at=BEFORE + 1)
        self.assertEqual(self.prune(), 0)

    def test_a_run_that_goes_on_is_kept_however_old(self) -> None:
        for status in ("running", "interrupted"):
            self.old(status)
            self.update(status, status=status)
        with self.unchanged("running", "interrupted"):
            self.assertEqual(self.prune(), 0)

    def test_the_latest_run_of_a_thread_is_kept_however_old(self) -> None:
        self.ended("first", started_at=1)
        self.ended("second", started_at=2)
        self.ended("alone", thread_id="t2")
        with self.unchanged("second", "alone"):
            self.assertEqual(self.prune(), 1)
        self.assertIsNone(self.get("first"))

    def test_of_runs_that_started_at_once_one_is_kept(self) -> None:
        self.ended("first", started_at=1)
        self.ended("second", started_at=1)
        self.assertEqual(self.prune(), 1)
        self.assertEqual(self.prune(), 0)

    def test_a_thread_is_pruned_down_to_its_latest_run(self) -> None:
        for number in range(5):
            self.ended(f"r{number}", started_at=number)
        self.assertEqual(self.prune(), 4)
        self.assertIsNotNone(self.get("r4"))

    def test_batches_of_one_prune_as_many_as_any_other(self) -> None:
        for number in range(5):
            self.ended(f"r{number}", started_at=number)
        self.assertEqual(self.store.prune(BEFORE, batch_size=1), 4)
        self.assertEqual([self.get(f"r{number}") for number in range(4)], [None] * 4)

    def test_what_is_kept_is_kept_as_it_was(self) -> None:
        self.old()
        self.update("latest", usage={"a": 1}, detached_since=1)
        with self.unchanged("latest"):
            self.prune()

    def test_an_id_that_was_pruned_is_new_when_it_comes_again(self) -> None:
        self.old()
        self.prune()
        record = self.create("old", "t2", 7)
        self.assertEqual((record.status, record.thread_id, record.started_at), ("running", "t2", 7))
        self.assertIsNone(record.finished_at)

    @needs("claim")
    def test_who_holds_a_run_that_was_pruned_is_told_that_it_is_gone(self) -> None:
        self.create("old")
        holder = self.claim("old")
        self.old()
        self.prune()
        self.assertIs(holder.update({"usage": {"a": 1}}), False)
        self.assertIsNone(self.get("old"))

    @needs("claim")
    def test_who_held_a_run_that_was_pruned_does_not_end_the_one_after_it(self) -> None:
        self.create("old")
        self.claim("old")
        holder = self.claim("old")
        self.old()
        self.prune()
        self.create("old", started_at=7)
        self.claim("old")
        with self.unchanged("old"):
            self.assertIs(holder.update({"status": "completed"}), False)
