"""The database's own clock, in the form that columns of UTC hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Func

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
