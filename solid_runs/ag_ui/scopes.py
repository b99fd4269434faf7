"""What makes up a key: the scope of a tenant, and ids that clients chose."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from solid_runs.ag_ui.exceptions import ConfigurationError

MOST_CHARS: Final = 255
"""What a thread id, a run id, an interrupt id or a scope may take."""


def scope_key(scope: Any) -> str:
    """A scope as its key: the text of a str, an int or a UUID, so that 1 and "1" are one scope.

    ConfigurationError for whatever cannot name a tenant. Kinds of tenants are told apart by the
    host; join_scope() does it.
    """
    kind = type(scope)  # and not what a lazy object says that it is
    if issubclass(kind, bool) or not issubclass(kind, str | int | UUID):
        raise ConfigurationError(
            f"A scope is a str, an int or a UUID, not {kind.__name__}: give the key of the "
            f"tenant or the user whose runs these are."
        )
    if issubclass(kind, int):
        scope = _digits(scope)
    return identifier("scope", str(scope) if issubclass(kind, UUID) else scope)


def identifier(name: str, value: Any) -> str:
    """An id as it was given, as a str and no subclass of it.

    ConfigurationError for one that no key can hold as it is.
    """
    if not issubclass(type(value), str):
        raise ConfigurationError(f"{name} must be text, not {type(value).__name__}.")
    plain = str.__str__(value)
    if not plain.strip():
        raise ConfigurationError(f"{name} is blank.")
    if len(plain) > MOST_CHARS:
        raise ConfigurationError(
            f"{name} has {len(plain):,} characters; {MOST_CHARS} are the most."
        )
    if "\0" in plain or not _is_unicode(plain):
        raise ConfigurationError(f"{name} holds a NUL or half of a character.")
    return plain


def join_scope(*parts: Any) -> str:
    """One scope of several parts, told apart whatever is in them: ``join_scope("team", 7)``."""
    keys = (scope_key(part).replace("\\", "\\\\").replace(":", "\\:") for part in parts)
    return scope_key(":".join(keys))


def _digits(number: int) -> str:
    try:
        return int.__repr__(number)  # whatever an enumeration makes of str()
    except ValueError as error:  # the interpreter limits decimal digits
        raise ConfigurationError(f"scope is a number of {number.bit_length():,} bits.") from error


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
