"""What a log in a table of its own promises; what every log does is in tests/test_event_log.py."""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    connection,
    models,
    router,
    transaction,
)
from django.db.models.signals import post_delete, post_save, pre_save
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from solid_runs.event_logs.log import event_log_of
from solid_runs.exceptions import MissingColumn, RunNotFound
from tests.models import (
    FreshRun,
    TableChildRun,
    TableRun,
    TableRunEvent,
    TableRunProxy,
    UUIDTableRun,
    UUIDTableRunEvent,
)
from tests.rest_client import reader, url
from tests.rows import get, make, row
from tests.run_models import (
    NumberedTableRun,
    OddTableRun,
    OddTableRunEvent,
    UncountedRun,
    create_tables,
)

pytestmark = pytest.mark.django_db
commits = pytest.mark.usefixtures("committed")

ENTRY = {"at": "2026-01-15T09:30:11.000Z", "kind": "tool", "label": "older", "status": "done"}


@pytest.fixture(scope="module", autouse=True)
def odd_tables(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection, OddTableRun, OddTableRunEvent, NumberedTableRun)


def stored(run: Any, using: str = "default") -> list[tuple[int, str | None]]:
    """The number and the label of each entry in the table."""
    rows = TableRunEvent.objects.using(using).filter(run_id=run.pk).order_by("seq")
    return [(seq, (entry or {}).get("label")) for seq, entry in rows.values_list("seq", "entry")]


def counter(run: Any, using: str = "default") -> int | None:
    return TableRun.objects.using(using).values_list("events_count", flat=True).get(pk=run.pk)


def in_column(*entries: Any) -> Any:
    """A run from before the opt-in: its entries are in its column."""
    run = make(TableRun)
    TableRun.objects.filter(pk=run.pk).update(events=list(entries), events_count=None)
    return get(run)


def move(run: Any) -> None:
    """What move_events makes of the row of a run, by hand."""
    entries = get(run).events or []
    TableRunEvent.objects.bulk_create(
        TableRunEvent(run_id=run.pk, seq=seq, entry=entry) for seq, entry in enumerate(entries, 1)
    )
    TableRun.objects.filter(pk=run.pk).update(events=None, events_count=len(entries))


def assert_idle() -> None:
    """The connection has no transaction open, whatever Django believes."""
    inside = {
        "sqlite": lambda: connection.connection.in_transaction,
        "postgresql": lambda: connection.connection.info.transaction_status != 0,
        "mysql": lambda: asked("SELECT @@in_transaction"),
    }
    assert not inside[connection.vendor]()


