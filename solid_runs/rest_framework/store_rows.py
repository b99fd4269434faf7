"""Viewsets over rows that only a store writes: closed by default, with strict parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import viewsets
from rest_framework.exceptions import NotFound, ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.settings import api_settings

from solid_runs.columns import AnyModel
from solid_runs.rest_framework.pagination import RunPagination
from solid_runs.rest_framework.parameters import parse_key
from solid_runs.rest_framework.permissions import CanViewRuns
from solid_runs.rest_framework.strict import check_parameters


class StorePagination(RunPagination):
    """By primary key, which is the order in which the rows were inserted."""

    def keyset(self, model: AnyModel) -> tuple[str, ...]:
        return ("pk",)


class StoreRowsViewSet(viewsets.ReadOnlyModelViewSet[Any]):
    """Shows the rows of a store to those who have the model's view permission.

    A query parameter that means nothing is a 400; name those of filter backends of your own in
    ``extra_parameters``.
    """

    permission_classes = [CanViewRuns]
    filter_backends: Any = []
    pagination_class = StorePagination
    exact: ClassVar[Mapping[str, str]] = {}
    """Query parameters of a list that are compared with a column."""
    own_parameters: ClassVar[Collection[str]] = ()
    extra_parameters: Collection[str] = ()

    def visible(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that the request may see, with what is read of them; each viewset has its own."""
        raise NotImplementedError(f"{type(self).__name__} does not say what may be seen.")

    def get_queryset(self) -> QuerySet[Any]:
        rows = super().get_queryset()
        # A schema is made without a user to ask about.
        return rows.none() if getattr(self, "swagger_fake_view", False) else self.visible(rows)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        if self.action != "list":
            return rows
        asked = {
            column: self.text_of(name)
            for name, column in self.exact.items()
            if self.request.query_params.get(name)
        }
        return rows.filter(**asked)

    def text_of(self, name: str) -> str:
        text = self.request.query_params.get(name) or ""
        if "\0" in text:
            raise ValidationError({name: ["This holds a NUL character."]})
        return text

    def word_of(self, name: str, words: Collection[str], default: str = "") -> str:
        """One of the words, or the default where the parameter is absent or empty."""
        word = self.text_of(name)
        if word and word not in words:
            raise ValidationError({name: [f"Use one of {', '.join(words)}."]})
        return word or default

    def get_object(self) -> Any:
        """The row of the URL; one 404 for all that this request may not see."""
        rows = self.filter_queryset(self.get_queryset())
        model: type[Model] = rows.model
        try:
            key = parse_key(model._meta.pk, self.kwargs["pk"], rows.db)
        except ValueError:
            raise NotFound from None
        row = rows.order_by().filter(pk=key).first()
        if row is None:
            raise NotFound
        self.check_object_permissions(self.request, row)
        return row

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action == "list":
            pages = getattr(self.paginator, "parameters", ())
            known = {*self.exact, *self.own_parameters, *pages, *self.extra_parameters}
            known.add(str(api_settings.URL_FORMAT_OVERRIDE))
            check_parameters(request, known, single=known)

    def body(self) -> Any:
        """What was posted; a 400 for JSON that is nested too deeply to be read."""
        try:
            return self.request.data
        except RecursionError:
            raise ParseError("This is nested too deeply.") from None


def exact_parameter(name: str, what: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, description=f"The id of a {what}, exactly.")
