"""An exception, or whatever was given as a reason, into a message and a backtrace."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import TracebackType
from typing import Any, Final, NamedTuple

from solid_runs.printable import INTERRUPTS, text, type_name

BACKTRACE_FRAMES: Final = 10
NO_REASON: Final = "No reason given"
MAX_INNER: Final = 100
"""Exceptions of a group that are named, and notes that are kept."""


class Failure(NamedTuple):
    message: str
    """Never blank, storable, of any length."""
    backtrace: str | None
    """At most ten lines ``path:line:in name``, the failing frame first; None if never raised."""


_NO_ROOM: Final = Failure("<unprintable error>", None)


def describe(error: Any) -> Failure:
    """Return the message and the backtrace of an exception, or the text of anything else.

    It never raises, whatever the error's own methods do. A blank message becomes the name of the
    exception's type, a blank text or None ``"No reason given"``. An exception class counts as one
    that was never raised.
    """
    try:
        kind = type(error)
        if issubclass(kind, BaseException):
            return Failure(exception_text(error, named=False), backtrace(error))
        if issubclass(kind, type) and issubclass(error, BaseException):
            return Failure(text(error.__name__), None)
        said = "" if error is None else text(error)
        return Failure(said if said.strip() else NO_REASON, None)
    except INTERRUPTS:
        raise
    except BaseException:  # next to no stack is left: not even a name can be asked for
        return _NO_ROOM


def exception_text(error: BaseException, *, named: bool = True) -> str:
    """Return "Type: message", or only the message unless ``named``; never blank.

    A group also gives its exceptions, each with its type, and those of the groups inside it. Notes
    follow on lines of their own.
    """
    lines = [_headline(error, named)]
    try:
        inner = [_headline(each, named=True) for each in islice(_inside(error), MAX_INNER + 1)]
        if len(inner) > MAX_INNER:
            inner[MAX_INNER:] = ["and more"]
        if inner:
            lines[0] += f": {'; '.join(inner)}"
        lines += map(text, getattr(error, "__notes__", ())[:MAX_INNER])
    except INTERRUPTS:
        raise
    except BaseException:  # noqa: S110 - what the exception does not give is left out
        pass
    return "\n".join(lines)


def backtrace(error: BaseException) -> str | None:
    """Return the innermost frames of a raised exception, the failing one first."""
    # Asked of the slot: a subclass may have put anything over the attribute.
    link: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    frames: deque[TracebackType] = deque(maxlen=BACKTRACE_FRAMES)
    while link is not None:
        frames.append(link)
        link = link.tb_next
    return "\n".join(_line(frame) for frame in reversed(frames)) or None


def _line(frame: TracebackType) -> str:
    code = frame.tb_frame.f_code
    return " ".join(text(f"{code.co_filename}:{frame.tb_lineno}:in {code.co_name}").splitlines())


def _headline(error: BaseException, named: bool) -> str:
    name = type_name(error)
    try:
        said = text(str(error))
    except INTERRUPTS:
        raise
    except BaseException:
        return f"{name}: <unprintable>"
    if not said.strip():
        return name
    return f"{name}: {said}" if named else said


def _inside(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, outer before inner; it may hold a group many times over."""
    waiting = deque([error])
    while waiting:
        each = waiting.popleft()
        if each is not error:
            yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extendleft(reversed(each.exceptions))
