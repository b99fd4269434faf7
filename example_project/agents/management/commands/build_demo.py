from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from example_project.agents import demo
from solid_runs.management.progress import Progress


class Command(BaseCommand):
    help = "Build the demo's database, or add what it lacks."

    def handle(self, **options: Any) -> None:
        demo.load_rails_tables()
        demo.migrate()
        demo.make_login()
        demo.make_subjects()
        progress: list[Progress] = []

        def report(total: int, label: str) -> None:
            if not progress:
                self.stdout.write(f"An agent works through {total} runs:")
                progress.append(Progress(total))
            progress[0].advance(label)

        if not demo.simulate_missing(report):
            self.stdout.write("The demo's runs are all there; make demo-reset begins anew.")
        if threads := demo.reserve_missing() + demo.talk_missing():
            self.stdout.write(f"People and agents talk in {threads} threads.")
        rows = ", ".join(f"{count} in {table}" for table, count in demo.counts().items())
        self.stdout.write(f"{connection.settings_dict['NAME']}: {rows}")
