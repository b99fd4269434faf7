"""What a store of the interrupts of threads is, and the base class that makes one of a few steps.

Its rules are those of TanStack AI: an answer may be overwritten by a later one. Where an answer
must be given once, use commit_batch(), or solid_runs.ag_ui.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from solid_runs.threads import values
from solid_runs.threads.interrupts import (
    Decision,
    InterruptRecord,
    cancellation,
    decisions,
    new_interrupt,
    resolution,
)
from solid_runs.threads.scopes import SHARED, key_of
from solid_runs.threads.values import UNSET
from solid_runs.twins import twin


class BaseInterruptStore(ABC):
    """A store over the steps at its end, which a subclass provides.

    It is bound to one scope, as a store of runs is, and refuses bad values as that does. ``clock``:
    gives milliseconds since 1970, for ``resolved_at``; the clock of the storage if None. Lists are
    in the order of ``requested_at``, those of one moment as inserted.
    """

    def __init__(self, scope: Any = SHARED, *, clock: Callable[[], int] | None = None) -> None:
        self.scope: Final = key_of(scope)
        self.clock = clock

    def create(
        self,
        interrupt_id: str,
        run_id: str,
        thread_id: str,
        requested_at: int,
        payload: Mapping[str, Any],
    ) -> None:
        """Store a pending interrupt, unless its id is taken: what is there stays as it is."""
        self._insert(new_interrupt(interrupt_id, run_id, thread_id, requested_at, payload))

    def resolve(self, interrupt_id: str, response: Any = UNSET) -> None:
        """Answer an interrupt, over any answer before; an unknown one is left unknown."""
        self._decide(resolution(interrupt_id, response))

    def cancel(self, interrupt_id: str) -> None:
        """Cancel an interrupt, over any answer before; an unknown one is left unknown."""
        self._decide(cancellation(interrupt_id))

    def commit_batch(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Answer all of these, or none.

        An entry is ``{"interrupt_id", "status": "resolved", "response"?}``, or one with the status
        ``cancelled`` and no response. BatchRejected, and nothing written, unless each names another
        interrupt that is there and pending.
        """
        self._commit(decisions(entries))

    def get(self, interrupt_id: str) -> InterruptRecord | None:
        return self._read(values.identifier("interrupt_id", interrupt_id))

    def list_by_thread(self, thread_id: str) -> list[InterruptRecord]:
        return self._listed("thread_id", values.identifier("thread_id", thread_id))

    def list_pending(self, thread_id: str) -> list[InterruptRecord]:
        return [one for one in self.list_by_thread(thread_id) if one.pending]

    def list_by_run(self, run_id: str) -> list[InterruptRecord]:
        return self._listed("run_id", values.identifier("run_id", run_id))

    def list_pending_by_run(self, run_id: str) -> list[InterruptRecord]:
        return [one for one in self.list_by_run(run_id) if one.pending]

    acreate = twin(create)
    aresolve = twin(resolve)
    acancel = twin(cancel)
    acommit_batch = twin(commit_batch)
    aget = twin(get)
    alist_by_thread = twin(list_by_thread)
    alist_pending = twin(list_pending)
    alist_by_run = twin(list_by_run)
    alist_pending_by_run = twin(list_pending_by_run)

    # What a subclass provides. Values are clean already.

    @abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970 by the store's clock."""

    @abstractmethod
    def _insert(self, record: InterruptRecord) -> None:
        """Insert it, atomically, unless its id is taken."""

    @abstractmethod
    def _read(self, interrupt_id: str) -> InterruptRecord | None: ...

    @abstractmethod
    def _decide(self, decision: Decision) -> None:
        """Write a decision over what is there, if anything is."""

    @abstractmethod
    def _commit(self, batch: list[Decision]) -> None:
        """Write all of the decisions in one transaction, as commit_batch() says."""

    @abstractmethod
    def _listed(self, name: str, value: str) -> list[InterruptRecord]:
        """Those with this ``thread_id`` or ``run_id``, in order."""
