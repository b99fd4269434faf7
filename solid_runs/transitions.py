"""Moving a run from one status to another: one conditional UPDATE, decided by the row."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import connections, models, router, transaction
from django.db.models import Q
from django.utils import timezone

from solid_runs.columns import LIFECYCLE, RunColumns, as_stored, column_of, columns_of, facts
from solid_runs.copies import held, note_written
from solid_runs.exceptions import NotAnObject, RunNotFound, UnknownStatusError
from solid_runs.merging import fit_object, merge_within, shallow_merge
from solid_runs.signals import run_status_changed
from solid_runs.statements import update_row
from solid_runs.statuses import RunStatus, UnknownStatus
from solid_runs.times import elapsed_ms

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin


class Transition:
    """One attempt to move ``run`` to ``target`` from one of ``sources``.

    Each UPDATE compares the row with one exact status, the one that this copy holds or else the
    likeliest, so that the signal tells truly where the run came from. A row that is elsewhere is
    read again, once for each time that somebody else moved it in between.
    """

    def __init__(
        self,
        run: AgentRunMixin,
        target: RunStatus,
        sources: frozenset[RunStatus],
        values: Mapping[str, Any],
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """``values`` are the fields to write; the time and the duration of an end are added."""
        self.run, self.target, self.sources = run, target, sources
        self.columns = columns_of(type(run))
        self.using = write_alias(run)
        self.now = timezone.now()
        self.values = self.columns.storable({**values, "updated_at": self.now}, self.using)
        self.metadata = metadata if metadata and "output_metadata" in self.columns else None

    def perform(self) -> bool:
        """Whether this call moved the run. The instance then shows what is stored.

        Raises RunNotFound when there is no row, UnknownStatusError when the row's status is none
        of the five, NotAnObject when metadata meets a column that holds no object; nothing is
        written then.
        """
        if self.run.pk is None or self.run._state.adding:
            raise RunNotFound(type(self.run), None)
        if isinstance(self.run.__dict__.get("status"), UnknownStatus):
            self._read_again()  # its column may hold what no status can be compared with
            self._refuse_unknown()
        source = known_source(self.run, self.sources)
        for _ in range(ROUNDS):
            if self._update(source):
                return True
            self._read_again()
            stored = self.run.status
            if stored == source:
                # Seen through an older snapshot, or the metadata was in the way.
                if self.metadata is not None and self._update_under_lock(source):
                    return True
                self._read_again(locked=True)
                stored = self.run.status
            self._refuse_unknown()
            if stored not in self.sources:
                return False
            source = stored
        raise UnknownStatusError(type(self.run), self.run.pk, source)

    def _refuse_unknown(self) -> None:
        stored = self.run.status
        if isinstance(stored, UnknownStatus):
            raise UnknownStatusError(type(self.run), self.run.pk, stored.stored)

    def _update(self, source: RunStatus) -> bool:
        """Write everything in one statement, or under a lock where SQL cannot merge."""
        if self.metadata is None:
            return self._write(source)
        field = self.columns.fields["output_metadata"]
        merge = shallow_merge(field, self._new_metadata(), connections[self.using])
        if merge is None:
            return self._update_under_lock(source)
        return self._write(source, merge.guard, output_metadata=merge.value)

    def _update_under_lock(self, source: RunStatus) -> bool:
        rows = rows_of(self.run, self.columns, self.using).filter(status__in=[source])
        with transaction.atomic(using=self.using):
            # A write takes the lock on SQLite, and a locking read sees past an older snapshot.
            if not rows.update(status=models.F("status")):
                return False
            stored = rows.select_for_update().values_list("output_metadata", flat=True).get()
            field = self.columns.fields["output_metadata"]
            limit = facts(field, connections[self.using]).max_bytes
            result = merge_within(stored, self._new_metadata(), limit)
            if result is not None and self._write(source, output_metadata=result):
                return True
        if result is None:
            raise NotAnObject(type(self.run), self.run.pk, column_of(field))
        return False

    def _write(self, source: RunStatus, *guards: Any, **extra: Any) -> bool:
        values = {"status": self.target, **self.values, **self._end(source), **extra}
        heals = self.run.__dict__.get("trace_id", "") is None and "trace_id" in self.columns
        if heals:
            values["trace_id"] = new_trace_id(self.columns, self.using)

        def rows() -> models.QuerySet[Any]:
            healed = [Q(trace_id__isnull=True)] if heals else []
            found = rows_of(self.run, self.columns, self.using)
            return found.filter(Q(status__in=[source]), *guards, *healed)

        if guards:
            written = rows().update(**values)
        else:
            key = self.columns.pk_of(self.run)
            written = update_row(rows, (source, heals), self.columns, key, values, self.using)
        if not written:
            return False
        self._show(values)
        announce(self.run, source, self.target, self.columns, self.using)
        return True

    def _end(self, source: RunStatus) -> dict[str, Any]:
        """When the run ended and how long it took, if this copy is as new as its row."""
        if not self.target.is_terminal:
            return {}
        end: dict[str, Any] = {"completed_at": self.now}
        started_at = self.run.__dict__.get("started_at")
        if isinstance(started_at, datetime) and self.run.__dict__.get("status", source) == source:
            end["duration_ms"] = max(0, elapsed_ms(started_at, self.now))
        return self.columns.storable(end, self.using)

    def _new_metadata(self) -> dict[str, Any]:
        field = self.columns.fields["output_metadata"]
        return fit_object(self.metadata or {}, facts(field, connections[self.using]).max_bytes)

    def _show(self, values: Mapping[str, Any]) -> None:
        """Give the instance what was written; drop what the database computed."""
        for name, value in values.items():
            if hasattr(value, "resolve_expression"):
                self.run.__dict__.pop(name, None)
            else:
                setattr(self.run, name, value)
        note_written(self.run, held(self.run, values), self.using)

    def _read_again(self, *, locked: bool = False) -> None:
        deferred = self.run.get_deferred_fields()
        names = [
            name
            for name in LIFECYCLE
            if name in self.columns and (name in ("status", "trace_id") or name not in deferred)
        ]
        rows = type(self.run)._base_manager.using(self.using)
        try:
            with transaction.atomic(using=self.using) if locked else nullcontext():
                self.run.refresh_from_db(
                    using=self.using,
                    fields=names,
                    from_queryset=rows.select_for_update() if locked else rows.all(),
                )
        except type(self.run).DoesNotExist:
            raise RunNotFound(type(self.run), self.run.pk) from None


ROUNDS = 8
"""Statuses only move forward, so a row that is still elsewhere after this cannot be compared."""


def write_alias(run: models.Model) -> str:
    """The database that this run is written to; chosen here and passed to everything."""
    return router.db_for_write(type(run), instance=run)


def rows_of(run: models.Model, columns: RunColumns, using: str) -> models.QuerySet[Any]:
    """The run's row in the table that owns the status."""
    return columns.owner._base_manager.using(using).filter(pk=columns.pk_of(run))


