from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.answers import Answer, judge, parse_answers
from solid_runs.ag_ui.exceptions import ConfigurationError, ResumeRejectedError
from solid_runs.ag_ui.interrupts import AnswerState, Decision, Interrupt
from solid_runs.ag_ui.records import RunRecord

pytestmark = pytest.mark.once

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)

YES = Decision(status="resolved", payload={"approved": True})
NO = Decision(status="resolved", payload={"approved": False})
CANCEL = Decision(status="cancelled")

STALE = {"s1", "s2"}


def interrupt(name, state="open", decision=YES, by="r2", **fields):
    """An interrupt in a state; ``by`` holds it or has acted on it."""
    asked = Interrupt(id=name, reason="tool_call", **fields)
    if state == "open":
        return asked
    answered = asked.redeem(decision, NOON, None if state == "free" else by, "ann").interrupt
    return answered.settle(by, NOON) if state == "settled" else answered


def asking(*interrupts):
    return RunRecord(
        scope="s",
        thread_id="t1",
        run_id="r1",
        digest="d1",
        status="interrupted",
        interrupts=interrupts,
        created_at=NOON,
    )


def judged(record, run_id="r3", by=None, **answers):
    """What becomes of each answer, by its id."""
    given = [Answer(name, decision) for name, decision in answers.items()]
    taken = judge(record, given, run_id, LATER, by, STALE.__contains__)
    return {one.interrupt.id: one for one in taken}


def rejected(record, run_id="r3", given=None, **answers):
    """The error, as its code and the ids that it names."""
    brought = given or [Answer(name, decision) for name, decision in answers.items()]
    with pytest.raises(ResumeRejectedError) as caught:
        judge(record, brought, run_id, LATER, None, STALE.__contains__)
    return caught.value.code, caught.value.interrupt_ids


# Reading what a client sends


def test_entries_are_read_as_ag_ui_sends_them():
    assert parse_answers(
        [
            {"interruptId": "i1", "status": "resolved", "payload": [1], "metadata": {"a": 1}},
            {"interruptId": "i2", "status": "cancelled", "somethingNew": 1},
        ]
    ) == (
        Answer("i1", Decision(status="resolved", payload=[1], metadata={"a": 1})),
        Answer("i2", CANCEL),
    )


def test_an_absent_payload_is_none():
    (answer,) = parse_answers([{"interruptId": "i1", "status": "resolved"}])
    assert answer.decision.payload is None


def test_answers_are_taken_as_they_are():
    answer = Answer("i1", YES)
    assert parse_answers(iter([answer]))[0] is answer


@pytest.mark.parametrize(
    "entries",
    [
        *(None, 1, "i1", b"i1", {"interruptId": "i1", "status": "resolved"}),
        *([None], ["i1"], [["i1"]], [{}]),
        [{"interruptId": "i1"}],
        [{"interruptId": "i1", "status": "approved"}],
        [{"interruptId": "i1", "status": ["resolved"]}],
        [{"interruptId": "i1", "status": {}}],
        [{"status": "resolved"}],
        [{"interruptId": 7, "status": "resolved"}],
        [{"interruptId": "", "status": "resolved"}],
        [{"interruptId": "\0", "status": "resolved"}],
    ],
    ids=repr,
)
def test_what_is_no_list_of_answers_is_refused(entries):
    with pytest.raises(ConfigurationError):
        parse_answers(entries)


# Taken


def test_open_questions_are_answered_and_held():
    taken = judged(asking(interrupt("i1"), interrupt("i2")), by="bob", i1=YES, i2=NO)
    for name, decision in (("i1", YES), ("i2", NO)):
        answered, recorded, holds = taken[name]
        assert (recorded, holds, answered.decision) == (True, True, decision)
        assert (answered.decided_by, answered.redeemed_by) == ("bob", "r3")
        assert answered.decided_at == answered.redeemed_at == LATER


def test_results_are_in_the_order_of_the_interrupts():
    record = asking(interrupt("i1"), interrupt("i2"), interrupt("i3"))
    for order in (["i3", "i1", "i2"], ["i2", "i3", "i1"]):
        for decision in (YES, CANCEL):
            taken = judged(record, **dict.fromkeys(order, decision))
            assert list(taken) == ["i1", "i2", "i3"]


