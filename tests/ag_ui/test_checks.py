from __future__ import annotations

from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings


def ids() -> list[str | None]:
    return [message.id for message in run_checks(tags=["solid_runs"])]


def test_ag_ui_without_the_core_is_an_error_that_says_what_to_add() -> None:
    apps = [name for name in settings.INSTALLED_APPS if name not in ("solid_runs", "tests")]
    with override_settings(INSTALLED_APPS=apps):
        assert "solid_runs.E030" in ids()


def test_ag_ui_beside_the_core_has_nothing_to_say() -> None:
    assert "solid_runs.E030" not in ids()
