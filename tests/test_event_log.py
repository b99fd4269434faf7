from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import connection, transaction
from django.db.models import signals
from django.utils import timezone

from solid_runs.exceptions import MissingColumn, NotAList, RunNotFound
from solid_runs.models import AgentRunMixin
from tests.models import (
    FreshRun,
    PlatformJsonRun,
    PlatformRun,
)
from tests.rows import (
    EVERY_SHAPE,
    every_shape,
    full_shapes,
    get,
    has,
    keeps_a_table,
    log_field,
    make,
    rails_shapes,
    row,
    statements_of_append,
    store_log,
    store_text,
    stored_text,
)
from tests.run_models import (
    BaseRun,
    MisnamedLogRun,
    NumberedRun,
    OddlyNamedRun,
    RenamedLogRun,
    TextLogRun,
    TightRun,
    create_oddly_named_table,
    create_tables,
    create_text_table,
)

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

LONG_AGO = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
EVERY_LOG = [*EVERY_SHAPE, TextLogRun]
every_log = pytest.mark.parametrize("model", EVERY_LOG)
WRITTEN = {"kind": "tool", "label": "written by another", "status": "done"}


@pytest.fixture(scope="module", autouse=True)
def text_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_text_table(connection)
        create_oddly_named_table(connection)
        create_tables(connection, BaseRun, NumberedRun, TightRun)


def labels(run: AgentRunMixin) -> list[str]:
    return [entry["label"] for entry in get(run).events_log]


def log_text(run: AgentRunMixin) -> str | None:
    return stored_text(run, log_field(type(run)))


# append_event: the entry


@every_log
def test_append_event_returns_the_entry_that_it_stored(model: Model) -> None:
    run = make(model)

    entry = run.append_event("tool", "search", eid="1", detail="3 rows", duration_ms=12)

    assert get(run).events_log == [entry]
    assert list(entry) == ["at", "eid", "kind", "label", "status", "detail", "duration_ms"]
    assert entry == {
        "at": entry["at"],
        "eid": "1",
        "kind": "tool",
        "label": "search",
        "status": "done",
        "detail": "3 rows",
        "duration_ms": 12,
    }


def test_an_event_has_only_what_was_given() -> None:
    entry = make(PlatformRun).append_event("tool", "search")

    assert list(entry) == ["at", "kind", "label", "status"]
    assert entry["status"] == "done"


def test_an_event_keeps_what_is_empty_but_given() -> None:
    entry = make(PlatformRun).append_event("", "", eid="", status="", detail="", duration_ms=0)

    assert {**entry, "at": None} == {
        "at": None,
        "eid": "",
        "kind": "",
        "label": "",
        "status": "",
        "detail": "",
        "duration_ms": 0,
    }


def test_the_time_of_an_event_is_utc_with_milliseconds() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)

    at = make(PlatformRun).append_event("tool", "search")["at"]

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", at)
    assert before <= datetime.fromisoformat(at) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        ({"b": [1, None, True], "a": "é"}, '{"b":[1,null,true],"a":"é"}'),
        ([], "[]"),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        (float("nan"), "null"),
        (datetime(2026, 1, 15, tzinfo=UTC), '"2026-01-15T00:00:00+00:00"'),
    ],
    ids=str,
)
def test_a_detail_that_is_no_text_becomes_compact_json_text(detail: Any, text: str) -> None:
    run = make(PlatformRun)

    run.append_event("tool", "search", detail=detail)

    assert get(run).events_log[0]["detail"] == text


@pytest.mark.parametrize(
    ("detail", "kept"),
    [
        ("x" * 1200, "x" * 1200),
        ("x" * 1201, "x" * 1200),
        ("é" * 1000, "é" * 600),
        ("x" + "é" * 1000, "x" + "é" * 599),
        ("xx" + "🚆" * 1000, "xx" + "🚆" * 299),
        (["é" * 1000], '["' + "é" * 599),
    ],
    ids=["fits", "cut", "two bytes", "between", "four bytes", "json"],
)
def test_a_detail_is_cut_to_1200_bytes_without_splitting_a_character(
    detail: Any, kept: str
) -> None:
    run = make(PlatformRun)

    run.append_event("tool", "search", detail=detail)

    assert get(run).events_log[0]["detail"] == kept


