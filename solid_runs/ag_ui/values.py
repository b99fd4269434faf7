"""Values that nobody changes from outside: nested ones are copied in and out."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from solid_runs import times
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.storable import DEEPEST, json_value
from solid_runs.times import parse_moment


class Copied:
    """A field of a frozen dataclass that holds a JSON value, or None: cleaned, and a copy."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return None if instance is None else deepcopy(instance.__dict__[self.name])

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = json_value(value, max_depth=DEEPEST)


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
