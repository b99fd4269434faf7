"""Ending the runs that nobody watches any more, and those whose driver is gone."""

from __future__ import annotations

from solid_runs.threads.reaper.outcomes import PRODUCING, UNKNOWN, Finished, Outcome
from solid_runs.threads.reaper.reaping import areap, reap

__all__ = ["PRODUCING", "UNKNOWN", "Finished", "Outcome", "areap", "reap"]
