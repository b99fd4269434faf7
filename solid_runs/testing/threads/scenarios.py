"""The stories of a run, each step with what must be stored after it."""

from __future__ import annotations

from typing import Any, Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs

TTL: Final = 1000
FRESH: Final = {"runId": "r1", "threadId": "t1", "startedAt": 1, "status": "running"}


class Scenarios(StoreTests):
    def assert_row(self, **fields: Any) -> None:
        """That r1 is stored as a fresh run is, but for these fields."""
        self.assertEqual(self.the_run().to_json(), {**FRESH, **fields})

    def test_t1_a_run_goes_its_normal_way(self) -> None:
        self.create()
        self.assert_row()
        self.update(status="completed", finished_at=10, usage={"totalTokens": 3})
        self.assert_row(status="completed", finishedAt=10, usage={"totalTokens": 3})

    def test_t2_a_page_that_is_loaded_again_attaches_to_the_run(self) -> None:
        self.create()
        self.assert_same(self.store.find_active_run("t1"), self.get())
        self.assert_row()

    def test_t2_a_page_that_is_loaded_again_watches_the_run_again(self) -> None:
        self.create()
        self.update(detached_since=5, sandbox_key="box")
        self.assertEqual(self.store.find_active_run("t1").run_id, "r1")
        self.update(detached_since=None)
        self.assert_row(sandboxKey="box")

    def test_t3_a_run_that_its_viewer_left_is_still_active(self) -> None:
        self.create()
        self.update(detached_since=5, sandbox_key="box")
        self.assert_row(detachedSince=5, sandboxKey="box")
        self.assertEqual(self.store.find_active_run("t1").run_id, "r1")

    @needs("claim")
    def test_t4_a_worker_that_comes_back_late_ends_nothing(self) -> None:
        self.create()
        self.update(detached_since=5)
        w1 = self.claim()
        w2 = self.claim(detached_before=5)
        self.assertEqual((w1.epoch, w2.epoch), (1, 2))
        self.assertIs(w1.update({"status": "completed", "finished_at": 10}), False)
        self.assert_row(detachedSince=5, driverEpoch=2)
        self.assertIs(w1.update({"usage": {"totalTokens": 3}}), True)
        self.assert_row(detachedSince=5, driverEpoch=2, usage={"totalTokens": 3})
        self.assertIs(w2.update({"status": "aborted", "finished_at": 11}), True)
        self.assert_row(
            status="aborted",
            finishedAt=11,
            detachedSince=5,
            driverEpoch=2,
            usage={"totalTokens": 3},
        )

    @needs("claim")
    def test_t4_who_holds_no_claim_ends_the_run(self) -> None:
        self.create()
        self.claim()
        self.claim()
        self.update(status="completed")
        self.assert_row(status="completed", driverEpoch=2)

    @needs("claim", "list_reclaimable")
    def test_t5_a_viewer_who_comes_back_between_listing_and_claim_keeps_the_run(self) -> None:
        self.create()
        worker = self.claim()
        self.update(detached_since=5)
        cutoff = 10
        (listed,) = self.store.list_reclaimable(cutoff, 0)
        self.assertEqual(listed.detached_since, 5)
        self.update(detached_since=None)
        self.assert_refused("condition", detached_before=cutoff)
        self.assert_row(driverEpoch=1)
        self.assertIs(worker.is_superseded(), False)
        self.assertIs(worker.update({"status": "completed"}), True)

    @needs("claim")
    def test_t5_a_viewer_who_came_and_left_again_keeps_the_run(self) -> None:
        self.create()
        self.update(detached_since=5)
        self.update(detached_since=None)
        self.update(detached_since=11)
        self.assert_refused("condition", detached_before=10)
        self.assert_row(detachedSince=11)

    @needs("claim")
    def test_t6_an_agent_that_finished_while_nobody_watched_has_completed(self) -> None:
        self.create()
        self.update(detached_since=5)
        reaper = self.claim(detached_before=5)
        self.assertIs(reaper.update({"status": "completed", "finished_at": 8}), True)
        self.assert_row(status="completed", finishedAt=8, detachedSince=5, driverEpoch=1)

    def test_t7_a_create_that_is_sent_again_gives_the_same_record(self) -> None:
        first = self.create()
        self.update(usage={"totalTokens": 3})
        again = self.create()
        self.assertEqual(again.to_json(), {**first.to_json(), "usage": {"totalTokens": 3}})

    def test_t7_an_update_that_is_sent_again_changes_nothing_more(self) -> None:
        self.create()
        for _ in range(2):
            self.update(status="completed", finished_at=10)
            self.assert_row(status="completed", finishedAt=10)

    @needs("update_if")
    def test_t7_a_delayed_status_does_not_revive_a_finished_run(self) -> None:
        self.create()
        delayed = {"status": "running"}
        self.assertIs(self.store.update_if("r1", delayed, status=["running", "interrupted"]), True)
        self.update(status="completed", finished_at=10)
        self.assertIs(self.store.update_if("r1", delayed, status=["running", "interrupted"]), False)
        self.assert_row(status="completed", finishedAt=10)

    @needs("update_if", "claim")
    def test_t7_a_delayed_status_of_an_older_driver_is_not_written(self) -> None:
        self.create()
        self.claim()
        self.claim()
        self.assertIs(self.store.update_if("r1", {"status": "interrupted"}, epoch=1), False)
        self.assert_row(driverEpoch=2)
        self.assertIs(self.store.update_if("r1", {"status": "interrupted"}, epoch=2), True)

    @needs("claim", "list_stalled")
    def test_t8_a_worker_that_was_killed_while_somebody_watched_is_found(self) -> None:
        self.create()
        worker, alive_at = self.claim(), self.now()
        self.later(TTL)
        (stalled,) = self.store.list_stalled(None, TTL)
        self.assertEqual(stalled.to_json(), {**FRESH, "driverEpoch": 1})
        sweeper = self.claim(silent_before=alive_at, epoch=stalled.driver_epoch)
        error = {"message": "No sign of life.", "code": "stalled"}
        self.assertIs(sweeper.update({"status": "failed", "error": error}), True)
        self.assert_row(status="failed", driverEpoch=2, error=error)
        self.assertIs(worker.update({"status": "completed"}), False)

    @needs("claim", "touch")
    def test_t8_a_worker_that_gives_a_sign_of_life_meanwhile_keeps_the_run(self) -> None:
        self.create()
        worker, alive_at = self.claim(), self.now()
        self.later(TTL)
        worker.touch()
        self.assert_refused("condition", silent_before=alive_at)
        self.assert_row(driverEpoch=1)
        self.assertIs(worker.update({"status": "completed"}), True)
