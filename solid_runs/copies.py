"""What a copy of a run knows of its row: the lifecycle's columns as it last read or wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from django.db import connections, models, transaction

from solid_runs.columns import LIFECYCLE
from solid_runs.fields import LOADED

SEEN: Final = "solid_runs_seen"
"""The attribute of ``instance._state``, copied and pickled with it, that keeps them."""


WRITTEN: Final = "solid_runs_written"
"""The attribute of ``instance._state`` with the database that this copy wrote to last."""


def remember_read(run: models.Model, names: Iterable[str] | None = None) -> None:
    """Note that this copy holds what the row holds: in these fields, or in all."""
    _remember(run, _held(run, names))


def remember_written(run: models.Model, names: Iterable[str] | None, using: str) -> None:
    """The same after a write, once it is committed: what a rollback takes back is not known.

    The status is noted at once; the next transition is decided by the row in any case.
    """
    setattr(run._state, WRITTEN, using)
    held = _held(run, names)
    if connections[using].in_atomic_block:
        seen = getattr(run._state, SEEN, {})
        setattr(run._state, SEEN, {name: seen[name] for name in seen if name not in held})
        _remember(run, {"status": held["status"]} if "status" in held else {})
        transaction.on_commit(partial(_remember, run, held), using=using, robust=True)
    else:
        _remember(run, held)


def _held(run: models.Model, names: Iterable[str] | None) -> dict[str, Any]:
    values = run.__dict__
    return {
        name: _fingerprint(values[name])
        for name in (LIFECYCLE if names is None else names)
        if name in values
    }


def _remember(run: models.Model, held: Mapping[str, Any]) -> None:
    if "status" in held:
        setattr(run._state, LOADED, held["status"])
    setattr(run._state, SEEN, {**getattr(run._state, SEEN, {}), **held})


def unchanged(run: models.Model) -> set[str]:
    """The fields that hold what was read; the status and the moving time are decided elsewhere."""
    seen, values = getattr(run._state, SEEN, {}), run.__dict__
    return {
        name
        for name, known in seen.items()
        if name not in ("status", "updated_at")
        and name in values
        and _fingerprint(values[name]) == known
    }


def _fingerprint(value: Any) -> Any:
    """The value, or the text of one that can change inside."""
    return json.dumps(value, default=repr) if isinstance(value, (dict, list)) else value
