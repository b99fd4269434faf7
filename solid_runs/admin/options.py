"""RunAdmin: the base that a host registers with its run model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected as delete_confirmed
from django.contrib.admin.utils import unquote
from django.core.exceptions import FieldDoesNotExist, PermissionDenied, ValidationError
from django.db.models import JSONField, Q, QuerySet, TextField
from django.http import Http404, HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from solid_runs.admin import detail
from solid_runs.admin.access import (
    content_fields,
    permission_label,
    subject_url,
)
from solid_runs.admin.cancelling import cancel_runs, report
from solid_runs.admin.changelist import RunChangeList
from solid_runs.admin.columns import COLUMN_NEEDS, ListColumns
from solid_runs.admin.display import count_text
from solid_runs.admin.filters import CreatedFilter, StatusFilter
from solid_runs.admin.links import page_of, search_of
from solid_runs.admin.paginator import CAP, count_up_to
from solid_runs.admin.read_only import ReadOnlyAdmin
from solid_runs.columns import COUNT, OPTIONAL, columns_of
from solid_runs.statuses import IN_PROGRESS, TERMINAL

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpResponse

    from solid_runs.columns import AnyModel, RunColumns

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

PLAIN_LOOKUPS = {"", "exact", "in", "gt", "gte", "lt", "lte", "range", "isnull"}
"""What an address may ask of a column: comparisons, which an index serves."""


class RunAdmin(ListColumns, ReadOnlyAdmin):
    """Browse runs, cancel those in progress, delete those that have ended; change nothing.

    Lists load no big column and cost the same number of queries for any number of rows. What a
    run was asked and what it said is shown to those who have ``view_run_content``; cancelling
    takes ``cancel_run``. A column of ``list_display`` or a filter whose field the model lacks is
    left out; ListColumns has them all. Columns of the host's own are shown on the page of a run.

    ``search_fields`` are compared exactly with the whole of what was typed; a lookup that is
    written out, ``"note__startswith"``, is used as it stands.
    """

    list_display: Any = (
        "run_key",
        "status_badge",
        "about",
        "agent_and_action",
        "prompt_preview",
        "duration",
        "tokens",
        "created",
    )
    list_filter: ClassVar[Any] = (StatusFilter, CreatedFilter)
    list_per_page = 50
    search_fields: ClassVar[Any] = ("pk", "trace_id", "agent_name", "action_name")
    search_help_text = _("The whole of a run's key, trace, agent or action.")
    actions: Any = ("cancel_selected", "delete_selected")
    row_views = ("cancel",)
    change_list_template: ClassVar[Any] = "admin/solid_runs/run_change_list.html"
    change_form_template: ClassVar[Any] = "admin/solid_runs/run_change_form.html"

    class Media:
        css = {"all": ["solid_runs/admin.css"]}

    @property
    def _columns(self) -> RunColumns:
        model: AnyModel = self.model
        return columns_of(model)

    # Permissions

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """For runs that have ended."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.finished)

    def has_cancel_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may cancel runs, or this one, while they are in progress."""
        return self._has_perm(request, "cancel_run")

    def has_content_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this person may see what runs, or this one, were asked and said."""
        return self._has_perm(request, "view_run_content")

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without the log, which only the timeline reads."""
        return super().get_queryset(request).defer(self._columns.log.name)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        names = [field.attname for field in self.model._meta.concrete_fields]
        unseen = set() if self.has_content_permission(request) else content_fields(self.model)
        if unseen:
            unseen.add("prompt_preview")
        return [
            column
            for column in super().get_list_display(request)
            if column not in unseen
            and (column not in COLUMN_NEEDS or not {*COLUMN_NEEDS[column]}.isdisjoint(names))
        ]

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        columns = self._columns
        return [
            chosen
            for chosen in super().get_list_filter(request)
            if getattr(chosen, "needs", "status") in columns
        ]

    def get_ordering(self, request: HttpRequest) -> Any:
        return self.ordering or self._columns.recency

    def get_sortable_by(self, request: HttpRequest) -> Any:
        """What the database can order without sorting the table, and what the host names."""
        if self.sortable_by is not None:
            return super().get_sortable_by(request)
        safe = {"run_key"}
        if "-created_at" in self._columns.recency:
            safe.add("created")
        return [column for column in self.get_list_display(request) if column in safe]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Comparisons only, of nothing that takes a permission, and no scan of a text."""
        name, _sep, rest = lookup.partition("__")
        if "\0" in str(value):
            return False
        try:
            field: Any = self.opts.pk if name == "pk" else self.opts.get_field(name)
        except FieldDoesNotExist:
            return super().lookup_allowed(lookup, value, request)
        if isinstance(field, (TextField, JSONField)) or name in content_fields(self.model):
            return False
        if not field.is_relation and rest not in PLAIN_LOOKUPS:
            return False
        return super().lookup_allowed(lookup, value, request)

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        matches = [
            match
            for name in self.get_search_fields(request)
            if (match := self._match(str(name), term)) is not None
        ]
        if not matches:
            return rows.none()
        condition = matches[0]
        for match in matches[1:]:
            condition |= match
        return rows.filter(condition)

    def _match(self, name: str, term: str) -> Q | None:
        """``name = term``; None for a field that this model lacks or that cannot hold it."""
        try:
            field: Any = self.opts.pk if name == "pk" else self.opts.get_field(name)
            value = field.to_python(term)
        except FieldDoesNotExist:
            return Q(**{name: term}) if "__" in name else None
        except (ValidationError, ValueError, TypeError, OverflowError):
            return None
        if isinstance(value, int) and abs(value) >= 2**63:
            return None
        return Q(**{name: value})

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    # Page of one run

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The host's own columns; what every run has is on the page already."""
        if self.fieldsets or self.fields:
            return super().get_fieldsets(request, obj)
        fields = self.get_fields(request, obj)
        return [(_("More"), {"fields": fields})] if fields else []

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if self.fields:
            return self.fields
        shown = OPTIONAL | {"status", "provider", "model", COUNT, self._columns.log.name}
        own = [
            field.name
            for field in self.opts.fields
            if not field.primary_key and not shown & {field.name, field.attname}
        ]
        return [*own, *self.get_readonly_fields(request, obj)]

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> Any:
        if obj is not None:
            context |= self._page(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _page(self, request: HttpRequest, run: Any) -> dict[str, Any]:
        now, content = timezone.now(), self.has_content_permission(request, run)
        laid_out, lines, entries = detail.timeline_lines(run, now, content=content)
        above, below = detail.blocks(run) if content else ([], [])
        return {
            "title": f"{capfirst(str(self.opts.verbose_name))} {run.pk}",
            "subtitle": None,
            "run": run,
            "run_facts": detail.facts(
                run,
                now,
                content=content,
                subject_url=subject_url(self.admin_site, request, run.subject),
                trace_url=search_of(self.admin_site, self.model, run.trace_id or ""),
            ),
            "run_above": above,
            "run_below": below,
            "run_content_hidden": not content,
            "run_content_permission": permission_label(self.model, "view_run_content"),
            "run_lines": lines,
            "run_ticks": [(tick, detail.tick_text(tick.at_ms)) for tick in laid_out.ticks],
            "run_hidden_steps": count_text(laid_out.hidden) if laid_out.hidden else "",
            "run_entries": entries,
            "run_cancel_url": self._cancel_url(request, run),
            "run_delete_url": self._delete_url(request, run),
        }

    def _url_of(self, view: str, run: Any) -> str:
        return page_of(self.admin_site, run, view)

    def _cancel_url(self, request: HttpRequest, run: Any) -> str | None:
        may = run.in_progress and self.has_cancel_permission(request, run)
        return self._url_of("cancel", run) if may else None

    def _delete_url(self, request: HttpRequest, run: Any) -> str | None:
        may = self.has_delete_permission(request, run)
        return self._url_of("delete", run) if may else None

    # Cancel and delete

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Cancel one run, by POST, and go back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request) or not self.has_cancel_permission(request):
            raise PermissionDenied
        run = self.get_object(request, unquote(object_id))
        if run is None:
            raise Http404
        report(self, request, cancel_runs(self, request, [run]))
        return HttpResponseRedirect(self._url_of("change", run))

    @admin.action(permissions=["cancel"], description=_("Cancel selected %(verbose_name_plural)s"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        selected, capped = count_up_to(queryset, CAP)
        runs = list(queryset.filter(status__in=IN_PROGRESS))
        result = cancel_runs(self, request, runs)
        if not capped:
            result.skipped += max(0, selected - len(runs))
        report(self, request, result)

    @admin.action(permissions=["delete"], description=_("Delete selected %(verbose_name_plural)s"))
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Django's own, for those of the selected runs that have ended."""
        ended = queryset.filter(status__in=TERMINAL)
        skipped = count_up_to(queryset, CAP)[0] - count_up_to(ended, CAP)[0]
        if skipped:
            message = ngettext(
                "%(count)s run is left alone: it has not ended. Cancel it first.",
                "%(count)s runs are left alone: they have not ended. Cancel them first.",
                skipped,
            )
            self.message_user(request, message % {"count": count_text(skipped)}, messages.WARNING)
        if not ended.exists():
            return None
        return delete_confirmed(self, request, ended)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        queryset.filter(status__in=TERMINAL).delete()
