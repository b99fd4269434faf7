"""What becomes of a batch of answers that a run brings: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

from solid_runs.ag_ui.exceptions import ConfigurationError, ResumeRejectedError
from solid_runs.ag_ui.interrupts import CANCELLED, AnswerState, Decision, Interrupt, Redemption
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.scopes import identifier


class Answer(NamedTuple):
    interrupt_id: str
    decision: Decision

    @property
    def cancels(self) -> bool:
        return self.decision.status == CANCELLED

    @classmethod
    def from_entry(cls, entry: Any) -> Self:
        """Out of ``{"interruptId", "status", "payload"?, "metadata"?}``, as AG-UI sends it."""
        if isinstance(entry, cls):
            return entry
        if not isinstance(entry, Mapping):
            raise ConfigurationError(f"An answer is an object, not {type(entry).__name__}.")
        return cls(
            identifier("interruptId", entry.get("interruptId")),
            Decision(
                status=entry.get("status"),  # type: ignore[arg-type]  # judged there
                payload=entry.get("payload"),
                metadata=entry.get("metadata"),
            ),
        )


def parse_answers(entries: Iterable[Any]) -> tuple[Answer, ...]:
    """ConfigurationError for what is no list of answers."""
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
        raise ConfigurationError("The answers of a run are a list.")
    return tuple(map(Answer.from_entry, entries))


def judge(
    asking: RunRecord | None,
    answers: Iterable[Answer],
    run_id: str,
    now: datetime,
    by: str | None,
    is_stale: Callable[[str], bool],
) -> tuple[Redemption, ...]:
    """What each answer becomes when ``run_id`` brings them all to the run that asked last.

    In the order in which that run has asked.

    ResumeRejectedError, naming what it is about, unless the whole batch is taken. A full set of
    cancelled answers always is: it changes nothing that is held or was acted on.
    """
    answers = tuple(answers)
    _refuse_incomplete(asking, answers, is_stale)
    if asking is None:
        return ()
    given = {answer.interrupt_id: answer for answer in answers}
    pairs = [(one, given[one.id]) for one in asking.interrupts if one.id in given]
    if all(answer.cancels for answer in answers):
        return tuple(_cancelled(interrupt, answer, run_id, now, by) for interrupt, answer in pairs)
    taken = tuple(_taken(interrupt, answer, run_id, now, by) for interrupt, answer in pairs)
    replayed = [
        one.interrupt.id
        for one in taken
        if not one.recorded and not one.holds and one.interrupt.redeemed_by != run_id
    ]
    if replayed and not any(one.holds for one in taken):
        raise ResumeRejectedError(
            f"{_named(replayed)} was answered and acted on already.", replayed, "interrupt_answered"
        )
    return taken


def _refuse_incomplete(
    asking: RunRecord | None, answers: tuple[Answer, ...], is_stale: Callable[[str], bool]
) -> None:
    """Each open interrupt once, and nothing that this run has not asked."""
    counted = Counter(answer.interrupt_id for answer in answers)
    foreign = [one for one in counted if asking is None or asking.interrupt(one) is None]
    stale = [one for one in foreign if is_stale(one)]
    pending = asking.pending_interrupts if asking else ()
    faults = {
        "answered twice": [one for one, count in counted.items() if count > 1],
        "stale: a later run of the thread has asked": stale,
        "unknown on this thread": [one for one in foreign if one not in stale],
        "left without an answer": [one.id for one in pending if one.id not in counted],
    }
    found = {what: ids for what, ids in faults.items() if ids}
    if found:
        told = "; ".join(f"{_named(ids)}: {what}" for what, ids in found.items())
        raise ResumeRejectedError(
            f"The answers were not taken. {told}.", [one for ids in found.values() for one in ids]
        )


def _cancelled(
    interrupt: Interrupt, answer: Answer, run_id: str, now: datetime, by: str | None
) -> Redemption:
    abandoned = interrupt.abandon(now, by, run_id, answer.decision)
    return Redemption(abandoned, abandoned is not interrupt, False)


def _taken(
    interrupt: Interrupt, answer: Answer, run_id: str, now: datetime, by: str | None
) -> Redemption:
    if interrupt.pending and answer.cancels:
        return _cancelled(interrupt, answer, run_id, now, by)
    if interrupt.state is AnswerState.SETTLED:
        return interrupt.redeem(answer.decision, now)
    return interrupt.redeem(answer.decision, now, run_id, by)


def _named(ids: Iterable[str]) -> str:
    return ", ".join(repr(one) for one in ids)
