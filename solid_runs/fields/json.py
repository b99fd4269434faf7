"""JSON over whatever column holds it: json, jsonb, text or longtext."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.expressions import Col
from django.db.models.fields.json import KeyTransform
from django.db.models.lookups import IsNull

from solid_runs import storable

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

    SQL = tuple[str, tuple[Any, ...]]


class JSONColumn(Col):
    """On PostgreSQL a column that is selected as text and otherwise used as jsonb.

    As text, because the driver has decoded a ``json`` column before the field sees it, and a row
    that holds ``\\u0000`` cannot be cast to jsonb; as jsonb, because neither json nor text has the
    operators. A jsonb column pays nothing for it.
    """

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        sql, params = self.as_sql(compiler, connection)
        return f"({sql})::jsonb", params

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> SQL:
        if compiler.connection.vendor != "postgresql":
            return super().select_format(compiler, sql, params)
        sql, params = self.as_sql(compiler, compiler.connection)
        return f"({sql})::text", params


class RunJSONField(models.JSONField):
    """A JSONField that needs to know nothing of its column and never refuses a value.

    Reading never raises: text that is no JSON is returned as it is, blank text as None. Writing
    goes through ``storable.json_value``, so NUL, lone surrogates, NaN, dates and sets are stored in
    the form that it gives them; with an ``encoder``, what that knows to encode is encoded first.
    None is SQL NULL, ``Value(None, JSONField())`` or ``JSONNull()`` a JSON null, as in Django.

    Lookups of keys parse the column: on a text column, or a ``json`` one with ``\\u0000`` in it,
    they raise the database's error when a row cannot be parsed. ``isnull`` never parses.
    """

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        path = path.replace("solid_runs.fields.json.", "solid_runs.fields.")
        return name, path, list(args), kwargs

    def get_col(self, alias: str, output_field: models.Field[Any, Any] | None = None) -> Col:
        if alias == self.model._meta.db_table and output_field in (None, self):
            return self.cached_col
        return JSONColumn(alias, self, output_field)

    @cached_property
    def cached_col(self) -> Col:
        return JSONColumn(self.model._meta.db_table, self)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            value = bytes(value).decode(errors="replace")
        if not isinstance(value, str):
            return value  # decoded by the driver, or a number in a column of numeric affinity
        if not value.strip() and not isinstance(expression, KeyTransform):
            return None
        try:
            return json.loads(value, cls=self.decoder)
        except (ValueError, RecursionError):
            return value

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        if self.encoder is not None:
            # What the encoder refuses is left to storable, which refuses nothing.
            with suppress(TypeError, ValueError, RecursionError):
                value = json.loads(json.dumps(value, cls=self.encoder))
        return storable.json_value(value)

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(self.get_prep_value(value), model_instance)


@RunJSONField.register_lookup
class ColumnIsNull(IsNull):
    """Asks the bare column, so that a null test parses nothing and trips over nothing."""

    def process_lhs(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, lhs: Any = None
    ) -> SQL:
        if isinstance(self.lhs, JSONColumn):
            return self.lhs.as_sql(compiler, connection)
        return super().process_lhs(compiler, connection, lhs)
