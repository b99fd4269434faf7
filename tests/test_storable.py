from __future__ import annotations

import enum
import itertools
import json
import sys
import tracemalloc
from collections import ChainMap, Counter, OrderedDict, UserDict, UserString, defaultdict, deque
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_network
from numbers import Integral, Real
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.utils.datastructures import MultiValueDict
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from solid_runs.storable import (
    CYCLE,
    DEEPEST,
    MAX_DEPTH,
    MAX_MEMBERS,
    TOO_DEEP,
    TOO_MANY,
    compact_json,
    cut_bytes,
    detail_text,
    json_value,
    text,
)

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Colour(enum.Enum):
    RED = "r\x00"
    PAIR = ("a", 2)


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    RUN = "run"


class Mute:
    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


class Hostile(Mute):
    """Fails at whatever it is asked for."""

    def __getattr__(self, name):
        raise RuntimeError

    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


class Faceless(Hostile):
    """Not for hypothesis, which asks for the class when it reports a failure."""

    @property
    def __class__(self):
        raise RuntimeError


@dataclass
class Point:
    x: int
    y: list = field(default_factory=list)


class Schema:
    def model_dump(self):
        return {"a": 1, "when": date(2026, 1, 15)}


def nested(levels, inner=None):
    value = inner
    for _ in range(levels):
        value = [value]
    return value


