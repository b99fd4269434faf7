"""What a copy of a run knows of its row: the lifecycle's columns as it read or wrote them.

Kept on ``instance._state``, so that it is copied and pickled with the instance; replaced, never
changed in place, so that two copies do not share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
PENDING: Final = "solid_runs_pending"
"""What was written in a transaction that may still be rolled back, each with its write's token."""
WRITTEN: Final = "solid_runs_written"
"""The database that this copy wrote to last."""
NOTES: Final[tuple[str, ...]] = (LOADED, SEEN, PENDING, WRITTEN)

Values = Mapping[str, Any]


def held(run: models.Model, names: Iterable[str] | None = None) -> Values:
    """What this copy holds in these of the lifecycle's fields, in a form that can be compared."""
    among = LIFECYCLE if names is None else set(LIFECYCLE).intersection(names)
    values = {name: run.__dict__[name] for name in among if name in run.__dict__}
    return {
        name: value if isinstance(value, UNCHANGING) else storable.compact_json(value)
        for name, value in values.items()
        if isinstance(value, UNCHANGING) or not hasattr(value, "resolve_expression")
    }


def unchanged(run: models.Model) -> set[str]:
    """The fields that hold what the row held; the status and the moving time are left out."""
    seen = getattr(run._state, SEEN, {})
    same = {name for name, value in held(run, seen).items() if seen[name] == value}
    return same - {"status", "updated_at"}


def is_unsure(run: models.Model) -> bool:
    """Whether the status was written in a transaction whose end this copy has not seen."""
    return "status" in getattr(run._state, PENDING, {})


def known_status(run: models.Model, default: Any = None) -> Any:
    """The status that this copy read or wrote last."""
    pending = getattr(run._state, PENDING, {})
    if "status" in pending:
        return pending["status"][1]
    return getattr(run._state, LOADED, default)


def note_read(run: models.Model, names: Iterable[str] | None = None) -> None:
    """The row holds what this copy now holds; what it wrote in this transaction stays unsure."""
    values, pending = held(run, names), getattr(run._state, PENDING, {})
    own = getattr(run._state, WRITTEN, None)
    if own is not None and connections[own].in_atomic_block:
        unsure = {name: (pending[name][0], values[name]) for name in values if name in pending}
        setattr(run._state, PENDING, {**pending, **unsure})
        values = {name: value for name, value in values.items() if name not in unsure}
    settle(run, values)


def note_written(run: models.Model, values: Values, using: str) -> None:
    """The row holds ``values``, unless a transaction takes them back: then it is not known.

    The next save writes what is not known again, and asks the row for a status that is not.
    """
    setattr(run._state, WRITTEN, using)
    if not connections[using].in_atomic_block:
        settle(run, values)
        return
    token = object()
    pending = {name: (token, value) for name, value in values.items()}
    seen = getattr(run._state, SEEN, {})
    setattr(run._state, SEEN, {name: seen[name] for name in seen if name not in values})
    setattr(run._state, PENDING, {**getattr(run._state, PENDING, {}), **pending})
    transaction.on_commit(partial(_commit, run, token), using=using, robust=True)


def note_place(run: models.Model, using: str) -> None:
    """Something was written there that is none of the lifecycle's."""
    setattr(run._state, WRITTEN, using)


@contextmanager
def noted(run: models.Model, values: Values, using: str) -> Iterator[None]:
    """Note what the block is about to write, so that receivers inside it know; unless it fails."""
    state = vars(run._state)
    before: Values = {name: state[name] for name in NOTES if name in state}
    note_written(run, values, using)
    try:
        yield
    except BaseException:
        for name in NOTES:
            state.pop(name, None)
        state.update(before)
        raise


def _commit(run: models.Model, token: object) -> None:
    """What nothing newer has replaced since is certain now."""
    pending = getattr(run._state, PENDING, {})
    settle(run, {name: value for name, (own, value) in pending.items() if own is token})


def settle(run: models.Model, values: Values) -> None:
    """The row holds ``values`` for certain."""
    pending = getattr(run._state, PENDING, {})
    setattr(run._state, SEEN, {**getattr(run._state, SEEN, {}), **values})
    setattr(run._state, PENDING, {name: pending[name] for name in pending if name not in values})
    if "status" in values:
        setattr(run._state, LOADED, values["status"])


UNCHANGING: Final = (str, type(None), int, date, float, time, Decimal, UUID)
"""Values of any other type can change inside: their text is kept."""
