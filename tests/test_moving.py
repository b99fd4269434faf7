"""move_events: logs go from their column into the table, while everybody goes on."""

from __future__ import annotations

import json
import re
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections, models, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from solid_runs import storable
from solid_runs.columns import columns_of
from solid_runs.event_logs import moving
from solid_runs.event_logs.moving import STATEMENT_ENTRIES, TRANSACTION_ENTRIES, Moved, move_events
from solid_runs.events import as_entries
from solid_runs.exceptions import InvalidUsage, NotAList
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.models import AbstractRunEvent, AgentRunMixin
from tests.models import (
    FreshRun,
    TableChildRun,
    TableRun,
    TableRunEvent,
    TableRunProxy,
    UUIDTableRun,
)
from tests.races import Racer, race, racers
from tests.rows import get, row, store_text, stored_text
from tests.run_models import apart, create_tables

pytestmark = pytest.mark.django_db

commits = pytest.mark.usefixtures("committed")


class OldRun(AgentRunMixin):
    """A legacy table that was given a counter: on PostgreSQL its log is json, not jsonb."""

    status = RunStatusField(store="name")
    events = RunJSONField(null=True)
    events_count = models.BigIntegerField(null=True, editable=False)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "old_runs"


class OldRunEvent(AbstractRunEvent):
    run = models.ForeignKey(OldRun, models.CASCADE, related_name="+", db_index=False)

    class Meta(AbstractRunEvent.Meta):
        app_label = "tests"
        apps = apart
        db_table = "old_run_events"


OldRun.events_model = OldRunEvent


class FullRun(AgentRunMixin):
    """Its log's column may not be null."""

    status = RunStatusField(store="name")
    events = RunJSONField(default=list)
    events_count = models.BigIntegerField(null=True, editable=False)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "full_runs"


class FullRunEvent(AbstractRunEvent):
    run = models.ForeignKey(FullRun, models.CASCADE, related_name="+", db_index=False)

    class Meta(AbstractRunEvent.Meta):
        app_label = "tests"
        apps = apart
        db_table = "full_run_events"


FullRun.events_model = FullRunEvent


@pytest.fixture(scope="module", autouse=True)
def own_tables(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    with django_db_blocker.unblock():
        create_tables(connection, OldRun, OldRunEvent, FullRun, FullRunEvent)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE old_runs ALTER events TYPE json USING events::json")


@pytest.fixture(scope="module")
def field(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Racer]]:
    with racers(6) as processes:
        yield processes


def labelled(*labels: Any) -> list[dict[str, Any]]:
    return [{"kind": "tool", "label": str(label), "status": "done"} for label in labels]


def in_column(count: int, model: type[AgentRunMixin] = TableRun, **values: Any) -> Any:
    """A run with so many entries where they were before its model had a table for them."""
    run = model.objects.create(events=labelled(*range(count)), **values)
    if count == 0:
        leave(run, "[]")
    return get(run)


def leave(run: AgentRunMixin, text: str | None) -> None:
    """Write the log's column as an older writer did, whose table had no counter."""
    type(run)._base_manager.filter(pk=run.pk).update(events_count=None)
    store_text(run, "events", text)


def count_of(run: AgentRunMixin) -> int | None:
    return row(run)["events_count"]  # type: ignore[no-any-return]


def is_moved(run: AgentRunMixin) -> bool:
    return count_of(run) is not None


