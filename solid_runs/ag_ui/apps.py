from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class AGUIConfig(AppConfig):
    name = "solid_runs.ag_ui"
    label = "solid_runs_ag_ui"
    verbose_name = _("AG-UI")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from solid_runs.ag_ui.checks import check_apps

        checks.register(check_apps, "solid_runs")
