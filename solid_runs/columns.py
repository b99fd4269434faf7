"""Which of the contract's columns a model has, and what those columns really are.

The one place that knows what a table lacks: readers and writers ask here, so that no transition
has a column check of its own.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from django.apps import apps
from django.db import connections, models

from solid_runs import storable
from solid_runs.exceptions import InvalidUsage, MissingColumn

if TYPE_CHECKING:
    AnyField: TypeAlias = models.Field[Any, Any]
else:
    AnyField = models.Field

AnyModel: TypeAlias = type[models.Model]
Connection: TypeAlias = Any
"""A database wrapper; its backend's own attributes are unknown to the type checker."""

logger = logging.getLogger("solid_runs")

COUNT = "events_count"
"""The name of the field that counts the entries of a table log."""

OPTIONAL = frozenset(
    {
        "action_name",
        "agent",
        "agent_id",
        "agent_name",
        "completed_at",
        "created_at",
        "duration_ms",
        "error_backtrace",
        "error_message",
        "input_params",
        "input_prompt",
        "input_tokens",
        "output",
        "output_metadata",
        "output_tokens",
        "reported_total_tokens",
        "runnable_id",
        "runnable_type",
        "started_at",
        "stored_instructions_digest",
        "trace_id",
        "updated_at",
    }
)
"""Fields that a host may lack: they then read as None and are skipped by writers."""

LIFECYCLE = (
    "status",
    "output",
    "output_metadata",
    "provider",
    "model",
    "error_message",
    "error_backtrace",
    "input_tokens",
    "output_tokens",
    "reported_total_tokens",
    "duration_ms",
    "started_at",
    "completed_at",
    "trace_id",
    "updated_at",
)
"""The fields that a transition may write."""


class LogTable(NamedTuple):
    """The table of a log's entries, and the field of the run that counts them."""

    model: AnyModel
    counter: AnyField
    run: AnyField
    seq: AnyField
    entry: AnyField


class RunColumns:
    """The columns of one run model; get it from columns_of()."""

    def __init__(self, model: AnyModel) -> None:
        self.model = model

    @cached_property
    def owner(self) -> AnyModel:
        """The model whose table holds the status.

        Every conditional UPDATE runs on it: through a child of multi-table inheritance Django
        would first select the keys and then update without the condition.
        """
        return self.model._meta.get_field("status").model

    @cached_property
    def fields(self) -> dict[str, AnyField]:
        """The columns of the owner's own table, by field name and by attribute name."""
        local = self.owner._meta.local_concrete_fields
        return {name: field for field in local for name in (field.attname, field.name)}

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    @property
    def log_name(self) -> str:
        return str(getattr(self.model, "events_column", "events"))

    @cached_property
    def log(self) -> AnyField:
        """The field that holds the event log; MissingColumn when there is none."""
        for field in self.model._meta.concrete_fields:
            if self.log_name in (field.name, field.attname):
                return field
        raise MissingColumn(self.model, self.log_name)

    @cached_property
    def log_table(self) -> LogTable | None:
        """The table log, one row an entry; None where the log is only a column.

        LookupError when ``events_model`` names no model, FieldDoesNotExist when that one was not
        made from AbstractRunEvent, MissingColumn when the run has no counter.
        """
        named: str | AnyModel | None = getattr(self.model, "events_model", None)
        if named is None:
            return None
        if isinstance(named, str):
            home = self.log.model._meta.app_label
            named = apps.get_model(named if "." in named else f"{home}.{named}")
        if not (isinstance(named, type) and issubclass(named, models.Model)):
            raise LookupError(f"{named!r} is no model.")
        if self.counter is None:
            raise MissingColumn(self.model, COUNT, "events_model")
        own = [cast("AnyField", named._meta.get_field(name)) for name in ("run", "seq", "entry")]
        return LogTable(named, self.counter, *own)

    @cached_property
    def counter(self) -> AnyField | None:
        """The field that counts the entries in the log's table; null: they are in the column."""
        fields = self.log.model._meta.local_concrete_fields
        return next((field for field in fields if field.name == COUNT), None)

    @property
    def log_fields(self) -> list[AnyField]:
        """What only an append writes: the log's column, and its counter where there is one."""
        return [self.log] if self.counter is None else [self.log, self.counter]

    @cached_property
    def recency(self) -> tuple[str, ...]:
        """The ordering that gives the newest first without sorting the table."""
        created = self.fields.get("created_at")
        if created is None or not is_leading_index(created):
            return ("-pk",)
        return ("-created_at", "-pk")

    def pk_of(self, run: models.Model) -> Any:
        """The key of the run's row in the owner's table."""
        return getattr(run, self.owner._meta.pk.attname)

    def log_key(self, run: models.Model) -> Any:
        """The key of the run's row in the table that has the log's column."""
        return getattr(run, self.log.model._meta.pk.attname)

    def storable(self, values: Mapping[str, Any], using: str) -> dict[str, Any]:
        """Those of ``values`` that the table has a column for, as that column can hold them.

        Text is cleaned and cut to the real length of its column, JSON is made of JSON types, and
        a number past the column's range is dropped with a warning: what a run says can never
        stop its end from being saved.
        """
        connection = connections[using]
        kept = {}
        for name, value in values.items():
            field = self.fields.get(name)
            if field is None:
                continue
            if isinstance(field, models.IntegerField) and not fits(field, value, connection):
                logger.warning(
                    "%s.%s cannot hold %r; the figure was left out and the rest was saved.",
                    self.model.__name__,
                    name,
                    value,
                )
                continue
            if value is None and not field.null:
                if not isinstance(field, (models.CharField, models.TextField)):
                    continue
                value = ""
            kept[name] = as_stored(field, value, connection)
        return kept


