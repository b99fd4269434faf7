"""Stores that are wrong in one thing, each of which fails a test of the suite."""

from __future__ import annotations

import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.test import SimpleTestCase

from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.records import RunKey
from solid_runs.ag_ui.stores.memory import MemoryStore
from solid_runs.testing.ag_ui import RunStoreConformance, RunStoreRaces

pytestmark = pytest.mark.once

BETWEEN = 0.002
"""The seconds between a look and an act, in which another thread looks too."""


class Merging(MemoryStore):
    """Takes ids that differ by case for one."""

    def reserve(self, scope, thread_id, run_id, digest, **options):
        return super().reserve(scope, thread_id, run_id.lower(), digest, **options)


class Overwriting(MemoryStore):
    """The last save wins."""

    def save(self, record):
        self._set((record.scope, record.thread_id, record.run_id), None)
        return super().save(record)


class Hoarding(MemoryStore):
    """A run that ends keeps what it holds."""

    def _release(self, key, now):
        return 0


class Permissive(MemoryStore):
    """Everybody may act on an answer."""

    def settle(self, *args, **kwargs):
        super().settle(*args, **kwargs)
        return True


class Unscoped(MemoryStore):
    """Finds an interrupt in any tenant."""

    def find_interrupt(self, scope, thread_id, interrupt_id):
        found = (row.record.interrupt(interrupt_id) for row in self._rows.values())
        return next(filter(None, found), None)


class Undying(MemoryStore):
    """A run that has ended may act on an answer that it holds."""

    def _settle(self, key, interrupt_id, now):
        with self._lock:
            for row in self._of_thread(key.scope, key.thread_id):
                for held in row.record.interrupts:
                    settled = held.settle(key.run_id, now)
                    if held.id == interrupt_id and settled is not held:
                        record = row.record.replace_interrupt(settled, row.record.updated_at)
                        self._set(row.key, replace(row, record=record))
                        return True
            return False


class Punctual(MemoryStore):
    """An answer that was given in time is useless after the deadline."""

    def settle(self, scope, thread_id, interrupt_id, run_id, now=None):
        held = self.find_interrupt(scope, thread_id, interrupt_id)
        if held is not None and held.expired(now or self.now()):
            return False
        return super().settle(scope, thread_id, interrupt_id, run_id, now)


class ByCreation(MemoryStore):
    """Takes the run with the latest ``created_at`` for the latest run."""

    def _of_thread(self, scope, thread_id):
        rows = super()._of_thread(scope, thread_id)
        return sorted(rows, key=lambda row: row.record.created_at, reverse=True)


class Rounding(MemoryStore):
    """Keeps milliseconds."""

    def save(self, record):
        milliseconds = record.updated_at.microsecond // 1000 * 1000
        updated_at = record.updated_at.replace(microsecond=milliseconds)
        return super().save(replace(record, updated_at=updated_at))


class Folding(MemoryStore):
    """Takes interrupt ids that differ by case for one when none is equal."""

    def find_interrupt(self, scope, thread_id, interrupt_id):
        found = super().find_interrupt(scope, thread_id, interrupt_id)
        if found is not None:
            return found
        rows = self._of_thread(str(scope), thread_id)
        asked = (one for row in rows for one in row.record.interrupts)
        return next((one for one in asked if one.id.lower() == interrupt_id.lower()), None)


class Hasty(MemoryStore):
    """Tells of what may yet be undone."""

    def _after_commit(self, send):
        send()


class Unasked(MemoryStore):
    """A cancel request withdraws the answers that nobody has taken yet, too."""

    def request_cancel(self, scope, thread_id, run_id, *, by=None):
        stored = self.find(scope, thread_id, run_id)
        if stored is not None and stored.interrupts:
            self.abandon(scope, thread_id, by=by)
        return super().request_cancel(scope, thread_id, run_id, by=by)


# Only threads find these


