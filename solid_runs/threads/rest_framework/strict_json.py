"""JSON as it is written down, and nothing else: what could be stored otherwise is refused.

Errors are InvalidRecord, with the names of JSON; ``body`` is the body as a whole.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final
from urllib.parse import parse_qsl

from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from solid_runs.identifiers import is_storable
from solid_runs.printable import text
from solid_runs.storable import DEEPEST
from solid_runs.threads.exceptions import InvalidRecord

MOST_BODY_BYTES: Final = 20_000_000
MOST_PATH_CHARS: Final = 200
LARGEST_NUMBER: Final = int(sys.float_info.max)

BODY: Final = "body"
NOT_STORABLE: Final = "This holds a NUL or half of a character."


class BodyTooLarge(APIException):
    status_code = 413
    default_detail = {BODY: [f"This is larger than {MOST_BODY_BYTES:,} bytes."]}
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """Reads one object of JSON in UTF-8.

    It reads the stream, not ``request.body``, so that a body past the limit is not read at all and
    DATA_UPLOAD_MAX_MEMORY_SIZE is not in the way.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        length = (parser_context or {})["request"].META.get("CONTENT_LENGTH") or 0
        if int(length) > MOST_BODY_BYTES:
            raise BodyTooLarge
        raw = stream.read(MOST_BODY_BYTES + 1)  # whatever the header says
        if len(raw) > MOST_BODY_BYTES:
            raise BodyTooLarge
        return read_object(raw)


class NullJSONRenderer(JSONRenderer):
    """JSON in which nothing is ``null``, and not a body that is no JSON."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        response = (renderer_context or {}).get("response")
        if data is None and response is not None and response.status_code == 200:
            return b"null"
        return super().render(data, accepted_media_type, renderer_context)


def read_object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw.decode(), object_pairs_hook=_without_namesakes)
    except InvalidRecord:
        raise
    except RecursionError as error:
        raise InvalidRecord(BODY, "This is nested too deeply.") from error
    except UnicodeDecodeError as error:
        raise InvalidRecord(BODY, "This is no UTF-8.") from error
    except json.JSONDecodeError as error:
        raise InvalidRecord(BODY, f"This is no JSON: {error}.") from error
    except ValueError as error:  # the interpreter limits decimal digits
        raise InvalidRecord(BODY, "This holds a number of too many digits.") from error
    if not isinstance(body, dict):
        raise InvalidRecord(BODY, "Send an object of JSON.")
    for path, problem in _problems(body):
        raise InvalidRecord(path, problem)
    return body


def _without_namesakes(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidRecord(shown_path(name), "This is named twice in one object.")
        found[name] = value
    return found


def _problems(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What no column could hold as it is, with its dotted path.

    A path is only put together for a problem: the names may be long, and the members many.
    """
    trail: list[tuple[Any, Iterator[tuple[Any, Any]]]] = [("", iter(body.items()))]
    while trail:
        for name, value in trail[-1][1]:
            problem = _problem(value, len(trail))
            if isinstance(name, str) and not is_storable(name):
                problem = NOT_STORABLE
            if problem:
                names = [*(above for above, _ in trail[1:]), name]
                yield shown_path(".".join(str(one)[:MOST_PATH_CHARS] for one in names)), problem
            elif isinstance(value, dict | list):
                members = value.items() if isinstance(value, dict) else enumerate(value)
                trail.append((name, iter(members)))
                break
        else:
            trail.pop()


def _problem(value: Any, depth: int) -> str | None:
    if isinstance(value, str):
        return None if is_storable(value) else NOT_STORABLE
    if isinstance(value, float):
        return None if math.isfinite(value) else "This is no number of JSON."
    if isinstance(value, int):
        return None if -LARGEST_NUMBER <= value <= LARGEST_NUMBER else "This number is too large."
    if isinstance(value, dict | list) and depth > DEEPEST:
        return f"This is nested more than {DEEPEST} levels deep."
    return None


def check_query_text(query: str) -> None:
    """InvalidRecord for a parameter that does not come through decoding as it was written."""
    for name, value in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        if not (is_storable(name) and is_storable(value)):
            raise InvalidRecord(shown_path(name), NOT_STORABLE)


def shown_path(path: str) -> str:
    return text(path, max_chars=MOST_PATH_CHARS)
