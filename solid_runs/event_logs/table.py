"""The log in a table of its own: a row an entry, numbered by a counter on the run's row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.db import connections, models, transaction

from solid_runs import storable
from solid_runs.columns import AnyModel, Connection, LogTable, RunColumns, column_of, facts
from solid_runs.conf import setting
from solid_runs.event_logs.sql import NOTHING, Assignments, key_param, quoted, take_lock
from solid_runs.events import Appended, Entry, Numbered, is_marker, marker_entry
from solid_runs.exceptions import RunNotFound
from solid_runs.statements import execute

if TYPE_CHECKING:
    from django.db.models import QuerySet


class TableLog:
    """Appends at a cost that does not grow with the log.

    The counter's row stays locked until the entries are committed, so they are numbered without a
    gap and in the order in which others see them: who has read up to N misses nothing later.
    """

    def __init__(self, columns: RunColumns, table: LogTable) -> None:
        self.columns, self.table = columns, table
        self.model: AnyModel = table.counter.model
        self._texts: dict[Any, str] = {}

    def append(
        self, pk: Any, entries: Sequence[Entry], using: str, others: Assignments
    ) -> Appended | None:
        """Add the entries; None when those of this run are still in its column.

        RunNotFound when the row is gone.
        """
        connection, cap = connections[using], setting("TABLE_LOG_ENTRIES") or ENDLESS
        ascii = facts(self.table.entry, connection).bmp_only
        texts = [storable.stored_json(entry, ascii=ascii) for entry in entries]
        count = self._insert(pk, texts, using, cap, others)
        if count is not None:
            return Appended(last=count)
        rows = self._rows(pk, using)
        with transaction.atomic(using=using):
            take_lock(rows)
            counts = list(
                rows.select_for_update().values_list(self.table.counter.attname, flat=True)
            )
            if not counts:
                raise RunNotFound(self.columns.model, pk)
            (count,) = counts
            if count is None:
                return None
            kept = texts[: max(0, cap - count)]
            left_out = len(texts) - len(kept)
            if left_out and (kept or not self._ends_in_marker(pk, count, using)):
                marker = marker_entry(count + len(kept))
                kept.append(storable.stored_json(marker, ascii=ascii))
            if kept:
                count = self._insert(pk, kept, using, ENDLESS, others)
        return Appended(left_out, bool(left_out and kept), count)

    def read_after(self, pk: Any, seq: int, using: str, limit: int | None) -> list[Numbered]:
        """The entries past ``seq``, by the index of (run, seq)."""
        rows = self._entries(pk, using).filter(seq__gt=seq).order_by("seq")
        most = None if limit is None else min(max(0, limit), ENDLESS)
        found = rows.values_list("seq", "entry")[:most]
        return [Numbered(*pair) for pair in found]

    def _insert(
        self, pk: Any, texts: Sequence[str], using: str, cap: int, others: Assignments
    ) -> int | None:
        """The counter after the entries; None, and nothing written, without it or past the cap."""
        connection = connections[using]
        params = {
            "pk": key_param(self.model, pk, connection),
            "size": len(texts),
            "cap": cap,
            **others.params,
        }
        with connection.cursor() as cursor:
            is_alone, params["entry"] = len(texts) == 1, texts[0]
            if connection.vendor == "postgresql":
                params["entries"] = f"[{','.join(texts)}]"
                form = "in one" if is_alone else "many in one"
                return self._scalar(cursor, form, params, others)
            if is_alone and is_mariadb(connection) and connection.get_autocommit():
                return self._scalar(cursor, "in one block", params, others)
            is_bare = connection.vendor == "sqlite" and connection.get_autocommit()
            with immediate(connection) if is_bare else transaction.atomic(using=using):
                return self._in_parts(cursor, params, texts, others)

    def _in_parts(
        self, cursor: Any, params: Mapping[str, Any], texts: Sequence[str], others: Assignments
    ) -> int | None:
        """Move the counter, and give the entries the numbers up to it."""
        connection = cursor.db
        if connection.vendor == "sqlite":
            count = self._scalar(cursor, "count and tell", params, others)
        else:
            cursor.execute(self._text("count", connection, others), params)
            count = self._scalar(cursor, "tell", params) if cursor.rowcount else None
        if count is not None:
            numbers = range(count - len(texts) + 1, count + 1)
            rows = [(params["pk"], seq, text) for seq, text in zip(numbers, texts, strict=True)]
            cursor.executemany(self._text("insert", connection), rows)
        return count

    def _scalar(
        self, cursor: Any, form: str, params: Mapping[str, Any], others: Assignments = NOTHING
    ) -> int | None:
        execute(cursor, self._text(form, cursor.db, others), params)
        found = cursor.fetchall()
        return found[0][0] if found else None

    def _text(self, form: str, connection: Connection, others: Assignments = NOTHING) -> str:
        key = (form, connection.vendor, others.names)
        if key not in self._texts:
            table = self.table
            names = {
                "runs": self.model._meta.db_table,
                "key": column_of(self.model._meta.pk),
                "count": column_of(table.counter),
                "entries": table.model._meta.db_table,
                "run": column_of(table.run),
                "seq": column_of(table.seq),
                "entry": column_of(table.entry),
            }
            parts = {name: quoted(connection, said) for name, said in names.items()}
            self._texts[key] = STATEMENTS[form].format(**parts, others=others.text(connection))
        return self._texts[key]

    def _ends_in_marker(self, pk: Any, count: int, using: str) -> bool:
        """As it is now, whatever this transaction has seen before."""
        last = self._entries(pk, using).filter(seq=count).select_for_update()
        return any(is_marker(entry) for entry in last.values_list("entry", flat=True))

    def _entries(self, pk: Any, using: str) -> QuerySet[models.Model]:
        return self.table.model._base_manager.using(using).filter(**{self.table.run.attname: pk})

    def _rows(self, pk: Any, using: str) -> QuerySet[models.Model]:
        return self.model._base_manager.using(using).filter(pk=pk)


@contextmanager
def immediate(connection: Connection) -> Iterator[None]:
    """What atomic() comes to on SQLite outside of a transaction, without what it costs there."""
    with connection.wrap_database_errors:
        connection.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.connection.execute("COMMIT")
        except BaseException:
            if connection.connection.in_transaction:  # a full disk has ended it already
                connection.connection.execute("ROLLBACK")
            raise


def is_mariadb(connection: Connection) -> bool:
    return connection.vendor == "mysql" and bool(connection.mysql_is_mariadb)


ENDLESS: Final = 2**62

COUNT: Final = (
    "UPDATE {runs} SET {count} = {count} + %(size)s{others}"
    " WHERE {key} = %(pk)s AND {count} + %(size)s <= %(cap)s"
)
STATEMENTS: Final = {
    # Planned anew each time: what is simpler is cheaper.
    "in one": (
        f"WITH counted AS ({COUNT} RETURNING {{key}} AS run, {{count}} AS last)"
        " INSERT INTO {entries} ({run}, {seq}, {entry})"
        " SELECT run, last, %(entry)s::jsonb FROM counted RETURNING {seq}"
    ),
    "many in one": (
        f"WITH counted AS ({COUNT} RETURNING {{key}} AS run, {{count}} AS last), added AS"
        " (INSERT INTO {entries} ({run}, {seq}, {entry})"
        " SELECT run, last - %(size)s + at, value FROM counted,"
        " jsonb_array_elements(%(entries)s::jsonb) WITH ORDINALITY AS given (value, at))"
        " SELECT last FROM counted"
    ),
    # One round trip for what would be five: the row is locked for so much less.
    "in one block": (
        "BEGIN NOT ATOMIC DECLARE last BIGINT;"
        " DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;"
        f" START TRANSACTION; {COUNT};"
        " IF ROW_COUNT() > 0 THEN"
        " SELECT {count} INTO last FROM {runs} WHERE {key} = %(pk)s;"
        " INSERT INTO {entries} ({run}, {seq}, {entry}) VALUES (%(pk)s, last, %(entry)s);"
        " END IF; COMMIT; SELECT last; END"
    ),
    "count": COUNT,
    "count and tell": f"{COUNT} RETURNING {{count}}",
    "tell": "SELECT {count} FROM {runs} WHERE {key} = %(pk)s",
    "insert": "INSERT INTO {entries} ({run}, {seq}, {entry}) VALUES (%s, %s, %s)",
}
"""A whole append on PostgreSQL, one of a single entry on MariaDB, and its parts for the others."""
