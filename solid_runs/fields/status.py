"""A status that is a RunStatus in Python, whatever its column holds."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.expressions import Col
from django.db.models.lookups import In
from django.db.models.query_utils import DeferredAttribute

from solid_runs.statuses import BY_INTEGER, RunStatus, UnknownStatus, known_status

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

    StatusBase = models.CharField[RunStatus | str | int, RunStatus]
    StatusInBase = In[Any]
else:
    StatusBase = models.CharField
    StatusInBase = In

LOADED: Final = "solid_runs_status"
"""The attribute of ``instance._state`` that keeps the status this copy read from its row."""

ALLOWED: Final = ", ".join(RunStatus.values)


class StatusAttribute(DeferredAttribute):
    """Makes a member of whatever is assigned, and records in ``_state`` what a deferred read found.

    A data descriptor: one with only ``__get__`` is shadowed by the instance's dictionary.
    """

    field: RunStatusField

    def __get__(self, instance: models.Model | None, cls: type[models.Model] | None = None) -> Any:
        if instance is None or self.field.attname in instance.__dict__:
            return super().__get__(instance, cls)
        value = super().__get__(instance, cls)
        setattr(instance._state, LOADED, value)
        return value

    def __set__(self, instance: models.Model, value: Any) -> None:
        status = instance.__dict__[self.field.attname] = self.field.assigned(value)
        if instance._state.adding:  # what bulk_create() is about to store
            setattr(instance._state, LOADED, status)

    def __delete__(self, instance: models.Model) -> None:
        try:
            del instance.__dict__[self.field.attname]
        except KeyError:
            raise AttributeError(self.field.attname) from None

    def fetch_many(self, instances: Iterable[models.Model]) -> None:
        """Record what FETCH_PEERS (Django 6.1) found: it assigns and calls nothing of the model."""
        attname = self.field.attname
        unread = [instance for instance in instances if attname not in instance.__dict__]
        super().fetch_many(instances)
        for instance in unread:
            if attname in instance.__dict__:
                setattr(instance._state, LOADED, instance.__dict__[attname])


class RunStatusField(StatusBase):
    """A run's status: ``store`` says whether the column holds its name or its integer.

    Reads as a RunStatus, or as an UnknownStatus that keeps what is stored (a null included) and
    writes it back unchanged. Takes a name, a member or an integer, in assignments and in filters;
    anything else raises ValueError there and ValidationError in forms and full_clean().

    Ordering and ``__gt`` follow the column: the order of the lifecycle for integers, of the
    alphabet for names.
    """

    descriptor_class = StatusAttribute
    default_error_messages = {
        "invalid_choice": f"“%(value)s” is not a status of a run; use one of {ALLOWED}."
    }

    def __init__(self, *args: Any, store: str = "name", **kwargs: Any) -> None:
        if store not in {"integer", "name"}:
            raise ValueError(f"store is {store!r}; use 'integer' or 'name'.")
        self.store = store
        kwargs["choices"] = RunStatus.choices
        kwargs.setdefault("max_length", 255)
        kwargs.setdefault("default", RunStatus.PENDING)
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("choices", None)  # a status more is no migration
        if kwargs.get("max_length") == 255:
            del kwargs["max_length"]
        kwargs["store"] = self.store
        path = path.replace("solid_runs.fields.status.", "solid_runs.fields.")
        return name, path, list(args), kwargs

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if self.store == "integer":
            return models.IntegerField().db_type(connection)
        return super().db_type(connection)

    def cast_db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if self.store == "integer":
            return models.IntegerField().cast_db_type(connection)
        return super().cast_db_type(connection)

    def assigned(self, value: Any) -> Any:
        """What an attribute becomes: a member; None, unknown values and expressions as they are."""
        if value is None or isinstance(value, UnknownStatus) or is_expression(value):
            return value
        status = known_status(value)
        if status is None:
            raise ValueError(f"{value!r} is not a status of a run; use one of {ALLOWED}.")
        return status

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> RunStatus | UnknownStatus | None:
        if value is None and not isinstance(expression, Col):
            return None  # an aggregate over no rows, not a null in the column
        # SQLite lets a name into an integer column, so both forms count on either store.
        return known_status(value) or UnknownStatus(value)

    def to_python(self, value: Any) -> Any:
        if value is None or isinstance(value, UnknownStatus):
            return value
        status = known_status(value) or self._from_digits(value)
        if status is not None:
            return status
        if self.store == "integer" and isinstance(value, str):
            if not value:
                return None
            if value.lstrip("-").isdecimal():
                return UnknownStatus(int(value))
        if isinstance(value, str | int):
            return UnknownStatus(value)
        raise ValidationError(
            self.error_messages["invalid_choice"], code="invalid_choice", params={"value": value}
        )

    def get_prep_value(self, value: Any) -> Any:
        value = models.Field.get_prep_value(self, value)
        if value is None or is_expression(value):
            return value
        if isinstance(value, UnknownStatus):
            return value.stored
        status: RunStatus = self._from_digits(value) or self.assigned(value)
        return status.integer if self.store == "integer" else status.value

    def value_to_string(self, obj: models.Model) -> Any:
        value = self.value_from_object(obj)
        stored = value.stored if isinstance(value, UnknownStatus) else value
        return None if stored is None else str(stored)

    @staticmethod
    def _from_digits(value: Any) -> RunStatus | None:
        """The status of a query string such as ``?status__exact=1``."""
        if isinstance(value, str) and not isinstance(value, UnknownStatus) and value.isdecimal():
            return BY_INTEGER.get(int(value))
        return None


@RunStatusField.register_lookup
class StatusIn(StatusInBase):
    """On SQLite, finds a name that was let into an integer column as well.

    ``update(status=Value("failed"))`` goes round the field and puts it there; the guard of a
    transition must not miss such a row.
    """

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any] | tuple[Any, ...]]:
        lookup = self
        if self.rhs_is_direct_value() and getattr(self.lhs.output_field, "store", "") == "integer":
            values = list(self.rhs)
            names = [BY_INTEGER[value].value for value in values if value in BY_INTEGER]
            lookup = copy(self)
            lookup.rhs = values + names
        return lookup.as_sql(compiler, connection)


def is_expression(value: Any) -> bool:
    return hasattr(value, "resolve_expression")
