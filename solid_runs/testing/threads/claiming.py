"""Who drives a run: claims, and what one holds that came too late."""

from __future__ import annotations

from typing import Final

from solid_runs.testing.threads.base import Held, StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import TERMINAL, Status

LEASE: Final = 1000


@needs("claim")
class Claiming(StoreTests):
    def test_the_first_claim_is_the_first_epoch(self) -> None:
        self.create()
        self.assertEqual(self.claim().epoch, 1)

    def test_a_claim_is_true_and_names_its_run(self) -> None:
        self.create()
        claim = self.store.claim("r1")
        self.assertTrue(claim)
        self.assertEqual((claim.run_id, claim.epoch), ("r1", 1))

    def test_the_epoch_of_a_claim_is_stored(self) -> None:
        self.create()
        self.claim()
        self.assertEqual(self.get().driver_epoch, 1)

    def test_epochs_rise_with_each_claim(self) -> None:
        self.create()
        self.assertEqual([self.claim().epoch for _ in range(4)], [1, 2, 3, 4])

    def test_a_claim_goes_on_from_the_epoch_that_was_written(self) -> None:
        for written, claimed in ((0, 1), (7, 8), (None, 1)):
            with self.subTest(written=written):
                self.create()
                self.update(driver_epoch=written)
                self.assertEqual(self.claim().epoch, claimed)

    def test_a_claim_writes_nothing_but_the_epoch(self) -> None:
        self.create(name="n")
        self.update(detached_since=5, cancel_requested=False, sandbox_key="box", usage={"a": 1})
        before = self.get().to_json()
        self.claim()
        self.assertEqual(self.get().to_json(), {**before, "driverEpoch": 1})

    def test_a_claim_leaves_other_runs(self) -> None:
        self.create("r1")
        self.create("r2")
        with self.unchanged("r2"):
            self.claim("r1")

    def test_an_interrupted_run_can_be_claimed(self) -> None:
        self.create(status="interrupted")
        self.assertEqual(self.claim().epoch, 1)
        self.assertEqual(self.get().status, Status.INTERRUPTED)

    def test_a_detached_run_can_be_claimed_by_its_driver(self) -> None:
        self.create()
        self.update(detached_since=5)
        self.assertEqual(self.claim().epoch, 1)
        self.assertEqual(self.get().detached_since, 5)

    def test_a_run_that_was_asked_to_stop_can_be_claimed(self) -> None:
        self.create()
        self.update(cancel_requested=True)
        self.assertEqual(self.claim().epoch, 1)

    def test_an_unknown_run_is_refused_as_unknown(self) -> None:
        self.assert_refused("unknown", "missing")

    def test_a_refused_claim_creates_no_run(self) -> None:
        self.store.claim("missing")
        self.assertIsNone(self.get("missing"))

    def test_a_finished_run_is_refused_as_terminal(self) -> None:
        for status in sorted(TERMINAL):
            self.ended(status, status)
            with self.subTest(status):
                self.assert_refused("terminal", status)

    def test_a_refused_claim_of_a_finished_run_changes_nothing(self) -> None:
        self.ended()
        self.update(driver_epoch=2)
        with self.unchanged("r1"):
            self.store.claim("r1")

    def test_a_finished_run_is_refused_as_terminal_whatever_was_expected(self) -> None:
        self.ended()
        self.update(driver_epoch=2)
        self.assert_refused("terminal", detached_before=10)
        self.assert_refused("terminal", epoch=1)


