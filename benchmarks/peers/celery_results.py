"""The worker's own tracer runs the task with ``task_track_started`` and ``result_extended``: the
row is looked for and inserted as STARTED with the arguments, looked for again and written as
SUCCESS with the result. Nothing is written while the task waits; the broker's part is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from celery.app.trace import build_tracer
from django_celery_results.models import TaskResult

from benchmarks.turns import Way
from benchmarks.whole_runs import ANSWER, PROMPT


@contextmanager
def recording() -> Iterator[Way]:
    app = Celery("benchmarks", set_as_current=False)
    app.conf.update(result_backend="django-db", result_extended=True, task_track_started=True)

    @app.task(name="answer")
    def answer(prompt: str) -> str:
        return ANSWER

    trace = build_tracer(answer.name, answer, app=app, hostname="benchmarks")
    arguments = {"prompt": PROMPT}

    def record() -> str:
        task_id = str(uuid.uuid4())
        request = {
            "id": task_id,
            "task": answer.name,
            "argsrepr": "()",
            "kwargsrepr": repr(arguments),
            "hostname": "benchmarks",
        }
        trace(task_id, (), arguments, request)
        return task_id

    stored = TaskResult.objects.get(task_id=record())
    assert (stored.status, stored.date_started is None) == ("SUCCESS", False)
    assert ANSWER in stored.result
    yield record
