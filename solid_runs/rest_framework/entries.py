"""Entries of the event log as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.rest_framework.serializers import StatusField
from solid_runs.storable import DEEPEST, compact_json, json_value

OPEN_KEYS = ("at", "eid", "kind", "label", "status", "duration_ms", "timestamp", "level")
"""What every viewer sees of an entry; its detail, its message and keys of others are content."""

TEXT_KEYS = ("at", "eid", "kind", "label", "status", "detail", "timestamp", "level", "message")
"""What is text in every entry that is shown, whoever wrote it."""


def shown_entry(entry: Any, content: bool) -> dict[str, Any]:
    """An entry as it is stored, without what the request may not see.

    One that is no object is shown as a message.
    """
    if not isinstance(entry, Mapping):
        entry = {"message": entry}
    if not content:
        entry = {key: entry[key] for key in OPEN_KEYS if key in entry}
    shown: dict[str, Any] = json_value(entry, max_depth=DEEPEST)
    for key in TEXT_KEYS:
        if shown.get(key) is not None and not isinstance(shown[key], str):
            shown[key] = compact_json(shown[key])
    if type(shown.get("duration_ms", 0)) not in (int, float):
        shown["duration_ms"] = None
    return shown


@extend_schema_field(
    {
        "type": "object",
        "description": (
            "As stored. An event has at, kind, label and status, and may have eid (a started "
            "event is open until a done or error one with the same eid), detail and duration_ms; "
            "a log line has timestamp, level and message. detail and message are left out for "
            "who may not see what runs say."
        ),
        "properties": {
            **{key: {"type": "string", "nullable": True} for key in TEXT_KEYS},
            "duration_ms": {"type": "number", "nullable": True},
        },
        "additionalProperties": True,
    }
)
class EntryField(serializers.DictField):
    pass


class SolidRunEventSerializer(serializers.Serializer[Any]):
    seq = serializers.IntegerField(help_text="Its place in the log, from 1.")
    entry = EntryField()


class SolidRunEventsSerializer(serializers.Serializer[Any]):
    status = StatusField(help_text="The run's, read before its events.")
    finished = serializers.BooleanField(help_text="The run has ended.")
    events = SolidRunEventSerializer(many=True)
    next_after = serializers.IntegerField(help_text="What to give as after next time.")
    has_more = serializers.BooleanField(help_text="The limit left some out.")
