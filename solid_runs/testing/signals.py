"""Seeing the status changes of a test, whose transaction never commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.test import TestCase

from solid_runs.signals import run_status_changed
from solid_runs.statuses import RunStatus


class StatusChange(NamedTuple):
    """What run_status_changed said."""

    run: Any
    from_status: RunStatus
    to_status: RunStatus
    trace_id: str | None
    using: str


@contextmanager
def capture_status_changes(*, using: str = "default") -> Iterator[list[StatusChange]]:
    """Collect run_status_changed for what happens on ``using``.

    Inside a TestCase, the callbacks that wait for a commit are run at the end of the block: look
    at the list after it. Where each statement commits they arrive at once.
    """
    changes: list[StatusChange] = []

    def receive(**kwargs: Any) -> None:
        if kwargs["using"] == using:
            changes.append(StatusChange(*(kwargs[name] for name in StatusChange._fields)))

    run_status_changed.connect(receive)
    try:
        with TestCase.captureOnCommitCallbacks(using=using, execute=True):
            yield changes
    finally:
        run_status_changed.disconnect(receive)
