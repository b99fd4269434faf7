"""System checks of the one setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import import_string

from solid_runs.conf import DEFAULTS, configured, setting
from solid_runs.events import LEAST_BYTES
from solid_runs.subjects import model_for


def check_settings(
    *, app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    problems: list[checks.CheckMessage] = [
        checks.Warning(
            f"SOLID_RUNS has the unknown key {key!r}.",
            hint=f"Known keys are {', '.join(sorted(DEFAULTS))}.",
            id="solid_runs.W001",
        )
        for key in configured()
        if key not in DEFAULTS
    ]
    subjects = configured().get("SUBJECTS") or {}
    problems += [
        checks.Warning(
            f"SOLID_RUNS['SUBJECTS'][{name!r}] names no model: {label!r}.",
            hint="Write the label of an installed model, such as 'library.Document'.",
            id="solid_runs.W002",
        )
        for name, label in subjects.items()
        if model_for(name) is None
    ]
    for nouns in ("ADJECTIVES", "NOUNS"):
        words = configured().get(nouns)
        if words is not None and (isinstance(words, str) or not words):
            problems.append(
                checks.Error(
                    f"SOLID_RUNS[{nouns!r}] must be a list of words.",
                    hint="Leave the key out for the words that the package brings.",
                    id="solid_runs.E003",
                )
            )
    problems += [
        checks.Error(
            f"SOLID_RUNS[{key!r}] must be a whole number of {least} or more, or None for no cap.",
            id="solid_runs.E004",
        )
        for key, least in LEAST.items()
        if not _is_cap(configured().get(key), least)
    ]
    problems += [
        checks.Error(f"SOLID_RUNS[{key!r}] must be {what}.", id="solid_runs.E005")
        for key, (is_right, what) in KINDS.items()
        if key in configured() and not is_right(configured()[key])
    ]
    if not problems and setting("AG_UI_STALL_AFTER") < 3 * setting("AG_UI_HEARTBEAT"):
        problems.append(
            checks.Warning(
                "SOLID_RUNS['AG_UI_STALL_AFTER'] leaves no room for a late sign of life: a run "
                "that is well would be taken for dead.",
                hint="Make it several times AG_UI_HEARTBEAT.",
                id="solid_runs.W006",
            )
        )
    return problems


LEAST = {"COLUMN_LOG_ENTRIES": 1, "TABLE_LOG_ENTRIES": 1, "ENTRY_BYTES": LEAST_BYTES}


def _is_period(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < MOST_SECONDS


def _is_call(value: Any) -> bool:
    try:
        return value is None or callable(import_string(value) if isinstance(value, str) else value)
    except ImportError:
        return False


MOST_SECONDS = 10**9

PERIOD = (_is_period, "a number of seconds above 0")
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        (
            "AG_UI_ATTACH_LIMIT",
            "AG_UI_HEARTBEAT",
            "AG_UI_KEEP_ALIVE",
            "AG_UI_STALL_AFTER",
            "THREADS_DETACHED_TTL",
            "THREADS_FINALISE_BUDGET",
            "THREADS_STALL_AFTER",
        ),
        PERIOD,
    ),
    **dict.fromkeys(
        ("THREADS_FINALISE", "THREADS_PROBE"),
        (_is_call, "a callable, its dotted path, or None for none"),
    ),
    "AG_UI_BODY_BYTES": (
        lambda value: type(value) is int and value > 0,
        "a whole number of bytes above 0",
    ),
    "AG_UI_INTERRUPT_TTL": (
        lambda value: value is None or _is_period(value),
        "a number of seconds above 0, or None for no deadline",
    ),
    "AG_UI_OFFER": (lambda value: type(value) is bool, "True or False"),
    "CLOCK": (_is_call, "a callable, its dotted path, or None for Django's clock"),
}


def _is_cap(value: Any, least: int) -> bool:
    return value is None or (type(value) is int and value >= least)
