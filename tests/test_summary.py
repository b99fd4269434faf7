from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings

from solid_runs.models import AgentRunMixin
from solid_runs.subjects import UnresolvedSubject, prefetch_subjects
from tests.models import (
    Agent,
    AgentOwnedRun,
    ChildRun,
    Document,
    FreshRun,
    GeneratorRun,
    MinimalRun,
    NamedDocument,
    PlatformJsonRun,
    PlatformRun,
    UUIDDocument,
)
from tests.rows import every_shape, full_shapes, get, has, make, rails_shapes, store_text

pytestmark = pytest.mark.django_db

Model = type[AgentRunMixin]

NINE = datetime(2026, 1, 15, 9, 0, tzinfo=UTC)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# summary


@rails_shapes
def test_the_summary_of_what_rails_wrote(model: Model) -> None:
    run = model.objects.get(pk=3)
    said = "Answer with the figure only."

    assert run.summary() == {
        "id": 3,
        "status": "complete",
        "input_preview": "Find the invoice total",
        "output_preview": "The total is 1,284.50 EUR.",
        "duration_ms": 3250,
        "tokens": 160 if model is GeneratorRun else 260,
        "provider": "anthropic",
        "model": "claude-sonnet",
        "action_name": "extract",
        "instructions_digest": digest(said),
        "instructions_codename": run.instructions_codename,
        "instructions_preview": said,
        "created_at": datetime(2026, 1, 15, 9, 30, 19, tzinfo=UTC),
        "error": None,
    }
    assert run.summary()["instructions_codename"].count("-") == 1


@every_shape
def test_every_shape_has_the_same_summary_keys(model: Model) -> None:
    assert list(make(model).summary()) == [
        "id",
        "status",
        "input_preview",
        "output_preview",
        "duration_ms",
        "tokens",
        "provider",
        "model",
        "action_name",
        "instructions_digest",
        "instructions_codename",
        "instructions_preview",
        "created_at",
        "error",
    ]


def test_the_summary_of_a_host_without_columns() -> None:
    run = make(MinimalRun)

    assert {name: value for name, value in run.summary().items() if value is not None} == {
        "id": run.pk,
        "status": "pending",
        "tokens": 0,
        "action_name": "ask",
    }


@every_shape
def test_the_status_is_given_by_its_name(model: Model) -> None:
    assert type(make(model, "running").summary()["status"]) is str
    assert make(model, "running").summary()["status"] == "running"


@every_shape
def test_an_unknown_status_is_shown_as_unknown(model: Model) -> None:
    run = make(model)
    store_text(run, "status", "9")

    assert get(run).summary()["status"] == "unknown (9)"


@full_shapes
@pytest.mark.parametrize(
    ("field", "key", "limit"),
    [("input_prompt", "input_preview", 100), ("output", "output_preview", 200)],
)
def test_a_preview_is_at_most_its_limit_with_the_dots_included(
    model: Model, field: str, key: str, limit: int
) -> None:
    run = make(model)

    for text, shown in (
        ("é" * limit, "é" * limit),
        ("é" * (limit + 1), "é" * (limit - 3) + "..."),
        ("", ""),
        (None, None),
    ):
        setattr(run, field, text)
        assert run.summary()[key] == shown


@full_shapes
def test_the_instructions_preview_is_at_most_120_characters(model: Model) -> None:
    run = make(model, output_metadata={"instructions": "x" * 121})

    assert run.summary()["instructions_preview"] == "x" * 117 + "..."
    assert run.summary()["instructions_digest"] == digest("x" * 121)


@full_shapes
def test_provider_and_model_come_from_the_metadata(model: Model) -> None:
    run = make(model, output_metadata={"provider": "openai", "model": "gpt-4o"})

    assert (run.summary()["provider"], run.summary()["model"]) == ("openai", "gpt-4o")


def test_provider_and_model_come_from_their_columns_where_there_are_any() -> None:
    run = FreshRun(provider="openai", model="gpt-4o", output_metadata={"provider": "x"})

    assert (run.summary()["provider"], run.summary()["model"]) == ("openai", "gpt-4o")


@full_shapes
@pytest.mark.parametrize("metadata", [None, [], ["provider"], "text", 5], ids=repr)
def test_metadata_that_is_no_object_says_nothing(model: Model, metadata: Any) -> None:
    run = make(model, output_metadata=metadata)

    summary = run.summary()

    assert (summary["provider"], summary["model"], summary["action_name"]) == (None, None, "ask")
    assert (summary["instructions_digest"], summary["instructions_preview"]) == (None, None)


