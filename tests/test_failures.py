from __future__ import annotations

import sys
from contextlib import contextmanager, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solid_runs.failures import BACKTRACE_FRAMES, Failure, describe, exception_text

pytestmark = pytest.mark.once

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


@contextmanager
def recursion_limit(limit):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("not even my name")


class Silent(Exception):
    def __str__(self):
        return None  # type: ignore[return-value]


class Panic(Exception):
    def __str__(self):
        raise BaseException("a panic in an extension")


class Quitting(Exception):
    def __str__(self):
        raise SystemExit


class Odd(Exception):
    @property
    def __traceback__(self):
        raise RuntimeError

    @property
    def __notes__(self):
        raise RuntimeError

    @property
    def __class__(self):
        raise RuntimeError

    @property
    def args(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("it is broken"), "it is broken"),
        (RuntimeError("a\x00b"), "a\ufffdb"),
        (RuntimeError("ok \udc81 end"), "ok \ufffd end"),
        (IndexError(), "IndexError"),
        (RuntimeError(" \n"), "RuntimeError"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
        (KeyError(("a", 1)), "('a', 1)"),
        (Hostile(), "Hostile: <unprintable>"),
        (Silent(), "Silent: <unprintable>"),
        (Panic(), "Panic: <unprintable>"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ValueError, "ValueError"),
        ("plain string", "plain string"),
        ("nul \x00", "nul \ufffd"),
        (b"bytes \xc3\xa9\xff", "bytes é\ufffd"),
        ({"code": 5}, "{'code': 5}"),
        (0, "0"),
        (None, "No reason given"),
        ("", "No reason given"),
        (" \t\n", "No reason given"),
        (b"", "No reason given"),
    ],
)
def test_f01_f09_f10_every_reason_gives_a_message_and_unraised_ones_no_backtrace(error, message):
    assert describe(error) == Failure(message, None)


def test_f07_a_long_message_is_described_whole_without_a_copy():
    message = "x" * 20_000_000
    assert describe(RuntimeError(message)).message is message


def test_f11_an_exception_that_was_never_raised_has_no_backtrace():
    assert describe(ValueError("never raised")).backtrace is None
    assert describe("text").backtrace is None


def test_the_failing_frame_is_the_first_line():
    def inner():
        raise ValueError("here")

    def outer():
        inner()

    with pytest.raises(ValueError) as caught:
        outer()
    lines = describe(caught.value).backtrace.split("\n")
    first = inner.__code__.co_firstlineno
    assert lines[0] == f"{__file__}:{first + 1}:in inner"
    assert lines[1] == f"{__file__}:{first + 4}:in outer"
    assert lines[2].endswith(":in test_the_failing_frame_is_the_first_line")
    assert len(lines) == 3


def test_f08_of_a_deep_recursion_the_ten_innermost_frames_are_kept():
    def down(level):
        if level == 9_000:
            raise ValueError("the bottom")
        down(level + 1)

    with recursion_limit(10_000), pytest.raises(ValueError) as caught:
        down(0)
    lines = describe(caught.value).backtrace.split("\n")
    assert len(lines) == BACKTRACE_FRAMES
    first = down.__code__.co_firstlineno
    assert lines[0] == f"{__file__}:{first + 2}:in down"
    assert set(lines[1:]) == {f"{__file__}:{first + 3}:in down"}


def test_f08_a_recursion_error_is_described():
    def f():
        f()

    with recursion_limit(10_000), pytest.raises(RecursionError) as caught:
        f()
    failure = describe(caught.value)
    assert "maximum recursion depth exceeded" in failure.message
    assert len(failure.backtrace.split("\n")) == BACKTRACE_FRAMES


def test_describing_never_raises_however_little_stack_is_left():
    error = raised(ValueError("told"))
    answers = []

    def sink():
        with suppress(RecursionError):  # the frames above have more and more room
            sink()
        try:
            answers.append(describe(error))
        except RecursionError as none_left:
            # Only the call itself may have found no room, never anything inside it.
            assert none_left.__traceback__.tb_next is None  # noqa: PT017
            answers.append(None)

    with recursion_limit(300):
        sink()
    assert answers[-1].message == "told"
    assert {answer.message for answer in answers if answer} <= {"told", "<unprintable error>"} | {
        "ValueError: <unprintable>"
    }


