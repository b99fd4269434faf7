"""The three columns that a live table needs: a status, JSON of any kind, and a time in UTC."""

from __future__ import annotations

from solid_runs.fields.datetime import UTCDateTimeField
from solid_runs.fields.json import RunJSONField
from solid_runs.fields.status import LOADED, RunStatusField
from solid_runs.fields.wall_clock import AsUTC

__all__ = ["LOADED", "AsUTC", "RunJSONField", "RunStatusField", "UTCDateTimeField"]
