"""Times in a column without a zone that holds UTC, as Rails writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    DateTimeBase = models.DateTimeField[str | datetime | None, Any]
else:
    DateTimeBase = models.DateTimeField


class UTCDateTimeField(DateTimeBase):
    """A datetime over a column that holds the wall clock of UTC and says no zone.

    With USE_TZ, values are aware and in UTC, and a naive value means UTC. Without it, values are
    naive in TIME_ZONE, read and written, as everywhere in Django. In either case
    ``timezone.now()`` is right and a value that was read is written back unchanged, whatever
    TIME_ZONE and the database's own TIME_ZONE say.

    The column stays bare in SQL for exact, ranges and ordering, so its index serves them.
    ``__date``, ``__hour`` and their like are asked in the current time zone; MySQL and MariaDB
    need their time zone tables for zones that change their clocks. ``Trunc`` and ``Extract`` in
    local time, ``Now()`` and values in arithmetic know nothing of the column: give them
    ``AsUTC("created_at")``. ``datetimes()`` and ``date_hierarchy`` cannot be given it.
    """

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        path = path.replace("solid_runs.fields.datetime.", "solid_runs.fields.")
        return name, path, list(args), kwargs

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if connection.vendor == "postgresql":
            return "timestamp(6) without time zone"
        return super().db_type(connection)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if not isinstance(value, datetime):
            return value
        if timezone.is_naive(value):
            instant = value.replace(tzinfo=UTC)
        elif connection.vendor != "postgresql" and value.tzinfo == connection.timezone:
            # The backend has put the database's TIME_ZONE on the wall clock: not so.
            instant = value.replace(tzinfo=UTC)
        else:
            instant = value.astimezone(UTC)
        return self.as_python(instant)

    def as_python(self, instant: datetime) -> datetime:
        """The value that a moment in UTC has in Python."""
        if settings.USE_TZ:
            return instant
        return instant.astimezone(timezone.get_default_timezone()).replace(tzinfo=None)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, datetime) or value is None:
            parsed = value
        elif hasattr(value, "year"):  # a date
            parsed = datetime(value.year, value.month, value.day)
        else:
            parsed = super().to_python(value)
        return None if parsed is None else self.as_python(as_instant(parsed))

    def get_prep_value(self, value: Any) -> Any:
        value = models.Field.get_prep_value(self, value)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return as_instant(self.to_python(value))

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        if not prepared:
            value = self.get_prep_value(value)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        wall = as_instant(value).replace(tzinfo=None)
        return connection.ops.adapt_datetimefield_value(wall)


def as_instant(value: datetime) -> datetime:
    """The moment, in UTC, that a value means in Python."""
    if timezone.is_naive(value):
        value = value.replace(tzinfo=UTC if settings.USE_TZ else timezone.get_default_timezone())
    return value.astimezone(UTC)


class InstantField(UTCDateTimeField):
    """A UTCDateTimeField whose values are aware and in UTC, whatever USE_TZ says."""

    def as_python(self, instant: datetime) -> datetime:
        return instant
