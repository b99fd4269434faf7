"""What is known of one reserved run of an AG-UI conversation: an immutable value, pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from solid_runs.ag_ui.exceptions import ConfigurationError, StreamError
from solid_runs.ag_ui.interrupts import Interrupt, Redemption
from solid_runs.ag_ui.scopes import identifier, scope_key
from solid_runs.ag_ui.values import aware, iso, moment
from solid_runs.copied import Copied


class Status(StrEnum):
    RESERVED = "reserved"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    INTERRUPTED = "interrupted"
    """Ended with a question: going on is a new run of the same thread."""
    CANCELLED = "cancelled"
    FAILED = "failed"


ACTIVE: Final = frozenset({Status.RESERVED, Status.STARTED})
TERMINAL: Final = frozenset(Status) - ACTIVE


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""A snapshot that was not given: the one that there is stays."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The server's own account of a run: host bookkeeping, not business truth.

    Every transition returns a new record, or the same object where nothing changes. ``sequence``
    is the highest event number handed out. ``failure`` is ``{"message", "code"}``, sanitised.
    """

    scope: str
    thread_id: str
    run_id: str
    digest: str
    created_at: datetime
    updated_at: datetime = None  # type: ignore[assignment]  # created_at
    status: Status = Status.RESERVED
    sequence: int = 0
    snapshot: Any = Copied()
    failure: Any = Copied()
    interrupts: tuple[Interrupt, ...] = ()

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("scope", scope_key(self.scope))
        for name in ("thread_id", "run_id", "digest"):
            put(name, identifier(name, getattr(self, name)))
        if self.status not in tuple(Status):
            raise ConfigurationError(f"{self.status!r} is no status of a run.")
        put("status", Status(self.status))
        put("created_at", aware(self.created_at))
        put("updated_at", aware(self.updated_at or self.created_at))
        put("interrupts", tuple(self.interrupts))
        ids = [interrupt.id for interrupt in self.interrupts]
        if len(set(ids)) < len(ids):
            raise ConfigurationError(f"The interrupts of run {self.run_id!r} share an id: {ids}.")

    # Queries

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def pending_interrupts(self) -> tuple[Interrupt, ...]:
        return tuple(interrupt for interrupt in self.interrupts if interrupt.pending)

    @property
    def awaiting_approval(self) -> bool:
        """Interrupted with something pending: never to be reported as success."""
        return self.status is Status.INTERRUPTED and bool(self.pending_interrupts)

    def answerable_interrupts(self, now: datetime) -> tuple[Interrupt, ...]:
        """The pending ones, which are answered together; none once all of them have expired."""
        pending = self.pending_interrupts
        return () if all(interrupt.expired(now) for interrupt in pending) else pending

    def interrupt(self, interrupt_id: str) -> Interrupt | None:
        return next((one for one in self.interrupts if one.id == interrupt_id), None)

    # Transitions

    def start(self, now: datetime, snapshot: Any = None) -> Self:
        """Reserved becomes started, with the snapshot if one is given.

        StreamError when the run has ended.
        """
        if self.status is Status.STARTED:
            return self
        self._refuse_if_ended("start")
        kept = self.snapshot if snapshot is None else snapshot
        return replace(self, status=Status.STARTED, snapshot=kept, updated_at=now)

    def advance(self, now: datetime) -> Self:
        """One event more was handed out, whatever the status."""
        return replace(self, sequence=self.sequence + 1, updated_at=now)

    def checkpoint(self, snapshot: Any, now: datetime) -> Self:
        """Replace the snapshot. StreamError when the run has ended."""
        self._refuse_if_ended("take a snapshot")
        return replace(self, snapshot=snapshot, updated_at=now)

    def finish(
        self,
        status: str,
        now: datetime,
        failure: Mapping[str, Any] | None = None,
        snapshot: Any = UNSET,
    ) -> Self:
        """End the run. A repeat gives the same object; StreamError when it ended otherwise."""
        if status not in tuple(TERMINAL):
            raise ConfigurationError(f"A run does not end as {status!r}.")
        if self.status == status:
            return self
        if self.terminal:
            raise StreamError(
                f"Run {self.run_id!r} has ended as {self.status} and cannot end as {status}."
            )
        kept = self.snapshot if snapshot is UNSET else snapshot
        return replace(self, status=Status(status), failure=failure, snapshot=kept, updated_at=now)

    def interrupted(
        self, interrupts: Iterable[Interrupt], now: datetime, snapshot: Any = UNSET
    ) -> Self:
        """End the run with questions, at least one of them open."""
        asked = tuple(interrupts)
        if not any(interrupt.pending for interrupt in asked):
            raise ConfigurationError("A run is interrupted by at least one open interrupt.")
        self._refuse_if_ended("be interrupted")
        kept = self.snapshot if snapshot is UNSET else snapshot
        return replace(
            self,
            status=Status.INTERRUPTED,
            interrupts=asked,
            snapshot=kept,
            updated_at=now,
        )

    def replace_interrupt(self, decided: Interrupt, now: datetime) -> Self:
        """Put an interrupt in the place of the one with its id: what an ended run still accepts."""
        if self.interrupt(decided.id) is None:
            raise ConfigurationError(f"Run {self.run_id!r} has no interrupt {decided.id!r}.")
        kept = tuple(decided if one.id == decided.id else one for one in self.interrupts)
        return replace(self, interrupts=kept, updated_at=now)

    def _refuse_if_ended(self, what: str) -> None:
        if self.terminal:
            raise StreamError(f"Run {self.run_id!r} has ended as {self.status}; it cannot {what}.")

    # Stored and reported

    def to_dict(self) -> dict[str, Any]:
        """The reporting shape, with interrupts as a client sees them."""
        return self._shape([interrupt.to_dict() for interrupt in self.interrupts])

    def to_storage(self) -> dict[str, Any]:
        """All of it; from_storage() gives it back without loss."""
        return self._shape([interrupt.to_storage() for interrupt in self.interrupts])

    def _shape(self, interrupts: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "threadId": self.thread_id,
            "runId": self.run_id,
            "digest": self.digest,
            "status": self.status.value,
            "sequence": self.sequence,
            "snapshot": self.snapshot,
            "failure": self.failure,
            "interrupts": interrupts,
            "createdAt": iso(self.created_at),
            "updatedAt": iso(self.updated_at),
        }

    @classmethod
    def from_storage(cls, stored: Mapping[str, Any]) -> Self:
        """ConfigurationError that names a key which is missing."""
        for key in REQUIRED:
            if key not in stored:
                raise ConfigurationError(f"A stored run has no {key!r}.")
        created_at = moment("createdAt", stored["createdAt"])
        if created_at is None:
            raise ConfigurationError("A stored run has no time in 'createdAt'.")
        return cls(
            scope=stored["scope"],
            thread_id=stored["threadId"],
            run_id=stored["runId"],
            digest=stored["digest"],
            status=stored["status"],
            sequence=stored["sequence"],
            snapshot=stored.get("snapshot"),
            failure=stored.get("failure"),
            interrupts=tuple(map(Interrupt.from_storage, stored.get("interrupts") or ())),
            created_at=created_at,
            updated_at=moment("updatedAt", stored["updatedAt"]) or created_at,
        )


REQUIRED: Final = (
    *("scope", "threadId", "runId", "digest", "status", "sequence", "createdAt", "updatedAt"),
)


class Reservation(NamedTuple):
    """What became of a reservation: ``new``, or ``attached`` to the one that is there."""

    record: RunRecord
    new: bool

    @property
    def attached(self) -> bool:
        return not self.new


class Admission(NamedTuple):
    """What became of a request to run.

    ``new`` and ``attached`` as in a Reservation. ``offered``: nothing was stored, and ``record`` is
    the run whose open interrupts have to be answered first. ``answers``: what the run brought or
    found, in the order of the interrupts; it may act on those that it holds.
    """

    record: RunRecord
    new: bool
    offered: bool = False
    answers: tuple[Redemption, ...] = ()

    @property
    def attached(self) -> bool:
        return not self.new and not self.offered


class CancelRequest(NamedTuple):
    """``ended``: nobody has to see the request any more."""

    record: RunRecord
    ended: bool


class RunKey(NamedTuple):
    """The identity of a run."""

    scope: str
    thread_id: str
    run_id: str

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        return cls(record.scope, record.thread_id, record.run_id)
