"""Runs: reserved once, found, saved, watched, and in the end deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from solid_runs.ag_ui.answers import Answer, parse_answers
from solid_runs.ag_ui.exceptions import (
    InterruptsPendingError,
    RunConflictError,
    StreamError,
    ThreadBusyError,
)
from solid_runs.ag_ui.reconciling import reconcile
from solid_runs.ag_ui.records import (
    UNSET,
    Admission,
    CancelRequest,
    Reservation,
    RunKey,
    RunRecord,
    Status,
)
from solid_runs.ag_ui.scopes import identifier
from solid_runs.ag_ui.stores.answering import AnswerMethods
from solid_runs.ag_ui.stores.steps import Labels, Policy, Since, policy_of, run_key, thread_key

STALLED: Final = {"message": "The run stopped responding.", "code": "stalled"}


class RunMethods(AnswerMethods):
    def reserve(
        self,
        scope: Any,
        thread_id: str,
        run_id: str,
        digest: str,
        *,
        policy: Policy | None = None,
        trace_id: str | None = None,
        parent_run_id: str | None = None,
    ) -> Reservation:
        """Claim an identity once.

        The same digest again is attached to what is stored, whatever became of it. RunConflictError
        for another digest. ThreadBusyError when the policy is ``reject`` and another run of the
        thread is active; one whose owner is gone is failed and does not count. Neither writes.
        """
        fresh = self._fresh(run_key(scope, thread_id, run_id), digest)
        labels = _labels(trace_id, parent_run_id)
        if policy_of(policy or self.policy) == "allow":
            return _reservation(self._claim(fresh, labels), fresh)
        with self._thread(fresh.scope, fresh.thread_id):
            stored = self._read(RunKey.of(fresh))
            if stored is None:
                self._refuse_if_busy(fresh)
                stored = self._claim(fresh, labels)
            return _reservation(stored, fresh)

    def admit(
        self,
        scope: Any,
        thread_id: str,
        run_id: str,
        digest: str,
        entries: Iterable[Answer | Mapping[str, Any]] = (),
        *,
        by: str | None = None,
        offer: bool = True,
        policy: Policy | None = None,
        trace_id: str | None = None,
        parent_run_id: str | None = None,
    ) -> Admission:
        """Reserve a run and give it its answers, in one transaction: what an endpoint does.

        ``entries``: the answers that the request brings, as for resume(). Without any, a thread
        whose latest interrupted run has open interrupts gets them offered again, or
        InterruptsPendingError if ``offer`` is false. If all of these have expired they are
        abandoned, and if none is open the run takes those whose answer is free. Whatever is
        refused leaves no row and changes none; the errors are those of reserve() and resume().
        """
        key, policy = run_key(scope, thread_id, run_id), policy_of(policy or self.policy)
        labels, answers = _labels(trace_id, parent_run_id), parse_answers(entries)
        with self._thread(key.scope, key.thread_id):
            fresh = self._fresh(key, digest)
            now = fresh.created_at
            stored = self._read(key)
            if stored is not None:
                return Admission(_reservation(stored, fresh).record, new=False)
            if policy == "reject":
                self._refuse_if_busy(fresh)
            asking = self._newest(key.scope, key.thread_id, Status.INTERRUPTED)
            if asking is not None and not answers:
                answerable = asking.answerable_interrupts(now)
                if answerable and offer:
                    return Admission(asking, new=False, offered=True)
                if answerable:
                    raise InterruptsPendingError(thread_id, [one.id for one in answerable])
            # Before the answers, so that a store with foreign keys could have one on the taker.
            taken = _reservation(self._claim(fresh, labels), fresh)
            if not taken.new:  # by a reserve() that takes no lock
                return Admission(taken.record, new=False)
            if answers:
                redeemed = self._resume(asking, key, answers, now, by)
            else:
                redeemed = self._take_over(asking, key, now)
            return Admission(taken.record, new=True, answers=redeemed)

    # Finding

    def find(self, scope: Any, thread_id: str, run_id: str) -> RunRecord | None:
        return self._read(run_key(scope, thread_id, run_id))

    def status(self, scope: Any, thread_id: str, run_id: str) -> Status | None:
        """What find() would say of the status, without the rest: for those who wait for the end."""
        return self._status(run_key(scope, thread_id, run_id))

    def latest_run(self, scope: Any, thread_id: str) -> RunRecord | None:
        """The run of the thread that was reserved last, whatever became of it."""
        return self._newest(*thread_key(scope, thread_id), None)

    def latest_interrupted(self, scope: Any, thread_id: str) -> RunRecord | None:
        """The last run that ended with questions: only these may still be answered."""
        return self._newest(*thread_key(scope, thread_id), Status.INTERRUPTED)

    # Writing

    def save(self, record: RunRecord) -> RunRecord:
        """Store a record and return what is stored; a run never reserved is inserted.

        StreamError for a stale copy, which would move an ended run to another status, lower the
        sequence, or take back an answer. A run that ends gives back the answers that it holds and
        has not acted on, in the same transaction.
        """
        with self._thread(record.scope, record.thread_id):
            stored = self._read(RunKey.of(record))
            kept = record if stored is None else reconcile(stored, record)
            self._store(stored, kept)
            return kept

    def heartbeat(
        self, record: RunRecord, now: datetime | None = None, *, snapshot: Any = UNSET
    ) -> bool:
        """Say that the owner is alive, and how far it is; return whether it shall stop.

        ``snapshot``: the state that replaces the stored one, if it is given. StreamError when the
        run has ended, was never reserved, or is further than this copy: somebody else has it.
        """
        key = RunKey.of(record)
        if snapshot is not UNSET:
            snapshot = replace(record, snapshot=snapshot).snapshot
        asked = self._beat(key, record.sequence, self._moment(now), snapshot)
        if asked is None:
            stored = self._read(key)
            if stored is None:
                raise StreamError(f"Run {key.run_id!r} was never reserved, or was pruned since.")
            raise StreamError(
                f"Run {key.run_id!r} goes on without this copy of it: it is {stored.status} at "
                f"event {stored.sequence}, this copy at {record.sequence}."
            )
        return asked

    def request_cancel(
        self, scope: Any, thread_id: str, run_id: str, *, by: str | None = None
    ) -> CancelRequest | None:
        """Ask for the end of a run; None when there is no such run.

        Ends at once a run that was not started, or whose owner has been silent for too long; a
        running owner sees the request at its next heartbeat. An interrupted run stays so, and its
        open interrupts are abandoned; answers that were given stay.
        """
        key = run_key(scope, thread_id, run_id)
        if self._status(key) is None:  # and no lock for what nobody has heard of
            return None
        with self._thread(key.scope, key.thread_id):
            stored, now = self._read(key), self.now()
            if stored is None:
                return None
            if stored.status is Status.STARTED and not self._is_silent(key, self.stall_after):
                self._ask_to_cancel(key, now)
                return CancelRequest(stored, ended=False)
            if not stored.terminal:
                kept = stored.finish(Status.CANCELLED, now)
                self._store(stored, kept)
            else:
                kept = self._change(
                    stored, lambda one: one.abandon(now, by) if one.pending else one, now
                )
            return CancelRequest(kept, ended=True)

    # Housekeeping

    def stalled(self, before: Since, limit: int | None = None) -> list[RunRecord]:
        """Runs that neither ended nor wait for a person, silent since, the longest first."""
        return self._silent(before, limit)

    def fail_stalled(self, before: Since, limit: int | None = None) -> list[RunRecord]:
        """Fail these with the code ``stalled`` and free what they hold; return those failed."""
        failed = []
        for record in self._silent(before, limit):
            key = RunKey.of(record)
            with self._thread(key.scope, key.thread_id):
                if self._is_silent(key, before):
                    failed.append(self._fail(key))
        return failed

    def prune(self, before: Since, *, batch_size: int = 1000) -> int:
        """Delete ended runs that were last written before then; return how many.

        Never one with an answer that is open, held or free, nor a thread's latest run or latest
        interrupted one. An id that was pruned is new when it is presented again.
        """
        return self._prune(before, batch_size)

    # Within _thread()

    def _fresh(self, key: RunKey, digest: str) -> RunRecord:
        return RunRecord(**key._asdict(), digest=digest, created_at=self.now())

    def _refuse_if_busy(self, fresh: RunRecord) -> None:
        for active in self._active(fresh.scope, fresh.thread_id):
            key = RunKey.of(active)
            if not self._is_silent(key, self.stall_after):
                raise ThreadBusyError(fresh.thread_id, active.run_id)
            self._fail(key)

    def _fail(self, key: RunKey) -> RunRecord:
        stored = self._read(key)
        assert stored is not None  # noqa: S101  # it is locked, and silent
        kept = stored.finish(Status.FAILED, self.now(), STALLED)
        self._store(stored, kept)
        return kept


def _labels(trace_id: str | None, parent_run_id: str | None) -> Labels:
    given = {"trace_id": trace_id, "parent_run_id": parent_run_id}
    return {
        name: None if value is None else identifier(name, value) for name, value in given.items()
    }


def _reservation(stored: RunRecord | None, fresh: RunRecord) -> Reservation:
    if stored is None:
        return Reservation(fresh, new=True)
    if stored.digest != fresh.digest:
        raise RunConflictError(fresh.thread_id, fresh.run_id)
    return Reservation(stored, new=False)
