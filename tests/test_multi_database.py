"""Runs that live on another database than `default`: by a router, or by `using()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, models, transaction
from django.db.models.signals import post_save, pre_save
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from solid_runs.event_logs import column
from solid_runs.exceptions import RunNotFound, StaleRun
from solid_runs.statuses import RunStatus
from tests.models import (
    ChildRun,
    Document,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableChildRun,
    TableRun,
    TableRunProxy,
)
from tests.rows import listening

pytestmark = pytest.mark.django_db(databases=["default", "other"])
commits = pytest.mark.usefixtures("committed")
"""For signals, and for locks: one outside a transaction of its own alias fails only so."""

SHAPES = [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TableRun]
ODD_KEYS = {'odd "key" ключ': 1, "model": "m"}
"""On SQLite these are merged under a lock, elsewhere in the UPDATE itself."""

Make: TypeAlias = Callable[..., Any]


class ToOther:
    """Everything of this app lives on `other`."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        return "other"

    db_for_write = db_for_read


class ReadsFromReplica:
    """`other` stands for a replica: it is read, never written."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        return "other"

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str:
        return "default"

    def allow_relation(self, *args: Any, **hints: Any) -> bool:
        return True


def routed(router: type) -> AbstractContextManager[Any]:
    return override_settings(DATABASE_ROUTERS=[f"{__name__}.{router.__name__}"])


@pytest.fixture(params=["router", "using"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Creates a run on `other`: sent there by a router, or by hand."""
    if request.param == "router":
        with routed(ToOther):
            yield lambda model, **values: model.objects.create(**values)
    else:
        yield lambda model, **values: model.objects.using("other").create(**values)


@contextmanager
def untouched(alias: str) -> Iterator[None]:
    """Nothing is said to this database, not even the beginning of a transaction."""
    with CaptureQueriesContext(connections[alias]) as captured:
        yield
    assert [query["sql"] for query in captured.captured_queries] == []


def on(alias: str, run: models.Model) -> Any:
    return type(run)._base_manager.using(alias).get(pk=run.pk)


@commits
@pytest.mark.parametrize("model", SHAPES)
def test_a_whole_life_says_nothing_to_default(model: Any, make: Make) -> None:
    with untouched("default"), listening() as heard:
        run = make(model, input_prompt="Find the total")
        assert run.start()
        event = run.append_event("tool", "search", eid="1")
        line = run.add_log("asking")
        assert run.events_log == [event, line]
        assert [numbered.entry for numbered in run.events_after(1)] == [line]
        run.input_prompt = "Find the sum"
        run.save()
        assert run.finish("done", metadata=ODD_KEYS, input_tokens=1) is True
        assert run.fail("late") is False
        stored = on("other", run)
    assert (stored.status, stored.output) == (RunStatus.COMPLETE, "done")
    assert stored.output_metadata == ODD_KEYS
    assert stored.input_prompt == "Find the sum"
    assert stored.events_log == [event, line]
    assert [(change.to_status, change.using) for change in heard] == [
        ("running", "other"),
        ("complete", "other"),
    ]


@commits
def test_a_cancel_and_a_restart_say_nothing_to_default(make: Make) -> None:
    with untouched("default"), listening() as heard:
        run = make(PlatformRun, status=RunStatus.RUNNING)
        stale = on("other", run)
        assert run.cancel()
        assert stale.cancel() is False
        assert stale.restart()
        assert stale.fail(ValueError("broken"))
    assert on("other", run).status is RunStatus.FAILED
    assert [change.using for change in heard] == ["other"] * 3


@commits
@pytest.mark.parametrize("model", [FreshRun, MinimalRun])
def test_a_log_that_is_rewritten_under_a_lock_locks_on_its_own_database(
    model: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column, "APPEND", {})
    run = make(model, status=RunStatus.RUNNING)
    with (
        untouched("default"),
        CaptureQueriesContext(connections["other"]) as captured,
    ):
        first, second = run.append_event("tool", "x"), run.add_log("y")
    assert on("other", run).events_log == [first, second]
    locks = [query["sql"] for query in captured.captured_queries if "FOR UPDATE" in query["sql"]]
    assert len(locks) == (2 if connections["other"].features.has_select_for_update else 0)


