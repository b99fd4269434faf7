"""What both admins of this app have in common: nothing is written but through the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import reverse

from solid_runs.admin.read_only import ReadOnlyAdmin
from solid_runs.ag_ui.inbox.shelves import default_store

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse

    from solid_runs.ag_ui.stores.database import DatabaseStore

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

MOST_FOUND: Final = 1_000
"""Of the runs that a search looks into for interrupts, and the other way round, the newest ones."""


class StoreAdmin(ReadOnlyAdmin):
    """Shows rows that only a store writes; ``get_store()`` is that store."""

    sortable_by: ClassVar[Any] = ()

    class Media:
        css = {"all": ["solid_runs/admin.css", "solid_runs_ag_ui/admin.css"]}

    def get_store(self) -> DatabaseStore:
        """What answers, releases and cancels go through."""
        return default_store()

    def decided_by(self, request: HttpRequest) -> str:
        """Who is told to have answered, released or cancelled."""
        user: Any = request.user
        return str(user.get_username())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Only what a filter of this admin takes; no column can be asked from the address."""
        offered = self.get_list_filter(request)
        return lookup in {getattr(chosen, "parameter_name", None) for chosen in offered}

    def _visible(self, request: HttpRequest, object_id: str) -> Any:
        """The row of an address; 403 for who may see none, 404 for one that is not there."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    # Pages

    def _render(
        self, request: HttpRequest, template: str, row: Any, context: dict[str, Any]
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "change": True,
            "has_view_permission": True,
            "is_popup": False,
            "media": self.media,
            "preserved_filters": self.get_preserved_filters(request),
        }
        return TemplateResponse(
            request, f"admin/solid_runs_ag_ui/{template}.html", {**shared, **context}
        )

    def _url_of(self, view: str, row: Any) -> str:
        return page_of(self.admin_site, row, view)

    def _list_url(self) -> str:
        return _list_of(self.admin_site, self.model)


def page_of(site: admin.AdminSite, row: Model, view: str = "change") -> str:
    opts = row._meta
    name = f"admin:{opts.app_label}_{opts.model_name}_{view}"
    return reverse(name, args=[quote(row.pk)], current_app=site.name)


def visible_page_of(site: admin.AdminSite, request: HttpRequest, row: Model | None) -> str | None:
    """The page of a row, for those who may see it."""
    if row is None or not site.is_registered(type(row)):
        return None
    if not site.get_model_admin(type(row)).has_view_permission(request, row):
        return None
    return page_of(site, row)


def visible_list_of(site: admin.AdminSite, request: HttpRequest, model: type[Model]) -> str | None:
    """The list of a model, for those who may see it."""
    if not site.is_registered(model):
        return None
    if not site.get_model_admin(model).has_view_permission(request):
        return None
    return _list_of(site, model)


def visible_search_of(
    site: admin.AdminSite, request: HttpRequest, model: type[Model], term: str
) -> str | None:
    """The list of a model, searched for this, for those who may see it."""
    listed = visible_list_of(site, request, model)
    return None if listed is None else search_of(site, model, term)


def search_of(site: admin.AdminSite, model: type[Model], term: str) -> str:
    return f"{_list_of(site, model)}?{urlencode({SEARCH_VAR: term})}"


def _list_of(site: admin.AdminSite, model: type[Model]) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    return reverse(name, current_app=site.name)


def newest_keys(rows: QuerySet[Any], key: str = "pk") -> list[Any]:
    return list(rows.order_by("-pk").values_list(key, flat=True)[:MOST_FOUND])
