"""Trying again what a database undid over a deadlock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from django.db import OperationalError, connections

R = TypeVar("R")

MOST_ATTEMPTS: Final = 5
PAUSE: Final = 0.02
DEADLOCK: Final = 1213
"""What MySQL and MariaDB call it, which have them between single statements."""


def past_deadlocks(work: Callable[[], R], using: str) -> R:
    """Do work that is a transaction of its own, again where it was the victim of a deadlock.

    Within a transaction of the caller all of that is undone, so it is left to the caller.
    """
    for attempt in range(1, MOST_ATTEMPTS):
        try:
            return work()
        except OperationalError as error:
            if connections[using].in_atomic_block or error.args[:1] != (DEADLOCK,):
                raise
            time.sleep(PAUSE * attempt)
    return work()
