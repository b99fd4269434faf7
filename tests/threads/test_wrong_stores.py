"""Stores that are wrong in one thing, each of which fails a test of the suite."""

from __future__ import annotations

import time
import unittest
from dataclasses import replace
from typing import Any

import pytest
from django.test import SimpleTestCase

from solid_runs.testing.threads import (
    InterruptStoreConformance,
    InterruptStoreRaces,
    RunStoreConformance,
    RunStoreRaces,
)
from solid_runs.threads.claims import Claim
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.interrupt_stores.memory import InterruptRows, MemoryInterruptStore
from solid_runs.threads.interrupts import refuse_all_but_pending
from solid_runs.threads.records import TERMINAL, Status
from solid_runs.threads.stores.guards import Guard
from solid_runs.threads.stores.memory import MemoryRunStore, Rows
from solid_runs.threads.values import UNSET

pytestmark = pytest.mark.once

BETWEEN = 0.002
"""The seconds between a look and an act, in which another thread looks too."""


# Creating


class Reviving(MemoryRunStore):
    """A create on a finished run starts it again."""

    def create_or_resume(self, run_id, *args, **kwargs):
        found = super().create_or_resume(run_id, *args, **kwargs)
        if found.terminal:
            self.update(run_id, {"status": "running"})
        return found


class Moving(MemoryRunStore):
    """A second create takes the run into its thread."""

    def create_or_resume(self, run_id, thread_id, *args, **kwargs):
        found = super().create_or_resume(run_id, thread_id, *args, **kwargs)
        moved = replace(found, thread_id=thread_id)
        self._put(replace(self._row(run_id), record=moved))
        return moved


class Echoing(MemoryRunStore):
    """A second create returns what it was given."""

    def _insert(self, record, trace_id):
        super()._insert(record, trace_id)


class Folding(MemoryRunStore):
    """Takes ids that differ by case for one."""

    def _row(self, run_id):
        return self.rows.by_key.get((self.scope, run_id.lower()))

    def _put(self, row):
        self.rows.by_key[self.scope, row.record.run_id.lower()] = row


class Padding(MemoryRunStore):
    """Takes ids that differ by spaces at the end for one."""

    def _of_thread(self, thread_id):
        rows = [row.record for row in self._all()]
        found = [one for one in rows if one.thread_id.rstrip(" ") == thread_id.rstrip(" ")]
        return sorted(found, key=lambda record: record.started_at)


# Updating


class Keeping(MemoryRunStore):
    """Drops the keys of a patch that are None, instead of clearing."""

    def _write(self, run_id, given, guard):
        kept = {name: value for name, value in given.items() if value is not None}
        return super()._write(run_id, kept, guard)


class Falsy(MemoryRunStore):
    """Stores what is false in Python as absent."""

    def _write(self, run_id, given, guard):
        return super()._write(run_id, {name: value or None for name, value in given.items()}, guard)


class Flagging(MemoryRunStore):
    """Keeps a cancel request that is false as absent."""

    def _write(self, run_id, given, guard):
        given = dict(given)
        if given.get("cancel_requested") is False:
            given["cancel_requested"] = None
        return super()._write(run_id, given, guard)


class Merging(MemoryRunStore):
    """Adds to the usage that is stored."""

    def _write(self, run_id, given, guard):
        stored = self._read(run_id)
        if stored and stored.usage and given.get("usage"):
            given = {**given, "usage": {**stored.usage, **given["usage"]}}
        return super()._write(run_id, given, guard)


class Upserting(MemoryRunStore):
    """An update of an unknown run creates it."""

    def update(self, run_id, patch):
        self.create_or_resume(run_id, "t1", 1)
        super().update(run_id, patch)


class Strict(MemoryRunStore):
    """A run that has ended takes no other status."""

    def _write(self, run_id, given, guard):
        stored = self._read(run_id)
        if stored and stored.terminal:
            given = {name: value for name, value in given.items() if name != "status"}
        return super()._write(run_id, given, guard)


class Dating(MemoryRunStore):
    """Sets the time of the end by itself."""

    def _write(self, run_id, given, guard):
        if given.get("status") in TERMINAL:
            given = {"finished_at": self.now(), **given}
        return super()._write(run_id, given, guard)


