from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from datetime import timezone as fixed
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import NotSupportedError, connection, connections, models
from django.db.migrations.writer import MigrationWriter
from django.db.models import Count, DurationField, ExpressionWrapper, F, Max, Min, Q, Value
from django.db.models.functions import ExtractHour, Trunc, TruncDate, TruncDay, TruncHour
from django.forms import modelform_factory
from django.test import override_settings
from django.utils import timezone

from solid_runs.fields import AsUTC, UTCDateTimeField
from tests.field_models import (
    VENDOR,
    RailsGeneratorRun,
    RailsJSONRun,
    RailsRun,
    Times,
    create_tables,
)

pytestmark = pytest.mark.django_db
TOKYO, NEW_YORK = ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")


@pytest.fixture(scope="module", autouse=True)
def tables(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection)


@contextmanager
def zones(use_tz: bool, time_zone: str, database: str | None) -> Iterator[None]:
    """Settings as a host could have them, the database's own TIME_ZONE included."""
    before = connection.settings_dict["TIME_ZONE"]

    def forget() -> None:
        for name in ("timezone", "timezone_name"):
            vars(connections["default"]).pop(name, None)
        connection.ensure_timezone()

    with override_settings(USE_TZ=use_tz, TIME_ZONE=time_zone):
        connection.settings_dict["TIME_ZONE"] = database
        try:
            forget()
            yield
        finally:
            connection.settings_dict["TIME_ZONE"] = before
            forget()
    forget()


SETTINGS = [
    (use_tz, time_zone, database)
    for use_tz in (True, False)
    for time_zone in ("Asia/Tokyo", "UTC", "America/New_York")
    for database in (None, "America/New_York", "Asia/Tokyo")
    if use_tz or not database
]


@pytest.fixture(params=SETTINGS, ids=lambda s: f"{'aware' if s[0] else 'naive'}-{s[1]}-{s[2]}")
def anywhere(request: pytest.FixtureRequest) -> Iterator[None]:
    with zones(*request.param):
        yield


def python(moment: datetime) -> datetime:
    """What a moment is in Python under the settings of the test."""
    from django.conf import settings

    if settings.USE_TZ:
        return moment
    return moment.astimezone(ZoneInfo(settings.TIME_ZONE)).replace(tzinfo=None)


def local(moment: datetime) -> datetime:
    """The wall clock at a moment where the settings of the test are."""
    from django.conf import settings

    return moment.astimezone(ZoneInfo(settings.TIME_ZONE)).replace(tzinfo=None)


def insert(*stored: str | None) -> list[int]:
    """Rows as somebody else wrote them: on SQLite with no fraction or one of six digits."""
    keys = []
    if VENDOR == "sqlite":
        stored = tuple(text and (f"{text:0<26}" if "." in text else text) for text in stored)
    with connection.cursor() as cursor:
        for text in stored:
            cursor.execute(
                "INSERT INTO field_times (at, made, touched) VALUES (%s, %s, %s)",
                [text, "2026-01-15 09:30:00", "2026-01-15 09:30:00"],
            )
            cursor.execute("SELECT max(id) FROM field_times")
            keys.append(cursor.fetchone()[0])
    return keys


def stored(pk: int, column: str = "at", table: str = "field_times") -> str | None:
    """The text in the column."""
    kind = "char" if VENDOR == "mysql" else "text"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT CAST({column} AS {kind}) FROM {table} WHERE id = %s", [pk])
        text = cursor.fetchone()[0]
    return text and (text.rstrip("0").rstrip(".") if "." in text else text)


MOMENTS = {
    "2026-01-14 14:59:59.999999": datetime(2026, 1, 14, 14, 59, 59, 999999, UTC),
    "2026-01-14 15:00:00": datetime(2026, 1, 14, 15, tzinfo=UTC),  # midnight in Tokyo
    "2026-01-14 23:59:59.5": datetime(2026, 1, 14, 23, 59, 59, 500000, UTC),
    "2026-01-15 00:00:00": datetime(2026, 1, 15, tzinfo=UTC),
    "2025-12-31 15:00:00": datetime(2025, 12, 31, 15, tzinfo=UTC),  # new year in Tokyo
    "2026-01-01 05:00:00": datetime(2026, 1, 1, 5, tzinfo=UTC),  # new year in New York
    "2026-01-01 04:59:59": datetime(2026, 1, 1, 4, 59, 59, tzinfo=UTC),
    "2026-11-01 05:30:00": datetime(2026, 11, 1, 5, 30, tzinfo=UTC),  # 01:30 in New York, and
    "2026-11-01 06:30:00": datetime(2026, 11, 1, 6, 30, tzinfo=UTC),  # 01:30 once more
    "2026-07-01 00:30:00": datetime(2026, 7, 1, 0, 30, tzinfo=UTC),
}


