from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from solid_runs.ag_ui.management.arguments import store_on
from solid_runs.management.arguments import add_database, add_pruning_batch, positive


class Command(BaseCommand):
    help = (
        "Delete ended AG-UI runs. Those with an answer that was not acted on stay, and so do the "
        "latest run of a thread and its latest interrupted one. An id that was deleted is new when "
        "it is presented again, so keep runs for longer than any client retries."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "days",
            type=positive,
            help="Delete runs that were last written more than so many days ago.",
        )
        add_pruning_batch(parser)
        add_database(parser)

    def handle(self, *, days: float, batch_size: int, database: str | None, **options: Any) -> None:
        pruned = store_on(database).prune(timedelta(days=days), batch_size=batch_size)
        if options["verbosity"]:
            self.stdout.write(f"Deleted {pruned:,} {'run' if pruned == 1 else 'runs'}.")
