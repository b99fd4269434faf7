from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import models
from django.test import override_settings
from django.utils import timezone

from solid_runs.models import AgentRunMixin
from solid_runs.statuses import RunStatus
from tests.models import (
    ChildRun,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
)
from tests.rows import every_shape, full_shapes, make

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

INT4_MAX = 2**31 - 1


@pytest.fixture
def one_of_each(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One run of every status and no other."""
    model: Model = request.getfixturevalue("model")
    model.objects.all().delete()
    return {status: make(model, status) for status in RunStatus.values}


def statuses(runs: models.QuerySet[Any]) -> set[str]:
    return {run.status for run in runs}


# By status


@every_shape
def test_each_status_has_its_set(model: Model, one_of_each: Any) -> None:
    runs = model.objects.all()

    assert statuses(runs.successful()) == {"complete"}
    assert statuses(runs.failed()) == {"failed"}
    assert statuses(runs.in_progress()) == {"pending", "running"}
    assert statuses(runs.finished()) == {"complete", "failed", "cancelled"}


@every_shape
@pytest.mark.parametrize("status", list(RunStatus))
def test_for_status_takes_a_member_a_name_or_an_integer(
    model: Model, one_of_each: Any, status: RunStatus
) -> None:
    for written in (status, status.value, status.integer):
        assert list(model.objects.for_status(written)) == [one_of_each[status]]


@every_shape
@pytest.mark.parametrize("status", ["bogus", 9, True, "RUNNING"], ids=repr)
def test_for_status_refuses_what_is_no_status(model: Model, status: Any) -> None:
    with pytest.raises(ValueError, match="pending, running, complete, failed, cancelled"):
        list(model.objects.for_status(status))


@every_shape
def test_the_sets_are_methods_of_managers_and_of_querysets(model: Model, one_of_each: Any) -> None:
    assert list(model.objects.finished().failed().recent()) == [one_of_each["failed"]]


def test_proxies_and_children_have_the_sets_too() -> None:
    run = ChildRun.objects.create(status="failed", note="x")

    assert list(ChildRun.objects.failed().recent()) == [run]
    assert [found.pk for found in FreshRunProxy.objects.failed()] == [run.pk]


# recent


@every_shape
def test_recent_puts_the_newest_first(model: Model) -> None:
    runs = [make(model) for _ in range(3)]

    assert list(model.objects.recent()[:3]) == runs[::-1]


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_recent_follows_the_creation_where_that_is_indexed(model: Model) -> None:
    first, second = make(model), make(model)
    tomorrow = timezone.now() + timedelta(days=1)
    model.objects.filter(pk=first.pk).update(created_at=tomorrow)

    assert list(model.objects.recent()[:2]) == [first, second]
    model.objects.filter(pk=second.pk).update(created_at=tomorrow)
    assert list(model.objects.recent()[:2]) == [second, first]


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun])
def test_recent_follows_the_key_where_the_creation_has_no_index(model: Model) -> None:
    first, second = make(model), make(model)
    model.objects.filter(pk=first.pk).update(created_at=timezone.now() + timedelta(days=1))

    assert list(model.objects.recent()[:2]) == [second, first]


# today


@pytest.fixture
def noon_in_tokyo(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """2026-01-15 12:00 in Tokyo, the suite's TIME_ZONE."""
    now = datetime(2026, 1, 15, 3, 0, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    return now


def created(model: Model, *moments: datetime) -> dict[int, datetime]:
    model.objects.all().delete()
    found = {}
    for moment in moments:
        run = make(model)
        model.objects.filter(pk=run.pk).update(created_at=moment)
        found[run.pk] = moment
    return found


MIDNIGHT = datetime(2026, 1, 14, 15, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)


@full_shapes
def test_today_is_from_local_midnight_to_the_next(model: Model, noon_in_tokyo: datetime) -> None:
    moments = created(
        model,
        MIDNIGHT - TICK,
        MIDNIGHT,
        noon_in_tokyo,
        MIDNIGHT + timedelta(days=1) - TICK,
        MIDNIGHT + timedelta(days=1),
    )

    found = [moments[run.pk] for run in model.objects.today().order_by("created_at")]

    assert found == list(moments.values())[1:4]


@full_shapes
def test_today_follows_the_current_time_zone(model: Model, noon_in_tokyo: datetime) -> None:
    evening_before = datetime(2026, 1, 14, 5, 0, tzinfo=UTC)  # 00:00 of the 14th in New York
    moments = created(model, evening_before - TICK, evening_before, noon_in_tokyo)

    with timezone.override("America/New_York"):  # where it is the evening of the 14th
        found = {moments[run.pk] for run in model.objects.today()}

    assert found == {evening_before, noon_in_tokyo}


@full_shapes
def test_a_day_on_which_the_clocks_change_has_its_own_length(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "django.utils.timezone.now", lambda: datetime(2026, 3, 8, 18, 0, tzinfo=UTC)
    )
    first = datetime(2026, 3, 8, 5, 0, tzinfo=UTC)
    after = datetime(2026, 3, 9, 4, 0, tzinfo=UTC)  # 23 hours later
    moments = created(model, first - TICK, first, after - TICK, after)

    with timezone.override("America/New_York"):
        found = {moments[run.pk] for run in model.objects.today()}

    assert found == {first, after - TICK}


@pytest.fixture
def without_time_zones() -> Iterator[None]:
    with override_settings(USE_TZ=False):
        yield


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, GeneratorRun])
def test_today_on_the_tables_of_rails_is_right_without_use_tz(
    model: Model, without_time_zones: None
) -> None:
    model.objects.all().delete()
    run = model.objects.create()
    midnight = datetime.combine(datetime.now().date(), datetime.min.time())
    for moment, expected in (
        (midnight - TICK, []),
        (midnight, [run]),
        (midnight + timedelta(days=1) - TICK, [run]),
        (midnight + timedelta(days=1), []),
    ):
        model.objects.filter(pk=run.pk).update(created_at=moment)
        assert list(model.objects.today()) == expected, moment


