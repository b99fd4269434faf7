"""What it takes to see what runs said, and to cancel them: one answer for the admin and the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from solid_runs.columns import AnyModel

PERMISSIONS: Final[list[tuple[str, Any]]] = [
    ("view_run_content", _("Can see what runs were asked and said")),
    ("cancel_run", _("Can cancel runs")),
]
"""Beside Django's own; a model that writes a Meta of its own inherits that of its shape."""


def permission_name(model: AnyModel, codename: str) -> str:
    """``app_label.codename``, in the app of the model that declares the permission.

    A proxy and a child of multi-table inheritance do not inherit the permissions of their parent.
    """
    for base in model.__mro__:
        meta = getattr(base, "_meta", None)
        if meta is None or meta.abstract:
            continue
        if codename in (declared for declared, _name in meta.permissions):
            return f"{meta.app_label}.{codename}"
    return f"{model._meta.app_label}.{codename}"
