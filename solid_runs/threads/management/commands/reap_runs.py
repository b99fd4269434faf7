from __future__ import annotations

import logging
import signal
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, close_old_connections
from django.utils.module_loading import import_string

from solid_runs.management.arguments import add_database, known_database, positive, whole
from solid_runs.threads.management.arguments import add_scope, stores_of
from solid_runs.threads.reaper import Outcome, reap
from solid_runs.threads.records import RunRecord
from solid_runs.threads.stores.database import DatabaseRunStore

logger: Final = logging.getLogger("solid_runs.threads")

TROUBLE: Final = (Outcome.ERROR, Outcome.FINALISER_FAILED, Outcome.FINALISER_OVERRAN)
NAP: Final = 0.2
"""Seconds after which a waiting command looks whether it was asked to stop."""


class Command(BaseCommand):
    help = (
        "End the runs of threads that nobody watches any more, and fail the watched ones whose "
        "driver is gone. Runs that are watched and alive are left alone. Several may do this at "
        "once. Exits with 1 if in the last sweep a run came out as error, finaliser_failed or "
        "finaliser_overran, or a scope could not be swept, and with 0 otherwise."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scope(parser, "Sweep")
        parser.add_argument(
            "--ttl",
            type=positive,
            metavar="SECONDS",
            help=(
                "For how long a run goes on while nobody watches; the setting "
                "THREADS_DETACHED_TTL (3600 unless it is set), if not given."
            ),
        )
        parser.add_argument(
            "--stall-after",
            type=positive,
            metavar="SECONDS",
            help=(
                "For how many seconds nothing was heard of the driver of a watched run; the "
                "setting THREADS_STALL_AFTER (60 unless it is set), if not given."
            ),
        )
        parser.add_argument(
            "--limit",
            type=whole,
            default=100,
            metavar="RUNS",
            help=(
                "The most detached runs and the most stalled ones that a sweep looks at in each "
                "scope; 100, if not given."
            ),
        )
        for name, what in (
            ("probe", "says whether the agent of a detached run has ended"),
            ("finalise", "clears away what belongs to a run that is aborted"),
        ):
            parser.add_argument(
                f"--{name}",
                metavar="PATH",
                help=(
                    f"The dotted path of what {what}; the setting THREADS_{name.upper()}, if not "
                    f"given."
                ),
            )
        parser.add_argument(
            "--interval",
            type=positive,
            metavar="SECONDS",
            help=(
                "Sweep again and again, with so many seconds in between, until SIGTERM or SIGINT; "
                "the run in hand is finished first."
            ),
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Write nothing; only list what would be done."
        )
        add_database(parser)

    def handle(
        self,
        *,
        scope: list[str] | None,
        ttl: float | None,
        stall_after: float | None,
        limit: int,
        probe: str | None,
        finalise: str | None,
        interval: float | None,
        dry_run: bool,
        database: str | None,
        **options: Any,
    ) -> None:
        stores = stores_of(scope, known_database(database), DatabaseRunStore.scopes_to_sweep)
        sweep = partial(
            self.sweep,
            stores,
            verbosity=options["verbosity"],
            dry_run=dry_run,
            ttl_ms=_milliseconds(ttl),
            stall_ms=_milliseconds(stall_after),
            limit=limit,
            probe=_imported("--probe", probe),
            finalise=_imported("--finalise", finalise),
        )
        trouble = sweep(lambda: False) if interval is None else _repeated(sweep, interval)
        if trouble:
            raise CommandError(f"{trouble} The log says more.")

    def sweep(
        self,
        stores: Callable[[], Iterator[DatabaseRunStore]],
        is_stopped: Callable[[], bool],
        *,
        verbosity: int,
        dry_run: bool,
        **how: Any,
    ) -> str:
        """Sweep once and say what became of the runs; what went wrong, or nothing."""
        how = {**how, "dry_run": dry_run, "is_stopped": is_stopped}
        counts: Counter[str] = Counter()

        def report(store: DatabaseRunStore, record: RunRecord, outcome: Outcome) -> None:
            counts[outcome] += 1
            if verbosity > 1 or (verbosity and dry_run):
                scope = f" in {store.scope}" if store.scope else ""
                self.stdout.write(f"  {outcome}: {record.run_id} of {record.thread_id}{scope}")

        trouble = ""
        try:
            for store in stores():
                if not is_stopped():
                    trouble = _swept(store, report=partial(report, store), **how) or trouble
        except DatabaseError as error:
            logger.exception("The scopes to sweep could not be read.")
            trouble = f"The sweep was broken off: {error}"
        if verbosity:
            told = "Would sweep" if dry_run else "Swept"
            self.stdout.write(f"{told} {_counted(counts)}.")
        bad = Counter[str]({outcome: counts[outcome] for outcome in TROUBLE if counts[outcome]})
        return trouble or (f"Not all went well: {_counted(bad)}." if bad else "")


def _swept(store: DatabaseRunStore, **how: Any) -> str:
    """Sweep one scope; what broke it off, or nothing: the others are swept all the same."""
    try:
        reap(store, **how)
    except (ImproperlyConfigured, ImportError):
        raise
    except Exception as error:
        logger.exception("The sweep of scope %r was broken off.", store.scope)
        return f"A sweep was broken off: {error}"
    return ""


def _counted(counts: Counter[str]) -> str:
    total = counts.total()
    each = ", ".join(f"{counts[one]:,} {one}" for one in Outcome if counts[one])
    return f"{total:,} {'run' if total == 1 else 'runs'}{f': {each}' if each else ''}"


def _repeated(sweep: Callable[[Callable[[], bool]], str], interval: float) -> str:
    """Until somebody asks to stop; what went wrong in the last sweep."""
    with _asked_to_stop() as is_asked:
        while True:
            close_old_connections()
            trouble = sweep(is_asked)
            end = time.monotonic() + interval
            while not is_asked() and (left := end - time.monotonic()) > 0:
                time.sleep(min(NAP, left))
            if is_asked():
                return trouble


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    asked: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: asked.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)


def _imported(option: str, path: str | None) -> Any:
    if path is None:
        return None
    try:
        found = import_string(path)
    except ImportError as error:
        raise CommandError(f"{option}: {error}") from error
    if not callable(found):
        raise CommandError(f"{option}: {path} cannot be called.")
    return found
