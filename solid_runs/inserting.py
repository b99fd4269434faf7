"""INSERTs that say what happens when the key is taken: one statement each, on every database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import IntegrityError, connections, models

from solid_runs.columns import AnyModel, Connection, column_of
from solid_runs.patience import past_deadlocks

DUPLICATE_KEY: Final = 1062
"""What MySQL and MariaDB call it."""


def insert_unless_taken(model: AnyModel, values: Mapping[str, Any], using: str) -> bool:
    """Insert a row and return True; False, with nothing written, where a unique key is taken.

    ``values``: by name of the field; one that is left out is null. An enclosing transaction goes on
    either way. Two that insert the same at once wait for each other, and one of them is told False.
    """
    text, params = _insert(model, values, using)
    with connections[using].cursor() as cursor:
        if connections[using].vendor != "mysql":
            cursor.execute(f"{text} ON CONFLICT DO NOTHING", params)
            return bool(cursor.rowcount)
        # INSERT IGNORE would also let through what does not fit, cut.
        try:
            past_deadlocks(lambda: cursor.execute(text, params), using)
        except IntegrityError as error:
            if error.args[0] != DUPLICATE_KEY:
                raise
            return False
        return True


def insert_or_touch(model: AnyModel, values: Mapping[str, Any], touched: str, using: str) -> None:
    """Insert a row, or set the field ``touched`` of the one with that primary key; lock it."""
    text, params = _insert(model, values, using)
    connection = connections[using]
    column, key = (quoted(model, name, connection) for name in (touched, model._meta.pk.name))
    if connection.vendor == "mysql":
        text += f" ON DUPLICATE KEY UPDATE {column} = VALUES({column})"
    else:
        text += f" ON CONFLICT ({key}) DO UPDATE SET {column} = excluded.{column}"
    with connection.cursor() as cursor:
        cursor.execute(text, params)


def _insert(model: AnyModel, values: Mapping[str, Any], using: str) -> tuple[str, list[Any]]:
    connection = connections[using]
    places: list[str] = []
    params: list[Any] = []
    for name, value in values.items():
        place, given = placed(model, name, value, connection)
        places.append(place)
        params += given
    return f"{_into(model, tuple(values), connection)} VALUES ({', '.join(places)})", params


def _into(model: AnyModel, names: tuple[str, ...], connection: Connection) -> str:
    columns = ", ".join(quoted(model, name, connection) for name in names)
    return f"INSERT INTO {connection.ops.quote_name(model._meta.db_table)} ({columns})"


def placed(
    model: AnyModel, name: str, value: Any, connection: Connection
) -> tuple[str, Sequence[Any]]:
    """What stands for the value of a field in a statement, and its parameters."""
    if hasattr(value, "as_sql"):
        text, params = value.as_sql(None, connection)
        return text, params
    field: models.Field[Any, Any] = model._meta.get_field(name)  # type: ignore[assignment]
    return "%s", [field.get_db_prep_save(value, connection)]


def quoted(model: AnyModel, name: str, connection: Connection) -> str:
    field: Any = model._meta.get_field(name)
    return str(connection.ops.quote_name(column_of(field)))
