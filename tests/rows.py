"""Runs of every shape, and their rows as somebody else writes and reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from django.db import connection

from solid_runs.models import AgentRunMixin
from solid_runs.signals import run_status_changed
from tests.models import (
    FreshRun,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
)

EVERY_SHAPE: list[type[AgentRunMixin]] = [
    PlatformRun,
    PlatformJsonRun,
    GeneratorRun,
    FreshRun,
    TableRun,
    MinimalRun,
]
FULL_SHAPES = EVERY_SHAPE[:-1]
"""Those with times, outcome and metadata; MinimalRun has a status and a log, nothing else."""
RAILS_SHAPES = EVERY_SHAPE[:3]

OWN_TABLES = [FreshRun, TableRun]

every_shape = pytest.mark.parametrize("model", EVERY_SHAPE)
full_shapes = pytest.mark.parametrize("model", FULL_SHAPES)
rails_shapes = pytest.mark.parametrize("model", RAILS_SHAPES)


def has(model: type[AgentRunMixin], name: str) -> bool:
    return any(name in (field.name, field.attname) for field in model._meta.concrete_fields)


def make(model: type[AgentRunMixin], status: str = "pending", **wanted: Any) -> Any:
    """A run as its own process holds it: loaded, with those of ``wanted`` that its table has."""
    values = {name: value for name, value in wanted.items() if has(model, name)}
    return get(model.objects.create(status=status, **values))


def get(run: AgentRunMixin) -> Any:
    """Another copy of the same run, read now."""
    return type(run)._base_manager.get(pk=run.pk)


def row(run: AgentRunMixin) -> dict[str, Any]:
    """Every column of the run, as the database has it now."""
    return type(run)._base_manager.filter(pk=run.pk).values().get()


def log_field(model: type[AgentRunMixin]) -> str:
    return model._meta.get_field(model.events_column).name


def keeps_a_table(model: type[AgentRunMixin]) -> bool:
    """Whether new runs of this model keep their log in a table of entries."""
    return model.events_model is not None


def statements_of_append(model: type[AgentRunMixin]) -> int:
    """What an append of one entry inside a transaction says to the database.

    In a table of entries it is one statement on PostgreSQL alone; elsewhere the counter and the
    entry are two, or three where the counter must be asked for, between a savepoint and its end.
    """
    apart = {"postgresql": 1, "sqlite": 4, "mysql": 5}
    return apart[connection.vendor] if keeps_a_table(model) else 1


def stored_text(run: AgentRunMixin, name: str) -> str | None:
    """The text in a column."""
    field = type(run)._meta.get_field(name)
    kind = "char" if connection.vendor == "mysql" else "text"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT CAST({field.column} AS {kind}) FROM {field.model._meta.db_table} "
            f"WHERE {field.model._meta.pk.column} = %s",
            [run.pk],
        )
        return cursor.fetchone()[0]


def store_text(run: AgentRunMixin, name: str, text: str | None) -> None:
    """Write a column as an older writer did, whatever a check constraint says today."""
    field = type(run)._meta.get_field(name)
    with unchecked(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {field.model._meta.db_table} SET {field.column} = %s "
            f"WHERE {field.model._meta.pk.column} = %s",
            [text, run.pk],
        )


def store_log(run: AgentRunMixin, text: str | None) -> None:
    """Write the log's column, of a run whose entries are there."""
    if keeps_a_table(type(run)):
        type(run)._base_manager.filter(pk=run.pk).update(events_count=None)
    store_text(run, log_field(type(run)), text)


@contextmanager
def unchecked() -> Iterator[None]:
    switch = {
        "sqlite": "PRAGMA ignore_check_constraints = {}",
        "mysql": "SET SESSION check_constraint_checks = NOT {}",
    }.get(connection.vendor)
    with connection.cursor() as cursor:
        if switch:
            cursor.execute(switch.format("true"))
        try:
            yield
        finally:
            if switch:
                cursor.execute(switch.format("false"))


class Change(NamedTuple):
    """What one run_status_changed said."""

    pk: Any
    from_status: str
    to_status: str
    trace_id: str | None
    using: str
    sender: Any


@contextmanager
def listening(**to: Any) -> Iterator[list[Change]]:
    """Collect what run_status_changed says; ``sender`` narrows it."""
    heard: list[Change] = []

    def receiver(sender: Any, **said: Any) -> None:
        facts = (said[name] for name in ("from_status", "to_status", "trace_id", "using"))
        heard.append(Change(said["run"].pk, *facts, sender))

    run_status_changed.connect(receiver, **to)
    try:
        yield heard
    finally:
        run_status_changed.disconnect(receiver, **to)
