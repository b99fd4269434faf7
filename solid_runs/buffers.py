"""Entries of a run that are collected and written many at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.utils import timezone

from solid_runs.columns import columns_of
from solid_runs.events import Entry, is_message, json_bytes
from solid_runs.exceptions import InvalidUsage
from solid_runs.transitions import write_alias

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin

logger = logging.getLogger("solid_runs")

STATEMENT_ENTRIES: Final = 500
STATEMENT_BYTES: Final = 2**18
"""The most that one flush puts into one statement; more goes into several."""
RETRY_SECONDS: Final = 1.0
"""How long a flush that failed is left alone, unless another ``max_entries`` come."""


class EventBuffer:
    """What ``with run.buffer_events():`` gives, and ``async with`` too.

    Inside, append_event() and add_log() of this copy only collect, from any thread. A flush writes
    what is there in one statement: when ``max_entries`` have come; when the oldest has waited for
    ``max_age`` seconds, which ``with`` looks at when another comes and ``async with`` by itself;
    before the run is moved to another status; and at the end, after an exception too.

    A crash of the process loses what was not flushed yet, and nothing else; a transaction that is
    rolled back takes what was flushed in it. A flush that fails keeps its entries for the next
    one. When the last one fails, its error is raised at the end of the block, or noted on the
    exception that ended it; flush() may then be tried again. Entries whose flush was committed
    while its answer was lost are written twice.
    """

    def __init__(self, run: AgentRunMixin, max_entries: int, max_age: float) -> None:
        if max_entries < 1 or max_age < 0:
            raise InvalidUsage("max_entries must be 1 or more, and max_age 0 seconds or more.")
        self.run, self.max_entries, self.max_age = run, max_entries, max_age
        self.pending: list[Entry] = []
        """What is not written yet, the oldest first."""
        # Held for no longer than a list takes; a signal handler may append while its thread does.
        self._lock = threading.RLock()
        self._turn = Turn()
        self._failed = 0
        self._due_at = 0.0
        self._blocks: list[EventBuffer] = []
        self._shared = self
        self._process = os.getpid()
        self._ticker: Ticker | None = None

    def add(self, entry: Entry) -> bool:
        """Collect an entry, and see to a flush if one is due; False when the block has ended."""
        with self._lock:
            if not self._blocks or self._process != os.getpid():
                return False
            is_first = not self.pending
            if is_first:
                self._due_at = time.monotonic() + self.max_age
            self.pending.append(dict(entry))
        if self._ticker is not None:
            if is_first or self.is_due():
                self._ticker.wake()
        elif self.is_due() and not in_event_loop():
            self.flush_or_keep(wait=False)
        return True

    def flush(self) -> None:
        """Write what is there. Raises what the database raises, and keeps the entries then."""
        with self._turn.taken(wait=self._may_wait()) as is_here_already:
            if not is_here_already:
                self._flush()

    async def aflush(self) -> None:
        """See flush()."""
        await sync_to_async(self.flush)()

    def flush_or_keep(self, *, wait: bool = True) -> None:
        """Write what is there, or say in the application's log why it is kept.

        Without ``wait`` what another thread is about to write is left to it.
        """
        if not wait and self._turn.is_taken:
            return
        with self._turn.taken(wait=self._may_wait()) as is_here_already:
            if is_here_already:
                return
            try:
                self._flush()
            except Exception:
                with self._lock:
                    self._failed = len(self.pending)
                    self._due_at = time.monotonic() + max(self.max_age, RETRY_SECONDS)
                logger.warning(
                    "%d entries of %s are not written yet.", self._failed, self.run, exc_info=True
                )
                self._drop_dead_connection()

    def _may_wait(self) -> bool:
        """For another thread's flush: not with a lock on the row that it may be waiting for."""
        return not connections[write_alias(self.run)].in_atomic_block

    def _flush(self) -> None:
        if self._process != os.getpid():
            self.pending.clear()  # a fork has them from its parent, which writes them itself
        while batch := self._take():
            try:
                self._write(batch)
            except BaseException:
                with self._lock:
                    self.pending[:0] = batch
                raise
            self._failed = 0

    def _drop_dead_connection(self) -> None:
        """The next flush then opens a new one; a transaction went with the old."""
        connection = connections[write_alias(self.run)]
        if connection.connection and not connection.in_atomic_block and not connection.is_usable():
            connection.close()

    def is_due(self) -> bool:
        return len(self.pending) - self._failed >= self.max_entries or self.seconds_left() == 0

    def seconds_left(self) -> float | None:
        """Until the oldest entry has waited long enough; None while there is none."""
        return max(0.0, self._due_at - time.monotonic()) if self.pending else None

    def _take(self) -> list[Entry]:
        with self._lock:
            size, count = 0, 0
            for entry in self.pending[:STATEMENT_ENTRIES]:
                size += json_bytes(entry)
                if count and size > STATEMENT_BYTES:
                    break
                count += 1
            batch = self.pending[:count]
            del self.pending[:count]
        return batch

    def _write(self, batch: list[Entry]) -> None:
        using = write_alias(self.run)
        moved = "updated_at" in columns_of(type(self.run)) and any(map(is_message, batch))
        also: dict[str, Any] = {"updated_at": timezone.now()} if moved else {}
        # A statement that fails must not spoil the transaction of the host.
        inside = connections[using].in_atomic_block
        with transaction.atomic(using=using) if inside else nullcontext():
            self.run._write_entries(batch, **also)
        for name, value in also.items():
            setattr(self.run, name, value)

    def _flush_at_end(self, error: BaseException | None) -> None:
        try:
            self.flush()
        except Exception as failure:
            if error is None:
                raise
            note = f"{len(self.pending)} entries of {self.run} could not be written: {failure!r}"
            error.add_note(note)
            logger.warning("%s", note)

    # The blocks

    def __enter__(self) -> EventBuffer:
        """A block within another one, or beside it on the same copy, shares its buffer."""
        shared = self.run._buffer or self
        with shared._lock:
            shared._blocks.append(self)
        self._shared = self.run._buffer = shared
        return shared

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end_block()
        self._shared._flush_at_end(error)

    def _end_block(self) -> bool:
        """Whether it was the last one that shares this buffer."""
        shared = self._shared
        with shared._lock:
            shared._blocks.remove(self)
            if not shared._blocks:
                self.run._buffer = None
            return not shared._blocks

    async def __aenter__(self) -> EventBuffer:
        shared = self.__enter__()
        shared._ticker = shared._ticker or Ticker(shared)
        return shared

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        leaving = asyncio.ensure_future(self._leave(error))
        cancelled = None
        while not leaving.done():  # what was collected is written before the task goes
            try:
                await asyncio.wait({leaving})
            except asyncio.CancelledError as again:
                cancelled = again
        if cancelled is not None:
            raise cancelled
        leaving.result()

    async def _leave(self, error: BaseException | None) -> None:
        shared = self._shared
        if self._end_block() and shared._ticker is not None:
            ticker, shared._ticker = shared._ticker, None
            await ticker.stop()
        await sync_to_async(shared._flush_at_end)(error)