@needs("claim")
class ClaimingDetached(StoreTests):
    """Claims on the condition that nobody came back."""

    def watched_until(self, since: int | None) -> None:
        self.create()
        self.update(detached_since=since)

    def test_a_run_that_was_left_before_the_cutoff_is_claimed(self) -> None:
        self.watched_until(9)
        self.assertEqual(self.claim(detached_before=10).epoch, 1)

    def test_a_run_that_was_left_at_the_cutoff_is_claimed(self) -> None:
        self.watched_until(10)
        self.assertEqual(self.claim(detached_before=10).epoch, 1)

    def test_a_run_that_was_left_after_the_cutoff_is_refused(self) -> None:
        self.watched_until(11)
        self.assert_refused("condition", detached_before=10)

    def test_a_run_that_somebody_watches_is_refused(self) -> None:
        self.watched_until(None)
        self.assert_refused("condition", detached_before=10)

    def test_a_claim_that_is_refused_leaves_the_epoch(self) -> None:
        self.watched_until(11)
        self.update(driver_epoch=3)
        with self.unchanged("r1"):
            self.store.claim("r1", detached_before=10)

    def test_a_claim_that_is_refused_sets_no_first_epoch(self) -> None:
        self.watched_until(None)
        self.store.claim("r1", detached_before=10)
        self.assertIsNone(self.get().driver_epoch)

    def test_a_cutoff_of_0_is_a_cutoff(self) -> None:
        self.watched_until(1)
        self.assert_refused("condition", detached_before=0)
        self.update(detached_since=0)
        self.assertEqual(self.claim(detached_before=0).epoch, 1)

    def test_the_holder_is_not_superseded_by_a_claim_that_is_refused(self) -> None:
        self.watched_until(None)
        holder = self.claim()
        self.store.claim("r1", detached_before=10)
        self.assertIs(holder.is_superseded(), False)
        self.assertIs(holder.update({"status": "completed"}), True)
        self.assertEqual(self.get().status, Status.COMPLETED)


@needs("claim")
class ClaimingExpected(StoreTests):
    """Claims on the condition that nobody claimed meanwhile."""

    def test_the_epoch_that_was_expected_is_claimed(self) -> None:
        self.create()
        self.claim()
        self.assertEqual(self.claim(epoch=1).epoch, 2)

    def test_a_run_that_was_claimed_meanwhile_is_refused_as_superseded(self) -> None:
        self.create()
        self.claim()
        self.claim()
        self.assert_refused("superseded", epoch=1)
        self.assertEqual(self.get().driver_epoch, 2)

    def test_an_epoch_that_was_never_reached_is_refused(self) -> None:
        self.create()
        self.claim()
        self.assert_refused("superseded", epoch=2)
        self.assertEqual(self.get().driver_epoch, 1)

    def test_a_run_that_was_never_claimed_is_expected_with_none(self) -> None:
        self.create()
        self.assertEqual(self.claim(epoch=None).epoch, 1)
        self.assert_refused("superseded", epoch=None)

    def test_no_epoch_is_not_the_epoch_0(self) -> None:
        self.create()
        self.assert_refused("superseded", epoch=0)
        self.update(driver_epoch=0)
        self.assert_refused("superseded", epoch=None)
        self.assertEqual(self.claim(epoch=0).epoch, 1)


