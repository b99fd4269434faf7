"""Admins of rows that only a store writes: shown as they are, acted on through the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.links import list_of, page_of, search_of
from solid_runs.admin.read_only import CappedChangeList, ReadOnlyAdmin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

MOST_FOUND: Final = 1_000
"""Of the rows of another model that a search looks into, the newest ones."""


class StoreRowsAdmin(ReadOnlyAdmin):
    """Shows rows; nothing is written but through the store that they are of."""

    sortable_by: ClassVar[Any] = ()
    template_folder: ClassVar[str]
    """Where the templates of the pages are."""

    class Media:
        css = {"all": ["solid_runs/admin.css"]}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Only what a filter of this admin takes; no column can be asked from the address."""
        offered = self.get_list_filter(request)
        return lookup in {getattr(chosen, "parameter_name", None) for chosen in offered}

    # Page of one row

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return self._page(request, self._visible(request, object_id), extra_context)

    def _page(
        self, request: HttpRequest, row: Any, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        raise NotImplementedError(f"{type(self).__name__} does not say how a row is shown.")

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
            request, f"{self.template_folder}/{template}.html", {**shared, **context}
        )

    def _url_of(self, view: str, row: Any) -> str:
        return page_of(self.admin_site, row, view)

    def _list_url(self) -> str:
        return list_of(self.admin_site, self.model)

    def search_url(self, term: str) -> str:
        return search_of(self.admin_site, self.model, term)


class StoreRunsAdmin(StoreRowsAdmin):
    """Shows the runs of a store, and asks for their end."""

    list_per_page = 50
    ordering: ClassVar[Any] = ("-pk",)
    actions: Any = ("cancel_selected",)
    row_views = ("cancel",)

    def has_cancel_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may cancel runs, or this one."""
        return self._has_perm(request, "cancel_run")

    def has_content_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may see the content of runs, or of this one."""
        return self._has_perm(request, "view_run_content")

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for the end of one run, by POST, and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._visible(request, object_id)
        if not self.has_cancel_permission(request, run):
            raise PermissionDenied
        self._cancel(request, [run])
        return HttpResponseRedirect(self._url_of("change", run))

    @admin.action(permissions=["cancel"], description=_("Cancel the selected runs"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._cancel(request, queryset)

    def _cancel(self, request: HttpRequest, runs: Iterable[Any]) -> None:
        """Ask for the end of those that this person may cancel, and tell what became of it."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a run is cancelled.")


class StoreChangeList(CappedChangeList):
    def filters(self) -> Iterator[tuple[Any, list[Any]]]:
        """The name of each filter and its choices."""
        return ((spec.title, list(spec.choices(self))) for spec in self.filter_specs)


def newest_keys(rows: QuerySet[Any], key: str = "pk") -> list[Any]:
    return list(rows.order_by("-pk").values_list(key, flat=True)[:MOST_FOUND])