# Reading and writing


@pytest.mark.parametrize("model", [RailsRun, RailsJSONRun, RailsGeneratorRun])
def test_the_times_that_rails_wrote_are_read_and_written_back_as_they_were(model, anywhere):
    run = model.objects.get(pk=4)
    assert run.started_at == python(datetime(2026, 1, 15, 9, 30, 30, tzinfo=UTC))
    assert run.completed_at == python(datetime(2026, 1, 15, 9, 30, 31, 500000, UTC))
    run.save(update_fields=["started_at", "completed_at"])
    model.objects.bulk_update([run], ["started_at", "completed_at"])
    table = model._meta.db_table
    assert stored(4, "started_at", table) == "2026-01-15 09:30:30"
    assert stored(4, "completed_at", table) == "2026-01-15 09:30:31.5"
    assert model.objects.get(pk=1).started_at is None
    assert model.objects.get(created_at=run.created_at) == run


def test_a_moment_makes_the_round_trip_both_ways(anywhere):
    keys = insert(*MOMENTS)
    for pk, (text, moment) in zip(keys, MOMENTS.items(), strict=True):
        row = Times.objects.get(pk=pk)
        assert row.at == python(moment)
        assert row.at.tzinfo is python(moment).tzinfo
        assert Times.objects.values_list("at", flat=True).get(pk=pk) == python(moment)
        row.until = row.at
        row.save()
        assert stored(pk) == stored(pk, "until") == text
        made = Times.objects.create(at=python(moment))
        bulk = Times.objects.bulk_create([Times(at=row.at)])[0]
        updated = Times.objects.create()
        Times.objects.filter(pk=updated.pk).update(at=row.at)
        assert [stored(other.pk) for other in (bulk, updated)] == [text] * 2
        if (moment.month, moment.hour) != (11, 6):  # naive, this half hour comes twice
            assert stored(made.pk) == text


def test_sqlite_and_rails_write_the_same_text():
    if VENDOR != "sqlite":
        pytest.skip("the other databases have a type for it")
    row = Times.objects.create(
        at=datetime(2026, 1, 15, 9, 30, tzinfo=UTC),
        until=datetime(2026, 1, 15, 9, 30, 0, 500000, UTC),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT CAST(at AS text), CAST(until AS text), typeof(at) FROM field_times "
            "WHERE id = %s",
            [row.pk],
        )
        assert cursor.fetchone() == ("2026-01-15 09:30:00", "2026-01-15 09:30:00.500000", "text")


def test_timezone_now_is_written_right(anywhere):
    before = datetime.now(UTC)
    row = Times.objects.create(at=timezone.now())
    row.refresh_from_db()
    for name in ("at", "made", "touched"):
        value = datetime.fromisoformat(stored(row.pk, name)).replace(tzinfo=UTC)
        assert before <= value <= datetime.now(UTC)
        assert abs(timezone.now() - getattr(row, name)) < timedelta(minutes=1)
    assert Times.objects.filter(at__lte=timezone.now()).count() == 1
    assert Times.objects.filter(at__gt=timezone.now()).count() == 0


def test_auto_now_moves_on_save_and_auto_now_add_does_not(anywhere):
    row = Times.objects.create()
    made, touched = row.made, row.touched
    row.save()
    row.refresh_from_db()
    assert row.made == made
    assert row.touched > touched


def test_any_offset_is_written_as_its_moment():
    moment = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
    for zone in (TOKYO, NEW_YORK, fixed(timedelta(hours=5, minutes=30))):
        row = Times.objects.create(at=moment.astimezone(zone))
        assert stored(row.pk) == "2026-01-15 09:30:00"
        assert Times.objects.filter(at=moment.astimezone(zone), pk=row.pk).exists()
    with zones(False, "Asia/Tokyo", None):
        row = Times.objects.create(at=moment.astimezone(NEW_YORK))
        assert stored(row.pk) == "2026-01-15 09:30:00"


