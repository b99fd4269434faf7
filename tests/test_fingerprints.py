from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solid_runs.fingerprints import ADJECTIVES, NOUNS, codename, digest
from solid_runs.printable import text as storable_text

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
texts = st.text(st.characters(exclude_categories=()))
clean_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"))


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("abc", "ba7816bf"),
        ("Answer with the figure only.", "f39d80c1"),
        (" abc\n", hashlib.sha256(b" abc\n").hexdigest()[:8]),
        ("é😀", hashlib.sha256(b"\xc3\xa9\xf0\x9f\x98\x80").hexdigest()[:8]),
        (None, None),
        ("", None),
        (" \t\r\n\u3000", None),
    ],
)
def test_a_digest_is_the_start_of_sha256_over_the_unstripped_text(instructions, expected):
    assert digest(instructions) == expected


@unhurried
@given(clean_texts)
def test_the_digest_of_clean_text_is_that_of_its_utf8(instructions):
    expected = hashlib.sha256(instructions.encode("utf-8")).hexdigest()[:8]
    assert digest(instructions) == (expected if instructions.strip() else None)


@unhurried
@given(texts)
def test_any_text_has_the_same_digest_before_and_after_it_was_stored(instructions):
    assert digest(instructions) == digest(storable_text(instructions))


@unhurried
@given(st.integers(0, 0xFFFFFFFF))
def test_a_codename_is_chosen_by_remainder_and_quotient(number):
    name = f"{ADJECTIVES[number % 64]}-{NOUNS[number // 64 % 64]}"
    for written in (f"{number:08x}", f"{number:X}", f" {number:08x}\n"):
        assert codename(written) == name


@unhurried
@given(texts)
def test_any_text_has_a_codename_or_none(written):
    name = codename(written)
    assert (name is None) == (re.fullmatch("[0-9a-fA-F]+", written.strip()) is None)


@pytest.mark.parametrize(
    "written", [None, "", "  ", "xyz", "0x10", "-1", "1_0", "12 34", "１２", "deadbeeg"]
)
def test_what_is_no_hexadecimal_has_no_codename(written):
    assert codename(written) is None


def test_lists_of_the_host_replace_the_words_each_by_its_own_length():
    assert codename("7", ["a", "b", "c"], ["x", "y"]) == "b-x"  # 7 = 3 · 2 + 1, and 2 is even
    assert codename("0", ["only"], NOUNS) == "only-heron"
    assert codename("5", nouns=["x"]) == f"{ADJECTIVES[5]}-x"
    assert codename("0", [], []) == "calm-heron"


def test_the_words_are_64_each_plain_and_all_different():
    assert len(ADJECTIVES) == len(NOUNS) == 64
    assert len({*ADJECTIVES, *NOUNS}) == 128
    assert all(re.fullmatch("[a-z]{3,8}", word) for word in (*ADJECTIVES, *NOUNS))


def test_the_words_never_change():
    words = "\n".join([*ADJECTIVES, *NOUNS])
    assert hashlib.sha256(words.encode()).hexdigest() == (
        "352456d1ebaa7da723d012edc2918ef946c99ec866d42204e434c00ca1b55535"
    )


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("00000000", "calm-heron"),
        ("00000040", "calm-badger"),
        ("0000003f", "witty-heron"),
        ("f39d80c1", "amber-bison"),
        ("deadbeef", "patient-turtle"),
        ("ffffffff", "witty-zebra"),
    ],
)
def test_names_that_people_know_never_change(written, name):
    assert codename(written) == name