@full_shapes
@pytest.mark.parametrize(
    ("column", "metadata", "action"),
    [
        ("extract", {"action": "other"}, "extract"),
        (None, {"action": "extract"}, "extract"),
        (None, {}, "ask"),
        (None, None, "ask"),
        ("", {"action": "other"}, ""),
        (None, {"action": ""}, ""),
        (None, {"action": None}, "ask"),
    ],
)
def test_the_action_comes_from_column_metadata_or_default(
    model: Model, column: Any, metadata: Any, action: str
) -> None:
    run = make(model, action_name=column, output_metadata=metadata)

    assert run.summary()["action_name"] == action


@full_shapes
def test_the_error_is_the_message(model: Model) -> None:
    run = make(model)
    run.fail("no such city")

    assert run.summary()["error"] == "no such city"


@every_shape
def test_the_summary_never_reads_the_log(model: Model, django_assert_num_queries: Any) -> None:
    run = make(model)
    run.append_event("tool", "search")

    with django_assert_num_queries(0):
        run.summary()
        str(run)
        repr(run)


# Instructions


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_record_instructions_sets_the_digest_unsaved_and_returns_it(model: Model) -> None:
    run = make(model)

    assert run.record_instructions("Be brief.") == digest("Be brief.")

    assert run.instructions_digest == digest("Be brief.")
    assert get(run).instructions_digest is None
    run.save()
    assert get(run).instructions_digest == digest("Be brief.")


@pytest.mark.parametrize("model", [PlatformRun, PlatformJsonRun, MinimalRun])
def test_record_instructions_has_no_effect_without_the_column(model: Model) -> None:
    run = make(model)

    assert run.record_instructions("Be brief.") is None
    assert run.instructions_digest is None


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
@pytest.mark.parametrize("text", [None, "", " \n "], ids=repr)
def test_blank_instructions_have_no_digest(model: Model, text: Any) -> None:
    run = make(model, stored_instructions_digest="0badc0de")

    assert run.record_instructions(text) is None
    assert run.instructions_digest is None


@full_shapes
@pytest.mark.parametrize("stored", [None, "", "  "], ids=repr)
def test_a_blank_digest_falls_back_to_the_metadata(model: Model, stored: Any) -> None:
    run = make(
        model, stored_instructions_digest=stored, output_metadata={"instructions": " Be brief. "}
    )

    assert run.instructions_digest == digest(" Be brief. ")


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_a_stored_digest_goes_first(model: Model) -> None:
    run = make(
        model, stored_instructions_digest="0badc0de", output_metadata={"instructions": "other"}
    )

    assert run.instructions_digest == "0badc0de"


@pytest.mark.parametrize("model", [GeneratorRun, FreshRun])
def test_the_codename_is_that_of_the_digest(model: Model) -> None:
    assert make(model, stored_instructions_digest="00000000").instructions_codename == "calm-heron"
    assert make(model).instructions_codename is None


@override_settings(SOLID_RUNS={"ADJECTIVES": ["red", "green"], "NOUNS": ["bus", "tram", "train"]})
def test_a_setting_replaces_the_words_of_the_codename() -> None:
    run = make(GeneratorRun, stored_instructions_digest="00000005")

    assert run.instructions_codename == "green-train"  # 5 % 2 and 5 // 2 % 3


# Duration and tokens


@full_shapes
@pytest.mark.parametrize(
    ("stored", "started", "ended", "duration"),
    [
        (0, NINE, NINE + timedelta(seconds=5), 0),
        (1234, NINE, NINE + timedelta(seconds=5), 1234),
        (None, NINE, NINE + timedelta(seconds=5), 5000),
        (None, NINE, NINE + timedelta(microseconds=1999), 1),
        (None, NINE, NINE, 0),
        (None, None, NINE, None),
        (None, NINE, None, None),
        (None, None, None, None),
    ],
)
def test_the_duration_is_stored_or_calculated(
    model: Model, stored: Any, started: Any, ended: Any, duration: Any
) -> None:
    run = make(model, duration_ms=stored, started_at=started, completed_at=ended)

    assert run.calculated_duration_ms() == duration
    assert run.summary()["duration_ms"] == duration


@full_shapes
@pytest.mark.parametrize("stored", [None, -1], ids=str)
def test_a_clock_that_ran_backwards_never_gives_a_negative_duration(
    model: Model, stored: Any
) -> None:
    run = make(model, duration_ms=stored, started_at=NINE, completed_at=NINE - timedelta(seconds=4))

    assert run.calculated_duration_ms() in (0, None)


@full_shapes
def test_a_fallback_end_serves_while_the_run_goes_on(model: Model) -> None:
    run = make(model, "running", started_at=NINE)
    assert run.calculated_duration_ms(NINE + timedelta(seconds=2)) == 2000

    run.completed_at = NINE + timedelta(seconds=1)
    assert run.calculated_duration_ms(NINE + timedelta(seconds=2)) == 1000

    run.started_at = None
    assert run.calculated_duration_ms(NINE + timedelta(seconds=2)) is None


