from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.records import (
    FIELDS,
    PATCHABLE,
    TERMINAL,
    RunRecord,
    Status,
    checked_patch,
    new_record,
)
from solid_runs.threads.scopes import SHARED, key_of
from solid_runs.threads.values import LARGEST, LARGEST_EPOCH, MOST_DOCUMENT_BYTES

pytestmark = pytest.mark.once

RUN = RunRecord(run_id="r1", thread_id="t1", started_at=10)
WHOLE = RunRecord(
    run_id="r1",
    thread_id="t1",
    status="failed",
    started_at=10,
    parent_run_id="r0",
    subagent_run_id="r1",
    name="researcher",
    finished_at=20,
    error={"message": "It broke.", "code": "overloaded"},
    usage={"promptTokens": 3, "details": {"cached": 1}},
    sandbox_key="box",
    detached_since=15,
    cancel_requested=False,
    driver_epoch=0,
)


def test_a_record_runs_unless_told_otherwise():
    assert RUN.status is Status.RUNNING
    assert RUN.terminal is False


def test_what_is_absent_is_left_out_of_the_json():
    assert RUN.to_json() == {
        "runId": "r1",
        "threadId": "t1",
        "status": "running",
        "startedAt": 10,
    }


def test_false_and_zero_are_not_absent():
    shown = WHOLE.to_json()
    assert shown["cancelRequested"] is False
    assert shown["driverEpoch"] == 0
    assert set(shown) == set(FIELDS.values())


@pytest.mark.parametrize("record", [RUN, WHOLE], ids=["new", "whole"])
def test_json_gives_the_record_back(record):
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize("status", list(Status))
def test_three_statuses_are_ends(status):
    ended = status in ("completed", "failed", "aborted")
    assert replace(RUN, status=status.value).terminal is ended
    assert (status in TERMINAL) is ended


def test_an_unknown_stored_status_is_reported_and_neither_an_end_nor_running():
    record = replace(RUN, status="paused")
    assert (record.status, record.terminal) == ("paused", False)
    assert record.to_json()["status"] == "paused"
    assert RunRecord.from_json(record.to_json()) == record


def test_a_record_does_not_change():
    with pytest.raises(FrozenInstanceError):
        RUN.status = "failed"
    WHOLE.usage["promptTokens"] = 99
    WHOLE.error.clear()
    assert WHOLE.usage["promptTokens"] == 3
    assert WHOLE.error["code"] == "overloaded"


def test_a_record_does_not_change_with_what_it_was_given():
    usage = {"details": {"cached": 1}}
    record = replace(RUN, usage=usage)
    usage["details"]["cached"] = 2
    assert record.usage == {"details": {"cached": 1}}


# What a run is created with


def test_a_new_record_takes_what_is_given():
    given_values = {"run_id": "r", "thread_id": "t", "started_at": -1, "name": ""}
    record = new_record(**given_values, status="interrupted", parent_run_id=None)
    assert record.status is Status.INTERRUPTED
    assert (record.started_at, record.name, record.parent_run_id) == (-1, "", None)


NO_IDS = ["", "  ", 7, True, b"a", "a\0", "\ud83d", "x" * 256, "x" * 10_000, ["a"]]
NO_TIMES = ["1000", "2026-01-01", 1.5, 1.0, True, [1], LARGEST + 1, -LARGEST - 1, 10**5000]


def created(**changed):
    return new_record(**{"run_id": "r", "thread_id": "t", "started_at": 1, **changed})


def refusal(call, *args, **kwargs):
    with pytest.raises(InvalidRecord) as refused:
        call(*args, **kwargs)
    assert str(refused.value) == f"{refused.value.field}: {refused.value.problem}"
    assert len(str(refused.value)) < 300
    return refused.value.field


def named(value):
    return repr(value)[:12] if not isinstance(value, int) or abs(value) < 10**20 else "huge"


@pytest.mark.parametrize("name", ["run_id", "thread_id", "parent_run_id", "subagent_run_id"])
@pytest.mark.parametrize("value", NO_IDS, ids=named)
def test_what_is_no_id_is_refused(name, value):
    assert refusal(created, **{name: value}) == name


@pytest.mark.parametrize("name", ["run_id", "thread_id", "started_at"])
def test_these_must_be_given(name):
    assert refusal(created, **{name: None}) == name


@pytest.mark.parametrize("name", ["parent_run_id", "subagent_run_id", "name", "status"])
def test_these_may_be_left_out(name):
    assert created(**{name: None}) == created()


@pytest.mark.parametrize("value", [7, "a\0", "\ud83d", "x" * 256], ids=named)
def test_what_is_no_name_is_refused(value):
    assert refusal(created, name=value) == "name"


