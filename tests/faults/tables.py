"""The tables that every fault is tried on, and tables made by hand where a fault needs its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection

from solid_runs.columns import forget_facts
from tests.models import (
    FreshRun,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
)

on_every_table = pytest.mark.parametrize(
    "model",
    [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TableRun],
    ids=lambda m: m.__name__,
)
on_every_log = pytest.mark.parametrize(
    "model",
    [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TableRun, MinimalRun],
    ids=lambda m: m.__name__,
)
apart = Apps()
"""A registry for models over tables made by hand, so that no other test meets them."""


def log_column(model: Any) -> str:
    return str(model._meta.get_field(model.events_column).column)


def execute(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def raw(run: Any, column: str) -> Any:
    """What the column holds, as text, past the fields."""
    cast = "char" if connection.vendor == "mysql" else "text"
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT CAST({quote(column)} AS {cast}) FROM {quote(run._meta.db_table)}"
            f" WHERE {quote(run._meta.pk.column)} = %s",
            [run.pk],
        )
        return cursor.fetchone()[0]


def set_raw(run: Any, column: str, text: str | None) -> None:
    """Put text into a column, past the fields."""
    quote = connection.ops.quote_name
    execute(
        f"UPDATE {quote(run._meta.db_table)} SET {quote(column)} = %s"
        f" WHERE {quote(run._meta.pk.column)} = %s",
        text,
        run.pk,
    )


def set_log(run: Any, text: str | None) -> None:
    """Put text into the log's column, of a run whose entries are there."""
    if run.events_model is not None:
        type(run).objects.filter(pk=run.pk).update(events_count=None)
    set_raw(run, log_column(type(run)), text)


@contextmanager
def table(name: str, columns: str) -> Iterator[None]:
    """A table with an ``id`` and these columns; outside a transaction on MariaDB."""
    key = {
        "sqlite": "id integer PRIMARY KEY AUTOINCREMENT",
        "postgresql": "id bigserial PRIMARY KEY",
        "mysql": "id bigint PRIMARY KEY AUTO_INCREMENT",
    }[connection.vendor]
    execute(f"DROP TABLE IF EXISTS {name}")
    execute(f"CREATE TABLE {name} ({key}, {columns})")
    forget_facts()
    try:
        yield
    finally:
        execute(f"DROP TABLE {name}")
        forget_facts()
