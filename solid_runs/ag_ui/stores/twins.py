"""The methods of a store for async code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from solid_runs.ag_ui.stores.running import RunMethods

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
    call.__qualname__ = f"AsyncTwins.a{name}"
    call.__doc__ = f"See {name}()."
    return call


class AsyncTwins(RunMethods):
    areserve = twin(RunMethods.reserve)
    aadmit = twin(RunMethods.admit)
    afind = twin(RunMethods.find)
    astatus = twin(RunMethods.status)
    alatest_run = twin(RunMethods.latest_run)
    alatest_interrupted = twin(RunMethods.latest_interrupted)
    asave = twin(RunMethods.save)
    aheartbeat = twin(RunMethods.heartbeat)
    arequest_cancel = twin(RunMethods.request_cancel)
    astalled = twin(RunMethods.stalled)
    afail_stalled = twin(RunMethods.fail_stalled)
    aprune = twin(RunMethods.prune)
    afind_interrupt = twin(RunMethods.find_interrupt)
    aredeem_interrupt = twin(RunMethods.redeem_interrupt)
    aanswer = twin(RunMethods.answer)
    aresume = twin(RunMethods.resume)
    asettle = twin(RunMethods.settle)
    arelease = twin(RunMethods.release)
    aabandon = twin(RunMethods.abandon)
    arelease_settled = twin(RunMethods.release_settled)
