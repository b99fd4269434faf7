from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.digests import canonical_json, digest, digest_input
from solid_runs.storable import DEEPEST, json_value

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"))
whole = st.integers(-(2**53), 2**53)
scalars = st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | texts,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4),
    max_leaves=15,
)


def nested(levels, inner):
    for _ in range(levels):
        inner = [inner]
    return inner


def turned(value):
    """The same value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: turned(member) for key, member in reversed(value.items())}
    return [turned(member) for member in value] if isinstance(value, list) else value


def floated(value):
    """The same value with every whole number as a float."""
    if isinstance(value, dict):
        return {key: floated(member) for key, member in value.items()}
    if isinstance(value, list):
        return [floated(member) for member in value]
    return float(value) if type(value) is int else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": {"d": 3, "c": 2}, "a": 1}, '{"a":1,"b":{"c":2,"d":3}}'),
        ([1.0, -0.0, 1.5, 1e2], "[1,0,1.5,100]"),
        ({"é": "😀"}, '{"é":"😀"}'),
        ([None, True, False, ""], '[null,true,false,""]'),
        ((1, 2), "[1,2]"),
        ({}, "{}"),
    ],
)
def test_canonical_json_has_its_keys_in_order_and_no_spaces(value, text):
    assert canonical_json(value) == text


def test_a_digest_is_sha256_in_hexadecimal():
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert re.fullmatch("[0-9a-f]{64}", digest(None))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        (1, 1.0),
        (0.0, -0.0),
        (2**53, float(2**53)),
        ((1, 2), [1, 2]),
        ({1: "a"}, {"1": "a"}),
        (float("nan"), None),
        (float("inf"), None),
        ("a\0b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        (nested(150, {"a": 1, "b": 2.0}), nested(150, {"b": 2, "a": 1.0})),
        (10**400, str(10**400)),
    ],
)
def test_equal_values_have_one_digest(one, other):
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [2, 1]),
        ("1", 1),
        ("1.0", 1.0),
        (True, 1),
        (True, "true"),
        (None, "null"),
        (None, False),
        (0, False),
        ("", None),
        ([], {}),
        ([], None),
        ({"a": None}, {}),
        ([[1], 2], [1, [2]]),
        ("a", "A"),
        ("a", "a "),
        ("é", "e\u0301"),
        (1, 1.5),
        (2**53, 2**53 + 1),
        (10**400, 10**400 + 1),
        (nested(21, 1), nested(20, "[1]")),
        (nested(150, 1), nested(150, 2)),
        (nested(50, 1), nested(51, 1)),
    ],
)
def test_different_values_have_different_digests(one, other):
    assert digest(one) != digest(other)


def test_what_is_below_the_deepest_level_makes_no_difference():
    assert digest(nested(DEEPEST, 1)) != digest(nested(DEEPEST, 2))
    assert digest(nested(DEEPEST + 1, 1)) == digest(nested(DEEPEST + 1, 2))
    assert digest(nested(100_000, 1)) == digest(nested(DEEPEST + 1, 1))


@pytest.mark.parametrize("number", [10**400, 10**5000, -(10**5000), sys.maxsize, 1e308], ids=type)
def test_numbers_of_any_size_have_a_digest(number):
    assert re.fullmatch("[0-9a-f]{64}", digest(number))
    assert digest(number) != digest(0)


@unhurried
@given(json_values)
def test_neither_the_order_of_keys_nor_a_float_changes_a_digest(value):
    assert digest(value) == digest(turned(value)) == digest(floated(value))


@unhurried
@given(json_values)
def test_a_value_has_the_same_digest_before_and_after_it_was_stored(value):
    stored = json.loads(json.dumps(json_value(value, max_depth=DEEPEST), sort_keys=True))
    assert digest(value) == digest(stored)


@unhurried
@given(json_values)
def test_canonical_json_says_what_the_value_says(value):
    assert json.loads(canonical_json(value)) == value


@unhurried
@given(json_values, json_values)
def test_values_have_one_digest_only_if_they_are_one_json_value(one, other):
    if digest(one) == digest(other):
        assert one == other


# What of a request makes it that request

QUESTION = {"id": "m1", "role": "user", "content": "Where is it?"}
REPLY = {"id": "m2", "role": "assistant", "content": "It is on"}
BODY = {
    "threadId": "t1",
    "runId": "r1",
    "messages": [QUESTION],
    "state": {"step": 1},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


def same(**changes):
    return digest(digest_input(BODY)) == digest(digest_input(BODY | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [QUESTION, REPLY]},
        {"messages": [{"id": "m0", "role": "user", "content": "Hello"}, QUESTION]},
        {"messages": [QUESTION | {"name": "Ada"}, {"role": "tool", "content": "x"}]},
        {"state": {"step": 2}},
        {"tools": [{"name": "look"}]},
        {"context": [{"value": 1}]},
        {"runId": "r2"},
        {"threadId": "t2"},
        {"parentRunId": "r0"},
        {"forwardedProps": None},
        {"resume": None},
        {"resume": []},
    ],
)
def test_a_request_that_is_sent_again_is_the_same(changes):
    assert same(**changes)


def test_a_request_without_forwarded_props_is_one_with_none_of_them():
    without = {key: value for key, value in BODY.items() if key != "forwardedProps"}
    assert digest_input(without) == digest_input(BODY)


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [QUESTION | {"content": "Where was it?"}]},
        {"messages": [QUESTION | {"id": "m9"}]},
        {"messages": [QUESTION, REPLY, {"id": "m3", "role": "user", "content": "And now?"}]},
        {"messages": [QUESTION | {"content": [{"type": "text", "text": "Where is it?"}]}]},
        {"messages": [QUESTION | {"role": "assistant"}]},
        {"messages": []},
        {"resume": [{"interruptId": "i1", "status": "cancelled"}]},
        {"forwardedProps": {"model": "large"}},
    ],
)
def test_another_request_is_told_apart(changes):
    assert not same(**changes)


def test_answers_are_told_apart_and_their_keys_are_not():
    entry = {"interruptId": "i1", "status": "resolved", "payload": {"a": 1, "b": 2}}
    digests = [
        digest(digest_input(BODY | {"resume": [answer]}))
        for answer in (entry, turned(entry), entry | {"payload": {"a": 1}})
    ]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "messages",
    [
        None,
        5,
        1.5,
        True,
        "user",
        {"role": "user"},
        [1, None, "user", ["user"]],
        [{}],
        [{"role": 1}],
    ],
    ids=repr,
)
def test_messages_of_an_odd_form_say_nothing(messages):
    assert digest_input({"messages": messages})["message"] is None


def test_odd_messages_do_not_hide_what_the_user_said():
    said = digest_input({"messages": [QUESTION, None, 5, {"role": ["user"]}]})["message"]
    assert said == {"id": "m1", "content": "Where is it?"}


def test_an_empty_body_has_a_digest():
    assert digest_input({}) == {"message": None, "resume": None, "forwardedProps": None}


def test_a_message_without_an_id_or_content_is_still_said():
    assert digest_input({"messages": [{"role": "user"}]})["message"] == {
        "id": None,
        "content": None,
    }
