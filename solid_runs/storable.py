"""Any value as JSON that every database stores, so that nothing is lost over what it says.

What comes out holds no NUL and no lone surrogate, is nested no deeper than MariaDB's functions
follow, and leaves the caller's objects as they were. As in ``printable``, nothing raises.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections import UserString
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from django.utils.datastructures import MultiValueDict
from django.utils.duration import duration_iso_string
from django.utils.functional import Promise

from solid_runs.failures import exception_text
from solid_runs.printable import INTERRUPTS, clean, cut, cut_bytes, cut_marker, plain_text, text

__all__ = ["compact_json", "cut_bytes", "detail_text", "json_value", "text"]

CYCLE: Final = "<cycle>"
TOO_DEEP: Final = "<nested too deeply>"
TOO_MANY: Final = "<too many members>"

MAX_DEPTH: Final = 20
"""Levels of a stored document; ``[]`` is one. MariaDB's JSON functions stop at 32."""
DEEPEST: Final = 200
"""Levels that are read at all: a container below them becomes ``"<nested too deeply>"``."""
MAX_MEMBERS: Final = 1_000_000
"""Members that are read in all, the rest being one ``"<too many members>"``: some values never end,
and one that holds the same list twice on every level doubles on every level."""

_LARGEST: Final = int(sys.float_info.max)
_HAS_MEMBERS: Final = object()
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def json_value(value: Any, *, max_depth: int = MAX_DEPTH, max_bytes: int | None = None) -> Any:
    """Return a copy of ``value`` made of dict (text keys), list, str, int, float, bool and None.

    NaN and the infinities become None, an integer beyond the range of a double its digits. Dates,
    times and durations become ISO 8601; Decimal, UUID, paths and lazy translations their text;
    bytes are decoded; an Enum gives its value and an exception "Type: message". Mappings,
    dataclasses and what has ``model_dump`` become objects, sequences, sets (sorted) and collections
    lists. All else, iterators included, gives its ``str()``. Keys that become equal get `` (2)``,
    a reference back to a container around it becomes ``"<cycle>"``.

    A container deeper than ``max_depth`` is replaced by its JSON text. A result that takes more
    than ``max_bytes`` as JSON becomes one string, its JSON text (or, for a string, the string), cut
    with the marker of text() so that it fits as JSON.
    """
    try:
        result = _Conversion(max_depth).convert(value)
        return result if max_bytes is None else _within(result, max_bytes)
    except RecursionError:  # called with next to no stack left
        return TOO_DEEP


def compact_json(value: Any, *, ascii: bool = False) -> str:
    """Return json_value(value) as JSON text without spaces; ``ascii`` escapes all that is not."""
    return _dumped(json_value(value), _ASCII if ascii else _COMPACT)


def stored_json(value: Any, *, ascii: bool = False) -> str:
    """Return compact_json() of what json_value() made."""
    return _dumped(value, _ASCII if ascii else _COMPACT)


def detail_text(value: Any, limit: int = 1200) -> str:
    """Return the ``detail`` of an event: text, or compact JSON text, cut to ``limit`` bytes.

    Only what can end up inside the limit is looked at, however large the value.
    """
    if issubclass(type(value), str | Promise):
        return cut_bytes(value, limit)
    enough = max(0, limit) + 1
    conversion = _Conversion(DEEPEST, members=enough, max_chars=enough)
    return cut_bytes(_dumped(conversion.convert(value)), limit)


class _Conversion:
    """One pass over one value."""

    def __init__(
        self, max_depth: int, members: int | None = None, max_chars: int | None = None
    ) -> None:
        self.max_depth = max(0, max_depth)
        self.left = MAX_MEMBERS if members is None else members
        self.max_chars = max_chars
        self.around: set[int] = set()

    def convert(self, value: Any, level: int = 1) -> Any:
        """Return the JSON form of ``value``, at one frame a level: the stack runs out first."""
        try:
            plain = _leaf(value)
            if type(plain) is str:
                return self.text(plain)
            if plain is not _HAS_MEMBERS:
                return plain
            if isinstance(value, Enum):
                return self.convert(value.value, level)
            found = _members(value)
            if found is None:
                return self.text(plain_text(value))
            if id(value) in self.around:
                return CYCLE
            if level > DEEPEST:
                return TOO_DEEP
            keyed, members = found
            result: Any = {} if keyed else []
            namesakes: dict[str, int] = {}
            whole = True
            self.around.add(id(value))
            try:
                for member in list(islice(members, self.left + 1)):
                    if self.left == 0:
                        whole = False
                        break
                    self.left -= 1
                    if keyed:
                        key, below = member
                        below = self.convert(below, level + 1)
                        result[_free(self.key(key), result, namesakes)] = below
                    else:
                        result.append(self.convert(member, level + 1))
            finally:
                self.around.discard(id(value))
            if isinstance(value, set | frozenset):
                result.sort(key=_order)
            if not whole and keyed:
                result[_free(TOO_MANY, result, namesakes)] = None
            elif not whole:
                result.append(TOO_MANY)
            return _dumped(result) if level == self.max_depth + 1 else result
        except RecursionError:
            return TOO_DEEP
        except INTERRUPTS:
            raise
        except BaseException:
            return self.text(plain_text(value))

    def text(self, plain: str) -> str:
        return clean(plain[: self.max_chars])

    def key(self, key: Any) -> str:
        """Return a key as JSON has it: True is "true", 1.5 is "1.5"."""
        if type(key) is str:
            return self.text(key)
        try:
            if isinstance(key, Enum):
                key = key.value
            plain = key if isinstance(key, float) else _leaf(key)
            if plain is None or isinstance(plain, bool | float):
                return json.dumps(plain)
            if isinstance(plain, int):
                return str(plain)
        except INTERRUPTS:
            raise
        except BaseException:
            plain = _HAS_MEMBERS
        return self.text(plain if isinstance(plain, str) else plain_text(key))


