"""Text out of anything: what every database takes, within a limit, whatever the object does.

Nothing here raises over a value; only KeyboardInterrupt and SystemExit, which are not about the
value, pass through.
"""

from __future__ import annotations

import re
from typing import Any, Final

REPLACEMENT: Final = "\ufffd"
INTERRUPTS: Final = (KeyboardInterrupt, SystemExit)

_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")


def text(
    value: Any,
    *,
    max_chars: int | None = None,
    max_bytes: int | None = None,
    bmp_only: bool = False,
) -> str:
    """Return ``value`` as text that every database takes.

    NUL and lone surrogates become U+FFFD; a surrogate pair held as two code units becomes its
    character. ``bmp_only`` also replaces what a utf8mb3 column cannot hold. Text over
    ``max_chars``, or over ``max_bytes`` of UTF-8, is cut between characters and ends with
    ``… [cut, N characters]``, N being the length that was given; the whole fits the limit. A limit
    too small for the marker gets a plain cut. What is no string gives its ``str()``; bytes are
    decoded.
    """
    if (
        type(value) is str
        and value.isascii()
        and "\0" not in value
        and (max_chars is None or len(value) <= max_chars)
        and (max_bytes is None or len(value) <= max_bytes)
    ):
        return value
    plain = plain_text(value)
    head = plain[: reach(max_chars, max_bytes)]
    cleaned = clean(head, bmp_only=bmp_only)
    kept = cut(cleaned, max_chars, max_bytes)
    if len(kept) == len(cleaned) and len(head) == len(plain):
        return cleaned
    marker = cut_marker(len(plain))
    chars = None if max_chars is None else max_chars - len(marker)
    size = None if max_bytes is None else max_bytes - len(marker.encode())
    if min(chars or 0, size or 0) < 0:
        return kept
    return cut(cleaned, chars, size) + marker


def cut_bytes(value: Any, limit: int) -> str:
    """Return the first ``limit`` bytes of UTF-8 of text(value), no character split, no marker."""
    return cut(clean(plain_text(value)[: reach(None, limit)]), None, limit)


def type_name(value: Any) -> str:
    try:
        return text(type(value).__name__)
    except INTERRUPTS:
        raise
    except BaseException:  # a metaclass may answer with anything
        return "object"


def plain_text(value: Any) -> str:
    """Return what ``value`` says, not yet cleaned, as a str and no subclass of it."""
    try:
        if issubclass(type(value), str):
            return str.__str__(value)  # whatever a subclass makes of its methods
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode("utf-8", "replace")
        return str.__str__(str(value))
    except INTERRUPTS:
        raise
    except BaseException:  # a panic in an extension is no Exception
        return f"<unprintable {type_name(value)}>"


def clean(value: str, *, bmp_only: bool = False) -> str:
    if "\x00" in value:
        value = value.replace("\x00", REPLACEMENT)
    if value.isascii():
        return value
    try:
        value.encode()  # several times faster than a search
    except UnicodeEncodeError:
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _ASTRAL.sub(REPLACEMENT, value) if bmp_only else value


def cut(value: str, chars: int | None, size: int | None) -> str:
    """Return clean text cut to so many characters and so many bytes."""
    if chars is not None:
        value = value[: max(0, chars)]
    if size is not None:
        value = value[: max(0, size)]
        if not value.isascii():
            value = value.encode()[: max(0, size)].decode("utf-8", "ignore")
    return value


def reach(chars: int | None, size: int | None) -> int | None:
    """How much of a text decides what is kept of it; two code units may join into a character."""
    reaches = [] if chars is None else [2 * max(0, chars)]
    if size is not None:
        reaches.append(max(0, size))
    return min(reaches, default=None)


def cut_marker(length: int) -> str:
    return f"… [cut, {length} characters]"
