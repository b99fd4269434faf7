"""Text that is compared as it is on every database: case and trailing spaces count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    CharBase = models.CharField[str | None, Any]
    TextBase = models.TextField[str | None, Any]
else:
    CharBase, TextBase = models.CharField, models.TextField


def exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    """The collation that merges nothing; None where that is what a column has by itself.

    Those of MariaDB and MySQL pad with spaces or fold case unless told otherwise. Naming one makes
    the column utf8mb4 too, whatever the database's own character set is.
    """
    if connection.vendor != "mysql":
        return None
    is_mariadb: bool = connection.mysql_is_mariadb  # type: ignore[attr-defined]
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


class _Exact:
    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        parameters: dict[str, Any] = super().db_parameters(connection)  # type: ignore[misc]
        return {**parameters, "collation": exact_collation(connection)}

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, path, args, kwargs = super().deconstruct()  # type: ignore[misc]
        return name, path.replace("solid_runs.fields.exact.", "solid_runs.fields."), args, kwargs


class ExactCharField(_Exact, CharBase):
    """A CharField for ids: ``"a"``, ``"A"`` and ``"a "`` are three of them."""


class ExactTextField(_Exact, TextBase):
    """A TextField that takes every character, and tells all of them apart."""
