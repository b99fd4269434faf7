"""The steps of storage that the methods of a store are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from solid_runs.threads.records import RunRecord
from solid_runs.threads.scopes import SHARED, key_of
from solid_runs.threads.stores.guards import Guard


class StorageSteps(ABC):
    """``scope``: whose runs these are, a str, an int or a UUID; one that all share who name none.
    ``clock``: gives milliseconds since 1970; the clock of the storage if None.
    """

    def __init__(self, scope: Any = SHARED, *, clock: Callable[[], int] | None = None) -> None:
        self.scope: Final = key_of(scope)
        self.clock = clock

    # What a subclass provides. Values are clean already.

    @abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970 by the store's clock."""

    @abstractmethod
    def _insert(self, record: RunRecord, trace_id: str | None) -> RunRecord | None:
        """Insert a run, atomically, unless its id is taken; then what is stored there."""

    @abstractmethod
    def _read(self, run_id: str) -> RunRecord | None: ...

    @abstractmethod
    def _write(self, run_id: str, given: Mapping[str, Any], guard: Guard) -> bool:
        """Write these where the guard allows it, as one step; whether it did."""

    @abstractmethod
    def _claim(
        self,
        run_id: str,
        guard: Guard,
        now: int | None,
        lease_ms: int | None,
        given: Mapping[str, Any],
    ) -> int | None:
        """Count the epoch up where the guard allows it, as one step; the new one, or None.

        The claim is a sign of life, and begins a lease or ends one. ``given`` is written with it.
        """

    @abstractmethod
    def _beat(self, run_id: str, guard: Guard, now: int | None) -> bool:
        """Write a sign of life where the guard allows it, as one step; whether it did."""

    @abstractmethod
    def _active(self, thread_id: str) -> RunRecord | None: ...

    @abstractmethod
    def _of_thread(self, thread_id: str) -> list[RunRecord]: ...

    @abstractmethod
    def _children(self, parent_run_id: str) -> list[RunRecord]: ...

    @abstractmethod
    def _reclaimable(self, cutoff: int, limit: int | None) -> list[RunRecord]: ...

    @abstractmethod
    def _stalled(self, now: int | None, ttl_ms: int, limit: int | None) -> list[RunRecord]: ...

    @abstractmethod
    def _prune(self, before: int, batch_size: int) -> int:
        """Delete runs as prune() says, so many in a transaction; how many it deleted."""

    @abstractmethod
    def _after_commit(self, send: Callable[[], Any]) -> None:
        """Call it once what was written stands, and not if it is undone."""
