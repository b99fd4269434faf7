"""What a copy of a run knows of its row: the lifecycle's columns as it last read or wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from django.db import models

from solid_runs.columns import LIFECYCLE
from solid_runs.fields import LOADED

SEEN: Final = "solid_runs_seen"
"""The attribute of ``instance._state``, copied and pickled with it, that keeps them."""


def remember(run: models.Model, names: Iterable[str] | None = None) -> None:
    """Note that the row holds what this copy holds: in these fields, or in all."""
    values = run.__dict__
    names = LIFECYCLE if names is None else list(names)
    if "status" in names and "status" in values:
        setattr(run._state, LOADED, values["status"])
    seen = {name: _fingerprint(values[name]) for name in names if name in values}
    setattr(run._state, SEEN, {**getattr(run._state, SEEN, {}), **seen})


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