def known_source(run: models.Model, sources: frozenset[RunStatus]) -> RunStatus:
    """The status to compare with first: this copy's if it may be left, else the likeliest."""
    held = run.__dict__.get("status")
    if held in sources:
        return RunStatus(held)
    likeliest = (RunStatus.RUNNING, RunStatus.PENDING, RunStatus.FAILED)
    return next(status for status in likeliest if status in sources)


def new_trace_id(columns: RunColumns, using: str) -> str:
    """A UUID, in its short form where the column is too short for the usual one."""
    made = uuid.uuid4()
    room = getattr(columns.fields["trace_id"], "max_length", None) or len(str(made))
    text = str(made) if room >= len(str(made)) else made.hex
    return str(as_stored(columns.fields["trace_id"], text, connections[using]))


def announce(
    run: AgentRunMixin,
    from_status: RunStatus,
    to_status: RunStatus,
    columns: RunColumns,
    using: str,
) -> None:
    """Send run_status_changed after the commit, with what is true now."""
    transaction.on_commit(
        partial(
            run_status_changed.send_robust,
            sender=columns.owner,
            run=run,
            from_status=from_status,
            to_status=to_status,
            trace_id=run.__dict__.get("trace_id"),
            using=using,
        ),
        using=using,
        robust=True,
    )
