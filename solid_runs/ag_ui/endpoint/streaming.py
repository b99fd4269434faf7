"""A run while its agent works: its task, its record, and the frames that it sends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from solid_runs.ag_ui.endpoint import frames
from solid_runs.ag_ui.endpoint.channels import Channel
from solid_runs.ag_ui.endpoint.isolation import on_fresh_connection, own_thread
from solid_runs.ag_ui.endpoint.listening import INTERNAL, Ending, Listener, ending_of
from solid_runs.ag_ui.endpoint.turns import Turn
from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.records import UNSET, RunKey, RunRecord, Status
from solid_runs.ag_ui.stores.base import BaseStore

CLIENT_GONE: Final = {"message": "The client went away.", "code": "client_gone"}
SHUT_DOWN: Final = {"message": "The server stopped before the run ended.", "code": "stalled"}

GRACE: Final = 5.0
"""Seconds that a cancelled agent has for cleaning up, before its run ends without it."""
RETRY_AFTER: Final = 0.5
"""Seconds before the end of a run is saved once more."""

logger = logging.getLogger("solid_runs.ag_ui")


class LiveRun:
    """A run whose agent works in this process, in a task that needs no client.

    It alone writes the record: with every transition, and once a heartbeat, at which it also hears
    of a cancel request. What a frame announces is saved before the frame leaves. Whatever happens,
    the last frame is a RUN_FINISHED or a RUN_ERROR.
    """

    _live: Final[dict[tuple[BaseStore, RunKey], LiveRun]] = {}

    def __init__(
        self,
        agent: Callable[[Turn], Any],
        turn: Turn,
        store: BaseStore,
        *,
        heartbeat: float,
        keep_alive: float,
        stop_when_left: bool = False,
        interrupt_ttl: timedelta | None = None,
        grace: float = GRACE,
    ) -> None:
        self.turn, self.store = turn, store
        self.listener = Listener(agent, turn, self._tell, store.now, interrupt_ttl)
        self.heartbeat, self.grace = heartbeat, grace
        self.stop_when_left, self.record = stop_when_left, turn.record
        self.channel = Channel(keep_alive=keep_alive, on_left=self._client_left)
        self.sequence = turn.record.sequence
        self._woken, self._left = asyncio.Event(), False
        self._loop, self._key = asyncio.get_running_loop(), (store, RunKey.of(turn.record))
        self._ended = False
        self._last: frames.BaseEvent | None = None

    def begin(self) -> Channel:
        """Start the agent, and return where its frames come out."""
        self._live[self._key] = self
        _keep(self._loop.create_task(self._live_through()))
        return self.channel

    @classmethod
    def nudge(cls, store: BaseStore, key: RunKey) -> None:
        """Have the owner look for a cancel request now, if it is in this process."""
        live = cls._live.get((store, key))
        if live is not None:
            with suppress(RuntimeError):  # its loop is closed
                live._loop.call_soon_threadsafe(live._woken.set)

    def _client_left(self) -> None:
        if self.stop_when_left:
            self._left = True
            self._woken.set()

    # The life of a run

    async def _live_through(self) -> None:
        pump: asyncio.Task[Ending] | None = None
        async with own_thread():
            try:
                if not await self._start():
                    return
                pump = self._loop.create_task(self.listener.listen())
                pump.add_done_callback(lambda _: self._woken.set())
                ending = await self._watch(pump)
                if ending is None:
                    await self._end_as_stored()
                else:
                    await self._end(ending)
            except asyncio.CancelledError:
                if pump is not None:
                    await self._stop(pump)
                if not self._ended:
                    await self._end(Ending(Status.FAILED, SHUT_DOWN))
                raise
            except Exception:
                logger.exception("Run %r broke off.", self.record.run_id)
            finally:
                if not self._ended:
                    self._ended = True
                    await self._send(frames.failed(INTERNAL))
                self.channel.finish()
                self._live.pop(self._key, None)

    async def _start(self) -> bool:
        """Save it as started and say so. False: it has ended before that, and this was said."""
        reserved, now = self.record, self.store.now()
        parent = self.turn.input.parent_run_id
        self.sequence += 1
        begun = replace(reserved.start(now, self.turn.state), sequence=self.sequence)
        told = frames.started(reserved.thread_id, reserved.run_id, parent)
        try:
            self.record = self.turn.record = await on_fresh_connection(self.store.asave, begun)
        except StreamError:
            await self._send(told)
            await self._end_as_stored()
            return False
        except Exception:
            logger.exception("Run %r could not be started.", reserved.run_id)
            await self._end(Ending(Status.FAILED, INTERNAL))
            return False
        await self._send(told, self.sequence)
        return True

    async def _watch(self, pump: asyncio.Task[Ending]) -> Ending | None:
        """Give signs of life until the agent is done or has to stop.

        None: somebody else has ended the run.
        """
        alive, beat_at = time.monotonic(), time.monotonic() + self.heartbeat
        while not pump.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, beat_at - time.monotonic())):
                    await self._woken.wait()
            self._woken.clear()
            if pump.done():
                break
            if self._left:
                await self._stop(pump)
                return Ending(Status.FAILED, CLIENT_GONE)
            beat_at = time.monotonic() + self.heartbeat
            try:
                if await self._beat():
                    await self._stop(pump)
                    return Ending(Status.CANCELLED)
                alive = time.monotonic()
            except StreamError:
                await self._stop(pump)
                return None
            except Exception:
                logger.exception("Run %r could not give a sign of life.", self.record.run_id)
                # Somebody will take it for dead; it must not act any more by then.
                if time.monotonic() - alive > self.store.stall_after.total_seconds() / 2:
                    await self._stop(pump)
                    return Ending(Status.FAILED, INTERNAL)
        return ending_of(pump, self.record.run_id)

    async def _beat(self) -> bool:
        moved, self.listener.state_moved = self.listener.state_moved, False
        record = replace(self.record, sequence=self.sequence, updated_at=self.store.now())
        if moved:
            record = replace(record, snapshot=self.turn.state)
        try:
            stop = await on_fresh_connection(
                self.store.aheartbeat, record, snapshot=record.snapshot if moved else UNSET
            )
        except BaseException:
            self.listener.state_moved |= moved
            raise
        self.record = record
        return stop

    async def _stop(self, pump: asyncio.Task[Ending]) -> None:
        """Cancel the agent. One that does not stop goes on unheard."""
        self.turn._stopping = True
        for _ in range(3):  # an agent may swallow the first one
            pump.cancel()
            await asyncio.wait({pump}, timeout=self.grace / 3)
            if pump.done():
                if not pump.cancelled() and pump.exception():
                    logger.info("An agent failed while it was stopped.", exc_info=pump.exception())
                return
        logger.warning(
            "The agent of run %r does not stop; its run ends without it.", self.record.run_id
        )
        _keep(pump)

    async def _tell(self, event: frames.BaseEvent) -> None:
        self.sequence += 1
        await self._send(event, self.sequence)

    async def _send(self, event: frames.BaseEvent, sequence: int | None = None) -> None:
        self._last = event
        await self.channel.put(frames.encode(event, sequence))

    # The end

    async def _end(self, ending: Ending) -> None:
        """Save how it ended, then say so."""
        try:
            told = list(self._last_words(ending))
            kept = self._closed(ending, self.sequence + len(told))
        except Exception:
            logger.exception("Run %r ended as nothing that can be stored.", self.record.run_id)
            ending, self.turn.usage = Ending(Status.FAILED, INTERNAL), []
            told = list(self._last_words(ending))
            kept = self._closed(ending, self.sequence + len(told))
        try:
            self.record = await self._save_for_sure(kept)
        except StreamError:
            await self._end_as_stored()
            return
        except Exception:
            logger.exception("The end of run %r could not be saved.", self.record.run_id)
            await self._give_up()
            told = [frames.failed(INTERNAL)]
        await self._send_last(told)

    async def _save_for_sure(self, record: RunRecord) -> RunRecord:
        try:
            return await on_fresh_connection(self.store.asave, record)
        except StreamError:
            raise
        except Exception:
            logger.warning("Run %r is saved once more.", record.run_id, exc_info=True)
        await asyncio.sleep(RETRY_AFTER)
        return await on_fresh_connection(self.store.asave, record)

    async def _give_up(self) -> None:
        """Save it as failed, without what may be in the way of that: its state and its questions.

        If that fails too it will be found as stalled.
        """
        failed = replace(self.record, sequence=self.sequence + 1).finish(
            Status.FAILED, self.store.now(), INTERNAL
        )
        try:
            self.record = await on_fresh_connection(self.store.asave, failed)
        except Exception:
            logger.exception("Run %r could not be failed either.", self.record.run_id)

    def _last_words(self, ending: Ending) -> Iterable[frames.BaseEvent]:
        key, usage = (self.record.thread_id, self.record.run_id), self.turn.usage
        if ending.status is Status.FAILED:
            yield frames.failed(ending.failure, usage)
            return
        yield from self.listener.opened.close(ending.status, ending.interrupts)
        if ending.status is Status.CANCELLED:
            yield frames.cancelled(*key, usage=usage)
        elif ending.status is Status.INTERRUPTED:
            if not isinstance(self._last, frames.StateSnapshotEvent):
                yield from frames.state(self.turn.state)
            yield frames.interrupted(*key, ending.interrupts, usage=usage)
        else:
            yield frames.succeeded(*key, self.turn.result, usage)

    def _closed(self, ending: Ending, sequence: int) -> RunRecord:
        now, state = self.store.now(), self.turn.state
        snapshot = UNSET if state is None and self.record.snapshot is None else state
        record = replace(self.record, sequence=sequence)
        if ending.status is Status.INTERRUPTED:
            return record.interrupted(ending.interrupts, now, snapshot)
        return record.finish(ending.status, now, ending.failure, snapshot)

    async def _end_as_stored(self) -> None:
        """Say how somebody else has ended it."""
        record = self.record
        stored = await on_fresh_connection(
            self.store.afind, record.scope, record.thread_id, record.run_id
        )
        if stored is None or not stored.terminal:
            message = "The run goes on elsewhere."
            await self._send_last([frames.error(message, "run_in_progress")])
            return
        closers = (
            [] if stored.status is Status.FAILED else self.listener.opened.close(stored.status)
        )
        self.record, self.sequence = stored, max(self.sequence, stored.sequence)
        await self._send_last([*closers, frames.recorded(stored)])

    async def _send_last(self, events: Iterable[frames.BaseEvent]) -> None:
        self._ended = True
        for event in events:
            await self._tell(event)


_kept: Final[set[asyncio.Task[Any]]] = set()


def _keep(task: asyncio.Task[Any]) -> None:
    """Hold on to a task, which the loop does not, and have its exception read."""
    _kept.add(task)
    task.add_done_callback(_let_go)


def _let_go(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled():
        task.exception()
