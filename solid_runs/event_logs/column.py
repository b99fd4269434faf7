"""The log in a column of the run's row: a JSON list, oldest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from django.db import connections, models, transaction
from django.db.models.expressions import RawSQL

from solid_runs import storable
from solid_runs.columns import AnyField, ColumnFacts, Connection, RunColumns, column_of, facts
from solid_runs.conf import setting
from solid_runs.event_logs.sql import Assignments, key_param, quoted, take_lock
from solid_runs.events import Appended, Entry, Numbered, as_entries, is_marker, marker_entry
from solid_runs.exceptions import NotAList, RunNotFound
from solid_runs.statements import execute

if TYPE_CHECKING:
    from django.db.models import QuerySet

Form = tuple[str, str]


class ColumnLog:
    """Appends with one UPDATE that adds to the list in the database.

    So racing writers, Rails included, lose nothing, and what they wrote stays as it is. A text
    column on PostgreSQL, any database that has no form here, and a list that the form cannot
    take, are read and rewritten under a lock.
    """

    def __init__(self, columns: RunColumns) -> None:
        self.columns = columns
        self.field: AnyField = columns.log
        self.model = self.field.model
        self._texts: dict[Any, str] = {}

    def append(
        self, pk: Any, entries: Sequence[Entry], using: str, others: Assignments
    ) -> Appended | None:
        """Add the entries; None when this run's entries are in the column no more.

        RunNotFound when the row is gone, NotAList when it holds no list.
        """
        connection, cap = connections[using], setting("COLUMN_LOG_ENTRIES") or ENDLESS
        real = facts(self.field, connection)
        texts = [storable.stored_json(entry, ascii=real.bmp_only) for entry in entries]
        form = append_form(connection, real)
        if form is not None and len(texts) <= cap:
            key = (form, real, others.names)
            if key not in self._texts:
                self._texts[key] = self._text(form, real, others, connection)
            text = ",".join(texts)
            params = {
                "entries": text,
                "pk": key_param(self.model, pk, connection),
                "room": cap - len(texts),
                "size": len(text.encode()) + MARKER_BYTES,
                "surely": SHORTEST * (cap - len(texts)),
                **others.params,
            }
            with connection.cursor() as cursor:
                if execute(cursor, self._texts[key], params) > 0:
                    return Appended()
        # Gone, moved, full, no list, or one that the form cannot take.
        return self._append_under_lock(pk, texts, using, cap, others)

    def read(self, pk: Any, using: str) -> tuple[Any, int | None]:
        """What the column holds, and the counter of the table log: null, where there is none."""
        counter = [] if self.columns.counter is None else [self.columns.counter.attname]
        for stored, *count in self._rows(pk, using).values_list(self.field.attname, *counter):
            return stored, count[0] if count else None
        raise RunNotFound(self.columns.model, pk)

    def _text(
        self, form: Form, real: ColumnFacts, others: Assignments, connection: Connection
    ) -> str:
        meta, column = self.model._meta, quoted(connection, column_of(self.field))
        value, guard = (part.replace("{col}", column) for part in form)
        if self.columns.counter is not None:
            guard += f" AND {quoted(connection, column_of(self.columns.counter))} IS NULL"
        if real.capacity is not None:
            # Outside strict mode the server would cut the list, and nobody could read it any more.
            guard += f" AND COALESCE(OCTET_LENGTH({column}), 0) + %(size)s <= {real.capacity}"
            # A smaller entry may not slip in behind the marker.
            guard += f" AND COALESCE(RIGHT({column}, 200), '') NOT LIKE '{MARKED}'"
        return (
            f"UPDATE {quoted(connection, meta.db_table)}"
            f" SET {column} = {value}{others.text(connection)}"
            f" WHERE {quoted(connection, column_of(meta.pk))} = %(pk)s AND {guard}"
        )

    def _append_under_lock(
        self, pk: Any, texts: list[str], using: str, cap: int, others: Assignments
    ) -> Appended | None:
        """Splice the entries into the list as it is written."""
        connection, rows = connections[using], self._rows(pk, using)
        column, real = column_of(self.field), facts(self.field, connection)
        as_text = "{}::text" if connection.vendor == "postgresql" else "{}"
        raw = RawSQL(as_text.format(quoted(connection, column)), [])  # noqa: S611
        counter = [] if self.columns.counter is None else [self.columns.counter.attname]
        with transaction.atomic(using=using):
            take_lock(rows)
            found = list(rows.select_for_update().values_list(raw, *counter))
            if not found:
                raise RunNotFound(self.columns.model, pk)
            stored, *count = found[0]
            if count and count[0] is not None:
                return None
            text = stored if isinstance(stored, str) else storable.compact_json(stored)
            text, held = listed(text)
            if held is None:
                raise NotAList(self.columns.model, pk, column)
            room = None if real.capacity is None else real.capacity - len(text.encode())
            ended = bool(held) and is_marker(held[-1])
            kept = fitting(texts, cap - len(held), room)
            if ended and room is not None and room < (real.capacity or 0) // 10:
                kept = []  # full by its size
            left_out = len(texts) - len(kept)
            marked = left_out > 0 and (bool(kept) or not ended)
            if marked:
                marker = marker_entry(len(held) + len(kept))
                texts = [*kept, storable.stored_json(marker, ascii=real.bmp_only)]
                kept = fitting(texts, len(texts), room, spare=0)
            if kept:
                new = spliced(text, held, kept)
                rows.update(**{self.field.attname: RawSQL("%s", [new]), **others.values})
        return Appended(left_out, marked)

    def _rows(self, pk: Any, using: str) -> QuerySet[models.Model]:
        return self.model._base_manager.using(using).filter(pk=pk)


ENDLESS: Final = 2**31 - 1
MARKER_BYTES: Final = 512
"""What a column that can be full keeps free for the marker."""
SHORTEST: Final = 40
"""No entry takes less as JSON: a text shorter than that for each needs no counting."""


def numbered(stored: Any, seq: int, limit: int | None) -> list[Numbered]:
    """The entries past position ``seq`` of what a log column holds."""
    begin = max(0, seq)
    newer = as_entries(stored)[begin : None if limit is None else begin + max(0, limit)]
    return [Numbered(at, entry) for at, entry in enumerate(newer, begin + 1)]


def listed(text: str) -> tuple[str, list[Any] | None]:
    """What a log column holds as text: the text of its list, and the list; None: it is none."""
    try:
        entries = json.loads(text) if text.strip() else []
        if isinstance(entries, str):  # a list that was encoded twice
            text = entries
            entries = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        return text, None
    if entries is None:
        return text, []
    return text, entries if isinstance(entries, list) else None


def spliced(text: str, held: Sequence[Any], entries: Sequence[str]) -> str:
    """The JSON list ``text`` with ``entries`` behind those that it holds."""
    added = ",".join(entries)
    return f"{text.rstrip()[:-1]},{added}]" if held else f"[{added}]"


def fitting(
    texts: Sequence[str], count: int, room: int | None, spare: int = MARKER_BYTES
) -> list[str]:
    """The first of ``texts``: at most ``count``, that leave ``spare`` bytes of the ``room``."""
    kept, size = [], spare + 2
    for text in texts[: max(0, count)]:
        size += len(text.encode()) + 1
        if room is not None and size > room:
            break
        kept.append(text)
    return kept


def append_form(connection: Connection, real: ColumnFacts) -> Form | None:
    """The value and the guard of an UPDATE that appends; None: this column has no such form."""
    vendor = connection.vendor
    return APPEND.get(f"{vendor} {real.kind}") or APPEND.get(vendor)


MARKED: Final = '%%"kind":"truncated","label":"log"%%'
"""The marker near the end of a list as it is stored."""
EMPTY: Final = """('null', '""', '[]', '"[]"')"""
"""The faces of an empty log that older writers left: null, the empty text, one encoded twice."""

APPEND: Final[dict[str, Form]] = {
    # Each look into a long value fetches the whole of it; its stored size does not.
    "postgresql jsonb": (
        "CASE WHEN pg_column_size({col}) > 100 OR jsonb_typeof({col}) = 'array' THEN {col}"
        " ELSE '[]'::jsonb END || ('[' || %(entries)s || ']')::jsonb",
        "CASE WHEN {col} IS NULL THEN true"
        " WHEN jsonb_typeof({col}) = 'array' THEN jsonb_array_length({col}) <= %(room)s"
        f" ELSE {{col}}::text IN {EMPTY} END",
    ),
    # By text: a cast to jsonb would cost three times as much, reorder what Rails wrote, and fail
    # for ever on a list that holds an escaped NUL. As bytes, since left() counts characters. The
    # subqueries, of this row alone, make the text once.
    "postgresql json": (
        f"(SELECT (CASE WHEN held IS NULL OR held IN {EMPTY} THEN '['"
        " ELSE convert_from(substring(convert_to(held, getdatabaseencoding())"
        " FROM 1 FOR octet_length(held) - 1), getdatabaseencoding()) || ',' END"
        " || %(entries)s || ']')::json FROM (SELECT {col}::text AS held OFFSET 0) AS log)",
        f"(SELECT CASE WHEN held IS NULL OR held IN {EMPTY} THEN true"
        " WHEN held NOT LIKE '[%%]' THEN false"
        r" WHEN left(held, 60) ~ '^\[\s*[^]\s]'"
        f" AND octet_length(held) BETWEEN {SHORTEST} AND %(surely)s THEN true"
        " ELSE json_array_length({col}) BETWEEN 1 AND %(room)s END"
        " FROM (SELECT {col}::text AS held OFFSET 0) AS log)",
    ),
    # As bytes, which need no counting of characters. json_type() raises on text that is not JSON,
    # and only CASE promises an order.
    "sqlite": (
        f"CASE WHEN {{col}} IS NULL OR {{col}} IN {EMPTY} OR {{col}} = '' THEN '['"
        " ELSE CAST(substr(CAST({col} AS BLOB), 1, length(CAST({col} AS BLOB)) - 1) AS TEXT)"
        " || ',' END || %(entries)s || ']'",
        f"CASE WHEN {{col}} IS NULL OR {{col}} IN {EMPTY} OR {{col}} = '' THEN 1"
        " WHEN json_valid({col}) AND substr(CAST({col} AS BLOB), -1) = x'5d'"
        " THEN json_type({col}) = 'array' AND json_array_length({col}) BETWEEN 1 AND %(room)s"
        " ELSE 0 END",
    ),
    # MariaDB, whose JSON is text.
    "mysql": (
        f"CONCAT(CASE WHEN {{col}} IS NULL OR {{col}} IN {EMPTY} OR {{col}} = '' THEN '['"
        " ELSE CONCAT(LEFT({col}, CHAR_LENGTH({col}) - 1), ',') END, %(entries)s, ']')",
        f"CASE WHEN {{col}} IS NULL OR {{col}} IN {EMPTY} OR {{col}} = '' THEN 1"
        " WHEN LEFT({col}, 1) = '[' AND RIGHT({col}, 1) = ']' AND JSON_VALID({col})"
        " THEN JSON_LENGTH({col}) BETWEEN 1 AND %(room)s ELSE 0 END",
    ),
    "mysql json": (
        "JSON_MERGE_PRESERVE(CASE WHEN JSON_TYPE({col}) = 'ARRAY' THEN {col}"
        " ELSE JSON_ARRAY() END, CAST(CONCAT('[', %(entries)s, ']') AS JSON))",
        "CASE WHEN {col} IS NULL THEN 1"
        " WHEN JSON_TYPE({col}) = 'ARRAY' THEN JSON_LENGTH({col}) <= %(room)s"
        f" ELSE CAST({{col}} AS CHAR) IN {EMPTY} END",
    ),
}
"""By database and real type of the column: the new value, and the guard of the UPDATE.

The guard takes an empty log, and a list with room for ``%(room)s`` entries before the new ones;
anything else is looked into under a lock.
"""