def _leaf(value: Any) -> Any:
    """Return the plain form of a value without members; text is not cleaned yet."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is dict or kind is list:
        return _HAS_MEMBERS
    if issubclass(kind, Enum):
        return _HAS_MEMBERS
    if issubclass(kind, int):
        return _number(int.__index__(value))
    if issubclass(kind, float):
        return _number(float.__float__(value))
    for kinds, as_text in _TEXTS:
        if isinstance(value, kinds):
            return plain_text(as_text(value))
    if isinstance(value, Integral):
        return _number(int(value))
    if isinstance(value, Real):
        return _number(float(value))
    return _HAS_MEMBERS


_TEXTS: Final[tuple[tuple[Any, Callable[[Any], str]], ...]] = (
    ((date, time), lambda value: value.isoformat()),
    (timedelta, duration_iso_string),
    (BaseException, exception_text),
    ((str, bytes, bytearray, memoryview, Decimal, Fraction, UUID, PurePath), plain_text),
    # These iterate, by character or over the members of an enumeration, but mean a text.
    ((UserString, Promise, type), plain_text),
)


def _number(value: int | float) -> int | float | str | None:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if -_LARGEST <= value <= _LARGEST:
        return value
    try:
        return str(value)
    except ValueError:  # the interpreter limits decimal digits, not hexadecimal ones
        return hex(value)


def _members(value: Any) -> tuple[bool, Iterable[Any]] | None:
    """Return whether a value holds pairs, and what it holds; None for what is rather printed."""
    kind: Any = type(value)
    if kind is dict:
        return True, value.items()
    if kind is list:
        return False, value
    if isinstance(value, MultiValueDict):
        return True, value.lists()  # items() keeps only the last of each
    if isinstance(value, Mapping):
        return True, value.items()
    if dataclasses.is_dataclass(value):
        return True, [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
    if callable(getattr(value, "model_dump", None)):
        dumped = value.model_dump()
        if isinstance(dumped, dict | list):
            return _members(dumped)
    # An IP network or a file iterates too, but has no length and a text of its own.
    lists = isinstance(value, Sized) or kind.__str__ is object.__str__
    if lists and isinstance(value, Iterable) and not isinstance(value, Iterator):
        return False, value
    return None


def _free(key: str, taken: dict[str, Any], namesakes: dict[str, int]) -> str:
    if key not in taken:
        return key
    count = namesakes.get(key, 1) + 1
    while f"{key} ({count})" in taken:
        count += 1
    namesakes[key] = count
    return f"{key} ({count})"


def _order(member: Any) -> tuple[bool, Any]:
    """The place of a set's member: numbers by size, then everything else by its text."""
    if isinstance(member, int | float) and not isinstance(member, bool):
        return False, member
    return True, member if isinstance(member, str) else _dumped(member)


def _dumped(value: Any, encoder: json.JSONEncoder = _COMPACT) -> str:
    try:
        return encoder.encode(value)
    except RecursionError:
        return f'"{TOO_DEEP}"'


def _within(result: Any, max_bytes: int) -> Any:
    encoded = _dumped(result)
    if len(encoded) * 4 <= max_bytes or len(encoded.encode()) <= max_bytes:
        return result
    whole = result if isinstance(result, str) else encoded
    marker = cut_marker(len(whole))
    room = max_bytes - 2 - len(marker.encode())
    if room < 0:
        marker, room = "", max_bytes - 2
    kept = cut(_dumped(whole)[1:-1], None, room)
    while True:  # an escape such as \u001f may have been cut: at most five steps back
        try:
            return json.loads(f'"{kept}"') + marker
        except ValueError:
            kept = kept[:-1]
