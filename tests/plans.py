"""How a database would do what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.db import connection
from django.db.models import UniqueConstraint
from django.test.utils import CaptureQueriesContext


def plans(call: Callable[[], Any]) -> list[str]:
    """How the database would do each of the statements of a call."""
    with CaptureQueriesContext(connection) as captured:
        call()
    control = re.compile("BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE")
    return [plan(query["sql"]) for query in captured if not control.match(query["sql"])]


def plan(sql: str) -> str:
    how = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{how} {sql}")
        names = [column[0] for column in cursor.description]
        steps = [zip(names, found, strict=True) for found in cursor.fetchall()]
    return f"{sql}\n" + "\n".join(str(dict(step)) for step in steps)


WHOLE_TABLE: Final = {
    "sqlite": r"SCAN (?!CONSTANT)",
    "postgresql": r"Seq Scan",
    "mysql": r"'type': '(ALL|index)'",
}
SORTED: Final = {"sqlite": "TEMP B-TREE", "postgresql": r"\bSort\b", "mysql": "filesort"}


def assert_read_by(steps: str, *indexes: str, ordered: bool = False) -> None:
    told = steps.split("\n", 1)[1]
    if connection.vendor == "sqlite":
        told = re.sub(r"sqlite_autoindex_(\w+)_1", lambda found: unique_of(found[1]), told)
    assert not indexes or any(index in told for index in indexes), steps
    assert not re.search(WHOLE_TABLE[connection.vendor], told), steps
    if ordered:
        assert not re.search(SORTED[connection.vendor], told), steps


def unique_of(table: str) -> str:
    """What the model calls the unique constraint for which SQLite has a name of its own."""
    (model,) = (model for model in apps.get_models() if model._meta.db_table == table)
    names = [one.name for one in model._meta.constraints if isinstance(one, UniqueConstraint)]
    return str(names[0])