def test_a_naive_value_means_utc_with_time_zones_and_local_time_without():
    naive = datetime(2026, 1, 15, 9, 30)
    with zones(True, "Asia/Tokyo", None):
        row = Times.objects.create(at=naive, until="2026-01-15 09:30")
        assert stored(row.pk) == stored(row.pk, "until") == "2026-01-15 09:30:00"
        assert Times.objects.get(at=naive, until="2026-01-15 09:30:00") == row
        assert Times.objects.create(at=date(2026, 1, 15)).pk
        assert Times.objects.get(at=date(2026, 1, 15)).at is not None
        row.full_clean(exclude=["label"])
        assert row.at == row.until == naive.replace(tzinfo=UTC)
    with zones(False, "Asia/Tokyo", None):
        other = Times.objects.create(at=naive, until="2026-01-15T09:30:00Z")
        assert stored(other.pk) == "2026-01-15 00:30:00"
        assert stored(other.pk, "until") == "2026-01-15 09:30:00"
        other.refresh_from_db()
        assert other.at == naive
        assert other.until == datetime(2026, 1, 15, 18, 30)


def test_text_that_is_no_time_is_refused():
    field = Times._meta.get_field("at")
    for value in ("yesterday", "2026-13-01 00:00", "2026-02-30"):
        with pytest.raises(ValidationError):
            field.to_python(value)
        with pytest.raises(ValidationError):
            Times.objects.filter(at=value)


def test_forms_and_dumps_keep_the_moment(anywhere):
    pk = insert("2026-01-15 09:30:00.25")[0]
    row = Times.objects.get(pk=pk)
    for format in ("json", "xml", "python"):
        dump = serializers.serialize(format, [row])
        (loaded,) = serializers.deserialize(format, dump)
        loaded.save()
        # JSON has milliseconds.
        assert stored(pk) == "2026-01-15 09:30:00.25"
    Form = modelform_factory(Times, fields=["at"])
    text = local(datetime(2026, 1, 15, 9, 30, tzinfo=UTC)).strftime("%Y-%m-%d %H:%M:%S")
    form = Form({"at": text}, instance=row)
    assert form.is_valid()
    form.save()
    assert stored(pk) == "2026-01-15 09:30:00"


@pytest.mark.skipif(VENDOR != "sqlite", reason="only SQLite keeps an offset in the text")
def test_text_with_an_offset_reads_as_its_moment():
    pks = insert("2026-01-15T09:30:00Z", "2026-01-15 18:30:00+09:00")
    for case in SETTINGS:
        with zones(*case):
            read = Times.objects.filter(pk__in=pks).values_list("at", flat=True)
            assert set(read) == {python(datetime(2026, 1, 15, 9, 30, tzinfo=UTC))}


@pytest.mark.skipif(VENDOR != "postgresql", reason="only PostgreSQL has the type")
def test_a_column_with_a_time_zone_reads_as_its_moment():
    moment = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
    for database in (None, "America/New_York"):
        with zones(True, "Asia/Tokyo", database), connection.cursor() as cursor:
            cursor.execute("SELECT timestamptz '2026-01-15 09:30:00+00'")
            read = Times._meta.get_field("at").from_db_value(cursor.fetchone()[0], None, connection)
            assert read == moment
            assert read.tzinfo is UTC


# Lookups


def test_exact_ranges_and_order_are_right(anywhere):
    insert(*MOMENTS)
    moments = sorted(python(moment) for moment in MOMENTS.values())
    if python(moments[0]).tzinfo:
        assert list(Times.objects.order_by("at").values_list("at", flat=True)) == moments
    for moment in MOMENTS.values():
        value = python(moment)
        read = Times.objects.filter(at=moment).values_list("at", flat=True)
        assert list(read) == [value]
        assert Times.objects.filter(at__in=[moment]).count() == 1
        assert Times.objects.filter(at__gte=moment).count() == sum(
            other >= moment for other in MOMENTS.values()
        )
        assert Times.objects.filter(at__gt=moment).count() == sum(
            other > moment for other in MOMENTS.values()
        )
        end = moment + timedelta(hours=9)
        assert Times.objects.filter(at__range=(moment, end)).count() == sum(
            moment <= other <= end for other in MOMENTS.values()
        )


