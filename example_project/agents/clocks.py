"""How a simulated agent spends its time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.utils import timezone


class PastClock:
    """Time that is only counted: what took an hour on this clock took no time at all."""

    def __init__(self, began: datetime) -> None:
        self.now = began

    def spend(self, ms: int) -> None:
        self.now += timedelta(milliseconds=ms)


class LiveClock:
    """Time that really passes."""

    @property
    def now(self) -> datetime:
        return timezone.now()

    def spend(self, ms: int) -> None:
        time.sleep(ms / 1000)
