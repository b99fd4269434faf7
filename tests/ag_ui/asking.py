"""Runs that ask, in the tables, and who looks at them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User

from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore

APPROVED = {"status": "resolved", "payload": {"approved": True}}
DENIED = {"status": "resolved", "payload": {"approved": False}}


def question(id: str = "i1", /, **values: Any) -> Interrupt:
    return Interrupt(id=id, **{"reason": "tool_call", **values})


def started(
    run_id: str = "r1",
    thread_id: str = "t1",
    scope: str = "s1",
    using: str = "default",
    **labels: Any,
) -> RunRecord:
    store = DatabaseStore(using=using)
    record = store.reserve(scope, thread_id, run_id, "digest", **labels).record
    return store.save(record.start(store.now()))


def asked(
    *questions: Interrupt,
    run_id: str = "r1",
    thread_id: str = "t1",
    scope: str = "s1",
    using: str = "default",
    snapshot: Any = None,
    **labels: Any,
) -> RunInterrupt:
    """A run that ended with these questions; the first of them."""
    store = DatabaseStore(using=using)
    record = started(run_id, thread_id, scope, using, **labels)
    store.save(record.interrupted(questions or (question(),), store.now(), snapshot=snapshot))
    run = row(run_id, thread_id, scope, using)
    return run.interrupts.order_by("position")[0]


def acted_on(interrupt: RunInterrupt, by: str = "r2", status: str | None = "failed") -> None:
    """Approve it, let run ``by`` act on it, and end that run; None: it goes on."""
    store, run = DatabaseStore(using=interrupt._state.db), interrupt.run
    store.answer(run.scope, run.thread_id, interrupt.interrupt_id, APPROVED, by="maria")
    taker = store.admit(run.scope, run.thread_id, by, "digest").record
    taker = store.save(taker.start(store.now()))
    assert store.settle(run.scope, run.thread_id, interrupt.interrupt_id, by)
    if status is not None:
        store.save(taker.finish(status, store.now()))


def row(
    run_id: str = "r1", thread_id: str = "t1", scope: str = "s1", using: str = "default"
) -> ReservedRun:
    return ReservedRun.objects.using(using).get(run_id=run_id, thread_id=thread_id, scope=scope)


def fresh(interrupt: RunInterrupt) -> RunInterrupt:
    return RunInterrupt.objects.using(interrupt._state.db).get(pk=interrupt.pk)


def expire(interrupt: RunInterrupt, ago: timedelta = timedelta(minutes=1)) -> None:
    RunInterrupt.objects.using(interrupt._state.db).filter(pk=interrupt.pk).update(
        expires_at=datetime.now(UTC) - ago
    )


def staff(name: str, *codenames: str) -> User:
    """A person of the admin with these permissions of ours."""
    made, _ = User.objects.get_or_create(username=name, is_staff=True)
    ours = Permission.objects.filter(content_type__app_label="solid_runs_ag_ui")
    made.user_permissions.add(*ours.filter(codename__in=codenames))
    return made
