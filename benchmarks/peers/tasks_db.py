"""``enqueue()`` inserts the task; one turn of the worker's own loop locks and claims it in a
transaction, runs it and writes the return value. Finding the next task is included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django_tasks_db.management.commands.db_worker import Worker
from django_tasks_db.models import DBTaskResult

from benchmarks.turns import Way
from benchmarks.whole_runs import ANSWER, PROMPT

try:
    from django.tasks import task
except ImportError:  # Django 5.2
    from django_tasks import task


@task
def answer(prompt: str) -> str:
    return ANSWER


@contextmanager
def recording() -> Iterator[Way]:
    def record() -> str:
        result = answer.enqueue(prompt=PROMPT)
        Worker(
            queue_names=["default"],
            interval=0,
            batch=False,
            backend_name="default",
            startup_delay=False,
            max_tasks=1,
            worker_id="benchmarks",
            excluded_queue_names=[],
        ).run()
        return str(result.id)

    stored = DBTaskResult.objects.get(pk=record())
    assert (stored.status, stored.return_value) == ("SUCCESSFUL", ANSWER)
    yield record