class Piecemeal(MemoryRunStore):
    """Writes the keys of a patch one by one, until one is wrong."""

    def update(self, run_id, patch):
        for name, value in patch.items():
            super().update(run_id, {name: value})


class Losing(MemoryRunStore):
    """Refuses an end whose message is too long."""

    def update(self, run_id, patch):
        if len((patch.get("error") or {}).get("message") or "") > 16_000:
            raise InvalidRecord("error.message", "This is too long.")
        super().update(run_id, patch)


class Guessing(MemoryRunStore):
    """Takes a status that it does not know for a failure."""

    def _read(self, run_id):
        found = super()._read(run_id)
        if found and found.status not in tuple(Status):
            return replace(found, status=Status.FAILED)
        return found


class Lazy(MemoryRunStore):
    """Stores the very object that it was given."""

    given: dict[str, Any]

    def update(self, run_id, patch):
        super().update(run_id, patch)
        self.__dict__.setdefault("given", {})[run_id] = patch.get("usage")

    def get(self, run_id):
        found, usage = super().get(run_id), self.__dict__.get("given", {}).get(run_id)
        return replace(found, usage=usage) if found and usage else found


# Finding


class Descending(MemoryRunStore):
    """Lists a thread with the newest first."""

    def list_by_thread(self, thread_id):
        return super().list_by_thread(thread_id)[::-1]


class Alphabetic(MemoryRunStore):
    """Lists runs that started at once by their ids."""

    def _children(self, parent_run_id):
        found = super()._children(parent_run_id)
        return sorted(found, key=lambda record: (record.started_at, record.run_id))


class LastInserted(MemoryRunStore):
    """Of runs that started at once, takes the last for the active one."""

    def _active(self, thread_id):
        running = [one for one in self._of_thread(thread_id) if one.status == Status.RUNNING]
        return running[-1] if running else None


class ByStatus(MemoryRunStore):
    """Takes an interrupted run for an active one."""

    def _active(self, thread_id):
        going_on = [one for one in self._of_thread(thread_id) if not one.terminal]
        return max(going_on, key=lambda record: record.started_at, default=None)


class Watching(MemoryRunStore):
    """A run that nobody watches is not active."""

    def _active(self, thread_id):
        found = super()._active(thread_id)
        return None if found and found.detached_since is not None else found


class Nearby(MemoryRunStore):
    """Lists the children that are in the thread of their parent."""

    def _children(self, parent_run_id):
        found, parent = super()._children(parent_run_id), self._read(parent_run_id)
        return [one for one in found if parent is None or one.thread_id == parent.thread_id]


class Exclusive(MemoryRunStore):
    """``<`` instead of ``<=``."""

    def _reclaimable(self, cutoff, limit):
        return super()._reclaimable(cutoff - 1, limit)


class Stub(MemoryRunStore):
    """A list that is always empty, for the sake of having it."""

    def list_reclaimable(self, now, ttl_ms, *, limit=None):
        return []


class Resting(MemoryRunStore):
    """Lists a run as detached that is interrupted."""

    def _reclaimable(self, cutoff, limit):
        found = [row.record for row in self._all() if not row.record.terminal]
        return [one for one in found if one.detached_since and one.detached_since <= cutoff]


class Unscoped(MemoryRunStore):
    """Forgets the scope in one list."""

    def _children(self, parent_run_id):
        records = [row.record for row in self.rows.by_key.values()]
        found = [record for record in records if record.parent_run_id == parent_run_id]
        return sorted(found, key=lambda record: record.started_at)


class Sweeping(MemoryRunStore):
    """Forgets the scope when it looks for the latest run of a thread."""

    def _prune(self, before, batch_size):
        everyone = list(self.rows.by_key.values())
        mine = self._all

        def latest(row):
            same = [one.record for one in everyone if one.record.thread_id == row.record.thread_id]
            return max(same, key=lambda record: record.started_at).run_id == row.record.run_id

        old = [row for row in mine() if row.record.terminal and not latest(row)]
        for row in old:
            del self.rows.by_key[self.scope, row.record.run_id]
        return len(old)


