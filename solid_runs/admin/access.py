"""Who may see what: the permissions of a run model, and which of its fields they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models

from solid_runs.admin.links import visible_page_of
from solid_runs.columns import columns_of

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.http import HttpRequest

    from solid_runs.columns import AnyModel

CONTENT: Final = frozenset(
    {
        "error_backtrace",
        "error_message",
        "input_params",
        "input_prompt",
        "output",
        "output_metadata",
    }
)
"""With the log: what only those see who may see the content of runs. Lists never load them."""


def content_fields(model: AnyModel) -> set[str]:
    """The fields of CONTENT that this model has, and its log."""
    columns = columns_of(model)
    return {columns.log.name} | {name for name in CONTENT if name in columns}


def permission_label(model: AnyModel, codename: str) -> str:
    """The permission as it is shown where permissions are granted."""
    for base in model.__mro__:
        declared = dict(base._meta.permissions) if hasattr(base, "_meta") else {}
        if codename in declared:
            return str(declared[codename])
    return codename


def subject_url(site: AdminSite, request: HttpRequest, subject: Any) -> str | None:
    """The admin page of what a run is about, for those who may see it."""
    return visible_page_of(site, request, subject) if isinstance(subject, models.Model) else None