def test_the_column_stays_bare_for_comparison_and_order():
    moment = datetime(2026, 1, 15, tzinfo=UTC)
    sql = str(Times.objects.filter(at__gte=moment, at__lt=moment).order_by("at").query)
    assert "ZONE" not in sql.upper()
    assert "django_" not in sql
    year = str(Times.objects.filter(at__year=2026).query)
    assert "BETWEEN" in year
    assert "ZONE" not in year.upper()


def needs_tables() -> bool:
    """Whether MariaDB is asked about a zone with summer time and has no time zone tables."""
    from django.conf import settings

    return (
        VENDOR == "mysql"
        and not connection.features.has_zoneinfo_database
        and settings.TIME_ZONE == "America/New_York"
    )


LOOKUPS = {
    "date": lambda wall: wall.date(),
    "time": lambda wall: wall.time(),
    "iso_year": lambda wall: wall.isocalendar().year,
    "year": lambda wall: wall.year,
    "quarter": lambda wall: (wall.month + 2) // 3,
    "month": lambda wall: wall.month,
    "week": lambda wall: wall.isocalendar().week,
    "day": lambda wall: wall.day,
    "week_day": lambda wall: wall.isoweekday() % 7 + 1,
    "iso_week_day": lambda wall: wall.isoweekday(),
    "hour": lambda wall: wall.hour,
    "minute": lambda wall: wall.minute,
    "second": lambda wall: wall.second,
}


def test_every_part_of_the_local_time_is_found(anywhere):
    insert(*MOMENTS, None)
    for lookup, part in LOOKUPS.items():
        parts = [part(local(moment)) for moment in MOMENTS.values()]
        if needs_tables() and "year" not in lookup:
            with pytest.raises(NotSupportedError, match="mysql_tzinfo_to_sql"):
                list(Times.objects.filter(**{f"at__{lookup}": parts[0]}))
            continue
        for value in set(parts):
            found = {
                "": parts.count(value),
                "__gt": sum(other > value for other in parts),
                "__lte": sum(other <= value for other in parts),
            }
            for comparison, expected in found.items():
                rows = Times.objects.filter(**{f"at__{lookup}{comparison}": value})
                assert rows.count() == expected, (lookup, comparison, value)
        if needs_tables():
            continue
        rows = Times.objects.exclude(at=None).order_by("pk")
        assert list(rows.values_list(f"at__{lookup}", flat=True)) == parts, lookup
        assert rows.filter(**{f"at__{lookup}__in": set(parts)}).count() == len(parts), lookup
        assert Times.objects.get(**{f"at__{lookup}__isnull": True}).at is None, lookup


def test_chained_parts_and_aggregates_are_asked_in_local_time():
    insert("2026-01-14 14:59:59", "2026-01-14 15:00:00")
    assert Times.objects.filter(at__date__day=15).count() == 1
    assert Times.objects.filter(at__time__hour=0).count() == 1
    by_day = Times.objects.values("at__date").annotate(n=Count("pk")).order_by("at__date")
    assert [row["n"] for row in by_day] == [1, 1]
    latest = Times.objects.values("label").annotate(last=Max("at"))
    assert latest.filter(last__date=date(2026, 1, 15)).count() == 1
    assert latest.filter(last__hour=0).count() == 1
    assert Times.objects.aggregate(n=Count("pk", filter=Q(at__date=date(2026, 1, 14))))["n"] == 1


@pytest.mark.parametrize("zone", [NEW_YORK, UTC, fixed(timedelta(hours=-3, minutes=-30))], ids=str)
def test_the_active_time_zone_is_the_one_that_is_asked(zone):
    insert("2026-01-15 03:00:00")
    with timezone.override(zone):
        wall = datetime(2026, 1, 15, 3, tzinfo=UTC).astimezone(zone)
        found = Times.objects.filter(at__date=wall.date(), at__hour=wall.hour)
        if VENDOR == "mysql" and zone is NEW_YORK and not connection.features.has_zoneinfo_database:
            with pytest.raises(NotSupportedError):
                found.count()
        else:
            assert found.count() == 1
            assert Times.objects.get(at__minute=wall.minute).at.hour == 3
        assert Times.objects.filter(at__year=2026).count() == 1


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_a_query_can_be_pickled(lookup):
    insert("2026-01-15 03:00:00")
    part = LOOKUPS[lookup](datetime(2026, 1, 15, 12))
    queries = [
        Times.objects.filter(**{f"at__{lookup}": part}),
        Times.objects.filter(**{f"at__{lookup}__gte": part}),
        Times.objects.annotate(moment=AsUTC("at")),
    ]
    for query in queries:
        again = Times.objects.all()
        again.query = pickle.loads(pickle.dumps(query.query))
        assert again.count() == 1


