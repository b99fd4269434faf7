from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    EventType,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallStartEvent,
)
from ag_ui.core import Interrupt as WireInterrupt
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from solid_runs.ag_ui.endpoint import frames, inputs, openings
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.interrupts import Decision, Interrupt
from solid_runs.ag_ui.records import RunRecord, Status
from tests.ag_ui.agents import body

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def sent(event: Any, sequence: int | None = None) -> Any:
    frame = frames.encode(event, sequence)
    assert frame.endswith("\n\n")
    assert "\r" not in frame
    *head, data = frame.removesuffix("\n\n").split("\n")
    assert head == ([] if sequence is None else [f"id: {sequence}"])
    data.encode()
    return json.loads(data.removeprefix("data: "), parse_constant=pytest.fail)


def record(**fields: Any) -> RunRecord:
    given = {"scope": "s", "thread_id": "t", "run_id": "r", "digest": "d", "created_at": NOW}
    return RunRecord(**given | fields)


# Encoding


def test_a_frame_is_one_line_of_data_with_its_number():
    event = TextMessageContentEvent(message_id="m", delta="a\nb\r\n\u2028é")
    assert sent(event, 7) == {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": "m",
        "delta": "a\nb\r\n\u2028é",
    }


@pytest.mark.parametrize("text", ["\ud83d", "a\udc81b", "\ud83d\udc4d"])
def test_half_a_character_does_not_break_a_frame(text):
    said = sent(
        TextMessageContentEvent(message_id="m", delta="x").model_copy(update={"delta": text})
    )
    assert said["delta"].encode()
    assert set(said) == {"type", "messageId", "delta"}


@given(st.text(st.characters(exclude_categories=[]), min_size=1))
def test_any_text_goes_out_as_json(text):
    event = CustomEvent(name="n", value={"deep": [text]})
    said = sent(event)["value"]["deep"][0]
    assert said == text or "\ufffd" in said or any(0xD800 <= ord(one) < 0xE000 for one in text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), None),
        (float("inf"), None),
        ({"at": NOW}, {"at": "2030-01-01T00:00:00Z"}),
        (SimpleNamespace(a=1), "namespace(a=1)"),
        ({1: None}, {"1": None}),
    ],
)
def test_any_value_goes_out_as_json(value, shown):
    assert sent(CustomEvent(name="n", value=value))["value"] == shown


def test_no_optional_field_is_null():
    told = [
        frames.started("t", "r"),
        frames.succeeded("t", "r"),
        frames.cancelled("t", "r"),
        frames.error("m", None),
        frames.interrupted("t", "r", [Interrupt(id="i", reason="tool_call")]),
        *frames.state({"a": None}),
    ]
    for event in told:
        fields = sent(event)
        nulls = [name for name, value in fields.items() if value is None]
        assert nulls == [], event
    assert sent(told[4])["outcome"]["interrupts"] == [{"id": "i", "reason": "tool_call"}]
    assert sent(told[5])["snapshot"] == {"a": None}


def test_an_interrupt_goes_out_with_all_that_the_client_knows():
    interrupt = Interrupt(
        id="i",
        reason="tool_call",
        message="Pay?",
        tool_call_id="c",
        response_schema={"type": "object"},
        expires_at=NOW,
        metadata={"a": None},
        subagent_run_id="s",
        decision=Decision(status="resolved", payload={"secret": 1}),
        decided_by="ann",
    )
    assert sent(frames.interrupted("t", "r", [interrupt]))["outcome"]["interrupts"] == [
        {
            "id": "i",
            "reason": "tool_call",
            "message": "Pay?",
            "toolCallId": "c",
            "responseSchema": {"type": "object"},
            "expiresAt": "2030-01-01T00:00:00.000000Z",
            "metadata": {"a": None},
            "subagentRunId": "s",
        }
    ]


def test_usage_goes_out_as_a_list_of_counts():
    said = sent(frames.succeeded("t", "r", {"a": 1}, [{"inputTokens": 3}, TokenUsage(model="m")]))
    assert said["usage"] == [{"inputTokens": 3}, {"model": "m"}]
    assert said["result"] == {"a": 1}


# What an agent yields


def test_an_object_with_a_type_is_an_event():
    event = frames.as_event({"type": "TEXT_MESSAGE_START", "messageId": "m"})
    assert event.type is EventType.TEXT_MESSAGE_START


