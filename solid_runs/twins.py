"""Methods for async code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def twin(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """The same method, run where it may touch a database; of a subclass its own."""
    name = method.__name__

    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await sync_to_async(getattr(self, name))(*args, **kwargs)
        return result

    call.__name__ = f"a{name}"
    call.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.a{name}".lstrip(".")
    call.__doc__ = f"See {name}()."
    return call
