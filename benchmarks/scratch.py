"""The scratch database: its tables, and a rest before the clock runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from benchmarks.floor import make_table
from tests.dumps import create_legacy_tables


@contextmanager
def scratch_database() -> Iterator[None]:
    """Create it anew, with the tables that Rails makes beside those of the models."""
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        create_legacy_tables(connection)
        make_table()
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def settle() -> None:
    """Have the housekeeping of what was prepared done now, and not while it is measured."""
    with connection.cursor() as cursor:
        for statement in HOUSEKEEPING[connection.vendor]:
            cursor.execute(statement)


HOUSEKEEPING = {
    "postgresql": ["VACUUM ANALYZE", "CHECKPOINT"],
    "mysql": [],
    "sqlite": ["PRAGMA wal_checkpoint(TRUNCATE)"],
}
