"""The one writer and the one reader of a model's event logs, wherever a run's entries are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db import models

from solid_runs.columns import AnyModel, RunColumns, columns_of
from solid_runs.event_logs.column import ColumnLog, numbered
from solid_runs.event_logs.sql import NOTHING, Assignments
from solid_runs.event_logs.table import TableLog
from solid_runs.events import Appended, Entry, Numbered
from solid_runs.exceptions import LogInTable


class EventLog:
    """The column log, and the table log where the model has opted in.

    A run has one source. Its counter tells which: null, and its entries are in the column; a
    number, and they are in the table, for good. Get it from event_log_of().
    """

    def __init__(self, model: AnyModel) -> None:
        self.columns = columns_of(model)
        self.column = ColumnLog(self.columns)
        table = self.columns.log_table
        self.table = None if table is None else TableLog(self.columns, table)

    def append(
        self,
        pk: Any,
        entries: Sequence[Entry],
        using: str,
        *,
        in_column: bool = False,
        also: Mapping[str, Any] | None = None,
    ) -> Appended:
        """Add the entries in one transaction.

        ``in_column``: the caller takes them to be in the column still. ``also`` are fields of the
        run's row to write with them. At the cap a marker is added once, and what does not fit is
        left out. RunNotFound when the row is gone, NotAList when its column holds no list,
        LogInTable when they are in a table that the model does not name.
        """
        others = Assignments(also, self.columns.fields, using) if also else NOTHING
        ways: list[ColumnLog | TableLog] = [self.column]
        if self.table is not None:
            # Somebody may move the entries in between: one way, and once.
            ways = [self.column, self.table] if in_column else [self.table, self.column, self.table]
        for log in ways:
            appended = log.append(pk, entries, using, others)
            if appended is not None:
                return appended
        raise LogInTable(self.columns.model, pk)

    def read_after(
        self, pk: Any, seq: int, using: str, limit: int | None = None, *, in_table: bool = False
    ) -> list[Numbered]:
        """The entries past ``seq``, as the database has them now, at most ``limit``.

        ``in_table``: the caller knows that they are in the table. RunNotFound when the row is gone.
        """
        if self.table is not None and in_table:
            found = self.table.read_after(pk, seq, using, limit)
            if found:
                return found
        stored, count = self.column.read(pk, using)
        if count is None:
            return numbered(stored, seq, limit)
        if self.table is None:
            raise LogInTable(self.columns.model, pk)
        if in_table:
            return []
        return self.table.read_after(pk, seq, using, limit)


def begin_log(run: models.Model, columns: RunColumns, using: str) -> None:
    """Say of a run that is about to get a row where its entries are: in the table, if it may.

    A run that brings entries in its column keeps them there until they are moved. A copy for
    another database counts what that one has of it.
    """
    log, counter = columns.log, columns.counter
    if run.pk is not None:
        getattr(run, log.attname)  # what it dropped when it appended is read from where that was
    if counter is None:
        return
    if run._state.adding and columns.log_key(run) is not None and not makes_its_own_key(run):
        # A child over a parent that is there: the log stays what it is.
        rows = log.model._base_manager.using(using).filter(pk=columns.log_key(run))
        for stored, count in rows.values_list(log.attname, counter.attname):
            setattr(run, log.attname, stored)
            setattr(run, counter.attname, count)
            return
    count = None
    table = columns.log_table
    if table is not None and not getattr(run, log.attname):
        count = 0
        if not run._state.adding and run.pk is not None:
            own = table.model._base_manager.using(using).filter(run=columns.log_key(run))
            count = own.aggregate(last=models.Max("seq"))["last"] or 0
    setattr(run, counter.attname, count)


def makes_its_own_key(run: models.Model) -> bool:
    """Whether Django takes a new object for a new row, whatever its key."""
    return run._meta.pk.has_default() or run._meta.pk.has_db_default()


@cache
def event_log_of(model: AnyModel) -> EventLog:
    return EventLog(model)
