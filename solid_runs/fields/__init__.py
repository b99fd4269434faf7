"""Columns of live tables: a status, JSON of any kind, a time in UTC; and those of our own."""

from __future__ import annotations

from solid_runs.fields.datetime import InstantField, UTCDateTimeField
from solid_runs.fields.exact import ExactCharField, ExactTextField
from solid_runs.fields.json import RunJSONField
from solid_runs.fields.json_text import JSONTextField
from solid_runs.fields.status import LOADED, RunStatusField
from solid_runs.fields.wall_clock import AsUTC

__all__ = [
    "LOADED",
    "AsUTC",
    "ExactCharField",
    "ExactTextField",
    "InstantField",
    "JSONTextField",
    "RunJSONField",
    "RunStatusField",
    "UTCDateTimeField",
]
