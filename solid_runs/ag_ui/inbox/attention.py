"""Answers whose outcome nobody knows: a run acted on them and came to no good end."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F

from solid_runs.ag_ui.interrupts import CANCELLED, AnswerState, Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import TERMINAL, Status

if TYPE_CHECKING:
    from django.db.models import QuerySet

ENDED_BADLY: Final = TERMINAL - {Status.SUCCEEDED, Status.INTERRUPTED}
MOST_RUNS: Final = 1_000
"""Of the runs that ended badly, only so many are looked at, those that wrote last."""


def outcome_is_unknown(interrupt: RunInterrupt | Interrupt, actor: ReservedRun | None) -> bool:
    """Whether ``actor`` acted on the answer and did not come to a good end."""
    return (
        interrupt.state is AnswerState.SETTLED and actor is not None and actor.status in ENDED_BADLY
    )


def needing_attention(interrupts: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    """Those that were acted on with an unknown outcome, the latest first."""
    found = interrupts.filter(pk__in=attention_keys(interrupts))
    return found.order_by(F("settled_at").desc(), "-run_id", "position")


def attention_keys(interrupts: QuerySet[Any]) -> list[int]:
    """Which of these were acted on with an unknown outcome: two queries.

    It looks from the runs, which are few, since every old answer is a settled one; so both queries
    read no more than what the newest MOST_RUNS that ended badly have touched.
    """
    runs = ReservedRun.objects.using(interrupts.db).filter(status__in=ENDED_BADLY)
    ended = set(runs.order_by("-alive_at").values_list("scope", "thread_id", "run_id")[:MOST_RUNS])
    acted_on = interrupts.order_by().filter(
        settled_at__isnull=False,
        redeemed_by__in={run_id for _scope, _thread_id, run_id in ended},
        run__thread_id__in={thread_id for _scope, thread_id, _run_id in ended},
    )
    found = acted_on.values_list("pk", "decision", "run__scope", "run__thread_id", "redeemed_by")
    return [
        pk
        for pk, decision, *actor in found
        if tuple(actor) in ended and decision.get("status") != CANCELLED
    ]
