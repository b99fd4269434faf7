"""The stores of solid_runs.threads over HTTP, for programs that do not speak to the database.

Ids are in the query or the body, never in the path: they may hold slashes and dots. A 404 only
ever means a wrong address; what is not there is ``null``. A host mounts what it offers::

    router.register("thread-runs", RunStoreViewSet, basename="thread-run-store")
"""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from solid_runs.threads.records import RunRecord, Status
from solid_runs.threads.rest_framework import bodies, schemas
from solid_runs.threads.rest_framework.access import StoreViewSet, refuse
from solid_runs.threads.rest_framework.bodies import by_python_name
from solid_runs.threads.stores.database import DatabaseRunStore
from solid_runs.threads.values import UNSET

NEW: Final = {"runId": "run-1", "threadId": "thread-1", "startedAt": 1_768_478_400_000}
RUNNING: Final = {**NEW, "status": "running"}
FINISHED: Final = {
    "status": "completed",
    "finishedAt": 1_768_478_460_000,
    "usage": {"promptTokens": 900, "completionTokens": 120, "totalTokens": 1020},
}

REFUSED: Final = {
    "unknown": "There is no such run.",
    "terminal": "The run has ended.",
    "superseded": "Somebody else has claimed the run, or it is not there.",
    "condition": "Somebody watches the run, or its driver gave a sign of life.",
    "not_as_expected": "There is no such run with what was expected of it.",
}
"""The code of each refusal, and what it says."""


def conflict(code: str) -> Response:
    return refuse(code, REFUSED[code])


def shown(record: RunRecord | None) -> Response:
    return Response(None if record is None else record.to_json())


def listed(records: list[RunRecord]) -> Response:
    return Response([record.to_json() for record in records])


