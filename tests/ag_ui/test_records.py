from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.exceptions import ConfigurationError, StreamError
from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.records import (
    ACTIVE,
    REQUIRED,
    TERMINAL,
    UNSET,
    Reservation,
    RunRecord,
    Status,
)

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
ASKED = Interrupt(id="i1", reason="tool_call")
ALSO_ASKED = Interrupt(id="i2", reason="confirmation", message="Sure?")
DECIDED = ASKED.redeem(Decision(status="resolved", payload={"a": 1}), NOON, "r2").interrupt
FAILURE = {"message": "It broke.", "code": "internal_error"}

RESERVED = RunRecord(scope="s", thread_id="t1", run_id="r1", digest="d1", created_at=NOON)
STARTED = RESERVED.start(NOON, {"step": 1})
ENDED = {
    "succeeded": STARTED.finish("succeeded", NOON),
    "interrupted": STARTED.interrupted([ASKED, ALSO_ASKED], NOON),
    "cancelled": STARTED.finish("cancelled", NOON),
    "failed": STARTED.finish("failed", NOON, FAILURE),
}
ACTIVES = {"reserved": RESERVED, "started": STARTED}

active = pytest.mark.parametrize("record", ACTIVES.values(), ids=list(ACTIVES))
ended = pytest.mark.parametrize("record", ENDED.values(), ids=list(ENDED))
every = pytest.mark.parametrize("record", (ACTIVES | ENDED).values(), ids=[*ACTIVES, *ENDED])
terminal = pytest.mark.parametrize("status", sorted(TERMINAL))


def changed(before, after):
    """The fields that a transition changed."""
    one, other = before.to_storage(), after.to_storage()
    return {name for name in one if one[name] != other[name]}


# A new record


def test_a_record_starts_reserved_with_nothing_done():
    assert RESERVED.status is Status.RESERVED
    assert (RESERVED.sequence, RESERVED.snapshot, RESERVED.failure) == (0, None, None)
    assert RESERVED.interrupts == ()
    assert RESERVED.updated_at == RESERVED.created_at == NOON


@pytest.mark.parametrize("scope", [7, "7", UUID("0D6E5C1A-9B5B-4A57-8B8E-2F0A4C1D9E11")], ids=repr)
def test_the_scope_of_a_record_is_its_text(scope):
    assert replace(RESERVED, scope=scope).scope == str(scope)


@pytest.mark.parametrize("name", ["scope", "thread_id", "run_id", "digest"])
@pytest.mark.parametrize("value", [None, "", "  ", "a\0", "\ud800", "x" * 256, b"a"], ids=repr)
def test_what_no_key_can_hold_is_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"(?i){name}"):
        replace(RESERVED, **{name: value})


@pytest.mark.parametrize("status", list(Status))
def test_a_status_is_read_from_its_text(status):
    assert replace(RESERVED, status=status.value).status is status


@pytest.mark.parametrize("status", ["", "Started", "running", None, 1, True, [], {}], ids=repr)
def test_an_unknown_status_is_refused(status):
    with pytest.raises(ConfigurationError, match="no status of a run"):
        replace(RESERVED, status=status)


def test_the_interrupts_of_a_run_have_ids_of_their_own():
    with pytest.raises(ConfigurationError, match="'r1' share an id"):
        replace(RESERVED, interrupts=[ASKED, DECIDED])
    with pytest.raises(ConfigurationError, match="'r1' share an id"):
        STARTED.interrupted([ASKED, ASKED], LATER)


def test_a_naive_time_means_utc():
    record = replace(RESERVED, created_at=datetime(2026, 1, 15, 12), updated_at=None)
    assert record == RESERVED


# start


@pytest.mark.parametrize("snapshot", [None, {"other": 1}])
def test_to_start_a_started_run_changes_nothing(snapshot):
    assert STARTED.start(LATER, snapshot) is STARTED