@cache
def columns_of(model: AnyModel) -> RunColumns:
    return RunColumns(model)


def is_leading_index(field: AnyField) -> bool:
    """Whether the model declares an index that starts with this field."""
    meta = field.model._meta
    leading = {index.fields[0] for index in meta.indexes if index.fields}
    return bool(getattr(field, "db_index", False)) or field.unique or field.name in leading


def whole_number(name: str, value: Any) -> int:
    """A token count as an int; InvalidUsage for what cannot be one."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or number < 0:
        raise InvalidUsage(f"{name} must be a whole number of 0 or more, not {value!r}.")
    return number


def fits(field: AnyField, value: Any, connection: Connection) -> bool:
    if not isinstance(value, int):
        return True
    low, high = connection.ops.integer_field_range(field.get_internal_type())
    return (low is None or low <= value) and (high is None or value <= high)


def as_stored(field: AnyField, value: Any, connection: Connection) -> Any:
    """A plain value as this column can hold it; expressions and None are passed through."""
    if value is None or (type(value) is not str and hasattr(value, "resolve_expression")):
        return value
    if isinstance(field, models.JSONField):
        return storable.json_value(value, max_bytes=facts(field, connection).max_bytes)
    if isinstance(field, (models.CharField, models.TextField)) and not field.choices:
        real = facts(field, connection)
        nested = type(value) is not str and isinstance(value, (Mapping, list, tuple))
        said = storable.compact_json(value) if nested else value
        text = storable.text(
            said, max_chars=real.max_chars, max_bytes=real.max_bytes, bmp_only=real.bmp_only
        )
        return text.encode(real.codec, "replace").decode(real.codec) if real.codec else text
    return value


class ColumnFacts(NamedTuple):
    """What the database says of a column."""

    kind: str = "unknown"
    """``json``, ``jsonb`` or ``text`` on PostgreSQL, the data type's name on MySQL and MariaDB."""
    max_chars: int | None = None
    max_bytes: int | None = None
    """The most that one value may take, the driver's packets considered."""
    capacity: int | None = None
    """What a value that the database itself adds to may grow to, in bytes; None: no such limit."""
    bmp_only: bool = False
    """A utf8mb3 column, or one with a codec: nothing above U+FFFF."""
    codec: str | None = None
    """Of a column in a character set of before Unicode: Python's name of that."""


UNKNOWN = ColumnFacts()


def facts(field: AnyField, connection: Connection) -> ColumnFacts:
    """The real type and limits of a column, asked of the database once a process and table."""
    table = field.model._meta.db_table
    key = (connection.alias, connection.settings_dict["NAME"], table)
    known = _known.get(key)
    if known is None:
        ask = ASK.get(connection.vendor)
        known = _known[key] = {} if ask is None else ask(field.model, connection)
    return known.get(field.column or field.attname, UNKNOWN)


def column_of(field: AnyField) -> str:
    """The column of a field that is known to have one."""
    return field.column or field.attname


def forget_facts() -> None:
    """Ask again: for tests and for code that alters tables."""
    _known.clear()


def _ask_postgresql(model: AnyModel, connection: Connection) -> dict[str, ColumnFacts]:
    quote = connection.ops.quote_name
    names = ", ".join(quote(field.column) for field in model._meta.local_concrete_fields)
    with connection.cursor() as cursor:
        # The driver's answer is right for views, search paths and unmanaged tables alike.
        cursor.execute(f"SELECT {names} FROM {quote(model._meta.db_table)} LIMIT 0")  # noqa: S608
        described = list(cursor.description)
    return {
        column.name: ColumnFacts(
            kind=POSTGRESQL_KINDS.get(column.type_code, "unknown"),
            max_chars=column.display_size if column.type_code in POSTGRESQL_CHARS else None,
            max_bytes=POSTGRESQL_LARGEST,
        )
        for column in described
    }


def _ask_mysql(model: AnyModel, connection: Connection) -> dict[str, ColumnFacts]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, character_maximum_length, character_octet_length,"
            " character_set_name, @@max_allowed_packet FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s",
            [model._meta.db_table],
        )
        rows = cursor.fetchall()
    return {
        name: ColumnFacts(
            kind=kind.lower(),
            max_chars=chars if "char" in kind.lower() else None,
            # One statement may carry a few long values, and escaping can double each.
            max_bytes=min(octets, packet // 8) if octets else packet // 8,
            # What a function makes past the packet is an error, or NULL outside strict mode.
            capacity=min(octets, packet // 2) if octets else None,
            bmp_only=charset in ("utf8", "utf8mb3", *CODECS),
            codec=CODECS.get(charset),
        )
        for name, kind, chars, octets, charset, packet in rows
    }


CODECS = {
    "ascii": "ascii",
    "big5": "big5",
    "euckr": "euc_kr",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
    **{name: name for name in ("cp850", "cp852", "cp866", "cp932")},
    **{name: name for name in ("cp1250", "cp1251", "cp1256", "cp1257")},
}
"""The character sets of MariaDB that hold less than Unicode, by Python's names."""

POSTGRESQL_KINDS = {114: "json", 3802: "jsonb", 25: "text"}
POSTGRESQL_CHARS = (1042, 1043)
POSTGRESQL_LARGEST = 2**28 - 2**20
"""jsonb holds strings of less than 256 MiB."""

ASK = {"postgresql": _ask_postgresql, "mysql": _ask_mysql}
_known: dict[tuple[str, Any, str], dict[str, ColumnFacts]] = {}
