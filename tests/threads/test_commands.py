"""The commands of the store: what they do, what they say, and how they exit."""

from __future__ import annotations

import signal
from io import StringIO
from typing import Any, ClassVar

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from solid_runs.threads.models import ThreadRun
from solid_runs.threads.reaper import PRODUCING, UNKNOWN, Finished
from solid_runs.threads.records import RunRecord
from solid_runs.threads.scopes import SHARED
from solid_runs.threads.stores.database import DatabaseRunStore

pytestmark = pytest.mark.django_db(databases=["default", "other"])

HOUR = 3_600_000
DAY = 24 * HOUR
HERE = "tests.threads.test_commands"


def said(*arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out, **options)
    return out.getvalue()


def detached(run_id: str, ago: int = 2 * HOUR, scope: Any = "acme", **options: Any) -> None:
    store = DatabaseRunStore(scope, **options)
    store.create_or_resume(run_id, "t", store.now())
    store.claim(run_id)
    store.update(run_id, {"detached_since": store.now() - ago})


def stalled(run_id: str, ago: int = HOUR, scope: Any = "acme", **options: Any) -> None:
    store = DatabaseRunStore(scope, **options)
    store.create_or_resume(run_id, "t", store.now())
    store.claim(run_id, now=store.now() - ago)


def ended(run_id: str, ago: int, scope: Any = "acme", **options: Any) -> None:
    store = DatabaseRunStore(scope, **options)
    at = store.now() - ago
    store.create_or_resume(run_id, "t", at)
    store.update(run_id, {"status": "completed", "finished_at": at})


def statuses(using: str = "default") -> dict[str, str]:
    return dict(ThreadRun.objects.using(using).values_list("run_id", "status"))


def producing(record: RunRecord) -> Any:
    return PRODUCING


def finished(record: RunRecord) -> Any:
    return Finished()


def broken(record: RunRecord) -> Any:
    raise RuntimeError("no answer")


no_callable = "text"


# reap_runs


