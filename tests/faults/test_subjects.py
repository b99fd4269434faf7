"""What a run is about, whatever kind of key that has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import models

from solid_runs.subjects import UnresolvedSubject, prefetch_subjects
from tests.models import Agent, Document, FreshRun, GeneratorRun, NamedDocument, UUIDDocument

pytestmark = pytest.mark.django_db


def subjects() -> list[models.Model]:
    return [
        UUIDDocument.objects.create(id=UUID(int=7)),
        NamedDocument.objects.create(slug="a-slug"),
        NamedDocument.objects.create(slug="7"),
        NamedDocument.objects.create(slug="007"),
        Document.objects.create(id=7, title="seven"),
        Document.objects.create(id=2**40, title="big"),
    ]


def test_f50_keys_of_every_kind_lead_back_to_their_subject() -> None:
    for subject in subjects():
        run = FreshRun()
        run.subject = subject
        run.save()
        stored = FreshRun.objects.get(pk=run.pk)
        assert stored.subject == subject
        assert stored.runnable_id == str(subject.pk)


def test_f50_the_subjects_of_many_runs_cost_a_query_for_each_type(
    django_assert_num_queries: Any,
) -> None:
    wanted = subjects()
    for subject in wanted * 3:
        run = FreshRun()
        run.subject = subject
        run.save()
    runs = list(FreshRun.objects.order_by("pk"))
    with django_assert_num_queries(3):
        prefetch_subjects(runs)
        assert [run.subject for run in runs] == wanted * 3


def test_f50_seven_and_the_text_seven_are_the_same_key() -> None:
    document = Document.objects.create(id=7, title="seven")
    for key in (7, "7"):
        assert FreshRun(runnable_type="Document", runnable_id=key).subject == document
    # A key of another spelling is another key, as it is in a varchar column.
    zeros = NamedDocument.objects.create(slug="007")
    NamedDocument.objects.create(slug="7")
    assert FreshRun(runnable_type="tests.NamedDocument", runnable_id="007").subject == zeros


def test_f50_a_bigint_key_fits_the_live_table() -> None:
    document = Document.objects.create(id=2**40, title="big")
    run = GeneratorRun()
    run.subject = document
    run.save()
    assert GeneratorRun.objects.get(pk=run.pk).subject == document


@pytest.mark.parametrize(
    ("type_name", "key"),
    [
        ("Document", "not a number"),
        ("Document", "9" * 40),
        ("Document", "8"),
        ("tests.UUIDDocument", "no uuid"),
        ("Reports::Quarterly", "2"),
        ("../etc", "1"),
        ("tests.Nothing", "1"),
    ],
)
def test_f50_a_subject_that_is_not_to_be_found_is_shown_by_its_name(
    type_name: str, key: str
) -> None:
    run = FreshRun.objects.create(runnable_type=type_name, runnable_id=key)
    stored = FreshRun.objects.get(pk=run.pk)
    assert stored.subject == UnresolvedSubject(type_name, key)
    assert str(stored.subject) == f"{type_name} {key}"


def test_f50_an_agent_is_found_by_its_key(settings: Any) -> None:
    settings.SOLID_RUNS = {"SUBJECTS": {"Agent": "tests.Agent"}}
    from tests.models import PlatformRun

    agent = Agent.objects.create(id=2, name="two")
    assert PlatformRun.objects.get(pk=2).subject == agent
