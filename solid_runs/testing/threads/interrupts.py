"""The suites of stores of interrupts."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from solid_runs.testing.stores import Offered
from solid_runs.testing.threads.base import OTHER_SCOPE
from solid_runs.testing.threads.interrupt_answers import Asking, Deciding
from solid_runs.testing.threads.interrupt_base import (
    InterruptStoreTests,
    needs,
    yes,
)
from solid_runs.testing.threads.interrupt_batches import Batches
from solid_runs.testing.threads.interrupt_lists import BadInterrupts, InterruptScopes, Listing
from solid_runs.threads.exceptions import BatchRejected, InvalidRecord

THREADS: Final = 8
ROUNDS: Final = ("a", "b", "c", "d")


def _cleaning(test: Any) -> None:
    try:
        test.ask(payload={"text": "a\0b"})
    except InvalidRecord as error:
        raise NotImplementedError from error


def _scopes(test: Any) -> None:
    theirs = test.new_store(scope=OTHER_SCOPE)
    test.ask()
    if theirs.get("i1") is not None:
        raise NotImplementedError


class InterruptStoreConformance(
    Asking, Deciding, Listing, Batches, BadInterrupts, InterruptScopes, Offered
):
    """What every store of interrupts holds; put it before a TestCase.

    What a store does not have it declares in ``leaves_out``, with names out of
    CAPABILITIES.optional, as for RunStoreConformance.
    """

    attempts = {
        "async": Offered.try_twins,
        "cleaning": _cleaning,
        "commit_batch": lambda test: test.the_method("commit_batch")([]),
        "scopes": _scopes,
    }


class InterruptStoreRaces(InterruptStoreTests):
    """What a store holds against races of threads; see RunStoreRaces."""

    def test_creates_at_once_make_one_interrupt(self) -> None:
        for interrupt_id in ROUNDS:
            create = partial(self.store.create, interrupt_id, payload={})
            calls = [
                partial(create, run_id=f"r{n}", thread_id=f"t{n}", requested_at=n)
                for n in range(THREADS)
            ]
            self.assertEqual(self.race(calls), [None] * THREADS)
            stored = self.get(interrupt_id)
            number = stored.requested_at
            self.assertEqual((stored.run_id, stored.thread_id), (f"r{number}", f"t{number}"))

    @needs("commit_batch")
    def test_of_batches_at_once_that_share_one_interrupt_one_is_taken(self) -> None:
        for name in ROUNDS:
            own = [f"{name}{number}" for number in range(THREADS)]
            for interrupt_id in (name, *own):
                self.ask(interrupt_id)
            batches = [[yes(own[n], response=n), yes(name, response=n)] for n in range(THREADS)]
            told = self.race([partial(self.store.commit_batch, batch) for batch in batches])
            won = told.index(None)
            self.the_only(type(None), told, BatchRejected)
            self.assertEqual(self.get(name).response, won)
            pending = [self.get(one).pending for one in own]
            self.assertEqual(pending, [number != won for number in range(THREADS)])
