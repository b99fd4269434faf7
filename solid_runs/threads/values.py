"""What may stand in a field of a record: each check gives the value to keep, or InvalidRecord."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from solid_runs import identifiers
from solid_runs.exceptions import InvalidIdentifier
from solid_runs.storable import DEEPEST, json_value, stored_json, text
from solid_runs.threads.exceptions import InvalidRecord

Check: TypeAlias = Callable[[str, Any], Any]

LARGEST: Final = 2**53 - 1
"""Of the whole numbers that JavaScript tells apart."""
LARGEST_EPOCH: Final = 2**52
"""Beyond it there is room for as many claims."""
MOST_KEY_CHARS: Final = 2_000
MOST_MESSAGE_CHARS: Final = 16_000
MOST_DOCUMENT_BYTES: Final = 64_000


class Unset:
    """The type of UNSET."""

    def __repr__(self) -> str:
        return "UNSET"

    def __deepcopy__(self, memo: Any) -> Unset:
        return self


UNSET: Final = Unset()
"""Not given, where None is a value."""


def identifier(field: str, value: Any) -> str:
    try:
        return identifiers.identifier(field, value)
    except InvalidIdentifier as error:
        raise InvalidRecord(field, str(error)) from error


def label(field: str, value: Any) -> str:
    return _text(field, value, identifiers.MOST_CHARS)


def key(field: str, value: Any) -> str:
    return _text(field, value, MOST_KEY_CHARS)


def _text(field: str, value: Any, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidRecord(field, f"This must be text, not {type(value).__name__}.")
    plain = str.__str__(value)
    if len(plain) > most:
        raise InvalidRecord(field, f"This has {len(plain):,} characters; {most:,} are the most.")
    if not identifiers.is_storable(plain):
        raise InvalidRecord(field, "This holds a NUL or half of a character.")
    return plain


def one_of(words: type[StrEnum]) -> Check:
    def check(field: str, value: Any) -> StrEnum:
        if not isinstance(value, str) or value not in tuple(words):
            raise InvalidRecord(field, f"Use one of {', '.join(words)}, not {shown(value)}.")
        return words(value)

    return check


def milliseconds(field: str, value: Any) -> int:
    return whole(field, value, -LARGEST, LARGEST, "a whole number of milliseconds since 1970")


def span(field: str, value: Any) -> int:
    return whole(field, value, 0, LARGEST, "a whole number of milliseconds")


def epoch(field: str, value: Any) -> int:
    return whole(field, value, 0, LARGEST_EPOCH, "a whole number of 0 or more")


def whole(field: str, value: Any, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRecord(field, f"This must be {what}, not {shown(value)}.")
    if not least <= value <= most:
        raise InvalidRecord(field, f"This must be {what}, from {least} to {most}.")
    return int(value)


def flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidRecord(field, f"This must be true or false, not {shown(value)}.")
    return value


def document(field: str, value: Any) -> dict[str, Any]:
    """An object of JSON, cleaned, and a copy."""
    if not isinstance(value, Mapping):
        raise InvalidRecord(field, f"This must be an object, not {shown(value)}.")
    return sized(field, value)  # type: ignore[no-any-return]


def sized(field: str, value: Any) -> Any:
    """Any JSON, cleaned, and a copy."""
    kept = json_value(value, max_depth=DEEPEST)
    size = len(stored_json(kept).encode())
    if size > MOST_DOCUMENT_BYTES:
        raise InvalidRecord(
            field, f"This takes {size:,} bytes as JSON; {MOST_DOCUMENT_BYTES:,} are the most."
        )
    return kept


def failure(field: str, value: Any) -> dict[str, str]:
    """``{"message", "code"?}``, the message cleaned and cut: no end is lost over what it says."""
    if not isinstance(value, Mapping):
        raise InvalidRecord(field, f"This must be an object with a message, not {shown(value)}.")
    for name in value:
        if name not in ("message", "code"):
            raise InvalidRecord(f"{field}.{name}", "There is no such field; use message and code.")
    message = value.get("message")
    if not isinstance(message, str):
        raise InvalidRecord(f"{field}.message", f"This must be text, not {shown(message)}.")
    kept = {"message": text(message, max_chars=MOST_MESSAGE_CHARS)}
    if value.get("code") is not None:
        kept["code"] = label(f"{field}.code", value["code"])
    return kept


def shown(value: Any) -> str:
    """A value for a message, at no great length."""
    try:
        told = repr(value)
    except ValueError:  # the interpreter limits decimal digits
        told = f"a {type(value).__name__}"
    return told if len(told) <= 60 else f"{told[:57]}..."
