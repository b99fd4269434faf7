from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from solid_runs.ag_ui.exceptions import RunConflictError, StreamError
from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.reconciling import reconcile
from solid_runs.ag_ui.records import ACTIVE, TERMINAL, RunRecord, Status

pytestmark = pytest.mark.once

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)

YES = Decision(status="resolved", payload={"a": 1, "b": 2})
SAME = Decision(status="resolved", payload={"b": 2.0, "a": 1})
NO = Decision(status="resolved", payload=False)
CANCEL = Decision(status="cancelled")

RESERVED = RunRecord(scope="s", thread_id="t1", run_id="r1", digest="d1", created_at=NOON)
STARTED = RESERVED.start(NOON, {"step": 1})
ASKED = Interrupt(id="i1", reason="tool_call")
ALSO = Interrupt(id="i2", reason="tool_call")

OPEN = STARTED.interrupted([ASKED, ALSO], NOON)


def answered(interrupt: Interrupt) -> RunRecord:
    return OPEN.replace_interrupt(interrupt, LATER)


FREE = ASKED.redeem(YES, NOON, None, "ann").interrupt
HELD = ASKED.redeem(YES, NOON, "r2").interrupt
TAKEN = FREE.redeem(YES, LATER, "r2").interrupt
SETTLED = TAKEN.settle("r2", LATER)
ABANDONED = ASKED.abandon(NOON, "ann")
WITHDRAWN = FREE.abandon(LATER, "bob")

FOLLOWING = {
    "an answer": (ASKED, FREE),
    "an answer that is held": (ASKED, HELD),
    "an abandoned question": (ASKED, ABANDONED),
    "a free answer that is taken": (FREE, TAKEN),
    "a free answer that is withdrawn": (FREE, WITHDRAWN),
    "a free answer that is acted on": (FREE, SETTLED),
    "a held answer that is acted on": (TAKEN, SETTLED),
    "an equal answer": (FREE, replace(FREE, decision=SAME)),
    **{f"the same, {one.state}": (one, one) for one in (ASKED, FREE, TAKEN, SETTLED)},
}
STALE = {
    "an answer that is taken back": (FREE, ASKED),
    "a held answer that is taken back": (HELD, ASKED),
    "an answer that is replaced": (FREE, replace(FREE, decision=NO)),
    "a held answer that is replaced": (HELD, replace(HELD, decision=NO)),
    "a held answer that is withdrawn": (HELD, ASKED.abandon(NOON, "ann")),
    "another holder": (HELD, replace(HELD, redeemed_by="r3")),
    "another holder who acts": (HELD, replace(HELD, redeemed_by="r3", settled_at=LATER)),
    "a settled answer that is held again": (SETTLED, TAKEN),
    "a settled answer that is free again": (SETTLED, FREE),
    "a settled answer that is open again": (SETTLED, ASKED),
    "a settled answer by another": (SETTLED, replace(SETTLED, redeemed_by="r3")),
    "a settled answer that is replaced": (SETTLED, replace(SETTLED, decision=NO)),
    "a settled answer that is withdrawn": (SETTLED, WITHDRAWN),
    "an abandoned question that is answered": (ABANDONED, FREE),
    "a withdrawn answer that is free again": (WITHDRAWN, FREE),
}


@pytest.mark.parametrize(("stored", "given"), FOLLOWING.values(), ids=list(FOLLOWING))
def test_an_answer_goes_on_to_what_it_can_become(stored, given):
    kept = reconcile(answered(stored), answered(given))
    assert kept.interrupts == (given, ALSO)


@pytest.mark.parametrize(("stored", "given"), STALE.values(), ids=list(STALE))
def test_an_answer_goes_back_to_nothing_that_it_was(stored, given):
    with pytest.raises(StreamError, match="'i1'"):
        reconcile(answered(stored), answered(given))


def test_a_copy_that_lacks_an_interrupt_is_stale():
    for stored in (OPEN, answered(FREE)):
        with pytest.raises(StreamError, match="no interrupt 'i1'"):
            reconcile(stored, replace(stored, interrupts=(ALSO,)))


@pytest.mark.parametrize(
    ("stored", "given"),
    [pair for pair in product(sorted(TERMINAL), Status) if pair[0] is not pair[1]],
)
def test_an_ended_run_keeps_its_status(stored, given):
    with pytest.raises(StreamError, match=f"ended as {stored}"):
        reconcile(replace(STARTED, status=stored), replace(STARTED, status=given))


@pytest.mark.parametrize(("stored", "given"), list(product(sorted(ACTIVE), sorted(TERMINAL))))
def test_an_active_run_may_end(stored, given):
    kept = reconcile(replace(STARTED, status=stored), replace(STARTED, status=given))
    assert kept.status is given


def test_a_started_run_is_not_reserved_again():
    with pytest.raises(StreamError, match="started meanwhile"):
        reconcile(STARTED, RESERVED)


def test_the_sequence_is_never_lowered():
    ahead = STARTED.advance(NOON).advance(NOON)
    with pytest.raises(StreamError, match="sequence is 2, this copy's 1"):
        reconcile(ahead, STARTED.advance(NOON))
    assert reconcile(ahead, ahead) == ahead
    assert reconcile(ahead, ahead.advance(NOON)).sequence == 3


def test_the_state_of_an_active_run_is_that_of_the_last_save():
    assert reconcile(STARTED, STARTED.checkpoint({"step": 2}, LATER)).snapshot == {"step": 2}


def test_the_state_and_the_failure_of_an_ended_run_are_those_of_the_first_save():
    first = STARTED.finish("failed", NOON, {"message": "first", "code": "a"}, {"step": 1})
    late = STARTED.finish("failed", LATER, {"message": "late", "code": "b"}, {"step": 2})
    kept = reconcile(first, late)
    assert (kept.failure, kept.snapshot) == (first.failure, {"step": 1})


def test_an_ended_run_counts_an_event_more():
    ended = STARTED.finish("succeeded", NOON)
    kept = reconcile(ended, ended.advance(LATER))
    assert (kept.sequence, kept.status, kept.updated_at) == (1, Status.SUCCEEDED, LATER)


def test_when_a_run_was_reserved_stays():
    given = replace(STARTED, created_at=LATER, updated_at=LATER)
    assert reconcile(RESERVED, given).created_at == NOON


def test_a_record_for_another_input_is_a_conflict():
    with pytest.raises(RunConflictError):
        reconcile(RESERVED, replace(STARTED, digest="d2"))


def test_what_is_kept_is_what_was_given_where_nothing_is_stale():
    ended = STARTED.finish("failed", LATER, {"message": "m", "code": "c"}, {"step": 9})
    assert reconcile(STARTED, ended) == ended