@every_log
@pytest.mark.parametrize(
    "said",
    ["100% %s %(pk)s", 'it\'s "so"', "back\\slash \\u0041 \\", "line\n\t\u2028", "🚆 où?", "{col}"],
)
def test_whatever_an_event_says_is_kept(model: Model, said: str) -> None:
    run = make(model)

    run.append_event(said, said, eid=said, status=said, detail=said)

    entry = get(run).events_log[0]
    assert [entry[name] for name in ("kind", "label", "eid", "status", "detail")] == [said] * 5


def test_what_is_no_text_is_told_as_text() -> None:
    entry = make(PlatformRun).append_event(None, 7, eid=8, status=False)

    assert [entry[name] for name in ("kind", "label", "eid", "status")] == [
        "None",
        "7",
        "8",
        "False",
    ]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@every_shape
@pytest.mark.parametrize("name", ["kind", "label", "eid", "status", "detail"])
def test_an_argument_that_cannot_be_printed_does_not_stop_an_event(model: Model, name: str) -> None:
    run = make(model)

    entry = run.append_event(**{"kind": "tool", "label": "x", name: Unprintable()})

    assert "Unprintable" in entry[name]
    assert get(run).events_log == [entry]


@every_shape
@pytest.mark.parametrize("name", ["message", "level"])
def test_an_argument_that_cannot_be_printed_does_not_stop_a_log_line(
    model: Model, name: str
) -> None:
    run = make(model)

    entry = run.add_log(**{"message": "x", name: Unprintable()})

    assert "Unprintable" in entry[name]
    assert get(run).events_log == [entry]


# append_event: what it writes


@full_shapes
def test_append_event_writes_the_log_and_nothing_else(model: Model) -> None:
    run = make(model, output="kept")
    model.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)
    before = row(run)
    run.output = "unsaved"

    run.append_event("tool", "search")

    after = row(run)
    if keeps_a_table(model):
        assert (before.pop("events_count"), after.pop("events_count")) == (0, 1)
    else:
        log = log_field(model)
        assert (before.pop(log) or [], len(after.pop(log))) == ([], 1)
    assert after == before
    assert after["updated_at"] == LONG_AGO
    assert run.output == "unsaved"


@every_shape
def test_append_event_validates_nothing_and_sends_no_save_signals(model: Model) -> None:
    run = make(model)
    run.status = None  # full_clean() would object

    with saves(model) as sent:
        run.append_event("tool", "search")

    assert sent == []
    assert labels(run) == ["search"]


@every_log
def test_after_an_append_the_next_read_is_fresh(model: Model) -> None:
    run = make(model)
    assert run.events_log == []
    get(run).append_event("tool", "theirs")

    run.append_event("tool", "mine")

    assert [entry["label"] for entry in run.events_log] == ["theirs", "mine"]


@every_log
def test_appends_of_stale_copies_lose_nothing(model: Model) -> None:
    copies = [make(model)]
    copies += [get(copies[0]), get(copies[0])]
    assert [copy.events_log for copy in copies] == [[], [], []]

    for number in range(9):
        copies[number % 3].append_event("tool", str(number))

    assert labels(copies[0]) == [str(number) for number in range(9)]


@every_log
def test_a_deferred_log_is_appended_to_without_being_read(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model)
    run.append_event("tool", "first")
    partial = model.objects.only("pk").get(pk=run.pk)

    if model is TextLogRun and connection.vendor == "postgresql":
        partial.append_event("tool", "second")
    else:
        with django_assert_num_queries(statements_of_append(model)):
            partial.append_event("tool", "second")

    assert labels(run) == ["first", "second"]


@every_shape
@pytest.mark.parametrize("end", ["complete", "failed", "cancelled"])
def test_events_after_the_end_are_kept(model: Model, end: str) -> None:
    run = make(model, end)

    run.append_event("tool", "late")

    assert labels(run) == ["late"]
    assert get(run).status == end


