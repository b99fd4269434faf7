"""Measure everything on the database that SOLID_RUNS_DB names, and write the figures as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from django.db import connection

from benchmarks.plans import FULL, QUICK, Plan

PARTS = ("appends", "writers", "whole_runs", "tails", "memory", "ag_ui", "threads", "peers")
"""The peers come last: dbos has threads, and a process with threads had better not fork."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    django.setup()
    from benchmarks.scratch import scratch_database

    with scratch_database():
        found = {"driver": driver(), **measure(options.parts, QUICK if options.quick else FULL)}
    options.out.write_text(json.dumps(found), encoding="utf-8")


def measure(parts: list[str], plan: Plan) -> dict[str, Any]:
    found = {}
    for part in PARTS:
        if part not in parts or (part == "peers" and connection.vendor != "postgresql"):
            continue
        begun = time.monotonic()
        found[part] = import_module(f"benchmarks.{part}").measure(plan)
        took = time.monotonic() - begun
        print(f"  {part.replace('_', ' '):12}{took:6.1f} s", file=sys.stderr, flush=True)
    return found


def driver() -> str:
    if connection.vendor == "sqlite":
        return "sqlite3 of Python"
    name = {"postgresql": "psycopg", "mysql": "mysqlclient"}[connection.vendor]
    return f"{name} {version(name)}"


if __name__ == "__main__":
    main()
