"""utf8mb3 columns, and JSON that is longtext with a check beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection

from solid_runs import checks as run_checks
from solid_runs.columns import forget_facts
from solid_runs.models import AbstractAgentRun, PlatformAgentRun
from tests.faults.tables import execute, raw
from tests.models import FreshRun, PlatformJsonRun

VENDOR = connection.vendor
apart = Apps()


class NarrowFresh(AbstractAgentRun):
    class Meta(AbstractAgentRun.Meta):
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "fault_narrow_fresh"
        indexes = []


class NarrowPlatform(PlatformAgentRun):
    class Meta(PlatformAgentRun.Meta):
        app_label = "tests"
        apps = apart
        managed = False
        db_table = "fault_narrow_platform"


@pytest.fixture(params=[NarrowFresh, NarrowPlatform], ids=lambda m: m.__name__)
def narrow(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Any]:
    """On MariaDB a table whose text is utf8mb3; elsewhere one that holds every character."""
    model = request.param
    with connection.schema_editor() as editor:
        editor.create_model(model)
    if VENDOR == "mysql":
        execute(f"ALTER TABLE {model._meta.db_table} CONVERT TO CHARACTER SET utf8mb3")
    forget_facts()
    yield model
    with connection.schema_editor() as editor:
        editor.delete_model(model)
    forget_facts()


def shown(text: str) -> str:
    """The text as the narrow table has it."""
    return text.replace("😀", "\ufffd") if VENDOR == "mysql" else text


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("mode")
class TestFourBytes:
    def test_f52_an_emoji_in_the_output_completes_the_run_and_cuts_nothing(
        self, narrow: Any
    ) -> None:
        run = narrow.objects.create(input_prompt="hi 😀 there", action_name="a😀b")
        assert run.finish(output="hi 😀 there")
        stored = narrow.objects.get(pk=run.pk)
        assert (stored.status, stored.output) == ("complete", shown("hi 😀 there"))
        assert (stored.input_prompt, stored.action_name) == (shown("hi 😀 there"), shown("a😀b"))
        assert run.output == stored.output

    def test_f52_an_emoji_in_an_error_or_a_reason_ends_the_run(self, narrow: Any) -> None:
        failed, cancelled = narrow.objects.create(), narrow.objects.create()
        assert failed.fail(RuntimeError("hi 😀 there"))
        assert cancelled.cancel("hi 😀 there")
        for run in (failed, cancelled):
            assert narrow.objects.get(pk=run.pk).error_message == shown("hi 😀 there")

    def test_f52_an_emoji_in_the_metadata_is_kept(self, narrow: Any) -> None:
        run = narrow.objects.create(output_metadata={"old 😀": "was 😀 here"})
        assert run.finish(metadata={"new": "is 😀 here", "k😀": ["in 😀 too"]})
        assert narrow.objects.get(pk=run.pk).status == "complete"
        assert narrow.objects.get(pk=run.pk).output_metadata == {
            "old 😀": "was 😀 here",
            "new": "is 😀 here",
            "k😀": ["in 😀 too"],
        }

    def test_f52_an_emoji_in_the_log_is_kept(self, narrow: Any) -> None:
        run = narrow.objects.create()
        first = run.append_event("tool😀", "hi 😀 there", eid="😀", detail={"k😀": "v😀"})
        second = run.add_log("hi 😀 there")
        assert narrow.objects.get(pk=run.pk).events_log == [first, second]
        assert first["label"] == "hi 😀 there"

    def test_f52_a_saved_emoji_cuts_nothing(self, narrow: Any) -> None:
        run = narrow.objects.create()
        run.output, run.output_metadata = "hi 😀 there", {"k": "v 😀 w"}
        run.save()
        stored = narrow.objects.get(pk=run.pk)
        assert (stored.output, stored.output_metadata) == (shown("hi 😀 there"), {"k": "v 😀 w"})

    def test_f52_a_check_warns_of_the_narrow_table(
        self, narrow: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_checks, "run_models", lambda configs: [narrow, FreshRun])
        problems = run_checks.check_databases(app_configs=None, databases=["default"])
        warned = [p.obj for p in problems if p.id == "solid_runs.W021"]
        assert warned == ([narrow] if VENDOR == "mysql" else [])

    def test_f52_metadata_too_long_for_the_column_is_cut_and_stays_json(self, narrow: Any) -> None:
        run = narrow.objects.create()
        assert run.finish(metadata={"huge": "😀" * 6_000_000, "k": "v"})
        stored = narrow.objects.get(pk=run.pk)
        assert stored.status == "complete"
        assert stored.output_metadata["k"] == "v"
        assert stored.output_metadata["huge"].startswith("😀😀")


@pytest.fixture(params=["latin1", "cp1251", "ascii"])
def older_set(request: pytest.FixtureRequest, narrow: Any) -> Any:
    """The same in a character set of before Unicode."""
    if VENDOR == "mysql":
        execute(f"ALTER TABLE {narrow._meta.db_table} CONVERT TO CHARACTER SET {request.param}")
    forget_facts()
    return narrow


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("mode")
class TestOlderCharacterSets:
    def test_f52_every_end_is_saved_and_only_the_character_is_lost(self, older_set: Any) -> None:
        runs = [older_set.objects.create(input_prompt="a 日 b") for _ in range(3)]
        assert runs[0].finish("a 日 b 😀 c", metadata={"k 日": "v 😀", "model": "gpt-4o"})
        assert runs[1].fail(RuntimeError("a 日 b"))
        assert runs[2].cancel("a 日 b")
        done, failed, cancelled = (older_set.objects.get(pk=run.pk) for run in runs)
        said = "a 日 b" if VENDOR != "mysql" else "a ? b"
        assert done.output.startswith(said)
        assert (failed.error_message, cancelled.error_message) == (said, said)
        assert done.output_metadata == {"k 日": "v 😀", "model": "gpt-4o"}
        assert runs[0].output == done.output

    def test_f52_the_log_keeps_every_character(self, older_set: Any) -> None:
        run = older_set.objects.create()
        said = [
            run.append_event("tool", "a 日 b 😀"),
            run.add_log("日"),
            run.append_event("x", "y"),
        ]
        assert older_set.objects.get(pk=run.pk).events_log == said


@pytest.mark.django_db
@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("model", [FreshRun, PlatformJsonRun], ids=["ours", "made by Rails"])
class TestJSONBesideLongtext:
    def test_f53_append_filter_and_merge_work(self, model: Any) -> None:
        run = model.objects.create(output_metadata={"provider": "openai", "n": {"deep": 1}})
        other = model.objects.create(output_metadata={"provider": "other"})
        run.append_event("x", "y")
        run.append_event("x", "z")
        assert run.finish(metadata={"model": "gpt-4o", "n": 2})
        stored = model.objects.get(pk=run.pk)
        assert stored.output_metadata == {"provider": "openai", "n": 2, "model": "gpt-4o"}
        assert [entry["label"] for entry in stored.events_log] == ["y", "z"]
        found = model.objects.filter(pk__in=[run.pk, other.pk])
        log = model.events_column
        assert found.get(output_metadata__provider="openai") == run
        assert found.get(output_metadata__has_key="model") == run
        assert found.get(**{f"{log}__0__label": "y"}) == run
        assert found.filter(**{f"{log}__isnull": False}).filter(pk=run.pk).exists()

    def test_f53_the_column_holds_real_json_after_an_append(self, model: Any) -> None:
        run = model.objects.create()
        entry = run.append_event("x", "quote ' \" \\ % 😀", detail="\u2028\t\x1f")
        column = model._meta.get_field(model.events_column).column
        assert raw(run, column).startswith("[{")
        assert model.objects.get(pk=run.pk).events_log == [entry]