@every_log
def test_an_append_that_is_rolled_back_is_gone(model: Model) -> None:
    run = make(model)

    with transaction.atomic():
        run.append_event("tool", "search")
        transaction.set_rollback(True)

    assert run.events_log == []


@every_log
def test_a_deleted_run_takes_no_events(model: Model) -> None:
    run = make(model)
    model._base_manager.filter(pk=run.pk).delete()

    with pytest.raises(RunNotFound, match=f"{model.__name__} with primary key {run.pk}"):
        run.append_event("tool", "search")
    with pytest.raises(RunNotFound):
        run.add_log("search")
    with pytest.raises(RunNotFound):
        run.events_after(0)


@every_log
def test_an_unsaved_run_takes_no_events(model: Model) -> None:
    run = model()

    with pytest.raises(RunNotFound, match=r"save\(\) it first"):
        run.append_event("tool", "search")
    with pytest.raises(RunNotFound, match=r"save\(\) it first"):
        run.add_log("search")
    with pytest.raises(RunNotFound, match=r"save\(\) it first"):
        run.events_after(0)
    assert run.events_log == []


# What the column held before

EMPTY = [None, "null", "[]", "[ ]", " [\n] ", '""', '"[]"']
BLANK = ["", "  "]
OTHER = ["{}", '{"a": 1}', '"text"', "5", "1.5", "true", '"{}"']
BROKEN = ["no json", "[1,", "{]"]


def is_text(model: Model) -> bool:
    """Whether the column takes what is no JSON at all."""
    return connection.vendor != "postgresql" or model is TextLogRun


@every_log
@pytest.mark.parametrize("stored", EMPTY + BLANK, ids=repr)
def test_every_face_of_an_empty_log_becomes_a_list(model: Model, stored: str | None) -> None:
    run = make(model)
    if stored in BLANK and not is_text(model):
        stored = json.dumps(stored) if stored == "" else None
    store_log(run, stored)
    assert get(run).events_log == []

    entry = run.append_event("tool", "search")

    assert json.loads(log_text(run) or "") == [entry]


@every_log
@pytest.mark.parametrize("stored", OTHER + BROKEN, ids=repr)
def test_what_is_no_list_is_refused_and_never_overwritten(model: Model, stored: str) -> None:
    run = make(model)
    if stored in BROKEN and not is_text(model):
        stored = json.dumps(stored)
    store_log(run, stored)
    before = log_text(run)

    with pytest.raises(NotAList) as caught:
        run.append_event("tool", "search")

    assert log_text(run) == before
    error = caught.value
    assert (error.model, error.pk) == (model, run.pk)
    assert f"{model.__name__} {run.pk}" in str(error)
    assert repr(model._meta.get_field(log_field(model)).column) in str(error)


@every_log
@pytest.mark.parametrize("stored", ["{}", "5", "no json"])
def test_a_log_that_is_no_list_reads_as_empty(model: Model, stored: str) -> None:
    run = make(model)
    store_log(run, stored if stored != "no json" or is_text(model) else '"no json"')

    assert get(run).events_log == []
    assert run.events_after(0) == []


@every_log
def test_a_list_that_was_encoded_twice_can_be_read(model: Model) -> None:
    run = make(model)
    store_log(run, json.dumps(json.dumps([WRITTEN])))

    assert get(run).events_log == [WRITTEN]


@every_log
def test_a_refused_append_leaves_the_transaction_usable(model: Model) -> None:
    run = make(model)
    store_log(run, "{}")

    with transaction.atomic():
        with pytest.raises(NotAList):
            run.append_event("tool", "search")
        other = model.objects.create()

    assert model.objects.filter(pk=other.pk).exists()


@every_log
@pytest.mark.parametrize(
    "stored",
    ["[1]", '[null, "x", {"a": []}]', ' [ {"a" : 1} ]\n', "[[]]", '[{"]": "["}]', '["é🚆"]'],
)
def test_what_stood_in_the_list_stays(model: Model, stored: str) -> None:
    run = make(model)
    store_log(run, stored)

    entry = run.append_event("tool", "search")

    assert json.loads(log_text(run) or "") == [*json.loads(stored), entry]


