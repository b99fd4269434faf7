"""Rails and Django on the same rows at the same time, on whatever database the suite runs on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from django.db import connection

from solid_runs.signals import run_status_changed
from solid_runs.statuses import RunStatus
from tests.models import GeneratorRun, PlatformJsonRun, PlatformRun

pytestmark = pytest.mark.usefixtures("committed")

SHAPES = [PlatformRun, PlatformJsonRun, GeneratorRun]
FOLDER = Path(__file__).parent / "rails"
DRIVERS = {"sqlite": "sqlite3", "postgresql": "pg", "mysql": "mysql2"}
SCHEMES = {"postgresql": ("postgresql", ""), "mysql": ("mysql2", "?encoding=utf8mb4")}
PATIENCE = 60
RUNNING = 2
"""The key of the row that the dumps hold as running, with two entries in its log."""

Ruby: TypeAlias = subprocess.Popen[str]
Rails: TypeAlias = Callable[..., Ruby]


def missing() -> str | None:
    """Why Rails cannot take part here, or None."""
    ruby = shutil.which("ruby")
    if ruby is None:
        return "there is no ruby; install ruby-activerecord with ruby-pg, ruby-sqlite3, ruby-mysql2"
    libraries = ("active_record", DRIVERS[connection.vendor])
    script = "".join(f"require '{library}';" for library in libraries)
    tried = subprocess.run([ruby, "-e", script], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"ruby cannot load {' and '.join(libraries)}: {tried.stderr.strip()[:200]}"
    return None


def required() -> bool:
    return os.environ.get("SOLID_RUNS_REQUIRE_RAILS") == "1" or os.environ.get("CI") == "true"


def database_url() -> str:
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite3:{settings['NAME']}?timeout=30000"
    scheme, options = SCHEMES[connection.vendor]
    password = f":{settings['PASSWORD']}" if settings["PASSWORD"] else ""
    place = f"{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    return f"{scheme}://{settings['USER']}{password}@{place}{options}"


why_missing = cache(missing)


@pytest.fixture
def rails() -> Iterator[Rails]:
    """Starts legacy_tables.rb with a command, a model and a key; it is stopped with the test."""
    reason = why_missing()
    if reason is not None:
        if required():
            pytest.fail(f"Rails is required here, but {reason}")
        pytest.skip(reason)
    preload = ["-r", str(FOLDER / "immediate.rb")] if connection.vendor == "sqlite" else []
    started: list[Ruby] = []

    def start(command: str, run: Any, *arguments: object) -> Ruby:
        script = ["ruby", *preload, str(FOLDER / "legacy_tables.rb"), command, database_url()]
        process = subprocess.Popen(
            [*script, run._meta.db_table, str(run.pk), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def result(process: Ruby) -> str:
    said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complained
    return said


def show(rails: Rails, run: Any) -> dict[str, Any]:
    """The row as Rails reads it."""
    return dict(json.loads(result(rails("show", run))))


def in_utc(moment: datetime) -> str:
    """As Ruby writes a time: its fraction is left out."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def append_until(run: Any, stop: Callable[[int], bool]) -> int:
    """Append from Django, with a pause in which others get their turn; how many."""
    count, deadline = 0, time.monotonic() + PATIENCE
    while not stop(count):
        assert time.monotonic() < deadline, "Rails did not get through"
        run.append_event("tool", "django", eid=f"django-{count}", detail="où est la gare? 🚆")
        count += 1
        time.sleep(0.005)
    return count


def labels(run: Any) -> list[str]:
    return [entry.get("label", "") for entry in run.events_log]


def numbers(run: Any, label: str) -> list[int]:
    """What this writer's entries were numbered, in the order of the log."""
    entries = [entry for entry in run.events_log if entry.get("label") == label]
    return [int(entry["eid"].rpartition("-")[2]) for entry in entries]


