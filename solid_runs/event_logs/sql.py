"""What the two logs say alike in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import connections, models
from django.db.models import F

from solid_runs.columns import AnyField, AnyModel, Connection, column_of


def quoted(connection: Connection, name: str) -> str:
    """A name for a text that goes through parameter substitution."""
    return str(connection.ops.quote_name(name)).replace("%", "%%")


def key_param(model: AnyModel, pk: Any, connection: Connection) -> Any:
    return model._meta.pk.get_db_prep_value(pk, connection)


class Assignments:
    """Other fields of the run's row, which an append writes in the same statement."""

    def __init__(
        self, values: Mapping[str, Any], fields: Mapping[str, AnyField], using: str
    ) -> None:
        self.values, self.names = values, tuple(values)
        self.fields = [fields[name] for name in values]
        self.params = {
            f"set_{name}": fields[name].get_db_prep_save(value, connections[using])
            for name, value in values.items()
        }

    def text(self, connection: Connection) -> str:
        """What follows the first assignment of an UPDATE."""
        return "".join(
            f", {quoted(connection, column_of(field))} = %(set_{name})s"
            for name, field in zip(self.names, self.fields, strict=True)
        )


NOTHING: Final = Assignments({}, {}, "")


def take_lock(rows: models.QuerySet[Any]) -> None:
    """Lock the row where a locking read does not: on SQLite a write alone takes the lock."""
    if connections[rows.db].vendor == "sqlite":
        key = rows.model._meta.pk.attname
        rows.update(**{key: F(key)})
