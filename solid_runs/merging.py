"""Merging new keys into a stored JSON object, in the database, one level deep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import models
from django.db.models.expressions import RawSQL

from solid_runs import storable
from solid_runs.columns import AnyField, Connection, facts


class Merge(NamedTuple):
    """An UPDATE's new value for the column, and the condition under which it may be written."""

    value: RawSQL
    guard: RawSQL


def shallow_merge(field: AnyField, new: Mapping[str, Any], connection: Connection) -> Merge | None:
    """The SQL that merges ``new`` into an object, or into nothing; None: read and write instead.

    None on a database without a form here, on a text column of PostgreSQL, and on SQLite for a
    key that is not plain: its JSON paths compare keys with the text as it was escaped.
    """
    column = connection.ops.quote_name(field.column).replace("%", "%%")
    if connection.vendor == "postgresql":
        templates = POSTGRESQL.get(facts(field, connection).kind)
        if templates is None:
            return None
        value, guard = templates
        return _merge(value, guard, column, [json.dumps(new)])
    if connection.vendor == "sqlite" and all(PLAIN_KEY.fullmatch(key) for key in new):
        return _merge(*_set_keys(SQLITE, new), column, _paths_and_values(new))
    if connection.vendor == "mysql":
        form = MARIADB if connection.mysql_is_mariadb else MYSQL
        return _merge(*_set_keys(form, new), column, _paths_and_values(new))
    return None


def _merge(value: str, guard: str, column: str, params: list[Any]) -> Merge:
    return Merge(
        RawSQL(value.replace("{col}", column), params),  # noqa: S611
        RawSQL(guard.replace("{col}", column), [], models.BooleanField()),  # noqa: S611
    )


def _set_keys(form: tuple[str, str, str, str], new: Mapping[str, Any]) -> tuple[str, str]:
    function, base, pair, guard = form
    return f"{function}({', '.join([base, *[pair] * len(new)])})", guard


def _paths_and_values(new: Mapping[str, Any]) -> list[str]:
    """A JSON path and a JSON text for each key, the key quoted as JSON quotes it."""
    return [
        text
        for key, value in new.items()
        for text in ("$." + json.dumps(key, ensure_ascii=False), storable.compact_json(value))
    ]


def merged(stored: Any, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same merge in Python; None when ``stored`` is no object and not empty either."""
    if stored is None or stored == "":
        return dict(new)
    return {**stored, **new} if isinstance(stored, Mapping) else None


PLAIN_KEY = re.compile(r"[A-Za-z0-9_ .:/@$-]+")

POSTGRESQL = {
    "jsonb": (
        "COALESCE(NULLIF({col}, 'null'::jsonb), '{}'::jsonb) || %s::jsonb",
        "({col} IS NULL OR jsonb_typeof({col}) IN ('object', 'null'))",
    ),
    # A json column may hold an escaped NUL, on which every cast to jsonb fails.
    "json": (
        "(COALESCE(NULLIF({col}::jsonb, 'null'::jsonb), '{}'::jsonb) || %s::jsonb)::json",
        "({col} IS NULL OR (json_typeof({col}) IN ('object', 'null')"
        r" AND position('\u0000' IN {col}::text) = 0))",
    ),
}

SQLITE = (
    "json_set",
    "CASE WHEN {col} IS NULL OR trim({col}) IN ('', 'null') THEN '{}' ELSE {col} END",
    "%s, json(%s)",
    "CASE WHEN {col} IS NULL OR trim({col}) = '' THEN 1"
    " WHEN json_valid({col}) THEN json_type({col}) IN ('object', 'null') ELSE 0 END",
)
MARIADB = (
    "JSON_SET",
    "CASE WHEN {col} IS NULL OR {col} = '' OR JSON_TYPE({col}) = 'NULL' THEN '{}' ELSE {col} END",
    "%s, JSON_COMPACT(%s)",
    "CASE WHEN {col} IS NULL OR {col} = '' THEN 1"
    " WHEN JSON_VALID({col}) THEN JSON_TYPE({col}) IN ('OBJECT', 'NULL') ELSE 0 END",
)
MYSQL = (*MARIADB[:2], "%s, CAST(%s AS JSON)", MARIADB[3])
