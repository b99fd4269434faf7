"""The bodies of the stores as the schema shows them. Nothing is read or written through these:
bodies.py checks what comes in, and a record knows its JSON.
"""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema_field,
)
from rest_framework import serializers

from solid_runs.identifiers import MOST_CHARS
from solid_runs.rest_framework.fields import DocumentField, NamedWords, WordField
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.records import Status
from solid_runs.threads.rest_framework.bodies import DECISIONS
from solid_runs.threads.values import LARGEST, LARGEST_EPOCH, MOST_KEY_CHARS


class StatusField(WordField):
    words = tuple(Status)


class InterruptStatusField(WordField):
    words = tuple(InterruptStatus)


class DecisionField(WordField):
    words = DECISIONS


class StatusSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = StatusField, "ThreadStoreRunStatus"


class InterruptStatusSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = InterruptStatusField, "ThreadStoreInterruptStatus"


class DecisionSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = DecisionField, "ThreadStoreDecisionStatus"


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    pass


def identifier(**options: Any) -> serializers.CharField:
    return serializers.CharField(min_length=1, max_length=MOST_CHARS, **options)


def milliseconds(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=-LARGEST, max_value=LARGEST, **options)


def epoch(least: int = 0, **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=least, max_value=LARGEST_EPOCH, **options)


class ThreadStoreErrorSerializer(serializers.Serializer[Any]):
    """Why a run failed."""

    message = serializers.CharField(help_text="Cut when it is very long.")
    code = serializers.CharField(required=False, max_length=MOST_CHARS)


class ThreadStoreRunSerializer(serializers.Serializer[Any]):
    """A run. Times are milliseconds since 1970; what is absent is left out, never null."""

    runId = identifier()
    threadId = identifier()
    status = StatusField()
    startedAt = milliseconds()
    parentRunId = identifier(required=False)
    subagentRunId = identifier(required=False)
    name = serializers.CharField(required=False, max_length=MOST_CHARS)
    finishedAt = milliseconds(required=False)
    error = ThreadStoreErrorSerializer(required=False)
    usage = ObjectField(required=False, help_text="What the model counted.")
    sandboxKey = serializers.CharField(required=False, max_length=MOST_KEY_CHARS)
    detachedSince = milliseconds(required=False, help_text="Absent while somebody watches.")
    cancelRequested = serializers.BooleanField(required=False)
    driverEpoch = epoch(required=False, help_text="Counts the claims; absent: never claimed.")


class ThreadStoreRunOrNullSerializer(ThreadStoreRunSerializer):
    """A run, or null where there is none."""


class ThreadStoreNewRunSerializer(serializers.Serializer[Any]):
    """A run to create, unless its id is there already."""

    runId = identifier()
    threadId = identifier()
    startedAt = milliseconds()
    status = StatusField(required=False, allow_null=True, help_text="running if left out.")
    parentRunId = identifier(required=False, allow_null=True)
    subagentRunId = identifier(required=False, allow_null=True)
    name = serializers.CharField(required=False, allow_null=True, max_length=MOST_CHARS)
    traceId = identifier(
        required=False, allow_null=True, help_text="Joins rows of a trace; no part of the record."
    )


class ThreadStoreRunChangesSerializer(serializers.Serializer[Any]):
    """What to write. Null clears a field; what is left out stays as it is."""

    status = StatusField(required=False)
    finishedAt = milliseconds(required=False, allow_null=True)
    error = ThreadStoreErrorSerializer(required=False, allow_null=True)
    usage = ObjectField(required=False, allow_null=True)
    sandboxKey = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=MOST_KEY_CHARS
    )
    detachedSince = milliseconds(required=False, allow_null=True)
    cancelRequested = serializers.BooleanField(required=False, allow_null=True)
    driverEpoch = epoch(required=False, allow_null=True)


class ThreadStoreRunIdSerializer(serializers.Serializer[Any]):
    runId = identifier()


class ThreadStoreClaimSerializer(serializers.Serializer[Any]):
    """A run to take over, and what must hold of it."""

    runId = identifier()
    detachedBefore = milliseconds(
        required=False, allow_null=True, help_text="Nobody watches since then or longer."
    )
    silentBefore = milliseconds(
        required=False, allow_null=True, help_text="Its driver gave no sign of life since then."
    )
    expectedEpoch = epoch(
        required=False, allow_null=True, help_text="It is at this epoch; null: never claimed."
    )


