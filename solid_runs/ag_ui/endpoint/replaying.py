"""What a client gets that attaches to a run: what is recorded, and the end when it comes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from solid_runs.ag_ui.endpoint import frames
from solid_runs.ag_ui.endpoint.isolation import on_fresh_connection
from solid_runs.ag_ui.records import RunRecord
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
    messages: Sequence[Any] | None = None,
    *,
    limit: float,
    heartbeat: float,
    keep_alive: float,
    asking: RunRecord | None = None,
) -> AsyncIterator[str]:
    """What is recorded of a run, and how it ended, for which it waits up to ``limit`` seconds.

    Every frame has the number that the record has reached. ``asking``: a run of the thread whose
    open interrupts are offered in place of the end of one that has ended.
    """

    def framed(events: Sequence[frames.BaseEvent]) -> str:
        return "".join(frames.encode(event, record.sequence) for event in events)

    begun = frames.started(record.thread_id, record.run_id)
    yield framed([begun, *frames.state(record.snapshot), *frames.messages(messages)])
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
            found = await on_fresh_connection(
                store.afind, record.scope, record.thread_id, record.run_id
            )
        except Exception:
            logger.exception("Run %r could not be read.", record.run_id)
            yield framed([frames.error("The run cannot be read.", "internal_error")])
            return
        if found is None:
            yield framed([frames.error("The run is gone.", "internal_error")])
            return
        record = found
    moved = frames.state(record.snapshot) if record.snapshot != seen.snapshot else []
    if asking is not None and asking.awaiting_approval:
        key = (record.thread_id, record.run_id)
        yield framed([*moved, frames.interrupted(*key, asking.pending_interrupts)])
    else:
        yield framed([*moved, frames.recorded(record)])
