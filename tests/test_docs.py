"""The pages of docs/ are followed to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.documents import blocks, follow

SETTINGS = """
from tests.settings import *

DATABASES = {{"default": {{**DATABASES["default"], "NAME": {database!r}}}}}
ROOT_URLCONF = "myapp.urls"
INSTALLED_APPS = [
    name for name in INSTALLED_APPS if not name.startswith(("solid_runs", "tests"))
]
"""

AG_UI = """
import asyncio
import json
import os

os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
import django

django.setup()
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import AsyncClient
from django.test.utils import get_runner

from myapp.agents import REFUNDS
from myapp.receivers import QUEUE, go_on
from solid_runs.ag_ui.models import ReservedRun

from myapp.asgi import application

assert callable(application)
call_command("check", fail_level="WARNING")


async def frames(client, thread, run, said, **more):
    body = {
        "threadId": thread,
        "runId": run,
        "messages": [{"id": f"m-{run}", "role": "user", "content": said}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        **more,
    }
    answer = await client.post("/agents/refund/", body, content_type="application/json")
    assert answer.status_code == 200, (answer.status_code, answer.content)
    text = "".join([part.decode() async for part in answer.streaming_content])
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def answered(client, thread, payload):
    asked = (await frames(client, thread, "r1", "Refund it."))[-1]
    assert asked["outcome"]["type"] == "interrupt", asked
    [question] = asked["outcome"]["interrupts"]
    entry = {"interruptId": question["id"], "status": "resolved", "payload": payload}
    return await frames(client, thread, "r2", "Refund it.", resume=[entry])


async def conversation(user):
    stranger = await AsyncClient().post(
        "/agents/refund/", {"threadId": "t", "runId": "r", "messages": []},
        content_type="application/json",
    )
    assert stranger.status_code == 403, stranger.status_code
    client = AsyncClient()
    await client.aforce_login(user)
    denied = await answered(client, "a", {"approved": False, "reason": "too much"})
    assert any(one.get("content") == "Not refunded: too much." for one in denied), denied
    assert denied[-1]["outcome"] == {"type": "success"}
    assert REFUNDS == []
    approved = await answered(client, "b", {"approved": True})
    assert any(one.get("content") == "Refunded 12.50 EUR." for one in approved), approved
    assert REFUNDS == ["12.50"]
    seen = await client.get("/agents/refund/b")
    assert seen.json()["run"]["status"] == "succeeded" and seen.json()["interrupts"] == []
    cancelled = await client.post("/agents/refund/b/r2/cancel")
    assert cancelled.status_code == 200

    await frames(client, "c", "r1", "Refund it.")
    usage = {"scope": user.pk, "thread": "c"}
    code = compile(open("usage.py").read(), "usage.py", "exec")
    await sync_to_async(exec)(code, usage)
    assert QUEUE == [(str(user.pk), "c", "r1-answered")], QUEUE
    for _ in range(2):
        await sync_to_async(go_on)(*QUEUE[0])
    assert REFUNDS == ["12.50", "12.50"]
    seen = (await client.get("/agents/refund/c")).json()
    assert seen["run"]["status"] == "succeeded" and seen["answers"][0]["state"] == "settled"
    await frames(client, "d", "r1", "Refund it.")
    await sync_to_async(go_on)(str(user.pk), "d", "r2")
    assert (await client.get("/agents/refund/d/r2")).status_code == 404


user = User.objects.create_user("somebody")
try:
    asyncio.run(conversation(user))
    call_command("fail_stalled_ag_ui_runs", verbosity=0)
    call_command("prune_ag_ui_runs", "90", verbosity=0)
finally:
    ReservedRun.objects.all().delete()
    user.delete()

import unittest
from django.test.utils import setup_test_environment, teardown_test_environment

setup_test_environment()
told = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromName("myapp.tests"))
assert told.testsRun == 1 and told.wasSuccessful()
"""


@pytest.mark.django_db
def test_the_page_on_ag_ui_works_as_written(tmp_path: Path) -> None:
    files = blocks("docs/ag_ui.md")
    settings = SETTINGS.format(database=str(connection.settings_dict["NAME"]))
    follow(tmp_path, settings + files.pop("settings"), files, AG_UI)
