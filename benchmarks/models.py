"""The tables that are measured: two made by Rails, and two of a host's own."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from solid_runs.models import AbstractAgentRun, AbstractRunEvent, PlatformAgentRun


class RailsRun(PlatformAgentRun):
    """On PostgreSQL the log is a jsonb column."""

    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs"


class RailsJsonRun(PlatformAgentRun):
    """The same with a json column."""

    class Meta(PlatformAgentRun.Meta):
        managed = False
        db_table = "agent_runs_json"


class ColumnRun(AbstractAgentRun):
    """A table of the host's own with its log in a column."""


class TableRun(AbstractAgentRun):
    """The same with its log in a table."""

    events_model: ClassVar[str] = "benchmarks.TableRunEvent"


class TableRunEvent(AbstractRunEvent):
    run = models.ForeignKey(TableRun, models.CASCADE, related_name="+", db_index=False)

    class Meta(AbstractRunEvent.Meta):
        pass
