"""The behaviour of a run, over whatever columns its table has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

from asgiref.sync import sync_to_async
from django.db import models, transaction
from django.db.models import Case, Q, Value, When
from django.db.models.base import ModelBase
from django.utils import timezone

from solid_runs import failures, fingerprints
from solid_runs.columns import OPTIONAL, AnyField, RunColumns, columns_of, whole_number
from solid_runs.conf import setting
from solid_runs.copies import WRITTEN, held, note_read, note_written, noted, settle
from solid_runs.event_logs import ColumnLog
from solid_runs.events import Entry, Numbered, as_entries, event_entry, message_entry
from solid_runs.exceptions import RunNotFound
from solid_runs.querysets import RunQuerySet
from solid_runs.saving import has_row, prepare, save_existing, stored_names
from solid_runs.statuses import IN_PROGRESS, MOVES, RESTARTABLE, RunStatus, UnknownStatus
from solid_runs.subjects import UnresolvedSubject, set_subject, subject_of
from solid_runs.summaries import DEFAULT_ACTION, summarise
from solid_runs.times import elapsed_ms
from solid_runs.transitions import Transition, write_alias

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

    objects = RunQuerySet.as_manager()

    class Meta:
        abstract = True

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
        """
        entry = event_entry(
            kind, label, eid=eid, status=status, detail=detail, duration_ms=duration_ms
        )
        self._append(entry)
        return entry

    def add_log(self, message: str, level: str = "info") -> Entry:
        """Add a log line and return it as stored; ``updated_at`` moves, in one transaction.

        Validation (without the log) and save signals run; other unsaved changes of this copy
        stay unsaved.
        """
        entry = message_entry(message, level)
        using = write_alias(self)
        log = self._columns.log
        moved = self._columns.fields.get("updated_at")
        with transaction.atomic(using=using):
            self._append(entry)
            if moved is not None and not getattr(moved, "auto_now", False):
                self.updated_at = timezone.now()
            self.full_clean(exclude=self.get_deferred_fields() | {log.name} | self._unjudged())
            self._touch(moved, using)
        return entry

    def _append(self, entry: Entry) -> None:
        log = ColumnLog(self._columns)
        if self.pk is None or self._state.adding:
            raise RunNotFound(type(self), None)
        using = write_alias(self)
        log.append(log.pk_of(self), entry, using)
        # The database computed it: the next read is fresh.
        self.__dict__.pop(log.field.attname, None)
        note_written(self, {}, using)

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

    @property
    def events_log(self) -> list[Any]:
        """Every entry, events and log lines, oldest first; [] for none."""
        return as_entries(getattr(self, self._columns.log.attname))

    def events_after(self, seq: int = 0) -> list[Numbered]:
        """The entries past ``seq`` with their coordinates, as the database has them now."""
        log = ColumnLog(self._columns)
        return log.read_after(log.pk_of(self), seq, write_alias(self))

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

    async def aevents_after(self, seq: int = 0) -> list[Numbered]:
        """See events_after()."""
        return await sync_to_async(self.events_after)(seq)