@needs("claim")
class Fencing(StoreTests):
    """What a holder writes, and what it cannot once the run is at another epoch than its own."""

    def contended(self) -> tuple[Held, Held]:
        """A superseded holder, and the one that superseded it."""
        self.create()
        return self.claim(), self.claim()

    def test_an_end_of_a_superseded_holder_is_not_written(self) -> None:
        first, _ = self.contended()
        for status in sorted(TERMINAL):
            with self.subTest(status), self.unchanged("r1"):
                first.update({"status": status})

    def test_an_end_of_a_superseded_holder_is_told_as_not_written(self) -> None:
        first, _ = self.contended()
        self.assertIs(first.update({"status": "completed"}), False)

    def test_a_late_end_is_logged(self) -> None:
        first, _ = self.contended()
        with self.assertLogs("solid_runs.threads", "WARNING") as logged:
            first.update({"status": "completed"})
        self.assertIn("r1", logged.output[0])

    def test_what_passes_the_fence_is_not_logged(self) -> None:
        first, second = self.contended()
        with self.assertNoLogs("solid_runs.threads"):
            first.update({"usage": {"totalTokens": 3}})
            second.update({"status": "completed"})

    def test_nothing_of_a_patch_with_a_late_end_is_written(self) -> None:
        first, _ = self.contended()
        with self.unchanged("r1"):
            first.update(
                {
                    "status": "failed",
                    "finished_at": 10,
                    "usage": {"totalTokens": 3},
                    "error": {"message": "Lost."},
                    "detached_since": 5,
                }
            )

    def test_a_late_end_is_not_written_over_the_end_of_the_new_holder(self) -> None:
        first, second = self.contended()
        second.update({"status": "failed", "finished_at": 10})
        with self.unchanged("r1"):
            self.assertIs(first.update({"status": "completed"}), False)

    def test_the_usage_of_a_superseded_holder_is_written(self) -> None:
        first, _ = self.contended()
        self.assertIs(first.update({"usage": {"totalTokens": 3}}), True)
        self.assertEqual(self.get().usage, {"totalTokens": 3})

    def test_the_usage_of_a_superseded_holder_is_written_to_an_ended_run(self) -> None:
        first, second = self.contended()
        second.update({"status": "completed"})
        self.assertIs(first.update({"usage": {"totalTokens": 3}}), True)
        self.assertEqual(self.get().usage, {"totalTokens": 3})
        self.assertEqual(self.get().status, Status.COMPLETED)

    def test_each_field_but_an_end_passes_the_fence(self) -> None:
        first, _ = self.contended()
        patch = {
            "finished_at": 10,
            "error": {"message": "Retrying."},
            "usage": {"totalTokens": 3},
            "sandbox_key": "box",
            "detached_since": 5,
            "cancel_requested": False,
        }
        for name, value in patch.items():
            with self.subTest(name):
                self.assertIs(first.update({name: value}), True)
                self.assertEqual(getattr(self.get(), name), value)

    def test_a_superseded_holder_may_interrupt_a_run_that_goes_on(self) -> None:
        first, _ = self.contended()
        self.assertIs(first.update({"status": "interrupted"}), True)
        self.assertEqual(self.get().status, Status.INTERRUPTED)

    def test_a_superseded_holder_brings_no_ended_run_back(self) -> None:
        first, second = self.contended()
        for status in ("running", "interrupted"):
            second.update({"status": "completed"})
            with self.subTest(status), self.unchanged("r1"):
                self.assertIs(first.update({"status": status}), False)

    def test_the_new_holder_ends_the_run(self) -> None:
        _, second = self.contended()
        patch = {"status": "completed", "finished_at": 10, "usage": {"totalTokens": 3}}
        self.assertIs(second.update(patch), True)
        found = self.get()
        self.assertEqual((found.status, found.finished_at), (Status.COMPLETED, 10))
        self.assertEqual(found.usage, {"totalTokens": 3})

    def test_the_new_holder_ends_the_run_after_a_late_end_of_the_old(self) -> None:
        first, second = self.contended()
        first.update({"status": "failed"})
        self.assertIs(second.update({"status": "completed"}), True)
        self.assertEqual(self.get().status, Status.COMPLETED)

    def test_a_holder_clears_a_field_with_none(self) -> None:
        _, second = self.contended()
        self.update(sandbox_key="box", usage={"a": 1})
        self.assertIs(second.update({"sandbox_key": None}), True)
        self.assertEqual((self.get().sandbox_key, self.get().usage), (None, {"a": 1}))

    def test_who_holds_no_claim_is_not_fenced(self) -> None:
        self.contended()
        self.assertIsNone(self.store.update("r1", {"status": "completed"}))
        self.assertEqual(self.get().status, Status.COMPLETED)

    def test_the_holder_may_end_a_run_that_somebody_without_a_claim_ended(self) -> None:
        _, second = self.contended()
        self.update(status="aborted")
        self.assertIs(second.update({"status": "completed"}), True)
        self.assertEqual(self.get().status, Status.COMPLETED)

    def test_a_holder_is_fenced_by_an_epoch_that_was_written_by_an_update(self) -> None:
        _, second = self.contended()
        self.update(driver_epoch=9)
        self.assertIs(second.update({"status": "completed"}), False)
        self.assertEqual(self.get().status, Status.RUNNING)

    def test_a_holder_is_fenced_by_a_lower_epoch_too(self) -> None:
        _, second = self.contended()
        for epoch in (0, 1):
            self.update(driver_epoch=epoch)
            with self.subTest(epoch=epoch), self.unchanged("r1"):
                self.assertIs(second.update({"status": "completed"}), False)

    def test_a_holder_is_superseded_by_a_lower_epoch_too(self) -> None:
        _, second = self.contended()
        self.update(driver_epoch=1)
        self.assertIs(second.is_superseded(), True)

    def test_a_holder_ends_no_run_whose_epoch_was_cleared(self) -> None:
        _, second = self.contended()
        self.update(driver_epoch=None)
        with self.unchanged("r1"):
            self.assertIs(second.update({"status": "completed"}), False)

    def test_nobody_holds_a_run_whose_epoch_was_cleared(self) -> None:
        _, second = self.contended()
        self.update(driver_epoch=None)
        self.assertIs(second.is_superseded(), True)

    def test_the_usage_of_a_holder_is_written_after_the_epoch_was_cleared(self) -> None:
        _, second = self.contended()
        self.update(driver_epoch=None)
        self.assertIs(second.update({"usage": {"totalTokens": 3}}), True)
        self.assertEqual(self.get().usage, {"totalTokens": 3})

    def test_a_holder_is_superseded_by_the_next_claim(self) -> None:
        first, second = self.contended()
        self.assertIs(first.is_superseded(), True)
        self.assertIs(second.is_superseded(), False)

    def test_a_holder_is_not_superseded_by_the_end_of_the_run(self) -> None:
        _, second = self.contended()
        second.update({"status": "completed"})
        self.assertIs(second.is_superseded(), False)

    def test_a_claim_writes_to_its_own_run_alone(self) -> None:
        _, second = self.contended()
        self.create("r2")
        with self.unchanged("r2"):
            second.update({"status": "completed"})