class ThreadStoreClaimedSerializer(serializers.Serializer[Any]):
    driverEpoch = epoch(1, help_text="Send it as heldEpoch with each update.")


class ThreadStoreTouchSerializer(serializers.Serializer[Any]):
    """A sign of life of a driver."""

    runId = identifier()
    driverEpoch = epoch()
    now = milliseconds(
        required=False, allow_null=True, help_text="The clock of the server if left out."
    )


class ThreadStoreHeldSerializer(serializers.Serializer[Any]):
    held = serializers.BooleanField(
        help_text="False once the run has ended or somebody else has claimed it."
    )


class ThreadStoreRefusalSerializer(serializers.Serializer[Any]):
    """Why nothing was written."""

    code = serializers.CharField()
    message = serializers.CharField()


class ThreadStoreRejectedBatchSerializer(ThreadStoreRefusalSerializer):
    """Why no entry of a batch was taken; ``code`` is batch_rejected."""

    interruptIds = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it failed over."
    )


class ThreadStoreInterruptSerializer(serializers.Serializer[Any]):
    """What a run asked. What is absent is left out; a response may be null."""

    interruptId = identifier()
    runId = identifier()
    threadId = identifier()
    status = InterruptStatusField()
    requestedAt = milliseconds()
    resolvedAt = milliseconds(required=False)
    payload = ObjectField()
    response = DocumentField(required=False, allow_null=True)


class ThreadStoreInterruptOrNullSerializer(ThreadStoreInterruptSerializer):
    """An interrupt, or null where there is none."""


class ThreadStoreNewInterruptSerializer(serializers.Serializer[Any]):
    """An interrupt to create, unless its id is there already."""

    interruptId = identifier()
    runId = identifier()
    threadId = identifier()
    requestedAt = milliseconds()
    payload = ObjectField()


class ThreadStoreInterruptIdSerializer(serializers.Serializer[Any]):
    interruptId = identifier()


class ThreadStoreResolutionSerializer(serializers.Serializer[Any]):
    interruptId = identifier()
    response = DocumentField(required=False, allow_null=True)


class ThreadStoreDecisionSerializer(ThreadStoreResolutionSerializer):
    status = DecisionField()


class ThreadStoreBatchSerializer(serializers.Serializer[Any]):
    """Decisions that are taken together or not at all."""

    entries = ThreadStoreDecisionSerializer(many=True)


class _OrNull(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    base: type[serializers.Serializer[Any]]

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        shown = auto_schema.resolve_serializer(self.base, direction).ref
        if str(spectacular_settings.OAS_VERSION).startswith("3.1"):
            return {"oneOf": [shown, {"type": "null"}]}
        return {"allOf": [shown], "nullable": True}


class RunOrNull(_OrNull):  # type: ignore[no-untyped-call]
    target_class, base = ThreadStoreRunOrNullSerializer, ThreadStoreRunSerializer


class InterruptOrNull(_OrNull):  # type: ignore[no-untyped-call]
    target_class, base = ThreadStoreInterruptOrNullSerializer, ThreadStoreInterruptSerializer


# Parameters of queries

ID: Final = {"type": "string", "minLength": 1, "maxLength": MOST_CHARS}
TIME: Final = {"type": "integer", "format": "int64", "minimum": -LARGEST, "maximum": LARGEST}
SPAN: Final = {**TIME, "minimum": 0}
EPOCH: Final = {**SPAN, "maximum": LARGEST_EPOCH}


def parameter(name: str, schema: Any, told: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, schema, description=told, required=required)


RUN_ID: Final = parameter("runId", ID, "The id of the run, exactly.", required=True)
INTERRUPT_ID: Final = parameter("interruptId", ID, "Its id, exactly.", required=True)
LIMIT: Final = parameter("limit", SPAN, "The most to return; all if left out.")

# Answers

PROBLEMS: Final = OpenApiResponse(
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    "What is wrong, by field (`error.message` within another one). Nothing was written.",
    [OpenApiExample("A field at fault", {"startedAt": ["This is missing."]})],
)


def refused(codes: str) -> OpenApiResponse:
    return OpenApiResponse(ThreadStoreRefusalSerializer, f"Nothing was written; `code` is {codes}.")
