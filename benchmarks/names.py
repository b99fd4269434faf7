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


def column(kind: str) -> str:
    return f"{COLUMN}, {kind}"


def rails(kind: str) -> str:
    return f"Rails' way, {kind}"
