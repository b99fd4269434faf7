"""The tables of the store: reserved runs, what they asked, and a lock for each thread."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Exists, ExpressionWrapper, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.records import ACTIVE, Status
from solid_runs.ag_ui.scopes import MOST_CHARS
from solid_runs.fields import ExactCharField, ExactTextField, InstantField, JSONTextField


class ReservedRunQuerySet(models.QuerySet["ReservedRun"]):
    def silent(self, since: Any) -> ReservedRunQuerySet:
        """Runs that have not ended and gave no sign of life since, by the database's clock."""
        return self.filter(_silent(since))

    def with_silent(self, since: Any) -> ReservedRunQuerySet:
        """With ``silent``: whether a run is one of these."""
        silent = ExpressionWrapper(_silent(since), output_field=models.BooleanField())
        return self.annotate(silent=silent)


def _silent(since: Any) -> Q:
    return Q(status__in=ACTIVE, alive_at__lt=since)


class ReservedRun(models.Model):
    """A RunRecord as a row. Only a store writes it."""

    scope = ExactCharField(_("scope"), max_length=MOST_CHARS)
    thread_id = ExactCharField(_("thread"), max_length=MOST_CHARS)
    run_id = ExactCharField(_("run"), max_length=MOST_CHARS)
    parent_run_id = ExactCharField(_("parent run"), max_length=MOST_CHARS, null=True)
    trace_id = ExactCharField(_("trace"), max_length=MOST_CHARS, null=True)
    digest = ExactCharField(_("digest"), max_length=MOST_CHARS)
    status = models.CharField(
        _("status"), max_length=12, choices=[(one.value, one.value) for one in Status]
    )
    sequence = models.BigIntegerField(_("sequence"), default=0)
    reserved_at = InstantField(_("reserved at"))
    """Like alive_at by the clock of the database: it gives the runs of a thread their order."""
    created_at = InstantField(_("created at"))
    updated_at = InstantField(_("updated at"))
    alive_at = InstantField(_("alive at"))
    """When its owner last wrote, by the clock of the database."""
    cancel_requested_at = InstantField(_("cancel requested at"), null=True)
    questions = models.PositiveIntegerField(_("questions"), default=0)
    """How many interrupts it has."""
    failure = JSONTextField(_("failure"), null=True)
    snapshot = JSONTextField(_("state"), null=True)

    objects = ReservedRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("AG-UI run")
        verbose_name_plural = _("AG-UI runs")
        default_permissions = ("view",)
        permissions = [
            ("view_run_content", _("Can see the state and the failures of runs")),
            ("cancel_run", _("Can cancel runs")),
        ]
        constraints = [
            # Those first that people search by.
            models.UniqueConstraint(
                fields=["run_id", "thread_id", "scope"], name="solid_runs_ag_ui_identity"
            )
        ]
        indexes = [
            models.Index(
                fields=["thread_id", "scope", "reserved_at", "id"], name="solid_runs_ag_ui_thread"
            ),
            models.Index(fields=["status", "alive_at"], name="solid_runs_ag_ui_alive"),
            models.Index(fields=["trace_id"], name="solid_runs_ag_ui_trace"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} ({self.status})"


def later_runs(path: str = "") -> models.QuerySet[ReservedRun]:
    """A subquery: the runs of the thread that were reserved after the one at ``path``."""
    moment = OuterRef(f"{path}reserved_at")
    after = Q(reserved_at__gt=moment) | Q(reserved_at=moment, pk__gt=OuterRef(f"{path}pk"))
    return ReservedRun.objects.filter(
        after, thread_id=OuterRef(f"{path}thread_id"), scope=OuterRef(f"{path}scope")
    )


class RunInterruptQuerySet(models.QuerySet["RunInterrupt"]):
    def in_state(self, state: AnswerState) -> RunInterruptQuerySet:
        return self.filter(STATES[state])

    def with_stale(self) -> RunInterruptQuerySet:
        """With ``stale``: a later run of the thread was interrupted too, so no answer counts."""
        return self.annotate(stale=Exists(later_runs("run__").filter(status=Status.INTERRUPTED)))

    def waiting(self) -> RunInterruptQuerySet:
        """Open ones of interrupted runs, the nearest deadline first, those without one last."""
        return (
            self.in_state(AnswerState.OPEN)
            .filter(run__status=Status.INTERRUPTED)
            .order_by(models.F("expires_at").asc(nulls_last=True), "pk")
        )


STATES: dict[AnswerState, Q] = {
    AnswerState.OPEN: Q(decision__isnull=True, decided_at__isnull=True),
    AnswerState.HELD: Q(decision__isnull=False, redeemed_by__isnull=False, settled_at__isnull=True),
    AnswerState.FREE: Q(decision__isnull=False, redeemed_by__isnull=True, settled_at__isnull=True),
    AnswerState.SETTLED: Q(settled_at__isnull=False),
}
"""The states of an answer as conditions; interrupts.AnswerState says what they mean."""


class RunInterrupt(models.Model):
    """An Interrupt as a row. Only a store writes it."""

    run = models.ForeignKey(
        ReservedRun, models.CASCADE, verbose_name=_("run"), related_name="interrupts"
    )
    position = models.PositiveIntegerField(_("position"))
    interrupt_id = ExactCharField(_("interrupt"), max_length=MOST_CHARS)
    reason = ExactTextField(_("reason"))
    message = ExactTextField(_("message"), null=True)
    tool_call_id = ExactTextField(_("tool call"), null=True)
    subagent_run_id = ExactTextField(_("subagent run"), null=True)
    response_schema = JSONTextField(_("response schema"), null=True)
    metadata = JSONTextField(_("metadata"), null=True)
    expires_at = InstantField(_("expires at"), null=True)
    decision = JSONTextField(_("decision"), null=True)
    decided_at = InstantField(_("decided at"), null=True)
    decided_by = ExactTextField(_("decided by"), null=True)
    redeemed_by = ExactCharField(_("redeemed by"), max_length=MOST_CHARS, null=True)
    redeemed_at = InstantField(_("redeemed at"), null=True)
    settled_at = InstantField(_("settled at"), null=True)

    objects = RunInterruptQuerySet.as_manager()

    class Meta:
        verbose_name = _("interrupt")
        verbose_name_plural = _("interrupts (approval inbox)")
        default_permissions = ("view",)
        permissions = [
            ("decide_interrupt", _("Can answer what runs ask")),
            ("release_interrupt", _("Can release an answer that was acted on")),
        ]
        ordering = ["run", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["interrupt_id", "run"], name="solid_runs_ag_ui_interrupt"
            )
        ]
        indexes = [
            models.Index(fields=["decided_at", "expires_at"], name="solid_runs_ag_ui_waiting")
        ]

    def __str__(self) -> str:
        return str(self.interrupt_id)

    @property
    def state(self) -> AnswerState:
        return AnswerState.of(self.decision, self.redeemed_by, self.settled_at)


class RunThread(models.Model):
    """What a transaction that changes a thread locks."""

    key = models.CharField(max_length=64, primary_key=True)
    """A digest of scope and thread. As the primary key: upserts under any other unique key can
    meet in a deadlock on MariaDB."""
    changed_at = InstantField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.key)
