"""Asking a database that may be away, or that may not answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from django.db import InterfaceError, OperationalError

from solid_runs.ag_ui.endpoint.isolation import leave_thread, on_fresh_connection
from solid_runs.ag_ui.exceptions import StreamError

T = TypeVar("T")

PASSING: Final = (OperationalError, InterfaceError, ConnectionError, TimeoutError)
"""What a database that is away for a while raises."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 5.0
"""Seconds between two attempts, of which each is twice the one before."""

logger = logging.getLogger("solid_runs.ag_ui")


async def in_time(method: Callable[..., Awaitable[T]], *args: Any, until: float) -> T:
    """Await a method of a store up to a moment of time.monotonic(); TimeoutError after that.

    The call itself goes on, in a thread that is left to it.
    """

    async def call() -> T:
        return await on_fresh_connection(method, *args)

    task = asyncio.create_task(call())
    keep(task)
    await asyncio.wait({task}, timeout=max(0.0, until - time.monotonic()))
    if not task.done():
        leave_thread()
        raise TimeoutError
    return task.result()


async def persistently(method: Callable[..., Awaitable[T]], *args: Any, until: float) -> T:
    """Await a method of a store, again and again up to a moment of time.monotonic().

    Raises what the last attempt raised: a StreamError at once, what does not pass with time after
    the second.
    """
    pause, once_more = FIRST_PAUSE, True
    while True:
        try:
            return await in_time(method, *args, until=until)
        except StreamError:
            raise
        except Exception as error:
            passing = isinstance(error, PASSING)
            if time.monotonic() + pause >= until or not (passing or once_more):
                raise
            once_more &= passing
            logger.warning("A run is saved once more.", exc_info=True)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


_kept: Final[set[asyncio.Task[Any]]] = set()


def keep(task: asyncio.Task[Any]) -> None:
    """Hold on to a task, which the loop does not, and have its exception read."""
    _kept.add(task)
    task.add_done_callback(_let_go)


def _let_go(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled():
        task.exception()
