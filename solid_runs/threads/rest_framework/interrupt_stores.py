"""The store of interrupts over HTTP, as stores.py has that of runs."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from solid_runs.threads.exceptions import BatchRejected
from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.rest_framework import bodies, schemas
from solid_runs.threads.rest_framework.access import StoreViewSet, refuse
from solid_runs.threads.values import UNSET

ASKED: Final = {
    "interruptId": "interrupt-1",
    "runId": "run-1",
    "threadId": "thread-1",
    "requestedAt": 1_768_478_400_000,
    "payload": {"question": "Delete 12 files?"},
}
ANSWERED: Final = {
    "entries": [
        {"interruptId": "interrupt-1", "status": "resolved", "response": {"approved": True}},
        {"interruptId": "interrupt-2", "status": "cancelled"},
    ]
}
DONE: Final = OpenApiResponse(description="Written, or there is no such interrupt.")


class InterruptStoreViewSet(StoreViewSet):
    """What runs asked people, and the answers."""

    def get_store(self) -> Any:
        return DatabaseInterruptStore(self.get_scope())

    @extend_schema(
        request=schemas.ThreadStoreNewInterruptSerializer,
        responses={
            204: OpenApiResponse(description="It is there, as it was if it was there before."),
            400: schemas.PROBLEMS,
        },
        examples=[OpenApiExample("A question", ASKED, request_only=True)],
    )
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Create an interrupt; the one of this id stays as it is if there is one."""
        given = self.body(bodies.NEW_INTERRUPT)
        self.store.create(
            given["interruptId"],
            given["runId"],
            given["threadId"],
            given["requestedAt"],
            given["payload"],
        )
        return Response(status=204)

    @extend_schema(
        parameters=[
            schemas.parameter("threadId", schemas.ID, "Interrupts of this thread."),
            schemas.parameter("runId", schemas.ID, "Interrupts of this run."),
            schemas.parameter(
                "pending", {"type": "boolean", "default": False}, "Only pending ones."
            ),
        ],
        responses={200: schemas.ThreadStoreInterruptSerializer(many=True), 400: schemas.PROBLEMS},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The interrupts of a thread or of a run, in the order in which they were asked.

        Give exactly one of the two.
        """
        asked = self.query(bodies.INTERRUPTS)
        store, pending = self.store, asked.get("pending", False)
        if "threadId" in asked:
            find = store.list_pending if pending else store.list_by_thread
            found = find(asked["threadId"])
        else:
            find = store.list_pending_by_run if pending else store.list_by_run
            found = find(asked["runId"])
        return Response([one.to_json() for one in found])

    @extend_schema(
        parameters=[schemas.INTERRUPT_ID],
        responses={200: schemas.ThreadStoreInterruptOrNullSerializer, 400: schemas.PROBLEMS},
    )
    @action(detail=False)
    def interrupt(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """An interrupt, or null."""
        found = self.store.get(self.query(bodies.ONE_INTERRUPT)["interruptId"])
        return Response(None if found is None else found.to_json())

    @extend_schema(
        request=schemas.ThreadStoreResolutionSerializer,
        responses={204: DONE, 400: schemas.PROBLEMS},
    )
    @action(detail=False, methods=["post"])
    def resolve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer an interrupt, over any answer before. Null is an answer, none is another."""
        given = self.body(bodies.RESOLVE)
        self.store.resolve(given["interruptId"], given.get("response", UNSET))
        return Response(status=204)

    @extend_schema(
        request=schemas.ThreadStoreInterruptIdSerializer,
        responses={204: DONE, 400: schemas.PROBLEMS},
    )
    @action(detail=False, methods=["post"])
    def cancel(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Cancel an interrupt, over any answer before."""
        self.store.cancel(self.body(bodies.ONE_INTERRUPT)["interruptId"])
        return Response(status=204)

    @extend_schema(
        request=schemas.ThreadStoreBatchSerializer,
        responses={
            204: OpenApiResponse(description="All of them were written."),
            400: schemas.PROBLEMS,
            409: OpenApiResponse(
                schemas.ThreadStoreRejectedBatchSerializer, "Nothing was written."
            ),
        },
        examples=[OpenApiExample("Two answers", ANSWERED, request_only=True)],
    )
    @action(detail=False, methods=["post"])
    def commit(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer all of these, or none: each must be pending and be named once."""
        try:
            self.store.commit_batch(self.body(bodies.COMMIT)["entries"])
        except BatchRejected as error:
            return refuse("batch_rejected", str(error), interruptIds=error.interrupt_ids)
        return Response(status=204)
