"""What the inbox says of an interrupt, in sentences: what was answered, what came of it, what next.

Escaped HTML, with links to the runs that this person may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from solid_runs import storable
from solid_runs.admin.display import count_text, moment
from solid_runs.ag_ui.admin.display import is_cancelled, is_expired, verb
from solid_runs.ag_ui.inbox.attention import outcome_is_unknown
from solid_runs.ag_ui.interrupts import AnswerState
from solid_runs.ag_ui.stores.answering import EXPIRY

if TYPE_CHECKING:
    from solid_runs.ag_ui.admin.releases import Release
    from solid_runs.ag_ui.models import ReservedRun, RunInterrupt

MOST_SAID: Final = 300
"""Characters of the values of an answer within a sentence."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is known of an interrupt besides its row; urls are None for what one may not see."""

    actor: ReservedRun | None = None
    """The run that holds the answer or acted on it."""
    actor_url: str | None = None
    run_url: str | None = None
    thread_url: str | None = None
    open_beside: int = 0
    """Questions of the same run that wait yet."""
    release: Release | None = None
    later: str | None = None
    """The run that has asked since; None also where nobody looked."""


def linked(text: Any, url: str | None) -> Any:
    if url is None:
        return format_html("<bdi>{}</bdi>", text)
    return format_html('<a href="{}"><bdi>{}</bdi></a>', url, text)


# The answer


def answer_facts(interrupt: RunInterrupt, around: Surroundings, now: datetime) -> Iterator[Any]:
    """Who answered what and when, and what came of it: a sentence each."""
    if interrupt.state is AnswerState.OPEN:
        return
    yield told(interrupt, now)
    reason, values = reason_of(interrupt.decision), values_of(interrupt.decision)
    if reason:
        yield format_html("“{}”", reason)
    if values:
        yield format_html("<code>{}</code>", values)
    if around.release is not None:
        yield _released(around.release, now)
    run = linked(interrupt.redeemed_by, around.actor_url)
    if interrupt.state is AnswerState.FREE:
        if around.release is None:
            yield _("No run has taken the answer yet.")
        else:
            yield _("No run has taken the answer again yet.")
    elif interrupt.state is AnswerState.HELD:
        yield format_html(
            gettext("Run {run} has taken the answer and not acted on it yet."), run=run
        )
    elif interrupt.redeemed_by is not None and not is_cancelled(interrupt):
        yield _acted(interrupt, around, now)


def _released(release: Release, now: datetime) -> Any:
    words = gettext(
        "Released by {who} {when}: run {run} had acted on it before, so its tool may run twice."
    )
    return format_html(
        '<strong class="run-danger">{}</strong>',
        format_html(words, who=release.by, when=moment(release.at, now), run=release.acted),
    )


def _acted(interrupt: RunInterrupt, around: Surroundings, now: datetime) -> Any:
    when, run = moment(interrupt.settled_at, now), linked(interrupt.redeemed_by, around.actor_url)
    if outcome_is_unknown(interrupt, around.actor) and around.actor is not None:
        return format_html(
            gettext("Acted on by run {run} {when}, which then ended as {status}: outcome unknown."),
            run=run,
            when=when,
            status=around.actor.status,
        )
    return format_html(gettext("Acted on by run {run} {when}."), run=run, when=when)


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


def values_of(decision: Any) -> str:
    """What an answer says besides yes or no and the reason, as JSON; mostly nothing."""
    payload = decision.get("payload") if isinstance(decision, dict) else None
    if isinstance(payload, dict):
        plain = {
            key: value
            for key, value in payload.items()
            if not (key == "approved" and isinstance(value, bool))
            and not (key == "reason" and isinstance(value, str))
        }
        payload = plain or None
    if payload is None:
        return ""
    return storable.text(storable.compact_json(payload), max_chars=MOST_SAID)


# What happens next


def next_text(open_beside: int) -> str:
    """When a run takes a free answer."""
    if not open_beside:
        return gettext("The next run of the thread takes the answer.")
    words = ngettext(
        "The next run of the thread takes the answer once the other question of this run is "
        "answered.",
        "The next run of the thread takes the answer once the %(count)s other questions of this "
        "run are answered.",
        open_beside,
    )
    return words % {"count": count_text(open_beside)}


def hint(interrupt: RunInterrupt, around: Surroundings, now: datetime) -> Any:
    """What happens next."""
    stale = getattr(interrupt, "stale", False)
    if interrupt.state is AnswerState.OPEN:
        run = linked(interrupt.run.run_id, around.run_url)
        if stale:
            return _stale_hint(run, around.later)
        if is_expired(interrupt, now):
            words = gettext(
                "Its time is up: nobody can answer it any more. It stays here until the thread "
                "runs again or somebody cancels the questions of run {run}."
            )
            return format_html(words, run=run)
        return ""
    if interrupt.state is AnswerState.FREE:
        if stale:
            return _("A later run of the thread has asked, so no run will take the answer.")
        return next_text(around.open_beside)
    return ""


def _stale_hint(run: Any, later: str | None) -> Any:
    if later is None:
        words = gettext(
            "A later run of the thread has asked, so no answer counts here. It stays here until "
            "somebody cancels the questions of run {run}."
        )
        return format_html(words, run=run)
    words = gettext(
        "Run {later} of the thread has asked later, so no answer counts here. It stays here until "
        "somebody cancels the questions of run {run}."
    )
    return format_html(words, later=later, run=run)