@pytest.fixture
def signals() -> Iterator[list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []

    def receiver(from_status: str, to_status: str, **facts: Any) -> None:
        heard.append((str(from_status), str(to_status)))

    run_status_changed.connect(receiver)
    yield heard
    run_status_changed.disconnect(receiver)


@pytest.mark.parametrize("model", SHAPES)
def test_no_entry_is_lost_when_rails_and_django_append_at_once(model: Any, rails: Rails) -> None:
    run = model.objects.get(pk=RUNNING)
    before = run.events_log
    ruby = rails("append", run, 40)
    count = append_until(run, lambda count: count >= 40 and ruby.poll() is not None)
    result(ruby)
    run.refresh_from_db()
    assert run.events_log[:2] == before
    assert numbers(run, "rails") == list(range(40))
    assert numbers(run, "django") == list(range(count))
    assert len(run.events_log) == 2 + 40 + count
    if connection.vendor != "sqlite":  # where the one who waits for the file may starve
        seen = labels(run)
        last = len(seen) - seen[::-1].index("rails")
        assert "django" in seen[seen.index("rails") : last], "they took turns, they did not race"
    assert show(rails, run)[model.events_column] == run.events_log


@pytest.mark.parametrize("model", SHAPES)
def test_a_run_that_both_write_and_both_end_has_one_end_and_a_whole_log(
    model: Any, rails: Rails, signals: list[tuple[str, str]]
) -> None:
    run, stale = model.objects.get(pk=RUNNING), model.objects.get(pk=RUNNING)
    ruby = rails("append", run, 30)

    def half_way(count: int) -> bool:
        return count % 5 == 0 and labels(model.objects.get(pk=RUNNING)).count("rails") >= 15

    count = append_until(run, half_way)
    canceller = rails("cancel", run)
    count_to_end = append_until(run, lambda count: canceller.poll() is not None or count >= 40)
    won = stale.finish("The translation", metadata={"cost": 2})
    result(ruby)
    result(canceller)
    run.refresh_from_db()
    assert numbers(run, "rails") == list(range(30))
    assert numbers(run, "django") == [*range(count), *range(count_to_end)]
    assert run.finished
    assert run.completed_at is not None
    shown = show(rails, run)
    assert shown["status"] == str(run.status)
    assert shown["completed_at"] == in_utc(run.completed_at)
    assert signals == ([("running", "complete")] if won else [])
    if not won:
        assert (run.status, run.output) == (RunStatus.CANCELLED, None)
        assert run.error_message == "Cancelled in Rails"
        assert "cost" not in run.output_metadata
    # Rails looks and then writes, without a guard: a cancel that looked before the finish may
    # still be written over it. No entry and no output goes by that.
    elif run.status == RunStatus.COMPLETE:
        assert run.error_message is None
    if won:
        assert run.output == shown["output"] == "The translation"


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_a_finish_after_a_cancel_by_rails_is_refused(
    model: Any, rails: Rails, signals: list[tuple[str, str]]
) -> None:
    run = model.objects.get(pk=RUNNING)
    result(rails("cancel", run))
    assert run.finish("too late", metadata={"late": True}, input_tokens=9) is False
    assert run.status is RunStatus.CANCELLED
    assert run.error_message == "Cancelled in Rails"
    assert abs((datetime.now(UTC) - run.completed_at).total_seconds()) < PATIENCE
    shown = show(rails, run)
    assert (shown["status"], shown["output"], shown["input_tokens"] or 0) == ("cancelled", None, 0)
    assert "late" not in shown["output_metadata"]
    assert signals == []


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_a_cancel_by_rails_after_a_finish_changes_nothing(model: Any, rails: Rails) -> None:
    run, row = model.objects.get(pk=RUNNING), model.objects.filter(pk=RUNNING)
    assert run.finish("in time")
    before = row.values().get()
    result(rails("cancel", run))
    assert row.values().get() == before
    assert before["status"] == "complete"


@pytest.mark.parametrize("model", SHAPES)
def test_rails_reads_what_django_recorded(model: Any, rails: Rails) -> None:
    run = model.objects.create(input_prompt="où est la gare? 🚆", action_name="translate")
    assert run.start()
    run.append_event("llm", "gpt-4o", eid="1", status="started")
    run.append_event("llm", "gpt-4o", eid="1", detail="nul \x00, half \ud83d, 😀", duration_ms=0)
    run.add_log("asking", level="warn")
    type(run).objects.filter(pk=run.pk).update(
        output_metadata={"provider": "openai", "n": {"a": 1}}
    )
    assert run.finish(
        "done 😀 nul \x00 half \udc81 end",
        metadata={"model": "gpt-4o", "n": {"b": 2}, 'odd "key" 🚆': [None, 1.5]},
        input_tokens=120,
        output_tokens=40,
        total_tokens=260,
    )
    run.refresh_from_db()
    shown = show(rails, run)
    assert shown["status"] == "complete"
    assert shown["input_prompt"] == "où est la gare? 🚆"
    assert shown["action_name"] == "translate"
    assert (
        shown["output"]
        == "done 😀 nul \N{REPLACEMENT CHARACTER} half \N{REPLACEMENT CHARACTER} end"
    )
    assert shown["output_metadata"] == {
        "provider": "openai",
        "model": "gpt-4o",
        "n": {"b": 2},
        'odd "key" 🚆': [None, 1.5],
    }
    assert (shown["input_tokens"], shown["output_tokens"]) == (120, 40)
    assert shown.get("total_tokens", 260) == 260
    assert shown["trace_id"] == run.trace_id
    assert len(run.trace_id) == 36
    assert shown["duration_ms"] == run.duration_ms
    for name in ("started_at", "completed_at", "created_at", "updated_at"):
        assert shown[name] == in_utc(getattr(run, name))
    assert abs((datetime.now(UTC) - run.completed_at).total_seconds()) < PATIENCE
    begun, ended, line = shown[model.events_column]
    assert (
        list(begun) == ["at", "eid", "kind", "label", "status"] or connection.vendor == "postgresql"
    )
    assert (begun["status"], ended["status"], ended["duration_ms"]) == ("started", "done", 0)
    assert ended["detail"] == "nul \N{REPLACEMENT CHARACTER}, half \N{REPLACEMENT CHARACTER}, 😀"
    assert datetime.fromisoformat(begun["at"]).tzinfo is not None
    assert (line["level"], line["message"]) == ("warn", "asking")


def explode(depth: int) -> None:
    if depth:
        explode(depth - 1)
    raise ValueError("broken \x00 on purpose 😀")


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_rails_reads_the_error_of_a_run_that_failed(model: Any, rails: Rails) -> None:
    run = model.objects.get(pk=RUNNING)
    with pytest.raises(ValueError, match="broken") as raised:
        explode(3)
    assert run.fail(raised.value)
    shown = show(rails, run)
    assert shown["status"] == "failed"
    assert shown["error_message"] == "broken \N{REPLACEMENT CHARACTER} on purpose 😀"
    if model is GeneratorRun:
        assert "error_backtrace" not in shown
        return
    lines = shown["error_backtrace"].split("\n")
    assert len(lines) == 5
    path, number, place = lines[0].rsplit(":", 2)
    assert path.endswith("test_rails.py")
    assert number.isdecimal()
    assert place == "in explode"
    assert lines[-1].endswith("in test_rails_reads_the_error_of_a_run_that_failed")


@pytest.mark.parametrize("model", [PlatformRun, GeneratorRun])
def test_rails_reads_a_cancel_and_a_restart_by_django(model: Any, rails: Rails) -> None:
    run = model.objects.get(pk=RUNNING)
    assert run.cancel("not needed 🚆")
    shown = show(rails, run)
    assert (shown["status"], shown["error_message"]) == ("cancelled", "not needed 🚆")
    assert shown["completed_at"] == in_utc(run.completed_at)
    assert run.restart()
    assert run.started_at > run.created_at
    shown = show(rails, run)
    assert (shown["status"], shown["error_message"]) == ("running", None)
    assert (shown["completed_at"], shown["duration_ms"]) == (None, None)
    assert len(shown[model.events_column]) == 2
