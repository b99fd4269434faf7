from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from solid_runs.ag_ui.exceptions import ConfigurationError, ResumeRejectedError
from solid_runs.ag_ui.interrupts import AnswerState, Decision, Interrupt

pytestmark = pytest.mark.once

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
EXPIRY = NOON + timedelta(hours=1)
PAST_IT = EXPIRY + timedelta(seconds=1)

YES = Decision(status="resolved", payload={"approved": True})
NO = Decision(status="resolved", payload={"approved": False})
CANCEL = Decision(status="cancelled")

OPEN = Interrupt(id="i1", reason="tool_call", expires_at=EXPIRY)
HELD = OPEN.redeem(YES, NOON, "r2", by="ada").interrupt
FREE = OPEN.redeem(YES, NOON, by="ada").interrupt
SETTLED = HELD.settle("r2", LATER)
ABANDONED = OPEN.abandon(LATER, "ada")
EVERY = [OPEN, HELD, FREE, SETTLED, ABANDONED]
ANSWERED = [HELD, FREE, SETTLED]

every = pytest.mark.parametrize("interrupt", EVERY, ids=["open", "held", "free", "settled", "gone"])
answered = pytest.mark.parametrize("interrupt", ANSWERED, ids=["held", "free", "settled"])


def refusal(interrupt, decision, now, run_id=None):
    with pytest.raises(ResumeRejectedError, match="'i1'") as caught:
        interrupt.redeem(decision, now, run_id)
    assert caught.value.interrupt_ids == ("i1",)
    return caught.value.code


# The four states

STATES = [
    (OPEN, "open", None, None, None),
    (HELD, "held", YES, "r2", None),
    (FREE, "free", YES, None, None),
    (SETTLED, "settled", YES, "r2", LATER),
    (ABANDONED, "settled", CANCEL, None, LATER),
]


@pytest.mark.parametrize(("interrupt", "state", "decision", "redeemed_by", "settled_at"), STATES)
def test_the_state_of_an_answer_follows_from_three_fields(
    interrupt, state, decision, redeemed_by, settled_at
):
    assert interrupt.state == state
    assert (interrupt.decision, interrupt.redeemed_by, interrupt.settled_at) == (
        decision,
        redeemed_by,
        settled_at,
    )
    assert interrupt.pending == (decision is None)
    assert interrupt.decided == (decision is not None)


@pytest.mark.parametrize("field", [{"redeemed_by": "r2"}, {"settled_at": NOON}], ids=str)
def test_nothing_is_held_or_settled_without_an_answer(field):
    with pytest.raises(ConfigurationError, match="'i1' is held or settled without an answer"):
        replace(OPEN, **field)


@every
def test_the_expiry_is_the_first_moment_that_is_too_late(interrupt):
    assert not interrupt.expired(EXPIRY - timedelta(microseconds=1))
    assert interrupt.expired(EXPIRY)
    assert interrupt.expired(PAST_IT)


def test_what_has_no_expiry_never_expires():
    assert not replace(OPEN, expires_at=None).expired(datetime.max.replace(tzinfo=UTC))


def test_a_naive_expiry_means_utc():
    naive = Interrupt(id="i1", reason="tool_call", expires_at=datetime(2026, 1, 15, 13))
    assert naive == OPEN
    assert not naive.expired(datetime(2026, 1, 15, 12, 59))
    assert naive.expired(datetime(2026, 1, 15, 13))
    assert refusal(naive, YES, PAST_IT) == "interrupt_expired"


# Redeem


def test_the_first_answer_is_recorded_and_then_free():
    free, recorded, holds = OPEN.redeem(YES, NOON, by="ada")
    assert (recorded, holds, free.state) == (True, False, "free")
    assert (free.decided_at, free.decided_by, free.redeemed_at) == (NOON, "ada", None)


def test_the_first_answer_of_a_run_is_recorded_and_held():
    held, recorded, holds = OPEN.redeem(YES, NOON, "r2", by="ada")
    assert (recorded, holds, held.state, held.redeemed_by) == (True, True, "held", "r2")
    assert (held.decided_at, held.decided_by, held.redeemed_at) == (NOON, "ada", NOON)


