"""The same durable record in projects that people would otherwise use, on the same PostgreSQL.

A record begins with a prompt of about 250 bytes and ends with an answer of about 250 bytes, one
at a time. Each peer goes through its own public way in one process, at its own defaults, on
connections that stay open; the module's docstring says what its figure includes. A peer that is
not installed is left out.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from typing import Any

from django.db import connection

from benchmarks.floor import insert_by_driver
from benchmarks.models import TableRun
from benchmarks.names import FLOOR, OURS
from benchmarks.plans import Plan
from benchmarks.scratch import settle
from benchmarks.turns import Way, ratios, take_turns
from benchmarks.whole_runs import record

PEERS = {
    "django-celery-results": "celery_results",
    "django-tasks-db": "tasks_db",
    "procrastinate": "procrastinate_jobs",
    "dbos": "dbos_workflows",
}


def measure(plan: Plan) -> dict[str, Any]:
    """``{"floors": {name: figures}, "ours / fastest": figures, "left out": {name: why}, …}``

    The fastest is looked for anew in each repeat.
    """
    ways: dict[str, Way] = {FLOOR: insert_by_driver(), OURS: record(TableRun)}
    left_out: dict[str, str] = {}
    includes: dict[str, str] = {}
    with ExitStack() as stack:
        for name, module in PEERS.items():
            try:
                peer = import_module(f"benchmarks.peers.{module}")
            except (ImportError, RuntimeError) as error:  # Django's word for an absent app
                left_out[name] = str(error)
                continue
            ways[name] = stack.enter_context(peer.recording())
            said = " ".join(str(peer.__doc__).split())
            includes[f"{name} {version(name)}"] = said.replace("``", "`")
        settle()
        turns = {name: plan.floors if name == FLOOR else plan.runs for name in ways}
        found = take_turns(ways, turns, plan.repeats)
    peers = [found[name] for name in PEERS if name in found]
    fastest = [min(figures) for figures in zip(*peers, strict=True)]
    return {
        "floors": {name: ratios(found[name], found[FLOOR]) for name in found if name != FLOOR},
        "of ours": {name: ratios(found[OURS], found[name]) for name in PEERS if name in found},
        "ours / fastest": ratios(fastest, found[OURS] if fastest else []),
        "left out": left_out,
        "includes": includes,
    }


def address() -> dict[str, str]:
    """The scratch database as libpq is told of it."""
    settings = connection.settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    found = {name: str(settings[key]) for name, key in names.items() if settings[key]}
    return {**found, "dbname": str(settings["NAME"])}