def test_runs_of_all_scopes_are_swept_and_summed_up_in_a_line() -> None:
    detached("r1")
    detached("r2", scope="other")
    detached("r3", scope=SHARED)
    detached("r4", ago=HOUR // 2)
    stalled("r5")
    assert said("reap_runs") == "Swept 5 runs: 3 expired, 1 stalled, 1 unknown.\n"
    assert statuses() == {
        "r1": "aborted",
        "r2": "aborted",
        "r3": "aborted",
        "r4": "running",
        "r5": "failed",
    }


def test_each_run_is_named_with_its_outcome_if_asked_for() -> None:
    detached("r1")
    detached("r2", scope=SHARED)
    assert said("reap_runs", verbosity=2) == (
        "  expired: r2 of t\n  expired: r1 of t in acme\nSwept 2 runs: 2 expired.\n"
    )


def test_nothing_to_do_is_said_too() -> None:
    assert said("reap_runs") == "Swept 0 runs.\n"
    assert said("reap_runs", verbosity=0) == ""


def test_only_the_scopes_that_are_named_are_swept() -> None:
    for run_id, scope in (("r1", "a"), ("r2", "b"), ("r3", SHARED), ("r4", "c")):
        detached(run_id, scope=scope)
    assert said("reap_runs", "--scope", "a", "--scope", "") == "Swept 2 runs: 2 expired.\n"
    assert said("reap_runs", "--scope", "nobody") == "Swept 0 runs.\n"
    assert sorted(one for one, status in statuses().items() if status == "running") == ["r2", "r4"]


def test_a_dry_run_names_what_would_be_done_and_does_nothing() -> None:
    detached("r1")
    stalled("r2")
    before = list(ThreadRun.objects.values())
    assert said("reap_runs", "--dry-run") == (
        "  expired: r1 of t in acme\n  stalled: r2 of t in acme\n"
        "Would sweep 2 runs: 1 expired, 1 stalled.\n"
    )
    assert list(ThreadRun.objects.values()) == before


def test_the_spans_can_be_given() -> None:
    detached("r1")
    stalled("r2")
    assert said("reap_runs", "--ttl", "7300", "--stall-after", "3700") == (
        "Swept 1 run: 1 unknown.\n"
    )
    assert said("reap_runs", "--ttl", "7100.5", "--stall-after", "0.5") == (
        "Swept 2 runs: 1 expired, 1 stalled.\n"
    )


def test_no_more_are_swept_in_a_scope_than_the_limit() -> None:
    for number in range(3):
        detached(f"r{number}")
    assert said("reap_runs", "--limit", "2") == "Swept 2 runs: 2 expired.\n"


def test_probe_and_finaliser_can_be_named_over_those_of_the_settings(settings: Any) -> None:
    settings.SOLID_RUNS = {"THREADS_PROBE": broken, "THREADS_FINALISE": broken}
    detached("r1", ago=HOUR // 2)
    assert said("reap_runs", "--probe", f"{HERE}.producing") == "Swept 1 run: 1 producing.\n"
    assert said("reap_runs", "--probe", f"{HERE}.finished") == "Swept 1 run: 1 finished.\n"
    detached("r2")
    assert said("reap_runs", "--finalise", f"{HERE}.producing") == "Swept 1 run: 1 expired.\n"


@pytest.mark.parametrize(
    ("ago", "options", "summary"),
    [
        (HOUR // 2, ["--probe", f"{HERE}.broken"], "1 run: 1 error"),
        (2 * HOUR, ["--finalise", f"{HERE}.broken"], "1 run: 1 finaliser_failed"),
    ],
)
def test_trouble_is_the_exit_code_1_and_said_after_the_summary(
    ago: int, options: list[str], summary: str
) -> None:
    detached("r1", ago=ago)
    out = StringIO()
    with pytest.raises(CommandError, match=f"Not all went well: {summary}.") as raised:
        call_command("reap_runs", *options, stdout=out)
    assert raised.value.returncode == 1
    assert out.getvalue() == f"Swept {summary}.\n"


@pytest.mark.parametrize("error", [DatabaseError("gone away"), ValueError("gone away")])
def test_a_scope_that_fails_is_told_and_the_others_are_swept(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scope in "abc":
        detached(f"of-{scope}", scope=scope)

    def fails_in_b(store: Any, *arguments: Any, **options: Any) -> Any:
        if store.scope == "b":
            raise error
        return DatabaseRunStore.list_reclaimable(store, *arguments, **options)

    class Failing(DatabaseRunStore):
        list_reclaimable = fails_in_b

    monkeypatch.setattr("solid_runs.threads.management.arguments.DatabaseRunStore", Failing)
    out = StringIO()
    with pytest.raises(CommandError, match="A sweep was broken off: gone away"):
        call_command("reap_runs", stdout=out)
    assert out.getvalue() == "Swept 2 runs: 2 expired.\n"
    assert statuses() == {"of-a": "aborted", "of-b": "running", "of-c": "aborted"}


def test_only_the_database_that_is_named_is_swept() -> None:
    for using in ("default", "other"):
        detached("r1", using=using)
    assert said("reap_runs", "--database", "other") == "Swept 1 run: 1 expired.\n"
    assert (statuses("default"), statuses("other")) == ({"r1": "running"}, {"r1": "aborted"})


class Told:
    """A probe during which the process is told to stop, in its third turn."""

    turns: ClassVar[list[str]] = []
    number = signal.SIGTERM


def told_to_stop(record: Any) -> Any:
    Told.turns.append(record.run_id)
    if len(Told.turns) == 3:
        signal.raise_signal(Told.number)
    return UNKNOWN


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_sweeps_again_until_it_is_told_to_stop_and_finishes_the_run_in_hand(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(Told, "turns", [])
    monkeypatch.setattr(Told, "number", number)
    for run_id in ("r1", "r2"):
        detached(run_id, ago=HOUR // 2)
    options = ("--interval", "0.01", "--probe", "tests.threads.test_commands.told_to_stop")
    assert said("reap_runs", *options).splitlines() == [
        "Swept 2 runs: 2 unknown.",
        "Swept 1 run: 1 unknown.",
    ]
    assert len(Told.turns) == 3
    assert {one: signal.getsignal(one) for one in handlers} == handlers


@pytest.mark.django_db(transaction=True)
def test_a_loop_goes_on_after_a_sweep_that_failed_and_exits_by_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[int] = []

    def scopes(using: Any) -> list[str]:
        turns.append(1)
        if len(turns) == 1:
            raise DatabaseError("gone away")
        signal.raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr(DatabaseRunStore, "scopes_to_sweep", scopes)
    assert said("reap_runs", "--interval", "0.01") == "Swept 0 runs.\n" * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "0"], "Give a whole number from 1 to 100,000,000, not '0'"),
        (["--limit", "some"], "Give a whole number from 1 to 100,000,000, not 'some'"),
        (["--limit", "1.5"], "Give a whole number from 1 to 100,000,000, not '1.5'"),
        (["--ttl", "0"], "Give a number above 0, not '0'"),
        (["--ttl", "nan"], "Give a number above 0, not 'nan'"),
        (["--stall-after", "-1"], "expected one argument|Give a number above 0"),
        (["--interval", "inf"], "Give a number up to 100,000,000, not 'inf'"),
        (["--database", "nowhere"], "There is no database 'nowhere'"),
        (["--scope", " "], "--scope: scope is blank"),
        (["--scope", "a\0b"], "--scope: scope holds a NUL"),
        (["--probe", "nowhere.probe"], "--probe: No module named 'nowhere'"),
        (["--probe", "probe"], "--probe: probe doesn't look like a module path"),
        (["--finalise", f"{HERE}.no_callable"], "--finalise: .*no_callable cannot be called"),
    ],
)
def test_an_option_that_makes_no_sense_is_an_error_and_nothing_is_swept(
    options: list[str], message: str
) -> None:
    detached("r1")
    with pytest.raises(CommandError, match=message):
        said("reap_runs", *options)
    assert statuses() == {"r1": "running"}


# prune_thread_runs


def test_old_ended_runs_of_all_scopes_are_deleted_but_for_the_latest_of_a_thread() -> None:
    for scope in ("a", "b", SHARED):
        for number in range(3):
            ended(f"r{number}", ago=(40 - number) * DAY, scope=scope)
    assert said("prune_thread_runs", "30", "--batch-size", "1") == "Deleted 6 runs.\n"
    assert list(ThreadRun.objects.values_list("run_id", flat=True)) == ["r2"] * 3


def test_what_is_not_old_enough_or_has_not_ended_stays() -> None:
    detached("r0", ago=40 * DAY)
    ended("r1", ago=29 * DAY)
    ended("r2", ago=28 * DAY)
    assert said("prune_thread_runs", "30") == "Deleted 0 runs.\n"


def test_only_the_scopes_and_the_database_that_are_named_are_pruned() -> None:
    for using in ("default", "other"):
        for scope in ("a", "b"):
            for number in range(2):
                ended(f"r{number}", ago=(40 - number) * DAY, scope=scope, using=using)
    assert said("prune_thread_runs", "30", "--database", "other", "--scope", "a") == (
        "Deleted 1 run.\n"
    )
    assert ThreadRun.objects.using("default").count() == 4
    assert ThreadRun.objects.using("other").filter(scope="b").count() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0"], "Give a number above 0"),
        (["soon"], "Give a number above 0"),
        (["1e300"], "Give a number up to 100,000,000"),
        (["30", "--batch-size", "0"], "Give a whole number from 1 to"),
        (["30", "--database", "nowhere"], "There is no database 'nowhere'"),
        (["30", "--scope", " "], "scope is blank"),
    ],
)
def test_arguments_that_make_no_sense_are_an_error_and_nothing_is_deleted(
    arguments: list[str], message: str
) -> None:
    ended("r1", ago=40 * DAY)
    ended("r2", ago=40 * DAY)
    with pytest.raises(CommandError, match=message):
        said("prune_thread_runs", *arguments)
    assert ThreadRun.objects.count() == 2


def test_silence_says_nothing() -> None:
    assert said("prune_thread_runs", "30", verbosity=0) == ""