@answered
def test_the_same_answer_without_a_run_is_a_replay(interrupt):
    again = interrupt.redeem(YES, LATER, by="bob")
    assert again.interrupt is interrupt
    assert (again.recorded, again.holds) == (False, False)


def test_the_run_that_holds_an_answer_may_repeat_it():
    again = HELD.redeem(YES, LATER, "r2")
    assert again.interrupt is HELD
    assert (again.recorded, again.holds) == (False, True)


def test_the_run_that_acted_on_an_answer_may_repeat_it_but_holds_nothing():
    again = SETTLED.redeem(YES, LATER, "r2")
    assert again.interrupt is SETTLED
    assert (again.recorded, again.holds) == (False, False)


def test_a_run_takes_a_free_answer_that_it_agrees_with():
    taken, recorded, holds = FREE.redeem(YES, LATER, "r3", by="bob")
    assert (recorded, holds, taken.state, taken.redeemed_by) == (False, True, "held", "r3")
    assert (taken.decided_at, taken.decided_by, taken.redeemed_at) == (NOON, "ada", LATER)


@pytest.mark.parametrize("interrupt", [HELD, SETTLED], ids=["held", "settled"])
def test_another_run_cannot_take_what_is_held_or_settled(interrupt):
    assert refusal(interrupt, YES, LATER, "r3") == "interrupt_answered"


@answered
@pytest.mark.parametrize("decision", [NO, CANCEL, Decision(status="resolved")])
@pytest.mark.parametrize("run_id", [None, "r2", "r3"])
def test_an_answer_that_disagrees_is_refused(interrupt, decision, run_id):
    assert refusal(interrupt, decision, LATER, run_id) == "interrupt_answered"


@pytest.mark.parametrize("run_id", [None, "r2"])
@pytest.mark.parametrize("decision", [YES, CANCEL])
def test_the_first_answer_must_come_before_the_expiry(decision, run_id):
    assert OPEN.redeem(decision, EXPIRY - timedelta(microseconds=1), run_id).recorded
    assert refusal(OPEN, decision, EXPIRY, run_id) == "interrupt_expired"


@answered
def test_a_replay_after_the_expiry_is_still_a_replay(interrupt):
    assert interrupt.redeem(YES, PAST_IT) == (interrupt, False, False)
    assert refusal(interrupt, NO, PAST_IT) == "interrupt_answered"


def test_a_free_answer_can_be_taken_after_the_expiry():
    assert FREE.redeem(YES, PAST_IT, "r3").holds
    assert HELD.redeem(YES, PAST_IT, "r2").holds


def test_an_abandoned_question_takes_no_answer():
    assert refusal(ABANDONED, YES, LATER) == "interrupt_answered"
    assert refusal(ABANDONED, CANCEL, LATER, "r3") == "interrupt_answered"
    assert ABANDONED.redeem(CANCEL, LATER) == (ABANDONED, False, False)


def test_a_refusal_says_what_became_of_the_question():
    for interrupt, said in (
        (HELD, "by run 'r2'"),
        (ABANDONED, "was abandoned"),
        (replace(OPEN, expires_at=NOON), "expired at 2026-01-15T12:00:00.000000Z"),
    ):
        decision = interrupt.decision or YES
        with pytest.raises(ResumeRejectedError, match=said):
            interrupt.redeem(decision, LATER, "r3")


@pytest.mark.parametrize("run_id", ["", " ", "r\0", "r" * 256])
def test_a_run_that_no_key_can_hold_takes_no_answer(run_id):
    for interrupt in (OPEN, FREE):
        with pytest.raises(ConfigurationError, match="redeemed_by"):
            interrupt.redeem(YES, NOON, run_id)


# Settle, release, abandon


def test_only_the_run_that_holds_an_answer_settles_it():
    assert (SETTLED.state, SETTLED.settled_at, SETTLED.redeemed_by) == ("settled", LATER, "r2")
    assert HELD.settle("r3", LATER) is HELD
    for interrupt in (OPEN, FREE, SETTLED, ABANDONED):
        assert interrupt.settle("r2", LATER + timedelta(1)) is interrupt


