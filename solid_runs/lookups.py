"""SELECTs that Django has compiled once, run again with other values.

Compiling one that finds a row by its key costs as much as running it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from django.db import connections, models


class Lookup(NamedTuple):
    text: str
    query: Any
    columns: list[Any]


def look_up(
    shape: Hashable,
    rows: Callable[[], models.QuerySet[Any, Any]],
    params: Sequence[Any],
    using: str,
) -> list[Sequence[Any]]:
    """The rows of a values_list(), by the statement of the first one of that ``shape``.

    Queries of one shape differ in nothing but their parameters, which stand in the order of their
    places. Those of which that is not true are left to Django.
    """
    key = (shape, using, connections[using].vendor)
    if key not in _known:
        _known[key] = _compiled(rows(), params, using)
    lookup = _known[key]
    if lookup is None:
        return list(rows())
    with connections[using].cursor() as cursor:
        cursor.execute(lookup.text, params)
        found = cursor.fetchall()
    compiler = lookup.query.get_compiler(using)  # of this thread's connection
    converters = compiler.get_converters(lookup.columns)
    return list(compiler.apply_converters(found, converters)) if converters else found


def _compiled(rows: models.QuerySet[Any, Any], params: Sequence[Any], using: str) -> Lookup | None:
    query: Any = rows.query
    compiler = query.get_compiler(using)
    text, compiled = compiler.as_sql()
    if [*compiled] != [*params]:
        return None
    return Lookup(text, query, [column for column, _, _ in compiler.select])


_known: Final[dict[Hashable, Lookup | None]] = {}
