from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand

from solid_runs.management.arguments import (
    add_database,
    add_pruning_batch,
    known_database,
    positive,
)
from solid_runs.threads.management.arguments import add_scope, stores_of
from solid_runs.threads.stores.database import DatabaseRunStore

DAY_MS: Final = 86_400_000


class Command(BaseCommand):
    help = (
        "Delete ended runs of threads, and what they asked. The latest run of a thread stays. An "
        "id that was deleted is new when it is presented again, so keep runs for longer than any "
        "client retries."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "days", type=positive, help="Delete runs that ended more than so many days ago."
        )
        add_pruning_batch(parser)
        add_scope(parser, "Delete")
        add_database(parser)

    def handle(
        self,
        *,
        days: float,
        batch_size: int,
        scope: list[str] | None,
        database: str | None,
        **options: Any,
    ) -> None:
        pruned = 0
        for store in stores_of(scope, known_database(database), DatabaseRunStore.scopes)():
            pruned += store.prune(store.now() - int(days * DAY_MS), batch_size=batch_size)
        if options["verbosity"]:
            self.stdout.write(f"Deleted {pruned:,} {'run' if pruned == 1 else 'runs'}.")
