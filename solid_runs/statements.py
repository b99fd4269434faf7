"""UPDATEs as SQL text: what Django has compiled once is run again with other values.

Compiling such an UPDATE costs more than running it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple

from django.db import connections, models, transaction
from django.db.models.sql import UpdateQuery

from solid_runs.columns import AnyField, Connection, RunColumns, fits


class Statement(NamedTuple):
    """An UPDATE whose parameters are the new values, the key, and then what never changes."""

    text: str
    constant: tuple[Any, ...]
    nulls: bool
    """Whether a null is a parameter; otherwise it stands in the text."""


def update_row(
    rows: Callable[[], models.QuerySet[Any]],
    guard: Hashable,
    columns: RunColumns,
    key: Any,
    values: Mapping[str, Any],
    using: str,
) -> int:
    """Do what ``rows().update(**values)`` does, by the same statement; return its row count.

    ``rows`` gives the row of the owner's table with the primary key ``key``, under conditions
    that ``guard`` names: for equal guards they are equal. Expressions, fields with placeholders
    of their own and rows of a host's own base manager are left to Django.
    """
    connection, meta = connections[using], columns.owner._meta
    params = plain_params(columns, values, connection)
    key = meta.pk.get_db_prep_value(key, connection)
    if params is None or not in_range(meta.pk, key, connection):
        return rows().update(**values)
    nulls = tuple(param is None for param in params)
    shape = (columns.owner, meta.db_table, using, connection.vendor, tuple(values), nulls, guard)
    if shape not in _known:
        _known[shape] = _compiled(rows(), columns, values, [*params, key], using)
    statement = _known[shape]
    if statement is None:
        return rows().update(**values)
    if not statement.nulls:
        params = [param for param in params if param is not None]
    with connection.cursor() as cursor:
        return execute(cursor, statement.text, (*params, key, *statement.constant))


def execute(cursor: Any, text: str, params: Any) -> int:
    """Run one statement, whose failure ends a transaction as one of Django's would."""
    if cursor.db.in_atomic_block:
        with transaction.mark_for_rollback_on_error(cursor.db.alias):
            cursor.execute(text, params)
    else:
        cursor.execute(text, params)
    return int(cursor.rowcount)


def plain_params(
    columns: RunColumns, values: Mapping[str, Any], connection: Connection
) -> list[Any] | None:
    """The values as parameters; None where one is an expression, or becomes one."""
    params = []
    for name, value in values.items():
        if hasattr(value, "resolve_expression"):
            return None
        param = columns.fields[name].get_db_prep_save(value, connection)
        if hasattr(param, "as_sql"):
            return None
        params.append(param)
    return params


def in_range(field: AnyField, key: Any, connection: Connection) -> bool:
    """Whether the column can hold the key; Django asks the database nothing where it cannot."""
    if not isinstance(key, int):
        return True
    return isinstance(field, models.IntegerField) and fits(field, key, connection)


def _compiled(
    rows: models.QuerySet[Any],
    columns: RunColumns,
    values: Mapping[str, Any],
    params: list[Any],
    using: str,
) -> Statement | None:
    """The statement of ``rows.update(**values)``; None if its parameters are not just these."""
    fields = [columns.fields[name] for name in values]
    if any(hasattr(field, name) for field in fields for name in PLACEHOLDERS):
        return None
    if type(columns.owner._base_manager) is not models.Manager:
        return None
    query: Any = rows.query.chain(UpdateQuery)
    query.add_update_values(values)
    text, compiled = query.get_compiler(using).as_sql()
    for given in (params, [param for param in params if param is not None]):
        if [*compiled[: len(given)]] == given:
            return Statement(text, tuple(compiled[len(given) :]), nulls=given is params)
    return None


PLACEHOLDERS: Final = ("get_placeholder", "get_placeholder_sql")

_known: Final[dict[Hashable, Statement | None]] = {}