def test_a_free_answer_is_taken_with_an_equal_one_and_keeps_who_gave_it():
    taken = judged(asking(interrupt("i1", "free")), by="bob", i1=YES)["i1"]
    assert taken[1:] == (False, True)
    assert (taken.interrupt.decided_by, taken.interrupt.redeemed_by) == ("ann", "r3")


def test_an_answer_that_was_free_need_not_be_named():
    record = asking(interrupt("i1", "free"), interrupt("i2"))
    assert list(judged(record, i2=YES)) == ["i2"]


def test_nothing_open_needs_no_answer():
    assert judged(None) == {}
    assert judged(asking()) == {}
    assert judged(asking(interrupt("i1", "settled"), interrupt("i2", "free"))) == {}


def test_the_holder_gets_a_replay():
    record = asking(interrupt("i1", "held", by="r3"), interrupt("i2", "settled", by="r3"))
    taken = judged(record, i1=YES, i2=YES)
    assert (taken["i1"][1:], taken["i2"][1:]) == ((False, True), (False, False))
    settled = asking(interrupt("i1", "settled", by="r3"), interrupt("i2", "settled", by="r3"))
    taken = judged(settled, i1=YES, i2=YES)
    assert (taken["i1"][1:], taken["i2"][1:]) == ((False, False), (False, False))


def test_an_equal_answer_to_a_settled_one_is_a_replay_beside_one_that_is_held():
    record = asking(interrupt("i1", "settled"), interrupt("i2", "free"))
    taken = judged(record, i1=YES, i2=YES)
    assert (taken["i1"][1:], taken["i2"][1:]) == ((False, False), (False, True))
    assert taken["i1"].interrupt is record.interrupt("i1")


def test_a_cancelled_answer_beside_a_resolved_one_is_settled():
    taken = judged(asking(interrupt("i1"), interrupt("i2")), i1=CANCEL, i2=YES)
    gone = taken["i1"].interrupt
    assert taken["i1"][1:] == (True, False)
    assert (gone.state, gone.redeemed_by, gone.decision) == (AnswerState.SETTLED, "r3", CANCEL)
    assert taken["i2"][1:] == (True, True)


def test_an_expired_question_may_be_cancelled_beside_a_resolved_one():
    record = asking(interrupt("i1", expires_at=LATER), interrupt("i2"))
    taken = judged(record, i1=CANCEL, i2=YES)
    assert (taken["i1"].interrupt.state, taken["i2"].holds) == (AnswerState.SETTLED, True)


def test_an_answer_that_was_given_in_time_is_taken_after_the_deadline():
    record = asking(interrupt("i1", "free", expires_at=LATER))
    assert judged(record, i1=YES)["i1"].holds is True


def test_a_cancelled_answer_keeps_its_reason_and_its_metadata():
    reason = Decision(status="cancelled", payload={"reason": "late"}, metadata={"tab": 1})
    for other in (YES, CANCEL):
        taken = judged(asking(interrupt("i1"), interrupt("i2")), i1=reason, i2=other)
        assert taken["i1"].interrupt.decision == reason


# Rejected


def test_each_reason_names_what_it_is_about():
    record = asking(interrupt("i1"), interrupt("i2"))
    assert rejected(record, i1=YES) == ("resume_rejected", ("i2",))
    assert rejected(record, i1=YES, i2=YES, i9=YES) == ("resume_rejected", ("i9",))
    assert rejected(record, i1=YES, i2=YES, s1=YES) == ("resume_rejected", ("s1",))
    twice = [Answer("i1", YES), Answer("i2", YES), Answer("i1", YES)]
    assert rejected(record, given=twice) == ("resume_rejected", ("i1",))


def test_a_message_says_what_is_wrong_with_each():
    with pytest.raises(ResumeRejectedError) as caught:
        judged(asking(interrupt("i1")), i9=YES, s1=YES)
    told = str(caught.value)
    for part in ("'s1': stale", "'i9': unknown", "'i1': left without an answer"):
        assert part in told


def test_no_run_that_asked_makes_every_answer_unknown_or_stale():
    for decision in (YES, CANCEL):
        code, named = rejected(None, i1=decision, s1=decision)
        assert (code, set(named)) == ("resume_rejected", {"i1", "s1"})


@pytest.mark.parametrize(
    ("state", "decision", "code"),
    [
        ("free", NO, "interrupt_answered"),
        ("free", CANCEL, "interrupt_answered"),
        ("held", YES, "interrupt_answered"),
        ("held", NO, "interrupt_answered"),
        ("settled", NO, "interrupt_answered"),
    ],
)
def test_an_answer_that_came_second_rejects_the_batch(state, decision, code):
    record = asking(interrupt("i1", state), interrupt("i2"))
    assert rejected(record, i1=decision, i2=YES) == (code, ("i1",))


