"""JSON values that nobody changes from outside: they are copied in and out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from solid_runs.storable import DEEPEST, json_value


class Copied:
    """A field of a frozen dataclass that holds a JSON value, or None: cleaned, and a copy."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return None if instance is None else deepcopy(instance.__dict__[self.name])

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = json_value(value, max_depth=DEEPEST)
