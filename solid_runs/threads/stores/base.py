"""What a store of the runs of threads is, and the base class that makes one of a few steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from solid_runs.threads import values
from solid_runs.threads.claims import Claim, Refusal
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.records import TERMINAL, RunRecord, Status, checked_patch, new_record
from solid_runs.threads.signals import run_ended
from solid_runs.threads.stores.guards import Guard, allows
from solid_runs.threads.stores.steps import StorageSteps
from solid_runs.threads.values import UNSET, Unset
from solid_runs.twins import twin

STALL_AFTER_MS = 60_000


@runtime_checkable
class RunStore(Protocol):
    """The methods that every store has: reconnecting is made of them, so none has a stand-in.

    A store without a lifecycle of runs is left out as a whole. What else BaseRunStore has is
    optional: callers ask with hasattr(), and a store that cannot do it omits it. A store is
    whatever passes ``solid_runs.testing.threads``.
    """

    def create_or_resume(
        self,
        run_id: str,
        thread_id: str,
        started_at: int,
        status: str | None = None,
        parent_run_id: str | None = None,
        subagent_run_id: str | None = None,
        name: str | None = None,
    ) -> RunRecord: ...

    def update(self, run_id: str, patch: Mapping[str, Any]) -> None: ...

    def get(self, run_id: str) -> RunRecord | None: ...

    def find_active_run(self, thread_id: str) -> RunRecord | None: ...


class Creation(NamedTuple):
    """What became of a run that was to be created: ``new``, or there already."""

    record: RunRecord
    new: bool


class BaseRunStore(StorageSteps):
    """A store over the steps of StorageSteps, which a subclass provides.

    It is bound to one scope, whose runs are all that it sees. Every method refuses a value that no
    record holds with InvalidRecord, which names the field, before anything is written. Values are
    copied in and out. Each method has a twin for async code, ``aget()`` and so on.
    """

    # Required of any store

    def create_or_resume(
        self,
        run_id: str,
        thread_id: str,
        started_at: int,
        status: str | None = None,
        parent_run_id: str | None = None,
        subagent_run_id: str | None = None,
        name: str | None = None,
        *,
        trace_id: str | None = None,
    ) -> RunRecord:
        """Create a run, running unless told otherwise, or return the one that is there.

        That one is returned as it is stored and stays so, whatever is passed. ``trace_id`` joins
        the row to others of the same trace; it is no part of the record.
        """
        return self.create(
            run_id=run_id,
            thread_id=thread_id,
            started_at=started_at,
            status=status,
            parent_run_id=parent_run_id,
            subagent_run_id=subagent_run_id,
            name=name,
            trace_id=trace_id,
        ).record

    def create(self, /, *, trace_id: str | None = None, **given: Any) -> Creation:
        """As create_or_resume(), telling whether the run is new."""
        record = new_record(**given)
        trace_id = None if trace_id is None else values.identifier("trace_id", trace_id)
        stored = self._insert(record, trace_id)
        return Creation(record, new=True) if stored is None else Creation(stored, new=False)

    def update(self, run_id: str, patch: Mapping[str, Any]) -> None:
        """Write what the patch names; None clears a field, and what is absent stays as it is.

        An unknown run is left unknown. Any status may follow any other: update_if() and claims
        are there for writers that may come too late.
        """
        self._update(run_id, patch, Guard())

    def get(self, run_id: str) -> RunRecord | None:
        return self._read(values.identifier("run_id", run_id))

    def find_active_run(self, thread_id: str) -> RunRecord | None:
        """The running run of the thread that started last; of those of one moment, the first.

        Being detached, or asked to stop, does not matter; an interrupted run is not running.
        """
        return self._active(values.identifier("thread_id", thread_id))

    # Optional

    def update_if(
        self,
        run_id: str,
        patch: Mapping[str, Any],
        *,
        status: str | Collection[str] | None = None,
        epoch: int | Unset | None = UNSET,
    ) -> bool:
        """Update a run that is as expected, judged as it is written; whether it was.

        ``status``: its status, or several that it may have. ``epoch``: its driver_epoch, None for
        a run that was never claimed.
        """
        return self._update(run_id, patch, Guard(statuses=_statuses(status), epoch=_epoch(epoch)))

    def list_by_thread(self, thread_id: str) -> list[RunRecord]:
        """All runs of a thread in the order of their start, those of one moment as inserted."""
        return self._of_thread(values.identifier("thread_id", thread_id))

    def list_by_parent_run(self, parent_run_id: str) -> list[RunRecord]:
        """The runs that a run has started, in the same order."""
        return self._children(values.identifier("parent_run_id", parent_run_id))

    def list_reclaimable(
        self, now: int, ttl_ms: int, *, limit: int | None = None
    ) -> list[RunRecord]:
        """Running runs that nobody has watched for ``ttl_ms`` or longer, the longest first."""
        now = values.milliseconds("now", now)
        return self._reclaimable(now - values.span("ttl_ms", ttl_ms), _limit(limit))

    def list_stalled(
        self, now: int | None = None, ttl_ms: int = STALL_AFTER_MS, *, limit: int | None = None
    ) -> list[RunRecord]:
        """Running, claimed runs without a sign of life for ``ttl_ms``, the longest silent first.

        ``now``: by the clock that signs of life are given with; the storage's own if None. A run
        whose driver never gave one is not among them: it may be well.
        """
        now = self._clock_or(_moment("now", now))
        return self._stalled(now, values.span("ttl_ms", ttl_ms), _limit(limit))

    def claim(
        self,
        run_id: str,
        detached_before: int | None = None,
        *,
        watched: bool | None = None,
        silent_before: int | None = None,
        status: str | Collection[str] | None = None,
        epoch: int | Unset | None = UNSET,
        lease_ms: int | None = None,
        now: int | None = None,
        patch: Mapping[str, Any] | None = None,
    ) -> Claim | Refusal:
        """Take a run over that has not ended; what its driver before writes is fenced from now on.

        The conditions are judged in the step that claims: nobody watches since
        ``detached_before``; whether somebody watches (``watched``); no sign of life since
        ``silent_before``; ``status`` and ``epoch`` as for update_if(). ``lease_ms`` is for reapers:
        none begins while the lease of another lasts. A claim is the first sign of life, at ``now``
        or by the storage's clock. ``patch`` is written in the same step, so that nobody comes
        between. A refusal is false, has a ``reason`` and changed nothing.
        """
        run_id = values.identifier("run_id", run_id)
        now = self._clock_or(_moment("now", now))
        given = checked_patch(patch or {})
        if "driver_epoch" in given:
            raise InvalidRecord("driver_epoch", "A claim gives this itself.")
        guard = Guard(
            ended=False,
            statuses=_statuses(status),
            epoch=_epoch(epoch),
            detached_before=_moment("detached_before", detached_before),
            watched=None if watched is None else values.flag("watched", watched),
            silent_before=_moment("silent_before", silent_before),
            unleased_at=UNSET if lease_ms is None else now,
        )
        lease_ms = None if lease_ms is None else values.span("lease_ms", lease_ms)
        number = self._claim(run_id, guard, now, lease_ms, given)
        if number is None:
            return self._refusal(run_id, guard)
        if given.get("status") in TERMINAL:
            self._announce(run_id, given["status"])
        return Claim(self, run_id, number)

    def update_as_driver(self, run_id: str, epoch: int, patch: Mapping[str, Any]) -> bool:
        """What update() of the claim with this epoch does."""
        guard = Guard(epoch=values.epoch("epoch", epoch))
        status = checked_patch(patch).get("status")
        if status is None:
            guard = Guard()
        elif status not in TERMINAL:
            guard = Guard(ended=False)
        return self._update(run_id, patch, guard)

    def touch(self, run_id: str, epoch: int, now: int | None = None) -> bool:
        """What touch() of the claim with this epoch does."""
        guard = Guard(ended=False, epoch=values.epoch("epoch", epoch))
        now = self._clock_or(_moment("now", now))
        return self._beat(values.identifier("run_id", run_id), guard, now)

    def request_cancel(self, run_id: str) -> None:
        """Note that somebody wants the run to stop. Its driver ends it: this is no status."""
        self.update(run_id, {"cancel_requested": True})

    def was_cancel_requested(self, run_id: str) -> bool:
        record = self.get(run_id)
        return record is not None and record.cancel_requested is True

    def prune(self, before: int, *, batch_size: int = 1000) -> int:
        """Delete ended runs that finished before then, and what they asked; return how many.

        One that has no finished_at counts by its start. Never the latest run of a thread. An id
        that was pruned is new when it is presented again.
        """
        size = values.whole("batch_size", batch_size, 1, values.LARGEST, "a number above 0")
        return self._prune(values.milliseconds("before", before), size)

    anow = twin(StorageSteps.now)
    acreate_or_resume = twin(create_or_resume)
    acreate = twin(create)
    aupdate = twin(update)
    aget = twin(get)
    afind_active_run = twin(find_active_run)
    aupdate_if = twin(update_if)
    alist_by_thread = twin(list_by_thread)
    alist_by_parent_run = twin(list_by_parent_run)
    alist_reclaimable = twin(list_reclaimable)
    alist_stalled = twin(list_stalled)
    aclaim = twin(claim)
    aupdate_as_driver = twin(update_as_driver)
    atouch = twin(touch)
    arequest_cancel = twin(request_cancel)
    awas_cancel_requested = twin(was_cancel_requested)
    aprune = twin(prune)

    # Within

    def _update(self, run_id: str, patch: Mapping[str, Any], guard: Guard) -> bool:
        run_id, given = values.identifier("run_id", run_id), checked_patch(patch)
        if not given:
            record = self._read(run_id)
            return record is not None and allows(guard, record)
        status = given.get("status")
        if status not in TERMINAL:
            return self._write(run_id, given, guard)
        if guard.ended is None and self._write(run_id, given, replace(guard, ended=False)):
            self._announce(run_id, Status(status))
            return True
        return guard.allows_ended and self._write(run_id, given, guard)

    def _announce(self, run_id: str, status: Status) -> None:
        self._after_commit(
            lambda: run_ended.send_robust(type(self), store=self, run_id=run_id, status=status)
        )

    def _clock_or(self, now: int | None) -> int | None:
        """A time that was given, else that of the store's clock; None for that of the storage."""
        return self.clock() if now is None and self.clock else now

    def _refusal(self, run_id: str, guard: Guard) -> Refusal:
        record = self._read(run_id)
        if record is None:
            return Refusal("unknown")
        if record.terminal:
            return Refusal("terminal")
        if not isinstance(guard.epoch, Unset) and record.driver_epoch != guard.epoch:
            return Refusal("superseded")
        return Refusal("condition")


def _statuses(status: str | Collection[str] | None) -> frozenset[str] | None:
    if status is None:
        return None
    given = [status] if isinstance(status, str) else status
    return frozenset(values.one_of(Status)("status", one) for one in given)


def _epoch(epoch: int | Unset | None) -> int | Unset | None:
    if epoch is None or isinstance(epoch, Unset):
        return epoch
    return values.epoch("epoch", epoch)


def _moment(field: str, value: int | None) -> int | None:
    return None if value is None else values.milliseconds(field, value)


def _limit(value: int | None) -> int | None:
    return None if value is None else values.whole("limit", value, 0, values.LARGEST, "a number")
