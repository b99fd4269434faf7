"""The three shapes of a run table, the mixin that they share, and the shape of a log's table."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from solid_runs.fields import RunJSONField, RunStatusField, UTCDateTimeField
from solid_runs.mixin import UNSET, AgentRunMixin
from solid_runs.permissions import PERMISSIONS

__all__ = [
    "UNSET",
    "AbstractAgentRun",
    "AbstractRunEvent",
    "AgentRunMixin",
    "GeneratorAgentRun",
    "PlatformAgentRun",
]


class LegacyTimes(models.Model):
    """The times of a table made by Rails: naive columns that hold UTC."""

    started_at = UTCDateTimeField(_("started"), null=True, blank=True)
    completed_at = UTCDateTimeField(_("completed"), null=True, blank=True)
    updated_at = UTCDateTimeField(_("updated"), auto_now=True)

    class Meta:
        abstract = True


class PlatformAgentRun(AgentRunMixin, LegacyTimes):
    """The platform shape, made by Rails: integer status, ``agent_id``, the log in ``logs``.

    The table is not Django's: state ``managed = False`` and ``db_table`` in a Meta that inherits
    from this one. A ForeignKey named ``agent`` replaces ``agent_id``.
    """

    events_column: ClassVar[str] = "logs"

    id = models.BigAutoField(primary_key=True)
    agent_id = models.BigIntegerField(_("agent"), null=True, blank=True, db_index=True)
    status = RunStatusField(_("status"), store="integer", db_index=True)
    action_name = models.CharField(_("action"), max_length=255, null=True, blank=True)
    trace_id = models.CharField(_("trace"), max_length=255, null=True, blank=True)
    input_prompt = models.TextField(_("prompt"), null=True, blank=True)
    output = models.TextField(_("output"), null=True, blank=True)
    output_metadata = RunJSONField(_("metadata"), null=True, blank=True)
    logs = RunJSONField(_("event log"), null=True, blank=True)
    input_tokens = models.IntegerField(_("input tokens"), null=True, blank=True)
    output_tokens = models.IntegerField(_("output tokens"), null=True, blank=True)
    reported_total_tokens = models.IntegerField(
        _("reported total tokens"), null=True, blank=True, db_column="total_tokens"
    )
    duration_ms = models.IntegerField(_("duration in ms"), null=True, blank=True)
    error_message = models.TextField(_("error"), null=True, blank=True)
    error_backtrace = models.TextField(_("backtrace"), null=True, blank=True)
    created_at = UTCDateTimeField(_("created"), auto_now_add=True)

    class Meta:
        abstract = True
        managed = False
        permissions = PERMISSIONS


class GeneratorAgentRun(AgentRunMixin, LegacyTimes):
    """The generator shape, made by Rails: a status by name, a polymorphic runnable, ``events``.

    The table is not Django's: state ``managed = False`` and ``db_table`` in a Meta that inherits
    from this one.
    """

    events_column: ClassVar[str] = "events"

    id = models.BigAutoField(primary_key=True)
    runnable_type = models.CharField(_("subject type"), max_length=255, null=True, blank=True)
    runnable_id = models.BigIntegerField(_("subject key"), null=True, blank=True)
    agent_name = models.CharField(_("agent"), max_length=255, null=True, blank=True)
    action_name = models.CharField(_("action"), max_length=255, null=True, blank=True)
    trace_id = models.CharField(_("trace"), max_length=255, null=True, blank=True, db_index=True)
    status = RunStatusField(_("status"), store="name", db_index=True)
    input_prompt = models.TextField(_("prompt"), null=True, blank=True)
    input_params = RunJSONField(_("parameters"), null=True, blank=True, default=dict)
    output = models.TextField(_("output"), null=True, blank=True)
    output_metadata = RunJSONField(_("metadata"), null=True, blank=True, default=dict)
    error_message = models.TextField(_("error"), null=True, blank=True)
    events = RunJSONField(_("event log"), null=True, blank=True, default=list)
    stored_instructions_digest = models.CharField(
        _("instructions digest"),
        max_length=255,
        null=True,
        blank=True,
        db_index=True,
        db_column="instructions_digest",
    )
    input_tokens = models.IntegerField(_("input tokens"), null=True, blank=True, default=0)
    output_tokens = models.IntegerField(_("output tokens"), null=True, blank=True, default=0)
    duration_ms = models.IntegerField(_("duration in ms"), null=True, blank=True)
    created_at = UTCDateTimeField(_("created"), auto_now_add=True, db_index=True)

    class Meta:
        abstract = True
        managed = False
        permissions = PERMISSIONS


class AbstractAgentRun(AgentRunMixin):
    """A table of the host's own, made by its migration.

    Real columns for what filters and cohorts use, 64-bit figures, big columns last, and the
    indexes that lists need (unnamed, so that they fit any host's table name). A Meta of the
    host's own inherits from this one: ``class Meta(AbstractAgentRun.Meta)``.

    With ``events_model`` naming a model made from AbstractRunEvent, new runs keep their log in
    that table; ``move_events`` moves the logs of those that are there already.
    """

    events_column: ClassVar[str] = "events"

    status = RunStatusField(_("status"), store="name", max_length=20)
    trace_id = models.CharField(_("trace"), max_length=255, null=True, blank=True)
    runnable_type = models.CharField(_("subject type"), max_length=255, null=True, blank=True)
    runnable_id = models.CharField(_("subject key"), max_length=255, null=True, blank=True)
    agent_name = models.CharField(_("agent"), max_length=255, null=True, blank=True)
    action_name = models.CharField(_("action"), max_length=255, null=True, blank=True)
    provider = models.CharField(_("provider"), max_length=255, null=True, blank=True)
    model = models.CharField(_("model"), max_length=255, null=True, blank=True)
    stored_instructions_digest = models.CharField(
        _("instructions digest"),
        max_length=64,
        null=True,
        blank=True,
        db_column="instructions_digest",
    )
    input_tokens = models.BigIntegerField(_("input tokens"), null=True, blank=True)
    output_tokens = models.BigIntegerField(_("output tokens"), null=True, blank=True)
    reported_total_tokens = models.BigIntegerField(
        _("reported total tokens"), null=True, blank=True, db_column="total_tokens"
    )
    duration_ms = models.BigIntegerField(_("duration in ms"), null=True, blank=True)
    events_count = models.BigIntegerField(
        _("entries in the log"), null=True, blank=True, editable=False
    )
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    completed_at = models.DateTimeField(_("completed"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)
    error_message = models.TextField(_("error"), null=True, blank=True)
    error_backtrace = models.TextField(_("backtrace"), null=True, blank=True)
    input_prompt = models.TextField(_("prompt"), null=True, blank=True)
    input_params = RunJSONField(_("parameters"), null=True, blank=True, default=dict)
    output = models.TextField(_("output"), null=True, blank=True)
    output_metadata = RunJSONField(_("metadata"), null=True, blank=True, default=dict)
    events = RunJSONField(_("event log"), null=True, blank=True, default=list)

    class Meta:
        abstract = True
        permissions = PERMISSIONS
        indexes = [
            models.Index(fields=["created_at"]),
            models.Index(fields=["status", "created_at"]),
            models.Index(fields=["trace_id"]),
            models.Index(fields=["runnable_type", "runnable_id"]),
            models.Index(fields=["stored_instructions_digest", "created_at"]),
        ]


class AbstractRunEvent(models.Model):
    """An entry of a table log, for a host that owns its schema.

    The host names its run, and its run names this model::

        class AgentRun(AbstractAgentRun):
            events_model = "myapp.AgentRunEvent"

        class AgentRunEvent(AbstractRunEvent):
            run = models.ForeignKey(
                AgentRun, models.CASCADE, related_name="+", db_index=False
            )

    ``seq`` counts from 1 for each run, without a gap, in the order in which the entries were
    committed. Rows are written by SQL of run, seq and entry: further columns must be nullable or
    have a ``db_default``. A Meta of the host's own inherits from this one, which has the unique
    (run, seq).
    """

    id = models.BigAutoField(primary_key=True)
    seq = models.BigIntegerField(_("number"))
    entry = RunJSONField(_("entry"))

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="%(app_label)s_%(class)s_run_seq")
        ]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.seq}"
