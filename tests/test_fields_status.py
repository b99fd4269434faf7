from __future__ import annotations

import copy
import io
import json
import pickle
from typing import Any

import django
import pytest
from django.contrib import admin
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from django.db.models import Case, Count, F, Max, Min, Q, Subquery, Value, When
from django.forms import modelform_factory
from django.forms.models import model_to_dict
from django.test import RequestFactory

from solid_runs.fields import LOADED, RunStatusField
from solid_runs.statuses import INTEGERS, RunStatus, UnknownStatus
from tests.field_models import (
    IntegerStatus,
    NameStatus,
    RailsGeneratorRun,
    RailsJSONRun,
    RailsRun,
    create_tables,
)

pytestmark = pytest.mark.django_db
both = pytest.mark.parametrize("model", [IntegerStatus, NameStatus])
ALLOWED = "pending, running, complete, failed, cancelled"


@pytest.fixture(scope="module", autouse=True)
def tables(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        create_tables(connection)


def insert(model: type[models.Model], stored: Any) -> int:
    """A row as somebody else wrote it; returns its primary key."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} (status) VALUES (%s)", [stored])
        cursor.execute(f"SELECT max(id) FROM {table}")
        return cursor.fetchone()[0]


def stored(model: type[models.Model], pk: int) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT status FROM {model._meta.db_table} WHERE id = %s", [pk])
        return cursor.fetchone()[0]


def unknown_of(model: type[models.Model]) -> Any:
    return 9 if model is IntegerStatus else "stuck"


# Reading


@both
@pytest.mark.parametrize("status", RunStatus)
def test_a_stored_status_reads_as_the_member(model, status):
    pk = insert(model, INTEGERS[status] if model is IntegerStatus else status.value)
    assert model.objects.get(pk=pk).status is status


@pytest.mark.parametrize("model", [RailsRun, RailsJSONRun, RailsGeneratorRun])
def test_the_five_rows_that_rails_wrote_read_as_the_five_members(model):
    assert [run.status for run in model.objects.order_by("pk")] == list(RunStatus)


@both
def test_an_unknown_value_reads_as_unknown_and_is_written_back_as_it_was(model):
    pk = insert(model, unknown_of(model))
    run = model.objects.get(pk=pk)
    assert isinstance(run.status, UnknownStatus)
    assert run.status == f"unknown ({unknown_of(model)})"
    run.label = "touched"
    run.save()
    model.objects.bulk_update([run], ["status", "label"])
    assert stored(model, pk) == unknown_of(model)


@both
def test_a_null_reads_as_unknown_and_is_written_back_as_null(model):
    pk = insert(model, None)
    run = model.objects.get(pk=pk)
    assert isinstance(run.status, UnknownStatus)
    assert str(run.status) == run.get_status_display() == "unknown (null)"
    run.save()
    model.objects.bulk_update([run], ["status"])
    assert stored(model, pk) is None
    assert list(model.objects.filter(status__isnull=True).values_list("status", flat=True)) == [
        run.status
    ]


@both
def test_an_aggregate_over_no_rows_is_none_and_not_unknown(model):
    none = model.objects.filter(pk=-1)
    assert none.aggregate(Max("status")) == {"status__max": None}
    insert(model, None)
    assert model.objects.values_list(Subquery(none.values("status")), flat=True)[0] is None


def test_the_text_1_in_a_name_column_is_unknown():
    pk = insert(NameStatus, "1")
    run = NameStatus.objects.get(pk=pk)
    assert isinstance(run.status, UnknownStatus)
    assert run.status.stored == "1"
    run.save()
    assert stored(NameStatus, pk) == "1"


@both
def test_true_from_a_boolean_column_is_unknown(model):
    field = model._meta.get_field("status")
    read = field.from_db_value(True, field.cached_col, connection)
    assert isinstance(read, UnknownStatus)
    assert field.get_prep_value(read) is True
    with pytest.raises(ValueError, match=ALLOWED):
        field.get_prep_value(True)


def test_the_other_form_is_read_as_the_status_that_it_means():
    integer, name = (model._meta.get_field("status") for model in (IntegerStatus, NameStatus))
    assert integer.from_db_value("failed", integer.cached_col, connection) is RunStatus.FAILED
    assert name.from_db_value(3, name.cached_col, connection) is RunStatus.FAILED


def test_an_expression_without_the_field_is_refused_but_by_sqlite_and_then_read():
    pk = insert(IntegerStatus, 1)
    rows = IntegerStatus.objects.filter(pk=pk)
    if connection.vendor != "sqlite":
        with pytest.raises((DatabaseError, ValueError)), transaction.atomic():
            rows.update(status=Value("failed"))
        assert stored(IntegerStatus, pk) == 1
        return
    rows.update(status=Value("failed"))
    assert stored(IntegerStatus, pk) == "failed"
    assert rows.get().status is RunStatus.FAILED
    # The guard of a transition finds such a row, and only when it should.
    assert rows.filter(status__in=["running", "failed"]).exists()
    assert not rows.exclude(status__in=["failed"]).exists()
    assert not rows.filter(status__in=["running", "pending"]).exists()
    assert rows.filter(status__in=["failed"]).update(status="running") == 1
    assert stored(IntegerStatus, pk) == 1


def test_only_on_sqlite_does_in_look_for_names_in_an_integer_column():
    sql = str(IntegerStatus.objects.filter(status__in=["failed"]).query)
    assert ("IN (3, failed)" in sql) == (connection.vendor == "sqlite")
    sql = str(NameStatus.objects.filter(status__in=["failed", "running"]).query)
    assert "IN (failed, running)" in sql


# Assigning


@both
@pytest.mark.parametrize("value", ["failed", RunStatus.FAILED, 3])
def test_names_members_and_integers_become_the_member_when_assigned(model, value):
    run = model(status=value)
    assert run.status is RunStatus.FAILED
    run.status = "running"
    run.status = value
    assert run.status is RunStatus.FAILED
    run.save()
    assert model.objects.get(pk=run.pk).status is RunStatus.FAILED
    assert stored(model, run.pk) == (3 if model is IntegerStatus else "failed")


@both
@pytest.mark.parametrize("value", ["bogus", "RUNNING", "1", "", 9, -1, True, 1.0, [], b"failed"])
def test_anything_else_is_refused_when_assigned_and_the_names_are_told(model, value):
    run = model(status="running")
    with pytest.raises(ValueError, match=ALLOWED):
        run.status = value
    with pytest.raises(ValueError, match=ALLOWED):
        model(status=value)
    assert run.status is RunStatus.RUNNING


@both
def test_none_unknown_values_and_expressions_stay_what_they_are_when_assigned(model):
    unknown, expression = UnknownStatus(9), F("status")
    assert model(status=None).status is None
    assert model(status=unknown).status is unknown
    assert model(status=expression).status is expression


@both
def test_the_default_is_pending(model):
    assert model().status is RunStatus.PENDING
    assert model.objects.create().status is RunStatus.PENDING


@both
def test_an_attribute_that_was_deleted_is_read_again(model):
    run = model.objects.create(status="running")
    model.objects.update(status="failed")
    del run.status
    assert run.status is RunStatus.FAILED
    del run.status
    with pytest.raises(AttributeError):
        del run.status


# What was read


@both
def test_a_deferred_status_is_recorded_when_it_is_read(model):
    model.objects.create(status="running")
    run = model.objects.defer("status").get()
    assert not hasattr(run._state, LOADED)
    assert run.status is RunStatus.RUNNING
    assert getattr(run._state, LOADED) is RunStatus.RUNNING


@both
def test_an_assigned_status_is_not_recorded(model):
    model.objects.create(status="running")
    run = model.objects.defer("status").get()
    run.status = "failed"
    assert run.status is RunStatus.FAILED
    assert not hasattr(run._state, LOADED)


@both
@pytest.mark.skipif(django.VERSION < (6, 1), reason="fetch modes came with Django 6.1")
def test_a_status_fetched_for_peers_is_recorded_on_each_but_not_over_an_assigned_one(model):
    for status in ("running", "failed", "pending"):
        model.objects.create(status=status)
    peers = model.objects.defer("status").order_by("pk").fetch_mode(models.FETCH_PEERS)
    first, second, third = peers
    third.status = "complete"
    assert first.status is RunStatus.RUNNING
    assert getattr(first._state, LOADED) is RunStatus.RUNNING
    assert getattr(second._state, LOADED) is RunStatus.FAILED
    assert second.__dict__["status"] is RunStatus.FAILED
    assert not hasattr(third._state, LOADED)
    assert third.status is RunStatus.COMPLETE


# Filters and queries


@both
@pytest.mark.parametrize("value", ["failed", RunStatus.FAILED, 3, "3"])
def test_filters_take_a_name_a_member_an_integer_and_its_digits(model, value):
    failed = model.objects.create(status="failed")
    running = model.objects.create(status="running")
    insert(model, None)
    assert model.objects.get(status=value) == failed
    assert model.objects.get(status__in=[value]) == failed
    assert model.objects.get(status__in=[value, "pending"]) == failed
    assert list(model.objects.exclude(status=value).exclude(status=None)) == [running]
    assert list(model.objects.exclude(status__in=[value]).filter(status__isnull=False)) == [running]
    assert model.objects.get(Q(status=value) & ~Q(status="running")) == failed


@both
def test_an_unknown_value_is_filtered_by_its_object(model):
    pk = insert(model, unknown_of(model))
    model.objects.create(status="failed")
    assert model.objects.get(status=UnknownStatus(unknown_of(model))).pk == pk
    assert model.objects.get(status__in=[UnknownStatus(unknown_of(model))]).pk == pk


@both
@pytest.mark.parametrize("lookup", ["status", "status__in", "status__gt"])
def test_a_filter_by_something_else_raises_valueerror_that_names_the_five(model, lookup):
    value = ["bogus"] if lookup == "status__in" else "bogus"
    with pytest.raises(ValueError, match=ALLOWED):
        model.objects.filter(**{lookup: value})


@both
def test_values_annotations_and_groups_give_members(model):
    for status in ("failed", "failed", "running"):
        model.objects.create(status=status)
    insert(model, unknown_of(model))
    rows = model.objects.order_by("pk")
    statuses = ["failed", "failed", "running", f"unknown ({unknown_of(model)})"]
    values = list(rows.values_list("status", flat=True))
    assert values == statuses
    assert values[0] is RunStatus.FAILED
    assert rows.values("status")[0]["status"] is RunStatus.FAILED
    assert rows.annotate(s=F("status"))[2].s is RunStatus.RUNNING
    assert rows.aggregate(n=Count("pk", filter=Q(status="failed")))["n"] == 2
    groups = model.objects.values("status").annotate(n=Count("pk"))
    assert {row["status"]: row["n"] for row in groups} == {
        RunStatus.FAILED: 2,
        RunStatus.RUNNING: 1,
        UnknownStatus(unknown_of(model)): 1,
    }
    assert set(model.objects.values_list("status", flat=True).distinct()) == set(statuses)


def test_max_and_order_follow_the_lifecycle_on_integers_and_the_alphabet_on_names():
    for model in (IntegerStatus, NameStatus):
        for status in RunStatus:
            model.objects.create(status=status)
    assert IntegerStatus.objects.aggregate(m=Max("status"))["m"] is RunStatus.CANCELLED
    assert NameStatus.objects.aggregate(m=Max("status"))["m"] is RunStatus.RUNNING
    assert NameStatus.objects.aggregate(m=Min("status"))["m"] is RunStatus.CANCELLED
    by_status = IntegerStatus.objects.order_by("status").values_list("status", flat=True)
    assert list(by_status) == list(RunStatus)
    assert IntegerStatus.objects.filter(status__gt="complete").count() == 2


@both
def test_update_bulk_create_bulk_update_and_case_store_what_the_column_takes(model):
    one, two = model.objects.bulk_create([model(status="failed"), model(status=1)])
    rows = model.objects.order_by("pk")
    raw = [3, 1] if model is IntegerStatus else ["failed", "running"]
    assert [stored(model, run.pk) for run in rows] == raw
    one.status, two.status = 2, "cancelled"
    assert model.objects.bulk_update([one, two], ["status"]) == 2
    assert list(rows.values_list("status", flat=True)) == ["complete", "cancelled"]
    rows.filter(pk=one.pk).update(status="pending")
    field = model._meta.get_field("status")
    ended = Case(
        When(status="pending", then=Value("failed", output_field=field)),
        default=Value(RunStatus.RUNNING, output_field=field),
    )
    rows.update(status=ended)
    assert [run.status for run in rows] == ["failed", "running"]
    raw = [3, 1] if model is IntegerStatus else ["failed", "running"]
    assert [stored(model, run.pk) for run in rows] == raw
    model.objects.filter(pk=two.pk).update(status=F("status"))
    assert model.objects.get(pk=two.pk).status is RunStatus.RUNNING


# Copies, dumps and forms


@both
def test_copies_and_pickles_keep_the_member_and_the_unknown_value(model):
    insert(model, unknown_of(model))
    model.objects.create(status="running")
    for run in model.objects.all():
        for again in (copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
            assert again.status == run.status
            assert type(again.status) is type(run.status)
            assert getattr(again.status, "stored", None) == getattr(run.status, "stored", None)
    queryset = model.objects.filter(status="running")
    queryset.query = pickle.loads(pickle.dumps(queryset.query))
    assert queryset.get().status is RunStatus.RUNNING


@both
@pytest.mark.parametrize("format", ["json", "jsonl", "xml", "python"])
def test_a_dump_is_loaded_again_with_its_unknown_values(model, format):
    raw = [unknown_of(model), None, *("failed", "running")]
    pks = [insert(model, value) for value in raw[:2]]
    pks += [model.objects.create(status=value).pk for value in raw[2:]]
    if format == "xml":  # it has no nulls but for None
        pks.pop(1)
    before = [stored(model, pk) for pk in pks]
    dump = serializers.serialize(format, model.objects.filter(pk__in=pks))
    model.objects.all().delete()
    for loaded in serializers.deserialize(format, dump):
        loaded.save()
    assert [stored(model, pk) for pk in pks] == before


@both
def test_dumpdata_and_loaddata_keep_an_unknown_value(model, tmp_path):
    pk = insert(model, unknown_of(model))
    other = model.objects.create(status="failed")
    out = io.StringIO()
    call_command("dumpdata", f"tests.{model.__name__}", stdout=out)
    dumped = {row["pk"]: row["fields"]["status"] for row in json.loads(out.getvalue())}
    assert dumped == {pk: str(unknown_of(model)), other.pk: "failed"}
    fixture = tmp_path / "runs.json"
    fixture.write_text(out.getvalue())
    model.objects.all().delete()
    call_command("loaddata", fixture, verbosity=0)
    assert stored(model, pk) == unknown_of(model)
    assert model.objects.get(pk=other.pk).status is RunStatus.FAILED


@both
def test_to_python_keeps_what_is_unknown_and_validation_refuses_it(model):
    field = model._meta.get_field("status")
    assert field.to_python(3) is RunStatus.FAILED
    assert field.to_python("failed") is RunStatus.FAILED
    unknown = field.to_python(unknown_of(model))
    assert isinstance(unknown, UnknownStatus)
    assert field.get_prep_value(unknown) == unknown_of(model)
    assert field.to_python(unknown) is unknown
    assert field.to_python(None) is None
    for value in (unknown, unknown_of(model), [], 1.5):
        with pytest.raises(ValidationError, match=ALLOWED):
            field.clean(value, None)
    run = model.objects.get(pk=insert(model, unknown_of(model)))
    with pytest.raises(ValidationError, match=ALLOWED):
        run.full_clean()
    assert run.status.stored == unknown_of(model)


@both
def test_the_display_is_the_label_and_for_an_unknown_value_its_own_text(model):
    assert model(status="running").get_status_display() == "running"
    assert model(status=UnknownStatus(9)).get_status_display() == "unknown (9)"


@both
def test_forms_take_names_and_give_members(model):
    Form = modelform_factory(model, fields=["status"])
    form = Form({"status": "failed"})
    assert form.is_valid()
    assert form.save().status is RunStatus.FAILED
    assert not Form({"status": "bogus"}).is_valid()
    assert model_to_dict(model(status="failed")) == {
        "id": None,
        "status": RunStatus.FAILED,
        "label": None,
    }


class RunAdmin(admin.ModelAdmin):
    list_filter = ["status"]
    list_display = ["pk", "status"]


@both
@pytest.mark.parametrize("query", ["failed", "3"])
def test_the_admin_filters_by_a_name_or_an_integer_in_the_address(model, query, admin_user):
    failed = model.objects.create(status="failed")
    model.objects.create(status="running")
    insert(model, unknown_of(model))
    request = RequestFactory().get("/", {"status__exact": query})
    request.user = admin_user
    changelist = RunAdmin(model, admin.site).get_changelist_instance(request)
    assert list(changelist.queryset) == [failed]


@both
def test_the_admin_takes_a_bogus_status_in_the_address_for_a_lookup_error(model, admin_user):
    from django.contrib.admin.options import IncorrectLookupParameters

    request = RequestFactory().get("/", {"status__exact": "bogus"})
    request.user = admin_user
    with pytest.raises(IncorrectLookupParameters):
        RunAdmin(model, admin.site).get_changelist_instance(request)


@both
def test_django_filter_knows_the_field_without_overrides(model):
    import django_filters

    made = type(
        "MadeFilter",
        (django_filters.FilterSet,),
        {"Meta": type("Meta", (), {"model": model, "fields": {"status": ["exact", "in"]}})},
    )
    assert isinstance(made.base_filters["status"], django_filters.ChoiceFilter)
    assert isinstance(made.base_filters["status__in"], django_filters.BaseInFilter)
    failed = model.objects.create(status="failed")
    model.objects.create(status="running")
    assert list(made({"status": "failed"}, model.objects.all()).qs) == [failed]
    assert list(made({"status__in": "failed,pending"}, model.objects.all()).qs) == [failed]
    bogus = made({"status": "bogus"}, model.objects.all())
    assert not bogus.is_valid()


@both
def test_rest_framework_knows_the_field_without_overrides(model):
    from rest_framework import serializers as drf

    made = type(
        "MadeSerializer",
        (drf.ModelSerializer,),
        {"Meta": type("Meta", (), {"model": model, "fields": ["status"]})},
    )
    assert isinstance(made().fields["status"], drf.ChoiceField)
    assert made(model(status=3)).data == {"status": "failed"}
    assert made(model(status=UnknownStatus(9))).data == {"status": "unknown (9)"}
    given = made(data={"status": "failed"})
    assert given.is_valid()
    assert given.save().status is RunStatus.FAILED
    assert not made(data={"status": "bogus"}).is_valid()


# The column and migrations


def test_the_column_is_an_integer_or_a_varchar():
    types = {
        model: model._meta.get_field("status").db_type(connection)
        for model in (IntegerStatus, NameStatus)
    }
    assert types == {IntegerStatus: "integer", NameStatus: "varchar(255)"}


def test_a_store_that_is_neither_is_refused():
    with pytest.raises(ValueError, match="'integer' or 'name'"):
        RunStatusField(store="int")


@both
def test_checks_are_silent(model):
    assert model.check() == []


def test_deconstruction_keeps_the_store_and_the_default_only():
    name, path, args, kwargs = RunStatusField(store="integer").deconstruct()
    assert (name, path, args) == (None, "solid_runs.fields.RunStatusField", [])
    assert kwargs == {"store": "integer", "default": RunStatus.PENDING}
    text, imports = MigrationWriter.serialize(RunStatusField(store="integer"))
    assert text == "solid_runs.fields.RunStatusField(default='pending', store='integer')"
    assert imports == {"import solid_runs.fields"}
    kwargs = RunStatusField(max_length=20, null=True).deconstruct()[3]
    assert kwargs == {
        "store": "name",
        "max_length": 20,
        "null": True,
        "default": RunStatus.PENDING,
    }


def changes(before: models.Field, after: models.Field) -> dict[str, Any]:
    states = []
    for field in (before, after):
        state = ProjectState()
        key = models.BigAutoField(primary_key=True)
        state.add_model(ModelState("tests", "Run", [("id", key), ("status", field)]))
        states.append(state)
    return MigrationAutodetector(*states)._detect_changes()


def test_the_autodetector_finds_nothing_to_do_a_second_time_or_for_a_member_more(monkeypatch):
    loaded = {}
    exec(
        "import solid_runs.fields\n"
        "field = " + MigrationWriter.serialize(RunStatusField(store="integer"))[0],
        loaded,
    )
    assert changes(loaded["field"], RunStatusField(store="integer")) == {}
    more = [*RunStatus.choices, ("paused", "paused")]
    monkeypatch.setattr(type(RunStatus), "choices", property(lambda cls: more))
    field = RunStatusField(store="integer")
    assert ("paused", "paused") in field.choices
    assert changes(loaded["field"], field) == {}
    assert changes(loaded["field"], RunStatusField(store="name")) != {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("store", ["integer", "name"])
def test_a_managed_table_is_made_with_the_column_of_the_store(store):
    from django.test.utils import isolate_apps

    with isolate_apps("tests"):

        class Made(models.Model):
            status = RunStatusField(store=store, db_index=True)

            class Meta:
                app_label = "tests"
                db_table = "field_made"

        with connection.schema_editor() as editor:
            editor.create_model(Made)
        try:
            run = Made.objects.create(status="failed")
            assert stored(Made, run.pk) == (3 if store == "integer" else "failed")
            assert Made.objects.get(status="failed") == run
        finally:
            with connection.schema_editor() as editor:
                editor.delete_model(Made)
