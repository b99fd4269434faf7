from __future__ import annotations

import random
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.agents import demo
from example_project.agents.jobs import plan
from example_project.agents.simulated import simulate, simulate_live
from solid_runs.management.progress import Progress


class Command(BaseCommand):
    help = "Let the simulated agent work through more runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("count", type=int, nargs="?", default=14)
        parser.add_argument(
            "--live", action="store_true", help="in real time, to be watched in the admin"
        )
        parser.add_argument("--seed", type=int, help="the same runs for the same number")

    def handle(self, *, count: int, live: bool, seed: int | None, **options: Any) -> None:
        if count < 1:
            raise CommandError(f"There is nothing to do for a count of {count}.")
        if not demo.is_built():
            raise CommandError("The demo's database is not built: run build_demo first.")
        seed = random.randrange(2**32) if seed is None else seed
        jobs = [job for job in plan(count, seed, open_ends=not live) if not job.exists]
        progress = Progress(len(jobs))
        work = simulate_live if live else simulate
        try:
            for job in jobs:
                progress.advance(str(work(job)))
        except KeyboardInterrupt:
            raise CommandError("Stopped; what was done stays.") from None