def test_a_reserved_run_starts_with_the_snapshot_that_is_given():
    started = RESERVED.start(LATER, {"step": 1})
    assert (started.status, started.snapshot) == ("started", {"step": 1})
    assert started.updated_at == LATER
    assert changed(RESERVED, started) == {"status", "snapshot", "updatedAt"}


def test_a_start_without_a_snapshot_keeps_the_one_that_there_is():
    assert RESERVED.start(LATER).snapshot is None
    assert RESERVED.checkpoint({"step": 0}, NOON).start(LATER).snapshot == {"step": 0}
    assert RESERVED.checkpoint({"step": 0}, NOON).start(LATER, False).snapshot is False


@ended
def test_an_ended_run_does_not_start(record):
    with pytest.raises(StreamError, match=f"'r1' has ended as {record.status}"):
        record.start(LATER)


# advance


@every
def test_an_event_more_is_counted_whatever_the_status(record):
    after = record.advance(LATER)
    assert (after.sequence, after.updated_at) == (record.sequence + 1, LATER)
    assert changed(record, after) == {"sequence", "updatedAt"}
    assert after.advance(LATER).sequence == record.sequence + 2


# checkpoint


@active
@pytest.mark.parametrize("snapshot", [{"step": 2}, [], None, False], ids=repr)
def test_the_snapshot_of_an_active_run_is_replaced(record, snapshot):
    record = record.checkpoint({"step": 1}, NOON)
    after = record.checkpoint(snapshot, LATER)
    assert (after.snapshot, after.updated_at) == (snapshot, LATER)
    assert changed(record, after) == {"snapshot", "updatedAt"}


@ended
def test_an_ended_run_takes_no_snapshot(record):
    with pytest.raises(StreamError, match=f"'r1' has ended as {record.status}"):
        record.checkpoint({"step": 2}, LATER)


# finish


@every
@pytest.mark.parametrize(
    "status", ["reserved", "started", "", "done", "Failed", None, []], ids=repr
)
def test_what_is_no_end_is_refused_before_anything_else(record, status):
    with pytest.raises(ConfigurationError, match="does not end as"):
        record.finish(status, LATER)


@ended
def test_to_end_again_the_same_way_changes_nothing(record):
    assert record.finish(record.status, LATER, {"message": "x"}, {"step": 9}) is record
    assert record.finish(record.status.value, LATER) is record


def test_the_first_failure_stays():
    again = ENDED["failed"].finish("failed", LATER, {"message": "Other.", "code": "stalled"})
    assert (again.failure, again.updated_at) == (FAILURE, NOON)


@ended
@terminal
def test_to_end_in_another_way_is_refused_and_names_both(record, status):
    if status == record.status:
        return
    with pytest.raises(StreamError, match=f"has ended as {record.status} .* as {status}"):
        record.finish(status, LATER)


@active
@terminal
def test_an_active_run_ends_with_the_failure_that_is_given(record, status):
    after = record.finish(status, LATER, FAILURE)
    assert (after.status, after.failure, after.updated_at) == (status, FAILURE, LATER)
    assert changed(record, after) == {"status", "failure", "updatedAt"}
    assert type(after.status) is Status
    assert after.terminal


@active
@terminal
def test_an_end_replaces_the_snapshot_only_with_one_that_is_given(record, status):
    record = record.checkpoint({"step": 1}, NOON)
    assert record.finish(status, LATER).snapshot == {"step": 1}
    assert record.finish(status, LATER, snapshot={"step": 2}).snapshot == {"step": 2}
    assert record.finish(status, LATER, snapshot=None).snapshot is None


def test_a_run_may_end_interrupted_without_a_question():
    record = STARTED.finish("interrupted", LATER)
    assert (record.status, record.terminal) == ("interrupted", True)
    assert not record.awaiting_approval


# interrupted


@every
@pytest.mark.parametrize("asked", [[], (), [DECIDED]], ids=["list", "tuple", "decided"])
def test_a_run_is_not_interrupted_without_an_open_question(record, asked):
    with pytest.raises(ConfigurationError, match="at least one open"):
        record.interrupted(asked, LATER)


