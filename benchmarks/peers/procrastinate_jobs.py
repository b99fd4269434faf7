"""Through the asynchronous connector that its worker uses, with a pool of one connection: the job
is deferred, fetched for a registered worker, and finished; triggers log an event for each. The
pool asks the connection whether it is alive before every use, which is the default. What a task
returns is not stored; finding the next job is included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Status
from psycopg.conninfo import make_conninfo

from benchmarks.peers import address
from benchmarks.turns import Way
from benchmarks.whole_runs import ANSWER, PROMPT


@contextmanager
def recording() -> Iterator[Way]:
    connector = PsycopgConnector(conninfo=make_conninfo(**address()), min_size=1, max_size=1)
    app = App(connector=connector)

    @app.task(name="answer")
    def answer(prompt: str) -> str:
        return ANSWER

    async def begin() -> int:
        await app.open_async()
        await app.schema_manager.apply_schema_async()
        return await app.job_manager.register_worker()

    async def record() -> int:
        number = await answer.defer_async(prompt=PROMPT)
        job = await app.job_manager.fetch_job(queues=None, worker_id=worker)
        assert job is not None
        answer(**job.task_kwargs)
        await app.job_manager.finish_job(job=job, status=Status.SUCCEEDED, delete_job=False)
        return number

    with asyncio.Runner() as runner:
        worker = runner.run(begin())
        number = runner.run(record())
        stored = runner.run(app.job_manager.get_job_status_async(number))
        assert stored == Status.SUCCEEDED
        try:
            yield lambda: runner.run(record())
        finally:
            runner.run(app.close_async())
