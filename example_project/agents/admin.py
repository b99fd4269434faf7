from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from example_project.agents.models import (
    Agent,
    AgentRun,
    Document,
    GeneratorRun,
    PlatformRun,
    Refund,
)
from solid_runs.admin import RunAdmin
from solid_runs.ag_ui.models import ReservedRun

admin.site.register([Agent, Document])
admin.site.register([GeneratorRun, PlatformRun], RunAdmin)


@admin.register(AgentRun)
class AgentRunAdmin(RunAdmin):
    """With the way back to the AG-UI run of the same trace, and to what was said."""

    readonly_fields = ("reserved_runs", "conversation")

    @admin.display(description="AG-UI runs")
    def reserved_runs(self, run: AgentRun) -> Any:
        reserved = ReservedRun.objects.filter(trace_id=run.trace_id).only("run_id", "status")
        page = "admin:solid_runs_ag_ui_reservedrun_change"
        links = [(reverse(page, args=[one.pk]), one.run_id, one.status) for one in reserved[:10]]
        return format_html_join(", ", '<a href="{}">{}</a> ({})', links) or "-"

    @admin.display(description="conversation")
    def conversation(self, run: AgentRun) -> Any:
        thread = (run.input_params or {}).get("thread")
        if not thread:
            return "-"
        address = f"{reverse('assistant')}#{quote(thread, safe='')}"
        return format_html('<a href="{}">{}</a>', address, thread)


@admin.register(Refund)
class RefundAdmin(admin.ModelAdmin):
    """What the assistant did; nobody else makes a refund."""

    list_display = ["amount", "made_at", "thread_id", "tool_call_id"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
