"""A clock in milliseconds that a test moves."""

from __future__ import annotations

from typing import Final

NOON: Final = 1_768_478_400_000


class ManualClock:
    """Stands still until it is moved: ``clock()`` is the time, ``clock.forward(5_000)`` later."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, milliseconds: int) -> int:
        """Move on by so many milliseconds; return the new time."""
        self.now += milliseconds
        return self.now