@full_shapes
def test_today_leaves_the_column_bare_for_its_index(model: Model) -> None:
    sql = str(model.objects.today().query)
    where = sql[sql.index("WHERE") :]

    assert "created_at" in where
    for function in ("(date", "django_", "AT TIME ZONE", "CONVERT_TZ", "CAST", "::date"):
        assert function.lower() not in where.lower()


# By name


@full_shapes
def test_for_action_and_with_trace_compare_the_columns(model: Model) -> None:
    wanted = make(model, action_name="summarise", trace_id="t-1")
    make(model, action_name="translate", trace_id="t-2")

    assert list(model.objects.for_action("summarise")) == [wanted]
    assert list(model.objects.with_trace("t-1")) == [wanted]


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_for_agent_compares_the_column(model: Model) -> None:
    wanted = make(model, agent_name="Librarian")
    make(model, agent_name="Clerk")

    assert list(model.objects.for_agent("Librarian")) == [wanted]


def test_with_trace_takes_a_uuid() -> None:
    trace = uuid.uuid4()
    wanted = make(FreshRun, trace_id=str(trace))

    assert list(FreshRun.objects.with_trace(trace)) == [wanted]


@full_shapes
def test_with_trace_of_nothing_finds_nothing(model: Model) -> None:
    make(model, trace_id="None")
    without = make(model)
    model.objects.filter(pk=without.pk).update(trace_id=None)

    assert list(model.objects.with_trace(None)) == []


@pytest.mark.parametrize(
    ("model", "narrow"),
    [
        (PlatformRun, lambda runs: runs.for_agent("x")),
        (MinimalRun, lambda runs: runs.for_agent("x")),
        (MinimalRun, lambda runs: runs.for_action("x")),
        (MinimalRun, lambda runs: runs.with_trace("x")),
        (MinimalRun, lambda runs: runs.today()),
    ],
    ids=[
        "platform for_agent",
        "minimal for_agent",
        "minimal for_action",
        "minimal with_trace",
        "minimal today",
    ],
)
def test_a_filter_on_a_column_that_is_not_there_finds_nothing(
    model: Model, narrow: Any, django_assert_num_queries: Any
) -> None:
    make(model)

    with django_assert_num_queries(0):
        assert list(narrow(model.objects.all()).recent()) == []


