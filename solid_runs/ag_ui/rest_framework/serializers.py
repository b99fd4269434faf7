"""Interrupts and reserved runs as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.ag_ui.interrupts import CANCELLED, RESOLVED, AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import Status
from solid_runs.ag_ui.values import iso
from solid_runs.rest_framework.fields import ContentJSON, DocumentField, NamedWords, WordField
from solid_runs.rest_framework.strict import StrictSerializer


class AnswerStateField(WordField):
    words = tuple(AnswerState)


class RunStatusField(WordField):
    words = tuple(Status)


class DecisionStatusField(serializers.ChoiceField):
    words = (RESOLVED, CANCELLED)


class AnswerStateSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = AnswerStateField, "AGUIAnswerState"


class RunStatusSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = RunStatusField, "AGUIRunStatus"


class DecisionStatusSchema(NamedWords):  # type: ignore[no-untyped-call]
    target_class, name = DecisionStatusField, "AGUIDecisionStatus"


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentField(serializers.Field[Any, Any, str | None, Any]):
    """ISO 8601 in UTC, whatever USE_TZ says."""

    def to_representation(self, value: datetime) -> str | None:
        return iso(value)


@extend_schema_field(
    {
        "type": "object",
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        "additionalProperties": True,
    }
)
class FailureField(ContentJSON):
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


class InterruptAnswerSerializer(StrictSerializer):
    """``resolved`` with a payload, of which a denial is one too, or ``cancelled``."""

    status = DecisionStatusField(choices=[RESOLVED, CANCELLED])
    payload = serializers.JSONField(required=False, allow_null=True)


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

    snapshot = ContentJSON(lambda run: run.snapshot, help_text="The state that it serves.")
    failure = FailureField(lambda run: run.failure)
