"""The README is followed to the letter: its files make a project, which runs its example."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.documents import blocks, follow

SETTINGS = """
from tests.settings import DATABASES, SECRET_KEY, TEMPLATES, MIDDLEWARE

DATABASES = {{"default": {{**DATABASES["default"], "NAME": {database!r}}}}}
ROOT_URLCONF = "myapp.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "myapp",
]
"""

INVOICE = """
from django.db import models


class Invoice(models.Model):
    number = models.CharField(max_length=20)


"""

RUN = """
import os

os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
import django

django.setup()
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory
import myapp.receivers
from myapp import urls
from myapp.models import AgentRun, AgentRunEvent, PlatformRun

call_command("check", fail_level="WARNING")
call_command("makemigrations", "myapp", verbosity=0)
call_command("sqlmigrate", "myapp", "0001")
with connection.schema_editor() as editor:
    editor.create_model(AgentRun)
    editor.create_model(AgentRunEvent)
try:
    exec(compile(open("usage.py").read(), "usage.py", "exec"))
    assert run.status == "complete" and run.output == answer
    assert run.error_message is None
    assert [entry.seq for entry in run.events_after(2, limit=1)] == [3]
    assert run.events_count == len(run.events_log) == 253
    call_command("move_events", "myapp.AgentRun", verbosity=0)
    assert AgentRun.objects.total_tokens_sum() == 160
    assert AgentRun.objects.get().instructions_codename is None
    assert AgentRun.objects.today().for_agent("InvoiceAgent").count() == 1
    request = RequestFactory().get("/api/runs/")
    answered = urls.AgentRunViewSet.as_view({"get": "list"})(request)
    assert answered.status_code in (401, 403), answered.status_code
    assert PlatformRun.objects.recent().first().status == "cancelled"
finally:
    with connection.schema_editor() as editor:
        editor.delete_model(AgentRunEvent)
        editor.delete_model(AgentRun)
print("followed")
"""


@pytest.mark.django_db
def test_the_readme_works_as_written(tmp_path: Path) -> None:
    files = blocks("README.md")
    settings = SETTINGS.format(database=str(connection.settings_dict["NAME"]))
    files["models"] = INVOICE + files["models"]
    follow(tmp_path, settings + files.pop("settings"), files, RUN)
