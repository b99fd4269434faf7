"""NUL bytes and lone surrogates: stored alike on every database, and nothing is lost over them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.tables import on_every_log, on_every_table

pytestmark = pytest.mark.django_db


@on_every_table
def test_f01_an_output_with_a_nul_ends_the_run(model: Any) -> None:
    run = model.objects.create()
    assert run.finish(output="PDF\x00text", metadata={"a\x00b": ["c\x00d"]})
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("complete", "PDF\ufffdtext")
    assert stored.output_metadata == {"a\ufffdb": ["c\ufffdd"]}
    assert run.output == stored.output


@on_every_table
def test_f01_an_error_with_a_nul_fails_the_run(model: Any) -> None:
    run = model.objects.create()
    assert run.fail(RuntimeError("a\x00b"))
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.error_message) == ("failed", "a\ufffdb")


@on_every_table
def test_f01_a_nul_in_a_reason_or_in_a_new_run_is_replaced_too(model: Any) -> None:
    run = model.objects.create(input_prompt="a\x00b", action_name="c\x00d")
    assert run.cancel("e\x00f")
    stored = model.objects.get(pk=run.pk)
    assert (stored.input_prompt, stored.action_name) == ("a\ufffdb", "c\ufffdd")
    assert stored.error_message == "e\ufffdf"
    stored.output = "g\x00h"
    stored.save()
    assert model.objects.get(pk=run.pk).output == "g\ufffdh"


@on_every_log
def test_f02_an_event_with_a_nul_is_kept_and_so_is_the_next(model: Any) -> None:
    run = model.objects.create()
    run.append_event("tool", "s\x00h", eid="\x00", detail={"out": ["x", {"t\x00": "a\x00b"}]})
    run.append_event("next", "n")
    run.add_log("m\x00n")
    first, second, third = model.objects.get(pk=run.pk).events_log
    assert (first["label"], first["eid"]) == ("s\ufffdh", "\ufffd")
    assert first["detail"] == '{"out":["x",{"t\ufffd":"a\ufffdb"}]}'
    assert (second["kind"], third["message"]) == ("next", "m\ufffdn")


@on_every_table
def test_f03_a_lone_surrogate_ends_the_run(model: Any) -> None:
    run = model.objects.create(input_prompt="in \udc81")
    metadata = {"k\ud800": "v\udfff", "pair": "\ud83d\ude00"}
    assert run.finish(output="ok \udc81 end", metadata=metadata)
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.output) == ("complete", "ok \ufffd end")
    assert stored.output_metadata == {"k\ufffd": "v\ufffd", "pair": "😀"}
    assert stored.input_prompt == "in \ufffd"


@on_every_table
def test_f03_a_lone_surrogate_in_an_error_fails_the_run(model: Any) -> None:
    run = model.objects.create()
    assert run.fail(OSError("caf\udce9.txt"))
    stored = model.objects.get(pk=run.pk)
    assert (stored.status, stored.error_message) == ("failed", "caf\ufffd.txt")


@on_every_log
def test_f03_a_lone_surrogate_in_an_event_is_replaced(model: Any) -> None:
    run = model.objects.create()
    entry = run.append_event("tool\udc81", "l\ud800", detail=["d\udc81"])
    assert (entry["kind"], entry["label"]) == ("tool\ufffd", "l\ufffd")
    assert entry["detail"] == '["d\ufffd"]'
    assert model.objects.get(pk=run.pk).events_log == [entry]
