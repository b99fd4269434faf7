"""The tables as Rails leaves them, loaded into a real database from the dumps in tests/rails."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

LEGACY_TABLES = ["agent_runs", "agent_runs_json", "solid_agent_runs"]
DUMPS = {"sqlite": "sqlite.sql", "postgresql": "postgresql.sql", "mysql": "mariadb.sql"}


@cache
def statements(vendor: str) -> list[str]:
    text = (Path(__file__).parent / "rails" / DUMPS[vendor]).read_text(encoding="utf-8")
    found, pending = [], ""
    for line in text.splitlines(keepends=True):
        pending += line
        # mysqldump escapes quotes and line ends with backslashes, the others do not.
        if line.endswith(";\n") if vendor == "mysql" else sqlite3.complete_statement(pending):
            statement = re.sub(r"^/\*!.*?\*/;", "", pending.strip()).rstrip(";")
            if statement and not re.match(r"BEGIN|COMMIT|PRAGMA|.+ sqlite_sequence", statement):
                found.append(statement)
            pending = ""
    return found


def _run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # Django's wrapper would interpolate for the debug log
            cursor.execute(statement)
        else:
            cursor.execute(statement, None)


def create_legacy_tables(connection: Any) -> None:
    """Create and fill the three tables."""
    for table in LEGACY_TABLES:
        _run(connection, f"DROP TABLE IF EXISTS {connection.ops.quote_name(table)}")
    for statement in statements(connection.vendor):
        _run(connection, statement)


def reset_legacy_rows(connection: Any) -> None:
    """Put the rows of the dump back, after a test that really committed."""
    for table in LEGACY_TABLES:
        _run(connection, f"DELETE FROM {connection.ops.quote_name(table)}")
    for statement in statements(connection.vendor):
        if re.match(r"INSERT|SELECT pg_catalog.setval", statement):
            _run(connection, statement)
