"""A call that may take only so long."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from django.db import connections


class Overran(Exception):
    """The call has not come back; it goes on in its thread, which does not hold up the process."""


def failure_within(seconds: float, call: Callable[[Any], Any], argument: Any) -> Any:
    """Call it in a thread of its own: what it raised, Overran, or None.

    The thread has database connections of its own, which are closed after it.
    """
    raised: list[BaseException] = []

    def work() -> None:
        try:
            call(argument)
        except BaseException as error:
            raised.append(error)
        finally:
            connections.close_all()

    thread = Thread(target=work, name=f"finalising {argument.run_id}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return Overran()
    return raised[0] if raised else None
