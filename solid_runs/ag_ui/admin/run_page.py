"""What the page of a reserved run shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.detail import MOST_CHARS, Block, Fact
from solid_runs.admin.display import count_text, exact_time, json_block, moment, silence_text
from solid_runs.admin.lines import MOST_LINKED, Line
from solid_runs.admin.links import page_of
from solid_runs.admin.traces import traced_rows
from solid_runs.ag_ui.admin.display import deadline, name_of, state_badge, status_badge
from solid_runs.ag_ui.admin.sentences import told
from solid_runs.ag_ui.inbox.attention import outcome_is_unknown
from solid_runs.ag_ui.inbox.shelves import actors
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.records import ACTIVE

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.runs import ReservedRunAdmin


def run_page(admin: ReservedRunAdmin, request: HttpRequest, run: Any) -> dict[str, Any]:
    """``run``: out of the queryset of the admin, with what that adds."""
    now, content = admin.get_store().now(), admin.has_content_permission(request, run)
    others = list(thread_runs(admin, request, run)[: MOST_LINKED + 1])
    return {
        "run_facts": [fact for fact in facts(admin, run, now) if fact.value],
        "run_blocks": list(documents(run)) if content else [],
        "run_silence": silence_text(run.alive_at, now) if run.silent else "",
        "run_content_hidden": not content,
        "asked": list(interrupt_lines(admin.admin_site, request, run, now)),
        "others": [
            Line(
                other.run_id,
                page_of(admin.admin_site, other),
                status_badge(other.status),
                moment(other.created_at, now),
            )
            for other in others[:MOST_LINKED]
        ],
        "more_others_url": (
            admin.search_url(run.thread_id or "") if len(others) > MOST_LINKED else None
        ),
        "traced": list(traced_rows(admin.admin_site, request, run.trace_id, besides=run)),
    }


def facts(admin: ReservedRunAdmin, run: ReservedRun, now: datetime) -> Iterator[Fact]:
    yield Fact(_("status"), status_badge(run.status))
    yield Fact(_("thread"), run.thread_id, url=admin.search_url(run.thread_id or ""))
    yield Fact(_("scope"), run.scope)
    yield _moment(_("reserved"), run.created_at, now)
    yield _moment(_("last written"), run.updated_at, now)
    if run.status in ACTIVE:
        yield _moment(_("heartbeat"), run.alive_at, now)
    yield _moment(_("cancel requested"), run.cancel_requested_at, now)
    yield Fact(_("events sent"), count_text(run.sequence))
    if run.parent_run_id:
        yield Fact(_("parent run"), run.parent_run_id, url=admin.search_url(run.parent_run_id))
    if run.trace_id:
        yield Fact(_("trace"), run.trace_id, url=admin.search_url(run.trace_id))


def _moment(label: Any, value: datetime | None, now: datetime) -> Fact:
    return Fact(label, moment(value, now), "" if value is None else exact_time(value))


def documents(run: ReservedRun) -> Iterator[Block]:
    """What takes the permission to see it: why the run failed, and the state it served."""
    failure = run.failure
    if isinstance(failure, dict):
        said = [storable.text(failure[key]) for key in ("code", "message") if failure.get(key)]
        yield Block(_("Failure"), ": ".join(said)[:MOST_CHARS], "error")
    state, is_cut = json_block(run.snapshot, MOST_CHARS)
    if state:
        more = str(_("Only the beginning is shown.")) if is_cut else ""
        yield Block(_("State"), state, "code", len(state) > MOST_CHARS // 20, more)


def thread_runs(admin: ReservedRunAdmin, request: HttpRequest, run: ReservedRun) -> QuerySet[Any]:
    """The other runs of the thread that this person may see, the newest first."""
    runs = admin.get_queryset(request).filter(thread_id=run.thread_id, scope=run.scope)
    return runs.exclude(pk=run.pk).order_by("-created_at", "-pk")


def interrupt_lines(
    site: AdminSite, request: HttpRequest, run: ReservedRun, now: datetime
) -> Iterator[Line]:
    """What the run asked, for those who may see interrupts."""
    inbox = site._registry.get(RunInterrupt)
    if inbox is None or not inbox.has_view_permission(request):
        return
    visible: Any = inbox.get_queryset(request)
    asked = visible.filter(run=run).with_stale().order_by("position")
    interrupts = list(asked.select_related("run").defer("run__snapshot", "run__failure"))
    acting = actors(interrupts, run._state.db or "default")
    for interrupt in interrupts:
        is_open = interrupt.state is AnswerState.OPEN
        is_unknown = outcome_is_unknown(interrupt, acting.get(interrupt.pk))
        yield Line(
            name_of(interrupt),
            page_of(site, interrupt),
            state_badge(interrupt, now, is_unknown=is_unknown),
            deadline(interrupt, now) if is_open else told(interrupt, now),
        )
