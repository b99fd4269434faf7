"""Times in a column without a zone that holds UTC, as Rails writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import NotSupportedError, models
from django.db.models import functions
from django.db.models.expressions import Func
from django.db.models.lookups import YearExact, YearGt, YearGte, YearLt, YearLte
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

    DateTimeBase = models.DateTimeField[str | datetime | None, Any]
    SQL = tuple[str, tuple[Any, ...]]
else:
    DateTimeBase = models.DateTimeField


def local_zone() -> tzinfo:
    """The zone in which lookups such as ``__date`` are asked."""
    return timezone.get_current_timezone() if settings.USE_TZ else timezone.get_default_timezone()


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
        return as_python(instant)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, datetime) or value is None:
            parsed = value
        elif hasattr(value, "year"):  # a date
            parsed = datetime(value.year, value.month, value.day)
        else:
            parsed = super().to_python(value)
        return None if parsed is None else as_python(as_instant(parsed))

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


def as_python(instant: datetime) -> datetime:
    if settings.USE_TZ:
        return instant
    return instant.astimezone(timezone.get_default_timezone()).replace(tzinfo=None)


@cache
def fixed_offset(zone: tzinfo) -> timedelta | None:
    """The offset of a zone whose clocks were never changed since 2000, else None."""
    week, first = timedelta(days=7), datetime(2000, 1, 1)
    offsets = {zone.utcoffset(first + n * week) for n in range(38 * 52)}
    return offsets.pop() if len(offsets) == 1 else None


def zone_name(zone: tzinfo) -> str:
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    offset = zone.utcoffset(None)
    if offset is None:
        return str(zone)
    sign, minutes = ("-" if offset < timedelta(0) else "+"), abs(offset) // timedelta(minutes=1)
    return f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}"


def wall_clock(
    compiler: SQLCompiler, connection: BaseDatabaseWrapper, column: Any, zone: tzinfo
) -> SQL:
    """The SQL of what clocks in ``zone`` showed at a moment that a UTC column holds."""
    sql, params = compiler.compile(column)
    if connection.vendor == "postgresql":
        name = zone.key if isinstance(zone, ZoneInfo) else zone.utcoffset(None)
        return f"({sql} AT TIME ZONE 'UTC' AT TIME ZONE %s)", (*params, name)
    if zone_name(zone) in {"UTC", "UTC+00:00"}:
        return sql, params
    if connection.vendor == "sqlite":
        name = zone_name(zone)
        date = f"django_datetime_cast_date({sql}, %s, 'UTC')"
        time = f"django_datetime_cast_time({sql}, %s, 'UTC')"
        return f"({date} || ' ' || {time})", (*params, name, *params, name)
    offset = fixed_offset(zone)
    if offset is not None:
        return f"DATE_ADD({sql}, INTERVAL %s SECOND)", (*params, int(offset.total_seconds()))
    if not connection.features.has_zoneinfo_database:
        raise NotSupportedError(
            f"The database has no time zone tables, so it cannot tell dates and hours in "
            f"{zone_name(zone)}. Load them (mysql_tzinfo_to_sql), or filter with a range of "
            f"datetimes computed in Python."
        )
    return f"CONVERT_TZ({sql}, '+00:00', %s)", (*params, zone_name(zone))


class AsUTC(Func):
    """The moment in a UTC column, for expressions that expect a column of Django's own.

    ``TruncDay(AsUTC("created_at"))`` buckets in the current time zone, where
    ``TruncDay("created_at")`` would take the column's wall clock for local time.
    """

    arity = 1
    output_field = models.DateTimeField()

    template = "(%(expressions)s AT TIME ZONE 'UTC')"

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> SQL:
        # SQLite and MySQL take every column for the wall clock of the connection's zone.
        (column,) = self.get_source_expressions()
        return wall_clock(compiler, connection, column, ZoneInfo(connection.timezone_name))

    as_mysql = as_sqlite


class OnLocalWallClock:
    """Makes one of Django's date and time lookups right for a column that holds UTC."""

    lhs: Any
    lookup_name: str

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        sql, params = wall_clock(compiler, connection, self.lhs, local_zone())
        params = tuple(params)
        match self.lookup_name:
            case "date":
                return connection.ops.datetime_cast_date_sql(sql, params, None)
            case "time":
                return connection.ops.datetime_cast_time_sql(sql, params, None)
            case name:
                return connection.ops.datetime_extract_sql(name, sql, params, None)


class BetweenMidnights:
    """Makes a comparison of years compare the bare column with the ends of the local year."""

    lhs: Any

    def year_lookup_bounds(self, connection: BaseDatabaseWrapper, year: int) -> tuple[Any, Any]:
        iso = isinstance(self.lhs, functions.ExtractIsoYear)
        first, after = (
            datetime.fromisocalendar(number, 1, 1) if iso else datetime(number, 1, 1)
            for number in (year, year + 1)
        )
        bounds = (first, after - timedelta(microseconds=1))
        field, zone = self.lhs.lhs.output_field, local_zone()
        start, finish = (
            field.get_db_prep_value(bound.replace(tzinfo=zone), connection) for bound in bounds
        )
        return start, finish


for transform in (
    functions.ExtractYear,
    functions.ExtractIsoYear,
    functions.ExtractQuarter,
    functions.ExtractMonth,
    functions.ExtractWeek,
    functions.ExtractDay,
    functions.ExtractWeekDay,
    functions.ExtractIsoWeekDay,
    functions.ExtractHour,
    functions.ExtractMinute,
    functions.ExtractSecond,
    functions.TruncDate,
    functions.TruncTime,
):
    made = cast(
        "type[models.Transform]",
        type(f"UTC{transform.__name__}", (OnLocalWallClock, transform), {}),
    )
    UTCDateTimeField.register_lookup(made)
    if transform in (functions.ExtractYear, functions.ExtractIsoYear):
        for year in (YearExact, YearGt, YearGte, YearLt, YearLte):
            made.register_lookup(type(f"UTC{year.__name__}", (BetweenMidnights, year), {}))
