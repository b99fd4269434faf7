"""What the commands of the store are told alike."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator

from django.core.management.base import CommandError

from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.stores.database import DatabaseRunStore


def add_scope(parser: ArgumentParser, does: str) -> None:
    parser.add_argument(
        "--scope",
        action="append",
        metavar="KEY",
        help=(
            f"{does} only the runs of this scope; '' is the one that is shared by all who name "
            f"none. May be given again for more; all scopes, if not given."
        ),
    )


def stores_of(
    scopes: list[str] | None, using: str | None, every: Callable[[str | None], list[str]]
) -> Callable[[], Iterator[DatabaseRunStore]]:
    """What gives the stores of these scopes, or of all that there are at the time."""
    try:
        given = [DatabaseRunStore.of_key(key, using=using) for key in scopes or ()]
    except InvalidRecord as error:
        raise CommandError(f"--scope: {error.problem}") from error

    def stores() -> Iterator[DatabaseRunStore]:
        if given:
            yield from given
        else:
            yield from (DatabaseRunStore.of_key(key, using=using) for key in every(using))

    return stores
