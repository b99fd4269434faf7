"""The hosts of the suite: models over the tables that Rails made, and tables of their own."""

from __future__ import annotations

import uuid

from django.db import models

from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.models import (
    AbstractAgentRun,
    AbstractRunEvent,
    AgentRunMixin,
    GeneratorAgentRun,
    PlatformAgentRun,
)


class PlatformRun(PlatformAgentRun):
    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs"


class PlatformJsonRun(PlatformAgentRun):
    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs_json"


class GeneratorRun(GeneratorAgentRun):
    class Meta(GeneratorAgentRun.Meta):
        managed = False
        db_table = "solid_agent_runs"


class FreshRun(AbstractAgentRun):
    """A table of our own."""


class MinimalRun(AgentRunMixin):
    """All that a host needs: a key, a status and a log."""

    events_column = "log"

    status = RunStatusField(store="name")
    log = RunJSONField(null=True, blank=True)


class FreshRunProxy(FreshRun):
    class Meta:
        proxy = True


class ChildRun(FreshRun):
    """Multi-table inheritance: the status lives in the parent's table."""

    note = models.CharField(max_length=50, blank=True)

    class Meta:
        """Of its own: the indexes of the shape belong to the parent's table."""


class Agent(models.Model):
    name = models.CharField(max_length=50)


class Document(models.Model):
    title = models.CharField(max_length=50)


class UUIDDocument(models.Model):
    id = models.UUIDField(primary_key=True)


class NamedDocument(models.Model):
    slug = models.CharField(max_length=50, primary_key=True)


class AgentOwnedRun(PlatformAgentRun):
    """A host that replaces ``agent_id`` by a foreign key over the same column."""

    agent = models.ForeignKey(
        Agent, models.DO_NOTHING, null=True, blank=True, db_constraint=False, related_name="runs"
    )

    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs"


class TableRun(AbstractAgentRun):
    """A table of our own, its log in another."""

    events_model = "tests.TableRunEvent"


class TableRunEvent(AbstractRunEvent):
    run = models.ForeignKey(TableRun, models.CASCADE, related_name="+", db_index=False)


class TableRunProxy(TableRun):
    class Meta:
        proxy = True


class TableChildRun(TableRun):
    note = models.CharField(max_length=50, blank=True)

    class Meta:
        """Of its own: the indexes of the shape belong to the parent's table."""


class UUIDTableRun(AbstractAgentRun):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)

    events_model = "UUIDTableRunEvent"


class UUIDTableRunEvent(AbstractRunEvent):
    run = models.ForeignKey(UUIDTableRun, models.CASCADE, related_name="+", db_index=False)
