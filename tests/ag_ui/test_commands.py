"""The commands of the store: what they do, and what they say."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.stores.database import DatabaseStore

pytestmark = pytest.mark.django_db(databases=["default", "other"])

AGO = timedelta(minutes=10)


def said(*arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out, **options)
    return out.getvalue()


def started(run_id: str, thread_id: str = "t", using: str = "default") -> DatabaseStore:
    store = DatabaseStore(using)
    record = store.reserve("acme", thread_id, run_id, "d").record
    store.save(record.start(store.now()))
    return store


def ended(run_id: str, using: str = "default") -> None:
    store = started(run_id, using=using)
    record = store.find("acme", "t", run_id)
    assert record is not None
    store.save(record.finish("succeeded", store.now()))


def age(using: str = "default", by: timedelta = AGO) -> None:
    ReservedRun.objects.using(using).update(alive_at=timezone.now() - by)


def status(run_id: str, using: str = "default") -> str:
    return ReservedRun.objects.using(using).get(run_id=run_id).status


def test_a_silent_run_is_failed_and_named() -> None:
    started("r1")
    age()
    started("r2", "another")
    assert said("fail_stalled_ag_ui_runs", verbosity=2) == (
        "  r1 of t in acme\nFailed 1 stalled run.\n"
    )
    assert (status("r1"), status("r2")) == ("failed", "started")


def test_the_silence_can_be_given() -> None:
    started("r1")
    age()
    assert said("fail_stalled_ag_ui_runs", "--after", "3600") == "Failed 0 stalled runs.\n"
    assert status("r1") == "started"


def test_a_dry_run_names_what_it_leaves_alone() -> None:
    started("r1")
    age()
    assert said("fail_stalled_ag_ui_runs", "--dry-run") == (
        "  r1 of t in acme\nWould fail 1 stalled run.\n"
    )
    assert status("r1") == "started"


def test_no_more_are_failed_than_the_limit() -> None:
    for run_id in ("r1", "r2", "r3"):
        started(run_id, f"thread of {run_id}")
    age()
    assert said("fail_stalled_ag_ui_runs", "--limit", "2") == "Failed 2 stalled runs.\n"
    assert ReservedRun.objects.filter(status="started").count() == 1


def test_old_ended_runs_are_deleted_but_for_the_latest() -> None:
    for run_id in ("r1", "r2", "r3"):
        ended(run_id)
    age(by=timedelta(days=31))
    assert said("prune_ag_ui_runs", "30", "--batch-size", "1") == "Deleted 2 runs.\n"
    assert [run.run_id for run in ReservedRun.objects.all()] == ["r3"]


def test_what_is_not_old_enough_stays() -> None:
    ended("r1")
    ended("r2")
    age(by=timedelta(days=29))
    assert said("prune_ag_ui_runs", "30") == "Deleted 0 runs.\n"


def test_only_the_database_that_is_named_is_touched() -> None:
    for using in ("default", "other"):
        ended("r1", using)
        ended("r2", using)
        age(using, by=timedelta(days=31))
    assert said("prune_ag_ui_runs", "30", "--database", "other") == "Deleted 1 run.\n"
    assert ReservedRun.objects.using("default").count() == 2


@pytest.mark.parametrize("command", [["fail_stalled_ag_ui_runs"], ["prune_ag_ui_runs", "30"]])
def test_an_unknown_database_is_an_error_that_names_it(command: list[str]) -> None:
    with pytest.raises(CommandError, match="There is no database 'nowhere'"):
        said(*command, "--database", "nowhere")


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf", "soon", "1e300"])
def test_a_span_that_is_none_is_an_error(days: str) -> None:
    ended("r1")
    ended("r2")
    with pytest.raises(CommandError, match=r"Give a number (above 0|up to 100,000,000), not "):
        said("prune_ag_ui_runs", "--", days)
    assert ReservedRun.objects.count() == 2


def test_silence_says_nothing() -> None:
    assert said("prune_ag_ui_runs", "30", verbosity=0) == ""
    assert said("fail_stalled_ag_ui_runs", verbosity=0) == ""
