"""A thread of its own for what a task asks of the database, as a request has one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")


@asynccontextmanager
async def own_thread() -> AsyncIterator[None]:
    """Run the sync code of the block in a thread, and on connections, of its own.

    A task that outlives its request cannot use the request's, and one whose sync code takes long
    must not hold up the heartbeats of another. Where no request has a thread of its own, as under
    async_to_sync() in tests, the block has none either.
    """
    current = SyncToAsync.thread_sensitive_context
    if current.get(None) is None:
        yield
        return
    mine = ThreadSensitiveContext()
    token = current.set(mine)
    try:
        yield
    finally:
        executor = SyncToAsync.context_to_thread_executor.pop(mine, None)
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)  # a tool that is still running must not stop the loop
        current.reset(token)


async def on_fresh_connection(
    method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Await a method of a store, and keep no connection that a request would not keep.

    A stream may be silent for long: it would hold the connection open, or find it dead.
    """
    try:
        return await method(*args, **kwargs)
    finally:
        await sync_to_async(close_old_connections)()
