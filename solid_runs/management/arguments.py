"""What several commands are told alike."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from math import isnan, nan
from typing import Final, TypeVar

from django.core.management.base import CommandError
from django.db import connections

LARGEST: Final = 100_000_000
"""Of what can be given as a span of time: some three years in seconds."""

Alias = TypeVar("Alias", str, str | None)


def add_database(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        metavar="ALIAS",
        help=(
            "The alias of the database that holds the runs; the one that the router writes them "
            "to, if not given."
        ),
    )


def add_pruning_batch(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--batch-size",
        type=whole,
        default=1000,
        metavar="RUNS",
        help="The most runs that one transaction deletes; 1000, if not given.",
    )


def known_database(database: Alias) -> Alias:
    """The same; CommandError for an alias that is none."""
    if database is not None and database not in connections:
        raise CommandError(f"There is no database {database!r} in DATABASES.")
    return database


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = nan
    if isnan(number) or number <= 0:
        raise ArgumentTypeError(f"Give a number above 0, not {text!r}.")
    if number > LARGEST:
        raise ArgumentTypeError(f"Give a number up to {LARGEST:,}, not {text!r}.")
    return number


def whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= LARGEST:
        raise ArgumentTypeError(f"Give a whole number from 1 to {LARGEST:,}, not {text!r}.")
    return number
