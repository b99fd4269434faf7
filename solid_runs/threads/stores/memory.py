"""A store in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from threading import RLock
from typing import Any

from solid_runs.threads.records import RunRecord, Status
from solid_runs.threads.scopes import SHARED
from solid_runs.threads.stores.base import BaseRunStore
from solid_runs.threads.stores.guards import Guard, allows


@dataclass(frozen=True, kw_only=True)
class Row:
    record: RunRecord
    number: int
    trace_id: str | None
    heartbeat_at: int | None = None
    leased_until: int | None = None


@dataclass
class Rows:
    """What the stores of several scopes may share."""

    by_key: dict[tuple[str, str], Row] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))
    lock: Any = field(default_factory=RLock)


class MemoryRunStore(BaseRunStore):
    """The threads of a process may share it. What it holds is gone with the process.

    ``rows``: those of another store, of another scope.
    """

    def __init__(
        self,
        scope: Any = SHARED,
        *,
        clock: Callable[[], int] | None = None,
        rows: Rows | None = None,
    ) -> None:
        super().__init__(scope, clock=clock)
        self.rows = Rows() if rows is None else rows

    def now(self) -> int:
        return self.clock() if self.clock else time.time_ns() // 1_000_000

    def _insert(self, record: RunRecord, trace_id: str | None) -> RunRecord | None:
        with self.rows.lock:
            stored = self._read(record.run_id)
            if stored is None:
                number = next(self.rows.numbers)
                self._put(Row(record=record, number=number, trace_id=trace_id))
            return stored

    def _read(self, run_id: str) -> RunRecord | None:
        row = self._row(run_id)
        return row.record if row else None

    def _write(self, run_id: str, given: Mapping[str, Any], guard: Guard) -> bool:
        with self.rows.lock:
            row = self._allowed(run_id, guard)
            if row is None:
                return False
            self._put(replace(row, record=replace(row.record, **given)))
            return True

    def _claim(
        self,
        run_id: str,
        guard: Guard,
        now: int | None,
        lease_ms: int | None,
        given: Mapping[str, Any],
    ) -> int | None:
        now = self.now() if now is None else now
        with self.rows.lock:
            row = self._allowed(run_id, guard)
            if row is None:
                return None
            epoch = (row.record.driver_epoch or 0) + 1
            record = replace(row.record, **given, driver_epoch=epoch)
            until = None if lease_ms is None else now + lease_ms
            self._put(replace(row, record=record, heartbeat_at=now, leased_until=until))
            return epoch

    def _beat(self, run_id: str, guard: Guard, now: int | None) -> bool:
        with self.rows.lock:
            row = self._allowed(run_id, guard)
            if row is None:
                return False
            self._put(replace(row, heartbeat_at=self.now() if now is None else now))
            return True

    def _active(self, thread_id: str) -> RunRecord | None:
        running = [one for one in self._of_thread(thread_id) if one.status == Status.RUNNING]
        return max(running, key=lambda record: record.started_at, default=None)

    def _of_thread(self, thread_id: str) -> list[RunRecord]:
        return _by_start(row for row in self._all() if row.record.thread_id == thread_id)

    def _children(self, parent_run_id: str) -> list[RunRecord]:
        return _by_start(row for row in self._all() if row.record.parent_run_id == parent_run_id)

    def _reclaimable(self, cutoff: int, limit: int | None) -> list[RunRecord]:
        return self._longest("detached_since", limit, Guard(detached_before=cutoff))

    def _stalled(self, now: int | None, ttl_ms: int, limit: int | None) -> list[RunRecord]:
        cutoff = (self.now() if now is None else now) - ttl_ms
        return self._longest("heartbeat_at", limit, Guard(silent_before=cutoff))

    def _prune(self, before: int, batch_size: int) -> int:
        with self.rows.lock:
            latest: dict[str, str] = {}
            for record in _by_start(self._all()):
                latest[record.thread_id] = record.run_id
            old = [
                row.record.run_id
                for row in self._all()
                if row.record.terminal
                and _age(row.record) < before
                and latest[row.record.thread_id] != row.record.run_id
            ]
            for run_id in old:
                del self.rows.by_key[self.scope, run_id]
            return len(old)

    def _after_commit(self, send: Callable[[], Any]) -> None:
        send()

    def _row(self, run_id: str) -> Row | None:
        return self.rows.by_key.get((self.scope, run_id))

    def _put(self, row: Row) -> None:
        self.rows.by_key[self.scope, row.record.run_id] = row

    def _all(self) -> list[Row]:
        """Those of the scope, as they were inserted."""
        with self.rows.lock:
            rows = [row for (scope, _), row in self.rows.by_key.items() if scope == self.scope]
        return sorted(rows, key=lambda row: row.number)

    def _allowed(self, run_id: str, guard: Guard) -> Row | None:
        row = self._row(run_id)
        if guard.unleased_at is None:
            guard = replace(guard, unleased_at=self.now())
        return row if row and self._allows(guard, row) else None

    def _allows(self, guard: Guard, row: Row) -> bool:
        return allows(guard, row.record, row.heartbeat_at, row.leased_until)

    def _longest(self, since: str, limit: int | None, guard: Guard) -> list[RunRecord]:
        guard = replace(guard, statuses={Status.RUNNING})
        rows = [row for row in self._all() if self._allows(guard, row)]
        if since == "heartbeat_at":
            rows = [row for row in rows if row.record.driver_epoch is not None]
            rows.sort(key=lambda row: row.heartbeat_at or 0)
        else:
            rows.sort(key=lambda row: row.record.detached_since or 0)
        return [row.record for row in rows][:limit]


def _by_start(rows: Iterable[Row]) -> list[RunRecord]:
    return sorted((row.record for row in rows), key=lambda record: record.started_at)


def _age(record: RunRecord) -> int:
    return record.started_at if record.finished_at is None else record.finished_at
