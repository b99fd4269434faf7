"""The scratch database: its tables, and a rest before the clock runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connection, connections

from benchmarks.floor import make_table
from benchmarks.names import SECOND
from tests.dumps import create_legacy_tables


@contextmanager
def scratch_database() -> Iterator[None]:
    """Create it anew, with the tables that Rails makes beside those of the models."""
    with _created(DEFAULT_DB_ALIAS):
        create_legacy_tables(connection)
        make_table()
        yield


@contextmanager
def second_database() -> Iterator[str]:
    """One more, with the tables of the models; its alias."""
    with _created(SECOND):
        yield SECOND


@contextmanager
def _created(alias: str) -> Iterator[None]:
    creation, name = connections[alias].creation, connections[alias].settings_dict["NAME"]
    creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        creation.destroy_test_db(name, verbosity=0)


def settle(using: str = DEFAULT_DB_ALIAS) -> None:
    """Have the housekeeping of what was prepared done now, and not while it is measured."""
    with connections[using].cursor() as cursor:
        for statement in HOUSEKEEPING[connections[using].vendor]:
            cursor.execute(statement)


HOUSEKEEPING = {
    "postgresql": ["VACUUM ANALYZE", "CHECKPOINT"],
    "mysql": [],
    "sqlite": ["PRAGMA wal_checkpoint(TRUNCATE)"],
}
