"""The inbox: what runs ask, answered by those who may."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.links import visible_page_of, visible_search_of
from solid_runs.admin.store_rows import newest_keys
from solid_runs.ag_ui.admin.answering import give_answer, release, why_not
from solid_runs.ag_ui.admin.cards import (
    LIST_CHARS,
    Card,
    card,
    is_answerable,
    is_releasable,
    page_facts,
)
from solid_runs.ag_ui.admin.options import StoreAdmin
from solid_runs.ag_ui.admin.releases import releases
from solid_runs.ag_ui.admin.sentences import Surroundings
from solid_runs.ag_ui.admin.shelves import InboxChangeList, ShelfFilter
from solid_runs.ag_ui.inbox.attention import outcome_is_unknown
from solid_runs.ag_ui.inbox.forms import AnswerForm, answer_form
from solid_runs.ag_ui.inbox.shelves import actors, asked_later, open_questions
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

TITLE: Final = _("Approval inbox")
BACK: Final = "back"
"""The field that says which list an answer was given in: its query string."""


class RunInterruptAdmin(StoreAdmin):
    """The approval inbox. An answer goes through the store and is free for the next run to take.

    Seeing takes Django's view permission, answering can_decide(), freeing an answer that was acted
    on can_release(). ``get_queryset()`` is where a host narrows what a person may see at all.
    The tool's name is read from the metadata's ``toolName``, ``tool_name`` or ``tool``, its
    arguments from ``arguments`` or ``args``.
    """

    list_display = ("interrupt_id",)
    list_display_links = None
    list_filter = (ShelfFilter,)
    list_per_page = 20
    list_select_related = ("run",)
    search_fields = ("interrupt_id",)
    search_help_text = _("The whole id of a thread, a run or an interrupt.")
    actions = None
    row_views = ("answer", "release")
    change_list_template = "admin/solid_runs_ag_ui/inbox.html"

    def can_decide(self, request: HttpRequest, interrupt: RunInterrupt) -> bool:
        """Whether this person may answer this interrupt: by default ``decide_interrupt``."""
        return self._has_perm(request, "decide_interrupt")

    def can_release(self, request: HttpRequest, interrupt: RunInterrupt) -> bool:
        """Whether this person may let a tool run again: by default ``release_interrupt``."""
        return self._has_perm(request, "release_interrupt")

    # List

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        interrupts: Any = super().get_queryset(request)
        shown: QuerySet[Any] = interrupts.with_stale().select_related("run")
        return shown.defer("run__snapshot", "run__failure")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return InboxChangeList

    def search(self, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        runs = ReservedRun.objects.using(rows.db)
        asking = newest_keys(runs.filter(Q(run_id=term) | Q(thread_id=term)))
        return rows.filter(Q(interrupt_id=term) | Q(run__in=asking))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "title": TITLE,
            "back": request.GET.urlencode(),
            "crumbs": SimpleNamespace(opts=self._crumbs),
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def cards(self, request: HttpRequest, interrupts: list[RunInterrupt]) -> list[Card]:
        cards = []
        for one, around in zip(interrupts, self._around(request, interrupts), strict=True):
            shown = self._card(request, one, around, most=LIST_CHARS)
            if not outcome_is_unknown(one, around.actor):  # the rest is for who looks closer
                shown.release_url = None
            cards.append(shown)
        return cards

    def _around(
        self, request: HttpRequest, interrupts: list[RunInterrupt]
    ) -> Iterator[Surroundings]:
        """What is to know of each, in order: three queries at most."""
        if not interrupts:
            return
        site, using = self.admin_site, interrupts[0]._state.db or "default"
        acting, released = actors(interrupts, using), releases(interrupts)
        free = {one.run_id for one in interrupts if one.state is AnswerState.FREE}
        waiting = open_questions(free, using, self.get_store().now())
        for one in interrupts:
            actor, thread = acting.get(one.pk), one.run.thread_id
            yield Surroundings(
                actor=actor,
                actor_url=visible_page_of(site, request, actor),
                run_url=visible_page_of(site, request, one.run),
                thread_url=(
                    visible_search_of(site, request, ReservedRun, thread)
                    or visible_search_of(site, request, self.model, thread)
                ),
                open_beside=waiting.get(one.run_id, 0),
                release=released.get(one.pk),
            )

    def _card(
        self,
        request: HttpRequest,
        interrupt: RunInterrupt,
        around: Surroundings,
        form: AnswerForm | None = None,
        **options: Any,
    ) -> Card:
        now = self.get_store().now()
        shown = card(interrupt, now, around, url=self._url_of("change", interrupt), **options)
        if is_answerable(interrupt, now) and self.can_decide(request, interrupt):
            shown.answer_url = self._url_of("answer", interrupt)
            shown.form = form or self._form(interrupt)
        if is_releasable(interrupt, around.actor) and self.can_release(request, interrupt):
            shown.release_url = self._url_of("release", interrupt)
        return shown

    def _form(self, interrupt: RunInterrupt, data: Any = None) -> AnswerForm:
        return answer_form(interrupt.response_schema)(data, prefix=f"interrupt{interrupt.pk}")

    # Page of one interrupt

    def _page(
        self,
        request: HttpRequest,
        row: Any,
        extra_context: dict[str, Any] | None = None,
        form: AnswerForm | None = None,
    ) -> HttpResponse:
        interrupt: RunInterrupt = row
        [around] = self._around(request, [interrupt])
        if interrupt.state is AnswerState.OPEN and getattr(interrupt, "stale", False):
            around = replace(around, later=asked_later(interrupt, self.get_store()))
        shown = self._card(request, interrupt, around, form)
        back = request.POST.get(BACK)
        context = {
            "title": _("Interrupt %(id)s") % {"id": interrupt.interrupt_id},
            "card": shown,
            "run_facts": page_facts(shown, self.get_store().now()),
            "back": back,
            "inbox_url": self._list_url() + (f"?{back}" if back else ""),
            "crumbs": self._crumbs,
        }
        return self._render(request, "interrupt", interrupt, {**context, **(extra_context or {})})

    @property
    def _crumbs(self) -> Any:
        """What the breadcrumbs read of the model's options, with the words of the inbox's title."""
        opts = self.opts
        return SimpleNamespace(
            app_label=opts.app_label,
            app_config=opts.app_config,
            model_name=opts.model_name,
            verbose_name_plural=TITLE,
        )

    # Answering and releasing

    def answer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take an answer, by POST, and go back to where it was given."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        interrupt = self._visible(request, object_id)
        if not self.can_decide(request, interrupt):
            raise PermissionDenied
        form = self._form(interrupt, request.POST)
        if form.is_valid():
            give_answer(self, request, interrupt, form.payload())
        elif is_answerable(interrupt, self.get_store().now()):
            return self._page(request, interrupt, form=form)
        else:
            self.message_user(request, why_not(self, interrupt), messages.WARNING)
        if BACK in request.POST:
            query = request.POST[BACK]
            return HttpResponseRedirect(self._list_url() + (f"?{query}" if query else ""))
        return HttpResponseRedirect(self._url_of("change", interrupt))

    def release_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask first, by GET; then free an answer that a run has acted on, by POST."""
        interrupt = self._visible(request, object_id)
        if not self.can_release(request, interrupt):
            raise PermissionDenied
        [around] = self._around(request, [interrupt])
        if request.method == "POST":
            release(self, request, interrupt)
        elif is_releasable(interrupt, around.actor):
            shown = self._card(request, interrupt, around)
            shown.release_url = None
            context = {
                "title": _("Release the answer?"),
                "card": shown,
                "crumbs": self._crumbs,
            }
            return self._render(request, "release_confirmation", interrupt, context)
        return HttpResponseRedirect(self._url_of("change", interrupt))
