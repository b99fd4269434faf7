"""The database's own clock, in the form that columns of UTC hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import BigIntegerField, Func

from solid_runs.fields import InstantField

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class DatabaseNow(Func):
    """What the clock of the database shows, ``ago`` before the statement began.

    Leases and signs of life are written and judged by it, since the clocks of workers differ.
    """

    arity = 0
    output_field = InstantField()

    def __init__(self, ago: timedelta = timedelta(0)) -> None:
        self.ago = ago
        super().__init__()

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **extra: Any
    ) -> tuple[str, tuple[Any, ...]]:
        text, shift = CLOCKS[connection.vendor]
        return text, (shift(self.ago),)


class DatabaseMilliseconds(Func):
    """The same clock as whole milliseconds since 1970, so many of them ``ahead``."""

    arity = 0
    output_field: Any = BigIntegerField()

    def __init__(self, ahead: int = 0) -> None:
        self.ahead = ahead
        super().__init__()

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **extra: Any
    ) -> tuple[str, tuple[Any, ...]]:
        return f"({MILLISECONDS[connection.vendor]} + %s)", (self.ahead,)


def database_milliseconds(connection: BaseDatabaseWrapper) -> int:
    """What that clock shows now."""
    text, params = DatabaseMilliseconds().as_sql(None, connection)  # type: ignore[arg-type]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {text}", params)
        return int(cursor.fetchone()[0])


CLOCKS: Final[dict[str, tuple[str, Callable[[timedelta], Any]]]] = {
    "postgresql": (
        "((statement_timestamp() AT TIME ZONE 'UTC') - %s)",
        lambda ago: ago,
    ),
    "mysql": (
        "(UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND)",
        lambda ago: ago // timedelta(microseconds=1),
    ),
    "sqlite": (
        "(strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s) || '000')",
        lambda ago: f"{-ago.total_seconds():.6f} seconds",
    ),
}
"""The text of each vendor's clock, and the parameter that sets it back."""

MILLISECONDS: Final = {
    "postgresql": "floor(extract(epoch from statement_timestamp()) * 1000)::bigint",
    "mysql": "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
    "sqlite": (
        "(CAST(strftime('%%s', 'now') AS INTEGER) * 1000"
        " + CAST(substr(strftime('%%f', 'now'), 4) AS INTEGER))"
    ),
}
