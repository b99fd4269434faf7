"""run_status_changed: when it is sent, what it says, and receivers that raise."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from solid_runs.signals import run_status_changed
from solid_runs.testing.signals import capture_status_changes
from tests.faults.tables import on_every_table

pytestmark = pytest.mark.usefixtures("committed")


class Boom(Exception):
    pass


@pytest.fixture
def first_raises() -> Iterator[None]:
    def receiver(**kwargs: Any) -> None:
        raise Boom("receiver")

    run_status_changed.connect(receiver)
    yield
    run_status_changed.disconnect(receiver)


@on_every_table
@pytest.mark.usefixtures("first_raises")
def test_f26_a_receiver_that_raises_stops_nobody_and_is_logged(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = model.objects.create()
    callbacks = []
    caplog.set_level(logging.ERROR)
    with capture_status_changes() as changes, transaction.atomic():
        assert run.finish("x") is True
        transaction.on_commit(lambda: callbacks.append("ran"))
    assert [change.to_status for change in changes] == ["complete"]
    assert callbacks == ["ran"]
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.exc_info
    assert record.exc_info[0] is Boom
    assert model.objects.get(pk=run.pk).status == "complete"


@on_every_table
@pytest.mark.usefixtures("first_raises")
def test_f26_a_receiver_that_raises_leaves_save_alone_too(model: Any) -> None:
    run = model.objects.create()
    run.status = "running"
    with capture_status_changes() as changes:
        run.save()
    assert [change.to_status for change in changes] == ["running"]


@on_every_table
def test_f27_what_was_rolled_back_is_not_told(model: Any) -> None:
    run = model.objects.create()
    with capture_status_changes() as changes:
        with transaction.atomic():
            assert run.finish("x")
            transaction.set_rollback(True)
        with transaction.atomic(), transaction.atomic():
            assert run.finish("x")
            transaction.set_rollback(True)
        assert changes == []
        assert model.objects.get(pk=run.pk).status == "pending"
        assert run.finish("x"), "the row decides, whatever this copy shows"
    assert len(changes) == 1


@on_every_table
def test_f27_it_is_sent_after_the_outer_commit_and_others_see_the_end(model: Any) -> None:
    run = model.objects.create()
    seen = []

    def read() -> str:
        try:
            return str(model.objects.get(pk=run.pk).status)
        finally:
            connection.close()

    def receiver(**kwargs: Any) -> None:
        with ThreadPoolExecutor(1) as pool:  # a thread has a connection of its own
            seen.append(pool.submit(read).result())

    run_status_changed.connect(receiver)
    try:
        with transaction.atomic():
            with transaction.atomic():
                assert run.finish("x")
            assert seen == []
    finally:
        run_status_changed.disconnect(receiver)
    assert seen == ["complete"]


@on_every_table
def test_f28_each_change_is_told_once_and_nothing_else_is(model: Any) -> None:
    with capture_status_changes() as changes:
        run = model.objects.create()
        assert run.start()
        run.append_event("x", "y")
        run.add_log("z")
        run.save()
        run.refresh_from_db()
        run.save()
        assert run.finish("x") is True
        assert run.finish("x") is False
        run.save()
    assert [(c.from_status, c.to_status) for c in changes] == [
        ("pending", "running"),
        ("running", "complete"),
    ]


@on_every_table
def test_f28_a_change_made_by_save_is_told_once(model: Any) -> None:
    run = model.objects.create()
    run.status = "running"
    with capture_status_changes() as changes:
        run.save()
        run.save()
    assert [(c.from_status, c.to_status) for c in changes] == [("pending", "running")]


@on_every_table
def test_f29_two_changes_in_one_transaction_are_told_as_they_were(model: Any) -> None:
    run = model.objects.create()
    trace = run.trace_id
    with capture_status_changes() as changes, transaction.atomic():
        run.start()
        run.finish("x")
        run.trace_id = "changed afterwards"
        assert changes == []
    assert [(c.from_status, c.to_status, c.trace_id) for c in changes] == [
        ("pending", "running", trace),
        ("running", "complete", trace),
    ]


@on_every_table
def test_f29_the_status_it_came_from_is_the_row_s_not_the_copy_s(model: Any) -> None:
    run = model.objects.create()
    stale = model.objects.get(pk=run.pk)
    run.start()
    with capture_status_changes() as changes:
        assert stale.finish("x")
    assert [(c.from_status, c.to_status) for c in changes] == [("running", "complete")]
