"""Answers and releases by a person: through the store, into the history, and told in words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext

from solid_runs import storable
from solid_runs.admin.display import ago, exact_time
from solid_runs.ag_ui.admin.display import is_expired, name_of, verb
from solid_runs.ag_ui.admin.releases import log_release
from solid_runs.ag_ui.admin.sentences import next_text, reason_of, values_of
from solid_runs.ag_ui.exceptions import ResumeRejectedError
from solid_runs.ag_ui.inbox.shelves import answer, asked_later, open_questions
from solid_runs.ag_ui.interrupts import RESOLVED, Decision, Interrupt
from solid_runs.ag_ui.models import RunInterrupt

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.inbox import RunInterruptAdmin
    from solid_runs.ag_ui.stores.database import DatabaseStore


def give_answer(
    admin: RunInterruptAdmin, request: HttpRequest, interrupt: RunInterrupt, payload: Any
) -> None:
    """Answer it, and say what became of that."""
    store = admin.get_store()
    decision = Decision(status=RESOLVED, payload=payload)
    try:
        redemption = answer(store, interrupt, decision, admin.decided_by(request))
    except ResumeRejectedError:
        admin.message_user(request, why_not(admin, interrupt), messages.WARNING)
        return
    word, name = verb(decision.to_storage()), name_of(interrupt)
    if redemption.recorded:
        admin.log_change(request, interrupt, history_text(word, decision.payload))
        told = gettext("%(verb)s: “%(name)s”. %(next)s")
        words = {"verb": word, "name": name, "next": next_text(_open_beside(store, interrupt))}
        admin.message_user(request, told % words, messages.SUCCESS)
    else:
        told = gettext("Somebody was faster, and of the same mind: “%(name)s” was %(answered)s.")
        answered = answered_text(redemption.interrupt, store.now())
        admin.message_user(request, told % {"name": name, "answered": answered}, messages.INFO)


def _open_beside(store: DatabaseStore, interrupt: RunInterrupt) -> int:
    """How many questions stand beside one that was answered."""
    return open_questions({interrupt.run_id}, store.using, store.now()).get(interrupt.run_id, 0)


def history_text(word: str, payload: Any) -> str:
    """``Denied: {"approved": false, "reason": "no"}``"""
    said = storable.compact_json(payload)
    return storable.text(f"{word}: {said}", max_chars=2_000)


def why_not(admin: RunInterruptAdmin, interrupt: RunInterrupt) -> str:
    """Why an answer to this interrupt is not taken, as it is stored now."""
    told = gettext("Your answer to “%(name)s” was not taken: %(why)s")
    return told % {"name": name_of(interrupt), "why": _why_not(admin, interrupt)}


def _why_not(admin: RunInterruptAdmin, interrupt: RunInterrupt) -> str:
    store = admin.get_store()
    stored = RunInterrupt.objects.using(store.using).filter(pk=interrupt.pk).first()
    if stored is None:
        return gettext("the run that asked is gone.")
    if stored.decision is not None:
        told = gettext("somebody was faster, it was %(answered)s.")
        return told % {"answered": answered_text(stored, store.now())}
    later = asked_later(interrupt, store)
    if later is not None:
        return gettext("it is stale, run %(run)s has asked later.") % {"run": later}
    if is_expired(stored, store.now()) and stored.expires_at is not None:
        return gettext("it expired at %(time)s.") % {"time": exact_time(stored.expires_at)}
    return gettext("look at it again.")


def answered_text(interrupt: RunInterrupt | Interrupt, now: datetime) -> str:
    """``denied by maria 5 seconds ago (“too much”)``"""
    decision = interrupt.decision
    said = decision.to_storage() if isinstance(decision, Decision) else decision
    who = interrupt.decided_by or gettext("run %(run)s") % {"run": interrupt.redeemed_by or "?"}
    when = "" if interrupt.decided_at is None else ago(interrupt.decided_at, now)
    words = gettext("%(verb)s by %(who)s %(when)s")
    told = words % {"verb": verb(said).lower(), "who": who, "when": when}
    reason, values = reason_of(said), values_of(said)
    more = ", ".join(filter(None, (f"“{reason}”" if reason else "", values)))
    return f"{told} ({more})" if more else told


def release(admin: RunInterruptAdmin, request: HttpRequest, interrupt: RunInterrupt) -> None:
    """Free an answer that a run acted on, and say what happens next."""
    store, run, actor = admin.get_store(), interrupt.run, interrupt.redeemed_by
    later = asked_later(interrupt, store)
    if later is not None:
        told = gettext("Nothing was released: run %(run)s asked later, so no run would take it.")
        admin.message_user(request, told % {"run": later}, messages.WARNING)
        return
    try:
        store.release_settled(
            run.scope,
            run.thread_id,
            run.run_id,
            interrupt.interrupt_id,
            by=admin.decided_by(request),
        )
    except ResumeRejectedError as error:
        told = gettext("Nothing was released. %(error)s")
        admin.message_user(request, told % {"error": error}, messages.WARNING)
        return
    log_release(admin, request, interrupt)
    told = gettext(
        "Released: “%(name)s”. %(next)s Run %(run)s had acted on it before, so its tool may run "
        "twice."
    )
    next_one = next_text(_open_beside(store, interrupt))
    words = {"name": name_of(interrupt), "next": next_one, "run": actor}
    admin.message_user(request, told % words, messages.WARNING)
