from __future__ import annotations

from django.apps.registry import Apps

from solid_runs.admin import RunAdmin
from solid_runs.permissions import PERMISSIONS, permission_name
from solid_runs.rest_framework.permissions import has_permission
from tests.models import ChildRun, FreshRun, FreshRunProxy, MinimalRun


class ProxyElsewhere(FreshRun):
    """A proxy in another app than the model that declares the permissions."""

    class Meta:
        proxy = True
        app_label = "elsewhere"
        apps = Apps()


class Reader:
    def has_perm(self, name: str) -> bool:
        return name in {f"tests.{codename}" for codename, _label in PERMISSIONS}


def test_a_permission_is_that_of_the_app_whose_model_declares_it() -> None:
    for model in (FreshRun, FreshRunProxy, ChildRun, MinimalRun, ProxyElsewhere):
        assert permission_name(model, "cancel_run") == "tests.cancel_run"


def test_one_of_its_own_is_asked_in_the_model_s_own_app() -> None:
    name = permission_name(ProxyElsewhere, "view_proxyelsewhere")
    assert name == "elsewhere.view_proxyelsewhere"


def test_the_admin_and_the_api_give_the_same_answer() -> None:
    request = type("Request", (), {"user": Reader()})()
    admin = RunAdmin(ProxyElsewhere, None)  # type: ignore[arg-type]

    assert admin.has_content_permission(request) is True
    assert has_permission(Reader(), ProxyElsewhere, "view_run_content") is True
