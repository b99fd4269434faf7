"""Records as rows, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import RunRecord

IDENTITY = ("scope", "thread_id", "run_id")
RUN = (*IDENTITY, "digest", "sequence", "created_at", "updated_at", "failure", "snapshot")
INTERRUPT = (
    *("reason", "message", "tool_call_id", "subagent_run_id", "response_schema", "metadata"),
    *("expires_at", "decided_at", "decided_by", "redeemed_by", "redeemed_at", "settled_at"),
)
"""The fields that have one name in the record and in the row, and need nothing done."""


def run_values(record: RunRecord) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in RUN}
    return {**values, "status": record.status.value, "questions": len(record.interrupts)}


def interrupt_values(interrupt: Interrupt, position: int) -> dict[str, Any]:
    values = {name: getattr(interrupt, name) for name in INTERRUPT}
    decision = interrupt.decision and interrupt.decision.to_storage()
    return {**values, "decision": decision, "position": position}


def record_of(row: ReservedRun, interrupts: Iterable[RunInterrupt]) -> RunRecord:
    """``interrupts``: those of the run, in their order."""
    return RunRecord(
        **{name: getattr(row, name) for name in RUN},
        status=row.status,  # type: ignore[arg-type]  # judged there
        interrupts=tuple(map(interrupt_of, interrupts)),
    )


def interrupt_of(row: RunInterrupt) -> Interrupt:
    return Interrupt(
        id=row.interrupt_id,
        **{name: getattr(row, name) for name in INTERRUPT},
        decision=None if row.decision is None else Decision.from_storage(row.decision),
    )