def test_neighbours_are_found():
    pks = insert("2026-01-14 14:59:59", "2026-01-14 15:00:00")
    Times.objects.update(made=F("at"))
    first, second = (Times.objects.get(pk=pk) for pk in pks)
    assert first.get_next_by_made() == second
    assert second.get_previous_by_made() == first


# Arithmetic and aggregates


def test_differences_and_sums_are_right(anywhere):
    start, end = "2026-01-14 14:59:59.25", datetime(2026, 1, 15, 0, 0, 0, 500000, UTC)
    (pk,) = insert(start)
    Times.objects.filter(pk=pk).update(until=end)
    took = Times.objects.annotate(
        took=ExpressionWrapper(F("until") - F("at"), output_field=DurationField()),
        plain=F("until") - F("at"),
    ).get()
    assert took.took == took.plain == timedelta(hours=9, seconds=1, milliseconds=250)
    assert Times.objects.filter(until__gt=F("at") + timedelta(hours=9)).exists()
    assert not Times.objects.filter(until__gt=F("at") + timedelta(hours=10)).exists()
    now = Value(end, output_field=UTCDateTimeField())
    assert Times.objects.annotate(age=now - F("until")).get().age == timedelta(0)
    Times.objects.update(until=F("at"))
    assert stored(pk, "until") == start
    Times.objects.update(until=F("at") + timedelta(hours=1))
    assert stored(pk, "until") == "2026-01-14 15:59:59.25"


def test_min_and_max_are_moments(anywhere):
    insert(*MOMENTS)
    found = Times.objects.aggregate(Min("at"), Max("at"))
    assert found["at__min"] == python(min(MOMENTS.values()))
    assert found["at__max"] == python(max(MOMENTS.values()))
    assert Times.objects.filter(pk=-1).aggregate(Max("at")) == {"at__max": None}
    assert Times.objects.latest("at").at == python(max(MOMENTS.values()))


# AsUTC


def tables_missing() -> bool:
    return VENDOR == "mysql" and not connection.features.has_zoneinfo_database


def test_as_utc_buckets_in_local_time(anywhere):
    from django.conf import settings

    # Where the database's own TIME_ZONE sets its clocks back, SQLite and MySQL know the hour that
    # comes twice only once, as for any column.
    moments = [moment for moment in MOMENTS.values() if moment.month != 11]
    insert(*(text for text, moment in MOMENTS.items() if moment in moments))
    days = Times.objects.annotate(day=TruncDay(AsUTC("at"))).values_list("day").order_by("day")
    named = settings.USE_TZ and connection.timezone_name != settings.TIME_ZONE
    summer = connection.timezone_name == "America/New_York"
    if tables_missing() and (named or summer):
        with pytest.raises((ValueError, NotSupportedError)):
            list(days)
        return
    expected = sorted(
        local(moment).replace(hour=0, minute=0, second=0, microsecond=0) for moment in moments
    )
    assert [day.replace(tzinfo=None) for (day,) in days] == expected
    if settings.USE_TZ:
        assert {str(day.tzinfo) for (day,) in days} == {settings.TIME_ZONE}
    counts = Times.objects.values(day=TruncDate(AsUTC("at"))).annotate(n=Count("pk"))
    assert {row["day"]: row["n"] for row in counts} == {
        wall.date(): expected.count(wall) for wall in expected
    }
    hours = Times.objects.annotate(hour=ExtractHour(AsUTC("at"))).order_by("pk")
    assert [row.hour for row in hours] == [local(moment).hour for moment in moments]
    first = Times.objects.annotate(u=AsUTC("at")).filter(u__date=expected[0].date())
    assert first.count() == expected.count(expected[0])


