"""Which runs there are to simulate, and how each ends: a plan that is the same for one seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from django.utils import timezone

from example_project.agents.models import AgentRun, GeneratorRun, PlatformRun
from example_project.agents.tasks import CANCEL_REASONS, FAULTS, TASKS, Call, Case, Task
from solid_runs.statuses import RunStatus

Run: TypeAlias = PlatformRun | GeneratorRun | AgentRun

MODELS: Final[list[type[Run]]] = [AgentRun, GeneratorRun, PlatformRun]
ENDINGS: Final = [
    RunStatus.COMPLETE,
    RunStatus.COMPLETE,
    RunStatus.FAILED,
    RunStatus.COMPLETE,
    RunStatus.CANCELLED,
    RunStatus.COMPLETE,
    RunStatus.COMPLETE,
]
SPAN: Final = timedelta(days=3)
TRACES: Final = uuid.UUID("8d0f7a52-6f0e-4bb0-9c53-0b9a3f3c8a11")


@dataclass(frozen=True)
class Job:
    """One run to simulate. No model has two runs with the trace of one job."""

    number: int
    seed: int
    model: type[Run]
    task: Task
    case: Case
    ending: RunStatus
    queued: datetime
    began: datetime
    delegate: Job | None = None

    @property
    def trace_id(self) -> str:
        return str(uuid.uuid5(TRACES, f"{self.seed}-{self.number}"))

    @property
    def fault(self) -> Call:
        return FAULTS[self.number % len(FAULTS)]

    @property
    def cancel_reason(self) -> str:
        return CANCEL_REASONS[self.number % len(CANCEL_REASONS)]

    @property
    def exists(self) -> bool:
        return self.model.objects.with_trace(self.trace_id).exists()

    def random(self) -> random.Random:
        return random.Random(f"{self.seed}-{self.number}")

    def __str__(self) -> str:
        return f"{self.task.agent}: {self.task.action}, {self.ending.label}"


def plan(count: int, seed: int, *, open_ends: bool = True) -> Iterator[Job]:
    """Jobs from the oldest to the newest; the last of them are still going."""
    chance = random.Random(seed)
    now = timezone.now()
    pending = count // 14 if open_ends else 0
    running = count // 9 if open_ends else 0
    ended = count - pending - running
    for number in range(count):
        if number < ended:
            ending = ENDINGS[number % len(ENDINGS)]
            age = SPAN * (ended - number) / ended + timedelta(minutes=12)
        elif number < ended + running:
            ending, age = (
                RunStatus.RUNNING,
                timedelta(seconds=240 - 90 * (number - ended) / running),
            )
        else:
            ending, age = RunStatus.PENDING, timedelta(seconds=60 - 8 * (number - ended - running))
        queued = now - age * chance.uniform(0.97, 1)
        task = TASKS[number % len(TASKS)]
        # One turn on after each round, so that the three tables do not get two tasks each.
        model = MODELS[(number + number // len(TASKS)) % len(MODELS)]
        job = Job(
            number=number,
            seed=seed,
            model=model,
            task=task,
            case=task.cases[number // len(TASKS) % len(task.cases)],
            ending=ending,
            queued=queued,
            began=queued + timedelta(milliseconds=chance.randint(40, 4_000)),
        )
        yield _with_delegate(job)


def _with_delegate(job: Job) -> Job:
    """Summaries of our own table have a figure looked up by another agent, in another table."""
    if job.model is not AgentRun or job.task.action != "summarise":
        return job
    if job.ending != RunStatus.COMPLETE:
        return job
    task = next(task for task in TASKS if task.action == "extract")
    part = Job(
        job.number,
        job.seed,
        GeneratorRun,
        task,
        task.cases[job.number % len(task.cases)],
        RunStatus.COMPLETE,
        job.queued,
        job.began,
    )
    return replace(job, delegate=part)
