"""What the commands of the store are told alike."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from math import isfinite

from django.core.management.base import CommandError
from django.db import connections

from solid_runs.ag_ui.stores.database import DatabaseStore


def add_database(parser: ArgumentParser) -> None:
    parser.add_argument("--database", help="Its alias; where the runs are written, if not given.")


def store_on(database: str | None) -> DatabaseStore:
    if database is not None and database not in connections:
        raise CommandError(f"There is no database {database!r} in DATABASES.")
    return DatabaseStore(database)


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not isfinite(number) or number <= 0 or number > 1e8:
        raise ArgumentTypeError(f"{text!r} is no number above 0.")
    return number
