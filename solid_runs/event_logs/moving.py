"""Moving logs from their column into the table, while writers go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from django.db import connections, models, router, transaction
from django.db.models import Value

from solid_runs.columns import AnyModel
from solid_runs.event_logs.log import event_log_of
from solid_runs.event_logs.sql import take_lock
from solid_runs.events import as_entries
from solid_runs.exceptions import InvalidUsage

TRANSACTION_ENTRIES: Final = 5_000
"""A transaction that has moved so many ends, however few runs they were of."""
STATEMENT_ENTRIES: Final = 500


class Moved(NamedTuple):
    """What move_events() did. ``refused`` are the keys of runs whose column holds no list."""

    runs: int
    entries: int
    refused: list[Any]


def move_events(
    model: AnyModel,
    *,
    using: str | None = None,
    batch_size: int = 100,
    progress: Callable[[int], object] | None = None,
) -> Moved:
    """Move the entries of every run into the table, where they take 1 to n.

    Each run is moved whole or not at all, so this may be broken off and called again. Writers may
    go on, if they know of the table: deploy ``events_model`` first. A transaction takes at most
    ``batch_size`` runs, and none that somebody else has locked; those are waited for at the end,
    one by one. ``progress`` is called with the number of runs that have been looked at.
    """
    if batch_size < 1:
        raise InvalidUsage("batch_size must be 1 or more.")
    move = Move(model, using or router.db_for_write(model))
    skip_locked = bool(connections[move.using].features.has_select_for_update_skip_locked)
    last = None
    while keys := list(move.waiting(after=last)[:batch_size]):
        move.together(keys, skip_locked=skip_locked)
        last = keys[-1]
        if progress is not None:
            progress(len(keys))
    for key in move.waiting().exclude(pk__in=move.refused):
        move.together([key])
    return Moved(move.runs, move.entries, move.refused)


class Move:
    """What is moved on one database, and how far it has come."""

    def __init__(self, model: AnyModel, using: str) -> None:
        log = event_log_of(model)
        if log.table is None:
            raise InvalidUsage(
                f"{model.__name__} has no table to move its log into: set events_model on it to "
                f"the name of a model made from AbstractRunEvent, and migrate."
            )
        self.using, self.column, self.table = using, log.column.field, log.table.table
        self.runs = self.entries = 0
        self.refused: list[Any] = []

    def waiting(self, after: Any = None) -> models.QuerySet[Any, Any]:
        """The keys of the runs whose entries are still in the column, in order."""
        rows = self._rows().order_by("pk").values_list("pk", flat=True)
        return rows if after is None else rows.filter(pk__gt=after)

    def together(self, keys: Sequence[Any], *, skip_locked: bool = False) -> None:
        """Move these runs, in one transaction unless it becomes a long one."""
        waiting = deque(keys)
        while waiting:
            moved = 0
            with transaction.atomic(using=self.using):
                while waiting and moved < TRANSACTION_ENTRIES:
                    moved += self._move_run(waiting.popleft(), skip_locked)

    def _move_run(self, key: Any, skip_locked: bool) -> int:
        rows = self._rows().filter(pk=key)
        take_lock(rows)
        locked = rows.select_for_update(skip_locked=skip_locked)
        for stored in locked.values_list(self.column.attname, flat=True):
            entries = as_entries(stored)
            if not entries and stored not in (None, "", "[]", []):
                self.refused.append(key)
                return 0
            self.table.model._base_manager.using(self.using).bulk_create(
                [self._entry(key, seq, entry) for seq, entry in enumerate(entries, 1)],
                batch_size=STATEMENT_ENTRIES,
            )
            empty: list[Any] | None = None if self.column.null else []
            rows.update(**{self.table.counter.attname: len(entries), self.column.attname: empty})
            self.runs += 1
            self.entries += len(entries)
            return len(entries)
        return 0

    def _entry(self, key: Any, seq: int, entry: Any) -> models.Model:
        if entry is None:
            entry = Value(None, models.JSONField())  # a JSON null, not an SQL one
        return self.table.model(**{self.table.run.attname: key}, seq=seq, entry=entry)

    def _rows(self) -> models.QuerySet[Any]:
        unmoved = {f"{self.table.counter.attname}__isnull": True}
        return self.column.model._base_manager.using(self.using).filter(**unmoved)