def test_only_the_run_that_holds_an_answer_releases_it():
    assert HELD.release("r2") == FREE
    assert HELD.release("r3") is HELD
    for interrupt in (OPEN, FREE, SETTLED, ABANDONED):
        assert interrupt.release("r2") is interrupt


@pytest.mark.parametrize("interrupt", [OPEN, FREE], ids=["open", "free"])
def test_what_is_open_or_free_can_be_abandoned(interrupt):
    gone = interrupt.abandon(LATER, "bob")
    assert (gone.state, gone.decision) == ("settled", CANCEL)
    assert (gone.decided_at, gone.decided_by, gone.settled_at) == (LATER, "bob", LATER)
    assert (gone.redeemed_by, gone.redeemed_at) == (None, None)


@pytest.mark.parametrize("interrupt", [OPEN, FREE], ids=["open", "free"])
def test_a_run_that_cancels_a_question_is_named(interrupt):
    gone = interrupt.abandon(PAST_IT, None, "r2")
    assert (gone.state, gone.redeemed_by, gone.redeemed_at) == ("settled", "r2", PAST_IT)


@pytest.mark.parametrize("interrupt", [HELD, SETTLED, ABANDONED], ids=["held", "settled", "gone"])
def test_what_is_held_or_settled_is_not_abandoned(interrupt):
    assert interrupt.abandon(LATER + timedelta(1), "bob", "r3") is interrupt


@every
def test_no_move_changes_the_original(interrupt):
    before = interrupt.to_storage()
    interrupt.settle("r2", LATER)
    interrupt.release("r2")
    interrupt.abandon(LATER, "bob")
    if interrupt is not ABANDONED:
        interrupt.redeem(YES, NOON)
    assert interrupt.to_storage() == before


# Decisions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3.0, "c": 2}, "a": 1.0}),
        (1, 1.0),
        (None, None),
        ("a\0", "a\ufffd"),
        ((1, 2), [1, 2]),
    ],
)
def test_decisions_that_say_the_same_agree(one, other):
    first = Decision(status="resolved", payload=one, metadata={"at": 1})
    assert first.agrees(Decision(status="resolved", payload=other))
    assert Decision(status="resolved", payload=other).agrees(first)


def test_an_absent_payload_is_a_null_one():
    assert Decision(status="cancelled").agrees(Decision(status="cancelled", payload=None))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), (True, 1), ([1, 2], [2, 1]), (None, {}), ({"a": None}, {}), (True, False)],
)
def test_decisions_that_say_something_else_disagree(one, other):
    first = Decision(status="resolved", payload=one)
    assert not first.agrees(Decision(status="resolved", payload=other))
    assert not first.agrees(Decision(status="cancelled", payload=one))


@pytest.mark.parametrize("status", ["", "RESOLVED", "approved", None, True, [], {}])
def test_a_decision_is_resolved_or_cancelled(status):
    with pytest.raises(ConfigurationError, match="resolved or cancelled"):
        Decision(status=status)


# A value that nobody changes from outside


def test_nested_values_are_copied_in_and_out():
    payload, schema = {"a": [1]}, {"type": "object"}
    decision = Decision(status="resolved", payload=payload, metadata=payload)
    interrupt = replace(OPEN, response_schema=schema, metadata=payload)
    payload["a"].append(2)
    schema["x"] = 1
    decision.payload["a"].append(3)
    interrupt.metadata["a"].append(3)
    interrupt.to_dict()["metadata"]["a"].append(4)
    interrupt.to_storage()["responseSchema"]["y"] = 1
    assert decision.payload == decision.metadata == interrupt.metadata == {"a": [1]}
    assert interrupt.response_schema == {"type": "object"}


@pytest.mark.parametrize("name", ["id", "metadata", "decision", "settled_at"])
def test_no_field_can_be_assigned(name):
    with pytest.raises(FrozenInstanceError):
        setattr(SETTLED, name, None)