class Unlocked(MemoryStore):
    """Nobody waits for anybody."""

    @contextmanager
    def _thread(self, scope: str, thread_id: str) -> Iterator[None]:
        sends, self._sends = self._sends, []
        yield
        for send in self._sends:
            send()
        self._sends = sends

    def _write(self, stored, given):
        time.sleep(BETWEEN)
        super()._write(stored, given)


class ClaimingTwice(MemoryStore):
    """Looks for a run, and inserts it if there was none."""

    def _claim(self, fresh, labels):
        stored = self._read(RunKey.of(fresh))
        time.sleep(BETWEEN)
        if stored is None:
            self._insert(fresh, labels)
        return stored


class SettlingTwice(MemoryStore):
    """Looks whether a run may act, and notes that it does."""

    def _settle(self, key, interrupt_id, now):
        held = self.find_interrupt(key.scope, key.thread_id, interrupt_id)
        taker = self._read(key)
        time.sleep(BETWEEN)
        super()._settle(key, interrupt_id, now)
        return (
            held is not None
            and held.state is AnswerState.HELD
            and held.redeemed_by == key.run_id
            and not (taker and taker.terminal)
        )


class FailingTwice(MemoryStore):
    """Fails the runs that were silent when it looked."""

    def fail_stalled(self, before, limit=None):
        silent = self._silent(before, limit)
        time.sleep(BETWEEN)
        failed = []
        for record in silent:
            with self._thread(record.scope, record.thread_id):
                failed.append(self._fail(RunKey.of(record)))
        return failed


def failures(suite: type[Any], store: type[MemoryStore]) -> set[str]:
    """The names of the tests of a suite that a store fails."""

    class Tests(suite, SimpleTestCase):
        def make_store(self, **options: Any) -> MemoryStore:
            return store(**options)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    return {
        test.id().rpartition(".")[2].partition(" ")[0]
        for test, _ in (*result.failures, *result.errors)
    }


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (Merging, "test_run_ids_that_look_alike_are_two"),
        (Overwriting, "test_two_ends_of_one_copy_are_one_outcome"),
        (Hoarding, "test_a_run_that_ends_gives_back_what_it_holds"),
        (Permissive, "test_an_answer_is_settled_once"),
        (Unscoped, "test_a_tenant_sees_nothing_of_another_and_changes_nothing"),
        (Undying, "test_a_run_that_has_ended_settles_nothing_even_if_it_is_said_to_hold_it"),
        (Punctual, "test_an_answer_that_was_given_in_time_is_acted_on_after_the_deadline"),
        (ByCreation, "test_under_a_clock_that_goes_back_the_order_is_that_of_the_reservations"),
        (Rounding, "test_every_moment_keeps_its_microseconds"),
        (Folding, "test_an_interrupt_is_found_by_its_very_id"),
        (Hasty, "test_questions_of_two_runs_are_abandoned_together_or_not_at_all"),
        (Unasked, "test_the_open_questions_of_an_interrupted_run_are_abandoned"),
    ],
)
def test_the_suite_finds_a_faulty_store(store, test):
    assert test in failures(RunStoreConformance, store)


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (Unlocked, "test_the_first_of_different_answers_wins"),
        (Unlocked, "test_one_answer_is_held_by_one_run"),
        (Unlocked, "test_a_batch_of_answers_goes_to_one_run"),
        (Unlocked, "test_different_ends_of_one_copy_are_one_end"),
        (ClaimingTwice, "test_an_identity_is_claimed_by_one"),
        (SettlingTwice, "test_the_permission_to_act_is_given_once"),
        (FailingTwice, "test_each_stalled_run_is_failed_by_one"),
    ],
)
def test_a_race_finds_a_faulty_store(store, test):
    assert test in failures(RunStoreRaces, store)


@pytest.mark.parametrize("store", [ClaimingTwice, SettlingTwice, FailingTwice])
def test_what_only_threads_find_is_found_by_no_other_test(store):
    assert failures(RunStoreConformance, store) == set()
