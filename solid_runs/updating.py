"""UPDATEs of rows that a few conditions find, without what it costs Django to compile one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections

from solid_runs.columns import AnyModel
from solid_runs.inserting import placed, quoted
from solid_runs.patience import past_deadlocks
from solid_runs.statements import execute


def update_where(
    model: AnyModel,
    values: Mapping[str, Any],
    conditions: Sequence[tuple[str, Sequence[Any]]],
    using: str,
) -> int:
    """Write the values, by name of the field, where all of the conditions hold; the row count.

    A condition is a text of SQL that every database takes, with its parameters.
    """
    connection = connections[using]
    places: list[str] = []
    params: list[Any] = []
    for name, value in values.items():
        place, given = placed(model, name, value, connection)
        places.append(f"{quoted(model, name, connection)} = {place}")
        params += given
    table = connection.ops.quote_name(model._meta.db_table)
    where = " AND ".join(text for text, _ in conditions)
    for _, given in conditions:
        params += given
    text = f"UPDATE {table} SET {', '.join(places)} WHERE {where}"  # noqa: S608  # values are apart

    def update() -> int:
        with connection.cursor() as cursor:
            return execute(cursor, text, params)

    return past_deadlocks(update, using)
