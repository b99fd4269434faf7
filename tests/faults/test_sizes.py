"""Text over the size of its column or of a statement, and a stack overflow's backtrace."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, models

from solid_runs.fields import RunJSONField, RunStatusField
from solid_runs.models import AgentRunMixin
from tests.faults.tables import apart, on_every_table, raw, table
from tests.models import GeneratorRun, PlatformRun
from tests.rows import OWN_TABLES

pytestmark = pytest.mark.django_db

HUGE = 20_000_000
MARKER = re.compile(r"… \[cut, (\d+) characters\]$")


def assert_kept(text: str, given: str, limit: int | None) -> None:
    """``text`` is what was given, or its beginning with the marker, and fits the limit."""
    if text == given:
        assert limit is None or len(given.encode()) <= limit
        return
    marker = MARKER.search(text)
    assert marker, f"cut without a marker: …{text[-60:]!r}"
    assert int(marker[1]) == len(given)
    assert given.startswith(text[: marker.start()])
    assert limit is not None, "this column holds it whole"
    assert len(text.encode()) <= limit
    assert len(text.encode()) > limit - 100, "and no more is cut than must be"


def room(model: Any, name: str) -> int | None:
    """The bytes that a text column takes; None: more than any test gives it."""
    if connection.vendor != "mysql":
        return None
    return packet() // 8 if model in OWN_TABLES else 65_535


def packet() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        return int(cursor.fetchone()[0])


@on_every_table
@pytest.mark.usefixtures("mode")
class TestHuge:
    def test_f07_an_error_of_twenty_megabytes_fails_the_run(self, model: Any) -> None:
        run = model.objects.create()
        message = "x" * HUGE
        assert run.fail(RuntimeError(message))
        stored = model.objects.get(pk=run.pk)
        assert stored.status == "failed"
        assert_kept(stored.error_message, message, room(model, "error_message"))

    def test_f07_an_output_of_twenty_megabytes_completes_the_run(self, model: Any) -> None:
        run = model.objects.create()
        output = "日本語" * (HUGE // 9)
        assert run.finish(output=output)
        stored = model.objects.get(pk=run.pk)
        assert stored.status == "complete"
        assert_kept(stored.output, output, room(model, "output"))
        assert run.output == stored.output

    def test_f07_quotes_and_line_ends_take_twice_the_room_in_a_statement(self, model: Any) -> None:
        run = model.objects.create()
        output = "'\n" * (HUGE // 2)
        assert run.finish(output=output, metadata={"answer": output})
        stored = model.objects.get(pk=run.pk)
        assert stored.status == "complete"
        assert_kept(stored.output, output, room(model, "output"))
        assert stored.output_metadata["answer"][:1000] == output[:1000]

    def test_f07_a_metadata_value_of_twenty_megabytes_keeps_the_other_keys(
        self, model: Any
    ) -> None:
        run = model.objects.create(output_metadata={"model": "gpt-4o"})
        value = "x" * HUGE
        assert run.finish(output="done", metadata={"huge": value, "provider": "openai"})
        stored = model.objects.get(pk=run.pk)
        assert (stored.status, stored.output) == ("complete", "done")
        assert stored.output_metadata["model"] == "gpt-4o"
        assert stored.output_metadata["provider"] == "openai"
        kept = stored.output_metadata["huge"]
        if connection.vendor == "mysql":
            assert MARKER.search(kept)
            assert value.startswith(MARKER.sub("", kept))
            assert len(kept) > 100_000
        else:
            assert kept == value

    def test_f07_a_reason_of_twenty_megabytes_cancels_the_run(self, model: Any) -> None:
        run = model.objects.create()
        reason = "x" * HUGE
        assert run.cancel(reason)
        stored = model.objects.get(pk=run.pk)
        assert stored.status == "cancelled"
        assert_kept(stored.error_message, reason, room(model, "error_message"))

    def test_f07_a_new_run_and_a_saved_one_are_cut_too(self, model: Any) -> None:
        prompt = "x" * HUGE
        run = model.objects.create(input_prompt=prompt, output=prompt, error_message=prompt)
        assert_kept(model.objects.get(pk=run.pk).input_prompt, prompt, room(model, "input_prompt"))
        run.output = "y" * HUGE
        run.save()
        assert_kept(model.objects.get(pk=run.pk).output, run.output, room(model, "output"))

    def test_f07_an_event_with_everything_huge_is_kept(self, model: Any) -> None:
        run = model.objects.create()
        huge = "x" * HUGE
        run.append_event(huge, huge, eid=huge, status=huge, detail=huge)
        run.append_event("next", "n")
        run.add_log(huge, level=huge)
        first, second, third = model.objects.get(pk=run.pk).events_log
        assert first["detail"] == "x" * 1200
        assert all(MARKER.search(first[name]) for name in ("kind", "label", "eid", "status"))
        assert second["label"] == "n"
        assert MARKER.search(third["message"])

    def test_f07_a_label_of_ten_thousand_characters_is_kept_whole(self, model: Any) -> None:
        run = model.objects.create()
        run.append_event("tool", "é" * 10_000)
        assert model.objects.get(pk=run.pk).events_log[0]["label"] == "é" * 10_000

    def test_f07_ten_thousand_characters_into_varchar_are_cut_with_a_marker(
        self, model: Any
    ) -> None:
        name = "é" * 10_000
        run = model.objects.create(action_name=name, trace_id=name)
        stored = raw(run, "action_name")
        # On SQLite a varchar has no length, and on PostgreSQL those made by Rails have none.
        lengths = {"sqlite": [], "postgresql": OWN_TABLES, "mysql": [model]}
        if model not in lengths[connection.vendor]:
            assert stored == name
        else:
            assert len(stored) == 255
            assert MARKER.search(stored)
            assert name.startswith(MARKER.sub("", stored))
        assert run.action_name == stored
        run.action_name = "ü" * 10_000
        run.save()
        assert raw(run, "action_name") == run.action_name


@pytest.mark.usefixtures("mode")
@on_every_table
def test_f07_a_new_run_with_huge_json_is_stored_as_valid_json(model: Any) -> None:
    run = model.objects.create(output_metadata={"huge": "x" * HUGE, "model": "gpt-4o"})
    stored = model.objects.get(pk=run.pk)
    assert isinstance(stored.output_metadata, dict)
    assert stored.output_metadata["model"] == "gpt-4o"


@pytest.mark.usefixtures("mode")
def test_f07_a_text_at_the_very_limit_is_not_touched() -> None:
    run = PlatformRun.objects.create()
    output = "é" * 32_767 + "x"  # 65,535 bytes
    assert run.finish(output=output)
    assert PlatformRun.objects.get(pk=run.pk).output == output


@pytest.fixture
def deep_stack() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


@on_every_table
@pytest.mark.usefixtures("deep_stack")
def test_f08_a_stack_overflow_keeps_the_ten_innermost_frames(model: Any) -> None:
    def f() -> None:
        f()

    run = model.objects.create()
    with pytest.raises(RecursionError) as caught:
        f()
    assert run.fail(caught.value)
    stored = model.objects.get(pk=run.pk)
    assert stored.status == "failed"
    assert "recursion" in stored.error_message
    if model is GeneratorRun:
        assert stored.error_backtrace is None
    else:
        lines = stored.error_backtrace.splitlines()
        assert len(lines) == 10
        assert all(re.fullmatch(rf"{re.escape(__file__)}:\d+:in f", line) for line in lines)


@on_every_table
@pytest.mark.usefixtures("deep_stack")
def test_f08_a_run_can_be_failed_from_deep_down(model: Any) -> None:
    run = model.objects.create()

    def down(levels: int) -> bool:
        if levels:
            return down(levels - 1)
        return bool(run.fail(RuntimeError("deep")))

    assert down(9_000)
    assert model.objects.get(pk=run.pk).error_message == "deep"


class SmallTextRun(AgentRunMixin):
    """JSON in text columns, which hold 65,535 bytes on MariaDB."""

    events_column = "log"

    status = RunStatusField(store="name")
    log = RunJSONField(null=True)
    output = models.TextField(null=True)
    output_metadata = RunJSONField(null=True)

    class Meta:
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "fault_small_texts"


@pytest.fixture
def small_texts(transactional_db: None) -> Iterator[None]:
    columns = "status varchar(20), log text, output text, output_metadata text"
    with table(SmallTextRun._meta.db_table, columns):
        yield


@pytest.mark.usefixtures("small_texts", "mode")
class TestSmallTextColumns:
    def test_f07_an_append_to_a_full_column_breaks_nothing(self) -> None:
        run = SmallTextRun.objects.create()
        said = [run.append_event("tool", f"{n}", detail="x" * 1200) for n in range(60)]

        stored = SmallTextRun.objects.get(pk=run.pk).events_log
        if connection.vendor == "mysql":
            *stored, marker = stored
            assert marker["kind"] == "truncated"
            assert marker["detail"].startswith(f"The log is full at {len(stored)} entries")
            assert len(stored) > 45
        assert stored == said[: len(stored)]
        assert (len(stored) < 60) is (connection.vendor == "mysql")
        assert run.finish("done") is True

    def test_f07_metadata_that_does_not_fit_beside_the_old_ends_the_run(self) -> None:
        run = SmallTextRun.objects.create(output_metadata={"old": "x" * 60_000})
        assert run.finish("done", metadata={"new": "y" * 20_000, "model": "gpt-4o"})
        stored = SmallTextRun.objects.get(pk=run.pk)
        assert (stored.status, stored.output) == ("complete", "done")
        assert stored.output_metadata["old"] == "x" * 60_000
        if connection.vendor != "mysql":
            assert stored.output_metadata["new"] == "y" * 20_000

    def test_f07_metadata_saved_whole_is_cut_as_json(self) -> None:
        run = SmallTextRun.objects.create(
            output_metadata={"huge": "é" * 100_000, "model": "gpt-4o"}
        )
        assert SmallTextRun.objects.get(pk=run.pk).output_metadata["model"] == "gpt-4o"
