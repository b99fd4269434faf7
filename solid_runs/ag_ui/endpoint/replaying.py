"""What a client gets that attaches to a run: what is recorded, and the end when it comes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from solid_runs.ag_ui.endpoint import frames
from solid_runs.ag_ui.endpoint.isolation import on_fresh_connection
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import TERMINAL, RunKey, RunRecord
from solid_runs.ag_ui.stores.base import BaseStore

MOST_SECONDS_BETWEEN_LOOKS: Final = 1.0

STILL_RUNNING: Final = "The run is still going on. Attach to it again for its end."

logger = logging.getLogger("solid_runs.ag_ui")


async def refused(message: str, code: str) -> AsyncIterator[str]:
    """The only frame of a request that left the store as it was."""
    yield frames.encode(frames.error(message, code))


async def offered(
    record: RunRecord, run_id: str, messages: Sequence[Any] | None = None
) -> AsyncIterator[str]:
    """The open interrupts of ``record`` once more, as the end of a run that is not stored."""
    events = [
        frames.started(record.thread_id, run_id),
        *frames.state(record.snapshot),
        *frames.messages(messages),
        frames.interrupted(record.thread_id, run_id, record.pending_interrupts),
    ]
    for event in events:
        yield frames.encode(event)


async def attached(
    store: BaseStore,
    record: RunRecord,
    messages_of: Callable[[RunRecord], Awaitable[Sequence[Any] | None]],
    *,
    limit: float,
    heartbeat: float,
    keep_alive: float,
    by_thread: bool = False,
) -> AsyncIterator[str]:
    """What is recorded of a run, and how it ended, for which it waits up to ``limit`` seconds.

    Every frame has the number that the record has reached. ``messages_of``: the conversation, if
    the host keeps it, now and once more when the end was waited for. ``by_thread``: what
    is still open on the thread is offered in place of the end of a run that has ended.
    """

    def framed(events: Sequence[frames.BaseEvent]) -> str:
        return "".join(frames.encode(event, record.sequence) for event in events)

    async def told() -> list[frames.BaseEvent]:
        try:
            return frames.messages(await on_fresh_connection(messages_of, record))
        except Exception:
            logger.exception("The messages of thread %r could not be read.", record.thread_id)
            return []

    key = RunKey.of(record)
    begun = frames.started(record.thread_id, record.run_id)
    yield framed([begun, *frames.state(record.snapshot), *await told()])
    seen, until = record, time.monotonic() + limit
    spoken = time.monotonic()
    while not record.terminal:
        pause = min(heartbeat, keep_alive, MOST_SECONDS_BETWEEN_LOOKS, until - time.monotonic())
        if pause <= 0:
            yield framed([frames.error(STILL_RUNNING, "run_in_progress")])
            return
        await asyncio.sleep(pause)
        if time.monotonic() - spoken >= keep_alive:
            spoken = time.monotonic()
            yield frames.PING
        try:
            status = await on_fresh_connection(store.astatus, *key)
            if status is None or status in TERMINAL:
                found = await on_fresh_connection(store.afind, *key)
                record = found or record
        except Exception:
            logger.exception("Run %r could not be read.", record.run_id)
            yield framed([frames.error("The run cannot be read.", "internal_error")])
            return
        if status is None:
            yield framed([frames.error("The run is gone.", "internal_error")])
            return
    moved = frames.state(record.snapshot) if record.snapshot != seen.snapshot else []
    if record is not seen:
        moved += await told()
    open_ones: Sequence[Interrupt] = ()
    if by_thread:
        asking = await on_fresh_connection(store.alatest_interrupted, *key[:2])
        open_ones = asking.answerable_interrupts(store.now()) if asking else ()
    if open_ones:
        end = frames.interrupted(record.thread_id, record.run_id, open_ones)
    else:
        end = frames.recorded(record)
    yield framed([*moved, end])
