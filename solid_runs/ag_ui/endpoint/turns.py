"""What an agent is given for one run, and what it says of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, Final

import jsonpatch
from django.http import HttpRequest
from jsonpointer import JsonPointer, JsonPointerException

from solid_runs.ag_ui.endpoint.frames import RunAgentInput, StateDeltaEvent, StateSnapshotEvent
from solid_runs.ag_ui.endpoint.isolation import on_fresh_connection
from solid_runs.ag_ui.interrupts import Decision, Redemption
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.base import BaseStore
from solid_runs.storable import DEEPEST, json_value

UNFIT: Final = (jsonpatch.JsonPatchException, JsonPointerException, LookupError, TypeError)
"""What a patch raises that does not fit the state."""

AGENT_ERROR: Final = "agent_error"

logger = logging.getLogger("solid_runs.ag_ui")


class AgentError(Exception):
    """Raised by an agent to fail its run with a message that the user may read.

    Any other exception fails it too, with a message that says nothing, and is logged.
    """

    def __init__(self, message: str, code: str = AGENT_ERROR) -> None:
        self.message, self.code = message, code
        super().__init__(message)


class Turn:
    """One run, as its agent sees it.

    ``input`` is what the client sent and ``answers`` what people have answered, with it or before.
    ``request`` is None for a run without a client.
    ``result``, a JSON value, and ``usage``, a list of token counts, go out with the end of the
    run when the agent sets them.

    Right before acting on an answer, and a denial is acted on by telling the model, an agent awaits
    settle() and acts only when that is true. An answer that is not settled when the run ends is
    free again: the next run of the thread gets it.
    """

    def __init__(
        self,
        store: BaseStore,
        record: RunRecord,
        input: RunAgentInput,
        request: HttpRequest | None,
        answers: Iterable[Redemption] = (),
        trace_id: str | None = None,
    ) -> None:
        self._store, self.record = store, record
        self.input, self.request, self.trace_id = input, request, trace_id
        self.answers: tuple[Redemption, ...] = tuple(answers)
        self.result: Any = None
        self.usage: list[Any] = []
        self._state = _plain(input.state or None)  # the client sends {} where it has none
        self._stopping = False

    @property
    def scope(self) -> str:
        return self.record.scope

    @property
    def thread_id(self) -> str:
        return self.record.thread_id

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def cancelled(self) -> bool:
        """Whether the run is being stopped, for whatever reason."""
        return self._stopping

    @property
    def state(self) -> Any:
        """The state as the client has it: what came in, and what the agent's events made of it."""
        return deepcopy(self._state)

    def answer(self, interrupt_id: str) -> Decision | None:
        """What was answered: ``resolved`` with a payload, or ``cancelled``. None: nothing yet."""
        found = (one.interrupt for one in self.answers if one.interrupt.id == interrupt_id)
        return next((interrupt.decision for interrupt in found), None)

    async def settle(self, interrupt_id: str) -> bool:
        """Ask for the permission to act on an answer, which is given once, whatever crashes.

        False: another run has acted on it or may, or this one is being stopped.
        """
        if self._stopping:
            return False
        key = (self.scope, self.thread_id, interrupt_id, self.run_id)
        return await on_fresh_connection(self._store.asettle, *key)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The tool calls that nobody will approve any more: the user cancelled, or time ran out."""
        return tuple(
            one.interrupt.tool_call_id
            for one in self.answers
            if one.interrupt.cancelled and one.interrupt.tool_call_id
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The tool calls on which another run acts or has acted, with an outcome that it knows.

        A model that waits for their results has to be told something: look into your own records,
        or say that the outcome is unknown.
        """
        return tuple(
            one.interrupt.tool_call_id
            for one in self.answers
            if not one.holds and not one.interrupt.cancelled and one.interrupt.tool_call_id
        )

    def _move_state(self, event: StateSnapshotEvent | StateDeltaEvent) -> None:
        """Do to the state what the client does with the event."""
        if isinstance(event, StateSnapshotEvent):
            self._state = _plain(event.snapshot)
        else:
            patch = [one.model_dump(by_alias=True, mode="json") for one in event.delta]
            try:
                state = {} if self._state is None else self._state
                self._state = patched(state, patch)
            except UNFIT:
                logger.warning(
                    "A STATE_DELTA of run %r does not fit its state and was passed over, as the "
                    "client does.",
                    self.run_id,
                    exc_info=True,
                )


def patched(state: Any, operations: Sequence[dict[str, Any]]) -> Any:
    """A state with JSON Patch operations done to it; raises one of UNFIT for what does not fit.

    ``state`` stays as it was, and the two share what no operation touches: copying all of a large
    state for each of many small changes would hold up the loop.
    """
    copies: dict[int, Any] = {}  # by id; held here, so that no id is given to another meanwhile
    for operation in operations:
        changed = [operation.get("path")]
        if operation.get("op") == "move":
            changed.append(operation.get("from"))
        for pointer in changed:
            if isinstance(pointer, str):
                state = _with_own_path(state, JsonPointer(pointer).parts[:-1], copies)
        state = jsonpatch.JsonPatch([operation]).apply(state, in_place=True)
    return state


def _with_own_path(state: Any, parts: Sequence[str], copies: dict[int, Any]) -> Any:
    """The state, with copies of the containers that a pointer goes through, as far as it leads."""

    def own(value: Any) -> Any:
        if id(value) in copies or not isinstance(value, dict | list):
            return value
        copied = value.copy()
        copies[id(copied)] = copied
        return copied

    state = at = own(state)
    for part in parts:
        try:
            key = int(part) if isinstance(at, list) else part
            child = at[key] = own(at[key])
        except (LookupError, ValueError, TypeError):
            break  # the operation will say so
        at = child
    return state


def _plain(state: Any) -> Any:
    """A copy of it, as it is stored."""
    return json_value(state, max_depth=DEEPEST)
