"""Token counts past 32 bits, and counts that are none.

Usage that is added up call by call comes later; here a run is given its figures when it ends.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from solid_runs.exceptions import InvalidUsage
from tests.faults.tables import on_every_table
from tests.models import GeneratorRun, PlatformRun
from tests.rows import OWN_TABLES

pytestmark = pytest.mark.django_db

BIG = 2**31


def narrow(model: Any) -> bool:
    """Whether the token columns hold 32 bits; those of SQLite hold 64, whatever they say."""
    return connection.vendor != "sqlite" and model not in OWN_TABLES


@on_every_table
def test_f54_a_figure_past_the_column_is_dropped_with_a_warning_and_the_end_saved(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = model.objects.create(input_tokens=5)
    with caplog.at_level(logging.WARNING, "solid_runs"):
        assert run.finish("done", input_tokens=BIG, output_tokens=7, total_tokens=BIG + 7)
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output, stored.output_tokens) == ("complete", "done", 7)
    assert run.input_tokens == stored.input_tokens
    if narrow(model):
        assert stored.input_tokens == 5
        assert f"cannot hold {BIG}" in caplog.text
        assert "input_tokens" in caplog.text
    else:
        assert stored.input_tokens == BIG
        assert stored.total_tokens == BIG + 7
        assert caplog.text == ""


@on_every_table
def test_f54_a_figure_past_64_bits_is_dropped_everywhere(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = model.objects.create()
    assert run.finish("done", input_tokens=10**30, output_tokens=2**63)
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("complete", "done")
    assert stored.total_tokens == 0
    assert "cannot hold" in caplog.text


@on_every_table
def test_f54_the_largest_figures_are_kept_and_added_up_in_64_bits(model: Any) -> None:
    model.objects.all().delete()
    for _ in range(3):
        run = model.objects.create()
        assert run.finish(input_tokens=BIG - 1, output_tokens=BIG - 1)
    assert run.total_tokens == 2 * (BIG - 1)
    assert model.objects.total_tokens_sum() == 6 * (BIG - 1)
    newest = model.objects.with_total_tokens().filter(tokens__gt=BIG).order_by("-tokens")
    assert [run.tokens for run in newest] == [2 * (BIG - 1)] * 3


@on_every_table
def test_f54_a_run_of_sixty_days_ends(model: Any) -> None:
    started = timezone.now() - timedelta(days=60)  # over 2**31 milliseconds
    run = model.objects.create(status="running", started_at=started)
    assert run.finish("done")
    stored = model.objects.get(pk=run.pk)
    assert stored.status == "complete"
    assert stored.calculated_duration_ms() >= timedelta(days=60) // timedelta(milliseconds=1)
    assert run.calculated_duration_ms() == stored.calculated_duration_ms()


@on_every_table
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "total_tokens"])
@pytest.mark.parametrize("value", [-1, True, False, "12", 1.0, float("nan"), [], object], ids=repr)
def test_f54_what_is_no_count_is_refused_before_anything_is_written(
    model: Any, name: str, value: Any
) -> None:
    run = model.objects.create()
    with pytest.raises(InvalidUsage, match=f"^{name} must be a whole number of 0 or more"):
        run.finish("done", **{name: value})
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("pending", None)
    assert run.finish("done", **{name: 0}) is True


@on_every_table
def test_f54_none_leaves_the_figures_of_the_row(model: Any) -> None:
    run = model.objects.create(input_tokens=10, output_tokens=5)
    assert run.finish(input_tokens=None, output_tokens=7)
    stored = model.objects.get(pk=run.pk)
    assert (stored.input_tokens, stored.output_tokens, stored.total_tokens) == (10, 7, 17)


def test_f54_saving_a_figure_past_the_column_is_a_clear_error() -> None:
    # finish() must not lose an end over it; save() is asked to write just that.
    run = PlatformRun.objects.create()
    run.total_tokens = 2**70
    with pytest.raises(Exception, match=r"range|large|overflow"):
        run.save()


def test_f54_the_defaults_of_the_live_table_count_as_nothing() -> None:
    assert GeneratorRun.objects.get(pk=1).total_tokens == 0
