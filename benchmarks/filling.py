"""Many rows at once, made by the database alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections


def fill(
    model: Any,
    values: Mapping[str, str],
    first: int,
    last: int,
    using: str = DEFAULT_DB_ALIAS,
) -> None:
    """Insert a row for each number. ``values``: an SQL expression over ``n`` for each column."""
    connection = connections[using]
    table = connection.ops.quote_name(model._meta.db_table)
    series = SERIES[connection.vendor].format(first=first, last=last)
    chosen = ", ".join(values.values())
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({', '.join(values)}) SELECT {chosen} FROM {series}")


SERIES: Final = {
    "postgresql": "generate_series({first}, {last}) AS n",
    "mysql": "(SELECT seq AS n FROM seq_{first}_to_{last}) AS numbers",
    "sqlite": (
        "(WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL"
        " SELECT n + 1 FROM numbers WHERE n < {last}) SELECT n FROM numbers)"
    ),
}


def numbered(text: str, number: str, using: str = DEFAULT_DB_ALIAS) -> str:
    """The SQL of a text with a number behind it."""
    joined = "CONCAT('{}', {})" if connections[using].vendor == "mysql" else "'{}' || {}"
    return joined.format(text, number)


def divided(number: str, by: int, using: str = DEFAULT_DB_ALIAS) -> str:
    """The SQL of a whole number that is divided, and rounded down."""
    whole = "FLOOR({} / {})" if connections[using].vendor == "mysql" else "({} / {})"
    return whole.format(number, by)