def depth_of(value):
    """The levels of a JSON value, counted without recursion."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        each, level = waiting.pop()
        if isinstance(each, dict | list):
            deepest = max(deepest, level)
            below = each.values() if isinstance(each, dict) else each
            waiting.extend((member, level + 1) for member in below)
    return deepest


def assert_json(value):
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    compact_json(value).encode()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        assert type(each) in (dict, list, str, int, float, bool, type(None))
        if type(each) is dict:
            waiting.extend([*each, *each.values()])
            assert all(type(key) is str for key in each)
        elif type(each) is list:
            waiting.extend(each)
        elif type(each) is str:
            assert "\x00" not in each
            each.encode()


texts = st.text(st.characters(exclude_categories=()))
clean_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"))
clean_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts,
    lambda inner: st.lists(inner) | st.dictionaries(clean_texts, inner),
    max_leaves=25,
)  # fmt: skip
hashables = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.binary(),
    st.decimals().filter(lambda number: not number.is_snan()),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.timedeltas(),
    st.complex_numbers(),
    st.sampled_from([*Colour, *Level, *Name, Colour, int, object(), ip_network("10.0.0.0/8")]),
)


def anything(*more):
    return st.recursive(
        hashables | st.builds(Hostile) | st.builds(Mute) | st.builds(Schema),
        lambda inner: st.one_of(
            st.lists(inner),
            st.tuples(inner, inner),
            st.dictionaries(hashables, inner),
            st.builds(deque, st.lists(inner)),
            st.builds(Point, inner, st.lists(inner)),
            st.builds(iter, st.lists(inner)),
            st.builds(ValueError, inner),
            *more,
        ),
        max_leaves=25,
    )


weird = anything(st.sets(hashables), st.frozensets(hashables))


@unhurried
@given(weird)
def test_whatever_is_given_becomes_json(value):
    result = json_value(value)
    assert_json(result)
    assert depth_of(result) <= MAX_DEPTH
    assert json_value(result) == result


@unhurried
@given(clean_json)
def test_clean_json_comes_back_equal_with_its_types(value):
    before = deepcopy(value)
    result = json_value(value, max_depth=DEEPEST)
    assert repr(result) == repr(value) == repr(before)


@unhurried
@given(clean_json, st.integers(0, 4))
@example(nested(30), 2)
def test_no_result_is_deeper_than_asked_and_the_text_in_it_loses_nothing(value, max_depth):
    result = json_value(value, max_depth=max_depth)
    assert depth_of(result) <= max_depth

    def same(whole, kept, level):
        if isinstance(whole, dict | list) and level > max_depth:
            return isinstance(kept, str) and json.loads(kept) == whole
        if isinstance(whole, dict):
            return whole.keys() == kept.keys() and all(
                same(whole[key], kept[key], level + 1) for key in whole
            )
        if isinstance(whole, list):
            pairs = zip(whole, kept, strict=True)
            return all(same(*pair, level + 1) for pair in pairs)
        return whole == kept

    assert same(value, result, 1)


@unhurried
@given(weird, st.integers(0, 200))
@example('"' * 300, 100)
@example("\x01" * 300, 101)
@example(["😀\n" * 100], 103)
def test_a_result_within_max_bytes_stays_and_a_larger_one_is_cut_text_that_fits(value, max_bytes):
    whole = json_value(value)
    result = json_value(value, max_bytes=max_bytes)
    size = len(compact_json(whole).encode())
    if size <= max_bytes:
        assert result == whole
    else:
        assert isinstance(result, str)
        assert len(compact_json(result).encode()) <= max(2, max_bytes)
        assert max_bytes < 60 or "… [cut, " in result


@unhurried
@given(anything(), st.integers(0, 60) | st.just(1200))
@example({"a" * 5: 1, "a" * 6: 2, "b": [[]]}, 3)
@example([[], [[1, 2], 3], 4], 9)
@example(["\ud83d\ude00" * 3, f"x{chr(0xD83D)}{chr(0xDE00)}"], 5)
def test_a_detail_is_the_start_of_the_compact_json_of_the_whole(value, limit):
    whole = json.dumps(
        json_value(value, max_depth=DEEPEST), ensure_ascii=False, separators=(",", ":")
    )
    detail = detail_text(value, limit)
    assert len(detail.encode()) <= limit
    assert detail == cut_bytes(value if isinstance(value, str) else whole, limit)


@unhurried
@given(texts)
def test_a_detail_that_is_text_is_that_text_up_to_1200_bytes(value):
    assert detail_text(value) == cut_bytes(text(value), 1200)


# The faults that others met


def test_f02_nul_deep_in_a_value_is_replaced_in_values_and_keys():
    value = {"out": ["x", {"t\x00": "a\x00b"}], "s": "\udc81"}
    assert json_value(value) == {"out": ["x", {"t\ufffd": "a\ufffdb"}], "s": "\ufffd"}


def test_f04_nan_and_the_infinities_become_null():
    value = {"cost": float("nan"), "p": [float("inf"), float("-inf"), -0.0, 1e308]}
    assert compact_json(value) == '{"cost":null,"p":[null,null,-0.0,1e+308]}'


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2026, 1, 15, 9, 30, tzinfo=UTC), "2026-01-15T09:30:00+00:00"),
        (
            datetime(2026, 1, 15, 9, tzinfo=timezone(timedelta(hours=9))),
            "2026-01-15T09:00:00+09:00",
        ),
        (datetime(2026, 1, 15, 9, 30, 0, 5), "2026-01-15T09:30:00.000005"),
        (date(2026, 1, 15), "2026-01-15"),
        (clock(9, 30), "09:30:00"),
        (timedelta(seconds=3), "P0DT00H00M03S"),
        (timedelta.min, "-P999999999DT00H00M00S"),
        (Decimal("1.10"), "1.10"),
        (Decimal("NaN"), "NaN"),
        (Fraction(1, 3), "1/3"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (PurePosixPath("/srv/a\udcff"), "/srv/a\ufffd"),
        (gettext_lazy("running"), "running"),
        (b"caf\xc3\xa9\xff", "café\ufffd"),
        (bytearray(b"ab"), "ab"),
        (memoryview(b"ab"), "ab"),
        (UserString("user"), "user"),
        (ValueError("no"), "ValueError: no"),
        (
            ExceptionGroup("g", [KeyError(1)]),
            "ExceptionGroup: g (1 sub-exception): KeyError: 1",
        ),
        (Colour.RED, "r\ufffd"),
        (Colour.PAIR, ["a", 2]),
        (Level.HIGH, 3),
        (Name.RUN, "run"),
        (Colour, "<enum 'Colour'>"),
        (int, "<class 'int'>"),
        (1 + 2j, "(1+2j)"),
        (SimpleNamespace(a=1), "namespace(a=1)"),
        (ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (Mute(), "<unprintable Mute>"),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"b", 2.5, None, 10, True}, [2.5, 10, "b", None, True]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.items(), [["a", 1]]),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (ChainMap({"a": 1}, {"b": 2}), {"b": 2, "a": 1}),
        (UserDict(a=1), {"a": 1}),
        (MultiValueDict({"a": ["1", "2"]}), {"a": ["1", "2"]}),
        (Point(1, [Point(2)]), {"x": 1, "y": [{"x": 2, "y": []}]}),
        (Point, "<class 'tests.test_storable.Point'>"),
        (Schema(), {"a": 1, "when": "2026-01-15"}),
        (SimpleLazyObject(lambda: {"a": 1}), {"a": 1}),
        (SimpleLazyObject(lambda: "lazy"), "lazy"),
    ],
)
def test_f05_a_value_that_json_lacks_keeps_what_it_says(value, stored):
    result = json_value(value)
    assert_json(result)
    assert repr(result) == repr(stored)


def test_f06_a_reference_back_becomes_a_marker_and_the_rest_is_kept():
    value = {"n": 1}
    value["self"] = value
    value["list"] = [value, [value]]
    assert json_value(value) == {"n": 1, "self": CYCLE, "list": [CYCLE, [CYCLE]]}
    assert value["self"] is value
    assert detail_text(value) == '{"n":1,"self":"<cycle>","list":["<cycle>",["<cycle>"]]}'


def test_a_cycle_through_objects_is_seen():
    point = Point(1)
    point.y.append(point)
    assert json_value(point) == {"x": 1, "y": [CYCLE]}


def test_the_same_object_twice_is_kept_twice():
    shared = {"a": [1]}
    assert json_value([shared, shared, shared["a"]]) == [{"a": [1]}, {"a": [1]}, [1]]


def test_a_hundred_levels_lose_nothing():
    value = {"a": nested(99, "the bottom")}
    result = json_value(value)
    assert depth_of(result) == MAX_DEPTH
    kept = result["a"]
    while isinstance(kept, list):
        (kept,) = kept
    assert json.loads(kept) == nested(80, "the bottom")
    assert "the bottom" in detail_text(value)


def test_exactly_twenty_levels_stay_and_the_twenty_first_is_text():
    assert json_value(nested(20, 1)) == nested(20, 1)
    assert json_value(nested(21, 1)) == nested(20, "[1]")
    assert json_value(nested(20, {})) == nested(20, "{}")


def test_absurd_nesting_ends_in_a_marker():
    value = nested(100_000)
    assert depth_of(json_value(value)) == MAX_DEPTH
    assert TOO_DEEP in compact_json(value)
    assert detail_text(value) == "[" * 200 + f'"{TOO_DEEP}"' + "]" * 200
    whole = json_value(nested(DEEPEST, 1), max_depth=DEEPEST)
    assert whole == nested(DEEPEST, 1)


def test_little_stack_gives_markers_not_errors():
    value = {"a": nested(150, "the bottom")}
    failures, results = [], []

    def sink():
        with suppress(RecursionError):  # the frames above have more and more room
            sink()
        try:
            results.append((json_value(value), compact_json(value), detail_text(value)))
        except RecursionError:
            failures.append(len(results))

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(600)
    try:
        sink()
    finally:
        sys.setrecursionlimit(before)
    # With no room for the calls themselves; never again once there was some.
    assert failures == [0] * len(failures)
    assert len(failures) < 10
    assert TOO_DEEP in str(results[0])
    assert all("the bottom" in str(result) for result in results[-1])


# What is large, never ends or must not be touched


@pytest.fixture
def few_members(monkeypatch):
    monkeypatch.setattr("solid_runs.storable.MAX_MEMBERS", 1_000)
    return 1_000


def numbers():
    yield 1


@pytest.mark.parametrize(
    "value",
    [numbers(), iter([1, 2]), map(str, [1]), itertools.count(), zip([1])],
    ids=lambda value: type(value).__name__,
)
def test_an_iterator_is_printed_and_not_consumed(value):
    assert json_value([value]) == [str(value)]
    assert next(value) is not None


def test_what_can_be_iterated_anew_is_a_list_unless_it_has_a_text_of_its_own():
    class Bag:
        def __iter__(self):
            return iter([1, 2])

    class Network(Bag):
        def __str__(self):
            return "10.0.0.0/31"

    assert json_value(Bag()) == [1, 2]
    assert json_value(Network()) == "10.0.0.0/31"


def test_what_never_ends_ends_with_a_marker(few_members):
    class Endless:
        def __iter__(self):
            return itertools.repeat(0)

    assert json_value(Endless()) == [0] * few_members + [TOO_MANY]


def test_a_million_members_are_kept():
    assert MAX_MEMBERS == 1_000_000
    value = [None] * MAX_MEMBERS
    assert json_value(value) == value


def test_members_past_the_most_are_told_of(few_members):
    value = {str(n): n for n in range(few_members)}
    assert json_value(value) == value
    assert json_value(value | {"more": 1, "and more": 2}) == value | {TOO_MANY: None}
    assert json_value([[0] * few_members, 1]) == [[0] * (few_members - 1) + [TOO_MANY], TOO_MANY]


def test_a_value_that_doubles_on_every_level_ends(few_members):
    value = []
    for _ in range(150):
        value = [value, value]
    assert TOO_MANY in compact_json(value)
    assert detail_text(value).startswith("[[[")


def test_an_object_that_makes_itself_anew_on_every_level_ends():
    class Russian:
        def __iter__(self):
            return iter([Russian()])

    assert TOO_DEEP in compact_json(Russian())


def test_the_detail_of_something_huge_is_cheap():
    huge = {"a": "x" * 50_000_000, **{str(n): n for n in range(200_000)}}
    bad, numbers = "\x00" * 50_000_000, list(range(200_000))
    tracemalloc.start()
    assert detail_text(bad) == "\ufffd" * 400
    assert detail_text(huge) == '{"a":"' + "x" * 1194
    assert detail_text(numbers).startswith("[0,1,2")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_detail_never_ends_inside_a_character():
    assert detail_text("é" * 700) == "é" * 600
    assert detail_text("x" + "é" * 700) == "x" + "é" * 599
    assert detail_text(["😀" * 700], 7) == '["😀'


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("text", "text"),
        ("", ""),
        (Name.RUN, "run"),
        (gettext_lazy("running"), "running"),
        (5, "5"),
        (None, "null"),
        (False, "false"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        (date(2026, 1, 15), '"2026-01-15"'),
    ],
)
def test_a_detail_is_text_or_else_compact_json(value, detail):
    assert detail_text(value) == detail


# Hostile and odd values


@pytest.mark.parametrize("make", [Faceless, Hostile, Mute])
def test_an_object_that_fails_at_everything_is_named_and_its_neighbours_are_kept(make):
    name = f"<unprintable {make.__name__}>"
    assert json_value([1, make(), {"k": make()}]) == [1, name, {"k": name}]
    assert json_value({make(): 1, make(): 2}) == {name: 1, f"{name} (2)": 2}
    assert detail_text(make()) == f'"{name}"'


def test_a_container_that_fails_halfway_is_printed():
    class Breaking(list):
        def __iter__(self):
            yield 1
            raise RuntimeError

    class Broken(dict):
        def items(self):
            raise RuntimeError

    assert json_value([Breaking([1, 2])]) == ["[1, 2]"]
    assert json_value([Broken(a=1)]) == ["{'a': 1}"]


def test_a_model_that_cannot_be_dumped_is_printed():
    class Bad:
        def model_dump(self):
            raise ValueError

        def __str__(self):
            return "bad"

    class Worse(Bad):
        def model_dump(self):
            return object()

    assert json_value([Bad(), Worse(), Schema]) == ["bad", "bad", str(Schema)]


def test_mocks_are_printed():
    assert json_value(Mock(name="client")).startswith("<Mock name='client'")
    assert json_value(Mock(spec=datetime)).startswith("<Mock ")


def test_an_interrupt_is_not_swallowed():
    class Interrupted:
        def __str__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        json_value({"a": Interrupted()})


def test_subclasses_of_plain_types_become_plain():
    class Text(str):
        def __str__(self):
            raise RuntimeError

    class Whole(int):
        def __int__(self):
            raise RuntimeError

        __index__ = __str__ = __int__

    class Broken(float):
        def __float__(self):
            raise RuntimeError

        __str__ = __float__

    result = json_value([Text("a"), Whole(5), Broken(2.5), Broken("nan")])
    assert_json(result)
    assert result == ["a", 5, 2.5, None]


def test_registered_numbers_become_plain():
    class Int64:
        def __int__(self):
            return 7

    class Float32:
        def __float__(self):
            return 0.5

    Integral.register(Int64)
    Real.register(Float32)
    assert json_value([Int64(), Float32(), {Int64(): Float32()}]) == [7, 0.5, {"7": 0.5}]


def test_integers_beyond_a_double_become_their_digits():
    largest = int(sys.float_info.max)
    assert json_value([largest, -largest, 10**300]) == [largest, -largest, 10**300]
    assert json_value([largest + 1, -(10**400)]) == [str(largest + 1), f"-1{'0' * 400}"]
    huge = 16**100_000
    assert json_value({huge: huge}) == {hex(huge): hex(huge)}


def test_keys_become_text_as_json_has_them():
    value = {True: 1, None: 2, 7: 3, 1.5: 4, float("nan"): 5, (1, "a"): 6, date(2026, 1, 15): 7}
    assert list(json_value(value)) == [
        "true",
        "null",
        "7",
        "1.5",
        "NaN",
        "(1, 'a')",
        "2026-01-15",
    ]
    assert json_value({Colour.RED: 1, Level.HIGH: 2, Name.RUN: 3, b"k": 4}) == {
        "r\ufffd": 1,
        "3": 2,
        "run": 3,
        "k": 4,
    }


def test_keys_that_become_equal_lose_nothing():
    value = {"a\x00": 1, "a\ufffd": 2, f"a{chr(0xD800)}": 3, "a\ufffd (2)": 4, 1: 5, "1": 6}
    result = json_value(value)
    assert sorted(result.values()) == [1, 2, 3, 4, 5, 6]
    assert result["1 (2)"] == 6
    same = {Mute(): n for n in range(20_000)}
    assert len(json_value(same)) == 20_000


def test_the_order_of_a_set_does_not_depend_on_its_making():
    words = [f"word {n}" for n in range(100)]
    backwards = words[::-1]
    assert json_value(set(words)) == json_value(set(backwards)) == sorted(words)
    assert json_value({frozenset({1, 2}), frozenset({1})}) == [[1, 2], [1]]


def test_the_value_given_is_left_as_it_was():
    value = {"s": {1, 2}, 1: ["\x00", (float("nan"),)], "d": defaultdict(list, a=[nested(30)])}
    before = repr(value)
    json_value(value)
    detail_text(value)
    assert repr(value) == before
    result = json_value(inner := {"a": []})
    assert result["a"] is not inner["a"]


def test_max_bytes_counts_what_is_stored():
    assert json_value(["é"], max_bytes=6) == ["é"]
    assert isinstance(json_value(["é"], max_bytes=5), str)
    cut = json_value({"k": '"' * 1000}, max_bytes=500)
    assert cut.startswith('{"k":"')
    assert cut.endswith("… [cut, 2008 characters]")
    assert 495 <= len(compact_json(cut).encode()) <= 500
    assert json_value("x" * 1000, max_bytes=100).startswith("xxx")


def test_compact_json_has_no_spaces_and_escapes_on_demand():
    value = {"a": [1, None], "b": "é😀"}
    assert compact_json(value) == '{"a":[1,null],"b":"é😀"}'
    assert compact_json(value, ascii=True) == '{"a":[1,null],"b":"\\u00e9\\ud83d\\ude00"}'
