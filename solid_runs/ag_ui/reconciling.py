"""What a save may do to what is stored: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solid_runs.ag_ui.exceptions import RunConflictError, StreamError
from solid_runs.ag_ui.interrupts import CANCELLED, AnswerState, Interrupt
from solid_runs.ag_ui.records import RunRecord, Status


def reconcile(stored: RunRecord, given: RunRecord) -> RunRecord:
    """The record to store when ``given`` is saved over ``stored``.

    StreamError when ``given`` is a stale copy: it would move an ended run, lower the sequence, or
    take back an answer. Once a run has ended, what it asked and the state and the failure of the
    first save stay.
    """
    if given.digest != stored.digest:
        raise RunConflictError(given.thread_id, given.run_id)
    if stored.terminal and given.status is not stored.status:
        raise _stale(stored, f"it has ended as {stored.status}, this copy is {given.status}")
    if stored.status is Status.STARTED and given.status is Status.RESERVED:
        raise _stale(stored, "it was started meanwhile")
    if given.sequence < stored.sequence:
        raise _stale(stored, f"its sequence is {stored.sequence}, this copy's {given.sequence}")
    for interrupt in stored.interrupts:
        told = given.interrupt(interrupt.id)
        if told is None:
            raise _stale(stored, f"this copy has no interrupt {interrupt.id!r}")
        if not _follows(interrupt, told):
            raise _stale(stored, f"the answer to {interrupt.id!r} was changed meanwhile")
    if stored.terminal and _questions(stored) != _questions(given):
        raise _stale(stored, "an ended run asks nothing else than what it has asked")
    kept = replace(given, created_at=stored.created_at)
    if stored.terminal:
        kept = replace(kept, snapshot=stored.snapshot, failure=stored.failure)
    return kept


def _stale(stored: RunRecord, why: str) -> StreamError:
    return StreamError(
        f"Run {stored.run_id!r} of thread {stored.thread_id!r} was not saved: {why}. Nothing was "
        f"written; read it again with find()."
    )


def _follows(stored: Interrupt, given: Interrupt) -> bool:
    """Whether the answer of ``given`` is that of ``stored``, or one that it can become."""
    if stored.decision is None or _answer(stored) == _answer(given):
        return True
    if stored.state is AnswerState.SETTLED or given.decision is None:
        return False
    if stored.state is AnswerState.FREE and given.decision.status == CANCELLED:
        return given.state is AnswerState.SETTLED or stored.decision.agrees(given.decision)
    if not stored.decision.agrees(given.decision):
        return False
    if stored.state is AnswerState.HELD:
        return given.redeemed_by == stored.redeemed_by and given.settled_at is not None
    return True


def _questions(record: RunRecord) -> list[dict[str, Any]]:
    return [interrupt.to_dict() for interrupt in record.interrupts]


def _answer(interrupt: Interrupt) -> tuple[object, ...]:
    return (
        interrupt.decision and interrupt.decision.to_storage(),
        interrupt.decided_at,
        interrupt.decided_by,
        interrupt.redeemed_by,
        interrupt.redeemed_at,
        interrupt.settled_at,
    )
