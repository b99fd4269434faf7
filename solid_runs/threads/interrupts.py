"""What a run asked a person, and the answer: an immutable value, pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

from solid_runs.copied import Copied
from solid_runs.threads import values
from solid_runs.threads.exceptions import BatchRejected, InvalidRecord
from solid_runs.threads.values import UNSET


class InterruptStatus(StrEnum):
    PENDING = "pending"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class InterruptRecord:
    """``response`` is UNSET where there is none; None is the answer null."""

    interrupt_id: str
    run_id: str
    thread_id: str
    status: str = InterruptStatus.PENDING
    requested_at: int
    resolved_at: int | None = None
    payload: Any = Copied()
    response: Any = UNSET

    @property
    def pending(self) -> bool:
        return self.status == InterruptStatus.PENDING

    def copy(self) -> Self:
        return replace(self, response=deepcopy(self.response))

    def decided(self, decision: Decision, now: int) -> Self:
        return replace(
            self, status=decision.status, response=deepcopy(decision.response), resolved_at=now
        )

    def to_json(self) -> dict[str, Any]:
        """With the names of JSON, and nothing for what is absent."""
        shown = {json_name: getattr(self, name) for name, json_name in INTERRUPT_FIELDS.items()}
        if self.resolved_at is None:
            del shown["resolvedAt"]
        if self.response is UNSET:
            del shown["response"]
        return {**shown, "status": str(self.status)}

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> Self:
        given = {name: shown.get(json_name) for name, json_name in INTERRUPT_FIELDS.items()}
        return cls(**{**given, "response": shown.get("response", UNSET)})


INTERRUPT_FIELDS: Final = {
    "interrupt_id": "interruptId",
    "run_id": "runId",
    "thread_id": "threadId",
    "status": "status",
    "requested_at": "requestedAt",
    "resolved_at": "resolvedAt",
    "payload": "payload",
    "response": "response",
}
"""Each field with its name in JSON."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of an interrupt."""

    interrupt_id: str
    status: InterruptStatus
    response: Any = UNSET


def new_interrupt(
    interrupt_id: Any, run_id: Any, thread_id: Any, requested_at: Any, payload: Any
) -> InterruptRecord:
    """A pending one; InvalidRecord for a value that it cannot have."""
    return InterruptRecord(
        interrupt_id=values.identifier("interrupt_id", interrupt_id),
        run_id=values.identifier("run_id", run_id),
        thread_id=values.identifier("thread_id", thread_id),
        requested_at=values.milliseconds("requested_at", requested_at),
        payload=values.document("payload", payload),
    )


def resolution(interrupt_id: Any, response: Any) -> Decision:
    return Decision(
        interrupt_id=values.identifier("interrupt_id", interrupt_id),
        status=InterruptStatus.RESOLVED,
        response=UNSET if response is UNSET else values.sized("response", response),
    )


def cancellation(interrupt_id: Any) -> Decision:
    return Decision(
        interrupt_id=values.identifier("interrupt_id", interrupt_id),
        status=InterruptStatus.CANCELLED,
    )


def decisions(entries: Iterable[Mapping[str, Any]]) -> list[Decision]:
    """A batch; InvalidRecord for an entry that is none, BatchRejected for one that comes twice."""
    if isinstance(entries, Mapping | str) or not isinstance(entries, Iterable):
        raise InvalidRecord("entries", f"This must be a list, not {values.shown(entries)}.")
    found = [_decision(f"entries.{number}", entry) for number, entry in enumerate(entries)]
    ids = [one.interrupt_id for one in found]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise BatchRejected(f"A batch answers each interrupt once, not {', '.join(twice)}.", twice)
    return found


def _decision(where: str, entry: Any) -> Decision:
    if not isinstance(entry, Mapping):
        raise InvalidRecord(where, f"This must be an object, not {values.shown(entry)}.")
    for name in entry:
        if name not in ("interrupt_id", "status", "response"):
            raise InvalidRecord(f"{where}.{name}", "There is no such field.")
    try:
        status = _end(f"{where}.status", entry.get("status"))
        if status == InterruptStatus.RESOLVED:
            return resolution(entry.get("interrupt_id"), entry.get("response", UNSET))
        if "response" in entry:
            raise InvalidRecord("response", "What is cancelled has none.")
        return cancellation(entry.get("interrupt_id"))
    except InvalidRecord as error:
        if error.field.startswith(where):
            raise
        raise InvalidRecord(f"{where}.{error.field}", error.problem) from error


def _end(field: str, value: Any) -> InterruptStatus:
    status: InterruptStatus = values.one_of(InterruptStatus)(field, value)
    if status == InterruptStatus.PENDING:
        raise InvalidRecord(field, "Use resolved or cancelled.")
    return status


def refuse_all_but_pending(batch: Iterable[Decision], stored: Mapping[str, str]) -> None:
    """BatchRejected unless each of the batch is stored as pending; ``stored``: status by id."""
    wrong = [one.interrupt_id for one in batch if stored.get(one.interrupt_id) != "pending"]
    if wrong:
        raise BatchRejected(
            f"Nothing was answered: {', '.join(wrong)} is not there or not pending.", wrong
        )