class Turn:
    """Which thread is writing; another waits for it, or goes on beside it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = 0

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    @contextmanager
    def taken(self, *, wait: bool) -> Iterator[bool]:
        """Whether this very thread has taken it before, and came back through its own logging."""
        if self._thread == threading.get_ident():
            yield True
            return
        is_ours = self._lock.acquire(blocking=wait)
        if is_ours:
            self._thread = threading.get_ident()
        try:
            yield False
        finally:
            if is_ours:
                self._thread = 0
                self._lock.release()


class Ticker:
    """Flushes a buffer from an event loop, beside what the run's code does."""

    def __init__(self, buffer: EventBuffer) -> None:
        self.buffer = buffer
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        self.stopped = False
        self.task = self.loop.create_task(self.tick())

    def wake(self) -> None:
        """From any thread."""
        self.loop.call_soon_threadsafe(self.woken.set)

    async def tick(self) -> None:
        while not self.stopped:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.woken.wait(), self.buffer.seconds_left())
            self.woken.clear()
            if self.buffer.is_due() and not self.stopped:
                await sync_to_async(self.buffer.flush_or_keep)()

    async def stop(self) -> None:
        """It may have been stopped by the end of its loop, or by an error of its own."""
        self.stopped = True
        self.woken.set()
        await asyncio.wait({self.task})


def in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
