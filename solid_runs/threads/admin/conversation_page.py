"""What the page of one conversation shows: its runs in order, children under their parents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Count
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from solid_runs.admin.detail import Fact
from solid_runs.admin.display import count_text
from solid_runs.admin.links import list_of, page_of
from solid_runs.threads.admin.display import badge_and_flags, claims, duration, scope_text, when
from solid_runs.threads.conversations import MOST_RUNS, Conversation, Placed, conversation
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.http import HttpRequest

    from solid_runs.threads.admin.runs import ThreadRunAdmin

DEEPEST: Final = 8
"""Runs deeper than this are indented no further."""


class Parent(NamedTuple):
    """What is told of a parent that a run does not stand under."""

    note: Any
    url: str | None = None


class Row(NamedTuple):
    run: Any
    url: str
    depth: int
    indent: int
    badge: Any
    started: Any
    duration: Any
    claims: str
    pending: int
    pending_url: str | None
    parent: Parent | None
    is_active: bool
    is_current: bool


def conversation_page(admin: ThreadRunAdmin, request: HttpRequest, run: Any) -> dict[str, Any]:
    """``run``: the one that was come from."""
    site = admin.admin_site
    runs: Any = admin.get_queryset(request)
    talk = conversation(runs, run.scope, run.thread_id)
    pending = pending_interrupts(site, request, run)
    parents = dict(_parents(admin, runs, talk, run))
    rows = [_row(admin, placed, talk, pending, parents, run) for placed in talk.runs]
    return {
        "rows": rows,
        "run_facts": list(_facts(admin, runs, talk, pending, run)),
        "most_runs": count_text(MOST_RUNS),
        "earlier_url": admin.search_url(run.thread_id) if talk.has_earlier else None,
    }


def _facts(
    admin: ThreadRunAdmin, runs: Any, talk: Conversation, pending: dict[str, int], run: Any
) -> Iterator[Fact]:
    site = admin.admin_site
    active = next((one.run for one in talk.runs if one.run.pk == talk.active), None)
    if active is None and talk.active is not None:
        active = runs.filter(pk=talk.active).first()
    url = None if active is None else page_of(site, active)
    yield Fact(_("active run"), gettext("none") if active is None else active.run_id, url=url)
    count = f"{count_text(MOST_RUNS)}+" if talk.has_earlier else count_text(len(talk.runs))
    yield Fact(_("runs"), count)
    if pending:
        total = count_text(sum(pending.values()))
        yield Fact(_("pending interrupts"), total, url=_pending_url(site, run.thread_id))
    yield Fact(_("scope"), scope_text(run.scope))


def _row(
    admin: ThreadRunAdmin,
    placed: Placed,
    talk: Conversation,
    pending: dict[str, int],
    parents: dict[str, Parent],
    current: Any,
) -> Row:
    run, site = placed.run, admin.admin_site
    asks = pending.get(run.run_id, 0)
    return Row(
        run=run,
        url=page_of(site, run),
        depth=placed.depth,
        indent=min(placed.depth, DEEPEST),
        badge=badge_and_flags(run),
        started=when(run.started_at, run.clock),
        duration=duration(run),
        claims=claims(run),
        pending=asks,
        pending_url=_pending_url(site, run.run_id) if asks else None,
        parent=parents.get(run.run_id),
        is_active=run.pk == talk.active,
        is_current=run.pk == current.pk,
    )


def _parents(
    admin: ThreadRunAdmin, runs: Any, talk: Conversation, current: ThreadRun
) -> Iterator[tuple[str, Parent]]:
    """For each run at the top that has a parent where that is: one query."""
    tops = [one.run for one in talk.runs if not one.depth and one.run.parent_run_id]
    shown = {one.run.run_id for one in talk.runs}
    wanted = {run.parent_run_id for run in tops} - shown
    found = runs.filter(scope=current.scope, run_id__in=sorted(wanted)) if wanted else ()
    elsewhere = {parent.run_id: parent for parent in found}
    for run in tops:
        parent = elsewhere.get(run.parent_run_id)
        if run.parent_run_id in shown:
            note = _("its parents go round in a circle")
            yield run.run_id, Parent(note)
        elif parent is None:
            yield run.run_id, Parent(_("its parent is not there"))
        elif parent.thread_id == current.thread_id:
            yield run.run_id, Parent(_("of an earlier run"), page_of(admin.admin_site, parent))
        else:
            note = _("of a run in another conversation")
            yield run.run_id, Parent(note, page_of(admin.admin_site, parent))


def pending_interrupts(site: AdminSite, request: HttpRequest, run: ThreadRun) -> dict[str, int]:
    """How many of each run of the thread nobody has answered, for those who may see them."""
    registered = site._registry.get(ThreadInterrupt)
    if registered is None or not registered.has_view_permission(request):
        return {}
    visible = registered.get_queryset(request).filter(scope=run.scope, thread_id=run.thread_id)
    pending = visible.filter(status=InterruptStatus.PENDING).order_by()
    return dict(pending.values_list("run_id").annotate(count=Count("pk")))


def _pending_url(site: AdminSite, term: str) -> str:
    query = urlencode({SEARCH_VAR: term, "status": InterruptStatus.PENDING})
    return f"{list_of(site, ThreadInterrupt)}?{query}"