@pytest.mark.parametrize("model", [PlatformJsonRun, TextLogRun])
def test_a_json_or_text_column_keeps_what_others_wrote_to_the_letter(model: Model) -> None:
    run = make(model)
    stored = r'[{"z":1.50,"a":1e300, "dup":1,"dup":2, "esc":"\u00e9\u0041"}'
    if connection.vendor == "mysql":  # JSON_ARRAY_APPEND sets its own spaces
        stored = stored.replace(":", ": ").replace(",", ", ").replace(",  ", ", ")
    store_log(run, stored + "]")

    run.append_event("tool", "search")

    text = log_text(run) or ""
    if connection.vendor == "sqlite":  # json_insert() minifies
        text, stored = text.replace(" ", ""), stored.replace(" ", "")
    assert text.startswith(stored)


@pytest.mark.parametrize("model", [PlatformJsonRun, TextLogRun])
def test_an_escaped_nul_of_an_older_writer_does_not_stop_an_append(model: Model) -> None:
    run = make(model)
    store_log(run, r'[{"label": "a\u0000b"}]')

    run.append_event("tool", "second")
    run.append_event("tool", "third")

    assert labels(run) == ["a\x00b", "second", "third"]


@pytest.fixture(params=["STRICT_TRANS_TABLES", ""], ids=["strict", "not strict"])
def sql_mode(request: pytest.FixtureRequest, db: None) -> Iterator[str]:
    """MariaDB in strict mode and out of it; the other databases know one mode."""
    if connection.vendor != "mysql":
        yield "the only one"
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (before,) = cursor.fetchone()
        cursor.execute("SET SESSION sql_mode = %s", [request.param])
        yield request.param
        cursor.execute("SET SESSION sql_mode = %s", [before])


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


@every_log
@pytest.mark.parametrize("levels", [19, 20, 28, 29, 30, 31, 100])
def test_a_deep_detail_loses_nothing(model: Model, levels: int, sql_mode: str) -> None:
    run = make(model)
    run.append_event("tool", "first")

    run.append_event("tool", "deep", detail=nested(levels))

    assert labels(run) == ["first", "deep"]
    assert json.loads(get(run).events_log[1]["detail"]) == nested(levels)


@every_log
@pytest.mark.parametrize("levels", [20, 29, 30, 31])
def test_a_deep_list_of_an_older_writer_is_appended_to(
    model: Model, levels: int, sql_mode: str
) -> None:
    run = make(model)
    store_log(run, json.dumps(nested(levels)))

    entry = run.append_event("tool", "second")

    assert json.loads(log_text(run) or "") == [*nested(levels), entry]


@pytest.mark.parametrize("levels", [32, 33, 100])
def test_a_list_deeper_than_mariadb_follows_is_appended_to(levels: int, sql_mode: str) -> None:
    """Only where no check constraint calls the JSON functions."""
    run = make(TextLogRun)
    store_log(run, json.dumps(nested(levels)))

    entry = run.append_event("tool", "second")

    assert json.loads(log_text(run) or "") == [*nested(levels), entry]


# add_log


class saves:
    """Collect what pre_save and post_save say."""

    def __init__(self, model: Model) -> None:
        self.model, self.sent = model, []

    def receive(self, signal: Any, **kwargs: Any) -> None:
        self.sent.append("pre_save" if signal is signals.pre_save else "post_save")

    def __enter__(self) -> list[str]:
        signals.pre_save.connect(self.receive, sender=self.model)
        signals.post_save.connect(self.receive, sender=self.model)
        return self.sent

    def __exit__(self, *args: Any) -> None:
        signals.pre_save.disconnect(self.receive, sender=self.model)
        signals.post_save.disconnect(self.receive, sender=self.model)


@every_log
def test_add_log_returns_the_entry_that_it_stored(model: Model) -> None:
    run = make(model)

    entry = run.add_log("asking the model")

    assert get(run).events_log == [entry]
    assert list(entry) == ["timestamp", "level", "message"]
    assert (entry["level"], entry["message"]) == ("info", "asking the model")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["timestamp"])
    age = datetime.now(UTC) - datetime.fromisoformat(entry["timestamp"])
    assert timedelta(0) <= age < timedelta(minutes=1)


