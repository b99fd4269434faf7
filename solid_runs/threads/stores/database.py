"""A store in the table of solid_runs.threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from django.db import connections, router, transaction
from django.db.models import QuerySet

from solid_runs.database_time import DatabaseMilliseconds, database_milliseconds
from solid_runs.inserting import insert_unless_taken
from solid_runs.lookups import look_up
from solid_runs.patience import past_deadlocks
from solid_runs.pruning import prune
from solid_runs.threads.exceptions import ThreadsError
from solid_runs.threads.models import ThreadInterrupt, ThreadRun, ThreadRunQuerySet
from solid_runs.threads.records import FIELDS, GIVEN, TERMINAL, RunRecord, Status
from solid_runs.threads.scopes import SHARED
from solid_runs.threads.stores.base import BaseRunStore
from solid_runs.threads.stores.conditions import NextEpoch, conditions_of
from solid_runs.threads.stores.guards import Guard
from solid_runs.updating import update_where

COLUMNS: Final = tuple(FIELDS)
MOST_ATTEMPTS: Final = 3


class DatabaseRunStore(BaseRunStore):
    """``using``: the alias of the database; that of the router for writing if None."""

    def __init__(
        self,
        scope: Any = SHARED,
        *,
        using: str | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(scope, clock=clock)
        self._using = using

    @classmethod
    def of_key(cls, key: str, **options: Any) -> Self:
        """The store of a scope by its key, as it stands in the table."""
        return cls(SHARED if key == "" else key, **options)

    @classmethod
    def scopes(cls, using: str | None = None) -> list[str]:
        """The keys of all scopes that have a run."""
        return _scopes(_runs(using).all())

    @classmethod
    def scopes_to_sweep(cls, using: str | None = None) -> list[str]:
        """The keys of the scopes that have a running run which is detached or claimed."""
        runs = _runs(using).active()
        detached = _scopes(runs.filter(detached_since__isnull=False))
        return sorted({*detached, *_scopes(runs.filter(heartbeat_at__isnull=False))})

    @property
    def using(self) -> str:
        return self._using or router.db_for_write(ThreadRun)

    def now(self) -> int:
        return self.clock() if self.clock else database_milliseconds(connections[self.using])

    # Finding

    @property
    def _runs(self) -> ThreadRunQuerySet:
        return _runs(self.using)

    @property
    def _mine(self) -> ThreadRunQuerySet:
        return self._runs.filter(scope=self.scope)

    def _read(self, run_id: str) -> RunRecord | None:
        return self._one("read", lambda: self._mine.filter(run_id=run_id), self.scope, run_id)

    def _active(self, thread_id: str) -> RunRecord | None:
        params = (self.scope, thread_id, Status.RUNNING.value)
        return self._one(
            "active", lambda: self._of(thread_id).active().order_by("-started_at", "pk"), *params
        )

    def _of(self, thread_id: str) -> ThreadRunQuerySet:
        return self._runs.of_thread(self.scope, thread_id)

    def _of_thread(self, thread_id: str) -> list[RunRecord]:
        return list(_records(_rows(self._of(thread_id))))

    def _children(self, parent_run_id: str) -> list[RunRecord]:
        children = self._mine.filter(parent_run_id=parent_run_id)
        return list(_records(_rows(children.order_by("started_at", "pk"))))

    def _reclaimable(self, cutoff: int, limit: int | None) -> list[RunRecord]:
        return list(_records(_rows(self._mine.reclaimable(cutoff)[:limit])))

    def _stalled(self, now: int | None, ttl_ms: int, limit: int | None) -> list[RunRecord]:
        cutoff = DatabaseMilliseconds(-ttl_ms) if now is None else now - ttl_ms
        return list(_records(_rows(self._mine.stalled(cutoff)[:limit])))

    def _one(
        self, shape: str, runs: Callable[[], QuerySet[ThreadRun]], *params: str
    ) -> RunRecord | None:
        """The first of the runs, whose query has these parameters."""
        rows = look_up((ThreadRun, shape), lambda: _rows(runs()[:1]), params, self.using)
        return next(_records(rows), None)

    # Writing

    def _insert(self, record: RunRecord, trace_id: str | None) -> RunRecord | None:
        given = {name: getattr(record, name) for name in GIVEN}
        row = {"scope": self.scope, **given, "trace_id": trace_id}
        for _ in range(MOST_ATTEMPTS):
            if insert_unless_taken(ThreadRun, row, self.using):
                return None
            stored = self._read(record.run_id) or self._read_latest(record.run_id)
            if stored is not None:  # and not pruned since
                return stored
        raise ThreadsError(f"Run {record.run_id!r} comes and goes; try again.")

    def _read_latest(self, run_id: str) -> RunRecord | None:
        """What a transaction that has read before might not see otherwise."""
        with transaction.atomic(self.using):
            latest = self._mine.filter(run_id=run_id).select_for_update()
            return next(_records(_rows(latest)), None)

    def _write(self, run_id: str, given: Mapping[str, Any], guard: Guard) -> bool:
        conditions = conditions_of(self.scope, run_id, guard, connections[self.using])
        return bool(update_where(ThreadRun, given, [*conditions], self.using))

    def _claim(
        self,
        run_id: str,
        guard: Guard,
        now: int | None,
        lease_ms: int | None,
        given: Mapping[str, Any],
    ) -> int | None:
        until = None if lease_ms is None else self._moment(now, lease_ms)
        written = {
            **given,
            "driver_epoch": NextEpoch(),
            "heartbeat_at": self._moment(now),
            "leased_until": until,
        }

        def claim() -> int | None:
            with transaction.atomic(self.using):
                if not self._write(run_id, written, guard):
                    return None
                # The row is locked by now, so this is the epoch that was written.
                epochs = self._mine.filter(run_id=run_id).values_list("driver_epoch", flat=True)
                return epochs.get()

        return past_deadlocks(claim, self.using)

    def _beat(self, run_id: str, guard: Guard, now: int | None) -> bool:
        return self._write(run_id, {"heartbeat_at": self._moment(now)}, guard)

    def _moment(self, now: int | None, ahead: int = 0) -> Any:
        return DatabaseMilliseconds(ahead) if now is None else now + ahead

    def _after_commit(self, send: Callable[[], Any]) -> None:
        transaction.on_commit(send, using=self.using, robust=True)

    # Housekeeping

    def _prune(self, before: int, batch_size: int) -> int:
        count = 0
        for status in sorted(TERMINAL):
            ended = self._mine.filter(status=status).with_a_later_one()
            dated = ended.filter(finished_at__lt=before)
            count += prune(dated, "finished_at", batch_size, self._delete)
            undated = ended.filter(finished_at=None, started_at__lt=before)
            count += prune(undated, "started_at", batch_size, self._delete)
        return count

    def _delete(self, keys: set[Any]) -> int:
        if not keys:
            return 0
        pruned = self._runs.filter(pk__in=keys)
        asking = list(pruned.values_list("run_id", flat=True))
        asked = ThreadInterrupt.objects.using(self.using).filter(scope=self.scope)
        asked.filter(run_id__in=asking)._raw_delete(self.using)
        return pruned._raw_delete(self.using)


def _runs(using: str | None) -> ThreadRunQuerySet:
    return ThreadRun.objects.using(using or router.db_for_write(ThreadRun))


def _scopes(runs: QuerySet[ThreadRun]) -> list[str]:
    return sorted(runs.order_by().values_list("scope", flat=True).distinct())


def _rows(runs: QuerySet[ThreadRun]) -> QuerySet[ThreadRun, Any]:
    return runs.values_list(*COLUMNS)


def _records(rows: Iterable[Sequence[Any]]) -> Iterator[RunRecord]:
    for row in rows:
        yield RunRecord(**dict(zip(COLUMNS, row, strict=True)))
