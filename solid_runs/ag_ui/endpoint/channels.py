"""Frames on their way from an agent to the one client that reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from solid_runs.ag_ui.endpoint import frames

MOST_FRAMES: Final = 256
"""How far an agent may be ahead of the client."""
MOST_CHARACTERS: Final = 1_000_000
"""How much may wait for the client, beside a single frame that is larger."""
PATIENCE: Final = 30.0
"""Seconds that an agent which is that far ahead waits for a client that does not read."""

FELL_BEHIND: Final = "The client did not read what the run sent. The run goes on without it."


class Channel:
    """A bounded queue with one writer and one reader, both of one event loop.

    The writer waits for a slow reader, but not for one that has left or that stopped reading: from
    then on what it sends goes nowhere. ``on_left`` is called, once, when a reader leaves before
    the end. A reader that comes back to what it missed is told so, as the last frame.
    """

    def __init__(
        self,
        *,
        keep_alive: float,
        on_left: Callable[[], None] | None = None,
        size: int = MOST_FRAMES,
        characters: int = MOST_CHARACTERS,
        patience: float = PATIENCE,
    ) -> None:
        self.keep_alive, self.on_left, self.patience = keep_alive, on_left, patience
        self.size, self.characters = size, characters
        self._frames: deque[str] = deque()
        self._waiting = 0
        self._filled, self._drained = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._finished = self._left = self._behind = False

    async def put(self, frame: str) -> None:
        if self._is_full_for(frame) and not self._unread:
            self._drained.clear()
            try:
                async with asyncio.timeout(self.patience):
                    await self._drained.wait()
            except TimeoutError:
                self._behind = True
                self._leave()
        if self._unread:
            await asyncio.sleep(0)  # an agent that never waits would stop the loop
            return
        self._frames.append(frame)
        self._waiting += len(frame)
        self._filled.set()
        await asyncio.sleep(0)

    def _is_full_for(self, frame: str) -> bool:
        if not self._frames:
            return False
        return len(self._frames) >= self.size or self._waiting + len(frame) > self.characters

    def _take(self) -> str:
        waiting = "".join(self._frames)
        self._clear()
        self._drained.set()
        return waiting

    def _clear(self) -> None:
        self._frames.clear()
        self._waiting = 0

    @property
    def _unread(self) -> bool:
        return self._left or self._behind

    def finish(self) -> None:
        """Say that no frame follows."""
        self._finished = True
        self._filled.set()

    def _leave(self) -> None:
        self._drained.set()
        self._filled.set()
        if self.on_left and not self._finished:
            self.on_left()
        self.on_left = None

    def leave(self) -> None:
        """Say that nobody reads any more."""
        self._left = True
        self._clear()
        self._leave()

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            while True:
                while self._frames:
                    yield self._take()
                if self._finished or self._unread:
                    break
                self._filled.clear()
                try:
                    async with asyncio.timeout(self.keep_alive):
                        await self._filled.wait()
                except TimeoutError:
                    yield frames.PING
            if self._behind:
                yield frames.encode(frames.error(FELL_BEHIND, "run_in_progress"))
        finally:
            self.leave()

    def close(self) -> None:
        """Leave, from whichever thread: Django calls it when a response is done with."""
        with suppress(RuntimeError):  # the loop is closed, and everything in it gone
            self._loop.call_soon_threadsafe(self.leave)
