"""A scratch database of the vendor that SOLID_RUNS_DB names, at the durability it has by default.

Addresses and names are those of the test suite. SQLite keeps a write-ahead log, syncs at every
commit and takes the write lock at BEGIN, as a host with several writers would set it.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django import VERSION as DJANGO

from benchmarks.names import SECOND
from tests.settings import VENDOR, database

FOLDER = next(
    (folder for folder in ("/var/tmp", tempfile.gettempdir()) if Path(folder).is_dir()), "."
)
"""For SQLite's file: /tmp may be memory, where nothing is durable and a commit costs nothing."""


def scratch(name: str) -> dict[str, Any]:
    settings: dict[str, Any] = database(name)
    settings["CONN_MAX_AGE"] = None
    if VENDOR == "sqlite":
        settings["TEST"] = {"NAME": f"{FOLDER}/{Path(settings['NAME']).name}"}
        settings["OPTIONS"] = {
            "timeout": 60,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
        }
    # Every process of a run finds the same database without being told.
    settings["NAME"] = settings["TEST"]["NAME"]
    return settings


def peers() -> list[str]:
    """The peers that are Django apps, where they are installed and can be imported."""
    if VENDOR != "postgresql":
        return []
    tasks = "django.tasks" if DJANGO >= (6, 0) else "django_tasks"
    needs = {"django_celery_results": "celery", "django_tasks_db": tasks}
    return [app for app, need in needs.items() if find_spec(app) and find_spec(need)]


DATABASES = {"default": scratch("benchmark"), SECOND: scratch("benchmark_second")}
SECRET_KEY = "only for benchmarks"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "solid_runs"]
INSTALLED_APPS += ["solid_runs.ag_ui", "solid_runs.threads", "benchmarks", *peers()]
SOLID_RUNS = {"COLUMN_LOG_ENTRIES": 20_000}  # logs of 10,000 entries are added to
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
