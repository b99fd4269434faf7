"""Interrupts and reserved runs as the API shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.ag_ui.interrupts import CANCELLED, RESOLVED, AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import Status
from solid_runs.ag_ui.values import iso
from solid_runs.storable import DEEPEST, json_value


class WordField(serializers.Field[Any, Any, str, Any]):
    """One of a few words."""

    def to_representation(self, value: Any) -> str:
        return str(value)


class AnswerStateField(WordField):
    words = tuple(AnswerState)


class RunStatusField(WordField):
    words = tuple(Status)


class DecisionStatusField(serializers.ChoiceField):
    words = (RESOLVED, CANCELLED)


class _NamedWords(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """A component with a name of its own, whatever else in the host's API is called a status."""

    name = ""

    def get_name(self) -> str:
        return self.name

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return {"type": "string", "enum": [str(word) for word in self.target.words]}


class AnswerStateSchema(_NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = AnswerStateField, "AGUIAnswerState"


class RunStatusSchema(_NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = RunStatusField, "AGUIRunStatus"


class DecisionStatusSchema(_NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = DecisionStatusField, "AGUIDecisionStatus"


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentField(serializers.Field[Any, Any, str | None, Any]):
    """ISO 8601 in UTC, whatever USE_TZ says."""

    def to_representation(self, value: datetime) -> str | None:
        return iso(value)


@extend_schema_field(OpenApiTypes.ANY)
class DocumentField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON."""

    def to_representation(self, value: Any) -> Any:
        return json_value(value, max_depth=DEEPEST)


class RunContentField(serializers.Field[Any, Any, Any, ReservedRun]):
    """Null, and not even read, unless the request may see the content of runs."""

    def __init__(self, read: Callable[[ReservedRun], Any], **kwargs: Any) -> None:
        self.read = read
        super().__init__(source="*", read_only=True, allow_null=True, **kwargs)

    def to_representation(self, run: ReservedRun) -> Any:
        if not self.context.get("content"):
            return None
        return json_value(self.read(run), max_depth=DEEPEST)


@extend_schema_field(OpenApiTypes.ANY)
class StateField(RunContentField):
    pass


@extend_schema_field(
    {
        "type": "object",
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        "additionalProperties": True,
    }
)
class FailureField(RunContentField):
    pass


class RunInterruptSerializer(serializers.Serializer[RunInterrupt]):
    """What a run asks, and the answer that was given."""

    id = serializers.IntegerField(source="pk", read_only=True)
    interrupt_id = serializers.CharField(
        read_only=True, help_text="Unique within the run that asks."
    )
    thread_id = serializers.CharField(source="run.thread_id", read_only=True)
    run_id = serializers.CharField(source="run.run_id", read_only=True)
    state = AnswerStateField(read_only=True)
    answerable = serializers.SerializerMethodField(
        help_text="Open, in time, and of the run of the thread that asked last."
    )
    stale = serializers.BooleanField(
        read_only=True, help_text="A later run of the thread has asked."
    )
    reason = serializers.CharField(read_only=True)
    message = serializers.CharField(read_only=True, allow_null=True)
    tool_call_id = serializers.CharField(read_only=True, allow_null=True)
    subagent_run_id = serializers.CharField(read_only=True, allow_null=True)
    response_schema = DocumentField(read_only=True, allow_null=True)
    metadata = DocumentField(read_only=True, allow_null=True)
    expires_at = MomentField(read_only=True, allow_null=True)
    decision = DocumentField(
        read_only=True, allow_null=True, help_text="status, payload and metadata of the answer."
    )
    decided_at = MomentField(read_only=True, allow_null=True)
    decided_by = serializers.CharField(read_only=True, allow_null=True)
    redeemed_by = serializers.CharField(
        read_only=True, allow_null=True, help_text="The run that holds the answer or acted on it."
    )
    redeemed_at = MomentField(read_only=True, allow_null=True)
    settled_at = MomentField(read_only=True, allow_null=True)

    def get_answerable(self, interrupt: Any) -> bool:
        if interrupt.state is not AnswerState.OPEN or interrupt.stale:
            return False
        return interrupt.expires_at is None or interrupt.expires_at > self.context["now"]


class InterruptAnswerSerializer(serializers.Serializer[Any]):
    """``resolved`` with a payload, of which a denial is one too, or ``cancelled``."""

    status = DecisionStatusField(choices=[RESOLVED, CANCELLED])
    payload = serializers.JSONField(required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        """A field that is none of these would have no effect, so it is refused."""
        known = {*self.fields, "csrfmiddlewaretoken"}  # a form of the browsable API has that
        unknown = [name for name in data if name not in known] if isinstance(data, Mapping) else []
        if unknown:
            told = f"There is no such field; use {', '.join(self.fields)}."
            raise serializers.ValidationError({str(name): [told] for name in unknown})
        return super().to_internal_value(data)


class RefusedInterruptAnswerSerializer(serializers.Serializer[Any]):
    """Why an answer was not taken."""

    code = serializers.CharField(
        help_text="interrupt_answered, interrupt_expired or resume_rejected."
    )
    message = serializers.CharField()
    interrupt = RunInterruptSerializer(help_text="As it is now.")


class ReservedRunSerializer(serializers.Serializer[ReservedRun]):
    """A run in a list."""

    id = serializers.IntegerField(source="pk", read_only=True)
    thread_id = serializers.CharField(read_only=True)
    run_id = serializers.CharField(read_only=True)
    parent_run_id = serializers.CharField(read_only=True, allow_null=True)
    trace_id = serializers.CharField(read_only=True, allow_null=True)
    status = RunStatusField(read_only=True)
    sequence = serializers.IntegerField(read_only=True, help_text="How many events were sent.")
    created_at = MomentField(read_only=True)
    updated_at = MomentField(read_only=True)
    alive_at = MomentField(read_only=True, help_text="When its owner last wrote.")
    cancel_requested_at = MomentField(read_only=True, allow_null=True)


class ReservedRunDetailSerializer(ReservedRunSerializer):
    """A run with what takes a permission to see, null without it."""

    snapshot = StateField(lambda run: run.snapshot, help_text="The state that it serves.")
    failure = FailureField(lambda run: run.failure)
