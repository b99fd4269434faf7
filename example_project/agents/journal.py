"""An AgentRun beside each AG-UI run: the same trace, the same end, and what was done between."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from ag_ui.core import TextMessageContentEvent, ToolCallStartEvent

from example_project.agents.models import AgentRun
from solid_runs.ag_ui.endpoint.turns import Turn
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.records import Status


class Journal:
    """Keeps the AgentRun of a turn while the agent works; ends it as the AG-UI run ends.

    One that ends with questions is complete: going on is another run. Its metadata names them.
    """

    def __init__(self, turn: Turn, prompt: str | None) -> None:
        self.turn, self._eids = turn, itertools.count(1)
        self._texts: list[str] = []
        self._asked: list[Interrupt] = []
        self.run = AgentRun(
            action_name="answer" if turn.answers else "reply",
            agent_name="Assistant",
            trace_id=turn.trace_id,
            input_prompt=prompt,
            input_params={"thread": turn.thread_id, "run": turn.run_id},
            output_metadata={"provider": "scripted", "model": "assistant"},
        )

    async def __aenter__(self) -> Self:
        await self.run.asave()
        await self.run.astart()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            asked = [interrupt.id for interrupt in self._asked]
            await self.run.afinish(
                output="".join(self._texts).strip(),
                metadata={"waits_for": asked} if asked else None,
            )
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            await self._stop()
        else:
            await self.run.afail(error)

    async def _stop(self) -> None:
        """The agent was stopped: by a person who cancelled, or with the server."""
        reserved = await ReservedRun.objects.filter(trace_id=self.turn.trace_id).afirst()
        asked = reserved is not None and reserved.cancel_requested_at is not None
        if reserved is None or asked or reserved.status == Status.CANCELLED:
            await self.run.acancel("Cancelled by the user")
        else:
            await self.run.afail("The server stopped before the run ended.")

    def note(self, said: Any) -> None:
        """Keep what of an agent's words is output, and what it asks."""
        if isinstance(said, TextMessageContentEvent):
            self._texts.append(said.delta)
        elif isinstance(said, ToolCallStartEvent) and self._texts:
            self._texts.append("\n")
        elif isinstance(said, Interrupt):
            self._asked.append(said)

    @asynccontextmanager
    async def step(self, kind: str, label: str) -> AsyncIterator[dict[str, Any]]:
        """A step of the timeline; what is put into the dictionary goes with its end."""
        eid, began = str(next(self._eids)), time.monotonic()
        await self.run.aappend_event(kind, label, eid, "started")
        outcome: dict[str, Any] = {"status": "done"}
        try:
            yield outcome
        except BaseException as error:
            so_far = outcome.get("detail")
            outcome |= {"status": "error", "detail": so_far or f"{type(error).__name__}: {error}"}
            raise
        finally:
            took = int((time.monotonic() - began) * 1000)
            await self.run.aappend_event(kind, label, eid, **outcome, duration_ms=took)
