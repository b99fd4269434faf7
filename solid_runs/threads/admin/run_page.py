"""What the page of one run shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.detail import MOST_CHARS, OPEN_CHARS, Block, Fact
from solid_runs.admin.display import count_text, json_block
from solid_runs.admin.lines import MOST_LINKED, Line
from solid_runs.admin.links import page_of, visible_search_of
from solid_runs.admin.paginator import count_up_to
from solid_runs.admin.traces import traced_rows
from solid_runs.threads.admin.display import (
    badge_and_flags,
    claims,
    duration,
    exactly,
    interrupt_badge,
    is_asked_to_stop,
    scope_text,
    when,
)
from solid_runs.threads.admin.stopping import who_ends
from solid_runs.threads.conversations import CONTENT, MOST_RUNS
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.http import HttpRequest

    from solid_runs.threads.admin.runs import ThreadRunAdmin


def run_page(admin: ThreadRunAdmin, request: HttpRequest, run: Any) -> dict[str, Any]:
    """``run``: out of the queryset of the admin, with what that adds."""
    site = admin.admin_site
    runs: Any = admin.get_queryset(request)
    content = admin.has_content_permission(request, run)
    children = runs.filter(scope=run.scope, parent_run_id=run.run_id).order_by("started_at", "pk")
    started = list(children[: MOST_LINKED + 1])
    asked = list(_asked(site, request, run))
    beside = list(_beside(admin, runs, run))
    thread = runs.of_thread(run.scope, run.thread_id)
    _count, are_more = count_up_to(thread, len(beside) + 1)
    asked_url = visible_search_of(site, request, ThreadInterrupt, run.run_id)
    return {
        "run_facts": list(facts(admin, runs, run)),
        "run_blocks": list(documents(run)) if content else [],
        "run_content_hidden": not content,
        "asked": asked[:MOST_LINKED],
        "more_asked_url": asked_url if len(asked) > MOST_LINKED else None,
        "beside": beside,
        "more_beside_url": page_of(site, run, "conversation") if are_more else None,
        "children": [_line(admin, one) for one in started[:MOST_LINKED]],
        "more_children_url": (admin.search_url(run.run_id) if len(started) > MOST_LINKED else None),
        "traced": list(traced_rows(site, request, run.trace_id, besides=run)),
    }


def facts(admin: ThreadRunAdmin, runs: Any, run: Any) -> Iterator[Fact]:
    conversation = page_of(admin.admin_site, run, "conversation")
    yield Fact(_("status"), badge_and_flags(run))
    yield Fact(_("conversation"), run.thread_id, place(runs, run), conversation)
    yield Fact(_("scope"), scope_text(run.scope))
    if run.name:
        yield Fact(_("agent"), run.name)
    yield _moment(_("started"), run.started_at, run.clock)
    if run.finished_at is not None:
        yield _moment(_("finished"), run.finished_at, run.clock)
    yield Fact(_("duration"), duration(run))
    yield Fact(_("claims"), claims(run))
    for label, ms in (
        (_("last sign of life"), run.heartbeat_at),
        (_("detached since"), run.detached_since),
        (_("with a reaper until"), run.leased_until),
    ):
        if ms is not None:
            yield _moment(label, ms, run.clock)
    if run.cancel_requested is not None:
        said = gettext("yes") if run.cancel_requested else gettext("no")
        yield Fact(_("asked to stop"), said, who_ends(run) if is_asked_to_stop(run) else "")
    if run.parent_run_id:
        yield _parent(admin, runs, run)
    if run.subagent_run_id:
        yield Fact(_("subagent run"), run.subagent_run_id)
    if run.trace_id:
        yield Fact(_("trace"), run.trace_id, url=admin.search_url(run.trace_id))


def _moment(label: Any, ms: int, clock: int) -> Fact:
    return Fact(label, when(ms, clock), exactly(ms))


def _parent(admin: ThreadRunAdmin, runs: Any, run: ThreadRun) -> Fact:
    parent = runs.filter(scope=run.scope, run_id=run.parent_run_id).first()
    if parent is None:
        return Fact(_("parent run"), run.parent_run_id, _("not there"))
    elsewhere = "" if parent.thread_id == run.thread_id else _("in another conversation")
    return Fact(_("parent run"), run.parent_run_id, elsewhere, page_of(admin.admin_site, parent))


def place(runs: Any, run: ThreadRun) -> str:
    """``2 of 12 runs``: which of the runs of its conversation it is."""
    thread = runs.of_thread(run.scope, run.thread_id)
    before, is_late = count_up_to(thread.filter(_earlier(run)), MOST_RUNS)
    count, is_many = count_up_to(thread, MOST_RUNS)
    if is_late:
        words = gettext("one of %(count)s runs")
    else:
        words = ngettext("%(number)s of %(count)s run", "%(number)s of %(count)s runs", count)
    shown = f"{count_text(count)}+" if is_many else count_text(count)
    return words % {"number": count_text(before + 1), "count": shown}


def _earlier(run: ThreadRun) -> Q:
    return Q(started_at__lt=run.started_at) | Q(started_at=run.started_at, pk__lt=run.pk)


def _later(run: ThreadRun) -> Q:
    return Q(started_at__gt=run.started_at) | Q(started_at=run.started_at, pk__gt=run.pk)


def _beside(admin: ThreadRunAdmin, runs: Any, run: ThreadRun) -> Iterator[Line]:
    """The run before this one in its conversation, and the one after it."""
    thread = runs.of_thread(run.scope, run.thread_id)
    for one, note in (
        (thread.filter(_earlier(run)).last(), _("before")),
        (thread.filter(_later(run)).first(), _("after")),
    ):
        if one is not None:
            yield _line(admin, one)._replace(note=note)


def _line(admin: ThreadRunAdmin, run: Any) -> Line:
    url = page_of(admin.admin_site, run)
    label = f"{run.run_id} · {run.name}" if run.name else run.run_id
    return Line(label, url, badge_and_flags(run), when(run.started_at, run.clock))


def documents(run: ThreadRun) -> Iterator[Block]:
    """What takes the permission to see it: one query."""
    stored = ThreadRun.objects.using(run._state.db).filter(pk=run.pk)
    error, usage, sandbox = stored.values_list(*CONTENT).first() or (None, None, None)
    if isinstance(error, dict):
        said = [storable.text(error[key]) for key in ("code", "message") if error.get(key)]
        yield Block(_("Error"), ": ".join(said)[:MOST_CHARS], "error")
    elif error is not None:
        yield Block(_("Error"), json_block(error, MOST_CHARS)[0], "error")
    shown, is_cut = json_block(usage, MOST_CHARS)
    if shown:
        more = str(_("Only the beginning is shown.")) if is_cut else ""
        yield Block(_("Usage"), shown, "code", len(shown) > OPEN_CHARS, more)
    if sandbox:
        yield Block(_("Sandbox"), storable.text(sandbox)[:MOST_CHARS], "code")


def _asked(site: AdminSite, request: HttpRequest, run: Any) -> Iterator[Line]:
    """What the run asked, for those who may see interrupts."""
    registered = site._registry.get(ThreadInterrupt)
    if registered is None or not registered.has_view_permission(request):
        return
    interrupts = registered.get_queryset(request).filter(scope=run.scope, run_id=run.run_id)
    for one in interrupts.order_by("requested_at", "pk")[: MOST_LINKED + 1]:
        yield Line(
            one.interrupt_id,
            page_of(site, one),
            interrupt_badge(one.status),
            when(one.requested_at, run.clock),
        )
