"""Who may see runs at all, and who may read what was said in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_permission_codename
from rest_framework.permissions import BasePermission

from solid_runs.permissions import permission_name

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from solid_runs.columns import AnyModel


class CanViewRuns(BasePermission):
    """Lets in who is logged in and has Django's view permission for the view's model."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user or not request.user.is_authenticated:
            return False
        model = run_model(view)
        return has_permission(request.user, model, get_permission_codename("view", model._meta))


def has_permission(user: Any, model: AnyModel, codename: str) -> bool:
    return bool(user and user.has_perm(permission_name(model, codename)))


def run_model(view: Any) -> AnyModel:
    """The model of a view, without running its scope where the class names a queryset."""
    queryset = view.queryset if view.queryset is not None else view.get_queryset()
    model: AnyModel = queryset.model
    return model
