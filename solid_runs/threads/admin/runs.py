"""The runs of threads: what they are at, and the conversations that they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.access import permission_label
from solid_runs.admin.display import clipped
from solid_runs.admin.links import visible_list_of
from solid_runs.admin.store_rows import StoreRunsAdmin
from solid_runs.threads.admin.conversation_page import conversation_page
from solid_runs.threads.admin.display import (
    badge_and_flags,
    claims,
    duration,
    is_beyond_judgement,
    scope_text,
    when,
)
from solid_runs.threads.admin.run_list import ConditionFilter, RunChangeList, StatusFilter
from solid_runs.threads.admin.run_page import run_page
from solid_runs.threads.admin.stopping import ask_runs, can_be_asked, report, who_ends
from solid_runs.threads.conversations import CONTENT, judged
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.stores.database import DatabaseRunStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse


class ThreadRunAdmin(StoreRunsAdmin):
    """Browse the runs and their conversations, and ask runs to stop; change nothing.

    What failed, what was used and where it ran is shown to those who have ``view_run_content``,
    asking takes ``cancel_run``.
    """

    list_display = (
        "status_badge",
        "run",
        "thread",
        "agent",
        "started",
        "duration",
        "claims",
        "scope_column",
    )
    list_display_links = ("run",)
    list_filter = (StatusFilter, ConditionFilter)
    search_fields = ("run_id",)
    search_help_text = _("The whole id of a run, its parent, a thread or a trace.")
    change_list_template: ClassVar[Any] = "admin/solid_runs_threads/runs.html"
    template_folder = "admin/solid_runs_threads"
    row_views: ClassVar[Any] = ("cancel", "conversation")

    class Media:
        css = {"all": ["solid_runs_threads/admin.css"]}

    def get_store(self, scope: str) -> DatabaseRunStore:
        """What requests to stop go through: the store of the scope with this key."""
        return DatabaseRunStore.of_key(scope)

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """As conversations.judged() has them, without their content; every path goes through it."""
        runs: Any = super().get_queryset(request)
        shown: QuerySet[Any] = judged(runs).defer(*CONTENT)
        return shown

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        ids = Q(run_id=term) | Q(thread_id=term) | Q(parent_run_id=term) | Q(trace_id=term)
        return rows.filter(ids)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "title": capfirst(self.opts.verbose_name_plural),
            "interrupts_url": visible_list_of(self.admin_site, request, ThreadInterrupt),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    @admin.display(description=_("status"))
    def status_badge(self, run: Any) -> Any:
        return badge_and_flags(run)

    @admin.display(description=_("run"))
    def run(self, run: ThreadRun) -> Any:
        return clipped(run.run_id)

    @admin.display(description=_("conversation"))
    def thread(self, run: ThreadRun) -> Any:
        url = self._url_of("conversation", run)
        return format_html('<a href="{}">{}</a>', url, clipped(run.thread_id))

    @admin.display(description=_("agent"), empty_value="-")
    def agent(self, run: ThreadRun) -> Any:
        return clipped(run.name) if run.name else None

    @admin.display(description=_("started"))
    def started(self, run: Any) -> Any:
        return when(run.started_at, run.clock)

    @admin.display(description=_("duration"))
    def duration(self, run: Any) -> Any:
        return duration(run)

    @admin.display(description=_("claims"))
    def claims(self, run: Any) -> Any:
        return claims(run)

    @admin.display(description=_("scope"))
    def scope_column(self, run: ThreadRun) -> Any:
        return scope_text(run.scope)

    # Pages

    def conversation_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """All runs of the thread that a run is of."""
        run = self._visible(request, object_id)
        context = {
            **conversation_page(self, request, run),
            "title": _("Conversation %(id)s") % {"id": run.thread_id},
            "original": run.thread_id,
        }
        return self._render(request, "conversation", run, context)

    def _page(
        self, request: HttpRequest, row: Any, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may_ask = can_be_asked(row) and self.has_cancel_permission(request, row)
        context = {
            **run_page(self, request, row),
            "title": _("Run %(id)s") % {"id": row.run_id},
            "run_content_permission": permission_label(self.model, "view_run_content"),
            "stop_url": self._url_of("cancel", row) if may_ask else None,
            "who_ends": who_ends(row) if may_ask else None,
            "is_beyond_judgement": is_beyond_judgement(row),
            "conversation_url": self._url_of("conversation", row),
        }
        return self._render(request, "run", row, {**context, **(extra_context or {})})

    # Asking to stop

    @admin.action(permissions=["cancel"], description=_("Ask the selected runs to stop"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._cancel(request, queryset)

    def _cancel(self, request: HttpRequest, runs: Iterable[Any]) -> None:
        report(self, request, ask_runs(self, request, runs))
