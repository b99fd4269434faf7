from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AGUIConfig(AppConfig):
    name = "solid_runs.ag_ui"
    label = "solid_runs_ag_ui"
    verbose_name = _("AG-UI runs")
    default_auto_field = "django.db.models.BigAutoField"
