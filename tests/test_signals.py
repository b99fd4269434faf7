from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections, transaction

from solid_runs.models import AgentRunMixin
from solid_runs.signals import run_status_changed
from tests.models import ChildRun, FreshRun, FreshRunProxy, PlatformRun
from tests.rows import EVERY_SHAPE, Change, every_shape, full_shapes, get, listening, make, row

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]


@contextmanager
def connected(receiver: Any, **to: Any) -> Iterator[None]:
    run_status_changed.connect(receiver, **to)
    try:
        yield
    finally:
        run_status_changed.disconnect(receiver, **to)


def moves(heard: list[Change]) -> list[tuple[str, str]]:
    return [(change.from_status, change.to_status) for change in heard]


@pytest.fixture
def commit(django_capture_on_commit_callbacks: Any) -> Any:
    """A block whose end stands for the commit, inside the test's transaction."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


# What it says


@every_shape
def test_a_change_tells_who_changed_from_what_to_what(model: Model, commit: Any) -> None:
    run = make(model)

    with listening() as heard, commit():
        run.start()

    [change] = heard
    trace_id = row(run).get("trace_id")
    assert change == Change(run.pk, "pending", "running", trace_id, "default", model)


@every_shape
def test_every_move_tells_of_itself(model: Model, commit: Any) -> None:
    run, other, third = make(model), make(model), make(model)

    with listening() as heard, commit():
        run.start()
        run.finish("done")
        other.start()
        other.fail("no")
        other.restart()
        other.cancel()
        third.finish("at once")

    assert moves(heard) == [
        ("pending", "running"),
        ("running", "complete"),
        ("pending", "running"),
        ("running", "failed"),
        ("failed", "running"),
        ("running", "cancelled"),
        ("pending", "complete"),
    ]


@full_shapes
def test_the_from_status_is_the_rows_and_not_that_of_a_stale_copy(
    model: Model, commit: Any
) -> None:
    stale = make(model)
    get(stale).start()

    with listening() as heard, commit():
        stale.finish("done")

    assert moves(heard) == [("running", "complete")]


@full_shapes
def test_the_trace_id_that_the_transition_gave_is_the_one_that_is_sent(
    model: Model, commit: Any
) -> None:
    run = make(model)
    model.objects.filter(pk=run.pk).update(trace_id=None)
    run = get(run)

    with listening() as heard, commit():
        run.start()

    assert heard[0].trace_id == row(run)["trace_id"] is not None


def test_the_sender_is_the_model_whose_table_holds_the_status(commit: Any) -> None:
    proxy = FreshRunProxy.objects.create()
    child = ChildRun.objects.create()

    with listening(sender=FreshRun) as heard, commit():
        proxy.start()
        child.start()

    assert [(change.pk, change.sender) for change in heard] == [
        (proxy.pk, FreshRun),
        (child.pk, FreshRun),
    ]


def test_a_receiver_may_listen_to_one_model(commit: Any) -> None:
    with listening(sender=PlatformRun) as heard, commit():
        make(FreshRun).start()
        run = make(PlatformRun)
        run.start()

    assert [change.pk for change in heard] == [run.pk]


# When


@every_shape
def test_creation_and_appends_and_saves_send_nothing(model: Model, commit: Any) -> None:
    with listening() as heard, commit():
        run = model.objects.create()
        run.append_event("tool", "search")
        run.add_log("asking")
        run.save()
        model.objects.create(status="complete")

    assert heard == []


@every_shape
def test_repeats_and_saves_between_send_nothing(model: Model, commit: Any) -> None:
    """F28."""
    run = make(model)

    with listening() as heard, commit():
        assert run.start() is True
        assert run.start() is False
        run.append_event("tool", "search")
        run.save()
        assert run.finish("x") is True
        assert run.finish("x") is False
        assert run.cancel() is False

    assert moves(heard) == [("pending", "running"), ("running", "complete")]


@every_shape
def test_two_changes_in_one_transaction_are_told_as_they_were(model: Model, commit: Any) -> None:
    """F29."""
    run = make(model)

    with listening() as heard, commit():
        with transaction.atomic():
            run.start()
            run.finish("x")
        run.trace_id = "changed after"

    assert moves(heard) == [("pending", "running"), ("running", "complete")]
    assert {change.trace_id for change in heard} == {row(run).get("trace_id")}


@every_shape
def test_nothing_is_sent_before_the_commit(model: Model, commit: Any) -> None:
    run = make(model)

    with listening() as heard:
        with commit():
            run.start()
            assert heard == []
        assert len(heard) == 1


@every_shape
def test_a_rolled_back_savepoint_sends_nothing(model: Model, commit: Any) -> None:
    run = make(model)

    with listening() as heard, commit():
        with transaction.atomic():
            run.start()
            transaction.set_rollback(True)
        with transaction.atomic():
            get(run).cancel()

    assert moves(heard) == [("pending", "cancelled")]


def test_a_change_that_was_rolled_back_can_be_made_again(commit: Any) -> None:
    run = make(PlatformRun)
    with transaction.atomic():
        run.finish("lost")
        transaction.set_rollback(True)
    assert run.status == "complete"  # the copy cannot know

    with listening() as heard, commit():
        assert run.finish("kept") is True

    assert moves(heard) == [("pending", "complete")]
    assert row(run)["output"] == "kept"


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_a_transaction_that_fails_sends_nothing_and_a_commit_sends_once(
    model: Model, committed: None
) -> None:
    """F27, with real commits."""
    run = make(model)

    with listening() as heard:
        with transaction.atomic():
            run.finish("x")
            transaction.set_rollback(True)
        assert heard == []

        with transaction.atomic():
            assert get(run).finish("x") is True
            assert heard == []
        assert moves(heard) == [("pending", "complete")]


@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_without_a_transaction_it_is_sent_at_once(model: Model, committed: None) -> None:
    run = make(model)

    with listening() as heard:
        run.start()
        assert moves(heard) == [("pending", "running")]


def test_a_receiver_finds_the_change_committed_for_everybody(committed: None) -> None:
    run = make(FreshRun)
    seen: list[str] = []

    def read_elsewhere() -> None:
        try:
            seen.append(FreshRun.objects.get(pk=run.pk).status)
        finally:
            connections.close_all()

    def receiver(**kwargs: Any) -> None:
        thread = Thread(target=read_elsewhere)  # with a connection of its own
        thread.start()
        thread.join(10)

    with connected(receiver), transaction.atomic():
        run.finish("x")

    assert seen == ["complete"]


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_it_fires_on_the_database_of_the_row() -> None:
    run = FreshRun(status="pending")
    run.save(using="other")

    with listening() as heard:
        with transaction.atomic(using="other"):
            run.start()
            with transaction.atomic(using="default"):
                pass  # a commit elsewhere is not that of the row
            assert heard == []
        assert [(change.using, change.to_status) for change in heard] == [("other", "running")]


# Receivers that raise


@pytest.mark.parametrize("model", EVERY_SHAPE[:1] + EVERY_SHAPE[3:4])
def test_a_receiver_that_raises_is_logged_and_stops_nobody(
    model: Model, committed: None, caplog: pytest.LogCaptureFixture
) -> None:
    """F26."""
    run = make(model)

    def broken(**kwargs: Any) -> None:
        raise RuntimeError("broken receiver")

    with connected(broken), listening() as heard, caplog.at_level(logging.ERROR):
        assert run.finish("x") is True

    assert moves(heard) == [("pending", "complete")]
    [record] = [record for record in caplog.records if record.exc_info]
    assert "broken" in record.getMessage()
    assert "broken receiver" in str(record.exc_info and record.exc_info[1])
    assert row(run)["status"] == "complete"


def test_other_callbacks_of_the_commit_still_run(committed: None) -> None:
    run = make(PlatformRun)
    ran: list[str] = []

    def broken(**kwargs: Any) -> None:
        raise RuntimeError("broken receiver")

    with connected(broken), transaction.atomic():
        run.finish("x")
        transaction.on_commit(lambda: ran.append("after"))

    assert ran == ["after"]


def test_a_database_error_of_a_receiver_leaves_the_connection_usable(committed: None) -> None:
    run = make(PlatformRun)

    def broken(**kwargs: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column FROM agent_runs")

    with connected(broken):
        assert run.start() is True
        assert run.finish("x") is True

    assert row(run)["status"] == "complete"


def test_a_receiver_may_write_to_the_run(committed: None) -> None:
    run = make(PlatformRun)

    def receiver(run: Any, to_status: str, **kwargs: Any) -> None:
        run.append_event("status", to_status)
        if to_status == "running":
            run.finish("at once")

    with connected(receiver):
        run.start()

    assert row(run)["status"] == "complete"
    assert [entry["label"] for entry in get(run).events_log] == ["running", "complete"]


def test_an_async_receiver_hears_of_it(commit: Any) -> None:
    run = make(PlatformRun)
    heard: list[str] = []

    async def receiver(to_status: str, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        heard.append(to_status)

    with connected(receiver), commit():
        run.start()

    assert heard == ["running"]