@rails_shapes
def test_a_naive_fallback_end_means_utc(model: Model) -> None:
    run = make(model, "running", started_at=NINE)

    assert run.calculated_duration_ms(datetime(2026, 1, 15, 9, 0, 2)) == 2000


@full_shapes
def test_without_use_tz_a_naive_start_beside_an_aware_end_is_local_time(model: Model) -> None:
    with override_settings(USE_TZ=False):  # TIME_ZONE is Asia/Tokyo, nine hours ahead
        run = model(status="running", started_at=datetime(2026, 1, 15, 18, 0))

        assert run.calculated_duration_ms(NINE + timedelta(seconds=2)) == 2000


@full_shapes
@pytest.mark.parametrize(
    ("reported", "given", "spent", "total"),
    [
        (None, 7, 5, 12),
        (None, 7, None, 7),
        (None, None, 5, 5),
        (None, None, None, 0),
        (0, 7, 5, 0),
        (40, 7, 5, 40),
    ],
)
def test_the_total_is_reported_or_added_up(
    model: Model, reported: Any, given: Any, spent: Any, total: int
) -> None:
    run = make(model, reported_total_tokens=reported, input_tokens=given, output_tokens=spent)

    if not has(model, "reported_total_tokens"):
        total = (given or 0) + (spent or 0)
    assert run.total_tokens == run.summary()["tokens"] == total


# subject


def subject_keys() -> list[tuple[Any, Any]]:
    return [
        (UUIDDocument, {"id": uuid.UUID("6f0c9d7e-3b1a-4c7b-9f59-0d6a1f2b3c4d")}),
        (NamedDocument, {"slug": "7"}),
        (NamedDocument, {"slug": "annual/report é"}),
        (Document, {"id": 2**40}),
        (Document, {"id": 7}),
    ]


@pytest.mark.parametrize(("target", "key"), subject_keys(), ids=str)
def test_a_subject_may_have_any_kind_of_key(target: Any, key: Any) -> None:
    document = target.objects.create(**key)
    run = FreshRun()
    run.subject = document
    run.save()

    assert get(run).subject == document
    assert get(run).runnable_id == str(document.pk)


def test_the_generator_shape_keeps_integer_keys() -> None:
    document = Document.objects.create(id=2**40, title="big")
    run = GeneratorRun()
    run.subject = document
    run.save()

    assert get(run).subject == document
    assert (get(run).runnable_type, get(run).runnable_id) == ("Document", 2**40)


def test_keys_are_compared_as_text() -> None:
    number = Document.objects.create(id=7, title="number")
    name = NamedDocument.objects.create(slug="7")

    assert make(FreshRun, runnable_type="Document", runnable_id="7").subject == number
    assert make(GeneratorRun, runnable_type="Document", runnable_id=7).subject == number
    assert make(GeneratorRun, runnable_type="tests.NamedDocument", runnable_id=7).subject == name
    assert make(FreshRun, runnable_type="tests.NamedDocument", runnable_id="7").subject == name


def test_a_type_with_no_counterpart_is_shown_by_its_name() -> None:
    run = GeneratorRun.objects.get(pk=2)

    assert run.subject == UnresolvedSubject("Reports::Quarterly", "2")
    assert str(run.subject) == "Reports::Quarterly 2"


def test_a_subject_that_is_gone_is_shown_by_its_name() -> None:
    run = GeneratorRun.objects.get(pk=1)

    assert run.subject == UnresolvedSubject("Document", "1")


@pytest.mark.parametrize(
    ("type_name", "key"),
    [
        ("tests.UUIDDocument", "not-a-uuid"),
        ("Document", "abc"),
        ("Document", "9" * 40),
        ("Document", "-1"),
        ("Document", "1.5"),
        ("tests.NamedDocument", "x" * 200),
        ("nowhere.Nothing", "1"),
        ("tests.Nothing", "1"),
        ("a.b.c", "1"),
        ("Ünknown::Typ", "1"),
        (".", "1"),
    ],
)
def test_a_subject_never_raises(type_name: str, key: str) -> None:
    run = make(FreshRun, runnable_type=type_name, runnable_id=key)

    assert run.subject == UnresolvedSubject(type_name, key)


@pytest.mark.parametrize(
    ("type_name", "key"), [(None, None), ("", ""), (None, "1"), ("Document", None)]
)
def test_a_run_about_nothing_has_no_subject(type_name: Any, key: Any) -> None:
    assert make(FreshRun, runnable_type=type_name, runnable_id=key).subject is None


def test_a_host_without_the_columns_has_no_subject() -> None:
    assert make(MinimalRun).subject is None