@every
def test_an_interrupt_survives_pickling(interrupt):
    assert pickle.loads(pickle.dumps(interrupt)) == interrupt


@pytest.mark.parametrize("value", [None, "", "  ", "i\0", "\ud800", "i" * 256, 1], ids=repr)
def test_an_id_that_no_key_can_hold_is_refused(value):
    with pytest.raises(ConfigurationError, match="The id of an interrupt"):
        Interrupt(id=value, reason="tool_call")


@pytest.mark.parametrize("value", [[], "x", 1, True], ids=repr)
@pytest.mark.parametrize("name", ["response_schema", "metadata"])
def test_a_schema_and_metadata_are_objects(name, value):
    with pytest.raises(ConfigurationError, match=f"{name} of interrupt 'i1' must be an object"):
        replace(OPEN, **{name: value})


def test_texts_of_the_agent_are_such_that_every_database_takes_them():
    interrupt = Interrupt(
        id="i1",
        reason="a\0b",
        message=gettext_lazy("Approve?"),
        tool_call_id="call\ud800",
        subagent_run_id="s\0",
        decided_by=7,
    )
    assert (interrupt.reason, interrupt.message) == ("a\ufffdb", "Approve?")
    assert (interrupt.tool_call_id, interrupt.subagent_run_id) == ("call\ufffd", "s\ufffd")
    assert interrupt.decided_by == "7"
    json.dumps(interrupt.to_storage(), ensure_ascii=False).encode()


def test_a_tool_call_id_may_be_long():
    assert replace(OPEN, tool_call_id="c" * 5_000).tool_call_id == "c" * 5_000


# Stored and reported

WHOLE = Interrupt(
    id="i1",
    reason="input_required",
    message="Which one?",
    tool_call_id="call_1",
    response_schema={"type": "object"},
    expires_at=EXPIRY,
    metadata={"a": [1]},
    subagent_run_id="s1",
    decision=Decision(status="resolved", payload={"x": 1}, metadata={"m": 1}),
    decided_at=NOON,
    decided_by="ada",
    redeemed_by="r2",
    redeemed_at=NOON,
    settled_at=LATER,
)


def test_a_client_sees_the_question_and_not_its_answer():
    assert WHOLE.to_dict() == {
        "id": "i1",
        "reason": "input_required",
        "message": "Which one?",
        "toolCallId": "call_1",
        "responseSchema": {"type": "object"},
        "expiresAt": "2026-01-15T13:00:00.000000Z",
        "metadata": {"a": [1]},
        "subagentRunId": "s1",
    }


def test_absent_fields_are_left_out_of_what_a_client_sees():
    assert Interrupt(id="i1", reason="tool_call").to_dict() == {"id": "i1", "reason": "tool_call"}


def test_all_of_an_interrupt_is_stored():
    assert WHOLE.to_storage() == WHOLE.to_dict() | {
        "decision": {"status": "resolved", "payload": {"x": 1}, "metadata": {"m": 1}},
        "decidedAt": "2026-01-15T12:00:00.000000Z",
        "decidedBy": "ada",
        "redeemedBy": "r2",
        "redeemedAt": "2026-01-15T12:00:00.000000Z",
        "settledAt": "2026-01-15T12:05:00.000000Z",
    }


@pytest.mark.parametrize("interrupt", [*EVERY, WHOLE])
def test_an_interrupt_is_restored_without_loss(interrupt):
    stored = json.loads(json.dumps(interrupt.to_storage()))
    assert Interrupt.from_storage(stored) == interrupt
    assert Interrupt.from_storage(stored).to_storage() == interrupt.to_storage()


@pytest.mark.parametrize("key", ["id", "reason"])
def test_a_required_key_that_is_missing_is_named(key):
    stored = OPEN.to_storage()
    del stored[key]
    with pytest.raises(ConfigurationError, match=f"'{key}'"):
        Interrupt.from_storage(stored)


