"""The runs of threads for people and programs: list, read, see a conversation, ask to stop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from solid_runs.rest_framework.content import ContentMixin
from solid_runs.rest_framework.permissions import has_permission
from solid_runs.rest_framework.store_rows import StoreRowsViewSet, exact_parameter
from solid_runs.rest_framework.strict import check_parameters
from solid_runs.threads.conversations import (
    CONTENT,
    Conversation,
    conversation,
    judged,
    stall_cutoff,
)
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.records import TERMINAL, Status
from solid_runs.threads.rest_framework.serializers import (
    ThreadConversationSerializer,
    ThreadRunDetailSerializer,
    ThreadRunSerializer,
)
from solid_runs.threads.stores.database import DatabaseRunStore

STATUSES: Final = [status.value for status in Status]

CONDITIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "active": lambda runs: runs.active(),
    "detached": lambda runs: runs.detached(),
    "stalled": lambda runs: runs.stalled(stall_cutoff()),
}


class ThreadRunViewSet(ContentMixin, StoreRowsViewSet):
    """The runs of conversations: list, read, ask to stop.

    A host narrows what a request may see in visible_runs(). It is closed by default: seeing takes
    the model's view permission, the error, the usage and the sandbox ``view_run_content``, asking
    to stop ``cancel_run``.
    """

    queryset = ThreadRun.objects.all()
    serializer_class = ThreadRunSerializer
    detail_serializer_class: type[serializers.BaseSerializer[Any]] = ThreadRunDetailSerializer
    exact: ClassVar[Mapping[str, str]] = {
        "thread": "thread_id",
        "run": "run_id",
        "parent": "parent_run_id",
        "trace": "trace_id",
    }
    own_parameters: ClassVar[Collection[str]] = ("status", "condition")

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that ``self.request`` may see, by their ``scope``; every path goes through here.

        What is left out does not exist for the request: it is the same 404 as one that was never
        there, and no run of a conversation.
        """
        return queryset

    def can_cancel(self, request: Request, run: ThreadRun) -> bool:
        """Whether this request may ask a run to stop that it can see."""
        return has_permission(request.user, ThreadRun, "cancel_run")

    def get_store(self, scope: str) -> DatabaseRunStore:
        """What requests to stop go through: the store of the scope with this key."""
        return DatabaseRunStore.of_key(scope)

    def visible(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        visible: Any = self.visible_runs(queryset)
        runs: QuerySet[Any] = judged(visible)
        return runs if self.action == "retrieve" else runs.defer(*CONTENT)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        if self.action != "list":
            return rows
        condition = self.word_of("condition", CONDITIONS)
        if condition:
            rows = CONDITIONS[condition](rows)
        status = self.word_of("status", STATUSES)
        return rows.filter(status=status) if status else rows

    @extend_schema(
        parameters=[
            OpenApiParameter("status", {"type": "string", "enum": STATUSES}),
            OpenApiParameter(
                "condition",
                {"type": "string", "enum": list(CONDITIONS)},
                description=(
                    "active: running; detached: running, and nobody watches; stalled: running and "
                    "claimed, and its driver is silent."
                ),
            ),
            exact_parameter("thread", "thread"),
            exact_parameter("run", "run"),
            exact_parameter("parent", "run that started others"),
            exact_parameter("trace", "trace"),
        ]
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Runs of all threads, in the order in which they were inserted."""
        return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A run, with its error, its usage and its sandbox for who may see them."""
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(
        parameters=[
            OpenApiParameter("thread", str, required=True, description="Its id, exactly."),
            OpenApiParameter(
                "scope",
                str,
                allow_blank=True,
                description="Needed where runs of several scopes are of such a thread.",
            ),
        ],
        responses=ThreadConversationSerializer,
    )
    @action(detail=False, pagination_class=None)
    def conversation(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The runs of a thread in the order of their start, children after their parents.

        At most 500, those that started last. Without a run of the thread there are none.
        """
        known = {"thread", "scope", str(api_settings.URL_FORMAT_OVERRIDE)}
        check_parameters(request, known, single=known)
        thread_id = self.text_of("thread")
        if not thread_id:
            raise ValidationError({"thread": ["Name a thread."]})
        runs: Any = self.filter_queryset(self.get_queryset())
        scope = self._scope_of(runs.filter(thread_id=thread_id))
        talk = Conversation([], None, False)
        if scope is not None:
            talk = conversation(runs, scope, thread_id)
        context = {
            **self.get_serializer_context(),
            "depths": {one.run.pk: one.depth for one in talk.runs},
            "active": talk.active,
        }
        shown = {
            "thread_id": thread_id,
            "scope": scope,
            "has_earlier": talk.has_earlier,
            "runs": [one.run for one in talk.runs],
        }
        return Response(ThreadConversationSerializer(shown, context=context).data)

    def _scope_of(self, runs: QuerySet[Any]) -> str | None:
        """The scope that was named, or the one that the runs are of; None for no runs."""
        if "scope" in self.request.query_params:
            return self.text_of("scope")
        scopes = list(runs.order_by("scope").values_list("scope", flat=True).distinct()[:2])
        if len(scopes) > 1:
            told = "Runs of several scopes are of such a thread: name one of them."
            raise ValidationError({"scope": [told]})
        return scopes[0] if scopes else None

    @extend_schema(
        request=None,
        responses={
            200: OpenApiResponse(ThreadRunSerializer, "It has ended already."),
            202: OpenApiResponse(ThreadRunSerializer, "Its driver will see the request."),
        },
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def cancel(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask a run to stop. Its driver ends it: until then it goes on."""
        run = self.get_object()
        if not self.can_cancel(request, run):
            raise PermissionDenied
        if run.status in TERMINAL:
            return Response(self.get_serializer(run).data)
        self.get_store(run.scope).request_cancel(run.run_id)
        return Response(self.get_serializer(self.get_object()).data, status=202)
