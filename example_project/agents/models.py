"""The three kinds of run table, what runs are about, and what one agent does."""

from __future__ import annotations

from django.db import models

from solid_runs.models import (
    AbstractAgentRun,
    AbstractRunEvent,
    GeneratorAgentRun,
    PlatformAgentRun,
)


class Agent(models.Model):
    name = models.CharField(max_length=100, unique=True)

    def __str__(self) -> str:
        return self.name


class Document(models.Model):
    title = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.title


class PlatformRun(PlatformAgentRun):
    """The table that a Rails platform made, and goes on writing."""

    agent = models.ForeignKey(
        Agent, models.DO_NOTHING, null=True, blank=True, db_constraint=False, related_name="runs"
    )

    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs"


class GeneratorRun(GeneratorAgentRun):
    """The table that the Rails generator made."""

    class Meta(GeneratorAgentRun.Meta):
        managed = False
        db_table = "solid_agent_runs"


class AgentRun(AbstractAgentRun):
    """A table of this project's own, made by its migration, with its log in another."""

    events_model = "agents.AgentRunEvent"


class AgentRunEvent(AbstractRunEvent):
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="+", db_index=False)


class Refund(models.Model):
    """What the assistant's tool does; a second row of one call would be a tool that ran twice."""

    scope = models.CharField(max_length=255)
    thread_id = models.CharField(max_length=255)
    trace_id = models.CharField(max_length=255, db_index=True)
    tool_call_id = models.CharField(max_length=255)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["scope", "thread_id"], name="agents_refund_thread")]

    def __str__(self) -> str:
        return f"{self.amount} EUR"


class Exchange(models.Model):
    """What was said in one run of a thread, as messages of AG-UI. The store keeps no text."""

    scope = models.CharField(max_length=255)
    thread_id = models.CharField(max_length=255)
    run_id = models.CharField(max_length=255)
    messages = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "thread_id", "run_id"], name="agents_exchange_run"
            )
        ]

    def __str__(self) -> str:
        return self.run_id
