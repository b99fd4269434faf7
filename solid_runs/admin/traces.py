"""What shares a trace, whichever registered model it is a row of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from solid_runs.admin.display import badge
from solid_runs.admin.lines import MOST_LINKED, Line
from solid_runs.admin.links import page_of
from solid_runs.admin.store_rows import StoreRunsAdmin
from solid_runs.columns import columns_of
from solid_runs.mixin import AgentRunMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin import AdminSite
    from django.db.models import Model
    from django.http import HttpRequest


def traced_rows(
    site: AdminSite, request: HttpRequest, trace_id: str | None, *, besides: Model | None = None
) -> Iterator[Line]:
    """The runs of a trace, on run models and of stores, for those who may see them.

    A query a model, and the newest of each. ``besides``: the row whose page it is. The admin of the
    runs of a store has a column ``status_badge``.
    """
    yield from _on_run_models(site, request, trace_id)
    if not trace_id:
        return
    for model, registered in site._registry.items():
        if not isinstance(registered, StoreRunsAdmin) or not _has_a_trace(model):
            continue
        if not registered.has_view_permission(request):
            continue
        admin: Any = registered
        rows = admin.get_queryset(request).filter(trace_id=trace_id)
        if isinstance(besides, model):
            rows = rows.exclude(pk=besides.pk)
        for row in rows.order_by("-pk")[:MOST_LINKED]:
            name = f"{capfirst(str(model._meta.verbose_name))} {row.run_id}"
            yield Line(name, page_of(site, row), admin.status_badge(row))


def _has_a_trace(model: type[Model]) -> bool:
    return any(field.name == "trace_id" for field in model._meta.concrete_fields)


def _on_run_models(site: AdminSite, request: HttpRequest, trace_id: str | None) -> Iterator[Line]:
    if not trace_id:
        return
    for model, admin in site._registry.items():
        if not issubclass(model, AgentRunMixin) or "trace_id" not in columns_of(model):
            continue
        if not admin.has_view_permission(request):
            continue
        try:
            trace = columns_of(model).fields["trace_id"].to_python(trace_id)
        except (ValidationError, ValueError, TypeError):
            continue
        runs: Any = admin.get_queryset(request)
        found = runs.filter(trace_id=trace).only("pk", "status")
        for one in found.order_by("-pk")[:MOST_LINKED]:
            name = f"{capfirst(str(model._meta.verbose_name))} {one.pk}"
            yield Line(name, page_of(site, one), badge(one.status))
