"""The runs that were reserved: what became of them, and what they asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.access import permission_label
from solid_runs.admin.display import clipped, moment, silence_text
from solid_runs.admin.links import visible_list_of
from solid_runs.admin.store_rows import StoreRunsAdmin, newest_keys
from solid_runs.ag_ui.admin.cancelling import cancel_runs, cancellable, report
from solid_runs.ag_ui.admin.display import status_badge
from solid_runs.ag_ui.admin.options import StoreAdmin
from solid_runs.ag_ui.admin.run_list import RunChangeList, StatusFilter, waits_for
from solid_runs.ag_ui.admin.run_page import run_page
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import ACTIVE
from solid_runs.database_time import DatabaseNow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse


class ReservedRunAdmin(StoreAdmin, StoreRunsAdmin):
    """Browse the runs, and ask for their end; change nothing.

    The state and the failures of runs are shown to those who have ``view_run_content``, cancelling
    takes ``cancel_run``.
    """

    list_display = ("status_badge", "run", "thread", "reserved", "waits_for", "owner")
    list_display_links = ("run",)
    list_filter = (StatusFilter,)
    search_fields = ("run_id",)
    search_help_text = _("The whole id of a run, a thread, a trace or an interrupt.")
    change_list_template: ClassVar[Any] = "admin/solid_runs_ag_ui/runs.html"

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With ``silent``, which the badge and the filter go by."""
        runs: Any = super().get_queryset(request)
        since = DatabaseNow(ago=self.get_store().stall_after)
        shown: QuerySet[Any] = runs.with_silent(since).defer("snapshot", "failure")
        return shown

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        asked = RunInterrupt.objects.using(rows.db).filter(interrupt_id=term)
        named = Q(run_id=term) | Q(thread_id=term) | Q(trace_id=term)
        return rows.filter(named | Q(pk__in=newest_keys(asked, "run")))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "title": capfirst(self.opts.verbose_name_plural),
            "inbox_url": visible_list_of(self.admin_site, request, RunInterrupt),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    @admin.display(description=_("status"))
    def status_badge(self, run: Any) -> Any:
        now, badge = self.get_store().now(), status_badge(run.status)
        if not run.silent:
            return badge
        return format_html("{} {}", badge, silence_text(run.alive_at, now))

    @admin.display(description=_("run"))
    def run(self, run: ReservedRun) -> Any:
        return clipped(run.run_id)

    @admin.display(description=_("thread"))
    def thread(self, run: ReservedRun) -> Any:
        return clipped(run.thread_id)

    @admin.display(description=_("scope"))
    def owner(self, run: ReservedRun) -> Any:
        return clipped(run.scope)

    @admin.display(description=_("reserved"))
    def reserved(self, run: ReservedRun) -> Any:
        return moment(run.created_at, self.get_store().now())

    @admin.display(description=_("waits for"), empty_value="-")
    def waits_for(self, run: ReservedRun) -> Any:
        return waits_for(run, getattr(run, "asked", None), self.get_store().now())

    # Page of one run

    def _page(
        self, request: HttpRequest, row: Any, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        run = row
        may_cancel = cancellable(run) and self.has_cancel_permission(request, run)
        context = {
            **run_page(self, request, run),
            "title": _("Run %(id)s") % {"id": run.run_id},
            "run_content_permission": permission_label(self.model, "view_run_content"),
            "cancel_url": self._url_of("cancel", run) if may_cancel else None,
            "cancel_label": (
                _("Cancel run") if run.status in ACTIVE else _("Cancel its questions")
            ),
            "cancel_question": (
                _("Its owner is asked to stop. If it is silent, or never began, the run ends here.")
                if run.status in ACTIVE
                else _(
                    "Nobody can answer its open questions any more, and no run takes the answers "
                    "that are free."
                )
            ),
        }
        return self._render(request, "run", run, {**context, **(extra_context or {})})

    def _cancel(self, request: HttpRequest, runs: Iterable[Any]) -> None:
        report(self, request, cancel_runs(self, request, runs))
