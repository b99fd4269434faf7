"""System checks: what a host's models or database would trip over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db import connections, models

from solid_runs.columns import LIFECYCLE, column_of, columns_of, facts
from solid_runs.exceptions import MissingColumn
from solid_runs.fields import RunStatusField
from solid_runs.mixin import AgentRunMixin
from solid_runs.models import GeneratorAgentRun, PlatformAgentRun
from solid_runs.querysets import RunQuerySet
from solid_runs.setting_checks import check_settings

TAG = "solid_runs"


def register_all() -> None:
    checks.register(check_settings, TAG)
    checks.register(check_models, TAG)
    checks.register(check_databases, checks.Tags.database)


def run_models(app_configs: Sequence[AppConfig] | None = None) -> Iterator[type[AgentRunMixin]]:
    for config in apps.get_app_configs() if app_configs is None else app_configs:
        for model in config.get_models():
            if issubclass(model, AgentRunMixin):
                yield model


def check_models(
    *, app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    return [
        problem
        for model in run_models(app_configs)
        for check in (
            _log_column,
            _log_table,
            _unmanaged,
            _one_table,
            _default_manager,
            _shadowed_names,
        )
        for problem in check(model)
    ]


def _log_column(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    try:
        field = model._meta.get_field(model.events_column)
    except FieldDoesNotExist:
        yield checks.Error(
            f"events_column is {model.events_column!r}, but the model has no such field.",
            hint="Set events_column to the name of the field that holds the event log.",
            obj=model,
            id="solid_runs.E010",
        )
        return
    if not isinstance(field, models.JSONField):
        yield checks.Error(
            f"The event log {field.name!r} is a {type(field).__name__}, not a JSON field.",
            hint="Declare it as solid_runs.fields.RunJSONField, which reads json, jsonb and text.",
            obj=model,
            id="solid_runs.E011",
        )


def _log_table(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    try:
        table = columns_of(model).log_table
    except MissingColumn as error:
        if error.setting == "events_model":
            yield checks.Error(str(error), obj=model, id="solid_runs.E023")
        return
    except (LookupError, ValueError, FieldDoesNotExist) as error:
        yield checks.Error(
            f"events_model is {model.events_model!r}, which is no model of entries: {error}",
            hint="Name a model made from AbstractRunEvent, as 'app.Model', with a foreign key run.",
            obj=model,
            id="solid_runs.E024",
        )
        return
    if table is None:
        return
    run, name = table.run, table.model._meta.label
    if run.remote_field is not None and isinstance(run.remote_field.model, str):
        return  # Django says of itself that there is no such model
    key = table.counter.model._meta.pk
    if not isinstance(run, models.ForeignKey) or run.unique or run.target_field != key:
        yield checks.Error(
            f"{name}.run is no foreign key to {table.counter.model._meta.label} by its primary "
            f"key, many to one.",
            hint=f"run = models.ForeignKey({table.counter.model.__name__}, models.CASCADE, …).",
            obj=model,
            id="solid_runs.E025",
        )
    if ("run", "seq") not in _unique_together(table.model):
        yield checks.Error(
            f"{name} has no unique constraint on (run, seq), which reads and numbers entries.",
            hint="Inherit its Meta: class Meta(AbstractRunEvent.Meta).",
            obj=model,
            id="solid_runs.E026",
        )
    kinds = {
        table.counter: (models.IntegerField, table.counter.null),
        table.seq: (models.IntegerField, True),
        table.entry: (models.JSONField, True),
    }
    for field, (kind, nullable) in kinds.items():
        if not isinstance(field, kind) or not nullable:
            yield checks.Error(
                f"{field.model._meta.label}.{field.name} is a {type(field).__name__}"
                f"{'' if nullable else ' that is never null'}, which cannot do what it is for.",
                hint="Take the field that AbstractAgentRun or AbstractRunEvent has.",
                obj=model,
                id="solid_runs.E028",
            )
    unfilled = [
        field.name
        for field in table.model._meta.local_concrete_fields
        if field not in (run, table.seq, table.entry) and not _fills_itself(field)
    ]
    if unfilled:
        yield checks.Error(
            f"An append writes run, seq and entry of {name}; nothing would fill "
            f"{', '.join(unfilled)}.",
            hint="Make further columns nullable, or give them a db_default.",
            obj=model,
            id="solid_runs.E027",
        )


def _unique_together(model: type[models.Model]) -> set[tuple[str, ...]]:
    unique = {tuple(names) for names in model._meta.unique_together}
    return unique | {
        tuple(constraint.fields)
        for constraint in model._meta.constraints
        if isinstance(constraint, models.UniqueConstraint)
        and constraint.condition is None
        and constraint.deferrable is None
    }


def _fills_itself(field: models.Field[Any, Any]) -> bool:
    return field.null or field.has_db_default() or field.generated or _is_auto(field)


def _is_auto(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, models.AutoField) or field.get_internal_type().endswith("AutoField")


def _unmanaged(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    if issubclass(model, (PlatformAgentRun, GeneratorAgentRun)) and model._meta.managed:
        shape = next(s for s in (PlatformAgentRun, GeneratorAgentRun) if issubclass(model, s))
        yield checks.Error(
            f"{shape.__name__} describes a table that Rails made, but migrations would create it.",
            hint=(
                f"Write 'class Meta({shape.__name__}.Meta):' with 'managed = False' in it. For a "
                f"table of your own, inherit from AbstractAgentRun."
            ),
            obj=model,
            id="solid_runs.E012",
        )


def _one_table(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    if len(model._meta.pk_fields) != 1:
        yield checks.Error(
            "A run is known by one column, not by a composite primary key.",
            hint="Give the model a primary key of one column.",
            obj=model,
            id="solid_runs.E017",
        )
        return
    columns = columns_of(model)
    names = {field.name: field for field in model._meta.concrete_fields}
    if "status" not in names:
        yield checks.Error(
            "The model has no field 'status'.",
            hint="Add status = RunStatusField(store='name'), or store='integer'.",
            obj=model,
            id="solid_runs.E013",
        )
        return
    if not isinstance(names["status"], RunStatusField):
        yield checks.Error(
            "The field 'status' is not a RunStatusField, so runs would not read as what they are.",
            hint="Declare status = RunStatusField(store='name'), or store='integer'.",
            obj=model,
            id="solid_runs.E018",
        )
    apart = [
        name for name in (*LIFECYCLE, columns.log_name) if name in names and name not in columns
    ]
    if apart:
        yield checks.Error(
            f"The columns of the lifecycle are spread over two tables: {', '.join(apart)} are "
            f"not in that of {columns.owner.__name__}, which holds the status.",
            hint="A transition is one UPDATE; move them to the model that has the status.",
            obj=model,
            id="solid_runs.E014",
        )


def _default_manager(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    if not isinstance(model._default_manager.all(), RunQuerySet):
        yield checks.Warning(
            "The default manager is not one of runs, so recent(), today() and the others are "
            "missing from it.",
            hint="Use RunQuerySet.as_manager(), or a manager made from a subclass of RunQuerySet.",
            obj=model,
            id="solid_runs.W015",
        )


PUBLIC = {
    name
    for base in (AgentRunMixin, models.Model)
    for name, member in vars(base).items()
    if not name.startswith("_")
    and (callable(member) or isinstance(member, (property, classmethod)))
} - {"pk"} | {"objects"}
"""What a field of the same name would hide."""


def _shadowed_names(model: type[AgentRunMixin]) -> Iterable[checks.CheckMessage]:
    for field in model._meta.local_fields:
        if field.name in PUBLIC:
            yield checks.Error(
                f"The field {field.name!r} hides a member of the run model of that name.",
                hint=f"Name the field otherwise and keep the column: db_column={field.column!r}.",
                obj=model,
                id="solid_runs.E016",
            )


def check_databases(
    *,
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[checks.CheckMessage]:
    """What only the database knows; run by ``manage.py check --database default``."""
    problems: list[checks.CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if connection.vendor == "mysql":
            problems += _strict_mode(connection)
            for model in run_models(app_configs):
                problems += _four_byte_text(model, connection)
        if connection.vendor == "sqlite":
            problems += _immediate(connection)
    return problems


def _strict_mode(connection: Any) -> Iterable[checks.CheckMessage]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (modes,) = cursor.fetchone()
    if not {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"} & set(modes.split(",")):
        yield checks.Warning(
            f"The database {connection.alias!r} is not in strict mode: it cuts what is too long "
            f"without a word.",
            hint="Add 'sql_mode': 'STRICT_TRANS_TABLES' to its OPTIONS, or set it on the server.",
            id="solid_runs.W020",
        )


def _four_byte_text(model: type[AgentRunMixin], connection: Any) -> Iterable[checks.CheckMessage]:
    narrow = [
        column_of(field)
        for field in model._meta.local_concrete_fields
        if facts(field, connection).bmp_only
    ]
    if narrow:
        yield checks.Warning(
            f"{', '.join(narrow)} in {model._meta.db_table!r} cannot hold every character, such as "
            f"emoji: those are stored as U+FFFD, or as a question mark.",
            hint="ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4.",
            obj=model,
            id="solid_runs.W021",
        )


def _immediate(connection: Any) -> Iterable[checks.CheckMessage]:
    mode = connection.settings_dict["OPTIONS"].get("transaction_mode") or "DEFERRED"
    if mode.upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield checks.Info(
            f"Transactions on the SQLite database {connection.alias!r} begin DEFERRED: one that "
            f"reads before it writes fails with 'database is locked' when another writes.",
            hint="Add 'transaction_mode': 'IMMEDIATE' to its OPTIONS.",
            id="solid_runs.I022",
        )