def test_all_other_keys_may_be_missing():
    stored = {"id": "i1", "reason": "tool_call"}
    assert Interrupt.from_storage(stored) == Interrupt(id="i1", reason="tool_call")
    decided = Interrupt.from_storage(stored | {"decision": {"status": "cancelled", "later": 1}})
    assert decided.decision == CANCEL


def test_a_stored_decision_without_a_status_is_refused():
    with pytest.raises(ConfigurationError, match="decision has no 'status'"):
        Interrupt.from_storage({"id": "i1", "reason": "tool_call", "decision": {"payload": 1}})


# A walk over every move there is

runs = st.sampled_from(["r2", "r3", "r4"])
decisions = st.sampled_from([YES, NO, CANCEL])


class Answering(RuleBasedStateMachine):
    """Several runs and an inbox at one interrupt, in any order, before and after its expiry."""

    def __init__(self):
        super().__init__()
        self.interrupt, self.now, self.settlers, self.abandoned = OPEN, NOON, [], False

    def moved_to(self, after, *, allowed):
        """Check one move against the table of the contract, then make it."""
        before = self.interrupt
        assert (before.state, after.state) in allowed or after == before
        if before.state is AnswerState.SETTLED:
            assert after == before
        if before.decided and not (before.state is AnswerState.FREE and self.abandoned):
            assert after.decision == before.decision
            assert (after.decided_at, after.decided_by) == (before.decided_at, before.decided_by)
        assert not (before.decided and after.pending)
        self.interrupt = after

    @rule(minutes=st.sampled_from([0, 1, 40, 90]))
    def wait(self, minutes):
        self.now += timedelta(minutes=minutes)

    @rule(decision=decisions, run_id=st.none() | runs)
    def redeem(self, decision, run_id):
        before = self.interrupt
        try:
            after, recorded, holds = before.redeem(decision, self.now, run_id)
        except ResumeRejectedError:
            return
        assert recorded == before.pending
        assert not (recorded and before.expired(self.now))
        assert after.decision.agrees(decision)
        assert holds == (after.state is AnswerState.HELD and run_id == after.redeemed_by)
        if before.state is AnswerState.HELD:
            assert after is before
        self.moved_to(after, allowed={("open", "held"), ("open", "free"), ("free", "held")})

    @rule(run_id=runs)
    def settle(self, run_id):
        before = self.interrupt
        after = before.settle(run_id, self.now)
        if after is not before:
            assert (before.state, before.redeemed_by) == ("held", run_id)
            self.settlers.append(run_id)
        self.moved_to(after, allowed={("held", "settled")})

    @rule(run_id=runs)
    def release(self, run_id):
        before = self.interrupt
        after = before.release(run_id)
        assert after is before or before.redeemed_by == run_id
        self.moved_to(after, allowed={("held", "free")})

    @rule(run_id=st.none() | runs)
    def abandon(self, run_id):
        after = self.interrupt.abandon(self.now, "bob", run_id)
        self.abandoned = after is not self.interrupt or self.abandoned
        self.moved_to(after, allowed={("open", "settled"), ("free", "settled")})

    @invariant()
    def one_run_at_most_has_acted(self):
        assert len(self.settlers) + self.abandoned <= 1
        ended = self.interrupt.state is AnswerState.SETTLED
        assert ended == bool(self.settlers or self.abandoned)
        if self.settlers:
            assert self.interrupt.redeemed_by == self.settlers[0]

    @invariant()
    def it_is_stored_without_loss(self):
        assert Interrupt.from_storage(self.interrupt.to_storage()) == self.interrupt


TestAnswering = Answering.TestCase
TestAnswering.settings = settings(deadline=None, max_examples=100, stateful_step_count=25)


@given(st.lists(st.tuples(runs, decisions), min_size=2, max_size=6))
def test_of_several_runs_that_answer_at_once_one_holds(answers):
    interrupt, holders = OPEN, set()
    for run_id, decision in answers:
        try:
            interrupt, _, holds = interrupt.redeem(decision, NOON, run_id)
        except ResumeRejectedError:
            continue
        holders |= {run_id} if holds else set()
    assert holders == {answers[0][0]}