@active
def test_an_active_run_is_interrupted_with_its_questions_in_order(record):
    after = record.interrupted(iter([ALSO_ASKED, ASKED]), LATER)
    assert after.interrupts == (ALSO_ASKED, ASKED)
    assert (after.status, after.updated_at) == ("interrupted", LATER)
    assert changed(record, after) == {"status", "interrupts", "updatedAt"}
    assert after.awaiting_approval


@active
def test_one_open_question_among_decided_ones_is_enough(record):
    after = record.interrupted([DECIDED, ALSO_ASKED], LATER)
    assert after.pending_interrupts == (ALSO_ASKED,)


def test_an_interruption_replaces_the_snapshot_only_with_one_that_is_given():
    assert STARTED.interrupted([ASKED], LATER).snapshot == {"step": 1}
    assert STARTED.interrupted([ASKED], LATER, {"step": 2}).snapshot == {"step": 2}
    assert STARTED.interrupted([ASKED], LATER, None).snapshot is None


@ended
def test_an_ended_run_is_not_interrupted(record):
    with pytest.raises(StreamError, match=f"'r1' has ended as {record.status}"):
        record.interrupted([ASKED], LATER)


# replace_interrupt


@every
def test_an_interrupt_that_the_run_does_not_have_replaces_none(record):
    with pytest.raises(ConfigurationError, match="'r1' has no interrupt 'i9'"):
        record.replace_interrupt(replace(DECIDED, id="i9"), LATER)


@every
def test_an_interrupt_is_replaced_where_it_is_whatever_the_status(record):
    record = replace(record, interrupts=[ALSO_ASKED, ASKED])
    after = record.replace_interrupt(DECIDED, LATER)
    assert after.interrupts == (ALSO_ASKED, DECIDED)
    assert (after.status, after.updated_at) == (record.status, LATER)
    assert changed(record, after) == {"interrupts", "updatedAt"}


# Queries


@every
def test_a_run_is_either_active_or_terminal(record):
    assert record.terminal == (record.status in TERMINAL) == (record.status not in ACTIVE)


@every
def test_only_an_interrupted_run_with_an_open_question_awaits_approval(record):
    for asked, pending in (((), ()), ((ASKED, ALSO_ASKED),) * 2, ((DECIDED,), ())):
        each = replace(record, interrupts=asked)
        assert each.pending_interrupts == pending
        assert each.awaiting_approval == (record.status == "interrupted" and pending != ())


def test_a_run_awaits_approval_until_the_last_question_is_answered():
    record = ENDED["interrupted"].replace_interrupt(DECIDED, LATER)
    assert record.awaiting_approval
    cancelled = ALSO_ASKED.abandon(LATER, "ada")
    assert not record.replace_interrupt(cancelled, LATER).awaiting_approval


def test_an_interrupt_is_found_by_its_id():
    record = ENDED["interrupted"]
    assert record.interrupt("i2") == ALSO_ASKED
    assert record.interrupt("I2") is record.interrupt("i2 ") is RESERVED.interrupt("i2") is None


def test_a_reservation_is_new_or_attached():
    assert (Reservation(RESERVED, True).new, Reservation(RESERVED, True).attached) == (True, False)
    assert Reservation(RESERVED, False).attached


# A value that nobody changes from outside


def test_nested_values_are_copied_in_and_out():
    snapshot, failure, asked = {"a": [1]}, dict(FAILURE), [ASKED]
    record = replace(RESERVED, snapshot=snapshot, failure=failure, interrupts=asked)
    snapshot["a"].append(2)
    failure["code"] = "other"
    asked.append(ALSO_ASKED)
    record.snapshot["a"].append(3)
    record.failure.clear()
    record.to_dict()["snapshot"]["a"].append(4)
    record.to_storage()["failure"].clear()
    assert (record.snapshot, record.failure) == ({"a": [1]}, FAILURE)
    assert record.interrupts == (ASKED,)


