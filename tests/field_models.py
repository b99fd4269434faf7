"""Models over tables of the shapes that the fields must cope with, and over the Rails tables.

The models over the Rails tables live in a registry of their own: the suite's real models are over
the same tables, which Django's checks would report.
"""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models

from solid_runs.fields import RunJSONField, RunStatusField, UTCDateTimeField

VENDOR = connection.vendor
KEY = {
    "sqlite": "id integer PRIMARY KEY AUTOINCREMENT",
    "postgresql": "id bigserial PRIMARY KEY",
    "mysql": "id bigint PRIMARY KEY AUTO_INCREMENT",
}[VENDOR]
TIME = {
    "sqlite": "datetime(6)",
    "postgresql": "timestamp(6) without time zone",
    "mysql": "datetime(6)",
}[VENDOR]
TEXT = "longtext" if VENDOR == "mysql" else "text"
TABLES = {
    "field_integer_status": "status integer, label varchar(50)",
    "field_name_status": "status varchar(255), label varchar(50)",
    "field_json": "label varchar(50), data json",
    "field_jsonb": "label varchar(50), data jsonb",
    "field_text": f"label varchar(50), data {TEXT}",
    "field_encoded": f"data {TEXT}",
    "field_times": f"label varchar(50), at {TIME}, until {TIME}, made {TIME}, touched {TIME}",
}
if VENDOR != "postgresql":
    del TABLES["field_jsonb"]


def create_tables(connection: Any) -> None:
    with connection.cursor() as cursor:
        for table, columns in TABLES.items():
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} ({KEY}, {columns})")


class IntegerStatus(models.Model):
    status = RunStatusField(store="integer", null=True)
    label = models.CharField(max_length=50, null=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_integer_status"


class NameStatus(models.Model):
    status = RunStatusField(store="name", null=True)
    label = models.CharField(max_length=50, null=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_name_status"


class JSONRow(models.Model):
    label = models.CharField(max_length=50, null=True)
    data = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_json"


class JSONBRow(models.Model):
    label = models.CharField(max_length=50, null=True)
    data = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_jsonb"


class TextRow(models.Model):
    label = models.CharField(max_length=50, null=True)
    data = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_text"


class SetsAsSortedLists(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, frozenset | set):
            return {"sorted": sorted(o)}
        return super().default(o)


class EncodedRow(models.Model):
    data = RunJSONField(null=True, encoder=SetsAsSortedLists)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_encoded"


class Times(models.Model):
    label = models.CharField(max_length=50, null=True)
    at = UTCDateTimeField(null=True)
    until = UTCDateTimeField(null=True)
    made = UTCDateTimeField(auto_now_add=True)
    touched = UTCDateTimeField(auto_now=True)

    class Meta:
        app_label = "tests"
        managed = False
        db_table = "field_times"


rails = Apps()


class RailsRun(models.Model):
    status = RunStatusField(store="integer")
    output_metadata = RunJSONField(null=True)
    logs = RunJSONField(null=True)
    started_at = UTCDateTimeField(null=True)
    completed_at = UTCDateTimeField(null=True)
    created_at = UTCDateTimeField(auto_now_add=True)
    updated_at = UTCDateTimeField(auto_now=True)

    class Meta:
        app_label = "tests"
        apps = rails
        managed = False
        db_table = "agent_runs"


class RailsJSONRun(models.Model):
    status = RunStatusField(store="integer")
    output_metadata = RunJSONField(null=True)
    logs = RunJSONField(null=True)
    started_at = UTCDateTimeField(null=True)
    completed_at = UTCDateTimeField(null=True)
    created_at = UTCDateTimeField(auto_now_add=True)
    updated_at = UTCDateTimeField(auto_now=True)

    class Meta:
        app_label = "tests"
        apps = rails
        managed = False
        db_table = "agent_runs_json"


class RailsGeneratorRun(models.Model):
    status = RunStatusField(store="name")
    input_params = RunJSONField(null=True)
    output_metadata = RunJSONField(null=True)
    events = RunJSONField(null=True)
    started_at = UTCDateTimeField(null=True)
    completed_at = UTCDateTimeField(null=True)
    created_at = UTCDateTimeField(auto_now_add=True)
    updated_at = UTCDateTimeField(auto_now=True)

    class Meta:
        app_label = "tests"
        apps = rails
        managed = False
        db_table = "solid_agent_runs"
