from __future__ import annotations

from argparse import ArgumentParser
from io import StringIO
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import router

from solid_runs.event_logs.moving import Move, move_events
from solid_runs.exceptions import InvalidUsage
from solid_runs.management.arguments import add_database, known_database
from solid_runs.management.progress import Progress
from solid_runs.mixin import AgentRunMixin


class Command(BaseCommand):
    help = (
        "Move the event logs of a run model from their column into the table of its events_model. "
        "Writers may go on; it may be broken off and started again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help="The run model, such as myapp.AgentRun.")
        add_database(parser)
        parser.add_argument(
            "--batch-size", type=int, default=100, help="The most runs a transaction moves."
        )

    def handle(self, *, model: str, database: str | None, batch_size: int, **options: Any) -> None:
        try:
            runs = apps.get_model(model)
        except (LookupError, ValueError):
            raise CommandError(f"There is no model {model!r}. Name a model as app.Model.") from None
        if not issubclass(runs, AgentRunMixin):
            raise CommandError(f"{model} is not a model of runs.")
        using = known_database(database or router.db_for_write(runs))
        try:
            total = Move(runs, using).waiting().count()
            bar = Progress(total, self.stderr if options["verbosity"] else StringIO())
            moved = move_events(
                runs, using=using, batch_size=batch_size, progress=lambda n: bar.advance(by=n)
            )
        except InvalidUsage as error:
            raise CommandError(str(error)) from None
        if options["verbosity"]:
            self.stdout.write(f"Moved {moved.entries:,} entries of {moved.runs:,} runs.")
        if moved.refused:
            shown = ", ".join(map(str, moved.refused[:10]))
            raise CommandError(
                f"{len(moved.refused):,} runs hold something other than a list in their log and "
                f"were left alone: {shown}{' …' if len(moved.refused) > 10 else ''}. Mend the "
                f"column and start again."
            )