def asked(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


# Numbers


def test_entries_are_numbered_from_one_in_the_order_of_their_appending() -> None:
    copies = [make(TableRun)]
    copies += [get(copies[0]), TableRun.objects.only("pk").get(pk=copies[0].pk)]

    for number in range(1, 10):
        copies[number % 3].append_event("tool", str(number))
    copies[0].add_log("last")

    assert stored(copies[0]) == [*((n, str(n)) for n in range(1, 10)), (10, None)]
    assert copies[1].events_after(9)[0].entry["message"] == "last"


def test_the_counter_of_the_copy_and_of_the_row_is_the_last_number() -> None:
    run = make(TableRun)
    stale = get(run)
    assert (run.events_count, counter(run)) == (0, 0)

    for number in (1, 2, 3):
        run.append_event("tool", "search")
        assert (run.events_count, counter(run)) == (number, number)
    stale.append_event("tool", "search")

    assert (run.events_count, stale.events_count, counter(run)) == (3, 4, 4)


def test_each_run_counts_for_itself() -> None:
    one, two = make(TableRun), make(TableRun)

    for run in (one, two, one, one, two):
        run.append_event("tool", "search")

    assert [seq for seq, _ in stored(one)] == [1, 2, 3]
    assert [seq for seq, _ in stored(two)] == [1, 2]


def test_many_entries_at_once_are_numbered_in_their_order() -> None:
    run = make(TableRun)
    run.append_event("tool", "0")
    entries = [{**ENTRY, "label": str(n), "detail": "100% %s 'x' \\ 🚆"} for n in range(1, 251)]

    appended = event_log_of(TableRun).append(run.pk, entries, "default")

    assert (appended.left_out, appended.last) == (0, 251)
    assert [numbered.entry for numbered in run.events_after(1)] == entries
    assert stored(run) == [(n + 1, str(n)) for n in range(251)]
    run.append_event("tool", "251")
    assert run.events_count == 252


def test_the_column_of_such_a_run_stays_empty() -> None:
    run = make(TableRun)
    run.append_event("tool", "search")
    run.add_log("asking")
    run.finish("done")

    assert row(run)["events"] == []


# What an append says to the database


def said_by(run: Any) -> list[str]:
    """The first word of each statement of an append; the driver's own begin and end aside."""
    said: list[str] = []

    def note(execute: Any, sql: str, *args: Any) -> Any:
        said.append(sql.split(" ")[0])
        return execute(sql, *args)

    with connection.execute_wrapper(note):
        run.append_event("tool", "search")
    return said


@commits
def test_an_append_outside_a_transaction_is_as_few_statements_as_can_be(vendor: str) -> None:
    run = make(TableRun)
    run.append_event("warm", "up")
    statements = {
        "sqlite": ["UPDATE", "INSERT"],
        "postgresql": ["WITH"],
        "mysql": ["BEGIN"],  # a block of statements, with its own transaction
    }

    assert said_by(run) == statements[vendor]
    assert_idle()
    assert stored(run) == [(1, "up"), (2, "search")]


@commits
def test_an_append_inside_a_transaction_is_one_savepoint(vendor: str) -> None:
    run = make(TableRun)
    run.append_event("warm", "up")
    statements = {
        "sqlite": ["SAVEPOINT", "UPDATE", "INSERT", "RELEASE"],
        "postgresql": ["WITH"],
        "mysql": ["SAVEPOINT", "UPDATE", "SELECT", "INSERT", "RELEASE"],
    }

    with transaction.atomic():
        assert said_by(run) == statements[vendor]


# Where a new run begins


def saved(**values: Any) -> Any:
    run = TableRun(**values)
    run.save()
    return run


@async_to_sync
async def created_async(**values: Any) -> Any:
    return await TableRun.objects.acreate(**values)


BIRTHS: dict[str, Callable[..., Any]] = {
    "create": lambda **values: TableRun.objects.create(**values),
    "save": saved,
    "bulk_create": lambda **values: TableRun.objects.bulk_create([TableRun(**values)])[0],
    "get_or_create": lambda **values: TableRun.objects.get_or_create(
        trace_id=str(uuid.uuid4()), defaults=values
    )[0],
    "update_or_create": lambda **values: TableRun.objects.update_or_create(
        trace_id=str(uuid.uuid4()), defaults=values
    )[0],
    "acreate": created_async,
}
every_birth = pytest.mark.parametrize("born", BIRTHS.values(), ids=BIRTHS)


@every_birth
@pytest.mark.parametrize("events", [[], None])
def test_a_new_run_starts_in_the_table(born: Callable[..., Any], events: Any) -> None:
    run = born(events=events)
    assert run.events_log == []
    assert counter(run) == 0

    run.append_event("tool", "search")

    assert stored(run) == [(1, "search")]


@every_birth
def test_a_new_run_that_brings_entries_keeps_them_in_its_column(born: Callable[..., Any]) -> None:
    run = born(events=[ENTRY])
    assert counter(run) is None
    assert run.events_log == [ENTRY]

    entry = run.append_event("tool", "search")

    assert get(run).events_log == [ENTRY, entry]
    assert row(run)["events"] == [ENTRY, entry]
    assert run.events_after(1) == [(2, entry)]
    assert (stored(run), counter(run), run.events_count) == ([], None, None)


@every_birth
def test_nobody_gives_a_new_run_a_counter(born: Callable[..., Any]) -> None:
    run = born(events_count=7)
    run.append_event("tool", "search")

    assert stored(run) == [(1, "search")]


def test_a_run_rebuilt_over_its_row_goes_on_where_its_entries_end() -> None:
    """Django writes a new instance with the key of a row over that row, the counter included."""
    run = make(TableRun)
    run.append_event("tool", "first")

    TableRun(pk=run.pk, created_at=timezone.now()).save()
    run.append_event("tool", "second")

    assert stored(run) == [(1, "first"), (2, "second")]


# Clones and copies


def test_a_clone_starts_with_an_empty_log() -> None:
    run = make(TableRun)
    run.append_event("tool", "of the first")
    clone = get(run)
    clone.pk = None
    clone.save()
    assert (clone.events_count, clone.events_log) == (0, [])

    clone.append_event("tool", "of the clone")

    assert clone.pk != run.pk
    assert stored(clone) == [(1, "of the clone")]
    assert stored(run) == [(1, "of the first")]


def test_the_copy_that_appended_can_be_cloned() -> None:
    run = make(TableRun)
    run.append_event("tool", "of the first")
    first = get(run)

    run.pk = None
    run.save()
    run.append_event("tool", "of the clone")

    assert stored(run) == [(1, "of the clone")]
    assert stored(first) == [(1, "of the first")]


def test_clones_made_in_bulk_start_with_an_empty_log() -> None:
    runs = [make(TableRun) for _ in range(3)]
    for run in runs:
        run.append_event("tool", "of the first")
    clones = [get(run) for run in runs]
    for clone in clones:
        clone.pk = None

    TableRun.objects.bulk_create(clones)

    assert [clone.events_count for clone in clones] == [0, 0, 0]
    clones[1].append_event("tool", "of the clone")
    assert stored(clones[1]) == [(1, "of the clone")]


def test_a_clone_of_a_run_in_its_column_takes_those_entries_along() -> None:
    clone = in_column(ENTRY)
    clone.pk = None
    clone.save()

    clone.append_event("tool", "search")

    assert [entry["label"] for entry in get(clone).events_log] == ["older", "search"]
    assert (stored(clone), counter(clone)) == ([], None)


@pytest.mark.django_db(databases=["default", "other"])
def test_a_copy_in_another_database_goes_on_from_what_is_there() -> None:
    run = make(TableRun)
    for label in ("one", "two", "three"):
        run.append_event("tool", label)

    get(run).save(using="other")
    there = TableRun.objects.using("other").get(pk=run.pk)
    assert (there.events_count, there.events_log) == (0, [])
    there.append_event("tool", "there")
    get(run).save(using="other")
    there.append_event("tool", "there too")

    assert stored(run, "other") == [(1, "there"), (2, "there too")]
    assert counter(run, "other") == 2
    assert stored(run) == [(1, "one"), (2, "two"), (3, "three")]
    assert counter(run) == 3


# save()


def test_a_stale_copy_that_is_saved_leaves_the_counter_alone() -> None:
    stale = make(TableRun)
    get(stale).append_event("tool", "theirs")
    stale.input_prompt = "Find the total"
    stale.save()
    assert counter(stale) == 1

    stale.append_event("tool", "mine")

    assert stored(stale) == [(1, "theirs"), (2, "mine")]


@pytest.mark.parametrize("count", [None, 0, 99])
def test_a_counter_set_by_hand_is_not_saved(count: int | None) -> None:
    run = make(TableRun)
    run.append_event("tool", "first")

    run.events_count = count
    run.save()

    assert counter(run) == 1
    run.append_event("tool", "second")
    assert stored(run) == [(1, "first"), (2, "second")]


@pytest.mark.parametrize("name", ["events_count", "events"])
def test_naming_the_log_in_update_fields_is_refused(name: str) -> None:
    run = make(TableRun)
    run.append_event("tool", "search")

    with pytest.raises(ValueError, match=f"leave '{name}' out of update_fields"):
        run.save(update_fields=["output", name])

    assert (counter(run), row(run)["output"]) == (1, None)


def test_update_or_create_of_a_run_that_is_there_leaves_the_counter_alone() -> None:
    run = make(TableRun, trace_id="t-1")
    run.append_event("tool", "first")

    TableRun.objects.update_or_create(trace_id="t-1", defaults={"output": "x"})

    assert counter(run) == 1
    run.append_event("tool", "second")
    assert stored(run) == [(1, "first"), (2, "second")]


def test_a_form_or_serializer_cannot_name_the_counter() -> None:
    assert TableRun._meta.get_field("events_count").editable is False


# Transactions


@commits
def test_a_rollback_leaves_no_gap() -> None:
    run = make(TableRun)
    run.append_event("tool", "first")

    with transaction.atomic():
        run.append_event("tool", "lost")
        run.append_event("tool", "lost too")
        transaction.set_rollback(True)
    assert run.events_log == get(run).events_log
    run.append_event("tool", "second")

    assert stored(run) == [(1, "first"), (2, "second")]
    assert counter(run) == 2


@commits
def test_a_savepoint_that_is_rolled_back_leaves_no_gap() -> None:
    run = make(TableRun)

    with transaction.atomic():
        run.append_event("tool", "first")
        with transaction.atomic():
            run.append_event("tool", "lost")
            transaction.set_rollback(True)
        run.append_event("tool", "second")

    assert stored(run) == [(1, "first"), (2, "second")]
    assert (counter(run), run.events_count) == (2, 2)


def in_the_way(run: Any, seq: int) -> TableRunEvent:
    """A row that the next entry cannot stand beside."""
    return TableRunEvent.objects.create(run_id=run.pk, seq=seq, entry={"label": "in the way"})


@commits
def test_an_entry_that_the_table_refuses_takes_its_number_back() -> None:
    run = make(TableRun)
    run.append_event("tool", "first")
    obstacle = in_the_way(run, 2)

    with pytest.raises(IntegrityError):
        run.append_event("tool", "refused")

    assert_idle()
    assert counter(run) == 1
    assert stored(run) == [(1, "first"), (2, "in the way")]
    obstacle.delete()
    run.append_event("tool", "second")
    assert stored(run) == [(1, "first"), (2, "second")]


@commits
def test_a_refused_entry_in_a_block_of_its_own_leaves_the_transaction_usable() -> None:
    run = make(TableRun)
    run.append_event("tool", "first")
    obstacle = in_the_way(run, 3)

    with transaction.atomic():
        run.append_event("tool", "second")
        with pytest.raises(IntegrityError), transaction.atomic():
            run.append_event("tool", "refused")
        assert counter(run) == 2
        obstacle.delete()
        run.append_event("tool", "third")

    assert stored(run) == [(1, "first"), (2, "second"), (3, "third")]


@commits
def test_a_refused_entry_ends_a_transaction_where_it_ends_one_of_django(vendor: str) -> None:
    run = make(TableRun)
    in_the_way(run, 2)

    def both() -> None:
        with transaction.atomic():
            run.append_event("tool", "first")
            with pytest.raises(IntegrityError):
                run.append_event("tool", "refused")
            # PostgreSQL refuses everything else until the end; elsewhere a savepoint was enough.
            assert transaction.get_rollback() is (vendor == "postgresql")
            get(run)

    if vendor == "postgresql":
        with pytest.raises(transaction.TransactionManagementError):
            both()
    else:
        both()
    assert_idle()
    kept = [] if vendor == "postgresql" else [(1, "first")]
    assert stored(run) == [*kept, (2, "in the way")]
    assert counter(run) == len(kept)


@commits
def test_a_trigger_that_refuses_takes_the_number_back(vendor: str) -> None:
    run = make(TableRun)
    with refusing_trigger(vendor):
        with pytest.raises(DatabaseError, match="not on my watch"):
            run.append_event("tool", "refused")
        assert_idle()
        with pytest.raises(DatabaseError), transaction.atomic():
            run.append_event("tool", "refused")
        assert_idle()
    assert (stored(run), counter(run)) == ([], 0)

    run.append_event("tool", "first")

    assert stored(run) == [(1, "first")]


@commits
def test_a_refusal_with_which_sqlite_ends_the_transaction_itself_is_told(vendor: str) -> None:
    """As it does when the disk is full."""
    if vendor != "sqlite":
        return
    run = make(TableRun)
    with refusing_trigger(vendor, "ROLLBACK"):
        with pytest.raises(DatabaseError, match="not on my watch"):
            run.append_event("tool", "refused")
        assert_idle()
    run.append_event("tool", "first")
    assert stored(run) == [(1, "first")]


@contextmanager
def refusing_trigger(vendor: str, action: str = "ABORT") -> Iterator[None]:
    on = "ON tests_tablerunevent"
    made = {
        "sqlite": [
            f"CREATE TRIGGER watchman BEFORE INSERT {on}"
            f" BEGIN SELECT RAISE({action}, 'not on my watch'); END"
        ],
        "postgresql": [
            "CREATE FUNCTION watchman() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not on my watch'; END $$",
            f"CREATE TRIGGER watchman BEFORE INSERT {on} FOR EACH ROW EXECUTE FUNCTION watchman()",
        ],
        "mysql": [
            f"CREATE TRIGGER watchman BEFORE INSERT {on} FOR EACH ROW"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not on my watch'"
        ],
    }
    dropped = {
        "postgresql": [f"DROP TRIGGER watchman {on}", "DROP FUNCTION watchman"],
    }.get(vendor, ["DROP TRIGGER watchman"])
    with connection.cursor() as cursor:
        for statement in made[vendor]:
            cursor.execute(statement)
        try:
            yield
        finally:
            for statement in dropped:
                cursor.execute(statement)


@contextmanager
def held_by_another(run: Any) -> Iterator[None]:
    """Somebody else has written to the run's row and does not commit yet."""
    locked, through = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                TableRun.objects.filter(pk=run.pk).update(output="held")
                locked.set()
                through.wait(timeout=20)
        finally:
            connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert locked.wait(timeout=20)
        yield
    finally:
        through.set()
        thread.join()


@contextmanager
def impatient(vendor: str) -> Iterator[None]:
    """This connection waits a second at most for a lock."""
    short, usual = {
        "sqlite": ("PRAGMA busy_timeout = 200", "PRAGMA busy_timeout = 30000"),
        "postgresql": ("SET lock_timeout = '200ms'", "SET lock_timeout = 0"),
        "mysql": ("SET innodb_lock_wait_timeout = 1", "SET innodb_lock_wait_timeout = 50"),
    }[vendor]
    with connection.cursor() as cursor:
        cursor.execute(short)
        try:
            yield
        finally:
            cursor.execute(usual)


@commits
def test_an_append_that_waits_too_long_for_the_row_leaves_nothing_open(vendor: str) -> None:
    run = make(TableRun)
    run.append_event("tool", "first")

    with held_by_another(run), impatient(vendor):
        with pytest.raises(OperationalError):
            run.append_event("tool", "lost")
        assert_idle()
    run.append_event("tool", "second")

    assert stored(run) == [(1, "first"), (2, "second")]


@commits
def test_a_commit_that_sqlite_refuses_leaves_nothing_open(vendor: str) -> None:
    """Without a write-ahead log a reader can keep a commit waiting until its time is up."""
    if vendor != "sqlite":
        return
    run = make(TableRun)
    run.append_event("tool", "first")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        with impatient(vendor):
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM tests_tablerun").fetchall()
            with pytest.raises(OperationalError, match="locked"):
                run.append_event("tool", "lost")
            other.execute("COMMIT")
        assert_idle()
    finally:
        other.close()
        if connection.connection.in_transaction:
            connection.connection.rollback()

    run.append_event("tool", "second")

    assert stored(run) == [(1, "first"), (2, "second")]


@commits
def test_appends_to_two_runs_in_one_transaction_come_and_go_together() -> None:
    one, two = make(TableRun), make(TableRun)

    with transaction.atomic():
        one.append_event("tool", "lost")
        two.append_event("tool", "lost")
        transaction.set_rollback(True)
    with transaction.atomic():
        one.append_event("tool", "first")
        two.append_event("tool", "first")

    assert stored(one) == stored(two) == [(1, "first")]


# Deletion


@pytest.mark.parametrize(
    "delete",
    [lambda run: run.delete(), lambda run: TableRun.objects.filter(pk=run.pk).delete()],
    ids=["instance", "queryset"],
)
def test_the_entries_of_a_deleted_run_go_with_it(delete: Callable[[Any], Any]) -> None:
    run, other = make(TableRun), make(TableRun)
    for each in (run, run, other):
        each.append_event("tool", "search")
    pk = run.pk

    delete(run)

    assert not TableRunEvent.objects.filter(run_id=pk).exists()
    assert stored(other) == [(1, "search")]


def test_a_deletion_tells_of_no_entry_unless_somebody_listens() -> None:
    run = make(TableRun)
    for _ in range(3):
        run.append_event("tool", "search")
    with CaptureQueriesContext(connection) as captured:
        TableRun.objects.filter(pk=run.pk).delete()
    about_entries = [q["sql"] for q in captured if TableRunEvent._meta.db_table in q["sql"]]
    assert [sql.split(" ")[0] for sql in about_entries] == ["DELETE"]


@pytest.mark.parametrize("was", ["in the table", "in the column"])
@pytest.mark.parametrize("known", ["whole", "only its key"])
def test_a_deleted_run_is_not_found(was: str, known: str) -> None:
    run = make(TableRun) if was == "in the table" else in_column(ENTRY)
    run.append_event("tool", "search")
    copies = TableRun.objects.all() if known == "whole" else TableRun.objects.only("pk")
    copy = copies.get(pk=run.pk)
    TableRun.objects.filter(pk=run.pk).delete()

    for use in (
        lambda: copy.append_event("tool", "late"),
        lambda: copy.add_log("late"),
        lambda: copy.events_after(),
        lambda: copy.events_after(1),
        lambda: copy.events_after(0, 0),
    ):
        with pytest.raises(RunNotFound, match=f"TableRun with primary key {run.pk}"):
            use()
    assert not TableRunEvent.objects.filter(run_id=run.pk).exists()


# Reading


COPIES: dict[str, Callable[[Any], Any]] = {
    "this one": lambda run: run,
    "a fresh one": get,
    "its key alone": lambda run: TableRun.objects.only("pk").get(pk=run.pk),
    "without the counter": lambda run: TableRun.objects.defer("events_count").get(pk=run.pk),
    "without the column": lambda run: TableRun.objects.defer("events").get(pk=run.pk),
}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


@every_copy
@pytest.mark.parametrize("where", ["table", "column"])
def test_events_after_takes_any_place_and_limit(copied: Callable[[Any], Any], where: str) -> None:
    run = make(TableRun) if where == "table" else in_column()
    for _ in range(3):
        run.append_event("tool", "search")

    for after in (-(10**30), -1, 0, 1, 3, 4, 2**63 - 1, 2**63, 10**30):
        for limit in (None, 0, -1, 1, 2, 99, 10**30):
            found = [numbered.seq for numbered in copied(run).events_after(after, limit)]
            most = 3 if limit is None else max(0, limit)
            assert found == [n for n in (1, 2, 3) if n > after][:most], (after, limit)


@every_copy
def test_every_copy_reads_the_whole_log(copied: Callable[[Any], Any]) -> None:
    run = make(TableRun)
    copy = copied(run)
    entries = [get(run).append_event("tool", "theirs"), get(run).append_event("tool", "theirs")]

    assert copy.events_log == entries
    assert copy.events_after(1) == [(2, entries[1])]


def test_a_copy_that_knows_of_the_table_asks_it_alone(django_assert_num_queries: Any) -> None:
    run = make(TableRun)
    entry = run.append_event("tool", "search")
    copy = get(run)

    with django_assert_num_queries(1) as captured:
        assert copy.events_log == [entry]
    assert TableRunEvent._meta.db_table in captured[0]["sql"]
    with django_assert_num_queries(1):
        assert copy.events_after(0, 1) == [(1, entry)]


@every_copy
def test_until_a_run_is_moved_its_column_is_its_log(copied: Callable[[Any], Any]) -> None:
    copy = copied(in_column(ENTRY, {**ENTRY, "label": "old"}))

    entry = copy.append_event("tool", "search")

    assert [e["label"] for e in copy.events_log] == ["older", "old", "search"]
    assert copy.events_after(2) == [(3, entry)]
    assert (stored(copy), counter(copy), copy.events_count) == ([], None, None)


@every_copy
def test_a_copy_from_before_the_move_reads_the_table_after_it(
    copied: Callable[[Any], Any],
) -> None:
    run = in_column(ENTRY)
    copy = copied(run)

    move(run)
    get(run).append_event("tool", "theirs")

    assert [n.seq for n in copy.events_after()] == [1, 2]
    assert copy.events_after(0, 1) == [(1, ENTRY)]
    assert [n.entry["label"] for n in copy.events_after(1)] == ["theirs"]


@every_copy
def test_a_copy_from_before_the_move_appends_to_the_table_after_it(
    copied: Callable[[Any], Any],
) -> None:
    run = in_column(ENTRY)
    copy = copied(run)

    move(run)
    get(run).append_event("tool", "theirs")
    copy.append_event("tool", "mine")

    assert stored(run) == [(1, "older"), (2, "theirs"), (3, "mine")]
    assert copy.events_count == 3
    assert [entry["label"] for entry in copy.events_log] == ["older", "theirs", "mine"]
    assert row(run)["events"] is None


@every_copy
def test_a_copy_from_before_the_move_saves_nothing_of_the_log(
    copied: Callable[[Any], Any],
) -> None:
    run = in_column(ENTRY)
    copy = copied(run)

    move(run)
    copy.input_prompt = "Find the total"
    copy.save()
    copy.finish("done")

    assert (row(run)["events"], counter(run)) == (None, 1)
    assert stored(run) == [(1, "older")]


def test_a_copy_that_was_loaded_before_the_move_shows_what_it_loaded() -> None:
    """As one does whose log is a column: it is no older than the rest of that copy."""
    run = in_column(ENTRY)
    move(run)
    get(run).append_event("tool", "theirs")

    assert run.events_log == [ENTRY]
    run.refresh_from_db()
    assert [entry["label"] for entry in run.events_log] == ["older", "theirs"]


def test_entries_of_any_kind_are_read_as_they_were_moved() -> None:
    odd = ["text", 7, [1, "a"], {"a": None}, "", False]
    run = in_column(*odd)

    move(run)

    assert get(run).events_log == odd


# Proxies, children, keys and names


@pytest.mark.parametrize("model", [TableRunProxy, TableChildRun])
def test_a_proxy_and_a_child_write_to_the_table_of_their_parent(model: Any) -> None:
    run = model.objects.create()
    run.append_event("tool", "first")
    parent = TableRun.objects.get(pk=run.pk)
    parent.append_event("tool", "second")
    entry = get(run).add_log("third")

    assert [seq for seq, _ in stored(parent)] == [1, 2, 3]
    assert run.events_after(2) == [(3, entry)]
    assert run.events_log == parent.events_log
    with pytest.raises(ValueError, match="events_count"):
        run.save(update_fields=["events_count"])
    run.delete()
    assert not TableRunEvent.objects.exists()


def test_a_child_of_a_run_that_is_there_leaves_its_log_alone() -> None:
    """Multi-table inheritance: ``Child(parent_ptr=parent)`` over a row that has a log."""
    parent = make(TableRun)
    parent.append_event("tool", "first")

    child = TableChildRun(tablerun_ptr=parent, note="adopted")
    child.__dict__.update({f.attname: getattr(parent, f.attname) for f in TableRun._meta.fields})
    child.save()
    child.append_event("tool", "second")

    assert stored(parent) == [(1, "first"), (2, "second")]


def test_a_child_with_a_key_of_its_own_writes_to_its_own_log() -> None:
    """The second's own key is the one that the first has in the table of the log."""
    first = NumberedTableRun.objects.create(number=2_000_001)
    second = NumberedTableRun.objects.create(number=first.base_id)

    first.append_event("tool", "of the first")
    second.append_event("tool", "of the second")
    first.add_log("line of the first")

    assert [entry.get("label") for entry in get(first).events_log] == ["of the first", None]
    assert [numbered.seq for numbered in first.events_after(1)] == [2]
    assert [n.entry["label"] for n in get(second).events_after()] == ["of the second"]


def test_a_run_with_a_uuid_for_a_key_keeps_its_log(vendor: str) -> None:
    run = UUIDTableRun.objects.create()
    other = UUIDTableRun.objects.create()
    entries = [run.append_event("tool", "first"), get(run).add_log("second")]
    other.append_event("tool", "of the other")

    assert get(run).events_log == entries
    assert run.events_after(1) == [(2, entries[1])]
    assert get(run).events_count == 2
    assert UUIDTableRunEvent.objects.get(run=run, seq=1).entry == entries[0]
    run.delete()
    assert UUIDTableRunEvent.objects.count() == 1
    with pytest.raises(RunNotFound):
        UUIDTableRun(pk=uuid.uuid4()).append_event("tool", "x")


def test_a_clone_with_a_new_uuid_starts_with_an_empty_log() -> None:
    run = UUIDTableRun.objects.create()
    run.append_event("tool", "first")
    clone = get(run)
    clone.pk, clone._state.adding = uuid.uuid4(), True
    clone.save()

    clone.append_event("tool", "of the clone")

    assert [(n.seq, n.entry["label"]) for n in clone.events_after()] == [(1, "of the clone")]
    assert get(run).events_count == 1


@commits
@pytest.mark.parametrize("inside", [False, True], ids=["autocommit", "in a transaction"])
def test_names_that_must_be_quoted_are_quoted(inside: bool) -> None:
    run = OddTableRun.objects.create()
    try:
        with transaction.atomic() if inside else connection.execute_wrapper(plain):
            first = run.append_event("tool", "100% %s {count}")
            second = run.append_event("tool", "second")
        appended = event_log_of(OddTableRun).append(run.pk, [ENTRY, ENTRY], "default")

        assert (appended.last, get(run).events_count) == (4, 4)
        assert run.events_log == [first, second, ENTRY, ENTRY]
        assert run.events_after(3) == [(4, ENTRY)]
        with override_settings(SOLID_RUNS={"TABLE_LOG_ENTRIES": 4}):
            run.append_event("tool", "left out")
        assert [n.entry["kind"] for n in run.events_after(4)] == ["truncated"]
    finally:
        OddTableRunEvent.objects.all().delete()  # no cascade between models of no app
        OddTableRun.objects.all().delete()


def plain(execute: Any, *args: Any) -> Any:
    return execute(*args)


@pytest.mark.parametrize("use", [lambda run: run.events_log, lambda run: run.events_after()])
def test_a_table_without_a_counter_is_told_by_class_and_setting(use: Callable[[Any], Any]) -> None:
    with pytest.raises(MissingColumn, match=r"UncountedRun\.events_model is set") as caught:
        use(UncountedRun())

    assert (caught.value.model, caught.value.column) == (UncountedRun, "events_count")


# Databases


class RunsElsewhere:
    """Everything is written to `other`, and read from there."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        return "other"

    db_for_write = db_for_read


class EntriesElsewhere:
    """A router that would send the entries away from their run."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str | None:
        return "other" if model is TableRunEvent else None

    db_for_write = db_for_read


@pytest.mark.django_db(databases=["default", "other"])
def test_nothing_of_the_log_is_said_to_default() -> None:
    from django.db import connections

    with (
        override_settings(DATABASE_ROUTERS=[RunsElsewhere()]),
        CaptureQueriesContext(connections["default"]) as captured,
    ):
        assert router.db_for_write(TableRun) == "other"
        run = TableRun.objects.create()
        first = run.append_event("tool", "search")
        second = run.add_log("asking")
        assert run.events_log == [first, second]
        assert run.events_after(1) == [(2, second)]
        clone = get(run)
        clone.pk = None
        clone.save()
        clone.append_event("tool", "of the clone")
        TableRun.objects.bulk_create([TableRun()])
        with override_settings(SOLID_RUNS={"TABLE_LOG_ENTRIES": 2}):
            run.append_event("tool", "left out")
        run.delete()
    assert len(captured) == 0
    assert TableRunEvent.objects.using("other").count() == 1


@pytest.mark.django_db(databases=["default", "other"])
def test_entries_are_where_their_run_is() -> None:
    from django.db import connections

    run = make(TableRun)
    with (
        override_settings(DATABASE_ROUTERS=[EntriesElsewhere()]),
        CaptureQueriesContext(connections["other"]) as captured,
    ):
        entry = run.append_event("tool", "search")
        assert run.events_log == get(run).events_log == [entry]
    assert len(captured) == 0
    assert stored(run) == [(1, "search")]


# What an append leaves alone


def test_an_append_touches_neither_signals_nor_the_time_and_a_log_line_both() -> None:
    run = make(TableRun, output="kept")
    long_ago = timezone.now() - timezone.timedelta(days=1)
    TableRun.objects.filter(pk=run.pk).update(updated_at=long_ago)
    run.refresh_from_db()
    run.output = "unsaved"
    heard: list[str] = []

    def receiver(signal: Any, **kwargs: Any) -> None:
        heard.append("pre_save" if signal is pre_save else "post_save")

    for signal in (pre_save, post_save):
        signal.connect(receiver, sender=TableRun)
        signal.connect(receiver, sender=TableRunEvent)
    try:
        run.append_event("tool", "search")
        assert (heard, row(run)["updated_at"], run.updated_at) == ([], long_ago, long_ago)
        run.add_log("asking")
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(receiver, sender=TableRun)
            signal.disconnect(receiver, sender=TableRunEvent)

    assert heard == ["pre_save", "post_save"]
    assert row(run)["updated_at"] > long_ago
    assert (row(run)["output"], run.output) == ("kept", "unsaved")


def test_who_listens_for_deletions_hears_of_each_entry() -> None:
    run = make(TableRun)
    for _ in range(3):
        run.append_event("tool", "search")
    heard: list[int] = []

    def receiver(instance: TableRunEvent, **kwargs: Any) -> None:
        heard.append(instance.seq)

    post_delete.connect(receiver, sender=TableRunEvent)
    try:
        run.delete()
    finally:
        post_delete.disconnect(receiver, sender=TableRunEvent)
    assert sorted(heard) == [1, 2, 3]


def test_the_async_twins_write_to_the_same_log() -> None:
    run = make(TableRun)

    async def work() -> tuple[Any, ...]:
        event = await run.aappend_event("tool", "search")
        line = await run.aadd_log("asking")
        return event, line, await run.aevents_log(), await run.aevents_after(0, 1)

    event, line, log, first = async_to_sync(work)()

    assert log == [event, line]
    assert first == [(1, event)]
    assert stored(run) == [(1, "search"), (2, None)]
    assert run.events_count == 2


# The admin and the API


TOLD = [
    {**ENTRY, "eid": "1", "kind": "llm", "label": "gpt-4o", "status": "started"},
    {"timestamp": "2026-01-15T09:30:12Z", "level": "info", "message": "asking the model"},
    {**ENTRY, "eid": "1", "kind": "llm", "label": "gpt-4o", "at": "2026-01-15T09:30:13.000Z"},
    {**ENTRY, "eid": "2", "label": "search", "status": "started", "detail": "3 rows"},
    "text of somebody else",
]


def twins() -> tuple[Any, Any]:
    """Two runs that say the same, one in its column, one in the table."""
    values: dict[str, Any] = {"status": "running", "started_at": timezone.now(), "trace_id": "t"}
    in_its_column = FreshRun.objects.create(**values, events=TOLD)
    in_the_table = TableRun.objects.create(**values)
    event_log_of(TableRun).append(in_the_table.pk, TOLD, "default")
    return in_its_column, in_the_table


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"after": 0, "limit": 2},
        {"after": 2, "limit": 2},
        {"after": 4, "limit": 1},
        {"after": 3, "limit": 2},
        {"after": 5},
        {"after": 2**63 - 1},
        {"limit": 1000},
        {"after": -1},
        {"limit": 0},
    ],
    ids=str,
)
def test_the_api_cannot_tell_the_difference(query: dict[str, int]) -> None:
    api = reader()
    answers = [api.get(url(type(run), run.pk, "events/"), query) for run in twins()]

    assert answers[0].status_code == answers[1].status_code
    assert answers[0].json() == answers[1].json()
    if answers[1].status_code == 200:
        after, limit = query.get("after", 0), query.get("limit", 100)
        page = answers[1].json()
        assert [event["seq"] for event in page["events"]] == list(range(1, 6))[after:][:limit]
        assert page["has_more"] is (5 - after > limit)


