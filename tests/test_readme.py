"""The README is followed to the letter: its files make a project, which runs its example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent

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


def blocks() -> dict[str, str]:
    """The README's Python, by the file that each block names."""
    found: dict[str, str] = defaultdict(str)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        name = re.match(r"# (\S+)\n", code)
        assert name, f"a block of the README names no file:\n{code}"
        found[name[1].removesuffix(".py")] += code
    return found


@pytest.mark.django_db
def test_the_readme_works_as_written(tmp_path: Path) -> None:
    files = blocks()
    app = tmp_path / "myapp"
    app.mkdir()
    (app / "__init__.py").touch()
    (tmp_path / "project_settings.py").write_text(
        SETTINGS.format(database=str(connection.settings_dict["NAME"])) + files.pop("settings")
    )
    (tmp_path / "usage.py").write_text(files.pop("usage"))
    (app / "models.py").write_text(INVOICE + files.pop("models"))
    for name, code in files.items():
        (app / f"{name}.py").write_text(code)
    (tmp_path / "run.py").write_text(RUN)
    done = subprocess.run(
        [sys.executable, "-W", "error", "run.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("followed\n")
    assert "pending → running" in done.stdout
    assert 'agent_runs"' not in done.stdout
    assert "`agent_runs`" not in done.stdout


def test_the_readme_stays_under_three_screens() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    longest = max(len(section.splitlines()) for section in sections)
    assert longest <= 45, "each part of the README fits a screen"
