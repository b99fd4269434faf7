"""The tables of the stores: the runs of conversations, and what they asked."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from solid_runs.fields import ExactCharField, ExactTextField, JSONTextField
from solid_runs.identifiers import MOST_CHARS
from solid_runs.threads.interrupts import InterruptRecord, InterruptStatus
from solid_runs.threads.records import FIELDS, TERMINAL, RunRecord, Status
from solid_runs.threads.values import UNSET


class ThreadRunQuerySet(models.QuerySet["ThreadRun"]):
    """Cutoffs are milliseconds since 1970, or an expression that gives them."""

    def of_thread(self, scope: str, thread_id: str) -> ThreadRunQuerySet:
        """In the order of their start, those of one moment in that of their insertion."""
        return self.filter(scope=scope, thread_id=thread_id).order_by("started_at", "pk")

    def active(self) -> ThreadRunQuerySet:
        return self.filter(status=Status.RUNNING)

    def ended(self) -> ThreadRunQuerySet:
        return self.filter(status__in=TERMINAL)

    def detached(self) -> ThreadRunQuerySet:
        """Running, with nobody who watches."""
        return self.active().filter(detached_since__isnull=False)

    def reclaimable(self, cutoff: Any) -> ThreadRunQuerySet:
        """Detached since then or longer, the longest first."""
        return self.active().filter(detached_since__lte=cutoff).order_by("detached_since", "pk")

    def stalled(self, cutoff: Any) -> ThreadRunQuerySet:
        """Running and claimed, without a sign of life since then, the longest silent first.

        A driver that never gave one cannot be told from a healthy one, so it is not among them.
        """
        claimed = self.active().filter(driver_epoch__isnull=False)
        return claimed.filter(heartbeat_at__lte=cutoff).order_by("heartbeat_at", "pk")

    def with_a_later_one(self) -> ThreadRunQuerySet:
        """Those that are not the latest run of their thread."""
        at = OuterRef("started_at")
        after = Q(started_at__gt=at) | Q(started_at=at, pk__gt=OuterRef("pk"))
        same = ThreadRun.objects.filter(thread_id=OuterRef("thread_id"), scope=OuterRef("scope"))
        return self.filter(Exists(same.filter(after)))


class ThreadRun(models.Model):
    """A RunRecord as a row. Only a store writes it."""

    scope = ExactCharField(_("scope"), max_length=MOST_CHARS, blank=True)
    """Empty for the scope that is shared by all who name none."""
    run_id = ExactCharField(_("run"), max_length=MOST_CHARS)
    thread_id = ExactCharField(_("thread"), max_length=MOST_CHARS)
    parent_run_id = ExactCharField(_("parent run"), max_length=MOST_CHARS, null=True)
    subagent_run_id = ExactCharField(_("subagent run"), max_length=MOST_CHARS, null=True)
    name = ExactCharField(_("agent"), max_length=MOST_CHARS, null=True)
    trace_id = ExactCharField(_("trace"), max_length=MOST_CHARS, null=True)
    status = models.CharField(
        _("status"), max_length=12, choices=[(one.value, one.value) for one in Status]
    )
    started_at = models.BigIntegerField(_("started at"))
    finished_at = models.BigIntegerField(_("finished at"), null=True)
    detached_since = models.BigIntegerField(_("detached since"), null=True)
    cancel_requested = models.BooleanField(_("cancel requested"), null=True)
    driver_epoch = models.BigIntegerField(_("claims"), null=True)
    heartbeat_at = models.BigIntegerField(_("last sign of life"), null=True)
    """No part of the record: when its driver last said that it lives."""
    leased_until = models.BigIntegerField(_("with a reaper until"), null=True)
    """No part of the record: until then a reaper is at it, and no other one begins."""
    sandbox_key = ExactTextField(_("sandbox"), null=True)
    error = JSONTextField(_("error"), null=True)
    usage = JSONTextField(_("usage"), null=True)

    objects = ThreadRunQuerySet.as_manager()

    class Meta:
        verbose_name = _("thread run")
        verbose_name_plural = _("thread runs")
        default_permissions = ("view",)
        permissions = [
            ("view_run_content", _("Can see the errors, the usage and the sandboxes of runs")),
            ("cancel_run", _("Can ask runs to stop")),
        ]
        constraints = [
            # Those first that people search by.
            models.UniqueConstraint(fields=["run_id", "scope"], name="solid_runs_threads_identity")
        ]
        indexes = [
            models.Index(
                fields=["thread_id", "scope", "started_at", "id"], name="solid_runs_threads_thread"
            ),
            models.Index(
                fields=["thread_id", "scope", "status", "-started_at", "id"],
                name="solid_runs_threads_active",
            ),
            models.Index(
                fields=["parent_run_id", "scope", "started_at", "id"],
                name="solid_runs_threads_parent",
            ),
            models.Index(
                fields=["status", "scope", "detached_since"], name="solid_runs_threads_detached"
            ),
            models.Index(
                fields=["status", "scope", "heartbeat_at"], name="solid_runs_threads_stalled"
            ),
            models.Index(
                fields=["status", "scope", "finished_at", "started_at"],
                name="solid_runs_threads_ended",
            ),
            models.Index(fields=["trace_id"], name="solid_runs_threads_trace"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} ({self.status})"

    @property
    def record(self) -> RunRecord:
        return RunRecord(**{name: getattr(self, name) for name in FIELDS})


class ThreadInterrupt(models.Model):
    """An InterruptRecord as a row. Only a store writes it."""

    scope = ExactCharField(_("scope"), max_length=MOST_CHARS, blank=True)
    interrupt_id = ExactCharField(_("interrupt"), max_length=MOST_CHARS)
    run_id = ExactCharField(_("run"), max_length=MOST_CHARS)
    thread_id = ExactCharField(_("thread"), max_length=MOST_CHARS)
    status = models.CharField(
        _("status"), max_length=12, choices=[(one.value, one.value) for one in InterruptStatus]
    )
    requested_at = models.BigIntegerField(_("requested at"))
    resolved_at = models.BigIntegerField(_("resolved at"), null=True)
    has_response = models.BooleanField(_("has a response"), default=False)
    """Whether there is one, which may be null."""
    payload = JSONTextField(_("payload"))
    response = JSONTextField(_("response"), null=True)

    class Meta:
        verbose_name = _("thread interrupt")
        verbose_name_plural = _("thread interrupts")
        default_permissions = ("view",)
        permissions = [("view_interrupt_content", _("Can see what runs asked and were answered"))]
        constraints = [
            models.UniqueConstraint(
                fields=["interrupt_id", "scope"], name="solid_runs_threads_interrupt"
            )
        ]
        indexes = [
            models.Index(
                fields=["thread_id", "scope", "requested_at", "id"],
                name="solid_runs_threads_asked",
            ),
            models.Index(
                fields=["run_id", "scope", "requested_at", "id"],
                name="solid_runs_threads_asked_by",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.interrupt_id} ({self.status})"

    @property
    def record(self) -> InterruptRecord:
        return InterruptRecord(
            interrupt_id=self.interrupt_id,
            run_id=self.run_id,
            thread_id=self.thread_id,
            status=self.status,
            requested_at=self.requested_at,
            resolved_at=self.resolved_at,
            payload=self.payload,
            response=self.response if self.has_response else UNSET,
        )