def test_a_snapshot_given_to_a_transition_is_copied():
    snapshot = {"a": [1]}
    records = [
        RESERVED.start(NOON, snapshot),
        STARTED.checkpoint(snapshot, NOON),
        STARTED.finish("succeeded", NOON, snapshot=snapshot),
        STARTED.interrupted([ASKED], NOON, snapshot),
    ]
    snapshot["a"].append(2)
    assert [record.snapshot for record in records] == [{"a": [1]}] * 4


@pytest.mark.parametrize("name", ["status", "snapshot", "failure", "interrupts", "sequence"])
def test_no_field_can_be_assigned(name):
    with pytest.raises(FrozenInstanceError):
        setattr(STARTED, name, None)


def test_no_transition_changes_the_original():
    before = STARTED.to_storage()
    STARTED.advance(LATER)
    STARTED.checkpoint({"step": 2}, LATER)
    STARTED.finish("failed", LATER, FAILURE)
    STARTED.interrupted([ASKED], LATER)
    assert STARTED.to_storage() == before


@every
def test_a_record_survives_pickling(record):
    assert pickle.loads(pickle.dumps(record)) == record


def test_unset_says_what_it_is():
    assert repr(UNSET) == "UNSET"


# Stored and reported

WHOLE = RunRecord(
    scope="s",
    thread_id="t1",
    run_id="r1",
    digest="d1",
    status=Status.INTERRUPTED,
    sequence=7,
    snapshot={"step": [1]},
    failure=FAILURE,
    interrupts=(DECIDED, ALSO_ASKED),
    created_at=NOON,
    updated_at=LATER.replace(microsecond=1),
)


def test_a_record_is_reported_with_its_questions_as_a_client_sees_them():
    assert WHOLE.to_dict() == {
        "scope": "s",
        "threadId": "t1",
        "runId": "r1",
        "digest": "d1",
        "status": "interrupted",
        "sequence": 7,
        "snapshot": {"step": [1]},
        "failure": FAILURE,
        "interrupts": [DECIDED.to_dict(), ALSO_ASKED.to_dict()],
        "createdAt": "2026-01-15T12:00:00.000000Z",
        "updatedAt": "2026-01-15T12:05:00.000001Z",
    }
    assert type(WHOLE.to_dict()["status"]) is str


def test_a_record_is_stored_with_the_answers_too():
    interrupts = [DECIDED.to_storage(), ALSO_ASKED.to_storage()]
    assert WHOLE.to_storage() == WHOLE.to_dict() | {"interrupts": interrupts}


@pytest.mark.parametrize("record", [WHOLE, *ACTIVES.values(), *ENDED.values()])
def test_a_record_is_restored_without_loss(record):
    stored = json.loads(json.dumps(record.to_storage()))
    assert RunRecord.from_storage(stored) == record
    assert RunRecord.from_storage(stored).to_storage() == record.to_storage()


def test_the_required_keys_are_all_but_three():
    assert set(REQUIRED) == set(WHOLE.to_storage()) - {"snapshot", "failure", "interrupts"}


@pytest.mark.parametrize("key", REQUIRED)
def test_a_required_key_that_is_missing_is_named(key):
    stored = WHOLE.to_storage()
    del stored[key]
    with pytest.raises(ConfigurationError, match=f"'{key}'"):
        RunRecord.from_storage(stored)


@pytest.mark.parametrize("without", [{"snapshot"}, {"failure"}, {"interrupts"}, {"later"}], ids=str)
def test_three_keys_may_be_missing_and_others_are_not_read(without):
    stored = RESERVED.to_storage() | {"later": 1}
    kept = {key: value for key, value in stored.items() if key not in without}
    assert RunRecord.from_storage(kept) == RESERVED


@pytest.mark.parametrize("key", ["createdAt", "updatedAt"])
@pytest.mark.parametrize(
    "written",
    ["2026-01-15T12:00:00Z", "2026-01-15T13:00:00+01:00", "2026-01-15T17:45+05:45", NOON],
    ids=str,
)
def test_any_offset_is_read(key, written):
    record = RunRecord.from_storage(RESERVED.to_storage() | {key: written})
    assert record == RESERVED
    assert record.to_storage()[key] == "2026-01-15T12:00:00.000000Z"