@pytest.mark.parametrize("value", [None, "text", 1, b"x"])
def test_what_is_no_event_is_named(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        frames.as_event(value)


def test_an_object_that_is_no_event_is_refused():
    with pytest.raises(ValidationError):
        frames.as_event({"type": "NO_SUCH_EVENT"})


def test_an_interrupt_of_the_package_becomes_one_of_ours():
    theirs = WireInterrupt(
        id="i", reason="confirmation", expires_at="2030-01-01T01:00:00+01:00", metadata={"a": 1}
    )
    ours = frames.as_interrupt(theirs)
    assert (ours.id, ours.expires_at, ours.metadata) == ("i", NOW, {"a": 1})


def test_an_interrupt_with_a_deadline_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="tomorrow"):
        frames.as_interrupt(WireInterrupt(id="i", reason="r", expires_at="tomorrow"))


# Recorded endings


def asked(*states: str) -> tuple[Interrupt, ...]:
    made = []
    for number, state in enumerate(states, 1):
        interrupt = Interrupt(id=f"i{number}", reason="tool_call")
        if state != "open":
            interrupt = interrupt.redeem(Decision(status="resolved"), NOW, state).interrupt
        made.append(interrupt)
    return tuple(made)


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"status": "succeeded"}, {"type": "RUN_FINISHED", "outcome": {"type": "success"}}),
        ({"status": "cancelled"}, {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}),
        (
            {"status": "failed", "failure": {"message": "No.", "code": "c"}},
            {"type": "RUN_ERROR", "message": "No.", "code": "c"},
        ),
        ({"status": "failed"}, {"type": "RUN_ERROR", "message": "The run failed."}),
        (
            {"status": "interrupted", "interrupts": asked("r2", "open")},
            {
                "type": "RUN_FINISHED",
                "outcome": {
                    "type": "interrupt",
                    "interrupts": [{"id": "i2", "reason": "tool_call"}],
                },
            },
        ),
        (
            {"status": "interrupted", "interrupts": asked("r2", "r3")},
            {
                "type": "RUN_FINISHED",
                "outcome": {"type": "success"},
                "metadata": {"answeredBy": ["r2", "r3"]},
            },
        ),
        ({"status": "interrupted"}, {"type": "RUN_FINISHED", "outcome": {"type": "success"}}),
    ],
)
def test_a_recorded_ending_is_told(fields, ending):
    keys = {"threadId": "t", "runId": "r"} if ending["type"] == "RUN_FINISHED" else {}
    assert sent(frames.recorded(record(**fields))) == ending | keys


# What a stream has opened


def closing(*events: Any, status: Status = Status.SUCCEEDED, interrupts: Any = ()) -> list[Any]:
    opened = openings.Opened()
    for event in events:
        opened.follow(event)
    closed = [sent(event) for event in opened.close(status, interrupts)]
    assert [sent(event) for event in opened.close(status, interrupts)] == closed
    return closed


OPENERS = [
    (TextMessageStartEvent(message_id="m"), {"type": "TEXT_MESSAGE_END", "messageId": "m"}),
    (
        ToolCallStartEvent(tool_call_id="c", tool_call_name="n"),
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ),
    (StepStartedEvent(step_name="s"), {"type": "STEP_FINISHED", "stepName": "s"}),
    (ReasoningStartEvent(message_id="m"), {"type": "REASONING_END", "messageId": "m"}),
    (
        ReasoningMessageStartEvent(message_id="m"),
        {"type": "REASONING_MESSAGE_END", "messageId": "m"},
    ),
    (
        SubagentStartedEvent(subagent_run_id="a", name="n"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "a", "outcome": {"type": "success"}},
    ),
]


@pytest.mark.parametrize(("opener", "closer"), OPENERS)
def test_what_is_open_is_closed(opener, closer):
    assert closing(opener) == [closer]


@pytest.mark.parametrize(("opener", "closer"), OPENERS)
def test_what_was_closed_is_not_closed_again(opener, closer):
    assert closing(opener, frames.as_event(closer)) == []


def test_all_that_opens_something_has_what_closes_it():
    openers = {one for one in EventType if one.value.endswith(("_START", "_STARTED"))}
    assert openers - {EventType.RUN_STARTED} == set(openings.CLOSERS)
    assert {opener.type for opener, _ in OPENERS} == set(openings.CLOSERS)