def test_the_admin_cannot_tell_the_difference(admin_client: Any) -> None:
    pages = []
    for run in twins():
        name = f"admin:tests_{run._meta.model_name}_change"
        context = admin_client.get(reverse(name, args=[run.pk])).context
        pages.append({key: context[key] for key in ("run_entries", "run_hidden_steps")})
        pages[-1]["lines"] = [line._replace(row=line.row.depth) for line in context["run_lines"]]

    assert pages[0] == pages[1]
    assert [line.label for line in pages[1]["lines"]] == [
        "gpt-4o",
        "asking the model",
        "search",
        "text of somebody else",
    ]
    assert pages[1]["run_entries"] == 5


# The index


@pytest.fixture
def long_log(committed: None) -> Any:
    """A run of 3,000 entries, among others. Committed: MariaDB ends a transaction to analyse."""
    runs = [make(TableRun) for _ in range(3)]
    TableRunEvent.objects.bulk_create(
        TableRunEvent(run=run, seq=seq, entry=ENTRY) for run in runs for seq in range(1, 3001)
    )
    TableRun.objects.update(events_count=3000)
    with connection.cursor() as cursor:
        analyze = {"mysql": "ANALYZE TABLE tests_tablerunevent"}
        cursor.execute(analyze.get(connection.vendor, "ANALYZE tests_tablerunevent"))
    return get(runs[1])


