"""The page on the runs of threads is followed to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.documents import blocks, follow
from tests.test_docs import SETTINGS

THREADS = """
import asyncio
import os
import subprocess
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
import django

django.setup()
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from myapp import api, async_worker, worker
from myapp.reaping import SANDBOXES
from myapp.receivers import ENDED
from myapp.stores import runs_of
from myapp.views import QUEUE
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

call_command("check", fail_level="WARNING")
assert "thread-run-store-list" in {url.name for url in api.urlpatterns}


def page(user, thread, does, **sent):
    client = Client()
    client.force_login(user)
    answer = client.post(f"/threads/{thread}/{does}/", sent)
    assert answer.status_code in (200, 204), (does, answer.status_code, answer.content)
    return answer.json() if answer.content else None


def reaped(*options):
    command = [sys.executable, "-m", "django", "reap_runs", "--scope", str(user.pk), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def a_run_is_worked_off():
    for _ in range(2):
        assert page(user, "a", "start", run="a1")["status"] == "running"
    assert QUEUE == [(user.pk, "a1")] * 2
    assert page(other, "a", "attach") == {"run": None}
    tenant, run = QUEUE.pop()
    seen = []

    def step():
        seen.append(worker.drive(tenant, run, []))  # the second delivery, meanwhile
        return 5

    assert worker.drive(tenant, run, [step]) == "completed"
    assert seen == ["condition"]
    assert worker.drive(tenant, run, []) == "terminal"
    assert store.get(run).usage == {"totalTokens": 5}
    assert page(user, "a", "start", run="a1")["status"] == "completed"
    assert QUEUE.pop() == (user.pk, "a1") and QUEUE == []
    assert ENDED == [(str(user.pk), "a1", "completed")]


def a_failure_is_told():
    page(user, "b", "start", run="b1")
    try:
        worker.drive(user.pk, "b1", [lambda: 1 / 0])
    except ZeroDivisionError:
        pass
    record = store.get("b1")
    assert (record.status, record.error["code"]) == ("failed", "internal")


def a_worker_is_taken_over():
    page(user, "c", "start", run="c1")

    def step():
        assert store.claim("c1")
        return 1

    assert worker.drive(user.pk, "c1", [step]) == "taken over"
    assert store.get("c1").status == "running"


def a_viewer_leaves_and_returns():
    page(user, "d", "start", run="d1")
    page(user, "d", "leave")
    assert store.get("d1").detached_since > 0
    shown = page(user, "d", "attach")["run"]
    assert shown["runId"] == "d1" and store.get("d1").detached_since is None
    page(user, "d", "stop")
    assert worker.drive(user.pk, "d1", [lambda: 1]) == "aborted"


async def asynchronous_work():
    async def fine():
        pass

    async def broken():
        raise ValueError

    async def endless():
        await store.arequest_cancel("e3")
        await asyncio.sleep(3600)

    ends = {"e1": (fine, "completed"), "e2": (broken, "failed"), "e3": (endless, "aborted")}
    beat = async_worker.beat
    async_worker.beat = lambda store, claim, task: beat(store, claim, task, seconds=0.05)
    for run, (work, end) in ends.items():
        await store.acreate_or_resume(run, "e", 1)
        assert await async_worker.drive(user.pk, run, work) == end, run
        assert (await store.aget(run)).status == end
    assert await async_worker.drive(user.pk, "e1", fine) == "terminal"


def the_reaper_sweeps():
    hour = 3_600_000
    now = store.now()
    runs = {"young": 1000, "done": 1000, "at work": 1000, "old": 2 * hour}
    for run, ago in runs.items():
        store.create_or_resume(run, "f", 1)
        store.update(run, {"detached_since": now - ago, "sandbox_key": run})
    SANDBOXES.update({run: {"at_work": True} for run in ("at work", "old")})
    SANDBOXES["done"] = {"at_work": False, "tokens": 9}
    store.create_or_resume("stalled", "f", 1)
    store.claim("stalled", now=now - 61_000)
    options = ("--dry-run", "--probe", "myapp.reaping.probe")
    assert "old" in reaped(*options).stdout and store.get("old").status == "running"
    call_command("reap_runs", scope=[str(user.pk)], verbosity=0)
    found = {run: store.get(run).status for run in (*runs, "stalled")}
    assert found == {
        "young": "running",
        "at work": "running",
        "done": "completed",
        "old": "aborted",
        "stalled": "failed",
    }, found
    assert store.get("done").usage == {"totalTokens": 9}
    assert "old" not in SANDBOXES and "at work" in SANDBOXES
    assert store.get("stalled").error["code"] == "stalled"


def the_command_tells_how_it_went():
    quiet = reaped()
    assert quiet.returncode == 0, quiet.stderr
    wrong = reaped("--ttl", "never")
    assert wrong.returncode == 2, wrong.stderr
    store.create_or_resume("bad", "g", 1)
    store.update("bad", {"detached_since": 1})
    bad = reaped("--finalise", "math.sqrt")  # raises for a record
    assert bad.returncode == 1, bad.stderr
    assert store.get("bad").status == "aborted"


user, other = (User.objects.create_user(name) for name in ("somebody", "another"))
store = runs_of(user.pk)
try:
    a_run_is_worked_off()
    a_failure_is_told()
    a_worker_is_taken_over()
    a_viewer_leaves_and_returns()
    asyncio.run(asynchronous_work())
    the_reaper_sweeps()
    the_command_tells_how_it_went()
    exec(compile(open("usage.py").read(), "usage.py", "exec"), {"tenant": f"{user.pk} usage"})
    call_command("prune_thread_runs", "90", verbosity=0)
finally:
    ThreadRun.objects.all().delete()
    ThreadInterrupt.objects.all().delete()
    User.objects.all().delete()

import unittest
from django.test.utils import setup_test_environment

setup_test_environment()
told = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromName("myapp.tests"))
assert told.testsRun > 50 and told.wasSuccessful(), told.testsRun
"""


@pytest.mark.django_db
def test_the_page_on_threads_works_as_written(tmp_path: Path) -> None:
    files = blocks("docs/threads.md")
    settings = SETTINGS.format(database=str(connection.settings_dict["NAME"]))
    follow(tmp_path, settings + files.pop("settings"), files, THREADS)
