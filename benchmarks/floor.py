"""The unit of every figure: one INSERT of 250 bytes through the driver.

On the connection that everything else uses, in autocommit and at the database's own durability,
into a table of one column without a key: no write that is acknowledged can cost less.
"""

from __future__ import annotations

from django.db import connection

from benchmarks.entries import ENTRY_BYTES
from benchmarks.turns import Way


def make_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE floor_rows (line text)")


def insert_by_driver() -> Way:
    connection.ensure_connection()
    mark = "?" if connection.vendor == "sqlite" else "%s"
    statement, line = f"INSERT INTO floor_rows VALUES ({mark})", "x" * ENTRY_BYTES

    def insert() -> None:
        cursor = connection.connection.cursor()
        cursor.execute(statement, (line,))
        cursor.close()

    return insert
