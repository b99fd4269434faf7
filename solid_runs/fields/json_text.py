"""JSON as text, of any depth, that no database looks into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    TextBase = models.TextField[Any, Any]
else:
    TextBase = models.TextField


class JSONTextField(TextBase):
    """A JSON value, null for None, in a text column.

    It comes back as it was put in: numbers keep their text, keys their order, and the depth that
    the JSON functions of MariaDB allow does not matter. It is stored in ASCII, so that the
    character set of the column does not matter either. There are no lookups inside of it. Text that
    is no JSON comes back as it stands there.
    """

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, path, args, kwargs = super().deconstruct()
        return (
            name,
            path.replace("solid_runs.fields.json_text.", "solid_runs.fields."),
            args,
            kwargs,
        )

    def get_prep_value(self, value: Any) -> Any:
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return json.dumps(value, separators=(",", ":"))

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is None:
            return None
        try:
            return json.loads(value)
        except ValueError:  # what somebody else wrote there; one such row must not hide the others
            return value

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: Any) -> str:
        return self.value_from_object(obj)  # type: ignore[no-any-return]  # dumpdata writes JSON
