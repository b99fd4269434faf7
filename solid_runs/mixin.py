"""The behaviour of a run, over whatever columns its table has."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

from asgiref.sync import sync_to_async
from django.db import connections, models, transaction
from django.db.models import Case, Q, Value, When
from django.db.models.base import ModelBase
from django.utils import timezone

from solid_runs import failures, fingerprints
from solid_runs.buffers import EventBuffer
from solid_runs.columns import COUNT, OPTIONAL, AnyField, RunColumns, columns_of, whole_number
from solid_runs.conf import setting
from solid_runs.copies import WRITTEN, held, note_place, note_read, noted, settle
from solid_runs.event_logs.log import begin_log, event_log_of
from solid_runs.events import (
    Appended,
    Entry,
    Numbered,
    as_entries,
    event_entry,
    fitted,
    message_entry,
)
from solid_runs.exceptions import RunNotFound
from solid_runs.querysets import RunQuerySet
from solid_runs.saving import (
    fields_beside_log,
    has_row,
    overwrites,
    prepare,
    save_existing,
    stored_names,
)
from solid_runs.statuses import IN_PROGRESS, MOVES, RESTARTABLE, RunStatus, UnknownStatus
from solid_runs.subjects import UnresolvedSubject, set_subject, subject_of
from solid_runs.summaries import DEFAULT_ACTION, summarise
from solid_runs.times import elapsed_ms
from solid_runs.transitions import Transition, write_alias

logger = logging.getLogger("solid_runs")

FULL_AT: Final = "solid_runs_full_at"
"""On ``_state``: the row and the caps at which this copy has found its log full."""
CANCEL_REASON = "Cancelled by user"
WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""Spelt out, as what a database takes for ``\\s`` is not the same on each."""


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""An argument that was not given: its column is left as it is."""


class AgentRunMixin(models.Model):
    """The lifecycle, event log and figures of an agent run (contract 1).

    It has no columns: a shape from solid_runs.models brings them, or the host's own fields do. A
    host needs ``status`` and the field that ``events_column`` names; whatever else it lacks reads
    as None and is skipped by writers. It stands first among the bases.

    ``bulk_update()``, ``queryset.update()`` and fixtures are stock Django: they go round the
    lifecycle.
    """

    events_column: ClassVar[str] = "events"
    """The name of the field that holds the event log."""

    events_model: ClassVar[str | type[models.Model] | None] = None
    """A model made from AbstractRunEvent, ``"app.Model"``: new runs keep their log in its table."""

    objects = RunQuerySet.as_manager()

    class Meta:
        abstract = True

    _buffer: EventBuffer | None = None
    _subject_cache: tuple[tuple[str, str], Any] | None = None

    if TYPE_CHECKING:
        status: Any
        input_prompt: Any
        output: Any
        output_metadata: Any
        input_tokens: Any
        output_tokens: Any
        reported_total_tokens: Any
        duration_ms: Any
        error_message: Any
        error_backtrace: Any
        action_name: Any
        agent_name: Any
        agent_id: Any
        trace_id: Any
        runnable_type: Any
        runnable_id: Any
        stored_instructions_digest: Any
        started_at: Any
        completed_at: Any
        created_at: Any
        updated_at: Any

    def __getattr__(self, name: str) -> Any:
        """None for a column that this table lacks; provider and model then come from the metadata.

        Also reached when a descriptor of the class raised AttributeError: that is raised again.
        Not class attributes: those would keep a host's own fields of these names from being
        inherited.
        """
        if not hasattr(type(self), name):
            if name in ("provider", "model"):
                return self._metadata().get(name)
            if name in OPTIONAL:
                return None
        return super().__getattribute__(name)

    def __str__(self) -> str:
        status = self.__dict__.get("status")
        name = self._meta.verbose_name
        return f"{name} {self.pk}" if status is None else f"{name} {self.pk} ({status})"

    # Lifecycle

    def start(self) -> bool:
        """Claim the run: pending becomes running. True for exactly one of all who try."""
        return self._move(RunStatus.RUNNING, {"started_at": timezone.now()})

    def finish(
        self,
        output: Any = UNSET,
        metadata: Mapping[str, Any] | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        total_tokens: int | None = None,
    ) -> bool:
        """End the run with its outcome. False, and nothing written, when it has ended already.

        An argument that is not given leaves its column as it is; ``output=None`` clears it.
        ``metadata`` is merged, one level deep, into what the row holds at that moment. Token
        counts are whole numbers of 0 or more, else InvalidUsage is raised before anything is
        written; one that its column cannot hold is left out with a warning in the log.
        """
        values: dict[str, Any] = {} if output is UNSET else {"output": output}
        counts = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "reported_total_tokens": total_tokens,
        }
        values |= {
            name: whole_number(name.removeprefix("reported_"), count)
            for name, count in counts.items()
            if count is not None
        }
        if metadata is not None and not isinstance(metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, not {type(metadata).__name__}.")
        for name in ("provider", "model"):
            own = isinstance(self._columns.fields.get(name), models.CharField | models.TextField)
            if own and metadata and isinstance(metadata.get(name), str):
                values[name] = metadata[name]
        return self._move(RunStatus.COMPLETE, values, metadata=metadata)

    def fail(self, error: Any) -> bool:
        """End the run with an exception or a text. False when it has ended already."""
        failure = failures.describe(error)
        values = {"error_message": failure.message, "error_backtrace": failure.backtrace}
        return self._move(RunStatus.FAILED, values)

    def cancel(self, reason: str | None = CANCEL_REASON) -> bool:
        """End the run before it is through. False when it has ended already: it was faster.

        The reason is kept only where no error message stands.
        """
        reasons = self._columns.storable({"error_message": reason}, write_alias(self))
        blank = (
            Q(error_message__isnull=True)
            | Q(error_message="")
            | Q(error_message__regex=f"^[{WHITE_SPACE}]*$")
        )
        values: dict[str, Any] = {
            name: Case(
                When(blank, then=Value(text)),
                default=models.F("error_message"),
                output_field=self._columns.fields[name],
            )
            for name, text in reasons.items()
            if text is not None
        }
        return self._move(RunStatus.CANCELLED, values)

    def restart(self) -> bool:
        """The one way out of an end: failed or cancelled becomes running, started now.

        Exactly one of all who try gets True. What the earlier attempt said went wrong is cleared;
        its output, figures and log stay.
        """
        values = {
            "started_at": timezone.now(),
            "completed_at": None,
            "duration_ms": None,
            "error_message": None,
            "error_backtrace": None,
        }
        return self._move(RunStatus.RUNNING, values, sources=RESTARTABLE)

    def _move(
        self,
        target: RunStatus,
        values: Mapping[str, Any],
        *,
        sources: frozenset[RunStatus] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        if self._buffer is not None:
            # Who tails the log stops at the end of the run.
            self._buffer.flush_or_keep()
        legal = MOVES[target] if sources is None else sources
        return Transition(self, target, legal, values, metadata=metadata).perform()

    @property
    def in_progress(self) -> bool:
        """Pending or running."""
        return self.status in IN_PROGRESS

    @property
    def finished(self) -> bool:
        """Complete, failed or cancelled."""
        status = self.status
        return isinstance(status, RunStatus) and status.is_terminal

    # Event log

    def append_event(
        self,
        kind: str,
        label: str,
        eid: str | None = None,
        status: str = "done",
        detail: Any = None,
        duration_ms: int | None = None,
    ) -> Entry:
        """Add an event to the log and return it as stored.

        A "started" event is open until a "done" or "error" one with the same ``eid``. ``detail``
        is text, or becomes compact JSON text, and is cut to 1200 bytes. Only the log is written:
        no validation, no signals, ``updated_at`` stays. Racing writers lose nothing. Events are
        taken after the end too. Raises RunNotFound when there is no row, NotAList when the log
        column holds something else.

        A log that is full (settings COLUMN_LOG_ENTRIES and TABLE_LOG_ENTRIES) ends in a marker
        and takes no more, with a warning in the application's log.
        """
        return self._append(
            event_entry(kind, label, eid=eid, status=status, detail=detail, duration_ms=duration_ms)
        )

    def add_log(self, message: str, level: str = "info") -> Entry:
        """Add a log line and return it as stored; ``updated_at`` moves, in one transaction.

        Validation (without the log) and save signals run; other unsaved changes of this copy
        stay unsaved. Inside buffer_events() only ``updated_at`` moves, with the flush.
        """
        if self._buffer is not None:
            return self._append(message_entry(message, level))
        using, columns = write_alias(self), self._columns
        moved = columns.fields.get("updated_at")
        with transaction.atomic(using=using):
            entry = self._append(message_entry(message, level))
            if moved is not None and not getattr(moved, "auto_now", False):
                self.updated_at = timezone.now()
            own = {field.name for field in columns.log_fields}
            self.full_clean(exclude=self.get_deferred_fields() | own | self._unjudged())
            self._touch(moved, using)
        return entry

    def _append(self, entry: Entry) -> Entry:
        entry, buffer = fitted(entry, setting("ENTRY_BYTES")), self._buffer
        if buffer is None or not buffer.add(entry):
            self._write_entries([entry])
        return entry

    def _write_entries(self, entries: Sequence[Entry], **also: Any) -> None:
        """Append to the log, in one statement where the database can; ``also`` goes with it."""
        if self.pk is None or self._state.adding:
            raise RunNotFound(type(self), None)
        using, columns, log = write_alias(self), self._columns, event_log_of(type(self))
        known_full = getattr(self._state, FULL_AT, None)
        if known_full is not None and known_full == self._place_and_caps(using):
            return
        in_column = self.__dict__.get(COUNT, 0) is None
        appended = log.append(columns.log_key(self), entries, using, in_column=in_column, also=also)
        if appended.left_out:
            self._note_full(appended, using)
        if appended.last is None:
            # The database computed it: the next read is fresh.
            self.__dict__.pop(columns.log.attname, None)
        if columns.counter is not None:
            setattr(self, columns.counter.attname, appended.last)
        note_place(self, using)

    def _note_full(self, appended: Appended, using: str) -> None:
        is_final = self._columns.log_table is None or appended.last is not None
        if is_final and not connections[using].in_atomic_block:
            setattr(self._state, FULL_AT, self._place_and_caps(using))
        if appended.marked:
            logger.warning("The log of %s is full; what comes from now on is left out.", self)

    def _place_and_caps(self, using: str) -> tuple[Any, ...]:
        return using, self.pk, setting("COLUMN_LOG_ENTRIES"), setting("TABLE_LOG_ENTRIES")

    def _unjudged(self) -> set[str]:
        """An unknown status is nobody's fault who only writes to the log."""
        return {"status"} if isinstance(self.__dict__.get("status"), UnknownStatus) else set()

    def _touch(self, moved: AnyField | None, using: str) -> None:
        if moved is not None:
            self.save(using=using, update_fields=[moved.name])
            return
        # Django sends no signals for a save of nothing.
        kwargs = {"sender": type(self), "instance": self, "raw": False, "using": using}
        kwargs["update_fields"] = frozenset()
        models.signals.pre_save.send(**kwargs)
        models.signals.post_save.send(**kwargs, created=False)

    def buffer_events(self, max_entries: int = 100, max_age: float = 1.0) -> EventBuffer:
        """A block, ``with`` or ``async with``, whose entries are written many at a time.

        See EventBuffer for when it flushes, and what a crash or a failure costs. ``max_age`` is in
        seconds.
        """
        return EventBuffer(self, max_entries, max_age)

    @property
    def events_log(self) -> list[Any]:
        """Every entry, events and log lines, oldest first; [] for none."""
        columns = self._columns
        attname = columns.log.attname
        if columns.log_table is None:
            is_here = self.__dict__.get(COUNT) is None
        else:  # without its column, a copy may be older than the move of its run
            is_here = self.__dict__.get(COUNT, 0) is None and attname in self.__dict__
        if is_here:
            return as_entries(getattr(self, attname))
        return [numbered.entry for numbered in self.events_after()]

    def events_after(self, seq: int = 0, limit: int | None = None) -> list[Numbered]:
        """The entries past ``seq`` with their coordinates, as the database has them now.

        At most ``limit`` of them, the oldest first: the last one's coordinate is where to go on.
        """
        columns = self._columns
        in_table = columns.counter is not None and self.__dict__.get(COUNT) is not None
        return event_log_of(type(self)).read_after(
            columns.log_key(self), seq, write_alias(self), limit, in_table=in_table
        )

    # What a run says of itself

    def record_instructions(self, text: str | None) -> str | None:
        """Set the digest of the instructions, unsaved, and return it; None without the column."""
        if "stored_instructions_digest" not in self._columns:
            return None
        self.stored_instructions_digest = fingerprints.digest(text)
        return cast("str | None", self.stored_instructions_digest)

    @property
    def instructions(self) -> str | None:
        text = self._metadata().get("instructions")
        return text if isinstance(text, str) else None

    @property
    def instructions_digest(self) -> str | None:
        """The stored digest unless blank, else that of the instructions in the metadata."""
        stored = self.stored_instructions_digest
        return stored if stored and stored.strip() else fingerprints.digest(self.instructions)

    @instructions_digest.setter
    def instructions_digest(self, value: str | None) -> None:
        if "stored_instructions_digest" in self._columns:
            self.stored_instructions_digest = value

    @property
    def instructions_codename(self) -> str | None:
        """A memorable name of the digest, such as "calm-heron"."""
        return fingerprints.codename(
            self.instructions_digest, setting("ADJECTIVES"), setting("NOUNS")
        )

    @property
    def total_tokens(self) -> int:
        """The reported total (0 counts as reported), else input and output added up."""
        reported = self.reported_total_tokens
        if reported is not None:
            return int(reported)
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @total_tokens.setter
    def total_tokens(self, value: int | None) -> None:
        if "reported_total_tokens" in self._columns:
            self.reported_total_tokens = value

    def calculated_duration_ms(self, fallback_end: datetime | None = None) -> int | None:
        """The stored duration (0 counts), else end minus start, in whole milliseconds.

        Never below 0. None for a run that never started, or has no end and no ``fallback_end``.
        """
        stored = self.duration_ms
        if stored is not None and stored >= 0:
            return int(stored)
        end = self.completed_at or fallback_end
        if self.started_at is None or end is None:
            return None
        return max(0, elapsed_ms(self.started_at, end))

    @property
    def subject(self) -> models.Model | UnresolvedSubject | None:
        """What the run is about: the runnable, else the agent, else None. Never raises.

        One without a counterpart here is an UnresolvedSubject, which shows its type and key.
        """
        return subject_of(self)

    @subject.setter
    def subject(self, value: models.Model | None) -> None:
        set_subject(self, value)

    @property
    def action(self) -> str:
        """The action's name: from its column, else from the metadata, else "ask"."""
        name = self.action_name
        if name is None:
            name = self._metadata().get("action")
        return DEFAULT_ACTION if name is None else str(name)

    def summary(self) -> dict[str, Any]:
        """The facts that a list or an API shows, previews cut to their limits.

        ``id, status, input_preview, output_preview, duration_ms, tokens, provider, model,
        action_name, instructions_digest, instructions_codename, instructions_preview,
        created_at, error``.
        """
        return summarise(self)

    def _metadata(self) -> Mapping[str, Any]:
        stored = self.output_metadata
        return stored if isinstance(stored, Mapping) else {}

    def __getstate__(self) -> Any:
        """A copy of this object, or one that is pickled, writes its entries itself."""
        state = super().__getstate__()
        state.pop("_buffer", None)
        return state

    # Saving

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **kwargs: Any
    ) -> Self:
        run = super().from_db(db, field_names, values, **kwargs)
        note_read(run)
        return run

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: models.QuerySet[Any] | None = None,
    ) -> None:
        names = None if fields is None else list(fields)
        if using is None and from_queryset is None:
            # What this copy wrote is read from where it wrote it, not from a replica.
            using = getattr(self._state, WRITTEN, None)
        super().refresh_from_db(using, names, from_queryset)
        note_read(self, names)

    def save(
        self,
        *,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Save a new run whole; of a run that has a row, never the log and never a stale status.

        Of the outcome (output, metadata, figures, times, error) only what this copy changed is
        written, so that a stale copy leaves alone what another has saved.
        A status that this copy changed is written only if the move is legal and the row still
        holds the status that this copy had read; otherwise StaleRun is raised and nothing is
        written. The change sends run_status_changed. ``pre_save`` and ``post_save`` always carry
        ``update_fields``. Naming the log in ``update_fields`` is a ValueError.
        """
        if update_fields is not None:
            update_fields = stored_names(update_fields, self._columns)
        if force_insert or not has_row(self, using):
            alias = using or write_alias(self)
            prepare(self, self._columns, alias)
            if update_fields is None and not force_insert and overwrites(self, alias):
                force_update, update_fields = True, fields_beside_log(self, self._columns)
            else:
                begin_log(self, self._columns, alias)
            values = held(self, update_fields)
            with noted(self, values, alias):
                # A rollback would take the whole row back, not its status alone.
                settle(self, {name: values[name] for name in values if name == "status"})
                super().save(
                    force_insert=force_insert,
                    force_update=force_update,
                    using=using,
                    update_fields=update_fields,
                )
        else:
            save = super().save
            alias = using or write_alias(self)
            save_existing(
                self,
                self._columns,
                alias,
                update_fields,
                lambda names: save(force_update=force_update, using=alias, update_fields=names),
            )

    @property
    def _columns(self) -> RunColumns:
        return columns_of(type(self))

    # Async twins

    async def astart(self) -> bool:
        """See start()."""
        return await sync_to_async(self.start)()

    async def afinish(self, *args: Any, **kwargs: Any) -> bool:
        """See finish()."""
        return await sync_to_async(self.finish)(*args, **kwargs)

    async def afail(self, error: Any) -> bool:
        """See fail()."""
        return await sync_to_async(self.fail)(error)

    async def acancel(self, reason: str | None = CANCEL_REASON) -> bool:
        """See cancel()."""
        return await sync_to_async(self.cancel)(reason)

    async def arestart(self) -> bool:
        """See restart()."""
        return await sync_to_async(self.restart)()

    async def aappend_event(self, *args: Any, **kwargs: Any) -> Entry:
        """See append_event()."""
        return await sync_to_async(self.append_event)(*args, **kwargs)

    async def aadd_log(self, message: str, level: str = "info") -> Entry:
        """See add_log()."""
        return await sync_to_async(self.add_log)(message, level)

    async def asummary(self) -> dict[str, Any]:
        """See summary(), which may have to ask the database for what it computed."""
        return await sync_to_async(self.summary)()

    async def aevents_log(self) -> list[Any]:
        """See events_log, which may have to ask the database."""
        return await sync_to_async(lambda: self.events_log)()

    async def aevents_after(self, seq: int = 0, limit: int | None = None) -> list[Numbered]:
        """See events_after()."""
        return await sync_to_async(self.events_after)(seq, limit)
