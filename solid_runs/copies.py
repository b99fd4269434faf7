"""What a copy of a run knows of its row: the lifecycle's columns as it read or wrote them.

Kept on ``instance._state``, so that it is copied and pickled with the instance; replaced, never
changed in place, so that two copies do not share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connections, models, transaction

from solid_runs import storable
from solid_runs.columns import LIFECYCLE
from solid_runs.fields import LOADED

SEEN: Final = "solid_runs_seen"
"""The columns that the row is known to hold as this copy had them."""
UNSURE: Final = "solid_runs_unsure"
"""The status that was written or read in a transaction that may still be rolled back."""
WRITTEN: Final = "solid_runs_written"
"""The database that this copy wrote to last."""

Values = Mapping[str, Any]


def held(run: models.Model, names: Iterable[str] | None = None) -> Values:
    """What this copy holds in these of the lifecycle's fields, in a form that can be compared."""
    values = run.__dict__
    among = LIFECYCLE if names is None else set(LIFECYCLE).intersection(names)
    return {
        name: _fingerprint(values[name])
        for name in among
        if name in values and not hasattr(values[name], "resolve_expression")
    }


def unchanged(run: models.Model) -> set[str]:
    """The fields that hold what the row held; the status and the moving time are left out."""
    seen = getattr(run._state, SEEN, {})
    same = {name for name, value in held(run, seen).items() if seen[name] == value}
    return same - {"status", "updated_at"}


def note_read(run: models.Model, names: Iterable[str] | None = None) -> None:
    """The row holds what this copy now holds; what it wrote in this transaction stays unsure."""
    values, seen = held(run, names), getattr(run._state, SEEN, {})
    own = getattr(run._state, WRITTEN, None)
    unsure = own is not None and connections[own].in_atomic_block
    if unsure:
        values = {name: value for name, value in values.items() if name in seen}
    setattr(run._state, SEEN, {**seen, **values})
    if "status" in run.__dict__ and (names is None or "status" in names):
        status = run.__dict__["status"]
        if unsure and hasattr(run._state, UNSURE):
            setattr(run._state, UNSURE, status)
        else:
            _settle(run, status)


def note_written(run: models.Model, values: Values, using: str) -> None:
    """The row holds ``values``, unless a transaction takes them back: then it is not known.

    The next save writes what is not known again, and asks the row for a status that is not.
    """
    setattr(run._state, WRITTEN, using)
    seen = getattr(run._state, SEEN, {})
    if not connections[using].in_atomic_block:
        setattr(run._state, SEEN, {**seen, **values})
        if "status" in values:
            _settle(run, values["status"])
        return
    setattr(run._state, SEEN, {name: seen[name] for name in seen if name not in values})
    if "status" in values:
        setattr(run._state, UNSURE, values["status"])
        settle = partial(_settle_committed, run, values["status"])
        transaction.on_commit(settle, using=using, robust=True)


def note_inserted(run: models.Model, values: Values, using: str) -> None:
    """The same for a new row. Its status is certain: a rollback takes the whole row back."""
    note_written(run, {name: value for name, value in values.items() if name != "status"}, using)
    if "status" in values:
        _settle(run, values["status"])


def _settle(run: models.Model, status: Any) -> None:
    setattr(run._state, LOADED, status)
    vars(run._state).pop(UNSURE, None)


def _settle_committed(run: models.Model, status: Any) -> None:
    if getattr(run._state, UNSURE, None) == status:
        _settle(run, status)


UNCHANGING: Final = (str, int, float, bool, date, time, Decimal, UUID, type(None))


def _fingerprint(value: Any) -> Any:
    """The value, or the text of one that can change inside."""
    return value if isinstance(value, UNCHANGING) else storable.compact_json(value)