@pytest.mark.parametrize("value", NO_TIMES, ids=named)
def test_what_is_no_time_is_refused(value):
    assert refusal(created, started_at=value) == "started_at"


@pytest.mark.parametrize("value", ["paused", "Running", "", 1, True, ["running"]], ids=named)
def test_what_is_no_status_is_refused(value):
    assert refusal(created, status=value) == "status"
    assert refusal(checked_patch, {"status": value}) == "status"


# Patches


def test_a_patch_keeps_what_is_absent_and_none_apart():
    assert checked_patch({}) == {}
    cleared = {name: None for name in PATCHABLE if name != "status"}
    assert checked_patch(cleared) == cleared


def test_a_status_cannot_be_cleared():
    assert refusal(checked_patch, {"status": None}) == "status"


@pytest.mark.parametrize("name", ["run_id", "thread_id", "started_at", "finishedAt", "x", 7])
def test_a_patch_names_no_other_field(name):
    assert refusal(checked_patch, {"status": "failed", name: 1}) == str(name)


@pytest.mark.parametrize("patch", [None, [], "status", 7], ids=named)
def test_a_patch_is_an_object(patch):
    assert refusal(checked_patch, patch) == "patch"


@pytest.mark.parametrize("name", ["finished_at", "detached_since"])
@pytest.mark.parametrize("value", NO_TIMES, ids=named)
def test_a_patch_takes_no_other_times(name, value):
    assert refusal(checked_patch, {name: value}) == name


@pytest.mark.parametrize("value", [-LARGEST, -1, 0, 1, 10, 1000, LARGEST])
def test_times_are_kept_as_given(value):
    assert checked_patch({"finished_at": value}) == {"finished_at": value}


@pytest.mark.parametrize("value", ["1", 1.0, True, -1, LARGEST_EPOCH + 1], ids=named)
def test_an_epoch_is_a_whole_number_of_0_or_more(value):
    assert refusal(checked_patch, {"driver_epoch": value}) == "driver_epoch"
    assert checked_patch({"driver_epoch": 0}) == {"driver_epoch": 0}


@pytest.mark.parametrize("value", [0, 1, "true", [], {}], ids=named)
def test_a_request_to_cancel_is_true_or_false(value):
    assert refusal(checked_patch, {"cancel_requested": value}) == "cancel_requested"


@pytest.mark.parametrize("value", [7, "x" * 2_001, "a\0"], ids=named)
def test_what_is_no_sandbox_key_is_refused(value):
    assert refusal(checked_patch, {"sandbox_key": value}) == "sandbox_key"


@pytest.mark.parametrize("value", [[], "tokens", 7, True], ids=named)
def test_usage_is_an_object(value):
    assert refusal(checked_patch, {"usage": value}) == "usage"


def test_usage_has_a_largest_size():
    room = MOST_DOCUMENT_BYTES - len('{"a":""}')
    kept = checked_patch({"usage": {"a": "x" * room}})
    assert len(kept["usage"]["a"]) == room
    assert refusal(checked_patch, {"usage": {"a": "x" * (room + 1)}}) == "usage"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("broken", "error"),
        ({}, "error.message"),
        ({"code": "x"}, "error.message"),
        ({"message": None}, "error.message"),
        ({"message": 7}, "error.message"),
        ({"message": "m", "code": 7}, "error.code"),
        ({"message": "m", "code": "x" * 256}, "error.code"),
        ({"message": "m", "stack": "s"}, "error.stack"),
    ],
    ids=repr,
)
def test_an_error_has_a_message_and_perhaps_a_code(value, field):
    assert refusal(checked_patch, {"error": value}) == field


def test_what_an_error_says_never_stops_it_from_being_stored():
    message = "a\0b\ud83d" + "x" * 20_000
    kept = checked_patch({"error": {"message": message, "code": None}})["error"]
    assert set(kept) == {"message"}
    assert len(kept["message"]) <= 16_000
    kept["message"].encode()
    assert "\0" not in kept["message"]
    assert kept["message"].startswith("a")


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    )
)
def test_any_object_of_usage_is_stored_or_refused_by_name(usage):
    kept = checked_patch({"usage": usage})["usage"]
    json.dumps(kept, allow_nan=False).encode()
    assert checked_patch({"usage": kept})["usage"] == kept


# Scopes


def test_the_shared_scope_is_nobodys_by_mistake():
    assert key_of(SHARED) == ""
    for wrong in (None, "", " ", True, 1.5, object()):
        assert refusal(key_of, wrong) == "scope"


def test_a_scope_is_its_text():
    assert key_of(7) == key_of("7") == "7"
