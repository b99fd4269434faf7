"""A run while its agent works: its task, its record, and the frames that it sends."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from solid_runs.ag_ui.endpoint import frames
from solid_runs.ag_ui.endpoint.channels import Channel
from solid_runs.ag_ui.endpoint.isolation import leave_thread, on_fresh_connection, own_thread
from solid_runs.ag_ui.endpoint.listening import INTERNAL, Ending, Listener, ending_of
from solid_runs.ag_ui.endpoint.outages import in_time, keep, persistently
from solid_runs.ag_ui.endpoint.turns import Turn
from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.records import UNSET, RunKey, RunRecord, Status
from solid_runs.ag_ui.stores.base import BaseStore

CLIENT_GONE: Final = {"message": "The client went away.", "code": "client_gone"}
SHUT_DOWN: Final = {"message": "The server stopped before the run ended.", "code": "stalled"}

GRACE: Final = 5.0
"""Seconds that a cancelled agent has for cleaning up, before its run ends without it."""
STOPPING: Final = 5.0
SAVING: Final = 4.0
"""Seconds that both may take at most when the server stops."""
SHORTEST: Final = 0.5
"""Seconds that a database has at least for an answer, however soon a run counts as stalled."""
SHUTDOWN: Final = 10.0
"""Seconds in which a server that stops has its runs end."""

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
        self._nudged = self._ended = False
        self._ending: Ending | None = None
        self._beating: asyncio.Task[bool] | None = None
        self._task: asyncio.Task[None] | None = None
        self._deadline = math.inf
        self._last: frames.BaseEvent | None = None

    def begin(self) -> Channel:
        """Start the agent, and return where its frames come out."""
        self._live[self._key] = self
        self._task = self._loop.create_task(self._live_through())
        keep(self._task)
        return self.channel

    @classmethod
    def nudge(cls, store: BaseStore, key: RunKey) -> None:
        """Have the owner look for a cancel request now, if it is in this process."""
        live = cls._live.get((store, key))
        if live is not None:
            with suppress(RuntimeError):  # its loop is closed
                live._loop.call_soon_threadsafe(live._look)

    @classmethod
    async def end_all(cls, within: float = SHUTDOWN) -> None:
        """Stop the runs of this loop and end them as failed, because the server stops.

        What has not ended ``within`` these seconds is found as stalled later.
        """
        loop, until = asyncio.get_running_loop(), time.monotonic() + within
        told: set[asyncio.Task[None]] = set()
        await asyncio.sleep(0)  # a task that has not begun would not notice
        while tasks := {
            live._task for live in list(cls._live.values()) if live._loop is loop and live._task
        }:
            for task in tasks - told:
                task.cancel()
            told |= tasks
            await asyncio.wait(tasks, timeout=max(0.0, until - time.monotonic()))
            if time.monotonic() >= until:
                late = sum(not task.done() for task in tasks)
                if late:
                    logger.warning("%s runs did not end before the server stops.", late)
                return

    def _look(self) -> None:
        self._nudged = True
        self._woken.set()

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
                self._deadline = time.monotonic() + STOPPING
                if pump is not None:
                    await self._stop(pump)
                self._deadline = time.monotonic() + SAVING
                if not self._ended:
                    await self._end(self._ending or Ending(Status.FAILED, SHUT_DOWN))
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
            self.record = self.turn.record = await persistently(
                self.store.asave, begun, until=self._until(self._stall_after)
            )
        except StreamError:
            await self._send(told)
            await self._end_as_stored()
            return False
        except Exception:
            logger.exception("Run %r could not be started.", reserved.run_id)
            await self._end(Ending(Status.FAILED, INTERNAL), within=self.grace)
            return False
        await self._send(told, self.sequence)
        return True

    async def _watch(self, pump: asyncio.Task[Ending]) -> Ending | None:
        """Give signs of life until the agent is done or has to stop.

        None: somebody else has ended the run.
        """
        # It must not act any more by the time that somebody takes it for dead.
        patience = self.store.stall_after.total_seconds() / 2
        alive = begun = time.monotonic()
        beat_at, late_at = alive + self.heartbeat, math.inf
        while not pump.done():
            await self._wait_until(late_at if self._beating else beat_at)
            if pump.done():
                break
            if self._left:
                await self._stop(pump)
                return Ending(Status.FAILED, CLIENT_GONE)
            now, beat = time.monotonic(), self._beating
            if beat is None:
                if self._nudged or now >= beat_at:
                    self._begin_beat()
                    begun, beat_at = now, now + self.heartbeat
                    late_at = max(alive + patience, now + patience / 2, now + SHORTEST)
                continue
            if not beat.done() and now < late_at:
                continue
            self._beating = None
            try:
                if not beat.done():
                    leave_thread()
                    raise TimeoutError
                if beat.result():
                    await self._stop(pump)
                    return Ending(Status.CANCELLED)
                alive = begun
            except StreamError:
                await self._stop(pump)
                return None
            except Exception:
                logger.exception("Run %r could not give a sign of life.", self.record.run_id)
                if now >= late_at or now - alive > patience:
                    await self._stop(pump)
                    return Ending(Status.FAILED, INTERNAL)
        return ending_of(pump, self.record.run_id)

    async def _wait_until(self, moment: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._left_until(moment)):
                await self._woken.wait()
        self._woken.clear()

    def _begin_beat(self) -> None:
        """Beat beside the watch, which a database that does not answer must not blind."""
        self._nudged = False
        self._beating = self._loop.create_task(self._beat())
        self._beating.add_done_callback(lambda _: self._woken.set())
        keep(self._beating)

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
        if asyncio.current_task() is self._beating:  # or it was too late, and left behind
            self.record = record
        return stop

    async def _finish_beat(self) -> None:
        """Let a beat that is on its way arrive before the end is saved, but not for long."""
        if self._beating is not None:
            await asyncio.wait({self._beating}, timeout=self._left_until(self._until(self.grace)))
            if not self._beating.done():
                leave_thread()
            self._beating = None

    @property
    def _stall_after(self) -> float:
        return max(self.store.stall_after.total_seconds(), 2 * SHORTEST)

    def _until(self, seconds: float) -> float:
        """The moment in so many seconds, or sooner when the server stops."""
        return min(time.monotonic() + seconds, self._deadline)

    @staticmethod
    def _left_until(moment: float) -> float:
        return max(0.0, moment - time.monotonic())

    async def _stop(self, pump: asyncio.Task[Ending]) -> None:
        """Cancel the agent. One that does not stop goes on unheard."""
        self.turn._stopping = True
        for _ in range(3):  # an agent may swallow the first one
            pump.cancel()
            await asyncio.wait({pump}, timeout=self._left_until(self._until(self.grace / 3)))
            if pump.done():
                if not pump.cancelled() and pump.exception():
                    logger.info("An agent failed while it was stopped.", exc_info=pump.exception())
                return
        logger.warning(
            "The agent of run %r does not stop; its run ends without it.", self.record.run_id
        )
        keep(pump)

    async def _tell(self, event: frames.BaseEvent) -> None:
        self.sequence += 1
        await self._send(event, self.sequence)

    async def _send(self, event: frames.BaseEvent, sequence: int | None = None) -> None:
        self._last = event
        await self.channel.put(frames.encode(event, sequence))

    # The end

    async def _end(self, ending: Ending, *, within: float | None = None) -> None:
        """Save how it ended, then say so. ``within``: seconds, by default until it has stalled."""
        self._ending = ending
        await self._finish_beat()
        try:
            told = list(self._last_words(ending))
            kept = self._closed(ending, self.sequence + len(told))
        except Exception:
            logger.exception("Run %r ended as nothing that can be stored.", self.record.run_id)
            ending, self.turn.usage = Ending(Status.FAILED, INTERNAL), []
            told = list(self._last_words(ending))
            kept = self._closed(ending, self.sequence + len(told))
        try:
            until = self._until(self._stall_after if within is None else within)
            self.record = await persistently(self.store.asave, kept, until=until)
        except StreamError:
            await self._end_as_stored()
            return
        except Exception:
            logger.exception("The end of run %r could not be saved.", self.record.run_id)
            await self._give_up()
            told = [frames.failed(INTERNAL)]
        await self._send_last(told)

    async def _give_up(self) -> None:
        """Save it as failed, without what may be in the way of that: its state and its questions.

        If that fails too it will be found as stalled.
        """
        failed = replace(self.record, sequence=self.sequence + 1).finish(
            Status.FAILED, self.store.now(), INTERNAL
        )
        try:
            self.record = await in_time(self.store.asave, failed, until=self._until(self.grace))
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
        await self._finish_beat()
        key = RunKey.of(self.record)
        until = self._until(self._stall_after)
        stored = await persistently(self.store.afind, *key, until=until)
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
