from __future__ import annotations

import tracemalloc

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from solid_runs.printable import cut_bytes, text, type_name

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
UNPAIRED = "\udc81"
HIGH, LOW = "\ud83d", "\ude00"  # the two halves of 😀

# Any code unit at all, the ones that no database takes over-represented.
anything = st.text(
    st.one_of(
        st.characters(exclude_categories=()),
        st.sampled_from(["\x00", HIGH, LOW, UNPAIRED, "😀", "é", "x"]),
    )
)
limits = st.none() | st.integers(0, 60)


@unhurried
@given(anything, limits, limits, st.booleans())
@example("a" * 100, 60, 40, False)
@example(HIGH + LOW, None, 4, False)
@example((HIGH + LOW) * 40, 30, None, False)
@example("é" * 100, 50, 50, False)
def test_any_text_becomes_storable_within_its_limits(value, max_chars, max_bytes, bmp_only):
    limit = {"max_chars": max_chars, "max_bytes": max_bytes, "bmp_only": bmp_only}
    stored = text(value, **limit)
    size = len(stored.encode("utf-8"))
    assert type(stored) is str
    assert "\x00" not in stored
    assert max_chars is None or len(stored) <= max_chars
    assert max_bytes is None or size <= max_bytes
    assert not bmp_only or all(character <= "\uffff" for character in stored)
    assert text(stored, **limit) == stored


@unhurried
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00")))
def test_clean_text_comes_back_as_it_was(value):
    assert text(value, max_chars=len(value), max_bytes=len(value.encode())) == value


@unhurried
@given(anything, st.integers(-1, 60))
@example("aé", 2)
@example(HIGH + LOW, 3)
@example("ab" + HIGH + LOW, 6)
def test_cut_bytes_gives_the_longest_prefix_within_the_limit(value, limit):
    whole = text(value)
    kept = cut_bytes(value, limit)
    assert whole.startswith(kept)
    following = whole[len(kept) : len(kept) + 1]
    assert len(kept.encode()) <= max(0, limit)
    assert not following or len((kept + following).encode()) > limit


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("PDF\x00text", "PDF\ufffdtext"),
        (f"ok {UNPAIRED} end", "ok \ufffd end"),
        (LOW + HIGH, "\ufffd\ufffd"),
        (HIGH + "x", "\ufffdx"),
        ("x" + HIGH, "x\ufffd"),
        (HIGH + LOW, "😀"),
        ("\x00" + HIGH + LOW + UNPAIRED, "\ufffd😀\ufffd"),
        ("\ufeffmark", "\ufeffmark"),
    ],
)
def test_f01_f03_what_no_database_takes_becomes_the_replacement_character(given_text, stored):
    assert text(given_text) == stored


def test_a_utf8mb3_column_gets_replacements_not_a_cut():
    assert text("hi 😀 there", bmp_only=True) == "hi \ufffd there"
    assert text("hi " + HIGH + LOW, bmp_only=True) == "hi \ufffd"
    assert text("é€\uffff", bmp_only=True) == "é€\uffff"


def test_f07_a_cut_is_marked_and_the_marker_fits():
    cut = text("x" * 20_000_000, max_bytes=65_535)
    assert cut.endswith("x… [cut, 20000000 characters]")
    assert len(cut.encode()) == 65_535
    assert len(text("é" * 10_000, max_chars=255)) == 255
    assert len(text("é" * 10_000, max_chars=255, max_bytes=100).encode()) in (99, 100)


def test_a_limit_smaller_than_the_marker_gets_a_plain_cut():
    assert text("abcdefgh", max_chars=4) == "abcd"
    assert text("ééé", max_bytes=5) == "éé"
    assert text("abc", max_chars=0) == ""
    assert text("abc", max_bytes=-5) == ""


def test_text_exactly_at_its_limit_is_not_cut():
    assert text("é" * 10, max_chars=10, max_bytes=20) == "é" * 10
    assert text((HIGH + LOW) * 10, max_chars=10, max_bytes=40) == "😀" * 10


class Loud(str):
    def __str__(self):
        raise RuntimeError

    __len__ = __getitem__ = __contains__ = encode = isascii = replace = __str__


class Mute:
    def __str__(self):
        raise RuntimeError


class Panic:
    def __str__(self):
        raise BaseException("a panic in an extension")


class Interrupted:
    def __str__(self):
        raise KeyboardInterrupt


class Liar:
    @property
    def __class__(self):
        raise RuntimeError

    def __str__(self):
        return 5  # type: ignore[return-value]


def test_a_subclass_of_str_becomes_plain_whatever_its_methods_do():
    assert text(Loud("a\x00b")) == "a\ufffdb"
    assert type(text(Loud("a"))) is str


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (5, "5"),
        (None, "None"),
        (b"caf\xc3\xa9\xff\x00", "café\ufffd\ufffd"),
        (gettext_lazy("running"), "running"),
        (Mute(), "<unprintable Mute>"),
        (Panic(), "<unprintable Panic>"),
    ],
)
def test_what_is_no_string_gives_its_text_or_says_that_it_has_none(value, stored):
    assert text(value) == stored


def test_an_object_that_hides_its_class_is_named():
    assert text(Liar()) == "<unprintable Liar>"


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        text(Interrupted())


def test_a_type_whose_name_fails_is_called_object():
    class Nameless(type):
        @property
        def __name__(cls):
            raise RuntimeError

    assert type_name(Nameless("Whatever", (), {})()) == "object"


@pytest.mark.parametrize("value", ["x" * 4_000_000, "é" * 2_000_000])
def test_a_clean_text_is_returned_itself_however_long(value):
    assert text(value) is value
    assert text(value, max_chars=4_000_000, max_bytes=4_000_000) is value


def test_cutting_a_huge_text_looks_at_its_start_only():
    value = "\udc81" * 20_000_000
    tracemalloc.start()
    assert cut_bytes(value, 7) == "\ufffd\ufffd"
    assert text(value, max_bytes=60).endswith("[cut, 20000000 characters]")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
