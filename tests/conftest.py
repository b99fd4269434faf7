from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from tests.dumps import create_legacy_tables, reset_legacy_rows


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        for alias in connections:
            create_legacy_tables(connections[alias])


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """A test that really commits: the legacy rows are put back afterwards."""
    yield
    for alias in connections:
        if alias == "default" or connections[alias].connection is not None:
            reset_legacy_rows(connections[alias])


@pytest.fixture
def vendor() -> str:
    """The database that this run of the suite is on: sqlite, postgresql or mysql (MariaDB)."""
    return connection.vendor
