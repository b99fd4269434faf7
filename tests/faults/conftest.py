from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from tests.faults.tables import execute


@contextmanager
def sql_mode(mode: str) -> Iterator[None]:
    """MariaDB outside its strict mode cuts what is too long without a word."""
    if connection.vendor != "mysql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (before,) = cursor.fetchone()
    execute("SET SESSION sql_mode = %s", mode)
    try:
        yield
    finally:
        execute("SET SESSION sql_mode = %s", before)


MODES = ["strict", "not strict"] if connection.vendor == "mysql" else ["strict"]
"""Only MySQL and MariaDB have modes."""


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with sql_mode("" if request.param == "not strict" else "STRICT_TRANS_TABLES"):
        yield
