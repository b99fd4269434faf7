from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.values import aware, iso, moment
from solid_runs.copied import Copied

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Note:
    body: Any = Copied()  # noqa: RUF009


def nested(levels, inner=None):
    for _ in range(levels):
        inner = [inner]
    return inner


def test_a_value_is_copied_in_and_out():
    given_value = {"a": [1]}
    note = Note(given_value)
    given_value["a"].append(2)
    note.body["a"].append(3)
    assert note.body == {"a": [1]}


def test_a_value_is_none_when_none_is_given():
    assert Note().body is None
    assert Note.body is None


def test_a_value_cannot_be_assigned_or_deleted():
    note = Note(1)
    with pytest.raises(FrozenInstanceError):
        note.body = 2
    with pytest.raises(FrozenInstanceError):
        del note.body
    assert note.body == 1


def test_instances_share_nothing():
    one, other = Note([1]), Note([2])
    assert (one.body, other.body) == ([1], [2])
    assert replace(one, body=[3]).body == [3]
    assert one.body == [1]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, 2), [1, 2]),
        ({1: date(2026, 1, 15)}, {"1": "2026-01-15"}),
        ("a\0\ud800", "a\ufffd\ufffd"),
        (float("nan"), None),
        (False, False),
        (0, 0),
        ("", ""),
    ],
    ids=repr,
)
def test_a_value_is_kept_as_json(value, kept):
    assert Note(value).body == kept
    json.dumps(Note(value).body, allow_nan=False).encode()


def test_a_deep_value_keeps_its_levels():
    assert Note(nested(199)).body == nested(199)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))]
)
def test_a_copy_equals_its_original_and_shares_nothing_to_see(again):
    note = Note({"a": [1]})
    twin = again(note)
    assert twin == note
    twin.body["a"].append(2)
    assert note.body == twin.body == {"a": [1]}


@pytest.mark.parametrize(
    ("when", "written"),
    [
        (NOON, "2026-01-15T12:00:00.000000Z"),
        (NOON.replace(microsecond=1), "2026-01-15T12:00:00.000001Z"),
        (datetime(2026, 1, 15, 12), "2026-01-15T12:00:00.000000Z"),
        (datetime(2026, 1, 15, 13, tzinfo=BERLIN), "2026-01-15T12:00:00.000000Z"),
        (NOON.astimezone(timezone(timedelta(hours=-5))), "2026-01-15T12:00:00.000000Z"),
        (datetime(1, 1, 1), "0001-01-01T00:00:00.000000Z"),
        (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
        (None, None),
    ],
)
def test_a_moment_is_written_in_utc_with_six_digits_and_z(when, written):
    assert iso(when) == written


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-15T12:00:00.000000Z",
        "2026-01-15T12:00:00Z",
        "2026-01-15T13:00:00+01:00",
        "2026-01-15T17:45:00.000+05:45",
        "2026-01-15T07:00:00-0500",
        "2026-01-15 12:00:00",
        "2026-01-15T12:00:00.000000000Z",
    ],
)
def test_any_offset_is_read(written):
    assert moment("expiresAt", written) == NOON
    assert moment("expiresAt", written).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "value", ["", "soon", "12:00", 1768478400, True, [], "0001-01-01T00:00+01:00"]
)
def test_what_is_no_time_is_refused_by_name(value):
    with pytest.raises(ConfigurationError, match="expiresAt is no ISO 8601 time"):
        moment("expiresAt", value)


def test_no_time_and_a_datetime_are_read_as_they_are():
    assert moment("expiresAt", None) is None
    assert moment("expiresAt", NOON) == NOON
    assert moment("expiresAt", datetime(2026, 1, 15, 12)) == NOON


def test_a_naive_moment_is_local_time_without_use_tz(settings):
    settings.USE_TZ = False
    naive, tokyo = datetime(2026, 1, 15, 21), timezone(timedelta(hours=9))
    assert aware(naive) == NOON
    assert aware(naive).utcoffset() == timedelta(0)
    assert moment("expiresAt", naive) == NOON
    assert iso(naive) == "2026-01-15T12:00:00.000000Z"
    assert aware(datetime(2026, 1, 15, 21, tzinfo=tokyo)) == NOON


def test_moments_of_one_zone_are_ordered_by_time_and_not_by_the_wall_clock():
    later = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)
    earlier = datetime(2026, 10, 25, 2, 45, fold=0, tzinfo=BERLIN)
    assert later < earlier
    assert aware(later) > aware(earlier)


def test_a_moment_that_utc_has_no_year_for_is_refused():
    with pytest.raises(ConfigurationError, match="years 1 to 9999"):
        aware(datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))))


@given(
    st.datetimes(
        datetime(2, 1, 1),
        datetime(9998, 1, 1),
        timezones=st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(
            lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
        ),
    )
)
def test_a_moment_is_read_back_as_it_was_written(when):
    assert moment("at", iso(when)) == when
