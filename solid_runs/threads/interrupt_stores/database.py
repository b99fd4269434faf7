"""Interrupts in the table of solid_runs.threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections, router, transaction
from django.db.models import QuerySet

from solid_runs.database_time import DatabaseMilliseconds, database_milliseconds
from solid_runs.event_logs.sql import take_lock
from solid_runs.inserting import insert_unless_taken
from solid_runs.threads.interrupt_stores.base import BaseInterruptStore
from solid_runs.threads.interrupts import Decision, InterruptRecord, refuse_all_but_pending
from solid_runs.threads.models import ThreadInterrupt
from solid_runs.threads.scopes import SHARED
from solid_runs.threads.values import UNSET
from solid_runs.updating import update_where


class DatabaseInterruptStore(BaseInterruptStore):
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

    @property
    def using(self) -> str:
        return self._using or router.db_for_write(ThreadInterrupt)

    def now(self) -> int:
        return self.clock() if self.clock else database_milliseconds(connections[self.using])

    @property
    def _interrupts(self) -> QuerySet[ThreadInterrupt]:
        return ThreadInterrupt.objects.using(self.using).filter(scope=self.scope)

    def _insert(self, record: InterruptRecord) -> None:
        row = {
            "scope": self.scope,
            "interrupt_id": record.interrupt_id,
            "run_id": record.run_id,
            "thread_id": record.thread_id,
            "status": record.status,
            "requested_at": record.requested_at,
            "has_response": False,
            "payload": record.payload,
        }
        insert_unless_taken(ThreadInterrupt, row, self.using)

    def _read(self, interrupt_id: str) -> InterruptRecord | None:
        rows = list(self._interrupts.filter(interrupt_id=interrupt_id))
        return rows[0].record if rows else None

    def _decide(self, decision: Decision) -> None:
        answered = decision.response is not UNSET
        given = {
            "status": decision.status,
            "resolved_at": self.clock() if self.clock else DatabaseMilliseconds(),
            "has_response": answered,
            "response": decision.response if answered else None,
        }
        found = ("interrupt_id = %s AND scope = %s", (decision.interrupt_id, self.scope))
        update_where(ThreadInterrupt, given, [found], self.using)

    def _commit(self, batch: list[Decision]) -> None:
        asked = self._interrupts.filter(interrupt_id__in=[one.interrupt_id for one in batch])
        with transaction.atomic(self.using):
            take_lock(asked)
            # In one order, so that two batches wait for each other instead of both.
            locked = asked.order_by("interrupt_id").select_for_update()
            refuse_all_but_pending(batch, dict(locked.values_list("interrupt_id", "status")))
            for decision in batch:
                self._decide(decision)

    def _listed(self, name: str, value: str) -> list[InterruptRecord]:
        found = self._interrupts.filter(**{name: value}).order_by("requested_at", "pk")
        return [row.record for row in found]
