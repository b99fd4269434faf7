"""Merging new keys into a stored JSON object, in the database, one level deep."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import models
from django.db.models.expressions import RawSQL

from solid_runs import storable
from solid_runs.columns import AnyField, Connection, facts

logger = logging.getLogger("solid_runs")


class Merge(NamedTuple):
    """An UPDATE's new value for the column, and the condition under which it may be written."""

    value: RawSQL
    guard: RawSQL


def shallow_merge(field: AnyField, new: Mapping[str, Any], connection: Connection) -> Merge | None:
    """The SQL that merges ``new`` into an object, or into nothing; None: read and write instead.

    None on a database without a form here, on a text column of PostgreSQL, and on SQLite for a
    key that is not plain (its JSON paths compare keys with the text as it was escaped) or more
    keys than a function takes arguments.
    """
    column = connection.ops.quote_name(field.column).replace("%", "%%")
    if connection.vendor == "postgresql":
        templates = POSTGRESQL.get(facts(field, connection).kind)
        if templates is None:
            return None
        value, guard = templates
        return _merge(value, guard, column, [json.dumps(new)])
    plain = len(new) <= SQLITE_KEYS and all(PLAIN_KEY.fullmatch(key) for key in new)
    if connection.vendor == "sqlite" and plain:
        return _merge(*_set_keys(SQLITE, new), column, _paths_and_values(new))
    if connection.vendor == "mysql":
        real = facts(field, connection)
        narrow = real.bmp_only
        most_char = "\x7f" if real.codec else "\uffff"
        if narrow and any(char > most_char for key in new for char in key):
            return None  # a path has no escapes, and the column may not have the character
        form = MARIADB if connection.mysql_is_mariadb else MYSQL
        value, guard = _set_keys(form, new)
        if real.capacity is not None:
            most = real.capacity - json_size(new) - 4 * len(new)
            guard = f"({guard}) AND COALESCE(OCTET_LENGTH({{col}}), 0) <= {most}"
        return _merge(value, guard, column, _paths_and_values(new, ascii=narrow))
    return None


def _merge(value: str, guard: str, column: str, params: list[Any]) -> Merge:
    return Merge(
        RawSQL(value.replace("{col}", column), params),  # noqa: S611
        RawSQL(guard.replace("{col}", column), [], models.BooleanField()),  # noqa: S611
    )


def _set_keys(form: tuple[str, str, str, str], new: Mapping[str, Any]) -> tuple[str, str]:
    function, base, pair, guard = form
    return f"{function}({', '.join([base, *[pair] * len(new)])})", guard


def _paths_and_values(new: Mapping[str, Any], *, ascii: bool = False) -> list[str]:
    """A JSON path and a JSON text for each key, the key quoted as JSON quotes it."""
    return [
        text
        for key, value in new.items()
        for text in (
            "$." + json.dumps(key, ensure_ascii=False),
            storable.compact_json(value, ascii=ascii),
        )
    ]


def merged(stored: Any, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same merge in Python; None when ``stored`` is no object and not empty either."""
    if stored is None or stored == "":
        return dict(new)
    return {**stored, **new} if isinstance(stored, Mapping) else None


def json_size(value: Any) -> int:
    """How many bytes a value takes at most as JSON: with everything escaped that can be."""
    return len(storable.compact_json(value, ascii=True))


def fit_object(new: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """``new`` as a JSON object of at most ``limit`` bytes, whose longest values are cut.

    Where not even the keys fit, nothing is kept, with a warning in the log.
    """
    whole = storable.json_value(new)
    if not isinstance(whole, dict):  # a mapping that cannot be read
        whole = {"value": whole}
    if limit is None or json_size(whole) <= limit:
        return whole
    room = limit - sum(json_size(key) + 2 for key in whole) - 2
    if room < 4 * len(whole):
        logger.warning("Metadata of %d keys found no room in its column.", len(whole))
        return {}
    share = room // len(whole)
    return {key: _cut(value, share) for key, value in whole.items()}


def _cut(value: Any, share: int) -> Any:
    if json_size(value) <= share:
        return value
    kept = storable.json_value(value, max_bytes=share)
    # An escaped character takes up to three times the bytes that it takes as it is.
    return kept if json_size(kept) <= share else storable.json_value(value, max_bytes=share // 3)


def merge_within(stored: Any, new: Mapping[str, Any], limit: int | None) -> dict[str, Any] | None:
    """merged(), the new values cut to what room the stored ones leave; None: no object is stored.

    What is stored already is never cut.
    """
    result = merged(stored, new)
    if result is None or limit is None or json_size(result) <= limit:
        return result
    older = dict(stored or {})
    return merged(older, fit_object(new, limit - json_size(older))) or {}


SQLITE_KEYS = 60
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
