from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from tests.dumps import create_legacy_tables, reset_legacy_rows
from tests.settings import VENDOR


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The suite runs once for each database; what needs none need not run for each."""
    if VENDOR != "sqlite":
        once = [item for item in items if item.get_closest_marker("once")]
        kept = [item for item in items if not item.get_closest_marker("once")]
        items[:] = kept
        config.hook.pytest_deselected(items=once)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        for alias in connections:
            made = connections[alias].settings_dict
            # pytest-django leaves an alias that no test of this session asks for on its own
            # database, which is not ours to write to.
            if made["NAME"] == made["TEST"]["NAME"]:
                create_legacy_tables(connections[alias])


@pytest.fixture
def committed(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[None]:
    """A test that really commits: the legacy rows are put back afterwards."""
    yield
    marker = request.node.get_closest_marker("django_db")
    aliases = (marker.kwargs.get("databases") if marker else None) or ["default"]
    for alias in connections if aliases == "__all__" else aliases:
        reset_legacy_rows(connections[alias])


@pytest.fixture
def vendor() -> str:
    """The database that this run of the suite is on: sqlite, postgresql or mysql (MariaDB)."""
    return connection.vendor