def test_add_log_takes_a_level() -> None:
    assert make(PlatformRun).add_log("careful", level="warn")["level"] == "warn"


@every_log
def test_both_shapes_live_in_one_list_in_the_order_of_their_writing(model: Model) -> None:
    run = make(model)

    written = [
        run.append_event("llm", "gpt-4o", eid="1", status="started"),
        run.add_log("asking the model"),
        run.append_event("llm", "gpt-4o", eid="1"),
        run.add_log("thinking"),
    ]

    assert get(run).events_log == written


@full_shapes
def test_add_log_moves_updated_at(model: Model) -> None:
    run = make(model)
    model.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)

    run.add_log("asking the model")

    assert timezone.now() - row(run)["updated_at"] < timedelta(minutes=1)


def test_add_log_moves_an_updated_at_that_does_not_move_by_itself() -> None:
    run = make(TightRun, updated_at=LONG_AGO)

    run.add_log("asking the model")

    assert timezone.now() - row(run)["updated_at"] < timedelta(minutes=1)
    assert run.updated_at == row(run)["updated_at"]


@every_shape
def test_add_log_sends_the_save_signals(model: Model) -> None:
    run = make(model)

    with saves(model) as sent:
        run.add_log("asking the model")

    assert sent == ["pre_save", "post_save"]


@every_shape
def test_add_log_leaves_other_unsaved_changes_unsaved(model: Model) -> None:
    run = make(model, output="before")
    before = row(run)

    run.output, run.status = "after", "running"
    run.add_log("asking the model")

    after = row(run)
    for name in {"output", "status"} & after.keys():
        assert after[name] == before[name]
    assert (run.output, run.status) == ("after", "running")
    run.save()
    assert row(run)["status"] == "running"


def test_add_log_validates_and_then_logs_nothing() -> None:
    run = make(FreshRun)
    run.append_event("tool", "first")
    FreshRun.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)

    run.trace_id = "x" * 300
    with pytest.raises(ValidationError, match="at most 255"):
        run.add_log("asking the model")

    assert labels(run) == ["first"]
    assert row(run)["updated_at"] == LONG_AGO


@every_shape
def test_a_receiver_that_refuses_takes_the_log_line_back(model: Model) -> None:
    run = make(model)

    def refuse(**kwargs: Any) -> None:
        raise RuntimeError("not today")

    signals.post_save.connect(refuse, sender=model)
    try:
        with pytest.raises(RuntimeError):
            run.add_log("asking the model")
    finally:
        signals.post_save.disconnect(refuse, sender=model)

    assert get(run).events_log == []


@every_shape
def test_add_log_does_not_judge_the_log_or_an_unknown_status(model: Model) -> None:
    run = make(model)
    store_text(run, "status", "9")
    store_log(run, "[5]")
    run = get(run)

    run.add_log("asking the model")

    assert len(get(run).events_log) == 2
    assert stored_text(run, "status") == "9"


@every_log
def test_a_refused_log_line_leaves_everything_as_it_was(model: Model) -> None:
    run = make(model)
    if has(model, "updated_at"):
        model.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)
    store_log(run, '{"a": 1}')
    before = row(run)

    with pytest.raises(NotAList):
        run.add_log("asking the model")

    assert row(run) == before


# Reading


@rails_shapes
def test_the_log_that_rails_wrote_reads_oldest_first(model: Model) -> None:
    log = model.objects.get(pk=3).events_log

    assert [(entry["label"], entry["status"]) for entry in log] == [
        ("claude-sonnet", "started"),
        ("claude-sonnet", "done"),
        ("search_invoices", "started"),
        ("search_invoices", "done"),
    ]
    assert model.objects.get(pk=2).events_log[1] == {
        "timestamp": "2026-01-15T09:30:12Z",
        "level": "info",
        "message": "asking the model",
    }
    assert model.objects.get(pk=1).events_log == []


@rails_shapes
def test_an_append_leaves_what_rails_wrote(model: Model) -> None:
    before = model.objects.get(pk=3).events_log

    entry = model.objects.get(pk=3).append_event("tool", "search")

    assert model.objects.get(pk=3).events_log == [*before, entry]


