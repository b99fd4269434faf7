"""Appends that race, logs whose column holds something odd, and logs that grow without end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from solid_runs.columns import columns_of, facts
from solid_runs.event_logs import column
from solid_runs.exceptions import NotAList
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.models import AgentRunMixin
from solid_runs.storable import compact_json
from tests.faults.tables import apart, log_column, on_every_log, raw, set_log, set_raw, table

EMPTY = [None, "null", "[]", " [ ] ", '""', '"[]"']
"""The faces of an empty log."""
NO_LISTS = ["{}", '{"0": "kept"}', "7", "true", '"text"']


@on_every_log
def test_f14_two_writers_on_one_run_lose_no_event(model: Any, committed: None) -> None:
    # With processes, and with Rails as one of the writers, in tests/test_races.py.
    run = model.objects.create()
    barrier = Barrier(2)

    def write(writer: str) -> None:
        copy = model.objects.get(pk=run.pk)
        barrier.wait()
        try:
            for n in range(50):
                copy.append_event("e", writer, eid=f"{writer}-{n}")
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, "ab"))
    eids = [entry["eid"] for entry in model.objects.get(pk=run.pk).events_log]
    assert len(eids) == 100
    for writer in "ab":
        assert [e for e in eids if e.startswith(writer)] == [f"{writer}-{n}" for n in range(50)]


@pytest.mark.django_db
@on_every_log
@pytest.mark.parametrize("stored", EMPTY)
def test_f15_every_face_of_an_empty_log_takes_an_event(model: Any, stored: str | None) -> None:
    run = model.objects.create()
    set_log(run, stored)
    assert model.objects.get(pk=run.pk).events_log == []
    first = run.append_event("x", "first")
    second = run.append_event("x", "second")
    assert model.objects.get(pk=run.pk).events_log == [first, second]
    assert json.loads(raw(run, log_column(model))) == [first, second]


class TextRun(AgentRunMixin):
    """A log in a text column, as older writers have it, which nothing checks."""

    events_column = "log"

    status = RunStatusField(store="name")
    log = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "fault_text_runs"


@pytest.fixture
def text_run(transactional_db: None) -> Iterator[TextRun]:
    with table("fault_text_runs", "status varchar(20), log text"):
        yield TextRun.objects.create()


@pytest.mark.parametrize("stored", [*EMPTY, "", " "])
def test_f15_a_text_column_takes_an_event_over_every_face_of_an_empty_log(
    text_run: TextRun, stored: str | None
) -> None:
    set_raw(text_run, "log", stored)
    assert TextRun.objects.get(pk=text_run.pk).events_log == []
    entry = text_run.append_event("x", "first")
    assert TextRun.objects.get(pk=text_run.pk).events_log == [entry]


@pytest.mark.parametrize("stored", [*NO_LISTS, "no JSON at all", "[1, 2"])
def test_f15_a_text_column_keeps_what_is_no_list(text_run: TextRun, stored: str) -> None:
    set_raw(text_run, "log", stored)
    with pytest.raises(NotAList):
        text_run.append_event("x", "lost?")
    assert raw(text_run, "log") == stored
    assert TextRun.objects.get(pk=text_run.pk).events_log == []
    assert text_run.finish() is True


@pytest.mark.django_db
@on_every_log
@pytest.mark.parametrize("stored", NO_LISTS)
def test_f15_what_is_no_list_is_refused_and_left_alone(model: Any, stored: str) -> None:
    run = model.objects.create()
    set_log(run, stored)
    before = raw(run, log_column(model))
    with pytest.raises(NotAList, match="left as it is") as refused:
        run.append_event("x", "lost?")
    assert (refused.value.pk, refused.value.column) == (run.pk, log_column(model))
    with pytest.raises(NotAList):
        run.add_log("lost?")
    assert raw(run, log_column(model)) == before
    assert model.objects.get(pk=run.pk).events_log == []
    assert run.finish() is True, "the run can still end"


@pytest.mark.django_db
@on_every_log
def test_f56_a_log_past_its_cap_ends_in_a_marker_and_the_run_can_end(model: Any) -> None:
    run = model.objects.create()
    caps = {"COLUMN_LOG_ENTRIES": 40, "TABLE_LOG_ENTRIES": 40}
    with override_settings(SOLID_RUNS=caps):
        said = [run.append_event("tool", str(n)) for n in range(100)]
        assert run.finish() is True
        run.append_event("tool", "after the end")
    *stored, marker = model.objects.get(pk=run.pk).events_log
    assert stored == said[:40]
    assert (marker["kind"], marker["label"]) == ("truncated", "log")
    assert model.objects.get(pk=run.pk).status == "complete"


@pytest.mark.django_db
@on_every_log
def test_f56_an_event_of_thirty_megabytes_is_cut(model: Any) -> None:
    run = model.objects.create()
    huge = "x" * 30_000_000
    first = run.append_event("tool", "search", detail=huge)
    second = run.append_event("tool", huge, eid=huge, detail={"rows": [huge]})
    third = run.add_log(huge)
    assert model.objects.get(pk=run.pk).events_log == [first, second, third]
    assert first["detail"] == "x" * 1200
    assert all(len(compact_json(entry).encode()) <= 24_000 for entry in (second, third))
    assert run.finish() is True


@pytest.mark.django_db
@on_every_log
def test_f56_a_column_that_may_grow_no_more_takes_a_marker_and_the_run_can_end(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ``max_allowed_packet = 1M``: past that MariaDB's functions fail, or answer NULL."""
    run = model.objects.create()
    log = columns_of(model).log
    if connection.vendor != "mysql":
        assert facts(log, connection).capacity is None, "the cap on entries is enough"
        return
    small = facts(log, connection)._replace(capacity=2**19)
    monkeypatch.setattr(column, "facts", lambda field, connection: small)
    said = [run.append_event("tool", "é" * 11_900) for _ in range(30)]
    assert run.finish() is True
    stored = model.objects.get(pk=run.pk).events_log
    if run.events_model is not None:
        assert stored == said
        return
    assert stored[:-1] == said[: len(stored) - 1]
    assert len(stored) == 22
    assert stored[-1]["kind"] == "truncated"
    assert stored[-1]["detail"].startswith("The log is full at 21 entries")
    assert len(raw(run, log.column).encode()) <= 2**19
