"""Runs as the API shows them to people and programs; times are milliseconds since 1970."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.rest_framework.fields import ContentJSON, ContentText, WordField
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.records import Status


class StatusField(WordField):
    """One of the five, or whatever else is stored, as it is."""


class StatusSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = StatusField

    def get_name(self) -> str:
        return "ThreadRunStatus"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        known = {"type": "string", "enum": [status.value for status in Status]}
        return {
            "anyOf": [known, {"type": "string"}],
            "description": "Another word that is stored is shown as it is.",
        }


@extend_schema_field(
    {
        "type": "object",
        "properties": {"message": {"type": "string"}, "code": {"type": "string"}},
        "additionalProperties": True,
    }
)
class ErrorField(ContentJSON):
    pass


@extend_schema_field({"type": "object", "additionalProperties": True})
class UsageField(ContentJSON):
    pass


class ThreadRunSerializer(serializers.Serializer[ThreadRun]):
    """A run in a list. Times are milliseconds since 1970."""

    id = serializers.IntegerField(source="pk", read_only=True)
    scope = serializers.CharField(
        read_only=True, help_text="Whose it is; empty for what is shared by all who name none."
    )
    thread_id = serializers.CharField(read_only=True)
    run_id = serializers.CharField(read_only=True, help_text="Unique within its scope.")
    parent_run_id = serializers.CharField(read_only=True, allow_null=True)
    subagent_run_id = serializers.CharField(read_only=True, allow_null=True)
    name = serializers.CharField(read_only=True, allow_null=True, help_text="The agent's.")
    trace_id = serializers.CharField(read_only=True, allow_null=True)
    status = StatusField(read_only=True)
    started_at = serializers.IntegerField(read_only=True)
    finished_at = serializers.IntegerField(read_only=True, allow_null=True)
    detached_since = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Null while somebody watches."
    )
    cancel_requested = serializers.BooleanField(read_only=True, allow_null=True)
    driver_epoch = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Counts the claims; null: never claimed."
    )
    heartbeat_at = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="The last sign of life of its driver."
    )
    detached = serializers.SerializerMethodField(help_text="It is running and nobody watches.")
    stalled = serializers.BooleanField(
        source="is_stalled",
        read_only=True,
        help_text="It is running and claimed, and its driver has been silent for too long.",
    )

    def get_detached(self, run: ThreadRun) -> bool:
        return run.status == Status.RUNNING and run.detached_since is not None


class ThreadRunDetailSerializer(ThreadRunSerializer):
    """A run with what takes a permission to see, null without it."""

    error = ErrorField(lambda run: run.error)
    usage = UsageField(lambda run: run.usage, help_text="What the model counted.")
    sandbox_key = ContentText(lambda run: run.sandbox_key)


class ThreadConversationRunSerializer(ThreadRunSerializer):
    """A run and its place in the conversation."""

    depth = serializers.SerializerMethodField(
        help_text="How far below the first of its parents that is here."
    )
    active = serializers.SerializerMethodField(help_text="A client attaches to this one.")

    def get_depth(self, run: ThreadRun) -> int:
        return int(self.context["depths"][run.pk])

    def get_active(self, run: ThreadRun) -> bool:
        return bool(run.pk == self.context["active"])


class ThreadConversationSerializer(serializers.Serializer[Any]):
    """The runs of a thread in order, children after their parents."""

    thread_id = serializers.CharField(read_only=True)
    scope = serializers.CharField(read_only=True, allow_null=True, help_text="Null without runs.")
    has_earlier = serializers.BooleanField(
        read_only=True, help_text="Runs that started earlier are left out; the list has them."
    )
    runs = ThreadConversationRunSerializer(many=True, read_only=True)