class Clearing(MemoryRunStore):
    """Prunes the latest run of a thread too."""

    def _prune(self, before, batch_size):
        old = [row.record for row in self._all() if row.record.terminal]
        old = [one for one in old if (one.finished_at or one.started_at) < before]
        for record in old:
            del self.rows.by_key[self.scope, record.run_id]
        return len(old)


class Batching(MemoryRunStore):
    """Prunes one batch and no more."""

    def _prune(self, before, batch_size):
        stored = dict(self.rows.by_key)
        count = super()._prune(before, batch_size)
        gone = [key for key in stored if key not in self.rows.by_key]
        self.rows.by_key |= {key: stored[key] for key in gone[batch_size:]}
        return min(count, batch_size)


# Claims and their fence


class Grasping(MemoryRunStore):
    """Claims a run that has ended."""

    def _claim(self, run_id, guard, *rest):
        return super()._claim(run_id, replace(guard, ended=None), *rest)


class Counting(MemoryRunStore):
    """A claim that is refused counts."""

    def _claim(self, run_id, guard, *rest):
        won = super()._claim(run_id, guard, *rest)
        if won is None:
            super()._claim(run_id, Guard(ended=False), *rest)
        return won


class Constant(MemoryRunStore):
    """Every claim has the first epoch."""

    def _claim(self, run_id, guard, *rest):
        won = super()._claim(run_id, guard, *rest)
        if won is not None:
            self._write(run_id, {"driver_epoch": 1}, Guard())
        return won and 1


class Numbering(MemoryRunStore):
    """Takes a watched run for one that was left at 0."""

    def _allows(self, guard, row):
        record = row.record
        if record.detached_since is None:
            row = replace(row, record=replace(record, detached_since=0))
        return super()._allows(guard, row)


class Returning(MemoryRunStore):
    """A claim says that somebody watches."""

    def _claim(self, run_id, guard, *rest):
        won = super()._claim(run_id, guard, *rest)
        if won is not None:
            self._write(run_id, {"detached_since": None}, Guard())
        return won


class Resuming(MemoryRunStore):
    """A claim sets an interrupted run going."""

    def claim(self, run_id, *args, **kwargs):
        won = super().claim(run_id, *args, **kwargs)
        if won:
            self.update(run_id, {"status": "running"})
        return won


class Unfenced(MemoryRunStore):
    """Everybody who ever claimed a run may end it."""

    def update_as_driver(self, run_id, epoch, patch):
        return self._update(run_id, patch, Guard())


class Rising(MemoryRunStore):
    """Fences those alone whose epoch is smaller than the stored one."""

    def update_as_driver(self, run_id, epoch, patch):
        written = super().update_as_driver(run_id, epoch, patch)
        return written or (self._above(run_id, epoch) and self._update(run_id, patch, Guard()))

    def touch(self, run_id, epoch, now=None):
        beaten = super().touch(run_id, epoch, now)
        return beaten or (self._above(run_id, epoch) and self._beat(run_id, Guard(), now))

    def _above(self, run_id, epoch):
        record = self._read(run_id)
        return record is not None and epoch > (record.driver_epoch or 0)


class Silencing(MemoryRunStore):
    """Nothing of a superseded holder is written."""

    def update_as_driver(self, run_id, epoch, patch):
        record = self.get(run_id)
        if record and record.driver_epoch != epoch:
            return False
        return super().update_as_driver(run_id, epoch, patch)


class HalfFenced(MemoryRunStore):
    """Of a late end the status alone is suppressed."""

    def update_as_driver(self, run_id, epoch, patch):
        if super().update_as_driver(run_id, epoch, patch):
            return True
        rest = {name: value for name, value in patch.items() if name != "status"}
        super().update(run_id, rest)
        return False


class FencingAll(MemoryRunStore):
    """Fences those too who hold no claim."""

    def update(self, run_id, patch):
        super().update(run_id, {} if self._read(run_id).driver_epoch else patch)