# Tokens


@full_shapes
def test_the_sum_takes_each_total_reported_or_added_up(model: Model) -> None:
    model.objects.all().delete()
    make(model, input_tokens=7, output_tokens=5)
    make(model, input_tokens=7, output_tokens=None)
    make(model, input_tokens=None, output_tokens=None)
    make(model, input_tokens=1, output_tokens=2, reported_total_tokens=40)
    make(model, input_tokens=1, output_tokens=2, reported_total_tokens=0)

    total = model.objects.total_tokens_sum()

    assert type(total) is int
    assert total == sum(run.total_tokens for run in model.objects.all())
    assert total == (25 if model is GeneratorRun else 59)


@pytest.mark.parametrize(
    ("model", "total"), [(PlatformRun, 260), (PlatformJsonRun, 260), (GeneratorRun, 160)]
)
def test_the_sum_over_what_rails_wrote(model: Model, total: int) -> None:
    assert model.objects.total_tokens_sum() == total


@every_shape
def test_the_sum_of_no_rows_is_zero(model: Model) -> None:
    assert model.objects.none().total_tokens_sum() == 0
    assert model.objects.filter(pk=-1).total_tokens_sum() == 0


def test_the_sum_is_zero_where_there_are_no_token_columns() -> None:
    make(MinimalRun)

    assert MinimalRun.objects.total_tokens_sum() == 0


@full_shapes
def test_the_sum_counts_in_64_bits(model: Model) -> None:
    model.objects.all().delete()
    make(model, input_tokens=INT4_MAX, output_tokens=INT4_MAX)
    make(model, input_tokens=INT4_MAX, reported_total_tokens=INT4_MAX, output_tokens=0)

    assert model.objects.total_tokens_sum() == 3 * INT4_MAX


@full_shapes
def test_the_sum_respects_filters_and_slices(model: Model) -> None:
    model.objects.all().delete()
    for status, count in (("complete", 1), ("failed", 10), ("failed", 100)):
        make(model, status, input_tokens=count, output_tokens=0)

    assert model.objects.failed().total_tokens_sum() == 110
    assert model.objects.recent()[:2].total_tokens_sum() == 110
    assert model.objects.order_by("pk")[:2].total_tokens_sum() == 11


@full_shapes
def test_with_total_tokens_can_be_ordered_and_filtered_by(model: Model) -> None:
    model.objects.all().delete()
    small = make(model, input_tokens=1, output_tokens=1)
    none = make(model, input_tokens=None, output_tokens=None)
    huge = make(model, input_tokens=INT4_MAX, output_tokens=INT4_MAX)

    runs = model.objects.with_total_tokens()

    assert list(runs.order_by("-tokens")) == [huge, small, none]
    assert list(runs.filter(tokens__gt=1).order_by("tokens")) == [small, huge]
    assert list(runs.filter(tokens=2 * INT4_MAX)) == [huge]
    assert {run.pk: run.tokens for run in runs} == {
        run.pk: run.total_tokens for run in model.objects.all()
    }


@full_shapes
def test_with_total_tokens_prefers_what_was_reported(model: Model) -> None:
    run = make(model, input_tokens=1, output_tokens=1, reported_total_tokens=0)

    tokens = model.objects.with_total_tokens().get(pk=run.pk).tokens

    assert tokens == run.total_tokens == (2 if model is GeneratorRun else 0)


def test_with_total_tokens_is_zero_where_there_are_no_token_columns() -> None:
    make(MinimalRun)

    assert [run.tokens for run in MinimalRun.objects.with_total_tokens().order_by("tokens")] == [0]


def test_a_childs_tokens_are_those_of_its_parent() -> None:
    ChildRun.objects.create(input_tokens=7, output_tokens=5)

    assert ChildRun.objects.total_tokens_sum() == 12
    assert ChildRun.objects.with_total_tokens().get().tokens == 12