def test_the_agent_is_the_subject_of_the_platform_shape() -> None:
    agent = Agent.objects.create(name="Librarian")
    run = make(PlatformRun, agent_id=agent.pk)
    assert run.subject == UnresolvedSubject("Agent", str(agent.pk))

    with override_settings(SOLID_RUNS={"SUBJECTS": {"Agent": "tests.Agent"}}):
        assert get(run).subject == agent


def test_a_foreign_key_of_the_host_says_which_model_the_agent_is() -> None:
    agent = Agent.objects.create(name="Librarian")
    run = AgentOwnedRun(agent=agent)
    run.save()

    assert get(run).subject == agent
    assert get(run).agent_id == agent.pk


def test_an_agent_that_is_gone_is_shown_by_its_key() -> None:
    run = AgentOwnedRun.objects.get(pk=1)

    assert run.subject == UnresolvedSubject("Agent", "1")


def test_a_run_without_an_agent_has_no_subject() -> None:
    assert make(AgentOwnedRun).subject is None
    assert make(PlatformRun).subject is None


def test_setting_a_subject_points_at_it_and_none_at_nothing() -> None:
    document = Document.objects.create(title="x")
    agent = Agent.objects.create(name="Librarian")
    run, owned = FreshRun(), AgentOwnedRun()

    run.subject, owned.subject = document, agent
    assert (run.runnable_type, run.subject) == ("Document", document)
    assert (owned.agent_id, owned.subject) == (agent.pk, agent)

    run.subject = owned.subject = None
    assert (run.runnable_type, run.runnable_id, run.subject) == (None, None, None)
    assert (owned.agent_id, owned.subject) == (None, None)


@override_settings(SOLID_RUNS={"SUBJECTS": {"Library::Book": "tests.Document"}})
def test_the_setting_names_types_in_both_directions() -> None:
    document = Document.objects.create(title="x")
    run = FreshRun()
    run.subject = document

    assert run.runnable_type == "Library::Book"
    assert (
        make(FreshRun, runnable_type="Library::Book", runnable_id=document.pk).subject == document
    )


@override_settings(SOLID_RUNS={"SUBJECTS": {}})
def test_a_type_that_is_not_in_the_setting_goes_by_its_label() -> None:
    document = Document.objects.create(title="x")
    run = FreshRun()
    run.subject = document

    assert run.runnable_type == "tests.Document"
    run.save()
    assert get(run).subject == document


def test_a_subject_is_asked_for_once(django_assert_num_queries: Any) -> None:
    document = Document.objects.create(title="x")
    run = make(FreshRun, runnable_type="Document", runnable_id=document.pk)

    with django_assert_num_queries(1):
        assert run.subject == run.subject == document


def test_a_subject_that_was_changed_is_asked_for_again() -> None:
    first, second = Document.objects.create(title="x"), Document.objects.create(title="y")
    run = make(FreshRun, runnable_type="Document", runnable_id=first.pk)
    assert run.subject == first

    run.runnable_id = str(second.pk)

    assert run.subject == second


def test_subjects_of_many_runs_cost_one_query_a_type(django_assert_num_queries: Any) -> None:
    documents = [Document.objects.create(title=str(number)) for number in range(10)]
    named = NamedDocument.objects.create(slug="7")
    for document in documents:
        make(FreshRun, runnable_type="Document", runnable_id=document.pk)
    make(FreshRun, runnable_type="tests.NamedDocument", runnable_id="7")
    make(FreshRun, runnable_type="Reports::Quarterly", runnable_id="7")
    make(FreshRun)
    runs = list(FreshRun.objects.order_by("pk"))

    with django_assert_num_queries(2):
        prefetch_subjects(runs)
        subjects = [run.subject for run in runs]

    assert subjects == [*documents, named, UnresolvedSubject("Reports::Quarterly", "7"), None]


@pytest.mark.parametrize("model", [FreshRun, GeneratorRun])
def test_a_subject_may_be_a_child_of_multi_table_inheritance(model: Model) -> None:
    child = ChildRun.objects.create(note="inner")
    run = model()
    run.subject = child
    run.save()

    assert run.runnable_type == "tests.ChildRun"
    subject = get(run).subject
    assert (type(subject), subject.pk) == (ChildRun, child.pk)


def test_a_subject_of_another_model_than_the_foreign_keys_is_refused() -> None:
    agent = Agent.objects.create(name="Librarian")
    document = Document.objects.create(pk=agent.pk, title="Of the same key")
    run = make(AgentOwnedRun, agent_id=agent.pk)

    with pytest.raises(TypeError, match="AgentOwnedRun must be an instance of Agent, not <Doc"):
        run.subject = document

    assert run.subject == agent
