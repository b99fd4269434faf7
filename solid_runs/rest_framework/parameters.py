"""Values out of a URL: a key, a count or a moment, or a ValueError that says what is wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connections, models
from django.utils import timezone

from solid_runs.columns import AnyField, fits

LOST_PLUS = re.compile(r"(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) (\d\d(?::?\d\d)?)$")
"""A time and its offset: what ``+00:00`` becomes in a URL that leaves the plus unescaped."""

EARLIEST = datetime(1001, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 12, 31, tzinfo=UTC)
"""What a moment is moved into: every zone and database can hold it, and no run lies outside."""


def parse_key(field: AnyField, text: str, using: str) -> Any:
    """The value of a key column that ``text`` writes; ValueError when no row can have it."""
    while field.remote_field is not None:
        field = field.target_field  # type: ignore[attr-defined]
    if "\x00" in text:
        raise ValueError("A key holds no NUL character.")
    if isinstance(field, models.IntegerField) and not re.fullmatch(r"-?\d{1,20}", text, re.ASCII):
        raise ValueError("This key is a whole number.")
    try:
        value = field.to_python(text)
    except (ValidationError, TypeError, ArithmeticError) as error:
        raise ValueError("This key is not of the column's kind.") from error
    if not fits(field, value, connections[using]):
        raise ValueError("This key is beyond the range of its column.")
    return value


def parse_count(text: str, low: int, high: int) -> int:
    if re.fullmatch(r"\d{1,19}", text, re.ASCII) and low <= int(text) <= high:
        return int(text)
    raise ValueError(f"This must be a whole number from {low} to {high}.")


def parse_moment(text: str) -> datetime:
    """An ISO 8601 date or datetime, as the project's columns take it.

    A date is its local midnight, and what says no offset is in the current time zone.
    """
    value = datetime.fromisoformat(LOST_PLUS.sub(r"\1+\2", text.strip().upper()))
    if not EARLIEST.year <= value.year <= LATEST.year:
        value = EARLIEST if value.year < EARLIEST.year else LATEST
    if timezone.is_naive(value):
        value = timezone.make_aware(value)
    value = value.astimezone(UTC)
    return value if settings.USE_TZ else timezone.make_naive(value, timezone.get_default_timezone())
