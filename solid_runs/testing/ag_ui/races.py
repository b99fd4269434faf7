"""What every store holds when threads do one thing at once."""

from __future__ import annotations

from functools import partial
from typing import Final

from solid_runs.ag_ui.exceptions import (
    ResumeRejectedError,
    StreamError,
    ThreadBusyError,
)
from solid_runs.ag_ui.interrupts import Redemption
from solid_runs.ag_ui.records import Reservation, RunRecord
from solid_runs.testing.ag_ui.base import SCOPE, YES, StoreTests, entries, question
from solid_runs.testing.ag_ui.capabilities import needs
from solid_runs.testing.ag_ui.housekeeping import MINUTE

THREADS: Final = 8
ROUNDS: Final = ("t1", "t2", "t3", "t4")
"""Each race is held several times, on a thread of the store's of its own."""


class RunStoreRaces(StoreTests):
    """What a store holds against races of threads; put it before a TransactionTestCase.

    A store that needs no database may have a plain TestCase. On SQLite the test database is a file
    (``TEST["NAME"]``), since threads do not wait for each other's locks in memory.
    """

    def test_an_identity_is_claimed_by_one(self) -> None:
        for thread_id in ROUNDS:
            told = self.race([partial(self.store.reserve, SCOPE, thread_id, "r1", "d1")] * THREADS)
            self.assertEqual([one.new for one in told].count(True), 1, told)
            stored = self.find("r1", thread_id)
            for one in told:
                self.assert_same(one.record, stored)

    @needs("policy")
    def test_a_thread_that_takes_one_run_at_a_time_takes_one(self) -> None:
        for thread_id in ROUNDS:
            reserve = partial(self.store.reserve, SCOPE, thread_id, digest="d1", policy="reject")
            told = self.race([partial(reserve, f"r{number}") for number in range(THREADS)])
            won = self.the_only(Reservation, told, ThreadBusyError)
            busy = {one.active_run_id for one in told if one is not won}
            self.assertEqual(busy, {won.record.run_id})

    def test_the_first_of_different_answers_wins(self) -> None:
        for thread_id in ROUNDS:
            self.asked(thread_id=thread_id)
            redeem = partial(self.store.redeem_interrupt, SCOPE, thread_id, "i1")
            answers = [{"status": "resolved", "payload": number} for number in range(THREADS)]
            told = self.race([partial(redeem, answer) for answer in answers])
            won = self.the_only(Redemption, told, ResumeRejectedError)
            self.assertIs(won.recorded, True)
            stored = self.store.find_interrupt(SCOPE, thread_id, "i1")
            self.assertEqual(stored.to_storage(), won.interrupt.to_storage())

    def test_one_answer_is_held_by_one_run(self) -> None:
        for thread_id in ROUNDS:
            self.asked(thread_id=thread_id)
            redeem = partial(self.store.redeem_interrupt, SCOPE, thread_id, "i1", YES)
            redeem()
            told = self.race([partial(redeem, run_id=f"taker{n}") for n in range(THREADS)])
            won = self.the_only(Redemption, told, ResumeRejectedError)
            self.assertIs(won.holds, True)
            stored = self.store.find_interrupt(SCOPE, thread_id, "i1")
            self.assertEqual(stored.redeemed_by, won.interrupt.redeemed_by)

    def test_the_permission_to_act_is_given_once(self) -> None:
        for thread_id in ROUNDS:
            self.asked(thread_id=thread_id)
            self.reserved("r2", thread_id=thread_id)
            self.store.redeem_interrupt(SCOPE, thread_id, "i1", YES, run_id="r2")
            told = self.race([partial(self.store.settle, SCOPE, thread_id, "i1", "r2")] * THREADS)
            self.assertEqual(sorted(told), [False] * (THREADS - 1) + [True])

    def test_a_batch_of_answers_goes_to_one_run(self) -> None:
        takers = [f"taker{number}" for number in range(THREADS)]
        for thread_id in ROUNDS:
            self.asked("i1", "i2", thread_id=thread_id)
            for run_id in takers:
                self.reserved(run_id, thread_id=thread_id)
            resume = partial(self.store.resume, SCOPE, thread_id, entries(i1=YES, i2=YES))
            told = self.race([partial(resume, run_id) for run_id in takers])
            won = self.the_only(tuple, told, ResumeRejectedError)
            self.assertEqual([one.holds for one in won], [True, True])
            stored = self.find("r1", thread_id).interrupts
            self.assertEqual([one.redeemed_by for one in stored], [takers[told.index(won)]] * 2)

    def test_different_ends_of_one_copy_are_one_end(self) -> None:
        for thread_id in ROUNDS:
            started = self.started(thread_id=thread_id)
            ends = ["succeeded", "failed", "cancelled"]
            given = [started.finish(ends[n % 3], self.clock()) for n in range(THREADS)]
            given[0] = started.interrupted([question()], self.clock())
            told = self.race([partial(self.saved, record) for record in given])
            stored = self.find("r1", thread_id)
            self.assertIs(stored.terminal, True)
            for record, one in zip(given, told, strict=True):
                kind = RunRecord if record.status is stored.status else StreamError
                self.assertIsInstance(one, kind, (record.status, stored.status))

    @needs("stalled")
    def test_each_stalled_run_is_failed_by_one(self) -> None:
        for thread_id in ROUNDS:
            silent = [f"{thread_id}-{number}" for number in range(3)]
            for run_id in silent:
                self.started(run_id, thread_id=thread_id)
            self.clock.forward(minutes=5)
            told = self.race([partial(self.store.fail_stalled, MINUTE)] * THREADS)
            self.assertEqual(sorted(run.run_id for failed in told for run in failed), silent)
            for run_id in silent:
                self.assertEqual(self.find(run_id, thread_id).failure["code"], "stalled")
