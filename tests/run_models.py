"""Hosts with tables or settings that the ordinary ones do not have.

In a registry of their own: the system checks of the suite shall not see them.
"""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.db import models

from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.mixin import AgentRunMixin
from solid_runs.models import AbstractRunEvent, PlatformAgentRun

apart = Apps()


class TextLogRun(AgentRunMixin):
    """Its log and its metadata are plain text, which no check constraint looks at."""

    events_column = "log"

    status = RunStatusField(store="name")
    output_metadata = RunJSONField(null=True, blank=True)
    log = RunJSONField(null=True, blank=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "text_log_runs"


class RenamedLogRun(PlatformAgentRun):
    """The field of the log goes by another name than its column."""

    events_column = "trail"

    logs = None
    trail = RunJSONField(null=True, db_column="logs")

    class Meta(PlatformAgentRun.Meta):
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "agent_runs"


class MisnamedLogRun(PlatformAgentRun):
    events_column = "evnts"

    class Meta(PlatformAgentRun.Meta):
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "agent_runs"


class NumberedProviderRun(PlatformAgentRun):
    """What a host calls ``provider`` and ``model`` need not be text."""

    agent_id = None
    provider = models.BigIntegerField(null=True, db_column="agent_id")

    class Meta(PlatformAgentRun.Meta):
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "agent_runs"


def create_text_table(connection: Any) -> None:
    key, text = {
        "sqlite": ("integer PRIMARY KEY AUTOINCREMENT", "text"),
        "postgresql": ("bigserial PRIMARY KEY", "text"),
        "mysql": ("bigint PRIMARY KEY AUTO_INCREMENT", "longtext"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS text_log_runs")
        cursor.execute(
            f"CREATE TABLE text_log_runs (id {key}, status varchar(255), "
            f"output_metadata {text}, log {text})"
        )


class NarrowRun(AgentRunMixin):
    """Its table is in MariaDB's older character set, which has no emoji."""

    status = RunStatusField(store="name")
    output = models.TextField(null=True, blank=True)
    output_metadata = RunJSONField(null=True, blank=True)
    events = RunJSONField(null=True, blank=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "narrow_runs"


def create_narrow_table(connection: Any) -> None:
    """On MariaDB; the other databases know no such thing, so there it is an ordinary table."""
    key, narrow = {
        "sqlite": ("integer PRIMARY KEY AUTOINCREMENT", ""),
        "postgresql": ("bigserial PRIMARY KEY", ""),
        "mysql": ("bigint PRIMARY KEY AUTO_INCREMENT", "CHARACTER SET utf8mb3"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS narrow_runs")
        cursor.execute(
            f"CREATE TABLE narrow_runs (id {key}, status varchar(255), "
            f"output text, output_metadata text, events text) {narrow}"
        )


class OddlyNamedRun(AgentRunMixin):
    status = RunStatusField(store="integer", db_column="order")
    output_metadata = RunJSONField(null=True, db_column="meta data")
    events = RunJSONField(null=True, db_column="Group")

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "an odd-table"


def create_oddly_named_table(connection: Any) -> None:
    quote = connection.ops.quote_name
    names = [quote(field.column) for field in OddlyNamedRun._meta.local_fields]
    key = {
        "sqlite": "integer PRIMARY KEY AUTOINCREMENT",
        "postgresql": "bigserial PRIMARY KEY",
        "mysql": "bigint PRIMARY KEY AUTO_INCREMENT",
    }[connection.vendor]
    types = [key, "integer", "json", "json"]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {quote(OddlyNamedRun._meta.db_table)}", None)
        cursor.execute(f"CREATE TABLE {quote(OddlyNamedRun._meta.db_table)} ({columns})", None)


class TightRun(AgentRunMixin):
    """Texts that must not be null, a short trace id, and a time that nothing moves by itself."""

    status = RunStatusField(store="name")
    error_message = models.TextField(blank=True, default="")
    error_backtrace = models.TextField(blank=True, default="")
    trace_id = models.CharField(max_length=32, null=True, blank=True)
    updated_at = models.DateTimeField(null=True, blank=True)
    events = RunJSONField(null=True, blank=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "tight_runs"


class BaseRun(AgentRunMixin):
    status = RunStatusField(store="name")
    events = RunJSONField(null=True, blank=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "base_runs"


class NumberedRun(BaseRun):
    """A child of multi-table inheritance with a key of its own."""

    number = models.IntegerField(primary_key=True)
    base = models.OneToOneField(BaseRun, models.CASCADE, parent_link=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "numbered_runs"


class OddTableRun(AgentRunMixin):
    """Names that must be quoted, in both of its tables."""

    key = models.BigAutoField(primary_key=True, db_column="a key")
    status = RunStatusField(store="name", db_column="order")
    events = RunJSONField(null=True, db_column="Group")
    events_count = models.BigIntegerField(null=True, db_column="last")

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "an odd-{run} table"


class OddTableRunEvent(AbstractRunEvent):
    run = models.ForeignKey(
        OddTableRun, models.CASCADE, related_name="+", db_index=False, db_column="Select"
    )

    class Meta(AbstractRunEvent.Meta):
        app_label = "tests"
        apps = apart
        db_table = "counted"


OddTableRun.events_model = OddTableRunEvent


class NumberedTableRun(OddTableRun):
    """A child of multi-table inheritance with a key of its own."""

    number = models.IntegerField(primary_key=True)
    base = models.OneToOneField(OddTableRun, models.CASCADE, parent_link=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "numbered_table_runs"


class UncountedRun(AgentRunMixin):
    """It opted in to a table and has no counter."""

    events_model = OddTableRunEvent

    status = RunStatusField(store="name")
    events = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "uncounted_runs"


def create_tables(connection: Any, *wanted: type[models.Model]) -> None:
    """The tables of these models, anew and empty; a parent stands before its child."""
    present = connection.introspection.table_names()
    with connection.schema_editor() as editor:
        for model in reversed(wanted):
            if model._meta.db_table in present:
                editor.delete_model(model)
        for model in wanted:
            editor.create_model(model)