class Backdating(MemoryRunStore):
    """A superseded holder brings an ended run back."""

    def update_as_driver(self, run_id, epoch, patch):
        if patch.get("status") in TERMINAL:
            return super().update_as_driver(run_id, epoch, patch)
        return self._update(run_id, patch, Guard())


class Breathless(MemoryRunStore):
    """A claim is no sign of life."""

    def _claim(self, run_id, guard, *rest):
        before = self._row(run_id)
        won = super()._claim(run_id, guard, *rest)
        if won is not None:
            self._put(replace(self._row(run_id), heartbeat_at=before.heartbeat_at))
        return won


class Ghost(MemoryRunStore):
    """A superseded holder gives signs of life."""

    def _beat(self, run_id, guard, now):
        return super()._beat(run_id, replace(guard, epoch=UNSET), now)


class Attending(MemoryRunStore):
    """A sign of life says that somebody watches."""

    def _beat(self, run_id, guard, now):
        beaten = super()._beat(run_id, guard, now)
        return beaten and self._write(run_id, {"detached_since": None}, Guard())


class Suspecting(MemoryRunStore):
    """Takes a driver that never gave a sign of life for a silent one."""

    def _claim(self, run_id, guard, *rest):
        row = self._row(run_id)
        if row and row.heartbeat_at is None:
            guard = replace(guard, silent_before=None)
        return super()._claim(run_id, guard, *rest)


class Clinging(MemoryRunStore):
    """The lease of a reaper outlasts the claim of a driver."""

    def _claim(self, run_id, guard, now, lease_ms, given):
        before = self._row(run_id)
        won = super()._claim(run_id, guard, now, lease_ms, given)
        if won is not None and lease_ms is None:
            self._put(replace(self._row(run_id), leased_until=before.leased_until))
        return won


class Indifferent(MemoryRunStore):
    """Claims a run whether somebody watches it or not."""

    def _claim(self, run_id, guard, *rest):
        return super()._claim(run_id, replace(guard, watched=None), *rest)


class Unclaimed(MemoryRunStore):
    """Takes a run for stalled that nobody holds any more."""

    def _longest(self, since, limit, guard):
        if since != "heartbeat_at":
            return super()._longest(since, limit, guard)
        guard = replace(guard, statuses={Status.RUNNING})
        rows = [row for row in self._all() if self._allows(guard, row)]
        return [row.record for row in sorted(rows, key=lambda row: row.heartbeat_at)][:limit]


class Watchful(MemoryRunStore):
    """Takes a run for stalled that waits for a person."""

    def _longest(self, since, limit, guard):
        if since != "heartbeat_at":
            return super()._longest(since, limit, guard)
        rows = [row for row in self._all() if not row.record.terminal and row.heartbeat_at]
        return [row.record for row in rows if self._allows(guard, row)]


# Conditions, cancel, signals


class Optional(MemoryRunStore):
    """An expected epoch of None is no expectation."""

    def update_if(self, run_id, patch, *, status=None, epoch=UNSET):
        epoch = UNSET if epoch is None else epoch
        return super().update_if(run_id, patch, status=status, epoch=epoch)


class Changing(MemoryRunStore):
    """Counts the rows that changed, as MySQL does by itself."""

    def update_if(self, run_id, patch, **expected):
        before = self._read(run_id)
        return super().update_if(run_id, patch, **expected) and self._read(run_id) != before


class Stopping(MemoryRunStore):
    """A cancel request ends the run."""

    def request_cancel(self, run_id):
        self.update(run_id, {"cancel_requested": True, "status": "aborted"})


class Mentioning(MemoryRunStore):
    """A cancel request that is withdrawn is one."""

    def was_cancel_requested(self, run_id):
        record = self.get(run_id)
        return record is not None and record.cancel_requested is not None


class Repeating(MemoryRunStore):
    """Tells of every status that is terminal."""

    def update(self, run_id, patch):
        super().update(run_id, patch)
        if patch.get("status") in TERMINAL and self._read(run_id):
            self._announce(run_id, Status(patch["status"]))


class Mute(MemoryRunStore):
    """Tells of no end that a condition allowed."""

    def update_if(self, run_id, patch, **expected):
        announce, self._announce = self._announce, lambda *args: None
        try:
            return super().update_if(run_id, patch, **expected)
        finally:
            self._announce = announce