def waiting(model: type[AgentRunMixin] = TableRun) -> list[Any]:
    rows = model._base_manager.filter(events_count__isnull=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def in_table(run: AgentRunMixin) -> list[tuple[int, Any]]:
    table = columns_of(type(run)).log_table
    assert table is not None
    rows = table.model._base_manager.filter(run=run.pk).order_by("seq")
    return list(rows.values_list("seq", "entry"))


def labels(run: AgentRunMixin) -> list[str]:
    """The log as it is now; its coordinates must be 1 to n, and n the counter if it is moved."""
    numbered = get(run).events_after()
    assert [seq for seq, _ in numbered] == list(range(1, len(numbered) + 1))
    assert count_of(run) in (None, len(numbered))
    return [str(entry.get("label", entry.get("message"))) for _, entry in numbered]


def names(*numbers: int) -> list[str]:
    return [str(number) for number in range(*numbers)]


# What a move does


@pytest.mark.parametrize("count", [0, 1, 3, STATEMENT_ENTRIES, 2 * STATEMENT_ENTRIES + 1])
def test_entries_take_one_to_n_and_the_counter_is_n(count: int) -> None:
    run = in_column(count)
    before = run.events_log

    assert move_events(TableRun) == Moved(1, count, [])

    assert in_table(run) == list(enumerate(before, 1))
    assert row(run)["events_count"] == count
    assert stored_text(run, "events") is None
    assert get(run).events_log == before == labelled(*range(count))


def test_a_column_that_may_not_be_null_becomes_an_empty_list() -> None:
    run = in_column(2, FullRun)
    assert move_events(FullRun) == Moved(1, 2, [])
    assert json.loads(stored_text(run, "events") or "") == []
    run.append_event("tool", "2")
    assert labels(run) == ["0", "1", "2"]


@pytest.mark.parametrize("model", [TableRun, UUIDTableRun, OldRun])
def test_nothing_else_of_the_row_is_touched(model: type[AgentRunMixin]) -> None:
    run = in_column(3, model, status="running")
    before = row(run)
    move_events(model)
    after = row(run)
    assert {name for name in before if before[name] != after[name]} == {"events", "events_count"}


def test_every_run_is_moved_in_batches_and_those_in_the_table_are_left_alone() -> None:
    runs = [in_column(n) for n in range(11)]
    there = TableRun.objects.create()
    there.append_event("tool", "there")
    seen: list[int] = []

    assert move_events(TableRun, batch_size=4, progress=seen.append) == Moved(11, 55, [])

    assert seen == [4, 4, 3]
    assert [labels(run) for run in runs] == [names(n) for n in range(11)]
    assert labels(there) == ["there"]


def test_a_second_move_finds_nothing_to_do() -> None:
    run = in_column(3)
    move_events(TableRun)
    before = in_table(run)
    seen: list[int] = []
    assert move_events(TableRun, progress=seen.append) == Moved(0, 0, [])
    assert (in_table(run), seen) == (before, [])


@pytest.mark.parametrize("model", [TableRunProxy, TableChildRun])
def test_a_proxy_and_a_child_move_the_table_that_has_their_log(model: type[AgentRunMixin]) -> None:
    run = model.objects.create(events=labelled("a", "b"))
    assert not is_moved(run)
    assert move_events(model) == Moved(1, 2, [])
    get(run).append_event("tool", "c")
    assert labels(run) == ["a", "b", "c"]


def test_a_run_is_moved_by_whatever_key_it_has() -> None:
    runs = [in_column(3, UUIDTableRun) for _ in range(9)]
    assert move_events(UUIDTableRun, batch_size=2) == Moved(9, 27, [])
    assert all(labels(run) == names(3) for run in runs)


def test_a_model_without_a_table_is_told_what_to_do() -> None:
    with pytest.raises(InvalidUsage, match="set events_model on it"):
        move_events(FreshRun)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_of_no_runs_is_refused(size: int) -> None:
    run = in_column(1)
    with pytest.raises(InvalidUsage, match="batch_size must be 1 or more"):
        move_events(TableRun, batch_size=size)
    assert not is_moved(run)


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database_is_moved_without_a_word_to_the_default_one() -> None:
    here = in_column(1)
    there = TableRun.objects.using("other").create(events=labelled("a", "b"))
    with CaptureQueriesContext(connections["default"]) as said:
        assert move_events(TableRun, using="other") == Moved(1, 2, [])
    assert list(said) == []
    stored = TableRun.objects.using("other").get(pk=there.pk)
    assert (stored.events_count, stored.events) == (2, None)
    assert stored.events_log == labelled("a", "b")
    assert not is_moved(here)


# What older writers left in the column


ODD_LOGS = {
    "every type": '[null, 0, -2.5, true, false, "text", "", [], {}, [[1, [2]]], {"a": {"b": [0]}}]',
    "an escaped NUL": '[{"kind": "tool", "label": "a\\u0000b"}, "\\u0000"]',
    "half a character": '[{"kind": "tool", "label": "\\ud83d"}]',
    "forty levels": "[" * 40 + "]" * 40,
    "numbers past a double": f"[1e999, -1e999, {'9' * 400}, 0.1, 1e-400]",
    "a key twice": '[{"a": 1, "a": 2}]',
    "four bytes a character": '[{"kind": "🚆", "label": "\\ud83d\\ude86"}]',
    "a long text": json.dumps([{"kind": "tool", "label": "ü" * 1_000_000}]),
    "room around it": ' [ {"kind" : "tool"} ,\n 2 ]\n',
    "a list encoded twice": json.dumps('[{"kind": "tool", "label": "a"}, null, 3]'),
}


@pytest.mark.parametrize("text", ODD_LOGS.values(), ids=ODD_LOGS)
def test_whatever_the_list_holds_is_moved(text: str) -> None:
    run = OldRun.objects.create()
    leave(run, text)
    before = get(run).events_log
    assert before == as_entries(json.loads(text)) != []

    assert move_events(OldRun) == Moved(1, len(before), [])

    # As an append would store it; what every database holds stays as it is.
    assert get(run).events_log == [storable.json_value(entry) for entry in before]
    assert [seq for seq, _ in in_table(run)] == list(range(1, len(before) + 1))


def test_entries_that_every_database_holds_read_the_same_before_and_after() -> None:
    run = TableRun.objects.create()
    leave(run, ODD_LOGS["every type"])
    before = get(run).events_log
    numbered = get(run).events_after(3, 4)
    move_events(TableRun)
    assert get(run).events_log == before
    assert get(run).events_after(3, 4) == numbered


EMPTY = [None, "null", '""', "[]", '"[]"', " [ ] "]
EMPTY_TEXTS = ["", "  "]
"""In columns of text alone: PostgreSQL's json refuses them."""


@pytest.mark.parametrize("text", [*EMPTY, *EMPTY_TEXTS], ids=repr)
def test_every_face_of_an_empty_log_is_moved(text: str | None, vendor: str) -> None:
    run = OldRun.objects.create()
    if text in EMPTY_TEXTS and vendor == "postgresql":
        text = None
    leave(run, text)

    assert move_events(OldRun) == Moved(1, 0, [])

    assert (count_of(run), in_table(run), get(run).events_log) == (0, [], [])
    get(run).append_event("tool", "first")
    assert labels(run) == ["first"]


NO_LISTS = ["{}", '{"a": 1}', '"text"', '"{}"', "0", "7", "false", "true"]
NO_JSON = ["no JSON at all", "[1,"]


@pytest.mark.parametrize("text", [*NO_LISTS, *NO_JSON], ids=str)
def test_a_column_that_holds_no_list_is_left_alone_and_the_rest_is_moved(
    text: str, vendor: str
) -> None:
    if text in NO_JSON and vendor == "postgresql":
        text = json.dumps(text)
    before, run, after = in_column(2, OldRun), OldRun.objects.create(), in_column(3, OldRun)
    leave(run, text)

    assert move_events(OldRun, batch_size=1) == Moved(2, 5, [run.pk])

    assert stored_text(run, "events") == text
    assert not is_moved(run)
    with pytest.raises(NotAList):
        run.append_event("tool", "a")
    assert (labels(before), labels(after)) == (names(2), names(3))

    store_text(run, "events", json.dumps(labelled("mended")))
    assert move_events(OldRun) == Moved(1, 1, [])
    assert labels(run) == ["mended"]


def test_many_runs_without_a_list_are_all_named_once() -> None:
    runs = [in_column(1) for _ in range(25)]
    for run in runs[::2]:
        leave(run, '{"a": 1}')
    refused = [run.pk for run in runs[::2]]
    assert move_events(TableRun, batch_size=3) == Moved(12, 12, refused)


# Broken off


class Stop(Exception):
    pass


def test_what_was_moved_before_it_was_broken_off_stays_and_the_rest_is_moved_later() -> None:
    runs = [in_column(n) for n in range(10)]
    seen: list[int] = []

    def stop(count: int) -> None:
        seen.append(count)
        if len(seen) == 2:
            raise Stop

    with pytest.raises(Stop):
        move_events(TableRun, batch_size=3, progress=stop)
    assert [is_moved(run) for run in runs] == [True] * 6 + [False] * 4
    assert [labels(run) for run in runs] == [names(n) for n in range(10)]

    assert move_events(TableRun, batch_size=3) == Moved(4, 6 + 7 + 8 + 9, [])
    assert [labels(run) for run in runs] == [names(n) for n in range(10)]


@commits
def test_a_batch_in_which_something_fails_is_not_moved_at_all() -> None:
    runs = [in_column(STATEMENT_ENTRIES + 1) for _ in range(4)]
    inserts: list[str] = []

    def fail_in_the_middle_of_the_fourth(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT"):
            inserts.append(sql)
            if len(inserts) == 8:
                raise OperationalError("gone")
        return execute(sql, *rest)

    with (
        connection.execute_wrapper(fail_in_the_middle_of_the_fourth),
        pytest.raises(OperationalError),
    ):
        move_events(TableRun, batch_size=2)
    assert [is_moved(run) for run in runs] == [True, True, False, False]
    assert TableRunEvent.objects.count() == 2 * (STATEMENT_ENTRIES + 1)

    assert move_events(TableRun).runs == 2
    assert all(labels(run) == names(STATEMENT_ENTRIES + 1) for run in runs)


# Much of it


def beginnings(captured: CaptureQueriesContext) -> int:
    return len([query for query in captured if query["sql"].startswith("BEGIN")])


@commits
def test_a_transaction_ends_when_it_has_moved_so_many_entries() -> None:
    size = TRANSACTION_ENTRIES // 2 + 500
    runs = [in_column(size) for _ in range(5)]
    with CaptureQueriesContext(connection) as captured:
        assert move_events(TableRun, batch_size=100) == Moved(5, 5 * size, [])
    assert beginnings(captured) == 3
    inserts = [query for query in captured if query["sql"].startswith("INSERT")]
    # Django 5.2 cuts them smaller on SQLite.
    assert len(inserts) >= 5 * size // STATEMENT_ENTRIES
    assert all(count_of(run) == size for run in runs)


@commits
def test_a_transaction_takes_no_more_runs_than_a_batch() -> None:
    for _ in range(10):
        in_column(2)
    with CaptureQueriesContext(connection) as captured:
        move_events(TableRun, batch_size=3)
    assert beginnings(captured) == 4


def test_a_run_with_many_entries_is_moved_in_little_memory() -> None:
    run = TableRun.objects.create()
    entries = [
        {"at": "2026-01-15T09:30:00.000Z", "kind": "tool", "label": str(n), "detail": "x" * 170}
        for n in range(12_000)
    ]
    leave(run, text := json.dumps(entries))
    del entries, run
    began, size = time.monotonic(), len(text)
    tracemalloc.start()
    try:
        assert move_events(TableRun) == Moved(1, 12_000, [])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * size, f"{peak / 2**20:.0f} MB for {size / 2**20:.0f}"
    assert time.monotonic() - began < 60
    [run] = TableRun.objects.all()
    assert labels(run) == names(12_000)


# Copies that were loaded before


ACTS: dict[str, Callable[[Any], Any]] = {
    "append_event": lambda run: run.append_event("tool", "2"),
    "add_log": lambda run: run.add_log("2"),
    "add_log after its log was read": lambda run: (run.events_log, run.add_log("2")),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("model", [TableRun, UUIDTableRun, TableChildRun, OldRun])
def test_a_copy_from_before_the_move_appends_and_reads_what_it_wrote(
    model: type[AgentRunMixin], act: Callable[[Any], Any]
) -> None:
    run = model.objects.create(events=labelled("0", "1"))
    copy, partial = get(run), model.objects.only("pk").get(pk=run.pk)
    move_events(model)

    act(copy)

    assert labels(copy) == ["0", "1", "2"]
    assert copy.events_log == partial.events_log == get(run).events_log
    partial.append_event("tool", "3")
    assert [seq for seq, _ in copy.events_after(2)] == [3, 4]
    assert len(copy.events_log) == 4


def test_a_tail_goes_on_where_it_was_across_the_move() -> None:
    run = in_column(5)
    tail = get(run)
    assert [seq for seq, _ in tail.events_after(0, 3)] == [1, 2, 3]
    move_events(TableRun)
    assert [seq for seq, _ in tail.events_after(3)] == [4, 5]
    run.append_event("tool", "5")
    assert [(seq, entry["label"]) for seq, entry in tail.events_after(5)] == [(6, "5")]
    assert tail.events_after(6) == []


def test_a_buffer_from_before_the_move_flushes_into_the_table() -> None:
    run = in_column(2)
    with run.buffer_events():
        run.append_event("tool", "2")
        run.add_log("3")
        move_events(TableRun)
        run.append_event("tool", "4")
    assert labels(run) == names(5)
    assert stored_text(run, "events") is None


def test_a_copy_from_before_the_move_saves_and_ends_without_moving_it_back() -> None:
    run = in_column(2, status="running")
    saved, ended, whole = get(run), get(run), get(run)
    move_events(TableRun)
    assert len(whole.events_log) == 2
    whole.input_prompt = "new"
    whole.save()
    saved.agent_name = "changed"
    saved.save(update_fields=["agent_name"])
    assert ended.finish("done") is True
    assert labels(run) == names(2)
    assert (count_of(run), stored_text(run, "events")) == (2, None)
    stored = get(run)
    assert (stored.input_prompt, stored.agent_name, stored.output) == ("new", "changed", "done")


# While others go on


@contextmanager
def held_by_another(run: AgentRunMixin, seconds: float) -> Iterator[None]:
    """Somebody writes to this run in a transaction that ends after so many seconds."""
    locked = threading.Event()
    wrong: list[BaseException] = []

    def hold() -> None:
        try:
            with transaction.atomic():
                type(run)._base_manager.filter(pk=run.pk).update(status=F("status"))
                get(run).append_event("tool", "of the other")
                locked.set()
                time.sleep(seconds)
        except BaseException as error:
            wrong.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert locked.wait(timeout=10)
        yield
    finally:
        thread.join()
    assert wrong == []


@commits
def test_a_run_that_somebody_holds_is_passed_over_and_moved_at_the_end(vendor: str) -> None:
    runs = [in_column(3) for _ in range(7)]
    held, left = runs[2], []

    with held_by_another(held, 1.5):
        moved = move_events(TableRun, batch_size=2, progress=lambda _: left.append(waiting()))

    assert moved == Moved(7, 22, [])
    if vendor != "sqlite":  # which locks no rows: a move waits for whoever writes
        assert left[-1] == [held.pk]
    assert labels(held) == [*names(3), "of the other"]
    assert all(labels(run) == names(3) for run in runs if run != held)


@commits
def test_two_moves_at_once_move_each_run_once() -> None:
    runs = [in_column(n % 7) for n in range(120)]
    moved: list[Any] = []
    together = threading.Barrier(2, timeout=10)

    def move() -> None:
        try:
            together.wait()
            moved.append(move_events(TableRun, batch_size=5))
        except BaseException as error:
            moved.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=move) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert [type(each) for each in moved] == [Moved, Moved], moved
    assert sum(each.runs for each in moved) == 120
    assert sum(each.entries for each in moved) == sum(n % 7 for n in range(120))
    assert [labels(run) for run in runs] == [names(n % 7) for n in range(120)]


def while_they_race(
    field: Sequence[Racer], tasks: Sequence[dict[str, Any]], act: Callable[[], Any]
) -> Any:
    """The result of ``act``, done while each task runs in a process of its own."""
    raced: list[Any] = []
    thread = threading.Thread(target=lambda: raced.append(race(field, tasks)))
    thread.start()
    try:
        return act()
    finally:
        thread.join()
        assert len(raced) == 1, "a racer failed"


@commits
def test_writers_lose_nothing_and_see_nothing_of_the_move(field: list[Racer], vendor: str) -> None:
    each = 200
    before = [in_column(1) for _ in range(5)]
    targets = [in_column(2, status="running") for _ in range(2)]
    after = [in_column(1) for _ in range(5)]
    tasks = [
        {"task": "append", "model": "TableRun", "pk": targets[n % 2].pk, "writer": n, "count": each}
        for n in range(6)
    ]

    def move() -> Any:
        """Once they have begun."""
        limit = time.monotonic() + 30
        while min(len(get(run).events_log) for run in targets) < 20:
            assert time.monotonic() < limit, "nobody writes"
            time.sleep(0.01)
        moved = move_events(TableRun, batch_size=1)
        counts.extend(count_of(run) for run in targets)
        return moved

    counts: list[int | None] = []
    moved = while_they_race(field, tasks, move)

    assert (moved.runs, moved.refused) == (12, [])
    assert None not in counts
    if vendor != "sqlite":  # where a move may wait until nobody else writes any more
        assert all(count < 2 + 3 * each for count in counts if count), "nobody raced"
    for place, run in enumerate(targets):
        log = [entry for _, entry in get(run).events_after()]
        assert labels(run)[:2] == names(2)
        assert count_of(run) == len(log) == 2 + 3 * each
        for writer in range(place, 6, 2):
            eids = [entry.get("eid", "") for entry in log]
            own = [eid for eid in eids if eid.startswith(f"{writer}-")]
            assert own == [f"{writer}-{n}" for n in range(each)]
    assert all(labels(run) == ["0"] for run in before + after)


# The command


def command(*args: Any, **options: Any) -> str:
    said = StringIO()
    call_command("move_events", *args, stdout=said, **options)
    return said.getvalue()


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_the_command_moves_and_says_how_much() -> None:
    runs = [in_column(n) for n in range(4)]
    assert command("tests.TableRun").strip() == "Moved 6 entries of 4 runs."
    assert all(is_moved(run) for run in runs)
    assert command("tests.TableRun").strip() == "Moved 0 entries of 0 runs."


def test_the_command_takes_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        in_column(1)
    sizes: list[int] = []
    together = moving.Move.together

    def noted(self: Any, keys: Any, **kwargs: Any) -> None:
        sizes.append(len(keys))
        together(self, keys, **kwargs)

    monkeypatch.setattr(moving.Move, "together", noted)
    command("tests.TableRun", "--batch-size", "2")
    assert sizes == [2, 2, 1]


@pytest.mark.django_db(databases=["default", "other"])
def test_the_command_takes_a_database() -> None:
    here = in_column(1)
    there = TableRun.objects.using("other").create(events=labelled("a", "b"))
    said = command("tests.TableRun", "--database", "other")
    assert said.strip() == "Moved 2 entries of 1 runs."
    assert TableRun.objects.using("other").get(pk=there.pk).events_count == 2
    assert not is_moved(here)


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        in_column(1)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    command("tests.TableRun", batch_size=1)
    frames = terminal.getvalue().split("\r")[1:]
    assert len(frames) == 4
    assert [re.findall(r"\d+/\d+", frame) for frame in frames] == [[f"{n}/4"] for n in range(1, 5)]
    assert "·" in frames[0]
    assert "·" not in frames[-1]
    assert terminal.getvalue().endswith("\n")


def test_a_file_gets_a_few_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(40):
        in_column(1)
    command("tests.TableRun", batch_size=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in lines] == ["10/40", "20/40", "30/40", "40/40"]


@pytest.mark.parametrize("terminal", [True, False])
def test_verbosity_zero_is_silent(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = in_column(3)
    stream = Terminal() if terminal else StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    assert command("tests.TableRun", verbosity=0) == ""
    assert stream.getvalue() == ""
    assert capsys.readouterr().out == ""
    assert is_moved(run)


def test_the_bar_goes_where_the_caller_wants_its_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    in_column(1)
    errors = StringIO()
    command("tests.TableRun", stderr=errors)
    assert "1/1" in errors.getvalue()
    assert capsys.readouterr().err == ""


def test_runs_without_a_list_make_the_command_fail_after_all_others_are_moved() -> None:
    runs = [in_column(2) for _ in range(15)]
    for run in runs[:12]:
        leave(run, '{"a": 1}')
    said = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("move_events", "tests.TableRun", stdout=said)
    assert said.getvalue().strip() == "Moved 6 entries of 3 runs."
    message = str(caught.value)
    assert message.startswith("12 runs hold something other than a list")
    assert ", ".join(str(run.pk) for run in runs[:10]) + " …" in message
    assert "Mend the column and start again" in message
    assert caught.value.returncode != 0


@pytest.mark.parametrize(
    ("args", "advice"),
    [
        (["tests.Nothing"], r"'tests.Nothing'.*Name a model as app\.Model"),
        (["nowhere.Run"], r"'nowhere.Run'.*Name a model as app\.Model"),
        (["TableRun"], r"Name a model as app\.Model"),
        (["tests.Table.Run"], r"Name a model as app\.Model"),
        (["tests.Document"], r"tests\.Document is not a model of runs"),
        (["tests.FreshRun"], r"FreshRun has no table.*set events_model"),
        (["tests.PlatformRun"], r"PlatformRun has no table.*set events_model"),
        (["tests.TableRun", "--batch-size", "0"], r"batch_size must be 1 or more"),
        (["tests.TableRun", "--batch-size", "x"], r"--batch-size"),
        (["tests.TableRun", "--database", "nowhere"], r"nowhere"),
        ([], r"required: model"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_cannot_be_moved_is_told_with_what_to_do(args: list[str], advice: str) -> None:
    run = in_column(1)
    with pytest.raises(CommandError, match=re.compile(advice, re.DOTALL)):
        command(*args)
    assert not is_moved(run)
