"""An end that somebody else wrote: nobody takes a run back out of it."""

from __future__ import annotations

from typing import Any

import pytest

from solid_runs.testing.signals import capture_status_changes
from tests.faults.tables import on_every_log, on_every_table
from tests.models import FreshRun

pytestmark = pytest.mark.django_db


@on_every_log
@pytest.mark.parametrize("held", ["pending", "running"])
def test_f18_a_worker_that_did_not_notice_the_end_cannot_undo_it(model: Any, held: str) -> None:
    run = model.objects.create()
    if held == "running":
        run.start()
    stale = [model.objects.get(pk=run.pk) for _ in range(4)]
    assert run.cancel()
    with capture_status_changes() as changes:
        assert stale[0].start() is False
        assert stale[1].finish("late", metadata={"late": True}) is False
        assert stale[2].fail("late") is False
        assert stale[3].cancel("late") is False
    assert changes == []
    assert {copy.status for copy in stale} == {"cancelled"}
    stored = model.objects.get(pk=run.pk)
    assert stored.status == "cancelled"
    assert stored.output is None
    assert stored.completed_at == run.completed_at


@on_every_log
def test_f18_events_that_come_late_are_kept_after_the_end(model: Any) -> None:
    run = model.objects.create()
    run.start()
    stale = model.objects.get(pk=run.pk)
    run.append_event("x", "before")
    assert run.cancel()
    stale.append_event("x", "late")
    stale.add_log("later still")
    stored = model.objects.get(pk=run.pk)
    assert stored.status == "cancelled"
    assert [entry.get("label", entry.get("message")) for entry in stored.events_log] == [
        "before",
        "late",
        "later still",
    ]


@on_every_table
def test_f18_a_save_by_the_stale_worker_leaves_the_end(model: Any) -> None:
    run = model.objects.create()
    run.start()
    stale = model.objects.get(pk=run.pk)
    assert run.cancel("enough")
    stale.output = "partial"
    stale.save()
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("cancelled", "partial")


def test_f19_ending_a_parent_leaves_its_children_alone() -> None:
    # Offering abandoned runs again comes with leases; here nothing but the parent may move.
    parent = FreshRun.objects.create()
    parent.start()
    children = [FreshRun(), FreshRun()]
    for child in children:
        child.subject = parent
        child.save()
        assert child.start()
    with capture_status_changes() as changes:
        assert parent.cancel()
    assert [change.run for change in changes] == [parent]
    stored = FreshRun.objects.filter(pk__in=[child.pk for child in children])
    assert [child.status for child in stored] == ["running", "running"]
    assert set(FreshRun.objects.in_progress()) == set(stored)
    assert all(child.finish("done") for child in stored)
