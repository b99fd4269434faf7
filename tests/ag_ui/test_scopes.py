from __future__ import annotations

import enum
from uuid import UUID

import pytest
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.scopes import MOST_CHARS, identifier, join_scope, scope_key

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
characters = st.characters(exclude_categories=("Cs",), exclude_characters="\x00")
keys = st.text(characters | st.sampled_from("\\:"), min_size=1, max_size=20).filter(str.strip)


class Tenant(enum.StrEnum):
    ACME = "acme"


class Kind(int, enum.Enum):
    STAFF = 7


class Named(str, enum.Enum):  # noqa: UP042 — one whose str() is not its value
    ACME = "acme"


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        (1, "1"),
        ("1", "1"),
        (0, "0"),
        (-5, "-5"),
        (10**254, "1" + "0" * 254),
        ("team:1", "team:1"),
        (" a ", " a "),
        ("x" * MOST_CHARS, "x" * MOST_CHARS),
        ("😀" * MOST_CHARS, "😀" * MOST_CHARS),
        (
            UUID("0D6E5C1A-9B5B-4A57-8B8E-2F0A4C1D9E11"),
            "0d6e5c1a-9b5b-4a57-8b8e-2f0a4c1d9e11",
        ),
        (Tenant.ACME, "acme"),
        (Named.ACME, "acme"),
        (Kind.STAFF, "7"),
        (mark_safe("acme"), "acme"),
    ],
)
def test_a_scope_is_known_by_its_text(scope, key):
    assert scope_key(scope) == key
    assert type(scope_key(scope)) is str


@pytest.mark.parametrize(
    "scope",
    [
        True,
        False,
        1.0,
        None,
        "",
        " ",
        "\t\r\n\u3000",
        b"1",
        bytearray(b"1"),
        object(),
        ["1"],
        ("team", 1),
        str,
        SimpleLazyObject(lambda: "1"),
    ],
    ids=type,
)
def test_what_names_no_tenant_is_refused(scope):
    with pytest.raises(ConfigurationError, match="scope"):
        scope_key(scope)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("x" * (MOST_CHARS + 1), "256 characters; 255"),
        ("a\0", "NUL"),
        ("\0", "NUL"),
        ("\ud800", "half of a character"),
        ("a\udc00b", "half of a character"),
        ("\ud83d\ude00", "half of a character"),
        ("", "blank"),
        (" \n", "blank"),
    ],
)
def test_text_that_no_key_can_hold_is_refused_by_name(value, complaint):
    with pytest.raises(ConfigurationError, match=f"^scope .*{complaint}"):
        scope_key(value)
    with pytest.raises(ConfigurationError, match=f"^run_id .*{complaint}"):
        identifier("run_id", value)


@pytest.mark.parametrize("number", [10**255, -(10**254), 10**5000], ids=type)
def test_a_number_of_too_many_digits_is_refused(number):
    with pytest.raises(ConfigurationError, match=r"^scope "):
        scope_key(number)


@pytest.mark.parametrize("value", [None, 1, True, b"r1", UUID(int=1), ["r1"]], ids=repr)
def test_an_id_is_text_and_nothing_else(value):
    with pytest.raises(ConfigurationError, match="run_id must be text, not"):
        identifier("run_id", value)


def test_an_error_does_not_repeat_a_value_of_any_length():
    with pytest.raises(ConfigurationError) as caught:
        identifier("run_id", "x" * 1_000_000)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    ("one", "other"),
    [("aB", "Ab"), ("a", "a "), ("a", " a"), ("é", "e\u0301"), ("ß", "ss"), ("1", "01")],
)
def test_ids_that_a_collation_would_merge_stay_apart(one, other):
    assert scope_key(one) != scope_key(other)
    assert [identifier("run_id", one), identifier("run_id", other)] == [one, other]


@unhurried
@given(st.text(characters, min_size=1, max_size=MOST_CHARS).filter(str.strip))
def test_an_id_is_taken_as_it_is(value):
    assert identifier("run_id", value) == scope_key(value) == value


@pytest.mark.parametrize(
    ("parts", "scope"),
    [
        (("team", 7), "team:7"),
        (("team", "7"), "team:7"),
        (("acme",), "acme"),
        (("a:b",), "a\\:b"),
        (("a", "b"), "a:b"),
        (("a\\", "b"), "a\\\\:b"),
        (("a\\:b",), "a\\\\\\:b"),
        (("t", UUID(int=1)), "t:00000000-0000-0000-0000-000000000001"),
    ],
)
def test_parts_are_joined_by_a_colon(parts, scope):
    assert join_scope(*parts) == scope


@pytest.mark.parametrize(
    "parts", [(), ("team", None), ("team", ""), ("team", True), ("x" * 200, "y" * 55)], ids=repr
)
def test_parts_that_make_no_scope_are_refused(parts):
    with pytest.raises(ConfigurationError):
        join_scope(*parts)


@unhurried
@given(st.lists(keys, min_size=1, max_size=4), st.lists(keys, min_size=1, max_size=4))
def test_different_parts_never_join_to_one_scope(one, other):
    assert (join_scope(*one) == join_scope(*other)) == (one == other)


@unhurried
@given(
    st.lists(st.text("a\\:", min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(st.text("a\\:", min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_parts_full_of_separators_are_told_apart_too(one, other):
    assert (join_scope(*one) == join_scope(*other)) == (one == other)


@unhurried
@given(st.lists(keys, min_size=2, max_size=3), keys)
def test_a_joined_scope_is_one_part_of_the_next(parts, last):
    assert join_scope(join_scope(*parts), last) != join_scope(*parts, last)
