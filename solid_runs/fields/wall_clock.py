"""Dates and hours of a column that holds UTC, as clocks show them elsewhere."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import NotSupportedError, models
from django.db.models import functions, lookups
from django.db.models.expressions import Func
from django.utils import timezone

from solid_runs.fields.datetime import UTCDateTimeField

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

    SQL = tuple[str, tuple[Any, ...]]


def local_zone() -> tzinfo:
    """The zone in which lookups such as ``__date`` are asked."""
    return timezone.get_current_timezone() if settings.USE_TZ else timezone.get_default_timezone()


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
        if isinstance(zone, ZoneInfo):
            return f"({sql} AT TIME ZONE 'UTC' AT TIME ZONE %s)", (*params, zone.key)
        return f"({sql} + %s)", (*params, zone.utcoffset(None))
    if zone_name(zone) in {"UTC", "UTC+00:00"}:
        return sql, params
    if connection.vendor == "sqlite":
        name = zone_name(zone)
        day = f"django_datetime_cast_date({sql}, %s, 'UTC')"
        clock = f"django_datetime_cast_time({sql}, %s, 'UTC')"
        return f"({day} || ' ' || {clock})", (*params, name, *params, name)
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


class OnLocalWallClock(models.Transform):
    """Makes one of Django's date and time lookups right for a column that holds UTC."""

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **extra: Any
    ) -> SQL:
        sql, params = wall_clock(compiler, connection, self.lhs, local_zone())
        params = tuple(params)
        match self.lookup_name:
            case "date":
                return connection.ops.datetime_cast_date_sql(sql, params, None)
            case "time":
                return connection.ops.datetime_cast_time_sql(sql, params, None)
            case name:
                return connection.ops.datetime_extract_sql(name, sql, params, None)


class BetweenMidnights(lookups.YearLookup):
    """Makes a comparison of years compare the bare column with the ends of the local year."""

    def year_lookup_bounds(self, connection: BaseDatabaseWrapper, year: int) -> list[Any]:
        if isinstance(self.lhs, functions.ExtractIsoYear):
            first = datetime.fromisocalendar(year, 1, 1)
            last = datetime.fromisocalendar(year + 1, 1, 1) - timedelta(days=1)
        else:
            first, last = datetime(year, 1, 1), datetime(year, 12, 31)
        bounds = (first, datetime.combine(last, time.max))
        field, zone = self.lhs.lhs.output_field, local_zone()
        return [field.get_db_prep_value(bound.replace(tzinfo=zone), connection) for bound in bounds]


# Classes with names of their own, so that querysets which use them can be pickled.


class UTCYearExact(BetweenMidnights, lookups.YearExact): ...


class UTCYearGt(BetweenMidnights, lookups.YearGt): ...


class UTCYearGte(BetweenMidnights, lookups.YearGte): ...


class UTCYearLt(BetweenMidnights, lookups.YearLt): ...


class UTCYearLte(BetweenMidnights, lookups.YearLte): ...


@UTCDateTimeField.register_lookup
class UTCExtractYear(OnLocalWallClock, functions.ExtractYear): ...


@UTCDateTimeField.register_lookup
class UTCExtractIsoYear(OnLocalWallClock, functions.ExtractIsoYear): ...


@UTCDateTimeField.register_lookup
class UTCExtractQuarter(OnLocalWallClock, functions.ExtractQuarter): ...


@UTCDateTimeField.register_lookup
class UTCExtractMonth(OnLocalWallClock, functions.ExtractMonth): ...


@UTCDateTimeField.register_lookup
class UTCExtractWeek(OnLocalWallClock, functions.ExtractWeek): ...


@UTCDateTimeField.register_lookup
class UTCExtractDay(OnLocalWallClock, functions.ExtractDay): ...


@UTCDateTimeField.register_lookup
class UTCExtractWeekDay(OnLocalWallClock, functions.ExtractWeekDay): ...


@UTCDateTimeField.register_lookup
class UTCExtractIsoWeekDay(OnLocalWallClock, functions.ExtractIsoWeekDay): ...


@UTCDateTimeField.register_lookup
class UTCExtractHour(OnLocalWallClock, functions.ExtractHour): ...


@UTCDateTimeField.register_lookup
class UTCExtractMinute(OnLocalWallClock, functions.ExtractMinute): ...


@UTCDateTimeField.register_lookup
class UTCExtractSecond(OnLocalWallClock, functions.ExtractSecond): ...


@UTCDateTimeField.register_lookup
class UTCTruncDate(OnLocalWallClock, functions.TruncDate): ...


@UTCDateTimeField.register_lookup
class UTCTruncTime(OnLocalWallClock, functions.TruncTime): ...


for year in (UTCYearExact, UTCYearGt, UTCYearGte, UTCYearLt, UTCYearLte):
    UTCExtractYear.register_lookup(year)
    UTCExtractIsoYear.register_lookup(year)
