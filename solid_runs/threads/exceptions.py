"""What the thread run store refuses, and why."""

from __future__ import annotations

from collections.abc import Sequence

from solid_runs.exceptions import SolidRunsError


class ThreadsError(SolidRunsError):
    """Base of the errors of solid_runs.threads."""


class InvalidRecord(ThreadsError, ValueError):
    """A value that no record holds. Nothing was written.

    ``field`` is the one that it was given for, ``error.message`` within another one; ``problem``
    says what is wrong with it and what to give.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


class BatchRejected(ThreadsError):
    """A batch of answers with one that cannot be taken. Nothing was written.

    ``interrupt_ids`` are those that it failed over.
    """

    def __init__(self, message: str, interrupt_ids: Sequence[str]) -> None:
        self.interrupt_ids = tuple(interrupt_ids)
        super().__init__(message)
