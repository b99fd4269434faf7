"""The five statuses of a run, what stands for them in a column, and which may follow which."""

from __future__ import annotations

from typing import Any, Final

from django.db.models.enums import TextChoices
from django.utils.translation import gettext_lazy as _


class RunStatus(TextChoices):
    """Compares equal to its name: ``run.status == "running"``."""

    PENDING = "pending", _("pending")
    """Recorded, not yet claimed by a worker."""
    RUNNING = "running", _("running")
    """Claimed by the one worker whose start() returned True."""
    COMPLETE = "complete", _("complete")
    """Ended with an outcome."""
    FAILED = "failed", _("failed")
    """Ended with an error."""
    CANCELLED = "cancelled", _("cancelled")
    """Ended by somebody's wish before it was through."""

    @property
    def integer(self) -> int:
        """What stands for this status in an integer column."""
        return INTEGERS[self]

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL


INTEGERS: Final[dict[RunStatus, int]] = {
    RunStatus.PENDING: 0,
    RunStatus.RUNNING: 1,
    RunStatus.COMPLETE: 2,
    RunStatus.FAILED: 3,
    RunStatus.CANCELLED: 4,
}
"""Persisted in production rows: never renumbered."""

BY_INTEGER: Final = {number: status for status, number in INTEGERS.items()}

IN_PROGRESS: Final = frozenset({RunStatus.PENDING, RunStatus.RUNNING})
TERMINAL: Final = frozenset(RunStatus) - IN_PROGRESS

MOVES: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.PENDING: frozenset(),
    RunStatus.RUNNING: frozenset({RunStatus.PENDING}),
    RunStatus.COMPLETE: IN_PROGRESS,
    RunStatus.FAILED: IN_PROGRESS,
    RunStatus.CANCELLED: IN_PROGRESS,
}
"""For each status, those it may be reached from."""

RESTARTABLE: Final = frozenset({RunStatus.FAILED, RunStatus.CANCELLED})
"""What restart() brings back to running: the one way out of a terminal status."""


class UnknownStatus(str):
    """A stored value that is none of the five: kept, shown as unknown, written back unchanged.

    ``stored`` is the value as the column holds it. Such a run lists and renders, and every
    transition refuses it.
    """

    stored: Any

    def __new__(cls, stored: Any) -> UnknownStatus:
        self = super().__new__(cls, f"unknown ({'null' if stored is None else stored})")
        self.stored = stored
        return self

    def __getnewargs__(self) -> tuple[Any]:
        return (self.stored,)

    @property
    def is_terminal(self) -> bool:
        return False


def known_status(value: Any) -> RunStatus | None:
    """The status that a name, a member or an integer stands for, or None.

    A boolean stands for none: ``True`` in a boolean column is not "running".
    """
    if isinstance(value, RunStatus):
        return value
    if isinstance(value, str):
        return RunStatus._value2member_map_.get(value)  # type: ignore[return-value]
    if isinstance(value, int) and not isinstance(value, bool):
        return BY_INTEGER.get(value)
    return None
