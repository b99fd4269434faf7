"""Runs as the API shows them: the same fields on every table, null for a column that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.columns import columns_of
from solid_runs.mixin import AgentRunMixin
from solid_runs.printable import text
from solid_runs.rest_framework.fields import ContentJSON, ContentText, KeyField, WordField
from solid_runs.statuses import RunStatus
from solid_runs.subjects import reference
from solid_runs.summaries import INPUT_PREVIEW, preview

ERROR_PREVIEW = 200

HEADS = {
    "input_head": ("input_prompt", INPUT_PREVIEW),
    "error_head": ("error_message", ERROR_PREVIEW),
}
"""Annotations that a list cuts in SQL: each with its column and the limit of its preview."""


class StatusField(WordField):
    """One of the five names, or ``unknown (9)`` for anything else that is stored."""


class StatusFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = StatusField

    def get_name(self) -> str:
        return "SolidRunStatus"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "string", "enum": RunStatus.values},
                {"type": "string", "pattern": r"^unknown \("},
            ],
            "description": "“unknown (9)” for a stored status that is none of the five.",
        }


class SolidRunSubjectSerializer(serializers.Serializer[Any]):
    type = serializers.CharField(help_text="As the run names it, such as Document.")
    id = serializers.CharField()
    label = serializers.CharField(  # type: ignore[assignment]
        help_text="Its type and id where it is not known here."
    )


class SolidRunTokensSerializer(serializers.Serializer[Any]):
    input = serializers.IntegerField(allow_null=True)
    output = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(help_text="As reported, else input and output added up.")


def column(run: AgentRunMixin, name: str) -> Any:
    """What the run's own column holds; None, and no look into the metadata, without one."""
    return getattr(run, name) if name in columns_of(type(run)) else None


def cut(head: str) -> Callable[[AgentRunMixin], str | None]:
    name, limit = HEADS[head]

    def read(run: AgentRunMixin) -> str | None:
        return preview(run.__dict__[head] if head in run.__dict__ else column(run, name), limit)

    return read


def stored_digest(run: AgentRunMixin) -> str | None:
    digest = column(run, "stored_instructions_digest")
    return digest if digest and digest.strip() else None


class SolidRunSerializer(serializers.Serializer[AgentRunMixin]):
    """A run in a list: nothing here reads a big column.

    ``action``, ``provider``, ``model`` and the digest are those of the run's columns; the detail
    looks into the metadata too.
    """

    id = KeyField(source="pk", read_only=True)
    status = StatusField(read_only=True)
    subject = serializers.SerializerMethodField(help_text="What the run is about.")
    agent = serializers.SerializerMethodField(help_text="Its name, or its key without one.")
    action = serializers.SerializerMethodField()
    provider = serializers.SerializerMethodField()
    model = serializers.SerializerMethodField()
    trace_id = serializers.CharField(read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True, allow_null=True)
    started_at = serializers.DateTimeField(read_only=True, allow_null=True)
    completed_at = serializers.DateTimeField(read_only=True, allow_null=True)
    updated_at = serializers.DateTimeField(read_only=True, allow_null=True)
    duration_ms = serializers.SerializerMethodField()
    tokens = serializers.SerializerMethodField()
    input_preview = ContentText(cut("input_head"))
    error_preview = ContentText(cut("error_head"))
    instructions_digest = ContentText(stored_digest)
    instructions_codename = ContentText(
        lambda run: run.instructions_codename if stored_digest(run) else None
    )

    @extend_schema_field(SolidRunSubjectSerializer(allow_null=True))
    def get_subject(self, run: AgentRunMixin) -> dict[str, str] | None:
        named = reference(run)
        if named is None:
            return None
        return {"type": named[0], "id": named[1], "label": text(run.subject)}

    def get_agent(self, run: AgentRunMixin) -> str | None:
        name = "agent_name" if "agent_name" in columns_of(type(run)) else "agent_id"
        agent = column(run, name)
        return None if agent is None else str(agent)

    def get_action(self, run: AgentRunMixin) -> str | None:
        name: str | None = column(run, "action_name")
        return name

    def get_provider(self, run: AgentRunMixin) -> str | None:
        name: str | None = column(run, "provider")
        return name

    def get_model(self, run: AgentRunMixin) -> str | None:
        name: str | None = column(run, "model")
        return name

    def get_duration_ms(self, run: AgentRunMixin) -> int | None:
        return run.calculated_duration_ms()

    @extend_schema_field(SolidRunTokensSerializer)
    def get_tokens(self, run: AgentRunMixin) -> dict[str, int | None]:
        return {
            "input": run.input_tokens,
            "output": run.output_tokens,
            "total": run.total_tokens,
        }


class SolidRunDetailSerializer(SolidRunSerializer):
    """A run in full, but for its events."""

    instructions_digest = ContentText(lambda run: run.instructions_digest)
    instructions_codename = ContentText(lambda run: run.instructions_codename)
    instructions = ContentText(lambda run: run.instructions and text(run.instructions))
    input_prompt = ContentText(lambda run: run.input_prompt)
    input_params = ContentJSON(lambda run: run.input_params)
    output = ContentText(lambda run: run.output)
    output_metadata = ContentJSON(lambda run: run.output_metadata)
    error_message = ContentText(lambda run: run.error_message)
    error_backtrace = ContentText(lambda run: run.error_backtrace)

    def get_action(self, run: AgentRunMixin) -> str | None:
        return text(run.action)

    def get_provider(self, run: AgentRunMixin) -> str | None:
        return text(run.provider) if isinstance(run.provider, str) else None

    def get_model(self, run: AgentRunMixin) -> str | None:
        return text(run.model) if isinstance(run.model, str) else None
