from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SolidRunsConfig(AppConfig):
    name = "solid_runs"
    label = "solid_runs"
    verbose_name = _("Agent runs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from solid_runs import checks

        checks.register_all()
