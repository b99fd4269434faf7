"""The inbox and the runs over the API: read, answer, cancel; everything else is the store's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from solid_runs.ag_ui.exceptions import ResumeRejectedError
from solid_runs.ag_ui.inbox.shelves import SHELVES, WAITING, answer, shelf
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import Status
from solid_runs.ag_ui.rest_framework.serializers import (
    InterruptAnswerSerializer,
    RefusedInterruptAnswerSerializer,
    ReservedRunDetailSerializer,
    ReservedRunSerializer,
    RunInterruptSerializer,
)
from solid_runs.ag_ui.rest_framework.viewsets import StoreViewSet
from solid_runs.rest_framework.content import ContentMixin
from solid_runs.rest_framework.permissions import has_permission
from solid_runs.rest_framework.store_rows import exact_parameter

STATUSES: Final = [status.value for status in Status]


class InterruptViewSet(StoreViewSet):
    """What runs ask: list what waits, read it, answer it.

    A host narrows what a request may see in visible_interrupts(), and who may answer in
    can_decide(). It is closed by default: seeing takes the model's view permission, answering
    ``decide_interrupt``.
    """

    queryset = RunInterrupt.objects.all()
    serializer_class = RunInterruptSerializer
    exact: ClassVar[Mapping[str, str]] = {"thread": "run__thread_id", "run": "run__run_id"}
    own_parameters: ClassVar[Collection[str]] = ("state",)

    def visible_interrupts(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that ``self.request`` may see; every path goes through here.

        What is left out does not exist for the request: it is the same 404 as one that was never
        there. The scope of the run that asks is ``run__scope``.
        """
        return queryset

    def can_decide(self, request: Request, interrupt: RunInterrupt) -> bool:
        """Whether this request may answer an interrupt that it can see."""
        return has_permission(request.user, RunInterrupt, "decide_interrupt")

    def visible(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        interrupts: Any = self.visible_interrupts(queryset)
        shown: QuerySet[Any] = interrupts.with_stale().select_related("run")
        return shown.defer("run__snapshot", "run__failure")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        if self.action != "list":
            return rows
        state = self.word_of("state", SHELVES, WAITING)
        return shelf(rows, state, self.get_store().now())

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": self.get_store().now()}

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "state",
                {"type": "string", "enum": list(SHELVES), "default": WAITING},
                description=(
                    "waiting: may still be answered; attention: a run acted on the answer and "
                    "came to no good end; expired, stale: open, but too late; answered; open, "
                    "held, free, settled: by the state of the answer; all."
                ),
            ),
            exact_parameter("thread", "thread"),
            exact_parameter("run", "run that asks"),
        ]
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """What runs ask, those that wait for an answer unless another state is named."""
        return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """What a run asks, and the answer if there is one."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(
        request=InterruptAnswerSerializer,
        responses={200: RunInterruptSerializer, 409: RefusedInterruptAnswerSerializer},
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def answer(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer an interrupt. The next run of the thread takes the answer.

        While another interrupt of the same run can still be answered, no run takes it. The first
        answer wins; the same one again changes nothing.
        """
        interrupt = self.get_object()
        if not self.can_decide(request, interrupt):
            raise PermissionDenied
        given = InterruptAnswerSerializer(data=self.body())
        given.is_valid(raise_exception=True)
        try:
            answer(self.get_store(), interrupt, given.validated_data, self.decided_by())
        except ResumeRejectedError as error:
            now = self.get_serializer(self.get_object()).data
            refusal = {"code": error.code, "message": str(error), "interrupt": now}
            return Response(refusal, status=409)
        return Response(self.get_serializer(self.get_object()).data)


class ReservedRunViewSet(ContentMixin, StoreViewSet):
    """The runs that were reserved: list, read, ask for their end.

    A host narrows what a request may see in visible_runs(). It is closed by default: seeing takes
    the model's view permission, the state and the failure ``view_run_content``, cancelling
    ``cancel_run``.
    """

    queryset = ReservedRun.objects.all()
    serializer_class = ReservedRunSerializer
    detail_serializer_class: type[serializers.BaseSerializer[Any]] = ReservedRunDetailSerializer
    exact: ClassVar[Mapping[str, str]] = {
        "thread": "thread_id",
        "run": "run_id",
        "trace": "trace_id",
    }
    own_parameters: ClassVar[Collection[str]] = ("status",)

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that ``self.request`` may see, by their ``scope``; every path goes through here."""
        return queryset

    def can_cancel(self, request: Request, run: ReservedRun) -> bool:
        """Whether this request may cancel a run that it can see."""
        return has_permission(request.user, ReservedRun, "cancel_run")

    def visible(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        runs = self.visible_runs(queryset)
        return runs if self.action == "retrieve" else runs.defer("snapshot", "failure")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        status = self.word_of("status", STATUSES) if self.action == "list" else ""
        return rows.filter(status=status) if status else rows

    @extend_schema(
        parameters=[
            OpenApiParameter("status", {"type": "string", "enum": STATUSES}),
            exact_parameter("thread", "thread"),
            exact_parameter("run", "run"),
            exact_parameter("trace", "trace"),
        ]
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Runs, without their state."""
        return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A run, with its state and its failure for who may see them."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(
        request=None,
        responses={
            200: OpenApiResponse(ReservedRunSerializer, "It has ended, or its questions have."),
            202: OpenApiResponse(ReservedRunSerializer, "Its owner will see the request."),
        },
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def cancel(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask for the end of a run.

        One that was not started, or whose owner is silent, ends at once; of an interrupted one the
        open interrupts are cancelled.
        """
        run = self.get_object()
        if not self.can_cancel(request, run):
            raise PermissionDenied
        result = self.get_store().request_cancel(
            run.scope, run.thread_id, run.run_id, by=self.decided_by()
        )
        if result is None:
            raise NotFound
        data = self.get_serializer(self.get_object()).data
        return Response(data, status=200 if result.ended else 202)