@commits
def test_metadata_that_is_merged_under_a_lock_locks_on_its_own_database(make: Make) -> None:
    run = make(PlatformJsonRun, status=RunStatus.RUNNING, output_metadata={"kept": 1})
    if connections["other"].vendor == "postgresql":
        with connections["other"].cursor() as cursor:  # on which every cast to jsonb fails
            cursor.execute(r"""UPDATE agent_runs_json SET output_metadata = '{"kept": "\u0000"}'""")
    with untouched("default"):
        assert run.finish(metadata=ODD_KEYS)
    stored = on("other", run)
    assert set(stored.output_metadata) == {"kept", *ODD_KEYS}
    assert stored.status is RunStatus.COMPLETE


@commits
@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_a_status_is_saved_where_the_run_lives(model: Any, make: Make) -> None:
    with untouched("default"), listening() as heard:
        run = make(model, status=RunStatus.RUNNING)
        stale = on("other", run)
        run.status = RunStatus.COMPLETE
        run.save()
        stale.status = RunStatus.FAILED
        with pytest.raises(StaleRun):
            stale.save()
    assert on("other", run).status is RunStatus.COMPLETE
    assert [(change.to_status, change.using) for change in heard] == [("complete", "other")]


@commits
@pytest.mark.parametrize(
    ("model", "owner"),
    [
        (FreshRunProxy, FreshRun),
        (ChildRun, FreshRun),
        (TableRunProxy, TableRun),
        (TableChildRun, TableRun),
    ],
)
def test_a_proxy_and_a_child_live_there_too(model: Any, owner: Any, make: Make) -> None:
    with untouched("default"), listening() as heard:
        run = make(model)
        assert run.start()
        event = run.append_event("tool", "x")
        run.status = RunStatus.FAILED
        run.save()
    stored = on("other", run)
    assert (stored.status, stored.events_log) == (RunStatus.FAILED, [event])
    assert [(change.using, change.sender) for change in heard] == [("other", owner)] * 2


def test_the_save_signals_of_add_log_name_the_database(make: Make) -> None:
    run = make(FreshRun)
    heard = []

    def receiver(using: str, **facts: Any) -> None:
        heard.append(using)

    for signal in (pre_save, post_save):
        signal.connect(receiver, sender=FreshRun)
    try:
        run.add_log("x")
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(receiver, sender=FreshRun)
    assert heard == ["other", "other"]


@commits
def test_the_signal_waits_for_the_commit_of_its_own_database(make: Make) -> None:
    run = make(FreshRun)

    def roll_back() -> None:
        with transaction.atomic(using="other"):
            assert run.finish()
            raise ZeroDivisionError

    with listening() as heard:
        with transaction.atomic(using="other"):
            with transaction.atomic(using="default"):
                run.start()
            assert heard == []
        assert [change.to_status for change in heard] == ["running"]
        with pytest.raises(ZeroDivisionError):
            roll_back()
    assert len(heard) == 1
    assert on("other", run).status is RunStatus.RUNNING


def test_the_queryset_adds_up_on_its_own_database(make: Make) -> None:
    run = make(FreshRun, input_tokens=3, output_tokens=4)
    with untouched("default"):
        assert FreshRun.objects.using("other").for_status("pending").total_tokens_sum() == 7
        assert FreshRun.objects.using("other").recent().get() == run
    assert FreshRun.objects.using("default").count() == 0


def test_a_lost_transition_is_two_statements_there(make: Make) -> None:
    run = make(PlatformRun)
    stale = on("other", run)
    assert run.cancel()
    with CaptureQueriesContext(connections["other"]) as captured, untouched("default"):
        assert stale.cancel() is False
    assert len(captured) == 2


@commits
def test_async_twins_live_there_too(make: Make) -> None:
    run = make(FreshRun)

    async def work() -> list[Any]:
        await run.astart()
        await run.aappend_event("tool", "x")
        await run.aadd_log("y")
        await run.afinish("done", metadata=ODD_KEYS)
        return await run.aevents_log()

    with untouched("default"), listening() as heard:
        assert len(async_to_sync(work)()) == 2
    assert [change.using for change in heard] == ["other", "other"]


def test_a_run_of_the_same_key_on_default_is_left_alone(make: Make) -> None:
    run = make(FreshRun)
    twin = FreshRun(pk=run.pk)
    twin.save(using="default", force_insert=True)
    before = FreshRun.objects.using("default").values().get(pk=run.pk)
    run.start()
    run.append_event("tool", "x")
    run.finish("done")
    assert FreshRun.objects.using("default").values().get(pk=run.pk) == before
    assert on("other", run).status is RunStatus.COMPLETE


