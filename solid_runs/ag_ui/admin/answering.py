"""Answers and releases by a person: through the store, into the history, and told in words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext

from solid_runs import storable
from solid_runs.admin.display import exact_time
from solid_runs.ag_ui.admin.display import ago, is_expired, verb
from solid_runs.ag_ui.exceptions import ResumeRejectedError
from solid_runs.ag_ui.inbox.shelves import answer, asked_later
from solid_runs.ag_ui.interrupts import RESOLVED, Decision, Interrupt
from solid_runs.ag_ui.models import RunInterrupt

if TYPE_CHECKING:
    from django.http import HttpRequest

    from solid_runs.ag_ui.admin.inbox import RunInterruptAdmin


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
    word = verb(decision.to_storage())
    if redemption.recorded:
        admin.log_change(request, interrupt, history_text(word, decision.payload))
        told = gettext("%(verb)s. The answer is free: the next run of the thread takes it.")
        admin.message_user(request, told % {"verb": word}, messages.SUCCESS)
    else:
        told = gettext("Somebody was faster, and of the same mind: %(answered)s.")
        first = redemption.interrupt
        answered = answered_text(first, store.now())
        admin.message_user(request, told % {"answered": answered}, messages.INFO)


def history_text(word: str, payload: Any) -> str:
    """``Denied: {"approved": false, "reason": "no"}``"""
    said = storable.compact_json(payload)
    return storable.text(f"{word}: {said}", max_chars=2_000)


def why_not(admin: RunInterruptAdmin, interrupt: RunInterrupt) -> str:
    """Why an answer to this interrupt is not taken, as it is stored now."""
    store = admin.get_store()
    stored = RunInterrupt.objects.using(store.using).filter(pk=interrupt.pk).first()
    if stored is None:
        return gettext("Your answer was not taken: the run that asked is gone.")
    if stored.decision is not None:
        told = gettext("Your answer was not taken. Somebody was faster: %(answered)s.")
        return told % {"answered": answered_text(stored, store.now())}
    later = asked_later(interrupt, store)
    if later is not None:
        told = gettext("Your answer was not taken. It is stale: run %(run)s has asked later.")
        return told % {"run": later}
    if is_expired(stored, store.now()) and stored.expires_at is not None:
        told = gettext("Your answer was not taken. It expired at %(time)s.")
        return told % {"time": exact_time(stored.expires_at)}
    return gettext("Your answer was not taken. Look at it again.")


def answered_text(interrupt: RunInterrupt | Interrupt, now: datetime) -> str:
    """``denied by maria 5 seconds ago``"""
    decision = interrupt.decision
    said = decision.to_storage() if isinstance(decision, Decision) else decision
    who = interrupt.decided_by or gettext("run %(run)s") % {"run": interrupt.redeemed_by or "?"}
    when = "" if interrupt.decided_at is None else ago(interrupt.decided_at, now)
    words = gettext("%(verb)s by %(who)s %(when)s")
    return words % {"verb": verb(said).lower(), "who": who, "when": when}


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
    told = gettext("Released: run %(run)s had acted on it, so its tool may run twice.")
    admin.log_change(request, interrupt, told % {"run": actor})
    told = gettext(
        "The answer is free again: the next run of the thread takes it, and its tool may run twice."
    )
    admin.message_user(request, told, messages.WARNING)
