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
    token = current.set(ThreadSensitiveContext())
    try:
        yield
    finally:
        leave_thread()
        current.reset(token)


def leave_thread() -> None:
    """Have the sync code that follows run in a new thread, whatever hangs in the present one.

    That one closes its connections and ends when it is done. Nothing happens where the task has no
    thread of its own.
    """
    mine = SyncToAsync.thread_sensitive_context.get(None)
    executors = SyncToAsync.context_to_thread_executor
    if mine is not None and (executor := executors.pop(mine, None)) is not None:
        executor.submit(connections.close_all)
        executor.shutdown(wait=False)  # a tool that is still running must not stop the loop


async def on_fresh_connection(
    method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Await a method of a store, and keep no connection afterwards."""
    try:
        return await method(*args, **kwargs)
    finally:
        await let_go_of_connections()


async def let_go_of_connections() -> None:
    """Close those of the thread that runs the sync code of this task.

    A stream may be silent for long: it would hold the connection open, or find it dead. In a thread
    that others share, the ones stay that CONN_MAX_AGE lets stay.
    """
    alone = SyncToAsync.thread_sensitive_context.get(None) is not None
    await sync_to_async(_close_connections if alone else close_old_connections)()


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
