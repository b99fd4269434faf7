"""What the AG-UI store refuses, and why."""

from __future__ import annotations

from collections.abc import Sequence

from solid_runs.exceptions import SolidRunsError


class AGUIError(SolidRunsError):
    """Base of the errors of solid_runs.ag_ui. ``code`` is what the wire says of it."""

    code = "internal_error"


class ConfigurationError(AGUIError, ValueError):
    """A call that means nothing: a scope that names no tenant, an id that no key can hold."""


class StreamError(AGUIError):
    """The run has ended otherwise, or a copy is older than what is stored. Nothing was written."""


class RunConflictError(AGUIError):
    """This identity was reserved for another input. Nothing was written."""

    code = "run_conflict"

    def __init__(self, thread_id: str, run_id: str) -> None:
        self.thread_id, self.run_id = thread_id, run_id
        super().__init__(
            f"Run {run_id!r} of thread {thread_id!r} was reserved for another input: a new input "
            f"needs a new run id."
        )


class ThreadBusyError(AGUIError):
    """Another run of the thread is active, and the policy allows one. Nothing was written."""

    code = "thread_busy"

    def __init__(self, thread_id: str, active_run_id: str) -> None:
        self.thread_id, self.active_run_id = thread_id, active_run_id
        super().__init__(
            f"Thread {thread_id!r} is busy with run {active_run_id!r}: wait for its end, or cancel "
            f"it."
        )


class ResumeRejectedError(AGUIError):
    """An answer that is not taken. Nothing was recorded. ``interrupt_ids`` are what it is about."""

    def __init__(
        self, message: str, interrupt_ids: Sequence[str], code: str = "resume_rejected"
    ) -> None:
        self.interrupt_ids, self.code = tuple(interrupt_ids), code
        super().__init__(message)


class InterruptsPendingError(AGUIError):
    """The thread waits for answers, and the request brought none. Nothing was written."""

    code = "interrupts_pending"

    def __init__(self, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        self.thread_id, self.interrupt_ids = thread_id, tuple(interrupt_ids)
        super().__init__(
            f"Thread {thread_id!r} waits for an answer to {', '.join(self.interrupt_ids)}: send it "
            f"with the run."
        )
