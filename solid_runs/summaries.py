"""What lists and the API show of a run at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin

INPUT_PREVIEW = 100
OUTPUT_PREVIEW = 200
INSTRUCTIONS_PREVIEW = 120
DEFAULT_ACTION = "ask"


def preview(text: str | None, limit: int) -> str | None:
    """At most ``limit`` characters, the closing ``...`` of a cut text included."""
    if text is None or len(text) <= limit:
        return text
    return text[: limit - 3] + "..."


def noted(run: AgentRunMixin, name: str) -> Any:
    """From the run's own column where that says something, else from its metadata."""
    value = getattr(run, name)
    return run._metadata().get(name) if value is None else value


def summarise(run: AgentRunMixin) -> dict[str, Any]:
    return {
        "id": run.pk,
        "status": str(run.status),
        "input_preview": preview(run.input_prompt, INPUT_PREVIEW),
        "output_preview": preview(run.output, OUTPUT_PREVIEW),
        "duration_ms": run.calculated_duration_ms(),
        "tokens": run.total_tokens,
        "provider": noted(run, "provider"),
        "model": noted(run, "model"),
        "action_name": run.action,
        "instructions_digest": run.instructions_digest,
        "instructions_codename": run.instructions_codename,
        "instructions_preview": preview(run.instructions, INSTRUCTIONS_PREVIEW),
        "created_at": run.created_at,
        "error": run.error_message,
    }