@every_log
def test_events_after_gives_entries_with_their_positions(model: Model) -> None:
    run = make(model)
    entries = [run.append_event("tool", str(number)) for number in range(3)]

    assert run.events_after() == [(1, entries[0]), (2, entries[1]), (3, entries[2])]
    assert run.events_after(1) == [(2, entries[1]), (3, entries[2])]
    assert run.events_after(3) == []
    assert run.events_after(99) == []


@every_log
def test_events_after_a_negative_position_are_all(model: Model) -> None:
    run = make(model)
    entries = [run.append_event("tool", str(number)) for number in range(3)]

    assert run.events_after(-1) == [(1, entries[0]), (2, entries[1]), (3, entries[2])]


@every_log
def test_events_after_reads_what_the_database_has_now(
    model: Model, django_assert_num_queries: Any
) -> None:
    run = make(model)
    assert run.events_log == []
    get(run).append_event("tool", "theirs")

    with django_assert_num_queries(1):
        [(seq, entry)] = run.events_after(0)

    assert (seq, entry["label"]) == (1, "theirs")


# The name of the column


def test_events_column_names_the_field_of_the_model() -> None:
    run = RenamedLogRun.objects.get(pk=2)

    entry = run.append_event("tool", "search")

    assert len(run.events_log) == 3
    assert PlatformRun.objects.get(pk=2).events_log[-1] == entry
    with pytest.raises(ValueError, match="'trail'"):
        run.save(update_fields=["trail"])
    run.trail = []
    run.save()
    assert len(PlatformRun.objects.get(pk=2).events_log) == 3


@pytest.mark.parametrize(
    "use",
    [
        lambda run: run.append_event("tool", "search"),
        lambda run: run.add_log("search"),
        lambda run: run.events_log,
        lambda run: run.events_after(0),
        lambda run: run.save(),
    ],
    ids=["append_event", "add_log", "events_log", "events_after", "save"],
)
def test_a_column_that_is_not_there_is_told_by_class_and_setting(use: Any) -> None:
    run = MisnamedLogRun.objects.get(pk=2)

    with pytest.raises(MissingColumn, match=r"MisnamedLogRun\.events_column is 'evnts'") as caught:
        use(run)

    assert isinstance(caught.value, ImproperlyConfigured)
    assert not isinstance(caught.value, AttributeError)
    assert (caught.value.model, caught.value.column) == (MisnamedLogRun, "evnts")
    assert len(PlatformRun.objects.get(pk=2).events_log) == 2


def test_names_that_must_be_quoted_are_quoted() -> None:
    run = OddlyNamedRun.objects.create()

    run.start()
    entry = run.append_event("tool", "100% %s")
    run.finish("done", metadata={"a": 1})

    stored = OddlyNamedRun.objects.get(pk=run.pk)
    assert (stored.status, stored.events_log) == ("complete", [entry])
    assert stored.output_metadata == {"a": 1}


def test_a_run_ends_even_where_the_log_column_is_misnamed() -> None:
    assert MisnamedLogRun.objects.get(pk=2).finish("done") is True


def test_a_child_with_a_key_of_its_own_appends_to_its_own_log() -> None:
    """The second's own key is the one that the first has in the table of the log."""
    first = NumberedRun.objects.create(number=2_000_001)
    second = NumberedRun.objects.create(number=first.base_id)

    first.append_event("tool", "of the first")
    second.append_event("tool", "of the second")
    first.add_log("line of the first")

    assert [entry.get("label") for entry in get(first).events_log] == ["of the first", None]
    assert [numbered.seq for numbered in first.events_after(1)] == [2]
    assert labels(second) == ["of the second"]
    assert [numbered.entry["label"] for numbered in second.events_after()] == ["of the second"]


def test_a_child_with_a_key_of_its_own_moves_only_itself() -> None:
    first = NumberedRun.objects.create(number=3_000_001)
    second = NumberedRun.objects.create(number=first.base_id)

    assert second.start() is True

    assert (get(first).status, get(second).status) == ("pending", "running")
