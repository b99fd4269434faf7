"""A driver that dies without a word is found by its silence."""

from __future__ import annotations

from typing import Final

from solid_runs.testing.threads.base import Held, StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.testing.threads.updating import FULL
from solid_runs.threads.records import TERMINAL

TTL: Final = 1000


class Driven(StoreTests):
    def driven(self) -> Held:
        """A run that is claimed now, with its holder."""
        self.create()
        self.alive_at = self.now()
        return self.claim()

    def stalled(self, now: int | None = None) -> list[str]:
        return self.ids(self.store.list_stalled(now, TTL))


@needs("claim", "list_stalled")
class Stalling(Driven):
    def test_a_claim_is_the_first_sign_of_life(self) -> None:
        self.driven()
        self.later(TTL - 1)
        self.assertEqual(self.stalled(), [])

    def test_a_claimed_run_that_is_silent_for_so_long_is_stalled(self) -> None:
        self.driven()
        self.later(TTL)
        self.assertEqual(self.stalled(), ["r1"])

    def test_the_time_may_be_given(self) -> None:
        self.driven()
        self.assertEqual(self.stalled(self.alive_at + TTL - 1), [])
        self.assertEqual(self.stalled(self.alive_at + TTL), ["r1"])

    def test_a_claim_of_another_is_a_sign_of_life(self) -> None:
        self.driven()
        self.later(TTL)
        self.claim()
        self.assertEqual(self.stalled(), [])

    def test_a_claim_that_is_refused_is_no_sign_of_life(self) -> None:
        self.driven()
        self.later(TTL)
        self.assert_refused("condition", detached_before=1)
        self.assertEqual(self.stalled(), ["r1"])

    def test_a_run_that_was_never_claimed_is_not_stalled(self) -> None:
        self.driven()
        self.create("r2")
        self.later(10 * TTL)
        self.assertEqual(self.stalled(), ["r1"])

    def test_a_run_whose_epoch_was_cleared_is_not_stalled(self) -> None:
        self.driven()
        self.update(driver_epoch=None)
        self.later(TTL)
        self.assertEqual(self.stalled(), [])

    def test_a_finished_run_is_not_stalled(self) -> None:
        self.driven()
        self.later(TTL)
        for status in sorted(TERMINAL):
            self.update(status=status)
            self.assertEqual(self.stalled(), [], status)

    def test_an_interrupted_run_is_not_stalled(self) -> None:
        self.driven()
        self.update(status="interrupted")
        self.later(TTL)
        self.assertEqual(self.stalled(), [])

    def test_a_detached_run_may_be_stalled_too(self) -> None:
        self.driven()
        self.update(detached_since=5)
        self.later(TTL)
        self.assertEqual(self.stalled(), ["r1"])

    def test_runs_of_all_threads_are_stalled_the_longest_silent_first(self) -> None:
        self.driven()
        for run_id in ("r3", "r2"):
            self.create(run_id, f"t-{run_id}")
            self.later(1)
            self.claim(run_id)
        self.create("r0")
        self.later(1)
        self.claim("r0")
        self.later(TTL)
        self.assertEqual(self.stalled(), ["r1", "r3", "r2", "r0"])

    def test_stalled_runs_are_listed_as_whole_records(self) -> None:
        self.driven()
        self.update(usage={"totalTokens": 3}, sandbox_key="box")
        self.later(TTL)
        (found,) = self.store.list_stalled(None, TTL)
        self.assert_same(found, self.get())

    @needs("limits")
    def test_a_limit_takes_those_that_are_silent_longest(self) -> None:
        self.driven()
        for run_id in ("r2", "r3"):
            self.later(1)
            self.create(run_id)
            self.claim(run_id)
        self.later(TTL)
        self.assertEqual(self.ids(self.store.list_stalled(None, TTL, limit=2)), ["r1", "r2"])

    def test_a_run_is_claimed_on_the_condition_that_it_is_silent(self) -> None:
        self.driven()
        self.assert_refused("condition", silent_before=self.alive_at - 1)
        self.assertEqual(self.claim(silent_before=self.alive_at).epoch, 2)

    def test_a_run_that_never_gave_a_sign_of_life_is_not_claimed_as_silent(self) -> None:
        self.create()
        self.update(driver_epoch=1)
        self.later(10 * TTL)
        with self.unchanged("r1"):
            self.assert_refused("condition", silent_before=self.now())

    def test_a_run_that_is_not_silent_keeps_its_epoch(self) -> None:
        holder = self.driven()
        with self.unchanged("r1"):
            self.store.claim("r1", silent_before=self.alive_at - 1)
        self.assertIs(holder.is_superseded(), False)


@needs("claim", "list_stalled", "touch")
class Touching(Driven):
    def test_a_touch_of_the_holder_is_held(self) -> None:
        holder = self.driven()
        self.assertIs(holder.touch(), True)

    def test_a_touch_is_a_sign_of_life(self) -> None:
        holder = self.driven()
        self.later(TTL - 1)
        holder.touch()
        self.later(TTL - 1)
        self.assertEqual(self.stalled(), [])
        self.later(1)
        self.assertEqual(self.stalled(), ["r1"])

    def test_the_time_of_a_touch_may_be_given(self) -> None:
        holder = self.driven()
        self.assertIs(holder.touch(5000), True)
        self.assertEqual(self.stalled(5000 + TTL - 1), [])
        self.assertEqual(self.stalled(5000 + TTL), ["r1"])

    def test_a_touch_is_no_part_of_the_record(self) -> None:
        holder = self.driven()
        with self.unchanged("r1"):
            self.later(1)
            holder.touch()

    def test_a_touch_leaves_every_field_as_it_is(self) -> None:
        self.create(name="n")
        self.update(**FULL)
        holder = self.claim()
        with self.unchanged("r1"):
            self.later(1)
            self.assertIs(holder.touch(), True)

    def test_a_touch_takes_a_run_from_who_found_it_silent(self) -> None:
        holder = self.driven()
        self.later(1)
        holder.touch()
        self.assert_refused("condition", silent_before=self.alive_at)

    def test_a_touch_of_a_superseded_holder_is_not_held(self) -> None:
        holder = self.driven()
        self.claim()
        self.assertIs(holder.touch(), False)

    def test_a_touch_with_an_epoch_that_was_never_reached_is_not_held(self) -> None:
        self.driven()
        self.assertIs(self.store.touch("r1", 2), False)

    def test_a_touch_of_a_run_whose_epoch_was_cleared_is_not_held(self) -> None:
        holder = self.driven()
        self.update(driver_epoch=None)
        self.assertIs(holder.touch(), False)

    def test_a_touch_of_a_superseded_holder_is_no_sign_of_life(self) -> None:
        holder = self.driven()
        self.claim()
        self.later(TTL)
        holder.touch()
        self.assertEqual(self.stalled(), ["r1"])

    def test_a_touch_of_an_ended_run_is_not_held(self) -> None:
        holder = self.driven()
        for status in sorted(TERMINAL):
            self.update(status=status)
            with self.subTest(status), self.unchanged("r1"):
                self.assertIs(holder.touch(), False)

    def test_a_touch_of_an_interrupted_run_is_held(self) -> None:
        holder = self.driven()
        self.update(status="interrupted")
        self.assertIs(holder.touch(), True)

    def test_a_touch_leaves_other_runs_silent(self) -> None:
        holder = self.driven()
        self.create("r2")
        self.claim("r2")
        self.later(TTL)
        holder.touch()
        self.assertEqual(self.stalled(), ["r2"])
