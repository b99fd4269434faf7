"""The runs that were reserved: what became of them, and what they asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Min, Q
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.access import permission_label
from solid_runs.ag_ui.admin.cancelling import cancel_runs, cancellable, report
from solid_runs.ag_ui.admin.display import BADGES, moment, status_badge, until
from solid_runs.ag_ui.admin.options import StoreAdmin, StoreChangeList, newest_keys
from solid_runs.ag_ui.admin.run_page import run_page
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import ACTIVE, Status

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

WAITING: Final = "waiting_for"
"""The attribute of a listed run that says how many answers it waits for, and until when."""


class StatusFilter(SimpleListFilter):
    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(status.value, label) for status, (label, _style) in _statuses()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value not in tuple(Status):
            raise IncorrectLookupParameters(f"{value!r} is not a status of a run.")
        return queryset.filter(status=value)


def _statuses() -> Iterator[tuple[Status, tuple[Any, str]]]:
    return ((Status(name), shown) for name, shown in BADGES.items())


class RunChangeList(StoreChangeList):
    """Says of each run of a page what it waits for, with one query."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        keys = [run.pk for run in self.result_list if run.status == Status.INTERRUPTED]
        asked = RunInterrupt.objects.using(self.root_queryset.db).in_state(AnswerState.OPEN)
        waiting = {
            run: (count, deadline)
            for run, count, deadline in asked.filter(run__in=keys)
            .order_by()
            .values_list("run")
            .annotate(Count("pk"), Min("expires_at"))
        }
        for run in self.result_list:
            setattr(run, WAITING, waiting.get(run.pk))


class ReservedRunAdmin(StoreAdmin):
    """Browse the runs, and ask for their end; change nothing.

    The state and the failures of runs are shown to those who have ``view_run_content``, cancelling
    takes ``cancel_run``.
    """

    list_display = ("status_badge", "run", "thread", "owner", "reserved", "heartbeat", "waits_for")
    list_display_links = ("run",)
    list_filter = (StatusFilter,)
    list_per_page = 50
    ordering = ("-pk",)
    search_fields = ("run_id",)
    search_help_text = _("The whole id of a run, a thread, a trace or an interrupt.")
    actions: Any = ("cancel_selected",)
    change_list_template: ClassVar[Any] = "admin/solid_runs/run_change_list.html"

    # Permissions

    def has_cancel_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may cancel runs, or this one."""
        return self._may(request, "cancel_run")

    def has_content_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may see the state and the failures of runs, or of this one."""
        return self._may(request, "view_run_content")

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("snapshot", "failure")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        asked = RunInterrupt.objects.using(queryset.db).filter(interrupt_id=term)
        named = Q(run_id=term) | Q(thread_id=term) | Q(trace_id=term)
        return queryset.filter(named | Q(pk__in=newest_keys(asked, "run"))), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(
            request, {"title": _("Reserved runs"), **(extra_context or {})}
        )

    @admin.display(description=_("status"))
    def status_badge(self, run: ReservedRun) -> Any:
        return status_badge(run.status)

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

    @admin.display(description=_("heartbeat"), empty_value="-")
    def heartbeat(self, run: ReservedRun) -> Any:
        """When its owner last wrote, of one that is going on."""
        if run.status not in ACTIVE:
            return None
        return moment(run.alive_at, self.get_store().now())

    @admin.display(description=_("waits for"), empty_value="-")
    def waits_for(self, run: ReservedRun) -> Any:
        if run.cancel_requested_at is not None and run.status in ACTIVE:
            return gettext("its owner, to cancel it")
        waiting = getattr(run, WAITING, None)
        if waiting is None:
            return None
        count, deadline = waiting
        return until(count, deadline, self.get_store().now())

    # Page of one run

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        run = self._visible(request, object_id)
        may_cancel = cancellable(run) and self.has_cancel_permission(request, run)
        context = {
            **run_page(self, request, run),
            "title": _("Run %(id)s") % {"id": run.run_id},
            "run_content_permission": permission_label(self.model, "view_run_content"),
            "cancel_url": self._url_of("cancel", run) if may_cancel else None,
            "cancel_label": (_("Cancel run") if run.status in ACTIVE else _("Cancel what it asks")),
            "cancel_question": (
                _("Its owner is asked to stop; one that is silent, or never began, is ended here.")
                if run.status in ACTIVE
                else _("Its open interrupts are put away as cancelled.")
            ),
        }
        return self._render(request, "run", run, {**context, **(extra_context or {})})

    def search_url(self, term: str) -> str:
        return f"{self._list_url()}?{urlencode({SEARCH_VAR: term})}"

    # Cancelling

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_cancel"
        view = self.admin_site.admin_view(self.cancel_view)
        return [path("<path:object_id>/cancel/", view, name=name), *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for the end of one run, by POST, and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._visible(request, object_id)
        if not self.has_cancel_permission(request, run):
            raise PermissionDenied
        report(self, request, cancel_runs(self, request, [run]))
        return HttpResponseRedirect(self._url_of("change", run))

    @admin.action(permissions=["cancel"], description=_("Cancel selected %(verbose_name_plural)s"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        report(self, request, cancel_runs(self, request, queryset))


def clipped(value: str) -> Any:
    return format_html(
        '<span class="run-clip" dir="auto" title="{value}">{value}</span>', value=value
    )