@needs("claim", "leases")
class Leasing(StoreTests):
    """Claims of reapers, of which one at a time is at a run."""

    def leased(self) -> None:
        self.create()
        self.assertEqual(self.claim(lease_ms=LEASE).epoch, 1)

    def test_a_second_reaper_is_refused_while_a_lease_runs(self) -> None:
        self.leased()
        self.assert_refused("condition", lease_ms=LEASE)
        self.later(LEASE - 1)
        self.assert_refused("condition", lease_ms=LEASE)
        self.assertEqual(self.get().driver_epoch, 1)

    def test_a_second_reaper_claims_when_a_lease_is_over(self) -> None:
        self.leased()
        self.later(LEASE + 1)
        self.assertEqual(self.claim(lease_ms=LEASE).epoch, 2)
        self.assert_refused("condition", lease_ms=LEASE)

    def test_a_driver_claims_whatever_lease_runs(self) -> None:
        self.leased()
        self.assertEqual(self.claim().epoch, 2)

    def test_a_claim_of_a_driver_ends_the_lease_of_a_reaper(self) -> None:
        self.leased()
        self.claim()
        self.assertEqual(self.claim(lease_ms=LEASE).epoch, 3)

    def test_a_run_that_somebody_watches_is_claimed_as_watched(self) -> None:
        self.create()
        self.assertEqual(self.claim(watched=True).epoch, 1)

    def test_a_run_that_nobody_watches_is_refused_as_watched(self) -> None:
        self.create()
        for since in (0, 5):
            self.update(detached_since=since)
            with self.subTest(since=since), self.unchanged("r1"):
                self.assert_refused("condition", watched=True)

    def test_a_lease_is_no_part_of_the_record(self) -> None:
        self.leased()
        self.create("r2")
        self.claim("r2")
        self.assertEqual(self.get("r1").to_json().keys(), self.get("r2").to_json().keys())
