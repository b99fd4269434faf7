"""Tables of links on the page of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from solid_runs.admin.display import badge
from solid_runs.admin.links import page_of
from solid_runs.columns import columns_of
from solid_runs.mixin import AgentRunMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin import AdminSite
    from django.http import HttpRequest

MOST_LINKED: Final = 10
"""Of the runs in such a table; there may be more."""


class Line(NamedTuple):
    """One row of a table of links; ``url`` is None for who may not see where it leads."""

    label: str
    url: str | None
    badge: Any
    note: Any = ""


def traced_runs(site: AdminSite, request: HttpRequest, trace_id: str | None) -> Iterator[Line]:
    """The runs of a trace on run models, for those who may see them: a query a model."""
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
