"""What runs asked people, and what was answered: to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.access import permission_label
from solid_runs.admin.detail import MOST_CHARS, Block, Fact
from solid_runs.admin.display import clipped, json_block
from solid_runs.admin.links import page_of
from solid_runs.admin.store_rows import StoreRowsAdmin
from solid_runs.database_time import DatabaseMilliseconds
from solid_runs.threads.admin.display import exactly, interrupt_badge, scope_text, when
from solid_runs.threads.admin.run_list import InterruptChangeList, InterruptStatusFilter
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse


class ThreadInterruptAdmin(StoreRowsAdmin):
    """Browse what was asked; what it says is shown to those who have ``view_interrupt_content``."""

    list_display = (
        "status_badge",
        "interrupt",
        "run",
        "thread",
        "requested",
        "resolved",
        "scope_column",
    )
    list_display_links = ("interrupt",)
    list_filter = (InterruptStatusFilter,)
    list_per_page = 50
    ordering: ClassVar[Any] = ("-pk",)
    actions: Any = None
    search_fields = ("interrupt_id",)
    search_help_text = _("The whole id of an interrupt, a run or a thread.")
    change_list_template: ClassVar[Any] = "admin/solid_runs_threads/rows.html"
    template_folder = "admin/solid_runs_threads"

    class Media:
        css = {"all": ["solid_runs_threads/admin.css"]}

    def has_content_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may see what was asked and answered, or this."""
        return self._has_perm(request, "view_interrupt_content")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With ``clock``, the time of the database, and without what was said."""
        rows: Any = super().get_queryset(request)
        shown: QuerySet[Any] = rows.annotate(clock=DatabaseMilliseconds())
        return shown.defer("payload", "response")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return InterruptChangeList

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return rows.filter(Q(interrupt_id=term) | Q(run_id=term) | Q(thread_id=term))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    @admin.display(description=_("status"))
    def status_badge(self, interrupt: ThreadInterrupt) -> Any:
        return interrupt_badge(interrupt.status)

    @admin.display(description=_("interrupt"))
    def interrupt(self, interrupt: ThreadInterrupt) -> Any:
        return clipped(interrupt.interrupt_id)

    @admin.display(description=_("run"))
    def run(self, interrupt: Any) -> Any:
        return self._link(interrupt.asker, "change", interrupt.run_id)

    @admin.display(description=_("conversation"))
    def thread(self, interrupt: Any) -> Any:
        asker = interrupt.asker
        is_there = asker is not None and asker.thread_id == interrupt.thread_id
        return self._link(asker if is_there else None, "conversation", interrupt.thread_id)

    def _link(self, run: Any, view: str, id: str) -> Any:
        if run is None:
            return clipped(id)
        return format_html('<a href="{}">{}</a>', self._url_of(view, run), clipped(id))

    @admin.display(description=_("requested"))
    def requested(self, interrupt: Any) -> Any:
        return when(interrupt.requested_at, interrupt.clock)

    @admin.display(description=_("resolved"))
    def resolved(self, interrupt: Any) -> Any:
        return when(interrupt.resolved_at, interrupt.clock)

    @admin.display(description=_("scope"))
    def scope_column(self, interrupt: ThreadInterrupt) -> Any:
        return scope_text(interrupt.scope)

    def _page(
        self, request: HttpRequest, row: Any, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        content = self.has_content_permission(request, row)
        context = {
            "title": _("Interrupt %(id)s") % {"id": row.interrupt_id},
            "run_facts": list(self._facts(request, row)),
            "is_pending": row.status == InterruptStatus.PENDING,
            "run_blocks": list(_documents(row)) if content else [],
            "run_content_hidden": not content,
            "run_content_permission": permission_label(self.model, "view_interrupt_content"),
        }
        return self._render(request, "interrupt", row, {**context, **(extra_context or {})})

    def _facts(self, request: HttpRequest, row: Any) -> Iterator[Fact]:
        run = self._run_of(request, row)
        run_url = None if run is None else page_of(self.admin_site, run)
        is_there = run is not None and run.thread_id == row.thread_id
        thread_url = page_of(self.admin_site, run, "conversation") if is_there else None
        yield Fact(_("status"), interrupt_badge(row.status))
        yield Fact(_("run"), row.run_id, url=run_url)
        yield Fact(_("conversation"), row.thread_id, url=thread_url)
        yield Fact(_("scope"), scope_text(row.scope))
        yield Fact(_("requested"), when(row.requested_at, row.clock), exactly(row.requested_at))
        yield Fact(_("resolved"), when(row.resolved_at, row.clock), exactly(row.resolved_at))

    def _run_of(self, request: HttpRequest, row: ThreadInterrupt) -> Any:
        """The run that asked, for those who may see it."""
        registered = self.admin_site._registry.get(ThreadRun)
        if registered is None or not registered.has_view_permission(request):
            return None
        return registered.get_queryset(request).filter(scope=row.scope, run_id=row.run_id).first()


def _documents(row: ThreadInterrupt) -> Iterator[Block]:
    """What takes the permission to see it: one query."""
    stored = ThreadInterrupt.objects.using(row._state.db).filter(pk=row.pk)
    payload, response = stored.values_list("payload", "response").first() or (None, None)
    yield _block(_("What it asks"), payload)
    if row.has_response:
        yield _block(_("Response"), response)


def _block(title: Any, value: Any) -> Block:
    shown, is_cut = json_block(value, MOST_CHARS)
    more = str(_("Only the beginning is shown.")) if is_cut else ""
    return Block(title, shown or storable.compact_json(value), "code", more=more)
