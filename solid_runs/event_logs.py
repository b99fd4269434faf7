"""Where the entries of a run are kept: appending, and reading after a position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import connections, models, transaction
from django.db.models.expressions import RawSQL

from solid_runs import storable
from solid_runs.columns import (
    AnyField,
    AnyModel,
    ColumnFacts,
    Connection,
    RunColumns,
    column_of,
    facts,
)
from solid_runs.events import Entry, Numbered, as_entries
from solid_runs.exceptions import LogFull, NotAList, RunNotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet


class ColumnLog:
    """The log that lives in a column of the run's row: a JSON list, oldest first.

    An append is one UPDATE that adds to the list in the database, so racing writers, Rails
    included, lose nothing. A text column on PostgreSQL, any database that has no form here, and
    a list that the database's functions cannot read, are read and rewritten under a lock.
    """

    def __init__(self, columns: RunColumns) -> None:
        self.columns = columns
        self.field: AnyField = columns.log
        self.model: AnyModel = columns.log.model

    def append(self, pk: Any, entry: Entry, using: str) -> None:
        """Add one entry. RunNotFound when the row is gone, NotAList when it holds no list."""
        connection = connections[using]
        real = facts(self.field, connection)
        sql = append_sql(self.field, connection, real)
        if sql is None:
            self._append_under_lock(pk, entry, using)
            return
        text = storable.compact_json(entry, ascii=real.bmp_only)
        key = self.model._meta.pk.get_db_prep_value(pk, connection)
        with connection.cursor() as cursor:
            cursor.execute(sql, {"entry": text, "pk": key, "size": len(text.encode()) + 2})
            appended = cursor.rowcount > 0
        if not appended:
            # Gone, full, no list, or one that the database's own functions cannot read.
            self._append_under_lock(pk, entry, using)

    def _append_under_lock(self, pk: Any, entry: Entry, using: str) -> None:
        """Splice the entry into the list as it is written, so that nothing in it changes."""
        connection, column = connections[using], column_of(self.field)
        real, rows = facts(self.field, connection), self._row(pk, using)
        as_text = "{}::text" if connection.vendor == "postgresql" else "{}"
        quoted = connection.ops.quote_name(column).replace("%", "%%")
        raw = RawSQL(as_text.format(quoted), [])  # noqa: S611
        with transaction.atomic(using=using):
            found = list(rows.select_for_update().values_list(raw, flat=True))
            if not found:
                raise RunNotFound(self.columns.model, pk)
            text = spliced(found[0], storable.compact_json(entry, ascii=real.bmp_only))
            if text is not None and within(text, real.capacity):
                rows.update(**{self.field.attname: RawSQL("%s", [text])})
        if text is None:
            raise NotAList(self.columns.model, pk, column)
        if real.capacity is not None and not within(text, real.capacity):
            raise LogFull(self.columns.model, pk, column, real.capacity)

    def pk_of(self, run: models.Model) -> Any:
        """The key of the run's row in the table that holds the log."""
        return getattr(run, self.model._meta.pk.attname)

    def read_after(self, pk: Any, seq: int, using: str) -> list[Numbered]:
        """The entries past position ``seq``, as the database has them now."""
        for stored in self._row(pk, using).values_list(self.field.attname, flat=True):
            begin = max(0, seq)
            newer = as_entries(stored)[begin:]
            return [Numbered(at, entry) for at, entry in enumerate(newer, begin + 1)]
        raise RunNotFound(self.columns.model, pk)

    def _row(self, pk: Any, using: str) -> QuerySet[models.Model]:
        return self.model._base_manager.using(using).filter(pk=pk)


def spliced(stored: Any, entry: str) -> str | None:
    """The JSON list ``stored``, as text or decoded, with one entry more; None: it is no list."""
    text = stored if isinstance(stored, str) else storable.compact_json(stored)
    try:
        entries = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        return None
    if entries in (None, "", "[]", []):
        return f"[{entry}]"
    return f"{text.rstrip()[:-1]},{entry}]" if isinstance(entries, list) else None


