"""The columns of the list of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.changelist import PREVIEW, SUBJECT_URL
from solid_runs.admin.display import EMPTY, badge, clipped, run_duration, run_tokens, time_element
from solid_runs.columns import columns_of
from solid_runs.statuses import RunStatus
from solid_runs.summaries import INPUT_PREVIEW, preview

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from solid_runs.mixin import AgentRunMixin


class ListColumns:
    """Methods for ``list_display``; none loads a column that the list has deferred."""

    @admin.display(description=_("run"), ordering="pk")
    def run_key(self, run: AgentRunMixin) -> str:
        return str(run.pk)

    @admin.display(description=_("status"))
    def status_badge(self, run: AgentRunMixin) -> SafeString:
        return badge(run.status)

    @admin.display(description=_("subject"), empty_value=EMPTY)
    def about(self, run: AgentRunMixin) -> Any:
        subject, url = run.subject, getattr(run, SUBJECT_URL, None)
        if subject is None:
            return None
        if url is None:
            return clipped(subject)
        return format_html('<a href="{url}">{subject}</a>', url=url, subject=clipped(subject))

    @admin.display(description=_("agent"), empty_value=EMPTY)
    def agent_and_action(self, run: AgentRunMixin) -> Any:
        model = run.model if "model" in columns_of(type(run)) else None
        lines = [run.agent_name, " · ".join(filter(None, (run.action_name, model)))]
        if not any(lines):
            return None
        return format_html_join(
            "",
            '<span class="run-clip {style}" title="{text}">{text}</span>',
            [
                {"style": style, "text": text}
                for style, text in zip(("", "run-quiet"), lines, strict=True)
                if text
            ],
        )

    @admin.display(description=_("prompt"), empty_value=EMPTY)
    def prompt_preview(self, run: AgentRunMixin) -> Any:
        start = getattr(run, PREVIEW, None)
        if not start or not start.strip():
            return None
        return clipped(preview(" ".join(start.split()), INPUT_PREVIEW))

    @admin.display(description=_("model"), empty_value=EMPTY)
    def model_name(self, run: AgentRunMixin) -> Any:
        return clipped(run.model) if run.model else None

    @admin.display(description=_("duration"))
    def duration(self, run: AgentRunMixin) -> Any:
        text = run_duration(run, timezone.now())
        if run.status != RunStatus.RUNNING:
            return text
        return format_html(
            '<span class="run-live" title="{title}">{text}</span>', title=_("going on"), text=text
        )

    @admin.display(description=_("tokens"))
    def tokens(self, run: AgentRunMixin) -> str:
        return run_tokens(run)

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, run: AgentRunMixin) -> Any:
        return time_element(run.created_at, timezone.now())


COLUMN_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "about": ("runnable_type", "agent_id"),
    "agent_and_action": ("agent_name", "action_name"),
    "prompt_preview": ("input_prompt",),
    "model_name": ("model",),
    "duration": ("duration_ms", "started_at"),
    "tokens": ("reported_total_tokens", "input_tokens", "output_tokens"),
    "created": ("created_at",),
}
"""A column is left out where the table has none of these."""
