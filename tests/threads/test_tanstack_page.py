"""docs/tanstack.md is followed on Django's side; scripts/check_tanstack.py follows it in Node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection

from tests.documents import ROOT, blocks, follow

PAGE = "docs/tanstack.md"
ADAPTER = ROOT / "typescript" / "solid-runs.ts"

SETTINGS = """
from tests.settings import *

DATABASES = {{"default": {{**DATABASES["default"], "NAME": {database!r}}}}}
ROOT_URLCONF = "myapp.urls"
INSTALLED_APPS = [
    name
    for name in INSTALLED_APPS
    if not name.startswith(("rest_framework", "solid_runs", "tests"))
]
"""

RUN = """
import io
import json
import os

os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
import django

django.setup()
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from rest_framework.authtoken.models import Token
from rest_framework.test import APIRequestFactory, force_authenticate

from myapp.stores import TenantRunStoreViewSet
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

call_command("check", fail_level="WARNING")


def client_of(user):
    said = io.StringIO()
    call_command("drf_create_token", user.username, stdout=said)
    token = Token.objects.get(user=user).key
    assert token in said.getvalue()
    return Client(headers={"Authorization": f"Token {token}"})


def started(client, run, at):
    body = {"runId": run, "threadId": "t", "startedAt": at}
    answer = client.post("/api/thread-runs/", body, content_type="application/json")
    assert answer.status_code == 201, (answer.status_code, answer.content)


def patched(client, run, **patch):
    answer = client.patch(
        f"/api/thread-runs/run/?runId={run}", json.dumps(patch), content_type="application/json"
    )
    assert answer.status_code == 204, (answer.status_code, answer.content)


def found(client, path):
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 200, (path, answer.status_code, answer.content)
    return answer.json()


def tenants(method, data, **headers):
    request = getattr(APIRequestFactory(), method)("/", data, format="json", headers=headers)
    force_authenticate(request, users[0])
    answer = TenantRunStoreViewSet.as_view({"post": "create", "get": "list"})(request)
    return answer.status_code, answer.data


users = [User.objects.create_user("node"), User.objects.create_user("another")]
try:
    assert Client().get("/api/thread-runs/active/?threadId=t").status_code == 401
    node, another = map(client_of, users)
    for run in ("ended", "detached", "watched"):
        started(node, run, 1)
    assert found(another, "thread-runs/?threadId=t") == []
    assert found(another, "thread-interrupts/?threadId=t") == []
    patched(node, "ended", status="completed", finishedAt=2)
    patched(node, "detached", detachedSince=3)
    assert found(node, "thread-runs/active/?threadId=t")["runId"] == "detached"
    call_command("reap_runs", verbosity=0)
    states = {one["runId"]: one for one in found(node, "thread-runs/?threadId=t")}
    assert states["detached"]["status"] == "aborted" and states["detached"]["cancelRequested"]
    assert states["watched"]["status"] == "running"
    call_command("prune_thread_runs", "90", verbosity=0)
    assert found(node, "thread-runs/run/?runId=ended") is None
    assert found(node, "thread-runs/run/?runId=watched")["status"] == "running"

    groups = [Group.objects.create(name=name) for name in ("acme", "other", "foreign")]
    users[0].groups.set(groups[:2])
    body = {"runId": "r", "threadId": "of a tenant", "startedAt": 1}
    assert tenants("post", body, **{"X-Tenant": "acme"})[0] == 201
    asked = {"threadId": "of a tenant"}
    assert len(tenants("get", asked, **{"X-Tenant": "acme"})[1]) == 1
    assert tenants("get", asked, **{"X-Tenant": "other"}) == (200, [])
    assert tenants("get", asked)[0] == 400
    for refused in ("foreign", "unknown", "x" * 300, "acme "):
        assert tenants("get", asked, **{"X-Tenant": refused})[0] == 403, refused
finally:
    ThreadRun.objects.all().delete()
    ThreadInterrupt.objects.all().delete()
    User.objects.all().delete()
    Group.objects.all().delete()
"""


@pytest.mark.django_db
def test_the_page_on_tanstack_works_as_written(tmp_path: Path) -> None:
    files = blocks(PAGE)
    settings = SETTINGS.format(database=str(connection.settings_dict["NAME"]))
    follow(tmp_path, settings + files.pop("settings"), files, RUN)


@pytest.mark.once
def test_the_page_has_the_adapter_as_it_is_in_its_file() -> None:
    [adapter] = [code for code in snippets("ts") if "export function solidRunStore" in code]
    assert adapter == ADAPTER.read_text(encoding="utf-8")


@pytest.mark.once
def test_all_other_code_for_node_names_its_file_by_which_it_is_checked() -> None:
    named = [code.split("\n", 1)[0] for code in snippets("ts")]
    assert [name for name in named if name.endswith(".ts")] == [
        "// stores.ts",
        "// chat.ts",
        "// driving.ts",
    ]
    assert len(named) == 4
    assert [*snippets("js"), *snippets("javascript"), *snippets("typescript")] == []


def snippets(language: str) -> list[str]:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return found
