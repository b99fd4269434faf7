"""Runs whose owners are gone are failed, and old ones are deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.testing.ag_ui.base import CANCEL, SCOPE, THREAD, YES, StoreTests, question
from solid_runs.testing.ag_ui.capabilities import needs

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def ids(records: Any) -> list[str]:
    return [record.run_id for record in records]


@needs("stalled")
class Stalling(StoreTests):
    def test_runs_without_a_sign_of_life_are_stalled_the_longest_silent_first(self) -> None:
        self.started("z")
        self.clock.forward(seconds=10)
        self.reserved("a", scope="globex")
        self.clock.forward(seconds=10)
        self.started("m", thread_id="t2")
        self.assertEqual(self.store.stalled(MINUTE), [])
        self.clock.forward(minutes=5)
        self.started("recent")
        self.assertEqual(ids(self.store.stalled(MINUTE)), ["z", "a", "m"])
        self.assertEqual(ids(self.store.stalled(self.clock() - MINUTE)), ["z", "a", "m"])
        self.assertEqual(ids(self.store.stalled(MINUTE, 2)), ["z", "a"])

    def test_a_run_that_gives_signs_of_life_is_not_stalled(self) -> None:
        beating, saving = self.started("r1"), self.started("r2")
        self.clock.forward(seconds=50)
        self.store.heartbeat(beating)
        self.saved(saving.checkpoint({"step": 2}, self.clock()))
        self.clock.forward(seconds=50)
        self.assertEqual(self.store.stalled(MINUTE), [])
        self.assertEqual(self.store.fail_stalled(MINUTE), [])
        self.clock.forward(seconds=50)
        self.assertEqual(sorted(ids(self.store.stalled(MINUTE))), ["r1", "r2"])

    def test_being_attached_is_no_sign_of_life(self) -> None:
        self.started()
        self.clock.forward(minutes=5)
        self.reserved()
        self.find()
        self.assertEqual(ids(self.store.stalled(MINUTE)), ["r1"])

    def test_a_run_that_waits_for_a_person_is_never_stalled(self) -> None:
        asked = self.asked()
        self.clock.forward(days=4000)
        self.assertEqual(self.store.stalled(MINUTE), [])
        self.assertEqual(self.store.fail_stalled(MINUTE), [])
        self.assert_same(self.find(), asked)

    def test_an_ended_run_is_never_stalled(self) -> None:
        for status in ("succeeded", "cancelled", "failed", "interrupted"):
            self.ended(status, status)
        self.clock.forward(days=400)
        self.assertEqual(self.store.stalled(MINUTE), [])

    def test_a_stalled_run_is_failed(self) -> None:
        self.saved(self.started(snapshot={"step": 1}).advance(self.clock()))
        self.clock.forward(minutes=5)
        living = self.started("r2")
        (failed,) = self.store.fail_stalled(MINUTE)
        self.assert_same(self.find(), failed)
        self.assertEqual((failed.status, failed.failure["code"]), ("failed", "stalled"))
        self.assertTrue(failed.failure["message"])
        self.assertEqual((failed.snapshot, failed.sequence), ({"step": 1}, 1))
        self.assert_same(self.find("r2"), living)
        self.assertEqual(self.store.fail_stalled(MINUTE), [])

    def test_so_many_are_failed_as_were_asked_for(self) -> None:
        for number in range(3):
            self.started(f"r{number}")
            self.clock.forward(seconds=1)
        self.clock.forward(minutes=5)
        self.assertEqual(ids(self.store.fail_stalled(MINUTE, 2)), ["r0", "r1"])
        self.assertEqual(ids(self.store.stalled(MINUTE)), ["r2"])

    def test_a_run_that_was_only_reserved_is_failed_too(self) -> None:
        self.asked()
        self.resume("r2", i1=YES)
        self.clock.forward(minutes=5)
        self.assertEqual(ids(self.store.fail_stalled(MINUTE)), ["r2"])
        self.assert_state("free")

    def test_a_failed_run_gives_back_what_it_held_and_has_not_acted_on(self) -> None:
        self.asked("i1", "i2")
        self.started("r2")
        self.resume("r2", i1=YES, i2=YES)
        self.settle("r2", "i1")
        self.clock.forward(minutes=5)
        self.store.fail_stalled(MINUTE)
        self.assert_state("settled", "i1")
        self.assert_state("free", "i2")
        self.assertIs(self.settle("r2", "i2"), False)

    def test_the_owner_of_a_failed_run_comes_back_too_late(self) -> None:
        copy = self.started()
        self.clock.forward(minutes=5)
        self.store.fail_stalled(MINUTE)
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.store.heartbeat(copy)
        for status in ("succeeded", "cancelled", "interrupted"):
            with self.unchanged("r1"), self.assertRaises(StreamError):
                self.saved(copy.finish(status, self.clock()))
        with self.unchanged("r1"), self.assertRaises(StreamError):
            self.saved(copy.checkpoint({"late": True}, self.clock()))


@needs("prune")
class Pruning(StoreTests):
    def fill(self, **last: Any) -> None:
        """A thread with a latest run, so that those before it may go."""
        self.clock.forward(seconds=1)
        self.reserved("latest", **last)

    def pruned(self, **options: Any) -> int:
        count: int = self.store.prune(DAY, **options)
        return count

    def test_old_ended_runs_are_deleted(self) -> None:
        for status in ("succeeded", "cancelled", "failed"):
            self.ended(status, status)
        self.fill()
        self.assertEqual(self.pruned(), 0)
        self.clock.forward(days=2)
        self.assertEqual(self.pruned(), 3)
        for status in ("succeeded", "cancelled", "failed"):
            self.assertIsNone(self.find(status))
        self.assertIsNotNone(self.find("latest"))
        self.assertEqual(self.pruned(), 0)

    def test_runs_that_were_written_since_are_kept(self) -> None:
        self.ended("old")
        young = self.started("young")
        self.fill()
        self.clock.forward(days=2)
        self.saved(young.finish("succeeded", self.clock()))
        self.assertEqual(self.pruned(), 1)
        self.assertIsNotNone(self.find("young"))

    def test_the_time_may_be_a_moment(self) -> None:
        self.ended("old")
        self.fill()
        self.assertEqual(self.store.prune(self.at(hours=-1)), 0)
        self.assertEqual(self.store.prune(self.at(hours=1)), 1)

    def test_active_runs_are_kept(self) -> None:
        self.started("r1")
        self.reserved("r2")
        self.fill()
        self.clock.forward(days=400)
        self.assertEqual(self.pruned(), 0)

    def test_the_latest_run_of_each_thread_is_kept(self) -> None:
        self.ended("r1")
        self.ended("r2")
        self.ended("r1", thread_id="t2")
        self.ended("r1", scope="globex")
        self.clock.forward(days=2)
        self.assertEqual(self.pruned(), 1)
        self.assertEqual(self.store.latest_run(SCOPE, THREAD).run_id, "r2")
        self.assertIsNotNone(self.store.latest_run(SCOPE, "t2"))
        self.assertIsNotNone(self.store.latest_run("globex", THREAD))

    def test_the_latest_interrupted_run_is_kept(self) -> None:
        for run_id in ("r1", "r2"):
            self.asked(run_id=run_id)
            self.resume(f"{run_id}-taker", i1=CANCEL)
            self.end(f"{run_id}-taker")
        self.fill()
        self.clock.forward(days=2)
        self.assertEqual(self.pruned(), 3)
        self.assertIsNone(self.find("r1"))
        self.assertEqual(self.store.latest_interrupted(SCOPE, THREAD).run_id, "r2")

    def test_runs_with_an_answer_that_nobody_acted_on_are_kept(self) -> None:
        for run_id in ("open", "free", "held", "settled", "late"):
            expires_at = self.at(hours=1) if run_id == "late" else None
            self.asked("before", question(run_id, expires_at=expires_at), run_id=run_id)
            self.redeem(CANCEL, "before", run_id="other")
            self.settle("other", "before")
        self.asked("last", run_id="latest-interrupted")
        self.redeem(YES, "free")
        self.reserved("taker")
        for held in ("held", "settled"):
            self.redeem(YES, held, run_id="taker")
        self.settle("taker", "settled")
        self.clock.forward(days=2)
        self.assertEqual(self.pruned(), 1)
        self.assertIsNone(self.find("settled"))
        self.assertIsNone(self.store.find_interrupt(SCOPE, THREAD, "settled"))
        for run_id in ("open", "free", "held", "late"):
            with self.subTest(run_id):
                self.assertIsNotNone(self.find(run_id))

    def test_all_are_deleted_however_small_the_batches(self) -> None:
        for number in range(5):
            self.ended(f"r{number}")
        self.fill()
        self.clock.forward(days=2)
        self.assertEqual(self.pruned(batch_size=2), 5)

    def test_an_id_that_was_pruned_is_new_again(self) -> None:
        self.ended("r1")
        self.fill()
        self.clock.forward(days=2)
        self.pruned()
        again = self.store.reserve(SCOPE, THREAD, "r1", "another digest")
        self.assertIs(again.new, True)
        self.assertEqual(again.record.created_at, self.clock())

    def test_a_copy_of_a_pruned_run_gives_no_sign_of_life(self) -> None:
        copy = self.started("r1")
        self.end("r1", "succeeded")
        self.fill()
        self.clock.forward(days=2)
        self.pruned()
        with self.assertRaises(StreamError):
            self.store.heartbeat(copy)
        self.assertIsNone(self.find("r1"))
