"""What makes up a key: the scope of a tenant, and ids that clients chose."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from solid_runs.exceptions import InvalidIdentifier

MOST_CHARS: Final = 255
"""What an id or a scope may take."""


def scope_key(scope: Any) -> str:
    """A scope as its key: the text of a str, an int or a UUID, so that 1 and "1" are one scope.

    InvalidIdentifier for whatever cannot name a tenant. Kinds of tenants are told apart by the
    host; join_scope() does it.
    """
    kind = type(scope)  # and not what a lazy object says that it is
    if issubclass(kind, bool) or not issubclass(kind, str | int | UUID):
        raise InvalidIdentifier(
            "scope",
            f"A scope is a str, an int or a UUID, not {kind.__name__}: give the key of the "
            f"tenant or the user whose runs these are.",
        )
    if issubclass(kind, int):
        scope = _digits(scope)
    return identifier("scope", str(scope) if issubclass(kind, UUID) else scope)


def identifier(name: str, value: Any) -> str:
    """An id as it was given, as a str and no subclass of it.

    InvalidIdentifier for one that no key can hold as it is.
    """
    if not issubclass(type(value), str):
        raise InvalidIdentifier(name, f"{name} must be text, not {type(value).__name__}.")
    plain = str.__str__(value)
    if not plain.strip():
        raise InvalidIdentifier(name, f"{name} is blank.")
    if len(plain) > MOST_CHARS:
        raise InvalidIdentifier(
            name, f"{name} has {len(plain):,} characters; {MOST_CHARS} are the most."
        )
    if not is_storable(plain):
        raise InvalidIdentifier(name, f"{name} holds a NUL or half of a character.")
    return plain


def join_scope(*parts: Any) -> str:
    """One scope of several parts, told apart whatever is in them: ``join_scope("team", 7)``."""
    keys = (scope_key(part).replace("\\", "\\\\").replace(":", "\\:") for part in parts)
    return scope_key(":".join(keys))


def is_storable(value: str) -> bool:
    """Whether every database takes this text as it is."""
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _digits(number: int) -> str:
    try:
        return int.__repr__(number)  # whatever an enumeration makes of str()
    except ValueError as error:  # the interpreter limits decimal digits
        raise InvalidIdentifier(
            "scope", f"scope is a number of {number.bit_length():,} bits."
        ) from error
