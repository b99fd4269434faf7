"""What every store holds when threads do one thing at once."""

from __future__ import annotations

from functools import partial
from typing import Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.claims import Claim, Refusal

THREADS: Final = 8
ROUNDS: Final = ("r1", "r2", "r3", "r4")
"""Each race is held several times, over a run of its own."""


class RunStoreRaces(StoreTests):
    """What a store holds against races of threads; put it before a TransactionTestCase.

    A store that needs no database may have a plain TestCase. On SQLite the test database is a file
    (``TEST["NAME"]``), since threads do not wait for each other's locks in memory.
    """

    def test_creates_at_once_make_one_record(self) -> None:
        for run_id in ROUNDS:
            create = self.store.create_or_resume
            told = self.race(
                [partial(create, run_id, f"t{number}", number) for number in range(THREADS)]
            )
            stored = self.the_run(run_id)
            for record in told:
                self.assert_same(record, stored)

    def test_updates_of_different_fields_at_once_are_all_kept(self) -> None:
        patch = {"usage": {"a": 1}, "sandbox_key": "box", "detached_since": 5, "finished_at": 10}
        patch |= {"cancel_requested": True, "driver_epoch": 3, "error": {"message": "m"}}
        for run_id in ROUNDS:
            self.create(run_id)
            calls = [partial(self.store.update, run_id, {key: patch[key]}) for key in patch]
            self.assertEqual(self.race(calls), [None] * len(calls))
            found = self.the_run(run_id)
            self.assertEqual({key: getattr(found, key) for key in patch}, patch)

    @needs("claim")
    def test_claims_at_once_get_different_epochs(self) -> None:
        for run_id in ROUNDS:
            self.create(run_id)
            told = self.race([partial(self.store.claim, run_id)] * THREADS)
            self.assertEqual(
                sorted(claim.epoch for claim in told), list(range(1, THREADS + 1)), told
            )
            self.assertEqual(self.the_run(run_id).driver_epoch, THREADS)

    @needs("claim")
    def test_of_claims_that_expect_one_epoch_one_is_held(self) -> None:
        for run_id in ROUNDS:
            self.create(run_id)
            told = self.race([partial(self.store.claim, run_id, epoch=None)] * THREADS)
            self.assertEqual(self.the_only(Claim, told, Refusal).epoch, 1)
            self.assertEqual(self.the_run(run_id).driver_epoch, 1)

    @needs("claim", "leases")
    def test_of_reapers_at_once_one_holds_the_lease(self) -> None:
        for run_id in ROUNDS:
            self.create(run_id)
            told = self.race([partial(self.store.claim, run_id, lease_ms=60_000)] * THREADS)
            self.the_only(Claim, told, Refusal)

    @needs("claim")
    def test_a_run_that_ends_while_it_is_claimed_is_fenced_or_not_claimed(self) -> None:
        for run_id in ROUNDS:
            self.create(run_id)
            holder = self.claim(run_id)
            calls = [partial(holder.update, {"status": "completed"})]
            calls += [partial(self.store.claim, run_id)] * (THREADS - 1)
            ended, *claims = self.race(calls)
            found = self.the_run(run_id)
            self.assertEqual(found.terminal, ended)
            won = [claim.epoch for claim in claims if claim]
            self.assertEqual(found.driver_epoch, 1 + len(won), claims)
            self.assertEqual(bool(won), not ended, claims)

    @needs("update_if")
    def test_of_updates_that_expect_one_status_one_is_written(self) -> None:
        ends = ("completed", "failed", "aborted")
        for run_id in ROUNDS:
            self.create(run_id)
            update = partial(self.store.update_if, run_id, status="running")
            told = self.race(
                [partial(update, {"status": ends[n % 3], "finished_at": n}) for n in range(THREADS)]
            )
            self.assertEqual(told.count(True), 1, told)
            self.assertEqual(told.count(False), THREADS - 1, told)
            found, won = self.the_run(run_id), told.index(True)
            self.assertEqual((found.status, found.finished_at), (ends[won % 3], won))

    @needs("update_if")
    def test_of_updates_that_expect_one_epoch_one_is_written(self) -> None:
        for run_id in ROUNDS:
            self.create(run_id)
            update = partial(self.store.update_if, run_id, epoch=None)
            told = self.race([partial(update, {"driver_epoch": n + 1}) for n in range(THREADS)])
            self.assertEqual(told.count(True), 1, told)
            self.assertEqual(self.the_run(run_id).driver_epoch, told.index(True) + 1)
