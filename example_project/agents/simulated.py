"""An agent that works runs through as a worker would, through the public API only."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db import transaction

from example_project.agents.clocks import LiveClock, PastClock
from example_project.agents.jobs import Job, Run
from example_project.agents.models import Agent, AgentRun, AgentRunEvent, Document, PlatformRun
from example_project.agents.tasks import Call
from solid_runs.statuses import RunStatus


class LeftOpen(Exception):
    """The run is still going when the simulation ends."""


def enqueue(job: Job) -> Run:
    """Record a run that waits for a worker: what it is about, and what it was asked."""
    task, case = job.task, job.case
    run = job.model(
        action_name=task.action,
        trace_id=job.trace_id,
        input_prompt=case.prompt,
        output_metadata={
            "provider": task.provider,
            "model": task.model,
            "instructions": task.instructions,
        },
    )
    if isinstance(run, PlatformRun):
        run.subject = Agent.objects.get(name=task.agent)
    else:
        run.subject = Document.objects.get(title=case.document)
        run.agent_name = task.agent
        run.input_params = {"language": "en", "attempt": 1}
    if any(column.name == "provider" for column in run._meta.concrete_fields):
        run.provider, run.model = task.provider, task.model
    run.record_instructions(task.instructions)
    run.save()
    return run


@dataclass
class Worker:
    """One worker with one run. ``moments`` has the time of each entry that it wrote.

    ``job`` is what work() goes through; without one the steps are somebody else's.
    """

    run: Run
    job: Job | None
    clock: PastClock | LiveClock
    random: random.Random
    moments: list[datetime] = field(default_factory=list)
    eids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def work(self) -> None:
        if not self.run.start():
            return  # somebody else has it
        self.say(f"picked up by worker-{self.random.randint(1, 4)}")
        try:
            answer = self.converse()
        except LeftOpen:
            return
        except Exception as error:  # whatever a tool raises is the run's outcome
            self.run.fail(error)
            return
        counted = self.random.randint(900, 6_000), self.random.randint(60, 900)
        ended = self.run.finish(
            output=answer,
            metadata={"finish_reason": "stop", "steps": len(self.moments) - 1},
            input_tokens=counted[0],
            output_tokens=counted[1],
            # What is billed may exceed the sum: cached and reasoning tokens count too.
            total_tokens=sum(counted) + self.random.choice([0, 0, 128, 1_024]),
        )
        if not ended:
            self.say("the run was cancelled before it was through", level="warning")

    def converse(self) -> str:
        """Ask the model, make the calls that it wants, and ask it again for the answer."""
        job = self.job
        with self.step("llm", job.task.model, job.task.thinking_ms):
            for call in job.task.calls:
                self.call(call)
            if job.ending == RunStatus.FAILED:
                self.call(job.fault)
        if job.delegate is not None:
            self.delegate(job.delegate)
        with self.step("llm", job.task.model, job.task.thinking_ms // 2):
            if job.ending == RunStatus.RUNNING:
                raise LeftOpen
            if job.ending == RunStatus.CANCELLED:
                # A person in the admin has a copy of their own.
                type(self.run).objects.get(pk=self.run.pk).cancel(job.cancel_reason)
        return job.case.output

    def call(self, call: Call) -> None:
        with self.step("tool", call.tool, call.ms) as outcome:
            outcome["detail"] = call.function()

    def delegate(self, job: Job) -> None:
        """Hand a part to another agent, under the same trace."""
        with self.step("agent", job.task.agent, 150) as outcome:
            began = self.clock.now
            other = Worker(enqueue(job), job, self.clock, self.random)
            other.work()
            outcome["detail"] = other.run.output
            if isinstance(self.clock, PastClock):
                put_into_past(other, queued=began, began=began)

    @contextmanager
    def step(self, kind: str, label: str, ms: int) -> Iterator[dict[str, object]]:
        """A step of the log: "started" before, "done" or "error" after, under one eid."""
        eid = str(next(self.eids))
        self.append(kind, label, eid, "started")
        began = self.clock.now
        self.clock.spend(int(ms * self.random.uniform(0.6, 1.5)))
        outcome: dict[str, object] = {"status": "done"}
        failure: Exception | None = None
        try:
            yield outcome
        except LeftOpen:
            raise
        except Exception as error:
            outcome |= {"status": "error", "detail": f"{type(error).__name__}: {error}"}
            failure = error
        took = milliseconds(self.clock.now - began)
        self.append(kind, label, eid, **outcome, duration_ms=took)
        if failure is not None:
            raise failure

    def append(self, *args: object, **kwargs: object) -> None:
        self.run.append_event(*args, **kwargs)
        self.moments.append(self.clock.now)

    def say(self, message: str, level: str = "info") -> None:
        self.run.add_log(message, level)
        self.moments.append(self.clock.now)


def simulate(job: Job) -> Run:
    """Work a job through now, as if it had been done at the job's own time.

    The run appears whole or not at all, so an interrupted simulation can be started again.
    """
    with transaction.atomic():
        run = enqueue(job)
        worker = Worker(run, job, PastClock(job.began), job.random())
        if job.ending != RunStatus.PENDING:
            worker.work()
        put_into_past(worker, queued=job.queued, began=job.began)
    return run


def simulate_live(job: Job) -> Run:
    """Work a job through in real time. A worker that is stopped gives its run up."""
    run = enqueue(job)
    try:
        Worker(run, job, LiveClock(), job.random()).work()
    except KeyboardInterrupt:
        run.cancel("The worker was stopped")
        raise
    return run


def put_into_past(worker: Worker, *, queued: datetime, began: datetime) -> None:
    """Give a run and its log the times of the worker's clock.

    A record is written as things happen, so the library has no way to write a past. A demo needs
    one: stock queryset.update() goes round the lifecycle, which an application has no reason to.
    """
    run, ended = worker.run, worker.clock.now
    model = type(run)
    run.refresh_from_db()
    times: dict[str, object] = {"created_at": queued, "updated_at": queued}
    if run.started_at is not None:
        times |= {"started_at": began, "updated_at": worker.moments[-1]}
    if run.finished:
        took = milliseconds(ended - began)
        times |= {"completed_at": ended, "updated_at": ended, "duration_ms": took}
    entries = [
        entry | written_at(entry, moment)
        for entry, moment in zip(run.events_log, worker.moments, strict=True)
    ]
    if isinstance(run, AgentRun):
        rows = list(AgentRunEvent.objects.filter(run=run).order_by("seq"))
        for row, entry in zip(rows, entries, strict=True):
            row.entry = entry
        AgentRunEvent.objects.bulk_update(rows, ["entry"])
    else:
        times[run.events_column] = entries
    model.objects.filter(pk=run.pk).update(**times)


def written_at(entry: dict[str, object], moment: datetime) -> dict[str, str]:
    """The time of an entry in its own form: an event's, or a log line's."""
    name, precision = ("at", "milliseconds") if "at" in entry else ("timestamp", "seconds")
    return {name: moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")}


def milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