@pytest.mark.parametrize("database", [None, "Asia/Tokyo"])
def test_as_utc_buckets_in_utc_without_time_zone_tables(database):
    with zones(True, "Asia/Tokyo", database):
        insert("2026-01-14 23:59:59", "2026-01-15 00:00:00")
        day = Trunc(AsUTC("at"), "day", tzinfo=UTC)
        found = Times.objects.annotate(day=day).values_list("day", flat=True).order_by("at")
        if tables_missing() and database:
            with pytest.raises(ValueError, match="time zone definitions"):
                list(found)
        else:
            assert list(found) == [datetime(2026, 1, day, tzinfo=UTC) for day in (14, 15)]


def test_as_utc_reads_as_the_moment(anywhere):
    insert("2026-01-15 09:30:00.25")
    found = Times.objects.annotate(moment=AsUTC("at"))
    if tables_missing() and connection.timezone_name == "America/New_York":
        with pytest.raises(NotSupportedError, match="mysql_tzinfo_to_sql"):
            found.get()
        return
    assert found.get().moment == python(datetime(2026, 1, 15, 9, 30, 0, 250000, UTC))


@pytest.mark.skipif(VENDOR != "postgresql", reason="the other databases have one type of time")
def test_without_as_utc_postgresql_takes_the_wall_clock_of_utc_for_local_time():
    """Why AsUTC is there, and why the product never truncates in local time itself."""
    insert("2026-01-15 09:30:00")
    plain = Times.objects.annotate(hour=TruncHour("at")).get().hour
    right = Times.objects.annotate(hour=TruncHour(AsUTC("at"))).get().hour
    assert right == datetime(2026, 1, 15, 18, tzinfo=TOKYO)
    assert plain != right


# The column and migrations


def test_the_column_has_no_time_zone():
    kind = Times._meta.get_field("at").db_type(connection)
    assert (
        kind
        == {
            "postgresql": "timestamp(6) without time zone",
            "mysql": "datetime(6)",
            "sqlite": "datetime",
        }[VENDOR]
    )


def test_deconstruction_names_the_public_path():
    assert UTCDateTimeField(null=True).deconstruct() == (
        None,
        "solid_runs.fields.UTCDateTimeField",
        [],
        {"null": True},
    )
    assert MigrationWriter.serialize(UTCDateTimeField(auto_now_add=True))[0] == (
        "solid_runs.fields.UTCDateTimeField(auto_now_add=True)"
    )


def test_checks_are_silent():
    assert Times.check() == []


def test_rest_framework_and_django_filter_know_the_field():
    import django_filters
    from rest_framework import serializers as drf

    made = type(
        "MadeSerializer",
        (drf.ModelSerializer,),
        {"Meta": type("Meta", (), {"model": Times, "fields": ["at"]})},
    )
    row = Times(at=datetime(2026, 1, 15, 9, 30, tzinfo=UTC))
    assert made(row).data == {"at": "2026-01-15T18:30:00+09:00"}
    filterset = type(
        "MadeFilter",
        (django_filters.FilterSet,),
        {"Meta": type("Meta", (), {"model": Times, "fields": {"at": ["gte"]}})},
    )
    pk = insert("2026-01-15 09:30:00")[0]
    for text, count in (("2026-01-15T18:30:00+09:00", 1), ("2026-01-15 18:30:01", 0)):
        assert filterset({"at__gte": text}, Times.objects.filter(pk=pk)).qs.count() == count


@pytest.mark.django_db(transaction=True)
def test_a_managed_table_is_made_with_the_column():
    from django.test.utils import isolate_apps

    with isolate_apps("tests"):

        class MadeTimes(models.Model):
            at = UTCDateTimeField(auto_now_add=True, db_index=True)

            class Meta:
                app_label = "tests"
                db_table = "field_made_times"

        with connection.schema_editor() as editor:
            editor.create_model(MadeTimes)
        try:
            row = MadeTimes.objects.create()
            row.refresh_from_db()
            assert abs(timezone.now() - row.at) < timedelta(minutes=1)
            text = stored(row.pk, "at", "field_made_times")
            assert datetime.fromisoformat(text).replace(tzinfo=UTC) == row.at
        finally:
            with connection.schema_editor() as editor:
                editor.delete_model(MadeTimes)
