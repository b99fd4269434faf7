"""Building the demo's database. Each step can be run again: it adds only what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection

from example_project.agents import reserved, threads
from example_project.agents.jobs import MODELS, plan
from example_project.agents.models import Agent, Document, PlatformRun
from example_project.agents.simulated import simulate
from example_project.agents.tasks import AGENTS, DOCUMENTS
from example_project.settings import BASE_DIR

LOGIN = "demo"
PASSWORD = "demo"
TOKEN = "demo-token"
RUNS = 42
SEED = 1


def load_rails_tables() -> None:
    """Make the tables as Rails leaves them, with its rows; no migration touches them."""
    if PlatformRun._meta.db_table not in connection.introspection.table_names():
        dump = (BASE_DIR / "rails.sql").read_text(encoding="utf-8")
        with connection.cursor() as cursor:
            cursor.executescript(dump)


def migrate() -> None:
    call_command("migrate", verbosity=0, interactive=False)


def make_login() -> None:
    """Make the login that is printed true, whatever became of it since."""
    users: Any = get_user_model()
    user, _ = users.objects.get_or_create(
        username=LOGIN, defaults={"is_staff": True, "is_superuser": True}
    )
    if not (user.check_password(PASSWORD) and user.is_active and user.is_superuser):
        user.is_active = user.is_staff = user.is_superuser = True
        user.set_password(PASSWORD)
        user.save()


def make_subjects() -> None:
    for key, name in enumerate(AGENTS, start=1):
        Agent.objects.get_or_create(pk=key, defaults={"name": name})
    for key, title in enumerate(DOCUMENTS, start=1):
        Document.objects.get_or_create(pk=key, defaults={"title": title})


def is_built() -> bool:
    """Whether there are tables, and something that runs can be about."""
    return {Agent._meta.db_table, PlatformRun._meta.db_table} <= set(
        connection.introspection.table_names()
    ) and Agent.objects.exists()


def simulate_missing(report: Callable[[int, str], None]) -> int:
    """Work through what the plan has and the database has not; how many runs that was.

    ``report`` is told, after each run, how many there are to do and which it was.
    """
    jobs = [job for job in plan(RUNS, SEED) if not job.exists]
    for job in jobs:
        simulate(job)
        report(len(jobs), str(job))
    return len(jobs)


def reserve_missing() -> int:
    """Make the AG-UI runs and interrupts that are not there; how many threads that was."""
    user: Any = get_user_model().objects.get(username=LOGIN)
    return reserved.reserve_missing(user.pk)


def talk_missing() -> int:
    """Make the conversations of threads that are not there; how many that was."""
    user: Any = get_user_model().objects.get(username=LOGIN)
    return threads.talk_missing(user.pk)


def counts() -> dict[str, int]:
    """The rows of each run table."""
    return {model._meta.db_table: model.objects.count() for model in MODELS}