class RunStoreViewSet(StoreViewSet):
    """The runs of conversations: create, update, find, claim."""

    def get_store(self) -> Any:
        return DatabaseRunStore(self.get_scope())

    @extend_schema(
        request=schemas.ThreadStoreNewRunSerializer,
        responses={
            201: OpenApiResponse(schemas.ThreadStoreRunSerializer, "It is new."),
            200: OpenApiResponse(schemas.ThreadStoreRunSerializer, "It was there, and stays so."),
            400: schemas.PROBLEMS,
        },
        examples=[
            OpenApiExample("A new run", NEW, request_only=True),
            OpenApiExample("A run", RUNNING, response_only=True, status_codes=["200", "201"]),
        ],
    )
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Create a run, or get the one of this id as it is stored, whatever is sent.

        A run that has ended is not revived. Send it again when the answer is lost.
        """
        given = by_python_name(self.body(bodies.NEW_RUN))
        created = self.store.create(trace_id=given.pop("traceId", None), **given)
        return Response(created.record.to_json(), status=201 if created.new else 200)

    @extend_schema(
        parameters=[
            schemas.parameter("threadId", schemas.ID, "Runs of this thread."),
            schemas.parameter("parentRunId", schemas.ID, "Runs that this run has started."),
        ],
        responses={200: schemas.ThreadStoreRunSerializer(many=True), 400: schemas.PROBLEMS},
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The runs of a thread, or those that a run has started, in the order of their start.

        Give exactly one of the two.
        """
        asked = self.query(bodies.RUNS)
        if "threadId" in asked:
            return listed(self.store.list_by_thread(asked["threadId"]))
        return listed(self.store.list_by_parent_run(asked["parentRunId"]))

    @extend_schema(
        parameters=[schemas.RUN_ID],
        responses={200: schemas.ThreadStoreRunOrNullSerializer, 400: schemas.PROBLEMS},
    )
    @action(detail=False, url_path="run")
    def run(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A run, or null."""
        return shown(self.store.get(self.query(bodies.ONE_RUN)["runId"]))

    @extend_schema(
        parameters=[
            schemas.RUN_ID,
            schemas.parameter(
                "expectedStatus",
                {"type": "array", "items": {"type": "string", "enum": [*map(str, Status)]}},
                "Write only while the run has one of these, separated by commas.",
            ),
            schemas.parameter(
                "expectedEpoch",
                {"type": "string", "pattern": "^([0-9]+|none)$"},
                "Write only while the run is at this epoch; `none`: never claimed.",
            ),
            schemas.parameter(
                "heldEpoch",
                schemas.EPOCH,
                "Write as the driver that claimed this epoch: an end is not written once "
                "somebody else has claimed the run. Not together with what is expected.",
            ),
        ],
        request=schemas.ThreadStoreRunChangesSerializer,
        responses={
            204: OpenApiResponse(description="Written, or there is no such run."),
            400: schemas.PROBLEMS,
            409: schemas.refused("not_as_expected or superseded"),
        },
        examples=[OpenApiExample("The end", FINISHED, request_only=True)],
    )
    @run.mapping.patch
    def update_run(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Write what the body names; null clears a field, and the rest stays as it is.

        Without a condition any status may follow any other, and a run that is not there is left
        so. Send an update of a status with what it expects: one that arrives late brings nothing
        back then.
        """
        asked = self.query(bodies.PATCHED_RUN)
        patch = by_python_name(self.json(bodies.PATCH))
        run_id, store = asked["runId"], self.store
        if "heldEpoch" in asked:
            held = store.update_as_driver(run_id, asked["heldEpoch"], patch)
            return Response(status=204) if held else conflict("superseded")
        if "expectedStatus" in asked or "expectedEpoch" in asked:
            written = store.update_if(
                run_id,
                patch,
                status=asked.get("expectedStatus"),
                epoch=asked.get("expectedEpoch", UNSET),
            )
            return Response(status=204) if written else conflict("not_as_expected")
        store.update(run_id, patch)
        return Response(status=204)

    @extend_schema(
        parameters=[schemas.parameter("threadId", schemas.ID, "Its id, exactly.", required=True)],
        responses={200: schemas.ThreadStoreRunOrNullSerializer, 400: schemas.PROBLEMS},
    )
    @action(detail=False)
    def active(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The running run of a thread that started last, or null."""
        return shown(self.store.find_active_run(self.query(bodies.ONE_THREAD)["threadId"]))

    @extend_schema(
        parameters=[
            schemas.parameter("now", schemas.TIME, "Milliseconds since 1970.", required=True),
            schemas.parameter("ttlMs", schemas.SPAN, "How long unwatched.", required=True),
            schemas.LIMIT,
        ],
        responses={200: schemas.ThreadStoreRunSerializer(many=True), 400: schemas.PROBLEMS},
    )
    @action(detail=False)
    def reclaimable(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Running runs that nobody has watched for so long, the longest first."""
        asked = self.query(bodies.RECLAIMABLE)
        return listed(
            self.store.list_reclaimable(asked["now"], asked["ttlMs"], limit=asked.get("limit"))
        )

    @extend_schema(
        parameters=[
            schemas.parameter("now", schemas.TIME, "The clock of the server if left out."),
            schemas.parameter("ttlMs", schemas.SPAN, "How long silent; a minute if left out."),
            schemas.LIMIT,
        ],
        responses={200: schemas.ThreadStoreRunSerializer(many=True), 400: schemas.PROBLEMS},
    )
    @action(detail=False)
    def stalled(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Running, claimed runs without a sign of life for so long, the longest silent first."""
        asked = by_python_name(self.query(bodies.STALLED))
        return listed(self.store.list_stalled(**asked))

    @extend_schema(
        request=schemas.ThreadStoreClaimSerializer,
        responses={
            200: schemas.ThreadStoreClaimedSerializer,
            400: schemas.PROBLEMS,
            409: schemas.refused("unknown, terminal, superseded or condition"),
        },
        examples=[OpenApiExample("A claim", {"runId": "run-1"}, request_only=True)],
    )
    @action(detail=False, methods=["post"])
    def claim(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Take a run over that has not ended: whoever drove it before can end it no more.

        Each claim has another epoch. One whose answer is lost holds all the same: to try again,
        send the epoch that the run has now as expectedEpoch.
        """
        given = self.body(bodies.CLAIM)
        claim = self.store.claim(
            given["runId"],
            given.get("detachedBefore"),
            silent_before=given.get("silentBefore"),
            epoch=given.get("expectedEpoch", UNSET),
        )
        return Response({"driverEpoch": claim.epoch}) if claim else conflict(claim.reason)

    @extend_schema(
        request=schemas.ThreadStoreTouchSerializer,
        responses={200: schemas.ThreadStoreHeldSerializer, 400: schemas.PROBLEMS},
    )
    @action(detail=False, methods=["post"])
    def touch(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give a sign of life as the driver of a run."""
        given = self.body(bodies.TOUCH)
        held = self.store.touch(given["runId"], given["driverEpoch"], given.get("now"))
        return Response({"held": held})

    @extend_schema(
        request=schemas.ThreadStoreRunIdSerializer,
        responses={
            204: OpenApiResponse(description="Noted, or there is no such run."),
            400: schemas.PROBLEMS,
        },
    )
    @action(detail=False, methods=["post"])
    def cancel(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Note that somebody wants a run to stop. Its driver ends it."""
        self.store.request_cancel(self.body(bodies.ONE_RUN)["runId"])
        return Response(status=204)
