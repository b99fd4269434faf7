from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext

from solid_runs.columns import ColumnFacts, columns_of, facts, forget_facts
from solid_runs.exceptions import MissingColumn
from solid_runs.models import AgentRunMixin
from tests.models import (
    AgentOwnedRun,
    ChildRun,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
)
from tests.rows import OWN_TABLES, every_shape, full_shapes, make, row
from tests.run_models import MisnamedLogRun, RenamedLogRun, TextLogRun, create_text_table

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]


@pytest.fixture(scope="module", autouse=True)
def text_table(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_text_table(connection)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    forget_facts()
    yield
    forget_facts()


# Which columns a model has


@pytest.mark.parametrize(
    ("model", "present", "absent"),
    [
        (PlatformRun, "reported_total_tokens", "stored_instructions_digest"),
        (PlatformRun, "error_backtrace", "agent_name"),
        (GeneratorRun, "stored_instructions_digest", "reported_total_tokens"),
        (GeneratorRun, "agent_name", "error_backtrace"),
        (FreshRun, "provider", "agent_id"),
        (MinimalRun, "status", "updated_at"),
        (AgentOwnedRun, "agent", "runnable_type"),
        (AgentOwnedRun, "agent_id", "runnable_id"),
    ],
)
def test_it_is_known_which_columns_a_model_has(model: Model, present: str, absent: str) -> None:
    columns = columns_of(model)

    assert present in columns
    assert absent not in columns


@pytest.mark.parametrize("name", ["total_tokens", "instructions_digest", "summary", "pk", "nope"])
def test_what_is_computed_is_no_column(name: str) -> None:
    assert name not in columns_of(FreshRun)


@every_shape
def test_a_column_that_is_not_there_reads_as_none(model: Model) -> None:
    run = make(model)

    for name in (
        "agent_name",
        "agent_id",
        "error_backtrace",
        "input_params",
        "reported_total_tokens",
        "runnable_type",
        "runnable_id",
        "output",
        "output_metadata",
        "created_at",
        "started_at",
        "trace_id",
        "provider",
        "model",
    ):
        if name not in columns_of(model):
            assert getattr(run, name) is None, name


def test_a_name_of_nothing_is_an_attribute_error() -> None:
    run = make(MinimalRun)

    with pytest.raises(AttributeError, match="'MinimalRun' object has no attribute 'outptu'"):
        run.outptu  # noqa: B018


def test_the_error_of_a_property_of_the_host_is_not_hidden() -> None:
    class Host(MinimalRun):
        @property
        def output(self) -> str:
            raise AttributeError("of the host")

        class Meta:
            proxy = True
            app_label = "tests"
            apps = RenamedLogRun._meta.apps

    with pytest.raises(AttributeError, match="of the host"):
        Host().output  # noqa: B018


@pytest.mark.parametrize("model", [FreshRunProxy, ChildRun])
def test_the_owner_is_the_model_whose_table_holds_the_status(model: Model) -> None:
    assert columns_of(model).owner._meta.db_table == "tests_freshrun"
    assert "note" not in columns_of(model)


@pytest.mark.parametrize(
    ("model", "name", "column"),
    [
        (PlatformRun, "logs", "logs"),
        (GeneratorRun, "events", "events"),
        (MinimalRun, "log", "log"),
        (RenamedLogRun, "trail", "logs"),
        (ChildRun, "events", "events"),
    ],
)
def test_the_log_is_the_field_that_events_column_names(
    model: Model, name: str, column: str
) -> None:
    assert (columns_of(model).log.name, columns_of(model).log.column) == (name, column)


def test_a_log_that_is_not_there_is_told() -> None:
    with pytest.raises(MissingColumn, match=r"Set events_column to the name of the field"):
        columns_of(MisnamedLogRun).log  # noqa: B018


# What the columns really are


@pytest.mark.parametrize(
    ("model", "name", "kinds"),
    [
        (PlatformRun, "logs", {"postgresql": "jsonb", "mysql": "longtext"}),
        (PlatformJsonRun, "logs", {"postgresql": "json", "mysql": "longtext"}),
        (FreshRun, "events", {"postgresql": "jsonb", "mysql": "longtext"}),
        (TextLogRun, "log", {"postgresql": "text", "mysql": "longtext"}),
        (PlatformRun, "output", {"postgresql": "text", "mysql": "text"}),
    ],
)
def test_the_real_type_is_asked_of_the_database(
    asked_anew: None, model: Model, name: str, kinds: dict[str, str]
) -> None:
    field = model._meta.get_field(name)

    assert facts(field, connection).kind == kinds.get(connection.vendor, "unknown")


def test_the_question_is_asked_once_a_table(asked_anew: None) -> None:
    fields = PlatformRun._meta.local_concrete_fields
    expected = 0 if connection.vendor == "sqlite" else 1

    with CaptureQueriesContext(
        connection,
    ) as queries:
        for field in fields:
            facts(field, connection)
    assert len(queries) == expected

    with CaptureQueriesContext(connection) as queries:
        for field in fields:
            facts(field, connection)
    assert len(queries) == 0


def test_forgotten_facts_are_asked_for_again(asked_anew: None) -> None:
    field = TextLogRun._meta.get_field("log")
    before = facts(field, connection)
    forget_facts()

    with CaptureQueriesContext(connection) as queries:
        assert facts(field, connection) == before
    assert len(queries) == (0 if connection.vendor == "sqlite" else 1)


def test_real_limits_are_known(asked_anew: None) -> None:
    short = facts(FreshRun._meta.get_field("action_name"), connection)
    long = facts(PlatformRun._meta.get_field("output"), connection)

    if connection.vendor == "sqlite":
        assert short == long == ColumnFacts()
    elif connection.vendor == "postgresql":
        assert (short.max_chars, long.max_chars) == (255, None)
    else:
        assert (short.max_chars, long.max_chars, long.max_bytes) == (255, None, 65_535)


# Making values storable


@full_shapes
def test_values_for_columns_that_are_not_there_are_skipped(model: Model) -> None:
    given = dict.fromkeys(("output", "agent_name", "error_backtrace", "nope"), "x")

    kept = columns_of(model).storable(given, "default")

    assert set(kept) == {name for name in given if name in columns_of(model)}


@pytest.mark.parametrize(
    ("value", "kept"), [("a\x00b", "a\ufffdb"), (None, None), ([1, "é"], '[1,"é"]'), (5, "5")]
)
def test_a_text_column_gets_text(value: Any, kept: Any) -> None:
    assert columns_of(FreshRun).storable({"output": value}, "default") == {"output": kept}


def test_a_json_column_gets_json() -> None:
    given = {"output_metadata": {"a": {1, 2}, "b": float("inf")}}

    assert columns_of(FreshRun).storable(given, "default") == {
        "output_metadata": {"a": [1, 2], "b": None}
    }


def test_an_expression_is_left_as_it_is() -> None:
    expression = models.F("output")

    kept = columns_of(FreshRun).storable({"output": expression}, "default")

    assert kept == {"output": expression}


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1], ids=str)
@pytest.mark.parametrize("model", [PlatformRun, FreshRun])
def test_a_figure_that_no_column_holds_is_dropped_and_told(
    model: Model, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "solid_runs"):
        kept = columns_of(model).storable({"input_tokens": count, "output_tokens": 1}, "default")

    assert kept == {"output_tokens": 1}
    assert len(caplog.records) == 1


@full_shapes
def test_an_outcome_past_its_column_is_cut_and_kept(model: Model) -> None:
    run = make(model, "running")

    assert run.finish("é" * 100_000) is True

    output = row(run)["output"]
    assert output == run.output
    if connection.vendor == "mysql" and model not in OWN_TABLES:  # a text column, not a longtext
        assert len(output.encode()) <= 65_535
        assert output.endswith("… [cut, 100000 characters]")
        assert len(output) > 32_000
    else:
        assert output == "é" * 100_000
