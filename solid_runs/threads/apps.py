from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class ThreadsConfig(AppConfig):
    name = "solid_runs.threads"
    label = "solid_runs_threads"
    verbose_name = _("Threads")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from solid_runs.threads.checks import check_apps

        checks.register(check_apps, "solid_runs")