@pytest.mark.parametrize("key", ["createdAt", "updatedAt"])
@pytest.mark.parametrize("written", ["", "soon", 0, []], ids=repr)
def test_a_stored_time_that_is_none_is_named(key, written):
    with pytest.raises(ConfigurationError, match=key):
        RunRecord.from_storage(RESERVED.to_storage() | {key: written})


def test_a_stored_run_without_an_update_was_updated_when_it_was_made():
    stored = WHOLE.to_storage() | {"updatedAt": None}
    assert RunRecord.from_storage(stored).updated_at == NOON
    with pytest.raises(ConfigurationError, match="createdAt"):
        RunRecord.from_storage(stored | {"createdAt": None})


def test_an_unknown_stored_status_is_refused():
    with pytest.raises(ConfigurationError, match="'running' is no status of a run"):
        RunRecord.from_storage(WHOLE.to_storage() | {"status": "running"})


ids = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=255
).filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)
moments = st.datetimes(
    datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(timezone(timedelta(hours=2)))
)


@st.composite
def interrupts(draw):
    decision = draw(
        st.none()
        | st.builds(
            Decision,
            status=st.sampled_from(["resolved", "cancelled"]),
            payload=json_values,
            metadata=json_values,
        )
    )
    return Interrupt(
        id=draw(ids),
        reason=draw(st.text()),
        message=draw(st.none() | st.text()),
        expires_at=draw(st.none() | moments),
        metadata=draw(st.none() | st.dictionaries(st.text(), json_values, max_size=2)),
        decision=decision,
        redeemed_by=draw(st.none() | ids) if decision else None,
        settled_at=draw(st.none() | moments) if decision else None,
    )


@unhurried
@given(
    st.builds(
        RunRecord,
        scope=ids | st.integers(),
        thread_id=ids,
        run_id=ids,
        digest=ids,
        created_at=moments,
        updated_at=st.none() | moments,
        status=st.sampled_from(Status),
        sequence=st.integers(0, 2**63),
        snapshot=json_values,
        failure=st.none() | st.fixed_dictionaries({"message": st.text(), "code": st.text()}),
        interrupts=st.lists(interrupts(), max_size=2, unique_by=lambda one: one.id),
    )
)
def test_any_record_is_restored_without_loss(record):
    stored = json.loads(json.dumps(record.to_storage()))
    assert RunRecord.from_storage(stored) == record


# Any sequence of transitions

ends = st.sampled_from(sorted(TERMINAL))
steps = st.one_of(
    st.just(lambda record, now: record.start(now, {"step": 0})),
    st.just(lambda record, now: record.advance(now)),
    st.just(lambda record, now: record.checkpoint({"step": 1}, now)),
    st.just(lambda record, now: record.interrupted([ASKED, ALSO_ASKED], now)),
    st.just(lambda record, now: record.replace_interrupt(DECIDED, now)),
    ends.map(lambda status: lambda record, now: record.finish(status, now, FAILURE)),
)


@unhurried
@given(st.lists(steps, max_size=15))
def test_no_sequence_of_transitions_moves_an_end_or_lowers_the_sequence(sequence):
    record, now = RESERVED, NOON
    for step in sequence:
        now += timedelta(seconds=1)
        try:
            after = step(record, now)
        except (StreamError, ConfigurationError):
            continue
        if record.terminal:
            assert after.status is record.status
            assert (after.snapshot, after.failure) == (record.snapshot, record.failure)
        assert after.sequence in (record.sequence, record.sequence + 1)
        assert after is record or after.updated_at == now
        assert (after.scope, after.thread_id, after.run_id, after.digest, after.created_at) == (
            *(record.scope, record.thread_id, record.run_id, record.digest, record.created_at),
        )
        record = after
