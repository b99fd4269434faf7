"""An interrupt as a card: what the agent wants to do, until when, and who has said what to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.detail import Fact
from solid_runs.admin.display import exact_time, json_block, moment
from solid_runs.ag_ui.admin.display import (
    deadline,
    is_cancelled,
    is_expired,
    kind_of,
    state_badge,
    tool_of,
)
from solid_runs.ag_ui.admin.sentences import Surroundings, answer_facts, hint
from solid_runs.ag_ui.inbox.attention import outcome_is_unknown
from solid_runs.ag_ui.inbox.forms import ApprovalForm, JSONAnswerForm
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.records import TERMINAL

if TYPE_CHECKING:
    from solid_runs.ag_ui.inbox.forms import AnswerForm
    from solid_runs.ag_ui.models import ReservedRun, RunInterrupt

MOST_CHARS: Final = 100_000
"""Of one text on the page of an interrupt."""
LIST_CHARS: Final = 1_500
"""Of one text in the list."""
LONG: Final = 160
"""A question of more characters is no headline."""


@dataclass(kw_only=True)
class Card:
    """What the templates show of one interrupt; urls are None for what this person may not do."""

    interrupt: RunInterrupt
    kind: str
    question: str
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
    around: Surroundings
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
    def is_long(self) -> bool:
        return len(self.question) > LONG or "\n" in self.question

    @property
    def is_open(self) -> bool:
        return self.interrupt.state is AnswerState.OPEN


def card(
    interrupt: RunInterrupt,
    now: datetime,
    around: Surroundings,
    *,
    url: str,
    most: int = MOST_CHARS,
) -> Card:
    kind, message = kind_of(interrupt), storable.text(interrupt.message or "")
    _tool, arguments, rest = tool_of(interrupt.metadata)
    shown, arguments_cut = json_block(arguments, most)
    details, details_cut = json_block(rest, most)
    is_unknown = outcome_is_unknown(interrupt, around.actor)
    return Card(
        interrupt=interrupt,
        kind=kind if message else "",
        question=message[:most] or kind[:most],
        arguments=shown,
        details=details,
        schema=json_block(interrupt.response_schema, most)[0],
        answer=json_block(interrupt.decision, most)[0],
        is_cut=len(message) > most or arguments_cut or details_cut,
        is_answerable=is_answerable(interrupt, now),
        badge=state_badge(
            interrupt, now, is_unknown=is_unknown, is_released=around.release is not None
        ),
        deadline=deadline(interrupt, now) if interrupt.state is AnswerState.OPEN else "",
        facts=list(answer_facts(interrupt, around, now)),
        hint=hint(interrupt, around, now),
        url=url,
        around=around,
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


def page_facts(shown: Card, now: datetime) -> list[Fact]:
    """What the page of an interrupt says besides its card; a fact without a value is left out."""
    interrupt, run, around = shown.interrupt, shown.interrupt.run, shown.around
    facts = [
        Fact(_("state"), shown.badge),
        Fact(_("interrupt"), interrupt.interrupt_id),
        Fact(_("run"), run.run_id, url=around.run_url),
        Fact(_("thread"), run.thread_id, url=around.thread_url),
        Fact(_("scope"), run.scope),
        Fact(_("tool call"), interrupt.tool_call_id),
        Fact(_("subagent run"), interrupt.subagent_run_id),
        # How far away that is, the card says.
        Fact(_("deadline"), interrupt.expires_at and exact_time(interrupt.expires_at)),
        _moment(_("answered"), interrupt.decided_at, now),
        Fact(_("answered by"), interrupt.decided_by),
        Fact(_("taken by run"), interrupt.redeemed_by, url=around.actor_url),
        _moment(_("taken"), interrupt.redeemed_at, now),
        _moment(_("settled"), interrupt.settled_at, now),
    ]
    return [fact for fact in facts if fact.value]


def _moment(label: Any, value: datetime | None, now: datetime) -> Fact:
    if value is None:
        return Fact(label, None)
    return Fact(label, moment(value, now), exact_time(value))
