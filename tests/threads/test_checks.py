"""What the system checks say of threads and their settings."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.test import override_settings

from solid_runs.conf import DEFAULTS

PERIODS = ["THREADS_DETACHED_TTL", "THREADS_FINALISE_BUDGET", "THREADS_STALL_AFTER"]
CALLS = ["THREADS_FINALISE", "THREADS_PROBE"]

WRONG: list[tuple[str, Any]] = [
    *((key, value) for key in PERIODS for value in (0, -1, True, None, "2", float("nan"), 1e12)),
    *((key, value) for key in CALLS for value in ("nowhere.now", "math.later", "math.pi", 5, "")),
]


def found() -> list[CheckMessage]:
    return run_checks(tags=["solid_runs"])


def ids() -> list[str | None]:
    return [message.id for message in found()]


def test_threads_without_the_core_are_an_error_that_says_what_to_add() -> None:
    apps = [name for name in settings.INSTALLED_APPS if name not in ("solid_runs", "tests")]
    with override_settings(INSTALLED_APPS=apps):
        assert "solid_runs.E031" in ids()


def test_threads_beside_the_core_have_nothing_to_say() -> None:
    assert "solid_runs.E031" not in ids()


@pytest.mark.parametrize(("key", "value"), WRONG, ids=repr)
def test_a_setting_of_the_wrong_kind_is_an_error_that_says_the_right_one(
    key: str, value: Any
) -> None:
    with override_settings(SOLID_RUNS={key: value}):
        [message] = [one for one in found() if one.id == "solid_runs.E005"]

    assert repr(key) in message.msg


@pytest.mark.parametrize("call", ["math.floor", print, None], ids=repr)
def test_settings_of_the_right_kind_are_none(call: Any) -> None:
    right = {**dict.fromkeys(PERIODS, 0.5), **dict.fromkeys(CALLS, call)}
    with override_settings(SOLID_RUNS=right):
        assert "solid_runs.E005" not in ids()


def test_every_setting_of_threads_is_checked() -> None:
    assert {key for key in DEFAULTS if key.startswith("THREADS_")} == {*PERIODS, *CALLS}
