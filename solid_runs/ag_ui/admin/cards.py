"""An interrupt as a card: what the agent wants to do, until when, and who has said what to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.detail import Fact
from solid_runs.admin.display import exact_time
from solid_runs.ag_ui.admin.display import (
    deadline,
    is_cancelled,
    is_expired,
    json_block,
    moment,
    state_badge,
    tool_of,
    verb,
)
from solid_runs.ag_ui.inbox.forms import ApprovalForm, JSONAnswerForm
from solid_runs.ag_ui.inbox.shelves import outcome_is_unknown
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.records import TERMINAL
from solid_runs.ag_ui.stores.answering import EXPIRY

if TYPE_CHECKING:
    from solid_runs.ag_ui.inbox.forms import AnswerForm
    from solid_runs.ag_ui.models import ReservedRun, RunInterrupt

MOST_CHARS: Final = 100_000
"""Of one text on the page of an interrupt."""
LIST_CHARS: Final = 1_500
"""Of one text in the list."""


@dataclass(kw_only=True)
class Card:
    """What the templates show of one interrupt; urls are None for what this person may not do."""

    interrupt: RunInterrupt
    title: str
    message: str
    arguments: str
    details: str
    schema: str
    answer: str
    is_cut: bool
    is_answerable: bool
    badge: Any
    deadline: Any
    facts: list[Any]
    hint: Any
    url: str
    run_url: str | None
    answer_url: str | None = None
    release_url: str | None = None
    form: AnswerForm | None = None

    @property
    def is_approval(self) -> bool:
        return isinstance(self.form, ApprovalForm)

    @property
    def takes_json(self) -> bool:
        return isinstance(self.form, JSONAnswerForm)

    @property
    def is_open(self) -> bool:
        return self.interrupt.state is AnswerState.OPEN


def card(
    interrupt: RunInterrupt,
    now: datetime,
    *,
    actor: ReservedRun | None,
    url: str,
    run_url: str | None,
    most: int = MOST_CHARS,
) -> Card:
    tool, arguments, rest = tool_of(interrupt.metadata)
    message = storable.text(interrupt.message or "")
    shown, arguments_cut = json_block(arguments, most)
    details, details_cut = json_block(rest, most)
    return Card(
        interrupt=interrupt,
        title=" · ".join(filter(None, (storable.text(interrupt.reason), tool))),
        message=message[:most],
        arguments=shown,
        details=details,
        schema=json_block(interrupt.response_schema, most)[0],
        answer=json_block(interrupt.decision, most)[0],
        is_cut=len(message) > most or arguments_cut or details_cut,
        is_answerable=is_answerable(interrupt, now),
        badge=state_badge(interrupt, now, is_unknown=outcome_is_unknown(interrupt, actor)),
        deadline=deadline(interrupt, now) if interrupt.state is AnswerState.OPEN else "",
        facts=list(answer_facts(interrupt, actor, now)),
        hint=hint(interrupt, actor, now),
        url=url,
        run_url=run_url,
    )


def is_answerable(interrupt: RunInterrupt, now: datetime) -> bool:
    stale = getattr(interrupt, "stale", False)
    return interrupt.state is AnswerState.OPEN and not stale and not is_expired(interrupt, now)


def is_releasable(interrupt: RunInterrupt, actor: ReservedRun | None) -> bool:
    """Settled by a run that has ended, on a thread that has asked nothing since."""
    return (
        interrupt.state is AnswerState.SETTLED
        and interrupt.redeemed_by is not None
        and not is_cancelled(interrupt)
        and not getattr(interrupt, "stale", False)
        and (actor is None or actor.status in TERMINAL)
    )


def page_facts(shown: Card, now: datetime, *, thread_url: str, actor_url: str | None) -> list[Fact]:
    """What the page of an interrupt says besides its card; a fact without a value is left out."""
    interrupt, run = shown.interrupt, shown.interrupt.run
    facts = [
        Fact(_("state"), shown.badge),
        Fact(_("interrupt"), interrupt.interrupt_id),
        Fact(_("run"), run.run_id, url=shown.run_url),
        Fact(_("thread"), run.thread_id, url=thread_url),
        Fact(_("scope"), run.scope),
        Fact(_("tool call"), interrupt.tool_call_id),
        Fact(_("subagent run"), interrupt.subagent_run_id),
        _moment(_("expires"), interrupt.expires_at, now, shown.deadline),
        _moment(_("answered"), interrupt.decided_at, now),
        Fact(_("answered by"), interrupt.decided_by),
        Fact(_("taken by run"), interrupt.redeemed_by, url=actor_url),
        _moment(_("taken"), interrupt.redeemed_at, now),
        _moment(_("settled"), interrupt.settled_at, now),
    ]
    return [fact for fact in facts if fact.value]


def _moment(label: Any, value: datetime | None, now: datetime, words: Any = "") -> Fact:
    if value is None:
        return Fact(label, None)
    return Fact(label, words or moment(value, now), exact_time(value))


def answer_facts(
    interrupt: RunInterrupt, actor: ReservedRun | None, now: datetime
) -> Iterable[Any]:
    """Who answered what and when, and what came of it: a sentence each."""
    if interrupt.state is AnswerState.OPEN:
        return
    yield told(interrupt, now)
    reason = reason_of(interrupt.decision)
    if reason:
        yield format_html("“{}”", reason)
    run_id = interrupt.redeemed_by
    if interrupt.state is AnswerState.FREE:
        yield _("Nobody has taken the answer yet.")
    elif interrupt.state is AnswerState.HELD:
        yield format_html(
            gettext("Run {run} has taken the answer and not acted on it yet."), run=run_id
        )
    elif run_id is not None and not is_cancelled(interrupt):
        yield _acted(interrupt, actor, now)


def _acted(interrupt: RunInterrupt, actor: ReservedRun | None, now: datetime) -> Any:
    when, run_id = moment(interrupt.settled_at, now), interrupt.redeemed_by
    if outcome_is_unknown(interrupt, actor) and actor is not None:
        return format_html(
            gettext("Acted on by run {run} {when}, which then ended as {status}: outcome unknown."),
            run=run_id,
            when=when,
            status=actor.status,
        )
    return format_html(gettext("Acted on by run {run} {when}."), run=run_id, when=when)


def told(interrupt: RunInterrupt, now: datetime) -> Any:
    """``Approved by maria 2 minutes ago.``"""
    by, when = interrupt.decided_by, moment(interrupt.decided_at, now)
    if by == EXPIRY:
        return format_html(gettext("Abandoned {when}: its time was up."), when=when)
    word = verb(interrupt.decision)
    if by:
        return format_html(gettext("{verb} by {who} {when}."), verb=word, who=by, when=when)
    if interrupt.redeemed_by:
        run_id = interrupt.redeemed_by
        return format_html(
            gettext("{verb} with run {run} {when}."), verb=word, run=run_id, when=when
        )
    return format_html(gettext("{verb} {when}."), verb=word, when=when)


def reason_of(decision: Any) -> str:
    payload = decision.get("payload") if isinstance(decision, dict) else None
    reason = payload.get("reason") if isinstance(payload, dict) else None
    return storable.text(reason) if isinstance(reason, str) else ""


def stale_hint(later: str | None = None) -> Any:
    if later is None:
        return _(
            "A later run of the thread has asked, so no answer counts here. Cancelling the run "
            "that asked this puts it away."
        )
    told_of_run = gettext(
        "Run {run} of the thread has asked later, so no answer counts here. Cancelling the run "
        "that asked this puts it away."
    )
    return format_html(told_of_run, run=later)


def hint(interrupt: RunInterrupt, actor: ReservedRun | None, now: datetime) -> Any:
    """What happens next."""
    stale = getattr(interrupt, "stale", False)
    if interrupt.state is AnswerState.OPEN:
        if stale:
            return stale_hint()
        if is_expired(interrupt, now):
            return _(
                "Its time is up, so it can no longer be answered. The next run of the thread, or "
                "cancelling its own, puts it away."
            )
        return ""
    if interrupt.state is AnswerState.FREE:
        if stale:
            return _("A later run of the thread has asked, so no run will take it.")
        return _("The next run of the thread takes it.")
    return ""
