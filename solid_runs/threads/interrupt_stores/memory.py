"""Interrupts in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock
from typing import Any

from solid_runs.threads.interrupt_stores.base import BaseInterruptStore
from solid_runs.threads.interrupts import Decision, InterruptRecord, refuse_all_but_pending
from solid_runs.threads.scopes import SHARED


class InterruptRows:
    """What the stores of several scopes may share."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, str], InterruptRecord] = {}
        self.lock = RLock()


class MemoryInterruptStore(BaseInterruptStore):
    """The threads of a process may share it. ``rows``: those of another store, of another scope."""

    def __init__(
        self,
        scope: Any = SHARED,
        *,
        clock: Callable[[], int] | None = None,
        rows: InterruptRows | None = None,
    ) -> None:
        super().__init__(scope, clock=clock)
        self.rows = InterruptRows() if rows is None else rows

    def now(self) -> int:
        return self.clock() if self.clock else time.time_ns() // 1_000_000

    def _insert(self, record: InterruptRecord) -> None:
        self.rows.by_key.setdefault((self.scope, record.interrupt_id), record)

    def _read(self, interrupt_id: str) -> InterruptRecord | None:
        record = self.rows.by_key.get((self.scope, interrupt_id))
        return record and record.copy()

    def _decide(self, decision: Decision) -> None:
        with self.rows.lock:
            record = self._read(decision.interrupt_id)
            if record is not None:
                decided = record.decided(decision, self.now())
                self.rows.by_key[self.scope, decision.interrupt_id] = decided

    def _commit(self, batch: list[Decision]) -> None:
        with self.rows.lock:
            found = [self._read(one.interrupt_id) for one in batch]
            refuse_all_but_pending(batch, {one.interrupt_id: one.status for one in found if one})
            for decision in batch:
                self._decide(decision)

    def _listed(self, name: str, value: str) -> list[InterruptRecord]:
        with self.rows.lock:
            records = [one for (scope, _), one in self.rows.by_key.items() if scope == self.scope]
        found = [one.copy() for one in records if getattr(one, name) == value]
        return sorted(found, key=lambda record: record.requested_at)
