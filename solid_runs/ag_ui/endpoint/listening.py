"""Hearing an agent out: what it yields, what it asks, and how it ends."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from solid_runs.ag_ui.endpoint import frames
from solid_runs.ag_ui.endpoint.isolation import own_thread
from solid_runs.ag_ui.endpoint.openings import Opened
from solid_runs.ag_ui.endpoint.turns import AGENT_ERROR, AgentError, Turn
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import Status
from solid_runs.printable import text

INTERNAL: Final = {"message": "The run failed.", "code": "internal_error"}

logger = logging.getLogger("solid_runs.ag_ui")


@dataclass
class Ending:
    """How a run ends. ``failure`` as in a record."""

    status: Status
    failure: dict[str, str] | None = None
    interrupts: list[Interrupt] = field(default_factory=list)


class Listener:
    """Runs the agent of a turn, and passes its events on to ``tell``.

    ``opened``: what the agent has opened and not closed. ``state_moved``: set by each event that
    changes the state. An interrupt without a deadline gets ``interrupt_ttl``, if there is one.
    """

    def __init__(
        self,
        agent: Callable[[Turn], Any],
        turn: Turn,
        tell: Callable[[frames.BaseEvent], Awaitable[None]],
        now: Callable[[], datetime],
        interrupt_ttl: timedelta | None,
    ) -> None:
        self.agent, self.turn, self.tell = agent, turn, tell
        self.now, self.interrupt_ttl = now, interrupt_ttl
        self.opened, self.state_moved = Opened(), False
        self._asked: list[Interrupt] = []

    async def listen(self) -> Ending:
        """To the end of the agent, or to an event that ends the run; raises what it raises."""
        async with own_thread():
            try:
                return await self._hear_out()
            except (SystemExit, KeyboardInterrupt) as error:  # which would stop the server
                raise RuntimeError(f"The agent raised {type(error).__name__}.") from error

    async def _hear_out(self) -> Ending:
        events = self.agent(self.turn)
        if inspect.isawaitable(events):
            events = await events
        async with _cleaned_up(events):
            async for value in events:
                if self.turn.cancelled:
                    break
                if (ending := await self._take(value)) is not None:
                    return ending
        return self._finished()

    async def _take(self, value: Any) -> Ending | None:
        """Pass on what the agent yielded; an Ending when that was the end."""
        if isinstance(value, Interrupt | frames.WireInterrupt):
            self._asked.append(self._with_deadline(frames.as_interrupt(value)))
            return None
        event = frames.as_event(value)
        if isinstance(event, frames.RunErrorEvent):
            failure = {"message": text(event.message), "code": text(event.code or AGENT_ERROR)}
            return Ending(Status.FAILED, failure)
        if isinstance(event, frames.RunFinishedEvent):
            return self._merge(event)
        if isinstance(event, frames.RunStartedEvent):
            return None
        if isinstance(event, frames.StateSnapshotEvent | frames.StateDeltaEvent):
            self.turn._move_state(event)
            self.state_moved = True
        self.opened.follow(event)
        await self.tell(event)
        return None

    def _merge(self, event: frames.RunFinishedEvent) -> Ending:
        """An agent that brings the end itself, as adapters of frameworks do."""
        if event.result is not None:
            self.turn.result = event.result
        self.turn.usage = [*self.turn.usage, *(event.usage or ())]
        outcome = event.outcome
        if isinstance(outcome, frames.RunFinishedInterruptOutcome):
            self._asked += [
                self._with_deadline(frames.as_interrupt(one)) for one in outcome.interrupts
            ]
        elif outcome is not None and outcome.type == "cancelled":
            return Ending(Status.CANCELLED)
        return self._finished()

    def _finished(self) -> Ending:
        asked = self._asked
        return Ending(Status.INTERRUPTED if asked else Status.SUCCEEDED, interrupts=asked)

    def _with_deadline(self, interrupt: Interrupt) -> Interrupt:
        if interrupt.expires_at is not None or self.interrupt_ttl is None:
            return interrupt
        return replace(interrupt, expires_at=self.now() + self.interrupt_ttl)


@asynccontextmanager
async def _cleaned_up(events: Any) -> AsyncIterator[None]:
    """Close what yields the events after the block. What is raised then is only logged.

    By then the agent has ended, well or badly, and its cleanup does not change how.
    """
    try:
        yield
    finally:
        if hasattr(events, "aclose"):
            try:
                await events.aclose()
            except BaseException as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                    raise
                logger.exception("An agent failed while it cleaned up.")


def ending_of(task: asyncio.Task[Ending], run_id: str) -> Ending:
    """How the run of an agent ends whose task is done. What says nothing to a user is logged."""
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    if (meant := _for_the_user(error)) is not None:
        failure = {"message": text(meant.message), "code": text(meant.code)}
        return Ending(Status.FAILED, failure)
    logger.error("The agent of run %r failed.", run_id, exc_info=error)
    return Ending(Status.FAILED, INTERNAL)


def _for_the_user(error: BaseException) -> AgentError | None:
    """The AgentError, which a task group hands on in a group of its own."""
    if isinstance(error, BaseExceptionGroup) and error.split(AgentError)[1] is None:
        error = error.exceptions[0]
        return _for_the_user(error)
    return error if isinstance(error, AgentError) else None