class Discreet(MemoryRunStore):
    """Tells of no end that a claim writes."""

    def claim(self, run_id, *args, **kwargs):
        announce, self._announce = self._announce, lambda *args: None
        try:
            return super().claim(run_id, *args, **kwargs)
        finally:
            self._announce = announce


# Only threads find these


class CreatingTwice(MemoryRunStore):
    """Looks for a run, and inserts it if there was none."""

    def _insert(self, record, trace_id):
        stored = self._read(record.run_id)
        time.sleep(BETWEEN)
        if stored is None:
            self.rows.by_key.pop((self.scope, record.run_id), None)
            super()._insert(record, trace_id)
        return stored


class Rereading(MemoryRunStore):
    """Writes the epoch, and reads it again afterwards."""

    def _claim(self, run_id, guard, *rest):
        if super()._claim(run_id, guard, *rest) is None:
            return None
        time.sleep(BETWEEN)
        return self._read(run_id).driver_epoch


class Incrementing(MemoryRunStore):
    """Reads the epoch, and writes the one after it."""

    def claim(self, run_id, *args, **kwargs):
        record = self.get(run_id)
        if args or kwargs or record is None or record.terminal:
            return super().claim(run_id, *args, **kwargs)
        time.sleep(BETWEEN)
        epoch = (record.driver_epoch or 0) + 1
        self._beat(run_id, Guard(), None)
        self.update(run_id, {"driver_epoch": epoch})
        return Claim(self, run_id, epoch)


class Checking(MemoryRunStore):
    """Looks whether a run is as expected, and writes to it."""

    def _write(self, run_id, given, guard):
        row = self._allowed(run_id, guard)
        time.sleep(BETWEEN)
        return row is not None and super()._write(run_id, given, Guard())


# Interrupts


class Reopening(MemoryInterruptStore):
    """A create asks a decided question again."""

    def _insert(self, record):
        self.rows.by_key[self.scope, record.interrupt_id] = record


class Once(MemoryInterruptStore):
    """The first answer stands."""

    def _decide(self, decision):
        record = self._read(decision.interrupt_id)
        if record and record.pending:
            super()._decide(decision)


class Nullable(MemoryInterruptStore):
    """Takes an answer of null for none."""

    def resolve(self, interrupt_id, response=UNSET):
        super().resolve(interrupt_id, UNSET if response is None else response)


class Remembering(MemoryInterruptStore):
    """A cancel keeps the response before it."""

    def _decide(self, decision):
        before = self._read(decision.interrupt_id)
        if decision.status == "cancelled" and before:
            decision = replace(decision, response=before.response)
        super()._decide(decision)


class Newest(MemoryInterruptStore):
    """Lists the newest first."""

    def _listed(self, name, value):
        return super()._listed(name, value)[::-1]


class Undecided(MemoryInterruptStore):
    """Takes all that have no response for pending."""

    def list_pending(self, thread_id):
        return [one for one in self.list_by_thread(thread_id) if one.response is UNSET]


class Partial(MemoryInterruptStore):
    """Decides a batch until one of it cannot be decided."""

    def _commit(self, batch):
        for decision in batch:
            super()._commit([decision])


class Overwriting(MemoryInterruptStore):
    """Decides a batch over earlier answers."""

    def _commit(self, batch):
        for decision in batch:
            self._decide(decision)


class Spanning(MemoryInterruptStore):
    """Lists the interrupts of all scopes."""

    def _listed(self, name, value):
        found = [one for one in self.rows.by_key.values() if getattr(one, name) == value]
        return sorted(found, key=lambda record: record.requested_at)


class Unlocked(MemoryInterruptStore):
    """Looks whether all of a batch are pending, and decides them."""

    def _commit(self, batch):
        found = {one.interrupt_id: self._read(one.interrupt_id) for one in batch}
        refuse_all_but_pending(batch, {key: one.status for key, one in found.items() if one})
        time.sleep(BETWEEN)
        for decision in batch:
            self._decide(decision)