def test_a_file_name_that_no_database_takes_stays_one_line():
    code = compile("1 / 0", "odd\n\x00name".replace("\x00", "\udc81"), "exec")
    with pytest.raises(ZeroDivisionError) as caught:
        exec(code)
    assert describe(caught.value).backtrace.split("\n")[0] == "odd \ufffdname:1:in <module>"


def test_f12_a_group_tells_what_is_in_it():
    group = ExceptionGroup("tg", [ValueError("a"), TypeError("b")])
    assert describe(group) == Failure("tg (2 sub-exceptions): ValueError: a; TypeError: b", None)


def test_f12_a_group_in_a_group_tells_what_is_in_it():
    inner = ExceptionGroup("inner", [KeyError("k"), Hostile(), IndexError()])
    message = describe(raised(BaseExceptionGroup("all", [inner, SystemExit(3)]))).message
    assert message == (
        "all (2 sub-exceptions): ExceptionGroup: inner (3 sub-exceptions); KeyError: 'k'; "
        "Hostile: <unprintable>; IndexError; SystemExit: 3"
    )


def test_a_group_has_its_own_backtrace_and_borrows_none():
    group = ExceptionGroup("tg", [raised(ValueError("a"))])
    assert describe(group).backtrace is None
    assert describe(raised(group)).backtrace.endswith(":in raised")


def test_a_group_of_thousands_is_bounded():
    message = describe(ExceptionGroup("many", [ValueError(str(n)) for n in range(5_000)])).message
    assert message.startswith("many (5000 sub-exceptions): ValueError: 0; ValueError: 1; ")
    assert message.endswith("; ValueError: 99; and more")


def test_groups_nested_deeply_or_shared_at_every_level_are_bounded():
    deep = ValueError("the bottom")
    for _ in range(50):
        deep = ExceptionGroup("level", [deep])
    assert describe(deep).message.endswith("; ValueError: the bottom")
    shared = ExceptionGroup("leaf", [ValueError("v")])
    for _ in range(200):
        shared = ExceptionGroup("twice", [shared, shared])
    assert describe(shared).message.endswith("; and more")


def test_notes_follow_the_message():
    error = ValueError("broken")
    error.add_note("while reading page 3")
    error.add_note("of \x00 invoice.pdf")
    assert describe(error).message == "broken\nwhile reading page 3\nof \ufffd invoice.pdf"


def test_notes_that_are_none_are_left_out():
    error = ValueError("broken")
    error.__notes__ = 5
    assert describe(error).message == "broken"
    error.__notes__ = [5, None]
    assert describe(error).message == "broken\n5\nNone"


def test_an_exception_that_lies_about_everything_is_described():
    failure = describe(raised(Odd("still told")))
    assert failure.message == "still told"
    assert failure.backtrace.endswith(":in raised")


def test_what_only_pretends_to_be_an_exception_is_text():
    class Pretender:
        __class__ = ValueError

    assert describe(Pretender()).message.startswith("<")
    assert describe(Pretender()).backtrace is None


def test_a_process_that_is_told_to_end_is_not_held_up():
    with pytest.raises(SystemExit):
        describe(Quitting())


def test_exception_text_names_the_type_once():
    assert exception_text(ValueError("a")) == "ValueError: a"
    assert exception_text(IndexError()) == "IndexError"
    assert exception_text(Hostile()) == "Hostile: <unprintable>"


@unhurried
@given(st.one_of(st.text(), st.binary(), st.integers(), st.none(), st.lists(st.text())))
def test_a_message_is_never_blank_and_always_storable(reason):
    for error in (reason, ValueError(reason), ExceptionGroup("g", [ValueError(reason)])):
        message = describe(error).message
        assert message.strip()
        assert "\x00" not in message
        message.encode()
