"""A transition runs as text what Django compiled once, and Django's own update is the measure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, connections, models, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Upper
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from solid_runs import transitions
from solid_runs.columns import columns_of
from solid_runs.exceptions import RunNotFound
from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.mixin import AgentRunMixin
from solid_runs.statements import update_row
from solid_runs.statuses import RunStatus
from solid_runs.transitions import rows_of
from tests.models import ChildRun, FreshRun, FreshRunProxy, PlatformRun
from tests.rows import every_shape, full_shapes, get, make, row, store_text
from tests.run_models import (
    BaseRun,
    NumberedRun,
    OddlyNamedRun,
    apart,
    create_oddly_named_table,
    create_tables,
)

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

NOW = datetime(2026, 1, 15, 23, 59, 59, 999_999, tzinfo=UTC)
TEXTS = {
    "percent": "100% %s %(a)s %%",
    "quotes": 'it\'s "so" `and` \\ back',
    "nul": "a\x00b",
    "emoji": "🚆 où? \u2028\n",
    "empty": "",
    "null": None,
}
MOVES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "start": ("pending", lambda run: run.start()),
    "finish": ("running", lambda run: run.finish("100% 'done' 🚆", input_tokens=7)),
    "finish with nothing": ("running", lambda run: run.finish(None)),
    "fail": ("running", lambda run: run.fail(ValueError('no "%s"'))),
    "cancel": ("running", lambda run: run.cancel()),
    "cancel without a reason": ("pending", lambda run: run.cancel(None)),
    "restart": ("failed", lambda run: run.restart()),
}


class CappedField(models.TextField):
    """The database makes capitals of what ends with an exclamation mark."""

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return "UPPER(%s)" if str(value).endswith("!") else "%s"

    def get_placeholder_sql(self, value: Any, compiler: Any, connection: Any) -> Any:
        return self.get_placeholder(value, compiler, connection), [value]


class LoudField(models.TextField):
    """The same, by an expression."""

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        value = super().get_db_prep_save(value, connection)
        return Upper(Value(value)) if str(value).endswith("!") else value


class SaltedField(models.TextField):
    """No two writes of one value look alike, as with encryption."""

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return f"{uuid.uuid4()}:{value}"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return value.partition(":")[2] if isinstance(value, str) else value


class CustomRun(AgentRunMixin):
    status = RunStatusField(store="name")
    events = RunJSONField(null=True)

    class Meta:
        abstract = True


class CappedRun(CustomRun):
    output = CappedField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "capped_runs"


class LoudRun(CustomRun):
    output = LoudField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "loud_runs"


class SaltedRun(CustomRun):
    output = SaltedField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "salted_runs"


class Hiding(models.Manager):
    hides = False

    def get_queryset(self) -> models.QuerySet[Any]:
        found = super().get_queryset()
        return found.filter(hidden__isnull=True) if self.hides else found


class HiddenRun(CustomRun):
    hidden = models.BooleanField(null=True)

    objects = Hiding()

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "hidden_runs"
        base_manager_name = "objects"


class NamedRun(CustomRun):
    """Its key is no number."""

    key = models.UUIDField(primary_key=True, default=uuid.uuid4)

    class Meta:
        app_label = "tests"
        apps = apart
        db_table = "named_runs"


@pytest.fixture(scope="module", autouse=True)
def tables(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection, BaseRun, NumberedRun)
        create_tables(connection, CappedRun, LoudRun, SaltedRun, HiddenRun, NamedRun)
        create_oddly_named_table(connection)


@pytest.fixture
def by_django(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have every transition use Django's update from here on."""

    def update(rows: Any, guard: Any, columns: Any, key: Any, values: Any, using: str) -> int:
        return int(rows().update(**values))

    return lambda: monkeypatch.setattr(transitions, "update_row", update)


