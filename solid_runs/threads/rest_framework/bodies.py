"""What the routes of the stores take, and how it is checked before a store sees it.

Fields have the names of JSON here. Each check gives the value to pass on, or raises InvalidRecord.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rest_framework.exceptions import ValidationError

from solid_runs.threads import values
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.interrupts import InterruptStatus
from solid_runs.threads.records import FIELDS, GIVEN, OPTIONAL, PATCHABLE, Status
from solid_runs.threads.rest_framework.strict_json import shown_path
from solid_runs.threads.values import Check

MOST_ENTRIES: Final = 1_000
NEVER: Final = "none"
"""In a query: the epoch of a run that was never claimed."""


@dataclass(frozen=True)
class Fields:
    """Of ``one_of`` exactly one is given; with ``alone`` nothing else that is optional."""

    required: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
    one_of: Mapping[str, Check] = field(default_factory=dict)
    alone: str | None = None

    @property
    def checks(self) -> dict[str, Check]:
        return {**self.required, **self.optional, **self.one_of}

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values to pass on; a ValidationError that names every field with a fault."""
        checks, kept, errors = self.checks, {}, self._misplaced(given)
        for name, value in given.items():
            try:
                if name not in checks:
                    raise InvalidRecord(name, f"There is no such field; use {', '.join(checks)}.")
                kept[name] = checks[name](name, value)
            except InvalidRecord as error:
                errors[shown_path(error.field)] = [error.problem]
        if errors:
            raise ValidationError(errors)
        return kept

    def _misplaced(self, given: Mapping[str, Any]) -> dict[str, list[str]]:
        """What is missing, or given with what excludes it."""
        errors = {name: ["This is missing."] for name in self.required if name not in given}
        if self.one_of and len(self.one_of.keys() & given.keys()) != 1:
            told = f"Give one of {', '.join(self.one_of)}."
            errors |= {name: [told] for name in self.one_of}
        if (
            self.alone
            and self.alone in given
            and self.optional.keys() & given.keys() != {self.alone}
        ):
            errors[self.alone] = ["Give this or what is expected, not both."]
        return errors


def or_null(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def limit(name: str, value: Any) -> int:
    return values.whole(name, value, 0, values.LARGEST, "a whole number of 0 or more")


# In a query everything is text


def number(check: Check) -> Check:
    def read(name: str, value: str) -> Any:
        if not re.fullmatch(r"-?\d{1,17}", value, re.ASCII):
            raise InvalidRecord(name, f"This must be a whole number, not {values.shown(value)}.")
        return check(name, int(value))

    return read


def known_epoch(name: str, value: str) -> int | None:
    if value == NEVER:
        return None
    epoch: int = number(values.epoch)(name, value)
    return epoch


def statuses(name: str, value: str) -> list[str]:
    return [values.one_of(Status)(name, one) for one in value.split(",")]


def flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise InvalidRecord(name, f"Use true or false, not {values.shown(value)}.")
    return value == "true"


# Bodies within bodies


def entries(name: str, value: Any) -> list[dict[str, Any]]:
    """A batch of decisions, with the names of Python."""
    if not isinstance(value, list):
        raise InvalidRecord(name, f"This must be a list, not {values.shown(value)}.")
    if len(value) > MOST_ENTRIES:
        raise InvalidRecord(
            name, f"This has {len(value):,} entries; {MOST_ENTRIES:,} are the most."
        )
    return [_entry(f"{name}.{number}", one) for number, one in enumerate(value)]


def _entry(where: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise InvalidRecord(where, f"This must be an object, not {values.shown(entry)}.")
    for name in entry:
        if name not in ENTRY:
            raise InvalidRecord(
                f"{where}.{name}", f"There is no such field; use {', '.join(ENTRY)}."
            )
    kept = {
        "interrupt_id": values.identifier(f"{where}.interruptId", entry.get("interruptId")),
        "status": decision(f"{where}.status", entry.get("status")),
    }
    if "response" not in entry:
        return kept
    if kept["status"] == InterruptStatus.CANCELLED:
        raise InvalidRecord(f"{where}.response", "What is cancelled has none.")
    return {**kept, "response": values.sized(f"{where}.response", entry["response"])}


def decision(name: str, value: Any) -> str:
    if value not in DECISIONS:
        raise InvalidRecord(name, f"Use one of {', '.join(DECISIONS)}, not {values.shown(value)}.")
    return str(value)


DECISIONS: Final = (InterruptStatus.RESOLVED, InterruptStatus.CANCELLED)
ENTRY: Final = ("interruptId", "status", "response")

RUN_ID: Final = {"runId": values.identifier}
INTERRUPT_ID: Final = {"interruptId": values.identifier}

NOTHING: Final = Fields()

NEW_RUN: Final = Fields(
    required={FIELDS[name]: check for name, check in GIVEN.items() if name not in OPTIONAL},
    optional={FIELDS[name]: or_null(GIVEN[name]) for name in GIVEN if name in OPTIONAL}
    | {"traceId": or_null(values.identifier)},
)
PATCH: Final = Fields(optional={FIELDS[name]: or_null(check) for name, check in PATCHABLE.items()})
PATCHED_RUN: Final = Fields(
    required=RUN_ID,
    optional={
        "expectedStatus": statuses,
        "expectedEpoch": known_epoch,
        "heldEpoch": number(values.epoch),
    },
    alone="heldEpoch",
)
ONE_RUN: Final = Fields(required=RUN_ID)
ONE_THREAD: Final = Fields(required={"threadId": values.identifier})
RUNS: Final = Fields(one_of={"threadId": values.identifier, "parentRunId": values.identifier})
RECLAIMABLE: Final = Fields(
    required={"now": number(values.milliseconds), "ttlMs": number(values.span)},
    optional={"limit": number(limit)},
)
STALLED: Final = Fields(
    optional={
        "now": number(values.milliseconds),
        "ttlMs": number(values.span),
        "limit": number(limit),
    }
)
CLAIM: Final = Fields(
    required=RUN_ID,
    optional={
        "detachedBefore": or_null(values.milliseconds),
        "silentBefore": or_null(values.milliseconds),
        "expectedEpoch": or_null(values.epoch),
    },
)
TOUCH: Final = Fields(
    required={**RUN_ID, "driverEpoch": values.epoch},
    optional={"now": or_null(values.milliseconds)},
)

NEW_INTERRUPT: Final = Fields(
    required={
        **INTERRUPT_ID,
        **RUN_ID,
        "threadId": values.identifier,
        "requestedAt": values.milliseconds,
        "payload": values.document,
    }
)
INTERRUPTS: Final = Fields(
    one_of={"threadId": values.identifier, **RUN_ID}, optional={"pending": flag}
)
ONE_INTERRUPT: Final = Fields(required=INTERRUPT_ID)
RESOLVE: Final = Fields(required=INTERRUPT_ID, optional={"response": values.sized})
COMMIT: Final = Fields(required={"entries": entries})

PYTHON_NAMES: Final = {json_name: name for name, json_name in FIELDS.items()} | {"ttlMs": "ttl_ms"}


def by_python_name(given: Mapping[str, Any]) -> dict[str, Any]:
    return {PYTHON_NAMES.get(name, name): value for name, value in given.items()}