@pytest.mark.parametrize("model", [PlatformJsonRun, GeneratorRun, FreshRun, MinimalRun])
def test_a_copy_that_appended_takes_the_log_in_its_column_to_another_database(model: Any) -> None:
    run = model.objects.create()
    entry = run.append_event("tool", "x")

    run.save(using="other")

    assert on("other", run).events_log == [entry]
    assert on("default", run).events_log == [entry]


# A replica


@pytest.fixture(params=[FreshRun, TableRun])
def replicated(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A run on the primary, and the copy of its row that a replica has."""
    model = request.param
    with routed(ReadsFromReplica):
        run = model.objects.using("default").create(input_prompt="Find the total")
        model.objects.using("other").bulk_create([on("default", run)])
        copy = model.objects.get(pk=run.pk)
        assert copy._state.db == "other"
        yield copy


@commits
def test_a_run_read_from_a_replica_is_written_to_the_primary(replicated: Any) -> None:
    stored_there = type(replicated).objects.filter(pk=replicated.pk).values()
    before = stored_there.get()
    with listening() as heard:
        assert replicated.start()
        event = replicated.append_event("tool", "x")
        line = replicated.add_log("y")
        assert replicated.finish("done", metadata=ODD_KEYS)
    assert stored_there.get() == before, "the replica was written"
    stored = on("default", replicated)
    assert (stored.status, stored.output) == (RunStatus.COMPLETE, "done")
    assert stored.output_metadata == ODD_KEYS
    assert stored.events_log == [event, line]
    assert [(change.to_status, change.using) for change in heard] == [
        ("running", "default"),
        ("complete", "default"),
    ]


@commits
def test_the_loser_is_told_by_the_primary_and_not_by_a_late_replica(replicated: Any) -> None:
    on("default", replicated).cancel()
    assert type(replicated).objects.get(pk=replicated.pk).status is RunStatus.PENDING
    assert replicated.finish("done") is False
    assert replicated.status is RunStatus.CANCELLED
    with listening() as heard:
        assert replicated.restart()
    assert on("default", replicated).status is RunStatus.RUNNING
    assert [change.using for change in heard] == ["default"]


def test_what_was_written_is_read_back_from_the_primary(replicated: Any) -> None:
    event = replicated.append_event("tool", "x")
    assert [numbered.entry for numbered in replicated.events_after(0)] == [event]
    assert replicated.events_log == [event]
    assert replicated.finish(metadata={"model": "m"})
    assert replicated.output_metadata == {"model": "m"}


@pytest.mark.parametrize("using", [None, "default"])
def test_a_save_of_a_run_read_from_a_replica_updates_the_primary(
    using: str | None, replicated: Any
) -> None:
    on("default", replicated).append_event("tool", "x")
    replicated.input_prompt = "Find the sum"
    replicated.save(using=using)
    stored = on("default", replicated)
    assert (stored.input_prompt, len(stored.events_log)) == ("Find the sum", 1)
    assert type(replicated).objects.get(pk=replicated.pk).input_prompt == "Find the total"


def test_a_status_saved_from_a_replica_is_judged_by_the_primary(replicated: Any) -> None:
    on("default", replicated).cancel()
    replicated.status = RunStatus.RUNNING
    with pytest.raises(StaleRun):
        replicated.save()
    assert on("default", replicated).status is RunStatus.CANCELLED


def test_a_run_that_is_gone_from_the_primary_is_not_found(replicated: Any) -> None:
    type(replicated).objects.using("default").all().delete()
    for act in (replicated.start, replicated.finish, replicated.cancel):
        with pytest.raises(RunNotFound):
            act()
    with pytest.raises(RunNotFound):
        replicated.append_event("tool", "x")


# Subjects


@pytest.mark.parametrize("model", [FreshRun, GeneratorRun])
def test_a_subject_is_looked_for_where_the_run_lives(model: Any) -> None:
    Document.objects.create(pk=5, title="of default")
    Document.objects.using("other").create(pk=5, title="of other")
    runs = [
        model.objects.using(alias).create(runnable_type="Document", runnable_id=5)
        for alias in ("default", "other")
    ]

    assert [run.subject.title for run in runs] == ["of default", "of other"]


def test_a_router_says_where_subjects_are() -> None:
    Document.objects.create(pk=5, title="of default")
    Document.objects.using("other").create(pk=5, title="of other")
    run = FreshRun.objects.create(runnable_type="Document", runnable_id="5")

    with override_settings(DATABASE_ROUTERS=[ToOther()]):
        assert run.subject.title == "of other"
