"""What a request to run says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from solid_runs.ag_ui.endpoint.frames import MalformedInput, RunAgentInput, read_input
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.scopes import identifier
from solid_runs.storable import DEEPEST, json_value

_UNCLEAN: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""An escape in JSON text that may stand for a NUL or half of a character."""


class Request(NamedTuple):
    """``body``: the object that was sent, members nobody knows included. ``size``: in bytes."""

    body: dict[str, Any]
    input: RunAgentInput
    size: int = 0


def read_request(raw: bytes) -> Request:
    """Read the body of a request to run; MalformedInput names the field that is wrong."""
    try:
        said = raw.decode()
        body = json.loads(said, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise MalformedInput("The body is no JSON text in UTF-8.") from error
    return read_object(body, is_clean=not _UNCLEAN.search(said))._replace(size=len(raw))


def read_object(body: Any, is_clean: bool = False) -> Request:
    """Read a request that is no text any more; MalformedInput as read_request()."""
    if not isinstance(body, dict):
        raise MalformedInput("The body is no JSON object.")
    for name in ("threadId", "runId"):
        if body.get(name) is None:
            raise MalformedInput(f"{name} is missing.", name)
        _read_id(name, body[name])
    if body.get("parentRunId") is not None:
        _read_id("parentRunId", body["parentRunId"])
    for position, entry in enumerate(_members(body.get("resume"))):
        if isinstance(entry, Mapping):
            _read_id("interruptId", entry.get("interruptId"), f"resume.{position}.interruptId")
    if not is_clean:  # but not the ids, which are refused rather than changed
        body = json_value(body, max_depth=DEEPEST)
    return Request(body, read_input(body))


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_constant(text)


def _read_id(name: str, value: Any, field: str | None = None) -> None:
    try:
        identifier(name, value)
    except ConfigurationError as error:
        raise MalformedInput(str(error), field or name) from error
