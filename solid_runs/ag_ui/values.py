"""Moments in UTC, out of what was given and stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from solid_runs import times
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.times import parse_moment


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with six digits and Z."""
    if moment is None:
        return None
    return aware(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def aware(moment: datetime) -> datetime:
    """A moment in UTC. A naive one means UTC, or local time where USE_TZ is off.

    Two of one zone would compare by the wall clock.
    """
    try:
        return times.aware(moment).astimezone(UTC)
    except OverflowError as error:
        raise ConfigurationError(f"{moment} is outside of the years 1 to 9999 in UTC.") from error


def moment(name: str, value: Any) -> datetime | None:
    """A moment out of what is stored, with any offset; ConfigurationError for what is none."""
    if value is None:
        return None
    read = value if isinstance(value, datetime) else parse_moment(value)
    if read is None:
        raise ConfigurationError(f"{name} is no ISO 8601 time: {value!r}.")
    return aware(read)
