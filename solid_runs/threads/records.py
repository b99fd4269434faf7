"""What is known of one run of a conversation: an immutable value, pure.

Times are whole milliseconds since 1970, kept as they were given. What is absent is None here and
left out of the JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from solid_runs.copied import Copied
from solid_runs.threads import values
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.values import Check


class Status(StrEnum):
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Paused for a person, and going on under the same id: this is no end."""
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


TERMINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.ABORTED})


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as it is stored.

    ``status`` is a Status, or the text that is stored where that is none: it is neither terminal
    nor running then. ``error`` is ``{"message", "code"?}``, ``usage`` what the model counted.
    ``detached_since``: when the last viewer left; None while somebody watches. ``cancel_requested``
    may be None, False or True. ``driver_epoch`` counts the claims; None: never claimed.
    """

    run_id: str
    thread_id: str
    status: str = Status.RUNNING
    started_at: int
    parent_run_id: str | None = None
    subagent_run_id: str | None = None
    name: str | None = None
    finished_at: int | None = None
    error: Any = Copied()
    usage: Any = Copied()
    sandbox_key: str | None = None
    detached_since: int | None = None
    cancel_requested: bool | None = None
    driver_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.status in tuple(Status):
            object.__setattr__(self, "status", Status(self.status))

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    def to_json(self) -> dict[str, Any]:
        """With the names of JSON, and nothing for what is absent."""
        values = {json_name: getattr(self, name) for name, json_name in FIELDS.items()}
        shown = {name: value for name, value in values.items() if value is not None}
        return {**shown, "status": str(self.status)}

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> Self:
        given: dict[str, Any] = {name: shown.get(shown_as) for name, shown_as in FIELDS.items()}
        return cls(**given)


FIELDS: Final = {
    "run_id": "runId",
    "thread_id": "threadId",
    "parent_run_id": "parentRunId",
    "subagent_run_id": "subagentRunId",
    "name": "name",
    "status": "status",
    "started_at": "startedAt",
    "finished_at": "finishedAt",
    "error": "error",
    "usage": "usage",
    "sandbox_key": "sandboxKey",
    "detached_since": "detachedSince",
    "cancel_requested": "cancelRequested",
    "driver_epoch": "driverEpoch",
}
"""Each field with its name in JSON."""

PATCHABLE: Final[dict[str, Check]] = {
    "status": values.one_of(Status),
    "finished_at": values.milliseconds,
    "error": values.failure,
    "usage": values.document,
    "sandbox_key": values.key,
    "detached_since": values.milliseconds,
    "cancel_requested": values.flag,
    "driver_epoch": values.epoch,
}
"""What an update may name, and what may be there."""

GIVEN: Final[dict[str, Check]] = {
    "run_id": values.identifier,
    "thread_id": values.identifier,
    "started_at": values.milliseconds,
    "status": values.one_of(Status),
    "parent_run_id": values.identifier,
    "subagent_run_id": values.identifier,
    "name": values.label,
}
"""What a run is created with."""
OPTIONAL: Final = frozenset({"status", "parent_run_id", "subagent_run_id", "name"})


def new_record(**given: Any) -> RunRecord:
    """The record of a new run; InvalidRecord for a value that it cannot have."""
    unknown = sorted(given.keys() - GIVEN.keys())
    if unknown:
        raise InvalidRecord(unknown[0], f"A run is created with {', '.join(GIVEN)}.")
    kept = {
        name: check(name, given.get(name))
        for name, check in GIVEN.items()
        if name not in OPTIONAL or given.get(name) is not None
    }
    return RunRecord(**kept)


def checked_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """A patch as it is stored, None for what it clears; InvalidRecord, and nothing half done."""
    if not isinstance(patch, Mapping):
        raise InvalidRecord("patch", f"This must be an object, not {values.shown(patch)}.")
    kept = {}
    for name, value in patch.items():
        if name not in PATCHABLE:
            raise InvalidRecord(
                str(name), f"An update has no such field; use {', '.join(PATCHABLE)}."
            )
        if value is None and name == "status":
            raise InvalidRecord(name, "A status cannot be cleared.")
        kept[name] = None if value is None else PATCHABLE[name](name, value)
    return kept
