"""System checks of an installation with threads."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core import checks


def check_apps(**kwargs: Any) -> list[checks.CheckMessage]:
    if apps.is_installed("solid_runs"):
        return []
    return [
        checks.Error(
            "solid_runs.threads is installed without solid_runs, whose templates, static files and "
            "checks it uses.",
            hint="Add 'solid_runs' to INSTALLED_APPS.",
            id="solid_runs.E031",
        )
    ]
