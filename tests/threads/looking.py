"""Runs of threads in the table, and who looks at them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User

from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.stores.database import DatabaseRunStore

MINUTE = 60_000


def made(run_id: str = "r1", thread_id: str = "t1", scope: str = "s1", **values: Any) -> ThreadRun:
    """A run as it is stored, whatever no store would write included."""
    row = {"status": "running", "started_at": now(), **values}
    return ThreadRun.objects.create(run_id=run_id, thread_id=thread_id, scope=scope, **row)


def silent(run_id: str = "r1", ago: int = 7 * MINUTE, **values: Any) -> ThreadRun:
    """A claimed run without a sign of life for so long."""
    return made(run_id, driver_epoch=1, heartbeat_at=now() - ago - 1_000, **values)


def asked(
    interrupt_id: str = "i1",
    run_id: str = "r1",
    thread_id: str = "t1",
    scope: str = "s1",
    **more: Any,
) -> ThreadInterrupt:
    payload = more.pop("payload", {"question": "Go on?"})
    store = DatabaseInterruptStore(scope)
    store.create(interrupt_id, run_id, thread_id, now(), payload)
    rows = ThreadInterrupt.objects.filter(interrupt_id=interrupt_id, scope=scope)
    if more:
        rows.update(**more)
    return rows.get()


def now() -> int:
    return DatabaseRunStore().now()


def fresh(run: ThreadRun) -> ThreadRun:
    return ThreadRun.objects.using(run._state.db).get(pk=run.pk)


def staff(name: str, *codenames: str, model: str | None = None) -> User:
    """A person of the admin with these permissions of ours, on all models or on one."""
    person, _ = User.objects.get_or_create(username=name, is_staff=True)
    ours = Permission.objects.filter(content_type__app_label="solid_runs_threads")
    if model is not None:
        ours = ours.filter(content_type__model=model)
    person.user_permissions.add(*ours.filter(codename__in=codenames))
    return person