def plan(sql: str) -> str:
    how = {"sqlite": "EXPLAIN QUERY PLAN"}.get(connection.vendor, "EXPLAIN")
    with connection.cursor() as cursor:
        cursor.execute(f"{how} {sql}")
        names = [column[0] for column in cursor.description]
        steps = [zip(names, found, strict=True) for found in cursor.fetchall()]
    return "\n".join(str(dict(step)) for step in steps)


@pytest.mark.parametrize("limit", [None, 50])
def test_a_tail_is_read_by_the_index_of_run_and_number(
    long_log: Any, limit: int | None, vendor: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        found = long_log.events_after(2950, limit)
    assert [numbered.seq for numbered in found] == list(range(2951, 3001))
    assert len(captured) == 1

    steps = plan(captured[0]["sql"])

    if vendor == "sqlite":
        assert "(run_id=? AND seq>?)" in steps
        assert "TEMP B-TREE" not in steps
    elif vendor == "postgresql":
        assert "Index Scan using tests_tablerunevent_run_seq" in steps
        assert "Sort" not in steps
        assert "(seq > 2950)" in steps.split("Index Cond")[1]
    else:
        assert "'type': 'range'" in steps
        assert "'key': 'tests_tablerunevent_run_seq'" in steps
        assert "'rows': '50'" in steps
        assert "filesort" not in steps


def test_a_tail_costs_the_same_number_of_statements_at_any_length(
    long_log: Any, django_assert_num_queries: Any
) -> None:
    for after in (0, 1500, 2999):
        with django_assert_num_queries(1):
            assert long_log.events_after(after, 1)[0].seq == after + 1
