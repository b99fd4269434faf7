"""Clock readings and the two text forms that the log stores them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

MILLISECOND = timedelta(milliseconds=1)


def elapsed_ms(start: datetime, end: datetime) -> int:
    """Whole milliseconds from ``start`` to ``end``, truncated toward zero.

    A naive value beside an aware one means UTC, or local time where USE_TZ is off.
    """
    if timezone.is_aware(start) != timezone.is_aware(end):
        start, end = aware(start), aware(end)
    span = end - start
    return span // MILLISECOND if span >= timedelta(0) else -(-span // MILLISECOND)


def aware(value: datetime) -> datetime:
    if timezone.is_aware(value):
        return value
    return value.replace(tzinfo=UTC if settings.USE_TZ else timezone.get_default_timezone())


def iso_milliseconds(moment: datetime) -> str:
    """``2026-01-15T09:30:11.000Z``: the ``at`` of an event."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def iso_seconds(moment: datetime) -> str:
    """``2026-01-15T09:30:11Z``: the ``timestamp`` of a log line."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse_moment(value: object) -> datetime | None:
    """The moment that an entry was written, whatever offset it carries; None where it has none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
