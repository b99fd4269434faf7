from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from solid_runs.ag_ui.management.arguments import store_on
from solid_runs.conf import setting
from solid_runs.management.arguments import add_database, positive


class Command(BaseCommand):
    help = (
        "Fail the AG-UI runs whose owner has been silent, and free the answers that they hold. "
        "Runs that wait for a person are left alone. Several may do this at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--after",
            type=positive,
            metavar="SECONDS",
            help=(
                "For how many seconds nothing was heard of the owner of a run; the setting "
                "AG_UI_STALL_AFTER (60 unless it is set), if not given."
            ),
        )
        parser.add_argument(
            "--limit",
            type=int,
            metavar="RUNS",
            help="The most runs to fail, the longest silent first; all, if not given.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Fail none; only list which these runs are."
        )
        add_database(parser)

    def handle(
        self,
        *,
        after: float | None,
        limit: int | None,
        dry_run: bool,
        database: str | None,
        **options: Any,
    ) -> None:
        store = store_on(database)
        silence = timedelta(seconds=setting("AG_UI_STALL_AFTER") if after is None else after)
        found = (store.stalled if dry_run else store.fail_stalled)(silence, limit)
        if options["verbosity"] > 1 or dry_run:
            for record in found:
                self.stdout.write(f"  {record.run_id} of {record.thread_id} in {record.scope}")
        if options["verbosity"]:
            what = "Would fail" if dry_run else "Failed"
            runs = "run" if len(found) == 1 else "runs"
            self.stdout.write(f"{what} {len(found):,} stalled {runs}.")
