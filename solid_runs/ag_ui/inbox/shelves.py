"""What an inbox shows of the interrupts and how it answers one, for the admin and the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import router
from django.db.models import Count, F, Q, QuerySet

from solid_runs.ag_ui.inbox.attention import needing_attention
from solid_runs.ag_ui.interrupts import AnswerState, Redemption
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.stores.database import DatabaseStore

if TYPE_CHECKING:
    from solid_runs.ag_ui.interrupts import Decision

WAITING: Final = "waiting"
ATTENTION: Final = "attention"
Narrowed = Callable[[Any, datetime], Any]


def _in_time(now: datetime) -> Q:
    return Q(expires_at__isnull=True) | Q(expires_at__gt=now)


def _state(state: AnswerState) -> Narrowed:
    return lambda interrupts, now: interrupts.in_state(state)


SHELVES: Final[dict[str, Narrowed]] = {
    WAITING: lambda interrupts, now: interrupts.waiting().filter(_in_time(now), stale=False),
    ATTENTION: needing_attention,
    "expired": lambda interrupts, now: interrupts.waiting().filter(
        expires_at__lte=now, stale=False
    ),
    "stale": lambda interrupts, now: interrupts.waiting().filter(stale=True),
    "answered": lambda interrupts, now: interrupts.filter(decided_at__isnull=False).order_by(
        F("decided_at").desc(), "-run_id", "position"
    ),
    "all": lambda interrupts, now: interrupts.order_by("-run_id", "position"),
    **{state.value: _state(state) for state in AnswerState},
}
"""What can be asked for: ``waiting``, which may still be answered; ``attention``, whose outcome
nobody knows; open ones whose time is up or whose thread has asked again since; the four states;
answered ones; all. They need with_stale()."""


def shelf(interrupts: QuerySet[Any], name: str, now: datetime) -> QuerySet[Any]:
    """Those of this name, in the order in which a person reads them; KeyError for no such name."""
    found: QuerySet[Any] = SHELVES[name](interrupts, now)
    return found


def default_store() -> DatabaseStore:
    """The store of the rows, on the alias that the router writes them to."""
    return DatabaseStore(using=router.db_for_write(RunInterrupt))


def answer(
    store: DatabaseStore, interrupt: RunInterrupt, decision: Decision | Mapping[str, Any], by: str
) -> Redemption:
    """Answer the interrupt of this row, and no other that a later run of the thread gave its id.

    The errors are those of the store's answer().
    """
    run = interrupt.run
    return store.answer(
        run.scope, run.thread_id, interrupt.interrupt_id, decision, by=by, asked_by=run.run_id
    )


def asked_later(interrupt: RunInterrupt, store: DatabaseStore) -> str | None:
    """The run of the thread that asked after this one did; None if this is not stale."""
    latest = store.latest_interrupted(interrupt.run.scope, interrupt.run.thread_id)
    return latest.run_id if latest is not None and latest.run_id != interrupt.run.run_id else None


def actors(interrupts: list[RunInterrupt], using: str) -> dict[int, ReservedRun]:
    """The runs that hold or acted on these answers, by the key of the interrupt: one query."""
    wanted = {one.redeemed_by for one in interrupts if one.redeemed_by is not None}
    if not wanted:
        return {}
    threads = {one.run.thread_id for one in interrupts if one.redeemed_by is not None}
    runs = ReservedRun.objects.using(using).filter(run_id__in=wanted, thread_id__in=threads)
    found = {
        (run.scope, run.thread_id, run.run_id): run for run in runs.defer("snapshot", "failure")
    }
    by_key = {
        one.pk: found.get((one.run.scope, one.run.thread_id, one.redeemed_by)) for one in interrupts
    }
    return {pk: run for pk, run in by_key.items() if run is not None}


def open_questions(runs: set[int], using: str | None, now: datetime) -> dict[int, int]:
    """How many questions of each of these runs, named by key, can still be answered: one query.

    Until there are none, no run takes an answer that is free beside them.
    """
    asked = RunInterrupt.objects.using(using).in_state(AnswerState.OPEN).filter(_in_time(now))
    found = asked.filter(run__in=runs).order_by().values_list("run").annotate(Count("pk"))
    return dict(found)
