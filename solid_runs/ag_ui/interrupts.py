"""A question that a run waits for a person to answer, and the four states of the answer: pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Self

from solid_runs.ag_ui.digests import canonical_json
from solid_runs.ag_ui.exceptions import ConfigurationError, ResumeRejectedError
from solid_runs.ag_ui.scopes import identifier
from solid_runs.ag_ui.values import aware, iso, moment
from solid_runs.copied import Copied
from solid_runs.printable import text

RESOLVED: Final = "resolved"
CANCELLED: Final = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """An answer: ``resolved`` with a payload (a denial is one too), or ``cancelled``.

    ``metadata`` came with the entry and is no part of what is compared.
    """

    status: Literal["resolved", "cancelled"]
    payload: Any = Copied()
    metadata: Any = Copied()

    def __post_init__(self) -> None:
        if self.status not in (RESOLVED, CANCELLED):
            raise ConfigurationError(f"A decision is resolved or cancelled, not {self.status!r}.")

    def agrees(self, other: Decision) -> bool:
        """Equal as canonical JSON: the order of keys, 1 and 1.0, absent and null do not matter."""
        return (self.status, canonical_json(self.payload)) == (
            other.status,
            canonical_json(other.payload),
        )

    def to_storage(self) -> dict[str, Any]:
        return {"status": self.status, "payload": self.payload, "metadata": self.metadata}

    @classmethod
    def from_storage(cls, stored: Mapping[str, Any]) -> Self:
        """ConfigurationError that names a key which is missing."""
        if "status" not in stored:
            raise ConfigurationError("A stored decision has no 'status'.")
        return cls(
            status=stored["status"],
            payload=stored.get("payload"),
            metadata=stored.get("metadata"),
        )


class AnswerState(StrEnum):
    OPEN = "open"
    """No answer yet."""
    HELD = "held"
    """Answered, and a run has taken the answer but not acted on it."""
    FREE = "free"
    """Answered, and the next run of the thread may take the answer."""
    SETTLED = "settled"
    """Acted on, or abandoned: nothing moves it any more."""

    @classmethod
    def of(cls, decision: Any, redeemed_by: str | None, settled_at: datetime | None) -> AnswerState:
        if settled_at is not None:
            return cls.SETTLED
        if decision is None:
            return cls.OPEN
        return cls.FREE if redeemed_by is None else cls.HELD


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """One question of a run, as AG-UI has it, with its answer.

    ``id`` is unique within its run. ``expires_at``, ``decided_at``, ``redeemed_at`` and
    ``settled_at`` are aware. ``decided_by`` says who answered, ``redeemed_by`` is the run that
    holds the answer or acted on it.
    """

    id: str
    reason: str
    message: str | None = None
    tool_call_id: str | None = None
    response_schema: Any = Copied()
    expires_at: datetime | None = None
    metadata: Any = Copied()
    subagent_run_id: str | None = None
    decision: Decision | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    redeemed_by: str | None = None
    redeemed_at: datetime | None = None
    settled_at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", identifier("The id of an interrupt", self.id))
        for name in ("response_schema", "metadata"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise ConfigurationError(f"{name} of interrupt {self.id!r} must be an object.")
        if self.decision is None and (self.redeemed_by, self.settled_at) != (None, None):
            raise ConfigurationError(f"Interrupt {self.id!r} is held or settled without an answer.")
        cleaners: dict[str, Callable[[Any], Any]] = {
            **{name: partial(moment, name) for name in MOMENTS},
            **dict.fromkeys(TEXTS, text),
            "redeemed_by": partial(identifier, "redeemed_by"),
        }
        for name, cleaned in cleaners.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, cleaned(value))

    @property
    def state(self) -> AnswerState:
        return AnswerState.of(self.decision, self.redeemed_by, self.settled_at)

    @property
    def pending(self) -> bool:
        """No decision is stored yet."""
        return self.decision is None

    @property
    def decided(self) -> bool:
        return self.decision is not None

    @property
    def cancelled(self) -> bool:
        """Answered by a cancellation, so that there is nothing to act on."""
        return self.decision is not None and self.decision.status == CANCELLED

    def expired(self, now: datetime) -> bool:
        """Whether its time is up, whatever else holds."""
        return self.expires_at is not None and self.expires_at <= aware(now)

    def redeem(
        self, decision: Decision, now: datetime, run_id: str | None = None, by: str | None = None
    ) -> Redemption:
        """Answer it, and hold the answer for ``run_id``: the first answer wins.

        ResumeRejectedError for an answer that comes too late, disagrees with the first, or is
        held or was acted on by another run. A repeat is a replay, after the expiry too.
        """
        if self.decision is None:
            if self.expired(now):
                raise ResumeRejectedError(
                    f"Interrupt {self.id!r} expired at {iso(self.expires_at)}.",
                    [self.id],
                    "interrupt_expired",
                )
            answered = replace(self, decision=decision, decided_at=now, decided_by=by)
            return Redemption(answered._held_by(run_id, now), True, run_id is not None)
        if not self.decision.agrees(decision):
            if self.cancelled:
                raise self._refused("was cancelled already")
            raise self._refused("was answered otherwise already; the first answer holds")
        if run_id is None:
            return Redemption(self, False, False)
        if self.state is AnswerState.FREE:
            return Redemption(self._held_by(run_id, now), False, True)
        if self.redeemed_by is None:
            raise self._refused("was abandoned")
        if self.redeemed_by != run_id:
            raise self._refused(f"was answered already, by run {self.redeemed_by!r}")
        return Redemption(self, False, self.state is AnswerState.HELD)

    def _refused(self, why: str) -> ResumeRejectedError:
        return ResumeRejectedError(f"Interrupt {self.id!r} {why}.", [self.id], "interrupt_answered")

    def _held_by(self, run_id: str | None, now: datetime) -> Interrupt:
        return self if run_id is None else replace(self, redeemed_by=run_id, redeemed_at=now)

    def settle(self, run_id: str, now: datetime) -> Interrupt:
        """Act on the answer: the same object unless ``run_id`` holds it."""
        if self.state is not AnswerState.HELD or self.redeemed_by != run_id:
            return self
        return replace(self, settled_at=now)

    def release(self, run_id: str) -> Interrupt:
        """Give back the answer that ``run_id`` holds and has not acted on."""
        if self.state is not AnswerState.HELD or self.redeemed_by != run_id:
            return self
        return replace(self, redeemed_by=None, redeemed_at=None)

    def abandon(
        self,
        now: datetime,
        by: str | None,
        run_id: str | None = None,
        decision: Decision | None = None,
    ) -> Interrupt:
        """Settle it as cancelled, unless somebody holds the answer or has acted on it.

        ``decision``: the cancellation that was sent, if one was.
        """
        if self.state not in (AnswerState.OPEN, AnswerState.FREE):
            return self
        return replace(
            self,
            decision=decision or Decision(status=CANCELLED),
            decided_at=now,
            decided_by=by,
            redeemed_by=run_id,
            redeemed_at=None if run_id is None else now,
            settled_at=now,
        )

    # Stored and reported

    def to_dict(self) -> dict[str, Any]:
        """What a client sees, in AG-UI's names; absent fields are left out."""
        shown = {
            "id": self.id,
            "reason": self.reason,
            "message": self.message,
            "toolCallId": self.tool_call_id,
            "responseSchema": self.response_schema,
            "expiresAt": iso(self.expires_at),
            "metadata": self.metadata,
            "subagentRunId": self.subagent_run_id,
        }
        return {name: value for name, value in shown.items() if value is not None}

    def to_storage(self) -> dict[str, Any]:
        """All of it; from_storage() gives it back without loss."""
        return self.to_dict() | {
            "decision": self.decision and self.decision.to_storage(),
            "decidedAt": iso(self.decided_at),
            "decidedBy": self.decided_by,
            "redeemedBy": self.redeemed_by,
            "redeemedAt": iso(self.redeemed_at),
            "settledAt": iso(self.settled_at),
        }

    @classmethod
    def from_storage(cls, stored: Mapping[str, Any]) -> Self:
        """ConfigurationError that names a key which is missing."""
        for key in ("id", "reason"):
            if key not in stored:
                raise ConfigurationError(f"A stored interrupt has no {key!r}.")
        decision = stored.get("decision")
        return cls(
            id=stored["id"],
            reason=stored["reason"],
            message=stored.get("message"),
            tool_call_id=stored.get("toolCallId"),
            response_schema=stored.get("responseSchema"),
            expires_at=moment("expiresAt", stored.get("expiresAt")),
            metadata=stored.get("metadata"),
            subagent_run_id=stored.get("subagentRunId"),
            decision=None if decision is None else Decision.from_storage(decision),
            decided_at=moment("decidedAt", stored.get("decidedAt")),
            decided_by=stored.get("decidedBy"),
            redeemed_by=stored.get("redeemedBy"),
            redeemed_at=moment("redeemedAt", stored.get("redeemedAt")),
            settled_at=moment("settledAt", stored.get("settledAt")),
        )


MOMENTS: Final = ("expires_at", "decided_at", "redeemed_at", "settled_at")
TEXTS: Final = ("reason", "message", "tool_call_id", "subagent_run_id", "decided_by")


class Redemption(NamedTuple):
    """What became of an answer.

    ``recorded``: it is the first one. ``holds``: the run has it and may settle it.
    """

    interrupt: Interrupt
    recorded: bool
    holds: bool
