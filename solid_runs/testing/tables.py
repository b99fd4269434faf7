"""Tables for unmanaged run models in a test database, which no migration makes.

With Django's runner: ``TEST_RUNNER = "solid_runs.testing.tables.UnmanagedTablesRunner"``.
With pytest-django, in ``conftest.py``::

    @pytest.fixture(scope="session")
    def django_db_setup(django_db_setup, django_db_blocker):
        with django_db_blocker.unblock():
            create_tables()

A TransactionTestCase empties managed tables only: one that leaves rows in an unmanaged table
deletes them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from django.db import connections, models, router
from django.db.models.signals import post_migrate
from django.test.runner import DiscoverRunner

from solid_runs.checks import run_models
from solid_runs.columns import forget_facts

if TYPE_CHECKING:
    from solid_runs.columns import AnyField, AnyModel, Connection

__all__ = ["UnmanagedTablesRunner", "create_tables", "drop_tables", "unmanaged_tables"]


@contextmanager
def unmanaged_tables(*models: AnyModel, using: str = "default") -> Iterator[list[AnyModel]]:
    """Create the tables of unmanaged models that are not there yet; drop what it made on exit.

    Without arguments: of every installed run model with ``managed = False`` that the routers let
    into ``using``. See create_tables().
    """
    made = create_tables(*models, using=using)
    try:
        yield made
    finally:
        drop_tables(*made, using=using)


def create_tables(*models: AnyModel, using: str = "default") -> list[AnyModel]:
    """Create the missing tables of ``models`` and return those that a table was made from.

    Without arguments: of every installed run model with ``managed = False`` that the routers let
    into ``using``. Columns are as the fields have them, and the models stay unmanaged throughout.
    Models over one table share it: it is made from the one with the most columns, and gets those
    that only another one has, nullable. RuntimeError inside a transaction.
    """
    connection = _outside_transaction(using)
    wanted = models or tuple(_unmanaged_run_models(using))
    made = []
    existing = _existing(connection)
    with connection.schema_editor() as editor:
        for table, sharing in _by_table(wanted).items():
            if connection.introspection.identifier_converter(table) in existing:
                continue
            widest = max(sharing, key=lambda model: len(model._meta.local_concrete_fields))
            editor.create_model(widest)
            for field in _columns_beyond(widest, sharing):
                editor.add_field(widest, field)
            made.append(widest)
    forget_facts()
    return made


def drop_tables(*models: AnyModel, using: str = "default") -> None:
    """Drop the tables of ``models`` that are there."""
    connection = _outside_transaction(using)
    existing = _existing(connection)
    with connection.schema_editor() as editor:
        for table, (model, *_) in _by_table(models).items():
            if connection.introspection.identifier_converter(table) in existing:
                editor.delete_model(model)
    forget_facts()


class UnmanagedTablesRunner(DiscoverRunner):
    """Django's test runner, with the tables of the unmanaged run models in every test database."""

    def setup_databases(self, **kwargs: Any) -> Any:
        # After the migrations and before the copies that --parallel makes.
        self.made: dict[str, list[AnyModel]] = {}
        post_migrate.connect(self._create_tables)
        try:
            return super().setup_databases(**kwargs)
        finally:
            post_migrate.disconnect(self._create_tables)

    def teardown_databases(self, old_config: Any, **kwargs: Any) -> None:
        # No migration would bring a table up to date in a database that is kept.
        for using, made in self.made.items() if self.keepdb else ():
            connections[using].close()  # the processes of --parallel may have ended it
            drop_tables(*made, using=using)
        super().teardown_databases(old_config, **kwargs)

    def _create_tables(self, using: str, **kwargs: Any) -> None:
        if using not in self.made:
            self.made[using] = create_tables(using=using)


def _unmanaged_run_models(using: str) -> Iterator[AnyModel]:
    for model in run_models():
        if not model._meta.managed and router.allow_migrate_model(using, model):
            yield model


def _by_table(wanted: Iterable[AnyModel]) -> dict[str, list[AnyModel]]:
    tables: dict[str, list[AnyModel]] = {}
    for model in wanted:
        if not model._meta.proxy:
            tables.setdefault(model._meta.db_table, []).append(model)
    return tables


def _columns_beyond(widest: AnyModel, sharing: Iterable[AnyModel]) -> Iterator[AnyField]:
    """The columns that only the other models know; those whose model lacks them leave them null."""
    known = {field.column for field in widest._meta.local_concrete_fields}
    for model in sharing:
        for field in model._meta.local_concrete_fields:
            if field.column not in known:
                known.add(field.column)
                nullable = copy(field)
                nullable.null = True
                nullable._unique = False  # type: ignore[attr-defined]
                nullable.default = models.NOT_PROVIDED
                yield nullable


def _existing(connection: Connection) -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor, include_views=True))


def _outside_transaction(using: str) -> Connection:
    connection = connections[using]
    if connection.in_atomic_block:
        raise RuntimeError(
            "Tables cannot be made or dropped inside a transaction on every database, so not in "
            "a TestCase. Do it in setUpModule(), in setUpClass() before super().setUpClass(), in "
            "a fixture of the session, or with UnmanagedTablesRunner."
        )
    return connection
