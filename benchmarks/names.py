"""What the ways are called, in the figures and in the report."""

from __future__ import annotations

FLOOR = "floor"

TABLE, COLUMN = "table log", "column log"
BUFFERED_TABLE, BUFFERED_COLUMN = f"buffered, {TABLE}", f"buffered, {COLUMN}"

ONE, EACH = "one run", "a run each"

PLAIN = "create, start, finish"
OURS = "django-solid-runs"

WITH, WITHOUT = "database store", "memory store"
HEARTBEAT = 0.05
"""Seconds; so short that a stream of 2,000 frames has some."""

RUNNING, IDLE = "with a running run", "idle and long"
"""Threads in which an active run is looked for."""
BY_ORM = {
    "create_or_resume": "get_or_create",
    "create_or_resume, of one that is there": "get_or_create, of one that is there",
    "update": "get and save",
    "update, an end": "get and save, an end",
    "get": "get of the ORM",
}
"""Methods of the run store, and what does the same with the ORM alone."""

SECOND = "second"
"""The alias of a database beside the first, for the same tables with fewer rows."""


def column(kind: str) -> str:
    return f"{COLUMN}, {kind}"


def rails(kind: str) -> str:
    return f"Rails' way, {kind}"
