"""The store that the commands work on."""

from __future__ import annotations

from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.management.arguments import known_database


def store_on(database: str | None) -> DatabaseStore:
    return DatabaseStore(known_database(database))
