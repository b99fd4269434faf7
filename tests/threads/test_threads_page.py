"""The page on the runs of threads is followed to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.documents import blocks, follow
from tests.test_docs import SETTINGS

WITHOUT_REST = """
INSTALLED_APPS = [name for name in INSTALLED_APPS if not name.startswith("rest_framework")]
"""

THREADS = """
import asyncio
import json
import os
import re
import shlex
import subprocess
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
import django

django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from rest_framework.authtoken.models import Token

from myapp import api, async_worker, worker
from myapp.reaping import SANDBOXES
from myapp.receivers import ENDED
from myapp.stores import questions_of, runs_of
from myapp.views import ANSWERED, QUEUE
from solid_runs.threads.claims import Claim
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from tests.documents import ROOT

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


def a_run_waits_for_an_answer_and_goes_on():
    page(user, "h", "start", run="h1")

    def ask():
        raise worker.Ask({"message": "Send it?"})

    assert worker.drive(user.pk, "h1", [lambda: 5, ask]) == "interrupted"
    [asked] = questions_of(user.pk).list_pending("h")
    assert (asked.run_id, asked.payload) == ("h1", {"message": "Send it?"})
    assert store.get("h1").status == "interrupted"
    assert worker.drive(user.pk, "h1", []) == "condition"  # a late delivery answers nothing
    client = Client()
    client.force_login(other)
    answered = f"/answers/{asked.interrupt_id}/"
    assert client.post(answered, {"approved": "yes"}).status_code == 404
    client.force_login(user)
    for _ in range(2):
        assert client.post(answered, {"approved": "yes"}).status_code == 204
    assert ANSWERED == [(user.pk, "h1")] * 2
    seen = []

    def step():
        seen.append((store.get("h1").status, worker.resume(user.pk, "h1", [])))
        return 7

    assert worker.resume(user.pk, "h1", [step]) == "completed"
    assert seen == [("running", "condition")]
    assert store.get("h1").usage == {"totalTokens": 12}
    page(user, "h", "start", run="h2")

    def late():
        assert store.claim("h2")
        ask()

    assert worker.drive(user.pk, "h2", [late]) == "taken over"
    assert store.get("h2").status == "running"


def the_page_is_about_the_parent():
    store.create_or_resume("i1", "i", 1)
    store.create_or_resume("i2", "i", 2, parent_run_id="i1")
    assert store.find_active_run("i").run_id == "i2"
    page(user, "i", "leave")
    page(user, "i", "stop")
    assert store.get("i1").detached_since and store.get("i1").cancel_requested
    assert page(user, "i", "attach")["run"]["runId"] == "i1"
    store.update("i1", {"status": "completed"})
    assert page(user, "i", "attach")["run"]["runId"] == "i2"


def an_outage_stops_nobody():
    def out(self, now=None):
        outages.append(self.run_id)
        raise OperationalError("The database is away.")

    async def works(usage):
        usage["totalTokens"] += 3
        await asyncio.sleep(0.3)

    outages, touch = [], Claim.touch
    for run in ("j1", "j2"):
        store.create_or_resume(run, "j", 1)
    Claim.touch = out
    try:
        assert worker.drive(user.pk, "j1", [lambda: 1, lambda: 1]) == "completed"
        assert asyncio.run(async_worker.drive(user.pk, "j2", works)) == "completed"
    finally:
        Claim.touch = touch
    assert outages[:2] == ["j1", "j1"] and "j2" in outages
    assert store.get("j2").usage == {"totalTokens": 3}


async def asynchronous_work():
    async def fine(usage):
        usage["totalTokens"] += 5

    async def broken(usage):
        usage["totalTokens"] += 5
        raise ValueError

    async def endless(usage):
        usage["totalTokens"] += 5
        await store.arequest_cancel("e3")
        await asyncio.sleep(3600)

    ends = {"e1": (fine, "completed"), "e2": (broken, "failed"), "e3": (endless, "aborted")}
    beat = async_worker.beat
    async_worker.beat = lambda claim, task: beat(claim, task, seconds=0.05)
    for run, (work, end) in ends.items():
        await store.acreate_or_resume(run, "e", 1)
        try:
            given = await async_worker.drive(user.pk, run, work)
        except ValueError:
            given = "failed"
        record = await store.aget(run)
        assert (given, record.status, record.usage) == (end, end, {"totalTokens": 5}), record
        assert (record.error is not None) is (end == "failed"), record
    await store.acreate_or_resume("e4", "e", 1)
    shut = asyncio.ensure_future(async_worker.drive(user.pk, "e4", lambda usage: asyncio.sleep(9)))
    while (await store.aget("e4")).driver_epoch is None:
        await asyncio.sleep(0.02)
    shut.cancel()
    await asyncio.wait([shut])
    assert shut.cancelled()
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
    for option in ("--probe", "--finalise", "--database"):
        wrong = reaped(option, "nope.x")
        assert wrong.returncode == 1 and "nope" in wrong.stderr, wrong.stderr
    store.create_or_resume("bad", "g", 1)
    store.update("bad", {"detached_since": 1})
    bad = reaped("--finalise", "math.sqrt")  # raises for a record
    assert bad.returncode == 1, bad.stderr
    assert store.get("bad").status == "aborted"


def the_addresses_answer_as_told():
    text = (ROOT / "docs" / "threads.md").read_text(encoding="utf-8")
    told = re.findall("^(curl .*?) # (20.)(?:, ({.*}))?", text.replace("\\\\\\n", ""), re.MULTILINE)
    assert len(told) == 11
    client = Client(headers={"Authorization": f"Token {Token.objects.create(user=other).key}"})
    for command, status, body in told:
        words = shlex.split(command.replace("$URL", "/api/thread-runs"))
        [url] = [word for word in words if word.startswith("/api/")]
        sent = words[words.index("--json") + 1] if "--json" in words else ""
        method = words[words.index("-X") + 1] if "-X" in words else "POST" if sent else "GET"
        answer = client.generic(method, url, sent, content_type="application/json")
        assert answer.status_code == int(status), (command, answer.content)
        assert not body or answer.json() == json.loads(body), (command, answer.content)
    assert runs_of(other.pk).get("r").status == "completed"


user, other = (User.objects.create_user(name) for name in ("somebody", "another"))
store = runs_of(user.pk)
try:
    a_run_is_worked_off()
    a_failure_is_told()
    a_worker_is_taken_over()
    a_viewer_leaves_and_returns()
    a_run_waits_for_an_answer_and_goes_on()
    the_page_is_about_the_parent()
    an_outage_stops_nobody()
    asyncio.run(asynchronous_work())
    the_reaper_sweeps()
    the_command_tells_how_it_went()
    the_addresses_answer_as_told()
    exec(compile(open("usage.py").read(), "usage.py", "exec"), {})
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
    follow(tmp_path, settings + WITHOUT_REST + files.pop("settings"), files, THREADS)
