from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from django.db import connection, transaction

from solid_runs.exceptions import NotAnObject
from solid_runs.models import AgentRunMixin
from tests.models import FreshRun, GeneratorRun, PlatformJsonRun, PlatformRun
from tests.rows import get, listening, make, row, store_text, stored_text
from tests.run_models import (
    NarrowRun,
    NumberedProviderRun,
    TextLogRun,
    create_narrow_table,
    create_text_table,
)

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

EVERY_METADATA = [PlatformRun, PlatformJsonRun, GeneratorRun, FreshRun, TextLogRun]
every_metadata = pytest.mark.parametrize("model", EVERY_METADATA)
NASTY_KEYS = [
    'a"b',
    '"',
    "$.x",
    "$",
    "$[0]",
    "",
    " ",
    "é",
    "a.b",
    "\\",
    "a\\",
    '\\"',
    "\\u00e9",
    "line\nbreak",
    "tab\t",
    "\x1f",
    "🚆",
    "it's",
    "%s",
    "100%",
    "{col}",
    "#",
    "[0]",
    "*",
    "a/b",
    "/a",
    "\u2028",
    "x" * 10_000,
]


@pytest.fixture(scope="module", autouse=True)
def text_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_text_table(connection)


def running(model: Model, metadata: Any = None) -> Any:
    run = make(model, "running")
    if isinstance(metadata, str):
        store_text(run, "output_metadata", metadata)
    else:
        store_text(run, "output_metadata", None if metadata is None else json.dumps(metadata))
    return get(run)


def metadata(run: AgentRunMixin) -> Any:
    return json.loads(stored_text(run, "output_metadata") or "null")


def is_text(model: Model) -> bool:
    return connection.vendor != "postgresql" or model is TextLogRun


@every_metadata
def test_new_keys_join_the_stored_ones(model: Model) -> None:
    run = running(model, {"provider": "openai", "cost": 1.5})

    assert run.finish("done", metadata={"cost": 2.5, "cached": True}) is True

    assert metadata(run) == {"provider": "openai", "cost": 2.5, "cached": True}
    assert run.output_metadata == metadata(run)


@every_metadata
def test_metadata_joins_what_the_row_holds_then_and_not_this_copys(model: Model) -> None:
    run = running(model, {"seen": 1})
    store_text(run, "output_metadata", '{"written": "since"}')
    assert run.output_metadata == {"seen": 1}

    run.finish("done", metadata={"new": 1})

    assert metadata(run) == {"written": "since", "new": 1}


@every_metadata
def test_the_merge_is_shallow(model: Model) -> None:
    run = running(model, {"usage": {"input": 1, "output": 2}, "tags": ["a"]})

    run.finish("done", metadata={"usage": {"cached": 3}, "tags": ["b"]})

    assert metadata(run) == {"usage": {"cached": 3}, "tags": ["b"]}


@every_metadata
def test_nulls_are_values(model: Model) -> None:
    run = running(model, {"a": 1, "b": {"x": None}, "c": None})

    run.finish("done", metadata={"a": None, "d": {"deep": [None, {"y": None}]}})

    assert metadata(run) == {
        "a": None,
        "b": {"x": None},
        "c": None,
        "d": {"deep": [None, {"y": None}]},
    }


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, TextLogRun])
@pytest.mark.parametrize("key", NASTY_KEYS, ids=lambda key: repr(key[:20]))
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as it is"])
def test_any_key_is_only_a_key(model: Model, key: str, ascii_only: bool) -> None:
    stored = {key: "old", "other": {key: "inner"}, "x": "untouched", "a": {"b": "untouched"}}
    run = running(model, json.dumps(stored, ensure_ascii=ascii_only))

    assert run.finish("done", metadata={key: {"new": key}, "plain": 1}) is True

    assert metadata(run) == stored | {key: {"new": key}, "plain": 1}
    assert get(run).output_metadata == metadata(run)


