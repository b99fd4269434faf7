"""Clock readings and the two text forms that the log stores them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone

MILLISECOND = timedelta(milliseconds=1)


def elapsed_ms(start: datetime, end: datetime) -> int:
    """Whole milliseconds from ``start`` to ``end``, truncated toward zero.

    A naive value beside an aware one means UTC, as everywhere on the live tables.
    """
    if timezone.is_aware(start) != timezone.is_aware(end):
        start, end = aware(start), aware(end)
    span = end - start
    return span // MILLISECOND if span >= timedelta(0) else -(-span // MILLISECOND)


def aware(value: datetime) -> datetime:
    return value if timezone.is_aware(value) else value.replace(tzinfo=UTC)


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
        return aware(datetime.fromisoformat(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
