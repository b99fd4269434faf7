"""A store in the tables of solid_runs.ag_ui."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections, router, transaction
from django.db.models import Exists, OuterRef, QuerySet

from solid_runs.ag_ui.digests import digest
from solid_runs.ag_ui.exceptions import ConfigurationError, StreamError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.models import (
    STATES,
    ReservedRun,
    ReservedRunQuerySet,
    RunInterrupt,
    RunThread,
    later_runs,
)
from solid_runs.ag_ui.records import ACTIVE, TERMINAL, UNSET, RunKey, RunRecord, Status
from solid_runs.ag_ui.stores.base import BaseStore, Labels, Since
from solid_runs.ag_ui.stores.rows import interrupt_values, record_of, run_values
from solid_runs.database_time import DatabaseNow
from solid_runs.inserting import insert_or_touch, insert_unless_taken
from solid_runs.pruning import prune

SEES_OTHERS: Final = ("read committed", "read uncommitted")


class DatabaseStore(BaseStore):
    """``using``: the alias of the database; that of the router for writing if None."""

    def __init__(self, using: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._using = using

    @property
    def using(self) -> str:
        return self._using or router.db_for_write(ReservedRun)

    @contextmanager
    def _thread(self, scope: str, thread_id: str) -> Iterator[None]:
        using = self.using
        self._refuse_old_snapshot()
        with transaction.atomic(using):
            key = {"key": digest([scope, thread_id]), "changed_at": DatabaseNow()}
            insert_or_touch(RunThread, key, "changed_at", using)
            yield

    def _refuse_old_snapshot(self) -> None:
        """A transaction that has read before would not see what others have written since."""
        connection: Any = connections[self.using]
        if not connection.in_atomic_block or connection.vendor != "mysql":
            return
        if connection.isolation_level not in SEES_OTHERS:
            raise ConfigurationError(
                "Within a transaction, a store on MySQL or MariaDB needs READ COMMITTED, which is "
                "Django's default: take isolation_level out of the OPTIONS of "
                f"{self.using!r}, or call the store outside of atomic()."
            )

    def _after_commit(self, send: Callable[[], Any]) -> None:
        transaction.on_commit(send, using=self.using, robust=True)

    # Finding

    def _read(self, key: RunKey) -> RunRecord | None:
        return self._first(self._run(key))

    def _status(self, key: RunKey) -> Status | None:
        found = self._run(key).values_list("status", flat=True).first()
        return None if found is None else Status(found)

    def _newest(self, scope: str, thread_id: str, status: Status | None) -> RunRecord | None:
        runs = self._of_thread(scope, thread_id)
        return self._first(runs if status is None else runs.filter(status=status.value))

    def _asking(self, scope: str, thread_id: str, interrupt_id: str) -> RunRecord | None:
        asked = RunInterrupt.objects.filter(run=OuterRef("pk"), interrupt_id=interrupt_id)
        asking = self._of_thread(scope, thread_id).filter(Exists(asked))
        rows = list(
            self._interrupts.filter(run=asking.values("pk")[:1])
            .select_related("run")
            .order_by("position")
        )
        return record_of(rows[0].run, rows) if rows else None

    def _unsettled(self, scope: str, thread_id: str) -> list[RunRecord]:
        unsettled = RunInterrupt.objects.filter(run=OuterRef("pk"), settled_at=None)
        return self._records(self._of_thread(scope, thread_id).filter(Exists(unsettled)))

    def _active(self, scope: str, thread_id: str) -> list[RunRecord]:
        return self._records(self._of_thread(scope, thread_id).filter(status__in=ACTIVE))

    @property
    def _runs(self) -> ReservedRunQuerySet:
        return ReservedRun.objects.using(self.using)

    @property
    def _interrupts(self) -> QuerySet[RunInterrupt]:
        return RunInterrupt.objects.using(self.using)

    def _run(self, key: RunKey) -> ReservedRunQuerySet:
        return self._runs.filter(**key._asdict())

    def _of_thread(self, scope: str, thread_id: str) -> QuerySet[ReservedRun]:
        return self._runs.filter(scope=scope, thread_id=thread_id).order_by("-reserved_at", "-pk")

    def _first(self, runs: QuerySet[ReservedRun]) -> RunRecord | None:
        return next(iter(self._records(runs[:1])), None)

    def _records(self, runs: QuerySet[ReservedRun]) -> list[RunRecord]:
        """One statement, and one more for the interrupts where there are any."""
        rows = list(runs)
        asking = [row.pk for row in rows if row.questions]
        by_run: dict[int, list[RunInterrupt]] = defaultdict(list)
        if asking:
            for interrupt in self._interrupts.filter(run__in=asking).order_by("position"):
                by_run[interrupt.run_id].append(interrupt)
        return [record_of(row, by_run[row.pk]) for row in rows]

    # Writing

    def _claim(self, fresh: RunRecord, labels: Labels) -> RunRecord | None:
        self._refuse_old_snapshot()
        return None if self._insert(fresh, labels) else self._read(RunKey.of(fresh))

    def _insert(self, record: RunRecord, labels: Labels) -> bool:
        times = {"reserved_at": DatabaseNow(), "alive_at": self._alive()}
        values = {**run_values(record), **labels, **times}
        return insert_unless_taken(ReservedRun, values, self.using)

    def _write(self, stored: RunRecord | None, given: RunRecord) -> None:
        run = self._run(RunKey.of(given))
        if stored is None:
            if not self._insert(given, {}):
                raise StreamError(f"Run {given.run_id!r} was reserved meanwhile; find() it first.")
        else:
            values = changed(run_values(stored), run_values(given))
            # A heartbeat takes no lock, and may have been further.
            ahead = run.filter(sequence__lte=given.sequence) if "sequence" in values else run
            if not ahead.update(**values, alive_at=self._alive()):
                raise StreamError(f"Run {given.run_id!r} is further than this copy of it.")
        positions = {} if stored is None else {one.id: n for n, one in enumerate(stored.interrupts)}
        added = []
        for position, interrupt in enumerate(given.interrupts):
            before = stored.interrupt(interrupt.id) if stored else None
            if before is None:
                added.append((position, interrupt))
            elif before is not interrupt:
                was = interrupt_values(before, positions[interrupt.id])
                values = changed(was, interrupt_values(interrupt, position))
                asked = self._interrupts.filter(run__in=run.values("pk"), interrupt_id=interrupt.id)
                if before.settled_at is None:  # settle() takes no lock, and may have been quicker
                    asked = asked.filter(settled_at=None)
                asked.update(**values)
        if added:
            self._ask(run, added)

    def _ask(self, run: QuerySet[ReservedRun], added: list[tuple[int, Interrupt]]) -> None:
        pk = run.values_list("pk", flat=True).get()
        self._interrupts.bulk_create(
            RunInterrupt(run_id=pk, interrupt_id=one.id, **interrupt_values(one, position))
            for position, one in added
        )

    def _beat(self, key: RunKey, sequence: int, now: datetime, snapshot: Any) -> bool | None:
        # By its primary key, and no other index: on MariaDB two ways to a row are a deadlock.
        found = self._run(key).values_list("pk", "cancel_requested_at").first()
        if found is None:
            return None
        pk, cancel_requested_at = found
        mine = self._runs.filter(pk=pk, status__in=ACTIVE, sequence__lte=sequence)
        values = {"sequence": sequence, "updated_at": now, "alive_at": self._alive()}
        if snapshot is not UNSET:
            values["snapshot"] = snapshot
        return cancel_requested_at is not None if mine.update(**values) else None

    def _ask_to_cancel(self, key: RunKey, now: datetime) -> None:
        self._run(key).filter(cancel_requested_at=None).update(cancel_requested_at=now)

    def _settle(self, key: RunKey, interrupt_id: str, now: datetime) -> bool:
        asking = self._runs.filter(scope=key.scope, thread_id=key.thread_id).values("pk")
        held = self._interrupts.filter(
            STATES[AnswerState.HELD],
            run__in=asking,
            interrupt_id=interrupt_id,
            redeemed_by=key.run_id,
        )
        ended = self._run(key).filter(status__in=TERMINAL)
        return bool(held.filter(~Exists(ended)).update(settled_at=now))

    def _alive(self) -> Any:
        return self.now() if self.clock else DatabaseNow()

    # Housekeeping

    def _silent(self, before: Since, limit: int | None) -> list[RunRecord]:
        silent = self._runs.silent(self._since(before))
        return self._records(silent.order_by("alive_at", "pk")[:limit])

    def _is_silent(self, key: RunKey, before: Since) -> bool:
        silent = self._run(key).silent(self._since(before))
        # Locked, so that a sign of life comes before it or finds what became of the run.
        return bool(silent.select_for_update().values_list("pk")[:1])

    def _since(self, before: Since) -> Any:
        if not isinstance(before, timedelta):
            return self._moment(before)
        return self.now() - before if self.clock else DatabaseNow(ago=before)

    def _prune(self, before: Since, batch_size: int) -> int:
        count = 0
        for status in sorted(TERMINAL):
            later = later_runs()
            if status is Status.INTERRUPTED:
                later = later.filter(status=status)
            old = self._runs.filter(Exists(later), status=status, alive_at__lt=self._since(before))
            count += prune(old, "alive_at", batch_size, self._delete)
        return count

    def _delete(self, keys: set[Any]) -> int:
        unsettled = self._interrupts.filter(run__in=keys, settled_at=None)
        keys -= set(unsettled.values_list("run", flat=True))
        pruned = self._runs.filter(pk__in=keys).only("pk")  # Django reads what it deletes
        return pruned.delete()[1].get(ReservedRun._meta.label, 0)


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in after.items() if value != before[name]}