@contextmanager
def only_text() -> Iterator[None]:
    """Fail where an update is compiled."""

    def refuse(*args: Any, **kwargs: Any) -> int:
        pytest.fail("This was left to Django.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models.QuerySet, "update", refuse)
        yield


def text_of(run: AgentRunMixin, **values: Any) -> int:
    """Update a running run as text."""
    columns = columns_of(type(run))
    key = columns.pk_of(run)
    with only_text():
        return update_row(lambda: running(run), "running", columns, key, values, "default")


def running(run: AgentRunMixin) -> models.QuerySet[Any]:
    return rows_of(run, columns_of(type(run)), "default").filter(status__in=["running"])


def statement(work: Callable[[], Any]) -> str:
    with CaptureQueriesContext(connection) as captured:
        work()
    [query] = captured.captured_queries
    return str(query["sql"])


# The same statement


@every_shape
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_text_is_the_statement_that_django_runs(model: Model, text: Any) -> None:
    run = make(model, "running")
    wanted = {
        "status": RunStatus.RUNNING,
        "output": text,
        "error_message": text,
        "started_at": NOW,
        "completed_at": None,
        "duration_ms": 0,
        "input_tokens": 2**31 - 1,
    }
    values = columns_of(model).storable(wanted, "default")

    first, again = (statement(lambda: text_of(run, **values)) for _ in range(2))
    stored = row(run)

    assert first == again == statement(lambda: running(run).update(**values))
    assert row(run) == stored
    assert stored == stored | values


@every_shape
@pytest.mark.parametrize(("status", "move"), MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("trace_id", ["given", None])
def test_a_transition_leaves_the_row_that_djangos_update_would_leave(
    model: Model,
    status: str,
    move: Callable[[Any], bool],
    trace_id: str | None,
    by_django: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: made)
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    started = NOW.replace(minute=1, microsecond=1)
    mine, theirs = (make(model, status, started_at=started, error_message="") for _ in range(2))
    if "trace_id" in columns_of(model):
        model.objects.filter(pk__in=[mine.pk, theirs.pk]).update(trace_id=trace_id)
    mine, theirs = get(mine), get(theirs)

    assert move(mine) is True
    by_django()
    assert move(theirs) is True

    assert row(mine) | {"id": None} == row(theirs) | {"id": None}
    assert mine.__dict__.keys() == theirs.__dict__.keys()
    assert mine.trace_id == (trace_id or str(made) if "trace_id" in columns_of(model) else None)


@every_shape
@pytest.mark.parametrize("name", ["start", "finish", "fail", "cancel without a reason", "restart"])
def test_transitions_are_run_as_text(model: Model, name: str) -> None:
    status, move = MOVES[name]
    run = make(model, status)

    with only_text():
        assert move(run) is True


@full_shapes
def test_the_reason_of_a_cancel_is_left_to_django_where_a_message_may_stand(model: Model) -> None:
    run = make(model, "running", error_message="stands")

    with pytest.raises(pytest.fail.Exception, match="left to Django"), only_text():
        run.cancel()

    assert run.cancel() is True
    assert row(run)["error_message"] == "stands"


@pytest.mark.parametrize("model", [ChildRun, FreshRunProxy, OddlyNamedRun, NumberedRun, NamedRun])
def test_a_host_of_another_kind_is_written_as_text_too(model: Model) -> None:
    given = {"number": 1_000_000} if model is NumberedRun else {}
    run, other = model.objects.create(**given), make(model, **{**given, "number": 1_000_001})

    with only_text():
        assert run.start() is True
        assert run.start() is False
        assert run.finish("done", input_tokens=7) is True

    assert row(run)["status"] == "complete"
    assert row(other)["status"] == "pending"


@pytest.mark.django_db(databases=["default", "other"])
def test_a_run_on_another_database_is_written_there() -> None:
    here = FreshRun.objects.create(pk=7_000_000)
    there = FreshRun.objects.using("other").create(pk=7_000_000)
    assert here.finish("here")

    with only_text(), CaptureQueriesContext(connections["default"]) as captured:
        assert there.finish("there")

    assert len(captured) == 0
    assert FreshRun.objects.using("other").get(pk=7_000_000).output == "there"
    assert get(here).output == "here"


# Its own columns, one statement

OWN = {
    "start": {"started_at"},
    "finish": {"completed_at", "duration_ms", "output", "input_tokens"},
    "fail": {"completed_at", "duration_ms", "error_message", "error_backtrace"},
    "cancel": {"completed_at", "duration_ms", "error_message"},
    "restart": {
        "started_at",
        "completed_at",
        "duration_ms",
        "error_message",
        "error_backtrace",
    },
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("heals", [False, True])
def test_a_transition_is_one_statement_that_writes_its_own_columns(name: str, heals: bool) -> None:
    status, move = MOVES[name]
    run = make(FreshRun, status, started_at=NOW)
    if heals:
        FreshRun.objects.filter(pk=run.pk).update(trace_id=None)
        run = get(run)

    sql = statement(lambda: move(run))

    assignments = sql.partition(" SET ")[2].partition(" WHERE ")[0]
    written = set(re.findall(r'["`](\w+)["`] = ', assignments))
    common = {"status", "updated_at", "trace_id"} if heals else {"status", "updated_at"}
    assert written == common | OWN[name]


@every_shape
def test_a_run_from_its_creation_to_its_end_is_three_statements(
    model: Model, django_assert_num_queries: Any
) -> None:
    make(model).fail("warm")

    with django_assert_num_queries(3):
        run = model.objects.create()
        run.start()
        run.finish("done", input_tokens=7, output_tokens=5)


def test_wrappers_of_the_connection_see_the_statement_and_may_refuse_it() -> None:
    run = make(FreshRun)
    seen = []

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append((sql, len(params)))
        raise DatabaseError("refused")

    with (
        pytest.raises(DatabaseError, match="refused"),
        transaction.atomic(),
        connection.execute_wrapper(refuse),
    ):
        run.start()

    [(sql, count)] = seen
    assert sql.startswith("UPDATE ")
    assert count == sql.count("%s") == 5
    assert get(run).status == run.status == "pending"


# The guard


@every_shape
def test_a_row_that_has_moved_is_not_written(model: Model) -> None:
    run = make(model, "running")
    model.objects.filter(pk=run.pk).update(status="cancelled")
    before = row(run)

    assert text_of(run, status=RunStatus.COMPLETE) == 0

    assert row(run) == before


def test_a_name_in_an_integer_column_is_moved(vendor: str) -> None:
    make(PlatformRun).start()
    run = make(PlatformRun)
    if vendor != "sqlite":
        # Only SQLite lets it in.
        with pytest.raises(DatabaseError), transaction.atomic():
            store_text(run, "status", "pending")
        return
    store_text(run, "status", "pending")

    with only_text():
        assert run.start() is True

    assert row(run)["status"] == "running"


@pytest.mark.parametrize("key", [2**63, -(2**70)])
def test_a_key_that_no_column_can_hold_is_not_asked_for(key: int) -> None:
    run = make(FreshRun)
    run.start()
    run.pk = key

    with pytest.raises(RunNotFound), CaptureQueriesContext(connection) as captured:
        run.finish("done")

    assert len(captured) == 0


# What is left to Django


@pytest.mark.parametrize("model", [CappedRun, LoudRun])
def test_a_value_that_is_more_than_a_parameter_is_left_to_django(model: Model) -> None:
    for output in ("one", "two!", "three", None, "four!"):
        run = make(model, "running")
        assert run.finish(output) is True
        loud = output is not None and output.endswith("!")
        assert row(run)["output"] == (output.upper() if loud else output)


def test_a_value_that_is_never_written_alike_is_left_to_django() -> None:
    for output in ("one", "two"):
        run = make(SaltedRun, "running")
        assert run.finish(output) is True
        assert row(run)["output"] == output


@pytest.mark.parametrize("made", [F("error_message"), Concat("error_message", Value(""))])
def test_an_expression_is_left_to_django(made: Any) -> None:
    columns = columns_of(FreshRun)
    for message in ("one", "two"):
        run = make(FreshRun, "running", error_message=message)
        values = {"output": made}
        text_of(run, output="as text")

        update_row(lambda run=run: running(run), "running", columns, run.pk, values, "default")

        assert row(run)["output"] == message


def test_a_base_manager_of_the_host_keeps_its_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make(HiddenRun).start() is True
    run = make(HiddenRun, hidden=True)

    with monkeypatch.context() as patch:
        patch.setattr(Hiding, "hides", True)
        with pytest.raises(RunNotFound):
            run.start()

    assert row(run)["status"] == "pending"


# Errors


@pytest.mark.parametrize("form", ["text", "django"])
def test_an_error_in_a_transaction_dooms_it_as_djangos_update_does(form: str) -> None:
    run = make(FreshRun, "running")
    text_of(run, status=RunStatus.RUNNING)
    values = {"status": RunStatus.COMPLETE, "updated_at": None}

    with transaction.atomic():
        with pytest.raises(IntegrityError) as caught:
            text_of(run, **values) if form == "text" else running(run).update(**values)
        assert connection.needs_rollback is True
        assert connection.rollback_exc is caught.value
        with pytest.raises(TransactionManagementError):
            text_of(run, status=RunStatus.RUNNING)
        transaction.set_rollback(True)

    assert row(run)["status"] == "running"
    assert text_of(run, status=RunStatus.RUNNING) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("form", ["text", "django"])
def test_an_error_outside_a_transaction_leaves_the_connection_usable(form: str) -> None:
    run = make(FreshRun, "running")
    values = {"status": RunStatus.COMPLETE, "updated_at": None}

    with pytest.raises(IntegrityError):
        text_of(run, **values) if form == "text" else running(run).update(**values)

    assert connection.needs_rollback is False
    assert run.finish("done") is True
