"""Where two processes, two threads or two versions of a host see one log differently."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest
from django.db import connection, connections
from django.test import override_settings

from solid_runs.exceptions import LogInTable
from solid_runs.mixin import AgentRunMixin
from tests.models import FreshRun, GeneratorRun, PlatformJsonRun, TableRun, TableRunEvent
from tests.rows import get, make, store_log

pytestmark = pytest.mark.django_db

commits = pytest.mark.usefixtures("committed")
both_logs = pytest.mark.parametrize("model", [FreshRun, TableRun])


def labels(run: AgentRunMixin) -> list[str]:
    return [entry["label"] for entry in get(run).events_log]


# A process that does not know of the table yet


def test_a_process_without_the_table_refuses_what_it_would_hide() -> None:
    """As a deployment that has not reached every process: its append would never be shown."""
    run = make(FreshRun, "running")
    FreshRun.objects.filter(pk=run.pk).update(events_count=1)

    with pytest.raises(LogInTable, match=r"FreshRun has no events_model here"):
        run.append_event("tool", "hidden")
    with pytest.raises(LogInTable):
        get(run).events_after()
    with pytest.raises(LogInTable):
        _ = get(run).events_log
    assert get(run).finish("done") is True


# A save over a row that was not read


@both_logs
def test_a_run_built_over_a_row_leaves_its_log_alone(model: Any) -> None:
    run = make(model)
    run.append_event("tool", "kept")
    again = model(pk=run.pk, agent_name="built", created_at=run.created_at)

    again.save()
    again.append_event("tool", "added")

    assert (get(run).agent_name, labels(run)) == ("built", ["kept", "added"])
    assert [seq for seq, _ in get(run).events_after()] == [1, 2]


def test_a_clone_can_be_made_after_an_append_to_the_table() -> None:
    run = make(TableRun)
    run.append_event("tool", "of the first")
    first = run.pk
    run.pk, run._state.adding = None, True

    run.save()
    run.append_event("tool", "of the clone")

    assert labels(run) == ["of the clone"]
    assert labels(TableRun.objects.get(pk=first)) == ["of the first"]


# Lists as nobody should write them


@pytest.mark.parametrize("model", [FreshRun, PlatformJsonRun, GeneratorRun])
def test_a_list_that_was_encoded_twice_goes_on_as_a_list(model: Any) -> None:
    run = make(model)
    store_log(run, '"[{\\"label\\":\\"old\\"}]"')

    run.append_event("tool", "new")

    assert labels(run) == ["old", "new"]


@pytest.mark.parametrize("model", [FreshRun, PlatformJsonRun, GeneratorRun])
@pytest.mark.parametrize(
    "text", ["[" + " " * 60 + "]", "[" + "\n" * 200 + "]", ' [{"label":"a"}] \n']
)
def test_spaces_in_a_list_are_no_entries(model: Any, text: str) -> None:
    run = make(model)
    store_log(run, text)
    before = labels(run)

    run.append_event("tool", "b")
    run.append_event("tool", "c")

    assert labels(run) == [*before, "b", "c"]


# A buffer between threads and processes


@commits
@both_logs
def test_two_flushes_at_once_keep_the_order(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run, write = make(model), AgentRunMixin._write_entries
    is_first = [True]

    def slow(self: Any, entries: Any, **also: Any) -> None:
        if is_first[0]:
            is_first[0] = False
            time.sleep(0.3)
        write(self, entries, **also)

    monkeypatch.setattr(AgentRunMixin, "_write_entries", slow)
    monkeypatch.setattr("solid_runs.buffers.STATEMENT_ENTRIES", 5)

    def flush() -> None:
        buffer.flush()
        connection.close()

    with run.buffer_events(max_entries=100) as buffer:
        for n in range(10):
            run.append_event("tool", str(n))
        threads = [threading.Thread(target=flush) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert labels(run) == [str(n) for n in range(10)]


@commits
@both_logs
def test_what_worker_threads_collect_is_flushed_by_number(model: Any) -> None:
    run = make(model)

    def work() -> None:
        for n in range(25):
            run.append_event("tool", str(n))
        connections.close_all()

    with run.buffer_events(max_entries=10, max_age=600):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        assert len(labels(run)) == 20
    assert len(labels(run)) == 25


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="its connections cannot be cut")
@commits
@both_logs
def test_a_connection_that_died_in_a_block_is_opened_again(model: Any) -> None:
    run = make(model)
    with run.buffer_events(max_entries=2, max_age=600) as buffer:
        run.append_event("tool", "a")
        kill_connection()
        run.append_event("tool", "b")
        assert len(buffer.pending) == 2
        buffer.flush()
    assert labels(run) == ["a", "b"]


def kill_connection() -> None:
    """As a server that restarts, or a firewall."""
    ask, kill = {
        "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%s)"),
        "mysql": ("SELECT CONNECTION_ID()", "KILL %s"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(ask)
        (own,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute(kill, [own])
    other.close()


@commits
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_inside_a_block_writes_what_is_its_own() -> None:
    run = make(TableRun)
    with run.buffer_events(max_entries=100, max_age=600):
        run.append_event("tool", "of the parent")
        connections.close_all()
        child = os.fork()
        if child == 0:
            try:
                run.append_event("tool", "of the child")
                run._buffer.flush()
                connections.close_all()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert labels(run) == ["of the child", "of the parent"]


# A full column


@pytest.mark.skipif("connection.vendor != 'mysql'", reason="only there a column can be full")
def test_a_smaller_entry_does_not_slip_in_behind_the_marker(monkeypatch: Any) -> None:
    from solid_runs.event_logs import column

    facts = column.facts
    monkeypatch.setattr(column, "facts", lambda *asked: facts(*asked)._replace(capacity=4_000))
    run = make(GeneratorRun)
    for n in range(20):
        get(run).append_event("tool", f"{n}", detail="x" * (600 if n % 2 else 10))

    kinds = [entry["kind"] for entry in get(run).events_log]
    assert kinds.count("truncated") == 1
    assert kinds[-1] == "truncated"


def test_a_full_log_is_told_once_and_asked_no_more(caplog: Any) -> None:
    run = make(TableRun)
    with override_settings(SOLID_RUNS={"TABLE_LOG_ENTRIES": 2}):
        for n in range(3):
            run.append_event("tool", str(n))
    assert TableRunEvent.objects.filter(run=run).count() == 3
    assert [record.message for record in caplog.records].count(
        f"The log of {run} is full; what comes from now on is left out."
    ) == 1
