"""What a sweep makes of a run, and what the host's probe says of one."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.records import TERMINAL, Status, checked_patch


class Outcome(StrEnum):
    """What became of a run that was looked at."""

    FINISHED = "finished"
    """Its agent had ended, as the probe said; so has the run."""
    EXPIRED = "expired"
    """Nobody watched it for longer than the ttl: aborted."""
    FINALISER_OVERRAN = "finaliser_overran"
    """The same, and the finaliser has not come back within its budget."""
    FINALISER_FAILED = "finaliser_failed"
    """The same, and the finaliser raised."""
    STALLED = "stalled"
    """Somebody watches, and its driver gave no sign of life: failed."""
    PRODUCING = "producing"
    """Its agent is at work, as the probe said: left alone."""
    UNKNOWN = "unknown"
    """The probe does not know, or there is none: left alone."""
    NOT_CLAIMED = "not_claimed"
    """A viewer, a driver or another reaper came first: theirs."""
    ERROR = "error"
    """Something raised; the log says what. The next sweep tries again."""


PRODUCING: Final = Outcome.PRODUCING
UNKNOWN: Final = Outcome.UNKNOWN


ENDS: Final = tuple(status for status in Status if status in TERMINAL)
SAYS: Final = ("finished_at", "error", "usage", "sandbox_key")


class Finished:
    """What a probe gives for a run whose agent has ended: how, and what else to write.

    ``status`` is completed, failed or aborted; the rest may be ``finished_at`` (the store's clock
    if it is left out), ``error``, ``usage`` and ``sandbox_key``. InvalidRecord for anything else.
    """

    def __init__(self, status: str = Status.COMPLETED, **patch: Any) -> None:
        for name in patch:
            if name not in SAYS:
                raise InvalidRecord(
                    name, f"A probe cannot say this; use {', '.join(sorted(SAYS))}."
                )
        self.patch = checked_patch({"status": status, **patch})
        if self.patch["status"] not in TERMINAL:
            raise InvalidRecord("status", f"{status!r} is no end; use {', '.join(ENDS)}.")
