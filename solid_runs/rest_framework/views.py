"""A read-only API over the runs of one model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import models
from django.db.models import F, QuerySet
from django.db.models.functions import Substr
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from solid_runs.columns import AnyModel, columns_of
from solid_runs.exceptions import RunNotFound
from solid_runs.mixin import AgentRunMixin
from solid_runs.rest_framework.content import ContentMixin
from solid_runs.rest_framework.entries import SolidRunEventsSerializer, shown_entry
from solid_runs.rest_framework.filters import RunFilterBackend, RunFilterSet
from solid_runs.rest_framework.pagination import RunPagination
from solid_runs.rest_framework.parameters import parse_count, parse_key
from solid_runs.rest_framework.permissions import CanViewRuns, run_model
from solid_runs.rest_framework.serializers import (
    HEADS,
    SolidRunDetailSerializer,
    SolidRunSerializer,
)
from solid_runs.rest_framework.strict import check_parameters
from solid_runs.subjects import prefetch_subjects

BIG = (models.TextField, models.JSONField, models.BinaryField)
"""Kinds of columns that may hold much, and that no list reads."""

DEFAULT_EVENTS = 100
MAX_EVENTS = 1000
LARGEST_SEQ = 2**63 - 1


class RunViewSet(ContentMixin, viewsets.ReadOnlyModelViewSet[AgentRunMixin]):
    """Lists runs, shows one in full, and its events; nothing can be changed.

    A host states ``queryset`` and narrows it to what a request may see in visible_runs(). It is
    closed by default: a user needs the model's view permission, and ``view_run_content`` for what
    was asked and said, which is null otherwise. A query parameter that means nothing is a 400;
    name those of filter backends and paginations of your own in ``extra_parameters``.
    """

    permission_classes = [CanViewRuns]
    filter_backends = [RunFilterBackend]
    filterset_class = RunFilterSet
    pagination_class = RunPagination
    serializer_class = SolidRunSerializer
    detail_serializer_class: type[serializers.BaseSerializer[Any]] = SolidRunDetailSerializer
    extra_parameters: Collection[str] = ()

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those of the runs that ``self.request`` may see; every path goes through here.

        What is left out does not exist for the request: it is the same 404 as a run that was
        never there. Narrow with conditions that give no run twice, Exists() rather than a join.
        """
        return queryset

    def get_queryset(self) -> QuerySet[Any]:
        runs = super().get_queryset()
        # A schema is made without a user to ask about.
        return runs.none() if getattr(self, "swagger_fake_view", False) else self.visible_runs(runs)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Runs, slim: an excerpt of the prompt and the error, no output, metadata or events."""
        runs = slim(self.filter_queryset(self.get_queryset()), heads=self.may_see_content())
        page = self.paginate_queryset(runs)
        shown = list(runs) if page is None else page
        prefetch_subjects(shown)
        data = self.get_serializer(shown, many=True).data
        return Response(data) if page is None else self.get_paginated_response(data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A run in full, but for its events."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "after",
                {"type": "integer", "format": "int64", "minimum": 0, "default": 0},
                description="Only events past this place in the log.",
            ),
            OpenApiParameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": MAX_EVENTS, "default": DEFAULT_EVENTS},
                description="The most events to return.",
            ),
        ],
        responses=SolidRunEventsSerializer,
    )
    @action(detail=True, pagination_class=None)
    def events(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The events of a run past a place in its log, oldest first.

        Ask again with `after` set to `next_after`; once `finished` is true and `has_more` false,
        the run has said everything.
        """
        after = self._count("after", 0, 0, LARGEST_SEQ)
        limit = self._count("limit", DEFAULT_EVENTS, 1, MAX_EVENTS)
        run = self.get_object()
        try:
            numbered = run.events_after(after, limit + 1)
        except RunNotFound:
            raise NotFound from None
        content = self.may_see_content()
        page = numbered[:limit]
        data = {
            "status": str(run.status),
            "finished": run.finished,
            "events": [{"seq": seq, "entry": shown_entry(entry, content)} for seq, entry in page],
            "next_after": page[-1].seq if page else after,
            "has_more": len(numbered) > limit,
        }
        return Response(data)

    def get_object(self) -> Any:
        """The run of the URL; one 404 for all that this request may not see."""
        # A filter backend of the host's may be what keeps tenants apart.
        runs = self.filter_queryset(self.get_queryset())
        meta = run_model(self)._meta
        named = self.lookup_field
        field: Any = meta.pk if named == "pk" else meta.get_field(named)
        try:
            key = parse_key(field, self.kwargs[self.lookup_url_kwarg or named], runs.db)
        except ValueError:
            raise NotFound from None
        found = without_log(runs) if self.action == "retrieve" else slim(runs)
        run = next(iter(found.order_by().filter(**{named: key})[:1]), None)
        if run is None:
            raise NotFound
        self.check_object_permissions(self.request, run)
        return run

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = self.known_parameters()
        if known is not None:
            check_parameters(request, known, single=SINGLE)

    def known_parameters(self) -> set[str] | None:
        """The query parameters of this action; None for an action of the host's, which asks not."""
        own: dict[str, Collection[str]] = {
            "retrieve": (),
            "events": ("after", "limit"),
            "list": getattr(self.paginator, "parameters", ()),
        }
        if self.action not in own:
            return None
        known = {*own[self.action], *self.extra_parameters, str(api_settings.URL_FORMAT_OVERRIDE)}
        if self.action == "list":
            runs = run_model(self)._base_manager.none()
            for backend in self.filter_backends:
                if issubclass(backend, RunFilterBackend):
                    filterset = backend().get_filterset_class(self, runs)
                    known |= set(filterset.base_filters if filterset else ())
        return known

    def _count(self, name: str, default: int, low: int, high: int) -> int:
        text = self.request.query_params.get(name)
        try:
            return parse_count(text, low, high) if text else default
        except ValueError as error:
            raise ValidationError({name: [str(error)]}) from None


SINGLE = frozenset(
    {"action", "after", "agent", "created_after", "created_before", "cursor", "limit"}
    | {"ordering", "trace"}
)
"""Parameters of ours that make no sense twice."""


def slim(runs: QuerySet[Any], heads: bool = False) -> QuerySet[Any]:
    """Runs without their big columns, with ``heads`` the beginnings of those that are previewed."""
    model: AnyModel = runs.model
    columns = columns_of(model)
    if heads:
        runs = runs.annotate(
            **{
                head: Substr(F(name), 1, limit + 1)
                for head, (name, limit) in HEADS.items()
                if name in columns
            }
        )
    fields = model._meta.concrete_fields
    return runs.defer(*(field.name for field in fields if isinstance(field, BIG)))


def without_log(runs: QuerySet[Any]) -> QuerySet[Any]:
    model: AnyModel = runs.model
    return runs.defer(columns_of(model).log.name)
