"""What is refused inside a transaction leaves that transaction usable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

from solid_runs.exceptions import (
    InvalidUsage,
    NotAList,
    NotAnObject,
    RunNotFound,
    StaleRun,
    UnknownStatusError,
)
from tests.faults.tables import on_every_table, set_log, set_raw
from tests.models import Document

pytestmark = pytest.mark.usefixtures("committed")


def refused_append(run: Any) -> None:
    set_log(run, '{"an": "object"}')
    with pytest.raises(NotAList):
        run.append_event("x", "y")
    with pytest.raises(NotAList):
        run.add_log("x")


def lost_transition(run: Any) -> None:
    type(run).objects.get(pk=run.pk).finish("first")
    assert run.finish("second", metadata={"k": 1}) is False
    assert run.start() is False


def stale_save(run: Any) -> None:
    type(run).objects.get(pk=run.pk).finish("first")
    run.status = "failed"
    with pytest.raises(StaleRun):
        run.save()


def metadata_into_a_list(run: Any) -> None:
    set_raw(run, "output_metadata", "[1]")
    with pytest.raises(NotAnObject):
        run.finish("x", metadata={"k": 1})


def transition_without_a_row(run: Any) -> None:
    type(run).objects.filter(pk=run.pk).delete()
    for call in (run.start, run.finish, lambda: run.append_event("x", "y")):
        with pytest.raises(RunNotFound):
            call()


def unknown_status(run: Any) -> None:
    integer = run._meta.get_field("status").store == "integer"
    set_raw(run, "status", "9" if integer else "paused")
    with pytest.raises(UnknownStatusError):
        run.start()


def bad_usage(run: Any) -> None:
    with pytest.raises(InvalidUsage):
        run.finish("x", input_tokens=-1)


def invalid_log_line(run: Any) -> None:
    # The entry and the validation are one transaction of their own.
    run.action_name = "x" * 300
    with pytest.raises(ValidationError):
        run.add_log("lost with the rest")
    assert type(run).objects.get(pk=run.pk).events_log == []


REFUSALS = [
    refused_append,
    lost_transition,
    stale_save,
    metadata_into_a_list,
    transition_without_a_row,
    unknown_status,
    bad_usage,
    invalid_log_line,
]


@on_every_table
@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda f: f.__name__)
def test_f23_the_surrounding_transaction_stays_usable(
    model: Any, refuse: Callable[[Any], None]
) -> None:
    run = model.objects.create()
    with transaction.atomic():
        Document.objects.create(title="before")
        refuse(run)
        Document.objects.create(title="after")
        other = model.objects.create()
        assert other.start()
        other.append_event("x", "y")
    assert set(Document.objects.values_list("title", flat=True)) == {"before", "after"}
    assert model.objects.get(pk=other.pk).status == "running"


def end_and_append(run: Any) -> None:
    assert run.finish("x")
    run.append_event("x", "y")


@on_every_table
def test_f23_a_refusal_that_leaves_the_block_rolls_all_of_it_back(model: Any) -> None:
    run = model.objects.create()
    set_log(run, "{}")
    with pytest.raises(NotAList), transaction.atomic():
        end_and_append(run)
    assert model.objects.get(pk=run.pk).status == "pending"
    assert run.status == "complete", "the copy does not know of the rollback"
    assert run.start() is True, "but the row decides"