@every_metadata
def test_all_such_keys_at_once(model: Model) -> None:
    run = running(model, dict.fromkeys(NASTY_KEYS[::2], "old"))

    run.finish("done", metadata={key: number for number, key in enumerate(NASTY_KEYS)})

    assert metadata(run) == {key: number for number, key in enumerate(NASTY_KEYS)}


@every_metadata
@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "null",
        '{"a": 1}',
        'it\'s "quoted" \\ %s 100%',
        "🚆\u2028",
        0,
        -1.5,
        2**53 + 1,
        12345678901234567890,
        True,
        False,
        None,
        [],
        {},
        [1, [2, {"a": None}]],
    ],
    ids=repr,
)
def test_any_value_is_kept(model: Model, value: Any) -> None:
    run = running(model, {"before": value})

    run.finish("done", metadata={"value": value})

    merged = metadata(run)
    assert merged == {"before": value, "value": value}
    assert type(merged["value"]) is type(value)


@every_metadata
@pytest.mark.parametrize("stored", [None, "null", " null ", "{}", "{ }"], ids=repr)
def test_metadata_starts_an_object_where_there_is_none(model: Model, stored: Any) -> None:
    run = running(model, stored)

    run.finish("done", metadata={"a": 1})

    assert metadata(run) == {"a": 1}


@every_metadata
@pytest.mark.parametrize("stored", ["", "  "], ids=repr)
def test_blank_text_is_no_metadata_yet(model: Model, stored: str) -> None:
    if not is_text(model):
        with pytest.raises(Exception, match="json"), transaction.atomic():
            running(model, stored)
        return
    run = running(model, stored)

    run.finish("done", metadata={"a": 1})

    assert metadata(run) == {"a": 1}


@every_metadata
@pytest.mark.parametrize("given", [None, {}], ids=repr)
def test_nothing_given_changes_nothing(model: Model, given: Any) -> None:
    run = running(model, {"a": 1})

    assert run.finish("done", metadata=given) is True

    assert metadata(run) == {"a": 1}


@every_metadata
@pytest.mark.parametrize(
    "stored", ["[]", '[{"a": 1}]', '"text"', '"{}"', "5", "true", "no json"], ids=repr
)
def test_what_is_no_object_is_refused_and_nothing_is_written(model: Model, stored: str) -> None:
    if stored == "no json" and (not is_text(model) or connection.vendor == "mysql"):
        model = TextLogRun  # elsewhere a row that breaks its own constraint takes no update at all
    run = running(model, stored)
    before = row(run), stored_text(run, "output_metadata")

    with listening() as heard, pytest.raises(NotAnObject) as caught:
        run.finish("done", metadata={"a": 1}, input_tokens=3)

    assert (row(run), stored_text(run, "output_metadata")) == before
    assert row(run)["status"] == "running"
    assert heard == []
    error = caught.value
    assert (error.model, error.pk, error.column) == (model, run.pk, "output_metadata")
    assert f"{model.__name__} {run.pk}" in str(error)
    assert "without metadata" in str(error)
    assert get(run).finish("done") is True


@every_metadata
def test_a_refused_merge_leaves_the_transaction_usable(model: Model) -> None:
    run = running(model, "[1]")

    with transaction.atomic():
        with pytest.raises(NotAnObject):
            run.finish("done", metadata={"a": 1})
        assert run.finish("done") is True


@every_metadata
@pytest.mark.parametrize("key", ["plain", 'a"b'])
def test_a_run_that_has_ended_takes_no_metadata(model: Model, key: str) -> None:
    stale = running(model, {"a": 1})
    model._base_manager.filter(pk=stale.pk).update(status="cancelled")

    assert stale.finish("late", metadata={key: 1}) is False

    assert metadata(stale) == {"a": 1}
    assert stale.status == "cancelled"


@every_metadata
@pytest.mark.parametrize("key", ["plain", 'a"b'])
def test_a_copy_that_has_not_heard_of_the_start_merges_too(model: Model, key: str) -> None:
    stale = make(model)
    get(stale).start()

    assert stale.finish("done", metadata={key: 1}) is True

    assert metadata(stale) == {key: 1}


