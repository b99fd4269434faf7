"""Deleting many rows beside those who write them: in batches, and past what is locked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet

from solid_runs.event_logs.sql import take_lock

MOST_ATTEMPTS: Final = 5


def prune(
    rows: QuerySet[Any], along: str, batch_size: int, delete: Callable[[set[Any]], int]
) -> int:
    """Delete the rows in batches along ``along``, a column with an index; return how many.

    ``delete`` is given the keys of a batch that are locked and still among the rows, and says how
    many it deleted; each batch is a transaction. A row that somebody writes is passed over: to
    wait for it could be a deadlock.
    """
    return sum(
        _delete_patiently(rows.filter(pk__in=keys), delete)
        for keys in batches(rows, along, batch_size)
    )


def batches(rows: QuerySet[Any], along: str, size: int) -> Iterator[list[Any]]:
    """The keys of rows along a column and the key; what is passed over is not read again."""
    last: tuple[Any, Any] | None = None
    while True:
        rest = rows
        if last is not None:
            # The first condition is one that an index can begin at.
            rest = rows.filter(**{f"{along}__gte": last[0]})
            rest = rest.exclude(**{along: last[0], "pk__lte": last[1]})
        page = list(rest.order_by(along, "pk").values_list(along, "pk")[:size])
        if not page:
            return
        yield [key for _, key in page]
        last = page[-1]


def _delete_patiently(rows: QuerySet[Any], delete: Callable[[set[Any]], int]) -> int:
    """On MariaDB a deletion may be the victim of a deadlock with those who write meanwhile."""
    for attempt in range(1, MOST_ATTEMPTS):
        try:
            return _delete_locked(rows, delete)
        except OperationalError:
            if connections[rows.db].in_atomic_block:  # the caller's, which is undone
                raise
            time.sleep(0.05 * attempt)
    return _delete_locked(rows, delete)


def _delete_locked(rows: QuerySet[Any], delete: Callable[[set[Any]], int]) -> int:
    features = connections[rows.db].features
    with transaction.atomic(rows.db):
        take_lock(rows)
        locked = rows.select_for_update(skip_locked=features.has_select_for_update_skip_locked)
        return delete(set(locked.values_list("pk", flat=True)))