def test_a_resolved_answer_after_the_deadline_rejects_the_batch():
    record = asking(interrupt("i1", expires_at=LATER), interrupt("i2"))
    assert rejected(record, i1=YES, i2=YES) == ("interrupt_expired", ("i1",))


def test_only_replays_reject_the_batch():
    record = asking(interrupt("i1", "settled"), interrupt("i2", "settled"))
    assert rejected(record, i1=YES, i2=YES) == ("interrupt_answered", ("i1", "i2"))


# A full set of cancelled answers


@pytest.mark.parametrize("state", ["open", "free", "held", "settled", "late"])
def test_a_cancelled_answer_is_taken_in_every_state(state):
    late = {"expires_at": NOON} if state == "late" else {}
    asked = interrupt("i1", "open" if state == "late" else state, **late)
    taken = judged(asking(asked), i1=CANCEL)["i1"]
    assert taken.holds is False
    if state in ("held", "settled"):
        assert taken.interrupt is asked
        assert taken.recorded is False
    else:
        assert taken.interrupt.state is AnswerState.SETTLED
        assert (taken.interrupt.decision, taken.interrupt.redeemed_by) == (CANCEL, "r3")


def test_a_set_that_is_not_full_is_rejected():
    record = asking(interrupt("i1"), interrupt("i2"))
    assert rejected(record, i1=CANCEL) == ("resume_rejected", ("i2",))


states = st.sampled_from(["open", "free", "held", "settled", "late"])
decisions = st.sampled_from([YES, NO, CANCEL])


def made(name, state, decision):
    if state == "late":
        return interrupt(name, expires_at=NOON)
    return interrupt(name, state, decision)


records = st.lists(st.tuples(states, decisions), max_size=5).map(
    lambda drawn: asking(*(made(f"i{n}", *one) for n, one in enumerate(drawn)))
)
answers = st.lists(
    st.builds(Answer, st.sampled_from(["i0", "i1", "i2", "i3", "i4", "i9", "s1"]), decisions),
    max_size=7,
)


@given(record=records)
def test_a_full_set_of_cancelled_answers_is_always_taken(record):
    everything = [Answer(one.id, CANCEL) for one in record.interrupts]
    pending = [Answer(one.id, CANCEL) for one in record.pending_interrupts]
    for brought in (everything, pending):
        taken = judge(record, brought, "r3", LATER, None, STALE.__contains__)
        assert len(taken) == len(brought)
        assert not any(one.holds for one in taken)


@given(record=records, brought=answers)
@settings(max_examples=300)
def test_a_batch_is_taken_with_everything_open_in_it_or_names_what_it_is_about(record, brought):
    known = {one.interrupt_id for one in brought} | {one.id for one in record.pending_interrupts}
    try:
        taken = judge(record, brought, "r3", LATER, None, STALE.__contains__)
    except ResumeRejectedError as error:
        named = set(error.interrupt_ids)
    else:
        named = None
    if named is not None:
        assert named
        assert named <= known
        return
    assert sorted(one.interrupt.id for one in taken) == sorted(one.interrupt_id for one in brought)
    for one in taken:
        before = record.interrupt(one.interrupt.id)
        assert one.holds == (
            one.interrupt.state is AnswerState.HELD and one.interrupt.redeemed_by == "r3"
        )
        assert one.recorded or one.holds or one.interrupt is before
        if before.state in (AnswerState.HELD, AnswerState.SETTLED):
            assert one.interrupt is before
    answered = {one.interrupt.id for one in taken}
    assert {one.id for one in record.pending_interrupts} <= answered


@given(record=records, brought=answers)
@settings(max_examples=300)
def test_a_batch_that_was_taken_is_taken_again_and_changes_nothing(record, brought):
    try:
        first = judge(record, brought, "r3", LATER, None, STALE.__contains__)
    except ResumeRejectedError:
        return
    after = record
    for one in first:
        after = after.replace_interrupt(one.interrupt, LATER)
    again = judge(after, brought, "r3", LATER + timedelta(days=1), None, STALE.__contains__)
    assert [one.interrupt for one in again] == [one.interrupt for one in first]
    assert [one.holds for one in again] == [one.holds for one in first]
    assert not any(one.recorded for one in again)
