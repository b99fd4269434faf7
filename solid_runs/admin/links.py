"""Where the admin shows a row or a model, for those who may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import SEARCH_VAR
from django.urls import reverse

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.db.models import Model
    from django.http import HttpRequest


def page_of(site: AdminSite, row: Model, view: str = "change") -> str:
    opts = row._meta
    name = f"admin:{opts.app_label}_{opts.model_name}_{view}"
    return reverse(name, args=[quote(row.pk)], current_app=site.name)


def list_of(site: AdminSite, model: type[Model]) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    return reverse(name, current_app=site.name)


def search_of(site: AdminSite, model: type[Model], term: str) -> str:
    return f"{list_of(site, model)}?{urlencode({SEARCH_VAR: term})}"


def visible_page_of(site: AdminSite, request: HttpRequest, row: Model | None) -> str | None:
    """The page of a row, for those who may see it."""
    if row is None or not site.is_registered(type(row)):
        return None
    if not site.get_model_admin(type(row)).has_view_permission(request, row):
        return None
    return page_of(site, row)


def visible_list_of(site: AdminSite, request: HttpRequest, model: type[Model]) -> str | None:
    """The list of a model, for those who may see it."""
    if not site.is_registered(model):
        return None
    if not site.get_model_admin(model).has_view_permission(request):
        return None
    return list_of(site, model)


def visible_search_of(
    site: AdminSite, request: HttpRequest, model: type[Model], term: str
) -> str | None:
    """The list of a model, searched for this, for those who may see it."""
    listed = visible_list_of(site, request, model)
    return None if listed is None else search_of(site, model, term)
