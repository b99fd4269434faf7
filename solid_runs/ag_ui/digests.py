"""Canonical JSON, and the digest of what a run was reserved for: pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from solid_runs.storable import DEEPEST, json_value


def canonical_json(value: Any) -> str:
    """JSON text that is equal for equal values: keys in order, 1.0 as 1, no spaces."""
    plain = _canonical(json_value(value, max_depth=DEEPEST))
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_canonical(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_input(body: Mapping[str, Any]) -> Any:
    """What of a request makes it that request: the last thing the user said, and the answers.

    A client that sends a run again sends the half-finished reply and the moved state with it, so
    messages, state, tools and context are left out.
    """
    said, messages = None, body.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") == "user":
            said = {"id": message.get("id"), "content": message.get("content")}
    return {
        "message": said,
        "resume": body.get("resume") or None,
        "forwardedProps": body.get("forwardedProps") or None,
    }
