"""The steps of storage that the methods of a store are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from django.utils import timezone
from django.utils.module_loading import import_string

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.records import RunKey, RunRecord, Status
from solid_runs.ag_ui.scopes import identifier, scope_key
from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted
from solid_runs.ag_ui.values import aware
from solid_runs.conf import setting
from solid_runs.times import aware as as_settings_say

Policy: TypeAlias = Literal["allow", "reject"]
Since: TypeAlias = datetime | timedelta
"""A moment, or a time ago, by the clock that signs of life are written with."""
Labels: TypeAlias = Mapping[str, str | None]
"""``trace_id`` and ``parent_run_id``: what a row carries beside the record."""


class StorageSteps(ABC):
    """``clock``: gives the time of records; the setting ``CLOCK`` if None, else Django's. Signs of
    life follow it too if it is given here, else the storage's own clock. ``policy``: whether a run
    may be reserved beside an active one of its thread. ``stall_after``: how long an owner may be
    silent before its run counts as dead; the setting ``AG_UI_STALL_AFTER``, in seconds, if None.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        policy: Policy = "allow",
        stall_after: timedelta | None = None,
    ) -> None:
        self.clock, self.policy, self._stall_after = clock, policy_of(policy), stall_after

    def now(self) -> datetime:
        """The time by the store's clock, aware."""
        clock = self.clock or setting("CLOCK") or timezone.now
        if isinstance(clock, str):
            clock = import_string(clock)
        return aware(as_settings_say(clock()))

    @property
    def stall_after(self) -> timedelta:
        if self._stall_after is not None:
            return self._stall_after
        return timedelta(seconds=setting("AG_UI_STALL_AFTER"))

    # What a subclass provides. Keys are clean already.

    @abstractmethod
    def _thread(self, scope: str, thread_id: str) -> AbstractContextManager[None]:
        """A transaction that nobody else on this thread is in; what it did is undone by an error.

        Within it each of the steps below sees the last that was written.
        """

    @abstractmethod
    def _claim(self, fresh: RunRecord, labels: Labels) -> RunRecord | None:
        """Insert a run, atomically, unless its identity is taken; then what is stored there."""

    @abstractmethod
    def _read(self, key: RunKey) -> RunRecord | None: ...

    def _status(self, key: RunKey) -> Status | None:
        """That of a run; a storage may know it for less than the record costs."""
        record = self._read(key)
        return None if record is None else record.status

    @abstractmethod
    def _newest(self, scope: str, thread_id: str, status: Status | None) -> RunRecord | None:
        """The run of the thread that was inserted last, of those with the status if one is given.

        By the clock of the storage, not by ``created_at``: those of two workers may disagree.
        """

    @abstractmethod
    def _asking(self, scope: str, thread_id: str, interrupt_id: str) -> RunRecord | None:
        """The newest run of the thread that has asked this."""

    @abstractmethod
    def _unsettled(self, scope: str, thread_id: str) -> list[RunRecord]:
        """The runs of the thread with an interrupt that is not settled."""

    @abstractmethod
    def _active(self, scope: str, thread_id: str) -> list[RunRecord]:
        """The runs of the thread that have not ended, the newest first."""

    @abstractmethod
    def _write(self, stored: RunRecord | None, given: RunRecord) -> None:
        """Store what differs, as a sign of life; all of it if nothing was stored."""

    @abstractmethod
    def _beat(self, key: RunKey, sequence: int, now: datetime, snapshot: Any) -> bool | None:
        """Write a sign of life, the sequence and a state that is set; whether a cancel was asked.

        None, and nothing written, unless the run is active and its sequence no higher. Atomic
        outside of _thread().
        """

    @abstractmethod
    def _ask_to_cancel(self, key: RunKey, now: datetime) -> None:
        """Note that a cancel was requested, unless it was before. No sign of life."""

    @abstractmethod
    def _settle(self, key: RunKey, interrupt_id: str, now: datetime) -> bool:
        """Settle what the run ``key`` holds and has not settled. Atomic outside of _thread()."""

    @abstractmethod
    def _silent(self, before: Since, limit: int | None) -> list[RunRecord]:
        """Active runs without a sign of life since, the longest silent first."""

    @abstractmethod
    def _is_silent(self, key: RunKey, before: Since) -> bool:
        """Whether an active run has given no sign of life since."""

    @abstractmethod
    def _prune(self, before: Since, batch_size: int) -> int:
        """Delete runs as prune() says, so many in a transaction; how many it deleted."""

    @abstractmethod
    def _after_commit(self, send: Callable[[], Any]) -> None:
        """Call it once what was written stands, and not if it is undone."""

    # What is made of them

    def _moment(self, now: datetime | None) -> datetime:
        return self.now() if now is None else aware(now)

    def _store(self, stored: RunRecord | None, kept: RunRecord) -> None:
        """Write a record within _thread(), with what follows from it."""
        self._write(stored, kept)
        if kept.terminal and (stored is None or not stored.terminal):
            self._release(RunKey.of(kept), kept.updated_at)
            if kept.status is Status.INTERRUPTED:
                self._announce_interrupted(kept)
        for interrupt in kept.interrupts:
            before = stored.interrupt(interrupt.id) if stored else None
            if interrupt.decided and (before is None or before.decision != interrupt.decision):
                self._announce_decided(interrupt, kept)

    def _release(self, key: RunKey, now: datetime) -> int:
        """Give back what a run holds, within _thread()."""
        count = 0
        for asking in self._unsettled(key.scope, key.thread_id):
            kept = asking
            for interrupt in asking.interrupts:
                released = interrupt.release(key.run_id)
                if released is not interrupt:
                    kept, count = kept.replace_interrupt(released, now), count + 1
            if kept is not asking:
                self._write(asking, kept)
        return count

    def _announce_interrupted(self, record: RunRecord) -> None:
        self._after_commit(lambda: run_interrupted.send_robust(type(self), record=record))

    def _announce_decided(self, interrupt: Interrupt, record: RunRecord) -> None:
        self._after_commit(
            lambda: interrupt_decided.send_robust(
                type(self),
                interrupt=interrupt,
                decided_by=interrupt.decided_by,
                free=interrupt.state is AnswerState.FREE,
                record=record,
            )
        )


def policy_of(policy: Policy) -> Policy:
    """ConfigurationError for what is none."""
    if policy not in ("allow", "reject"):
        raise ConfigurationError(f"A policy is 'allow' or 'reject', not {policy!r}.")
    return policy


def run_key(scope: Any, thread_id: Any, run_id: Any) -> RunKey:
    """ConfigurationError for what no key can hold."""
    return RunKey(*thread_key(scope, thread_id), identifier("run_id", run_id))


def thread_key(scope: Any, thread_id: Any) -> tuple[str, str]:
    return scope_key(scope), identifier("thread_id", thread_id)
