"""Hostile exceptions, and tracebacks of every shape."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.faults.tables import on_every_table, set_raw
from tests.models import FreshRun, PlatformRun

pytestmark = pytest.mark.django_db


def failed_with(model: Any, error: Any) -> Any:
    run = model.objects.create()
    assert run.fail(error) is True
    stored = model.objects.get(pk=run.pk)
    assert stored.status == "failed"
    assert stored.completed_at is not None
    return stored


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Hostile(Exception):
    """Nothing of it can be trusted."""

    __notes__ = 7  # type: ignore[assignment]

    def __str__(self) -> str:
        raise SyntaxError

    __repr__ = __str__

    @property
    def __traceback__(self) -> Any:
        raise RuntimeError

    @property
    def __class__(self) -> Any:
        raise RuntimeError


class NotEvenText(Exception):
    def __str__(self) -> Any:
        return 7


@on_every_table
def test_f09_an_exception_without_a_text_gives_its_name(model: Any) -> None:
    assert failed_with(model, Unprintable()).error_message == "Unprintable: <unprintable>"


@pytest.mark.parametrize("kind", [Hostile, NotEvenText, type("", (Unprintable,), {})])
def test_f09_no_exception_keeps_the_run_from_failing(kind: type[Exception]) -> None:
    assert failed_with(FreshRun, kind()).error_message.strip()


@on_every_table
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (IndexError(), "IndexError"),
        (IndexError("  \n"), "IndexError"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
        (KeyError(("a", 1)), "('a', 1)"),
        (AssertionError, "AssertionError"),
        ("plain string", "plain string"),
        (None, "No reason given"),
        ("", "No reason given"),
        (" \t", "No reason given"),
        (b"bytes", "bytes"),
        ({"code": 7}, "{'code': 7}"),
        (0, "0"),
    ],
    ids=repr,
)
def test_f10_the_stored_reason_is_never_blank(model: Any, error: Any, reason: str) -> None:
    assert failed_with(model, error).error_message == reason


@on_every_table
def test_f11_an_exception_that_was_never_raised_has_no_backtrace(model: Any) -> None:
    stored = failed_with(model, ValueError("never raised"))
    assert stored.error_message == "never raised"
    assert stored.error_backtrace is None
    assert stored.summary()["error"] == "never raised"


@pytest.mark.parametrize("backtrace", [None, "", "[]"])
def test_f11_a_failure_recorded_without_a_backtrace_is_summed_up(backtrace: str | None) -> None:
    run = PlatformRun.objects.failed().get()
    set_raw(run, "error_backtrace", backtrace)
    set_raw(run, "error_message", None)
    stored = PlatformRun.objects.failed().get()
    assert stored.error_backtrace == backtrace
    assert stored.summary()["status"] == "failed"
    assert stored.summary()["error"] is None
    assert str(stored)


@on_every_table
def test_f11_a_raised_exception_keeps_its_frames_the_failing_one_first(model: Any) -> None:
    def inner() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError) as caught:
        inner()
    stored = failed_with(model, caught.value)
    if stored.error_backtrace is None:
        assert not hasattr(model, "error_backtrace")
        return
    first, second = stored.error_backtrace.splitlines()
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+:in inner", first)
    assert second.endswith(":in test_f11_a_raised_exception_keeps_its_frames_the_failing_one_first")


@on_every_table
def test_f12_the_exceptions_of_a_group_are_named(model: Any) -> None:
    inner = ExceptionGroup("deeper", [KeyError("c")])
    stored = failed_with(model, ExceptionGroup("tg", [ValueError("a"), TypeError("b"), inner]))
    for part in ("tg", "ValueError: a", "TypeError: b", "deeper", "KeyError: 'c'"):
        assert part in stored.error_message