def test_what_was_opened_last_is_closed_first():
    assert closing(*[opener for opener, _ in OPENERS]) == [closer for _, closer in OPENERS[::-1]]


def test_a_message_is_closed_by_its_subagent():
    event = TextMessageStartEvent(message_id="m", subagent_run_id="a")
    assert closing(event) == [{"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "a"}]
    assert closing(event, TextMessageEndEvent(message_id="m")) == []


def test_steps_of_one_name_are_told_apart_by_their_subagent():
    steps = [StepStartedEvent(step_name="s"), StepStartedEvent(step_name="s", subagent_run_id="a")]
    assert closing(*steps) == [
        {"type": "STEP_FINISHED", "stepName": "s", "subagentRunId": "a"},
        {"type": "STEP_FINISHED", "stepName": "s"},
    ]


def test_a_subagent_that_failed_is_closed():
    begun = SubagentStartedEvent(subagent_run_id="a", name="n")
    assert closing(begun, SubagentErrorEvent(subagent_run_id="a", message="m")) == []


def test_a_subagent_of_an_interrupted_run_is_suspended_and_of_a_cancelled_one_fails():
    begun = SubagentStartedEvent(subagent_run_id="a", name="n")
    asked = [Interrupt(id="i", reason="r", subagent_run_id="a")]
    assert closing(begun, status=Status.INTERRUPTED, interrupts=asked)[0]["outcome"] == {
        "type": "suspended",
        "interruptIds": ["i"],
    }
    assert closing(begun, status=Status.INTERRUPTED)[0]["outcome"] == {"type": "suspended"}
    assert closing(begun, status=Status.CANCELLED)[0]["type"] == "SUBAGENT_ERROR"


# Reading a request


def raw(**members: Any) -> bytes:
    return json.dumps(body(**members)).encode()


def test_a_request_is_read_with_members_nobody_knows():
    read = inputs.read_request(raw(run_id="r7", later="x"))
    assert (read.input.thread_id, read.input.run_id) == ("t1", "r7")
    assert read.body["later"] == "x"
    assert read.input.resume is None


def test_only_three_members_are_required():
    read = inputs.read_request(b'{"threadId": "t", "runId": "r", "messages": []}')
    assert read.input.state is None


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"threadId": "x" * 256}, "threadId"),
        ({"threadId": "a\0b"}, "threadId"),
        ({"threadId": None}, "threadId"),
        ({"threadId": 7}, "threadId"),
        ({"threadId": " "}, "threadId"),
        ({"runId": "\ud83d"}, "runId"),
        ({"runId": ""}, "runId"),
        ({"parentRunId": "x" * 256}, "parentRunId"),
        ({"messages": None}, "messages"),
        ({"messages": [{"id": "m", "role": "wizard", "content": "x"}]}, "messages.0"),
        ({"messages": [{"id": "m", "role": "user"}]}, "messages.0.user.content"),
        ({"resume": {"interruptId": "i"}}, "resume"),
        ({"resume": [{"status": "resolved"}]}, "resume.0.interruptId"),
        ({"resume": [{"interruptId": "i", "status": "denied"}]}, "resume.0.status"),
        ({"resume": [{"interruptId": "x" * 256, "status": "resolved"}]}, "resume.0.interruptId"),
        ({"tools": "all"}, "tools"),
    ],
)
def test_a_malformed_member_is_named(members, field):
    with pytest.raises(frames.MalformedInput) as caught:
        inputs.read_request(raw(**members))
    assert caught.value.field == field
    assert field in str(caught.value) or field == "resume.0.interruptId"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_object_of_json_is_refused(text):
    with pytest.raises(frames.MalformedInput, match="The body is no JSON"):
        inputs.read_request(text)


def test_what_no_database_stores_is_replaced_in_what_the_user_said():
    said = {"id": "u", "role": "user", "content": "a\0b\ud83d"}
    read = inputs.read_request(raw(messages=[said], state={"k\0": 1}))
    assert read.input.messages[0].content == "a\ufffdb\ufffd"
    assert read.input.state == {"k\ufffd": 1}


def test_an_emoji_stays_what_it_is():
    said = {"id": "u", "role": "user", "content": "👍"}
    assert inputs.read_request(raw(messages=[said])).input.messages[0].content == "👍"