def within(text: str, capacity: int | None) -> bool:
    return capacity is None or len(text.encode()) <= capacity


def append_sql(field: AnyField, connection: Connection, real: ColumnFacts) -> str | None:
    """The UPDATE that appends ``%(entry)s`` to the row ``%(pk)s``; None: there is no such form.

    A column of little capacity is not overfilled: outside strict mode the server would cut the
    list, and nobody could read it any more.
    """
    form = APPEND.get(connection.vendor) or APPEND.get(f"{connection.vendor} {real.kind}")
    if form is None:
        return None
    meta = field.model._meta
    table, key, column = (
        connection.ops.quote_name(name).replace("%", "%%")
        for name in (meta.db_table, meta.pk.column, field.column)
    )
    value, guard = (part.replace("{col}", column) for part in form)
    if connection.vendor == "mysql" and not connection.mysql_is_mariadb:
        value = value.replace("JSON_COMPACT(%(entry)s)", "CAST(%(entry)s AS JSON)")
    if real.capacity is not None:
        guard += f" AND COALESCE(OCTET_LENGTH({column}), 0) + %(size)s <= {real.capacity}"
    return f"UPDATE {table} SET {column} = {value} WHERE {key} = %(pk)s AND {guard}"  # noqa: S608


APPEND: dict[str, tuple[str, str]] = {
    "postgresql jsonb": (
        "CASE WHEN jsonb_typeof({col}) = 'array'"
        " THEN {col} || jsonb_build_array(%(entry)s::jsonb)"
        " ELSE jsonb_build_array(%(entry)s::jsonb) END",
        "({col} IS NULL OR jsonb_typeof({col}) IN ('array', 'null')"
        """ OR {col} IN ('""'::jsonb, '"[]"'::jsonb))""",
    ),
    # By text: a cast to jsonb would cost three times as much, reorder what Rails wrote, and fail
    # for ever on a list that holds an escaped NUL.
    "postgresql json": (
        r"(CASE WHEN json_typeof({col}) = 'array' AND {col}::text !~ '^\s*\[\s*\]\s*$'"
        r" THEN left(rtrim({col}::text, E' \t\n\r'), -1) || ',' || %(entry)s::text || ']'"
        " ELSE '[' || %(entry)s::text || ']' END)::json",
        "({col} IS NULL OR json_typeof({col}) IN ('array', 'null')"
        """ OR {col}::text IN ('""', '"[]"'))""",
    ),
    # json_type() raises on text that is not JSON, and only CASE promises an order.
    "sqlite": (
        "CASE WHEN {col} IS NULL OR trim({col}) = '' THEN json_array(json(%(entry)s))"
        " WHEN json_type({col}) = 'array' THEN json_insert({col}, '$[#]', json(%(entry)s))"
        " ELSE json_array(json(%(entry)s)) END",
        "CASE WHEN {col} IS NULL OR trim({col}) = '' THEN 1 WHEN json_valid({col})"
        """ THEN json_type({col}) IN ('array', 'null') OR trim({col}) IN ('""', '"[]"')"""
        " ELSE 0 END",
    ),
    "mysql": (
        "CASE WHEN {col} IS NULL OR {col} = '' THEN JSON_ARRAY(JSON_COMPACT(%(entry)s))"
        " WHEN JSON_TYPE({col}) = 'ARRAY'"
        " THEN JSON_ARRAY_APPEND({col}, '$', JSON_COMPACT(%(entry)s))"
        " ELSE JSON_ARRAY(JSON_COMPACT(%(entry)s)) END",
        "CASE WHEN {col} IS NULL OR {col} = '' THEN 1 WHEN JSON_VALID({col})"
        """ THEN JSON_TYPE({col}) IN ('ARRAY', 'NULL') OR {col} IN ('""', '"[]"')"""
        " ELSE 0 END",
    ),
}
"""By database, and on PostgreSQL by real type: the column's new value, and the UPDATE's guard.

The guard takes the faces of an empty log that older writers left (null, the empty text, a list
that was encoded twice) for [], and anything else that is no list for none of its business.
"""