def make(store: type[Any], suite: type[Any]) -> type[unittest.TestCase]:
    class Tests(suite, SimpleTestCase):
        def make_store(self, **options: Any) -> Any:
            kind = Rows if issubclass(store, MemoryRunStore) else InterruptRows
            self.rows = getattr(self, "rows", None) or kind()
            return store(rows=self.rows, **options)

        def store_status(self, run_id: str, status: str) -> None:
            MemoryRunStore._write(self.store.store, run_id, {"status": status}, Guard())

    return Tests


def outcome(tests: unittest.TestSuite) -> set[str]:
    """The names of the tests that failed."""
    result = unittest.TestResult()
    tests.run(result)
    assert result.testsRun
    failed = [test for test, _ in (*result.failures, *result.errors)]
    return {getattr(test, "test_case", test)._testMethodName for test in failed}


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (Reviving, "test_a_create_on_a_finished_run_revives_nothing"),
        (Moving, "test_a_second_create_stores_nothing"),
        (Echoing, "test_a_second_create_returns_the_first"),
        (Folding, "test_run_ids_that_look_alike_are_two_runs"),
        (Padding, "test_threads_that_look_alike_are_two"),
        (Keeping, "test_none_clears_a_field"),
        (Falsy, "test_values_that_are_false_are_not_absent"),
        (Flagging, "test_a_cancel_request_that_is_false_reads_back_false"),
        (Merging, "test_usage_is_replaced_whole"),
        (Upserting, "test_updating_a_missing_run_creates_none"),
        (Strict, "test_any_status_may_follow_any_status"),
        (Dating, "test_an_end_does_not_set_the_time_of_the_end"),
        (Piecemeal, "test_an_error_without_a_message_is_refused"),
        (Losing, "test_an_overlong_message_is_cut_and_the_end_saved"),
        (Guessing, "test_an_unknown_status_is_reported_as_it_is"),
        (Lazy, "test_usage_that_is_changed_after_it_was_given_is_stored_as_it_was"),
        (Descending, "test_a_thread_is_listed_ascending_although_inserted_in_reverse"),
        (Alphabetic, "test_children_that_started_at_once_are_listed_as_inserted"),
        (LastInserted, "test_of_runs_that_started_at_once_the_first_is_active"),
        (ByStatus, "test_an_interrupted_run_is_not_active"),
        (Watching, "test_a_detached_run_is_active"),
        (Nearby, "test_children_in_another_thread_than_their_parents_are_listed"),
        (Exclusive, "test_a_run_that_was_left_exactly_at_the_cutoff_is_reclaimable"),
        (Stub, "test_a_run_that_was_left_before_the_cutoff_is_reclaimable"),
        (Resting, "test_an_interrupted_run_is_not_reclaimable"),
        (Unscoped, "test_children_are_listed_without_those_of_another_scope"),
        (Sweeping, "test_a_later_run_of_another_scope_is_not_the_latest_of_an_equal_thread"),
        (Clearing, "test_the_latest_run_of_a_thread_is_kept_however_old"),
        (Batching, "test_batches_of_one_prune_as_many_as_any_other"),
        (Grasping, "test_a_finished_run_is_refused_as_terminal"),
        (Counting, "test_a_claim_that_is_refused_leaves_the_epoch"),
        (Constant, "test_epochs_rise_with_each_claim"),
        (Numbering, "test_t5_a_viewer_who_comes_back_between_listing_and_claim_keeps_the_run"),
        (Returning, "test_t6_an_agent_that_finished_while_nobody_watched_has_completed"),
        (Resuming, "test_an_interrupted_run_can_be_claimed"),
        (Unfenced, "test_t4_a_worker_that_comes_back_late_ends_nothing"),
        (Rising, "test_a_holder_is_fenced_by_a_lower_epoch_too"),
        (Rising, "test_a_holder_ends_no_run_whose_epoch_was_cleared"),
        (Rising, "test_who_held_a_run_that_was_pruned_does_not_end_the_one_after_it"),
        (Rising, "test_a_touch_with_an_epoch_that_was_never_reached_is_not_held"),
        (Rising, "test_a_touch_of_a_run_whose_epoch_was_cleared_is_not_held"),
        (Silencing, "test_the_usage_of_a_superseded_holder_is_written"),
        (HalfFenced, "test_nothing_of_a_patch_with_a_late_end_is_written"),
        (FencingAll, "test_who_holds_no_claim_is_not_fenced"),
        (Backdating, "test_a_superseded_holder_brings_no_ended_run_back"),
        (Breathless, "test_t8_a_worker_that_was_killed_while_somebody_watched_is_found"),
        (Ghost, "test_a_touch_of_a_superseded_holder_is_no_sign_of_life"),
        (Attending, "test_a_touch_leaves_every_field_as_it_is"),
        (Suspecting, "test_a_run_that_never_gave_a_sign_of_life_is_not_claimed_as_silent"),
        (Clinging, "test_a_claim_of_a_driver_ends_the_lease_of_a_reaper"),
        (Indifferent, "test_a_run_that_nobody_watches_is_refused_as_watched"),
        (Unclaimed, "test_a_run_whose_epoch_was_cleared_is_not_stalled"),
        (Watchful, "test_an_interrupted_run_is_not_stalled"),
        (Optional, "test_a_run_at_another_epoch_is_left"),
        (Changing, "test_a_run_that_is_as_expected_and_as_written_counts_as_updated"),
        (Stopping, "test_a_cancel_request_writes_nothing_else"),
        (Mentioning, "test_a_cancel_was_requested_only_where_true_is_stored"),
        (Repeating, "test_an_end_is_told_once"),
        (Mute, "test_the_end_of_a_run_that_was_as_expected_is_told"),
        (Discreet, "test_an_end_that_a_claim_writes_is_told_once"),
    ],
)
def test_the_suite_finds_a_faulty_store(store, test):
    tests = make(store, RunStoreConformance)
    assert outcome(unittest.TestSuite([tests(test)])) == {test}


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (CreatingTwice, "test_creates_at_once_make_one_record"),
        (Rereading, "test_claims_at_once_get_different_epochs"),
        (Incrementing, "test_claims_at_once_get_different_epochs"),
        (Checking, "test_of_updates_that_expect_one_status_one_is_written"),
        (Checking, "test_of_updates_that_expect_one_epoch_one_is_written"),
    ],
)
def test_a_race_finds_a_faulty_store(store, test):
    tests = make(store, RunStoreRaces)
    assert outcome(unittest.TestSuite([tests(test)])) == {test}


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (Reopening, "test_a_create_opens_no_decided_interrupt_again"),
        (Once, "test_a_later_answer_overwrites_an_earlier_one"),
        (Nullable, "test_a_response_of_null_is_a_response"),
        (Remembering, "test_a_cancel_overwrites_an_answer"),
        (Newest, "test_each_list_ascends_although_inserted_in_reverse"),
        (Newest, "test_those_of_one_moment_are_listed_as_inserted"),
        (Undecided, "test_decided_ones_are_listed_but_where_pending_ones_are_asked_for"),
        (Partial, "test_a_batch_that_names_an_unknown_one_is_rejected_whole"),
        (Overwriting, "test_a_batch_that_names_a_resolved_one_is_rejected_whole"),
        (Spanning, "test_no_interrupt_of_another_scope_is_found_or_listed"),
    ],
)
def test_the_suite_finds_a_faulty_store_of_interrupts(store, test):
    tests = make(store, InterruptStoreConformance)
    assert outcome(unittest.TestSuite([tests(test)])) == {test}


def test_a_race_finds_a_faulty_store_of_interrupts():
    test = "test_of_batches_at_once_that_share_one_interrupt_one_is_taken"
    assert outcome(unittest.TestSuite([make(Unlocked, InterruptStoreRaces)(test)])) == {test}


@pytest.mark.parametrize("store", [CreatingTwice, Rereading, Checking])
def test_what_only_threads_find_is_found_by_no_other_test(store, monkeypatch):
    monkeypatch.setattr(f"{__name__}.BETWEEN", 0)
    tests = make(store, RunStoreConformance)
    assert outcome(unittest.defaultTestLoader.loadTestsFromTestCase(tests)) == set()
