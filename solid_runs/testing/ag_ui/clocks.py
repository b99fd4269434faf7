"""A clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

NOON: Final = datetime(2026, 1, 15, 12, tzinfo=UTC)


class ManualClock:
    """Stands still until it is moved: ``clock()`` is the time, ``clock.forward(minutes=5)``.

    The clocks of two workers disagree: ``clock.back(minutes=5)``.
    """

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> datetime:
        """Move by what timedelta() takes; return the new time."""
        self.now += timedelta(**span)
        return self.now

    def back(self, **span: float) -> datetime:
        """Move back by what timedelta() takes; return the new time."""
        self.now -= timedelta(**span)
        return self.now
