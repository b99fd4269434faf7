"""Answers: given once, held by one run, acted on at most once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from solid_runs.ag_ui.answers import Answer, judge, parse_answers
from solid_runs.ag_ui.exceptions import ResumeRejectedError, StreamError
from solid_runs.ag_ui.interrupts import AnswerState, Decision, Interrupt, Redemption
from solid_runs.ag_ui.records import RunKey, RunRecord, Status
from solid_runs.ag_ui.scopes import identifier
from solid_runs.ag_ui.stores.steps import StorageSteps, run_key, thread_key

EXPIRY = "expiry"
"""Who abandoned what had expired."""

logger = logging.getLogger("solid_runs.ag_ui")


class AnswerMethods(StorageSteps):
    def find_interrupt(self, scope: Any, thread_id: str, interrupt_id: str) -> Interrupt | None:
        """Anywhere on the thread, the newest run's first."""
        interrupt_id = identifier("interrupt_id", interrupt_id)
        asking = self._asking(*thread_key(scope, thread_id), interrupt_id)
        return asking.interrupt(interrupt_id) if asking else None

    def redeem_interrupt(
        self,
        scope: Any,
        thread_id: str,
        interrupt_id: str,
        decision: Decision | Mapping[str, Any],
        now: datetime | None = None,
        run_id: str | None = None,
        *,
        by: str | None = None,
    ) -> Redemption:
        """Answer an interrupt, and hold the answer for ``run_id``: the first answer wins.

        ResumeRejectedError, with nothing recorded, for an unknown or expired interrupt, an answer
        that disagrees with the first, and one that another run holds or has acted on. Whether the
        interrupt is stale is not judged. ``decision``: a Decision, or ``{"status", "payload"}``.
        """
        interrupt_id, decided = identifier("interrupt_id", interrupt_id), _decision(decision)
        scope, thread_id = thread_key(scope, thread_id)
        taker = None if run_id is None else run_key(scope, thread_id, run_id)
        with self._thread(scope, thread_id):
            asking = self._asking(scope, thread_id, interrupt_id)
            if asking is None:
                raise _unknown(interrupt_id)
            return self._redeem(asking, interrupt_id, decided, self._moment(now), taker, by)

    def answer(
        self,
        scope: Any,
        thread_id: str,
        interrupt_id: str,
        decision: Decision | Mapping[str, Any],
        *,
        by: str,
        asked_by: str | None = None,
        now: datetime | None = None,
    ) -> Redemption:
        """Answer an interrupt for the next run of the thread to take: what an inbox does.

        As redeem_interrupt(), but a stale interrupt is refused. ``asked_by``: the run whose
        interrupt is meant, since a later one may have given the id again; the latest if None.
        """
        interrupt_id, decided = identifier("interrupt_id", interrupt_id), _decision(decision)
        scope, thread_id = thread_key(scope, thread_id)
        with self._thread(scope, thread_id):
            asking = self._newest(scope, thread_id, Status.INTERRUPTED)
            found = asking and asking.interrupt(interrupt_id)
            if asking is None or not (found or self._asking(scope, thread_id, interrupt_id)):
                raise _unknown(interrupt_id)
            if found is None or asked_by not in (None, asking.run_id):
                raise _refused(interrupt_id, f"is stale: run {asking.run_id!r} has asked later")
            return self._redeem(asking, interrupt_id, decided, self._moment(now), None, by)

    def resume(
        self,
        scope: Any,
        thread_id: str,
        entries: Iterable[Answer | Mapping[str, Any]],
        run_id: str,
        now: datetime | None = None,
        *,
        by: str | None = None,
    ) -> tuple[Redemption, ...]:
        """Answer what the latest interrupted run asked, for ``run_id``: all of it or nothing.

        ``entries``: ``{"interruptId", "status", "payload"?, "metadata"?}``, one for each open
        interrupt. ResumeRejectedError names a duplicate, unknown, stale, missing or disagreeing
        one, and one that was resolved after its deadline. A full set of cancelled ones is always
        taken: open, expired and free ones are settled as cancelled, held and settled ones stay.
        Free ones that are not named are taken as they are. StreamError when ``run_id`` has ended.
        """
        answers, key = parse_answers(entries), run_key(scope, thread_id, run_id)
        with self._thread(key.scope, key.thread_id):
            taker = self._read(key)
            if taker is not None and taker.terminal:
                raise StreamError(f"Run {run_id!r} has ended as {taker.status}; it takes nothing.")
            asking = self._newest(key.scope, key.thread_id, Status.INTERRUPTED)
            return self._resume(asking, key, answers, self._moment(now), by)

    def settle(
        self,
        scope: Any,
        thread_id: str,
        interrupt_id: str,
        run_id: str,
        now: datetime | None = None,
    ) -> bool:
        """Right before acting on an answer: the permission to, given once and to its holder.

        In a transaction of the caller's the permission is undone with it: only when what is done
        on it is undone too.
        """
        key = run_key(scope, thread_id, run_id)
        return self._settle(key, identifier("interrupt_id", interrupt_id), self._moment(now))

    def release(self, scope: Any, thread_id: str, run_id: str) -> int:
        """Give back what a run holds and has not acted on; return how many."""
        key = run_key(scope, thread_id, run_id)
        with self._thread(key.scope, key.thread_id):
            return self._release(key, self.now())

    def abandon(
        self, scope: Any, thread_id: str, now: datetime | None = None, by: str | None = None
    ) -> int:
        """Settle as cancelled what nobody holds or has acted on, older runs' too; how many."""
        scope, thread_id = thread_key(scope, thread_id)
        moment, count = self._moment(now), 0
        with self._thread(scope, thread_id):
            for asking in self._unsettled(scope, thread_id):
                freed = self._without_dead_holds(asking, None, moment)
                gone = [
                    Redemption(one.abandon(moment, by), False, False) for one in freed.interrupts
                ]
                pairs = zip(freed.interrupts, gone, strict=True)
                count += sum(after.interrupt is not before for before, after in pairs)
                self._put(asking, gone, moment)
        return count

    def release_settled(
        self, scope: Any, thread_id: str, run_id: str, interrupt_id: str, *, by: str
    ) -> Interrupt:
        """Free an answer that was acted on with an unknown outcome: its tool may run twice.

        For a person who knows that it did not run. ``run_id``: the run that asked.
        ResumeRejectedError unless a run that has ended acted on the answer.
        """
        key = run_key(scope, thread_id, run_id)
        interrupt_id = identifier("interrupt_id", interrupt_id)
        with self._thread(key.scope, key.thread_id):
            asking = self._read(key)
            interrupt = asking.interrupt(interrupt_id) if asking else None
            if asking is None or interrupt is None:
                raise _unknown(interrupt_id)
            actor = interrupt.redeemed_by
            if interrupt.state is not AnswerState.SETTLED or interrupt.cancelled or actor is None:
                raise _refused(interrupt_id, "is not released: no run has acted on it")
            acting = self._read(key._replace(run_id=actor))
            if acting is not None and not acting.terminal:
                raise _refused(interrupt_id, f"is not released: run {actor!r} is acting on it")
            freed = replace(interrupt, redeemed_by=None, redeemed_at=None, settled_at=None)
            self._store(asking, asking.replace_interrupt(freed, self.now()))
        logger.warning(
            "%s released interrupt %r of thread %r, on which run %r had acted: its tool may run "
            "twice.",
            *(by, interrupt_id, thread_id, actor),
        )
        return freed

    # Within _thread()

    def _redeem(
        self,
        asking: RunRecord,
        interrupt_id: str,
        decision: Decision,
        now: datetime,
        taker: RunKey | None,
        by: str | None,
    ) -> Redemption:
        interrupt = self._without_dead_holds(asking, taker, now).interrupt(interrupt_id)
        assert interrupt is not None  # noqa: S101  # that is how it was found
        redemption = interrupt.redeem(decision, now, taker and taker.run_id, by)
        self._put(asking, [redemption], now)
        return redemption

    def _resume(
        self,
        asking: RunRecord | None,
        taker: RunKey,
        answers: Iterable[Answer],
        now: datetime,
        by: str | None,
    ) -> tuple[Redemption, ...]:
        def is_stale(interrupt_id: str) -> bool:
            return self._asking(taker.scope, taker.thread_id, interrupt_id) is not None

        held = asking and self._without_dead_holds(asking, taker, now)
        redeemed = judge(held, answers, taker.run_id, now, by, is_stale)
        if asking is None or held is None:
            return redeemed
        known = {one.interrupt.id: one for one in redeemed}
        for interrupt in held.interrupts:  # what an inbox has answered, the client need not name
            if interrupt.id not in known and interrupt.state is AnswerState.FREE:
                known[interrupt.id] = self._taken(interrupt, taker, now)
        found = tuple(known[one.id] for one in held.interrupts if one.id in known)
        self._put(asking, found, now)
        return found

    def _take_over(
        self, asking: RunRecord | None, taker: RunKey, now: datetime
    ) -> tuple[Redemption, ...]:
        """What a run finds that brings no answers: what has expired, and what is free."""
        redeemed: list[Redemption] = []
        if asking is None:
            return ()
        for interrupt in self._without_dead_holds(asking, taker, now).interrupts:
            if interrupt.pending:
                gone = interrupt.abandon(now, EXPIRY, taker.run_id)
                redeemed.append(Redemption(gone, True, False))
            elif interrupt.state is AnswerState.FREE:
                redeemed.append(self._taken(interrupt, taker, now))
        self._put(asking, redeemed, now)
        return tuple(redeemed)

    def _taken(self, interrupt: Interrupt, taker: RunKey, now: datetime) -> Redemption:
        assert interrupt.decision is not None  # noqa: S101  # it is free
        return interrupt.redeem(interrupt.decision, now, taker.run_id)

    def _without_dead_holds(
        self, asking: RunRecord, taker: RunKey | None, now: datetime
    ) -> RunRecord:
        """The record as if each run that has ended had given back what it holds.

        One that takes an answer after its end, being gone only by the clock, gives nothing back.
        """
        for interrupt in asking.interrupts:
            holder = interrupt.redeemed_by
            if interrupt.state is not AnswerState.HELD or holder is None:
                continue
            if taker is not None and holder == taker.run_id:
                continue
            ended = self._read(RunKey(asking.scope, asking.thread_id, holder))
            if ended is not None and ended.terminal:
                asking = asking.replace_interrupt(interrupt.release(holder), now)
        return asking

    def _put(self, asking: RunRecord, redeemed: Iterable[Redemption], now: datetime) -> None:
        decided = {one.interrupt.id: one.interrupt for one in redeemed}
        self._change(asking, lambda one: decided.get(one.id, one), now)

    def _change(
        self, asking: RunRecord, change: Callable[[Interrupt], Interrupt], now: datetime
    ) -> RunRecord:
        """Store what becomes of the interrupts of a run, and return the record."""
        kept = asking
        for interrupt in asking.interrupts:
            changed = change(interrupt)
            if changed is not interrupt:
                kept = kept.replace_interrupt(changed, now)
        if kept is not asking:
            self._store(asking, kept)
        return kept


def _decision(given: Decision | Mapping[str, Any]) -> Decision:
    return given if isinstance(given, Decision) else Decision.from_storage(given)


def _unknown(interrupt_id: str) -> ResumeRejectedError:
    return ResumeRejectedError(f"Interrupt {interrupt_id!r} is unknown.", [interrupt_id])


def _refused(interrupt_id: str, why: str) -> ResumeRejectedError:
    return ResumeRejectedError(f"Interrupt {interrupt_id!r} {why}.", [interrupt_id])
