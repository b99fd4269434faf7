"""A store in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from threading import RLock
from typing import Any

from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.records import UNSET, RunKey, RunRecord, Status
from solid_runs.ag_ui.stores.base import BaseStore, Labels, Since


@dataclass(frozen=True, kw_only=True)
class Row:
    record: RunRecord
    number: int
    alive_at: datetime
    labels: Labels
    cancel_requested: bool = False

    @property
    def key(self) -> RunKey:
        return RunKey.of(self.record)

    @property
    def unsettled(self) -> bool:
        return any(one.state is not AnswerState.SETTLED for one in self.record.interrupts)


class MemoryStore(BaseStore):
    """The threads of a process may share it. What it holds is gone with the process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._rows: dict[RunKey, Row] = {}
        self._numbers = count(1)
        self._lock = RLock()
        self._undo: list[tuple[RunKey, Row | None]] | None = None
        self._sends: list[Callable[[], Any]] = []

    @contextmanager
    def _thread(self, scope: str, thread_id: str) -> Iterator[None]:
        with self._lock:
            self._undo, self._sends = [], []
            try:
                yield
            except BaseException:
                for key, row in reversed(self._undo):
                    self._set(key, row)
                raise
            finally:
                self._undo = None
            sends = self._sends
        for send in sends:
            send()

    def _set(self, key: RunKey, row: Row | None) -> None:
        if self._undo is not None:
            self._undo.append((key, self._rows.get(key)))
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row

    def _after_commit(self, send: Callable[[], Any]) -> None:
        self._sends.append(send)

    # Finding

    def _read(self, key: RunKey) -> RunRecord | None:
        row = self._rows.get(key)
        return row.record if row else None

    def _newest(self, scope: str, thread_id: str, status: Status | None) -> RunRecord | None:
        rows = self._of_thread(scope, thread_id)
        return next((row.record for row in rows if status in (None, row.record.status)), None)

    def _asking(self, scope: str, thread_id: str, interrupt_id: str) -> RunRecord | None:
        records = (row.record for row in self._of_thread(scope, thread_id))
        return next((record for record in records if record.interrupt(interrupt_id)), None)

    def _unsettled(self, scope: str, thread_id: str) -> list[RunRecord]:
        return [row.record for row in self._of_thread(scope, thread_id) if row.unsettled]

    def _active(self, scope: str, thread_id: str) -> list[RunRecord]:
        rows = self._of_thread(scope, thread_id)
        return [row.record for row in rows if not row.record.terminal]

    def _of_thread(self, scope: str, thread_id: str) -> list[Row]:
        """The newest first."""
        with self._lock:
            rows = [row for row in self._rows.values() if row.key[:2] == (scope, thread_id)]
        return sorted(rows, key=lambda row: row.number, reverse=True)

    # Writing

    def _claim(self, fresh: RunRecord, labels: Labels) -> RunRecord | None:
        with self._lock:
            stored = self._read(RunKey.of(fresh))
            if stored is None:
                self._insert(fresh, labels)
            return stored

    def _insert(self, record: RunRecord, labels: Labels) -> None:
        number = next(self._numbers)
        row = Row(record=record, number=number, alive_at=self.now(), labels=labels)
        self._set(row.key, row)

    def _write(self, stored: RunRecord | None, given: RunRecord) -> None:
        if stored is None:
            self._insert(given, {})
        else:
            row = self._rows[RunKey.of(given)]
            self._set(row.key, replace(row, record=given, alive_at=self.now()))

    def _beat(self, key: RunKey, sequence: int, now: datetime, snapshot: Any) -> bool | None:
        with self._lock:
            row = self._rows.get(key)
            if row is None or row.record.terminal or row.record.sequence > sequence:
                return None
            kept = row.record.snapshot if snapshot is UNSET else snapshot
            record = replace(row.record, sequence=sequence, snapshot=kept, updated_at=now)
            self._set(key, replace(row, record=record, alive_at=self.now()))
            return row.cancel_requested

    def _ask_to_cancel(self, key: RunKey, now: datetime) -> None:
        self._set(key, replace(self._rows[key], cancel_requested=True))

    def _settle(self, key: RunKey, interrupt_id: str, now: datetime) -> bool:
        with self._lock:
            taker, any_settled = self._read(key), False
            if taker is not None and taker.terminal:
                return False
            for row in self._of_thread(key.scope, key.thread_id):
                held = row.record.interrupts
                kept = tuple(
                    one.settle(key.run_id, now) if one.id == interrupt_id else one for one in held
                )
                if any(before is not after for before, after in zip(held, kept, strict=True)):
                    record = replace(row.record, interrupts=kept)
                    self._set(row.key, replace(row, record=record))
                    any_settled = True
            return any_settled

    # Housekeeping

    def _silent(self, before: Since, limit: int | None) -> list[RunRecord]:
        with self._lock:
            rows = [row for row in self._rows.values() if self._is_silent(row.key, before)]
        return [row.record for row in sorted(rows, key=lambda row: row.alive_at)[:limit]]

    def _is_silent(self, key: RunKey, before: Since) -> bool:
        row = self._rows.get(key)
        return bool(row and not row.record.terminal and row.alive_at < self._since(before))

    def _since(self, before: Since) -> datetime:
        return self.now() - before if isinstance(before, timedelta) else self._moment(before)

    def _prune(self, before: Since, batch_size: int) -> int:
        with self._lock:
            latest: set[RunKey] = set()
            for scope, thread_id in {row.key[:2] for row in self._rows.values()}:
                for kept in (self._newest(scope, thread_id, status) for status in LATEST):
                    latest |= {RunKey.of(kept)} if kept else set()
            old = [
                key
                for key, row in self._rows.items()
                if row.record.terminal
                and row.alive_at < self._since(before)
                and not row.unsettled
                and key not in latest
            ]
            for key in old:
                self._set(key, None)
            return len(old)


LATEST = (None, Status.INTERRUPTED)
"""The runs of a thread that are never pruned, as _newest() gives them."""
