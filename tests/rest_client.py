"""Callers of the API: who may see runs, who may read them too, and who may not."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from rest_framework.test import APIClient

ROUTES = {
    "PlatformRun": "platform-runs",
    "PlatformJsonRun": "platform-json-runs",
    "AgentOwnedRun": "agent-owned-runs",
    "GeneratorRun": "generator-runs",
    "FreshRun": "fresh-runs",
    "TableRun": "table-runs",
    "FreshRunProxy": "proxy-runs",
    "ChildRun": "child-runs",
    "MinimalRun": "minimal-runs",
}


def url(model: type[Any], pk: object = None, then: str = "") -> str:
    path = f"/api/{ROUTES[model.__name__]}/"
    return path if pk is None else f"{path}{pk}/{then}"


def client(user: Any = None) -> APIClient:
    api = APIClient()
    if user is not None:
        api.force_login(user)
    return api


def user(name: str, *codenames: str) -> Any:
    """The user of this name, with the permissions of the suite's models that start so."""
    made, _ = get_user_model().objects.get_or_create(username=name)
    ours = Permission.objects.filter(content_type__app_label="tests")
    for codename in codenames:
        made.user_permissions.add(*ours.filter(codename__startswith=codename))
    return made


def reader() -> APIClient:
    """May see runs and read what was said."""
    return client(user("reader", "view_"))


def viewer() -> APIClient:
    """May see runs, not what was said."""
    made = user("viewer", "view_")
    made.user_permissions.remove(*Permission.objects.filter(codename="view_run_content"))
    return client(made)


def every_page(api: APIClient, address: str | None, link: str = "next") -> list[dict[str, Any]]:
    """The runs of all pages from an address on."""
    runs: list[dict[str, Any]] = []
    while address:
        response = api.get(address)
        assert response.status_code == 200, response.content
        page = response.json()
        runs = runs + page["results"] if link == "next" else page["results"] + runs
        address = page[link]
    return runs
