"""What save() writes of a run that has a row: never its log, and its status only by the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db import connections, models, transaction

from solid_runs.columns import LIFECYCLE, OPTIONAL, RunColumns, as_stored, facts
from solid_runs.copies import held, is_unsure, known_status, note_written, noted, unchanged
from solid_runs.event_logs.log import makes_its_own_key
from solid_runs.exceptions import StaleRun
from solid_runs.fields import LOADED
from solid_runs.merging import fit_object, json_size
from solid_runs.statuses import MOVES, RunStatus
from solid_runs.transitions import announce, new_trace_id, rows_of, write_alias

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin


def has_row(run: models.Model, using: str | None) -> bool:
    """Whether a save to ``using`` overwrites the row that this copy came from.

    ``run.pk = None; run.save()``, the idiom for a clone, and a copy to another database do not.
    """
    if run._state.adding or run.pk is None:
        return False
    return using in (None, run._state.db, write_alias(run))


def overwrites(run: models.Model, using: str) -> bool:
    """Whether a copy that was not read from this database meets a row of its key there."""
    if run.pk is None or (run._state.adding and makes_its_own_key(run)):
        return False
    return type(run)._base_manager.using(using).filter(pk=run.pk).exists()


def fields_beside_log(run: models.Model, columns: RunColumns) -> list[str]:
    """What such a save writes: an append-only log is nobody's to replace."""
    log = {field.name for field in columns.log_fields}
    fields = [f for f in run._meta.concrete_fields if not f.primary_key and not f.generated]
    return [field.name for field in fields if field.name not in log]


def prepare(run: AgentRunMixin, columns: RunColumns, using: str) -> set[str]:
    """Make what the run says storable and give it a trace id; the names of what that changed."""
    connection, said = connections[using], run.__dict__
    for name in _sayings(columns):
        value = said.get(name)
        if value is None:
            continue
        if isinstance(value, str):
            kept = as_stored(columns.fields[name], value, connection)
            if kept != value:
                setattr(run, name, kept)
        elif isinstance(value, Mapping):
            limit = facts(columns.fields[name], connection).max_bytes
            if limit is not None and limit < LARGE and json_size(value) > limit:
                setattr(run, name, fit_object(value, limit))
    if "trace_id" in columns and said.get("trace_id", "") is None:
        run.trace_id = new_trace_id(columns, using)
        return {"trace_id"}
    return set()


@cache
def _sayings(columns: RunColumns) -> tuple[str, ...]:
    """The fields whose values a save looks into."""
    return tuple(sorted({*OPTIONAL, *LIFECYCLE} & columns.fields.keys() - {"status"}))


LARGE: Final = 2**26
"""Columns that hold less than this are measured before a save."""


def save_existing(
    run: AgentRunMixin,
    columns: RunColumns,
    using: str,
    update_fields: Iterable[str] | None,
    save: Callable[[list[str]], None],
) -> None:
    """Write the loaded fields without the log; a changed status as a conditional UPDATE first.

    Of the lifecycle's columns only those that this copy changed are written, so that a stale copy
    leaves the outcome alone that another has saved. StaleRun is raised outside the transaction,
    and nothing is written then.
    """
    healed = prepare(run, columns, using)
    if update_fields is None:
        names = _loaded_fields(run) - unchanged(run)
    else:
        names = _named(columns, update_fields)
        if names:
            names |= _moving_timestamps(run)
    names -= {field.name for field in columns.log_fields} | healed

    def write(names: set[str]) -> None:
        if healed:
            _heal_trace(run, columns, using)
        with noted(run, held(run, names), using):
            save(sorted(names))

    target = run.__dict__.get("status")
    read: Any = getattr(run._state, LOADED, UNREAD)
    if is_unsure(run):
        read = rows_of(run, columns, using).values_list("status", flat=True).first()
        if read != target and COMPUTED & run.get_deferred_fields():
            why = "its change of status was rolled back, and what it said with it: make it again."
            raise StaleRun(type(run), run.pk, read=read, assigned=target, why=why)
    if "status" not in names or read == target:
        write(names - {"status"})
        return
    if read is UNREAD:
        why = f"its status was set to {target!r} without ever having been read."
        raise StaleRun(type(run), run.pk, read=None, assigned=target, why=why)
    if not isinstance(target, RunStatus) or read not in MOVES[target]:
        why = f"its status may not go from {read!s} to {target!s}."
        raise StaleRun(type(run), run.pk, read=read, assigned=target, why=why)
    with transaction.atomic(using=using):
        rows = rows_of(run, columns, using).filter(status__in=[read])
        moved = rows.update(status=target) > 0
        if moved:
            # The row is locked now, so writing the status again with the rest changes nothing,
            # and receivers of post_save are told of it.
            note_written(run, {"status": target}, using)
            announce(run, read, target, columns, using)
            write(names)
            if run.__dict__.get("status") != known_status(run):
                why = f"a receiver of pre_save set another status than {target!s}."
                raise StaleRun(type(run), run.pk, read=read, assigned=target, why=why)
    if not moved:
        why = f"its status is no longer {read!s}, which this copy had read."
        raise StaleRun(type(run), run.pk, read=read, assigned=target, why=why)


def _heal_trace(run: AgentRunMixin, columns: RunColumns, using: str) -> None:
    """Store the new trace id, or take over the one that somebody else gave the row."""
    rows = rows_of(run, columns, using)
    if not rows.filter(trace_id__isnull=True).update(trace_id=run.trace_id):
        run.trace_id = rows.values_list("trace_id", flat=True).first()


UNREAD: Final = object()
COMPUTED: Final = {"output_metadata", "error_message"}
"""What a transition lets the database compute, so that this copy does not have it."""


def _loaded_fields(run: models.Model) -> set[str]:
    deferred = run.get_deferred_fields()
    keys = {field.name for field in run._meta.pk_fields}
    return {
        field.name
        for field in run._meta.concrete_fields
        if not field.primary_key
        and field.name not in keys
        and not field.generated
        and field.attname not in deferred
    }


ALIASES: Final = {
    "total_tokens": "reported_total_tokens",
    "instructions_digest": "stored_instructions_digest",
}
"""Computed readers, and the fields of the columns behind them."""


def stored_names(names: Iterable[str], columns: RunColumns) -> list[str]:
    """``names`` with the fields behind computed readers in their place."""
    behind = {name: field for name, field in ALIASES.items() if field in columns}
    return [behind.get(name, name) for name in names]


def _named(columns: RunColumns, update_fields: Iterable[str]) -> set[str]:
    names = set(update_fields)
    for field in columns.log_fields:
        if names & {field.name, field.attname}:
            raise ValueError(
                f"save() never writes the event log of a run that has a row; leave {field.name!r} "
                f"out of update_fields and use append_event() or add_log()."
            )
    return names


def _moving_timestamps(run: models.Model) -> set[str]:
    """``updated_at`` moves with every save, as Rails has it."""
    return {
        field.name
        for field in run._meta.concrete_fields
        if field.name == "updated_at" and getattr(field, "auto_now", False)
    }
