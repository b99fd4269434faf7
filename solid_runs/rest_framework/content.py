"""Runs whose content takes a permission to see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from solid_runs.rest_framework.permissions import has_permission, run_model

if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    Base = GenericViewSet[Any]
else:
    Base = object


class ContentMixin(Base):
    """A slim serializer for lists, one for a run, and ``content`` in the context of both."""

    detail_serializer_class: type[serializers.BaseSerializer[Any]]

    def may_see_content(self) -> bool:
        """Whether this request may see the content of runs: by default ``view_run_content``."""
        return has_permission(self.request.user, run_model(self), "view_run_content")

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        if self.action == "retrieve":
            return self.detail_serializer_class
        return super().get_serializer_class()

    def get_serializer_context(self) -> dict[str, Any]:
        # A schema is made without a user to ask about.
        seen = not getattr(self, "swagger_fake_view", False) and self.may_see_content()
        return {**super().get_serializer_context(), "content": seen}