@every_metadata
def test_an_escaped_nul_of_an_older_writer_does_not_stop_the_end(model: Model) -> None:
    if connection.vendor == "postgresql" and model in (PlatformRun, GeneratorRun, FreshRun):
        model = PlatformJsonRun  # jsonb takes no such value
    run = running(model, r'{"said": "a\u0000b", "n": 1}')

    assert run.finish("done", metadata={"new": "é"}) is True

    merged = metadata(run)
    assert merged["said"] in ("a\x00b", "a\ufffdb")
    assert (merged["n"], merged["new"]) == (1, "é")


@every_metadata
def test_what_no_database_stores_is_cleaned(model: Model) -> None:
    run = running(model)

    run.finish("done", metadata={"a\x00b": "c\x00d", "e": "\udc81", "nan": float("nan"), 5: "key"})

    assert metadata(run) == {"a\ufffdb": "c\ufffdd", "e": "\ufffd", "nan": None, "5": "key"}


@every_metadata
@pytest.mark.parametrize("levels", [20, 31, 100])
def test_deep_metadata_loses_nothing(model: Model, levels: int) -> None:
    deep: Any = "core"
    for _ in range(levels):
        deep = [deep]
    run = running(model, {"a": 1})

    assert run.finish("done", metadata={"deep": deep}) is True

    merged = metadata(run)
    assert merged["a"] == 1
    assert "core" in json.dumps(merged["deep"])


@every_metadata
def test_the_callers_object_stays_as_it_was(model: Model) -> None:
    run = running(model, {"a": 1})
    given: dict[str, Any] = {"b": {"c": [float("nan")]}}

    run.finish("done", metadata=given)

    assert list(given) == ["b"]
    assert str(given["b"]) == "{'c': [nan]}"


def test_provider_and_model_fill_the_columns_of_a_table_of_our_own() -> None:
    run = running(FreshRun)

    run.finish("done", metadata={"provider": "openai", "model": "gpt-4o"})

    stored = row(run)
    assert (stored["provider"], stored["model"]) == ("openai", "gpt-4o")
    assert stored["output_metadata"] == {"provider": "openai", "model": "gpt-4o"}
    assert (run.provider, run.model) == ("openai", "gpt-4o")


def test_a_host_whose_provider_is_no_text_still_ends_its_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = NumberedProviderRun.objects.get(pk=2)

    with caplog.at_level(logging.WARNING, "solid_runs"):
        assert run.finish("done", metadata={"provider": "openai"}) is True

    assert NumberedProviderRun.objects.get(pk=2).output_metadata["provider"] == "openai"
    assert NumberedProviderRun.objects.get(pk=2).provider == 2


@pytest.fixture
def repeatable_read(committed: None) -> Iterator[None]:
    """On MariaDB a transaction then reads from the moment of its first read on."""
    create_narrow_table(connection)
    level = "SET SESSION TRANSACTION ISOLATION LEVEL {}"
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute(level.format("REPEATABLE READ"))
        yield
        if connection.vendor == "mysql":
            cursor.execute(level.format("READ COMMITTED"))
        cursor.execute("DROP TABLE narrow_runs")


def test_a_merge_under_a_lock_keeps_what_another_committed_since_the_snapshot(
    repeatable_read: None,
) -> None:
    """The key is one that each database merges under a lock."""
    run = NarrowRun.objects.create(status="running", output_metadata={"a": 1})

    def write() -> None:
        try:
            NarrowRun.objects.filter(pk=run.pk).update(output_metadata={"a": 1, "theirs": 2})
        finally:
            connection.close()

    with transaction.atomic():
        if connection.vendor != "sqlite":  # there it could not write any more after a read
            assert get(run).output_metadata == {"a": 1}
        another = Thread(target=write)
        another.start()
        another.join()
        assert run.finish("done", metadata={"🚆": 3}) is True

    assert get(run).output_metadata == {"a": 1, "theirs": 2, "🚆": 3}
