"""An admin of rows that others write, of which there may be millions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.urls import path

from solid_runs.admin.display import count_text
from solid_runs.admin.paginator import CappedPaginator
from solid_runs.permissions import permission_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.urls import URLPattern

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class CappedChangeList(ChangeList):
    """Counts no further than its paginator, and sorts by what is offered for it alone."""

    is_capped = False

    def get_results(self, request: HttpRequest) -> None:
        try:
            super().get_results(request)
        except OverflowError as error:  # SQLite, for a number past 64 bits
            raise IncorrectLookupParameters(str(error)) from error
        self.is_capped = getattr(self.paginator, "is_capped", False)

    @property
    def elided_pages(self) -> Iterator[Any]:
        pages: Iterator[Any] = self.paginator.get_elided_page_range(self.page_num)
        return pages

    @property
    def count_text(self) -> str:
        return count_text(self.result_count)

    def get_ordering_field(self, field_name: Any) -> Any:
        """None for a column that is not offered for sorting, whatever the address asks for."""
        if field_name not in (self.sortable_by or ()):
            return None
        return super().get_ordering_field(field_name)


class ReadOnlyAdmin(ModelAdmin):
    """Adds and changes nothing, counts up to a cap, and searches for whole values."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    row_views: ClassVar[Sequence[str]] = ()
    """What can be done with a row: "cancel" is ``cancel_view()`` at ``<key>/cancel/``."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a lifecycle writes these rows, and the status least of all a form."""
        return False

    def get_urls(self) -> list[URLPattern]:
        wrap, named = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path(
                f"<path:object_id>/{name}/",
                wrap(getattr(self, f"{name}_view")),
                name=f"{named}_{name}",
            )
            for name in self.row_views
        ]
        return [*own, *super().get_urls()]

    def _has_perm(self, request: HttpRequest, codename: str) -> bool:
        user: Any = request.user
        return bool(user.has_perm(permission_name(self.model, codename)))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (self.search(request, queryset, term) if term else queryset), False

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Those of the rows that were meant by what was typed, which is not blank."""
        raise NotImplementedError(f"{type(self).__name__} does not say what is searched.")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        if "\0" in object_id:
            return None
        try:
            return super().get_object(request, object_id, from_field)
        except OverflowError:  # SQLite, for a number past 64 bits
            return None
