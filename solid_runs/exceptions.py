"""Everything that solid_runs raises on its own account."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured


class SolidRunsError(Exception):
    """Base of the errors of solid_runs."""


class InvalidIdentifier(SolidRunsError, ValueError):
    """A scope or an id that no key can hold as it is. ``name`` says which."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


class RunNotFound(SolidRunsError):
    """The run has no row: never saved, or deleted. ``model`` and ``pk`` say which."""

    def __init__(self, model: type[Any], pk: Any) -> None:
        self.model, self.pk = model, pk
        if pk is None:
            message = f"This {model.__name__} has no row: save() it first. Or was it deleted?"
        else:
            message = f"There is no {model.__name__} with primary key {pk!r}; was it deleted?"
        super().__init__(message)


class StaleRun(SolidRunsError):
    """A save() would have overwritten a status that this copy does not know. Nothing was written.

    ``read`` is the status that this copy had read (None: it never read one), ``assigned`` the one
    that it was about to write.
    """

    def __init__(self, model: type[Any], pk: Any, *, read: Any, assigned: Any, why: str) -> None:
        self.model, self.pk, self.read, self.assigned = model, pk, read, assigned
        super().__init__(
            f"{model.__name__} {pk!r} was not saved: {why} Call refresh_from_db() and decide "
            f"again, or use start(), finish(), fail() or cancel(), which the row decides."
        )


class NotAList(SolidRunsError):
    """The log column of this run holds something that is not a list. Nothing was written."""

    def __init__(self, model: type[Any], pk: Any, column: str) -> None:
        self.model, self.pk, self.column = model, pk, column
        super().__init__(
            f"{model.__name__} {pk!r} holds something other than a list in {column!r}; it was left "
            f"as it is. Move what is there elsewhere and set the column to [] or null."
        )


class LogInTable(SolidRunsError):
    """The entries of this run are in a table that its model does not name here."""

    def __init__(self, model: type[Any], pk: Any) -> None:
        self.model, self.pk = model, pk
        super().__init__(
            f"The log of {model.__name__} {pk!r} is in a table, but {model.__name__} has no "
            f"events_model here: was it deployed to every process before the first run was made?"
        )


class NotAnObject(SolidRunsError):
    """The metadata column holds something that is not an object. Nothing was written."""

    def __init__(self, model: type[Any], pk: Any, column: str) -> None:
        self.model, self.pk, self.column = model, pk, column
        super().__init__(
            f"{model.__name__} {pk!r} holds something other than an object in {column!r}, so no "
            f"metadata can be merged into it and the run was not ended. Mend the column, or call "
            f"finish() without metadata."
        )


class UnknownStatusError(SolidRunsError):
    """The row holds a status that is none of the five, so no transition can be decided."""

    def __init__(self, model: type[Any], pk: Any, stored: Any) -> None:
        self.model, self.pk, self.stored = model, pk, stored
        super().__init__(
            f"{model.__name__} {pk!r} holds the unknown status {stored!r} and cannot be moved. "
            f"Find out who wrote it and set one of pending, running, complete, failed, cancelled."
        )


class MissingColumn(SolidRunsError, ImproperlyConfigured):
    """A setting of a run model speaks of a field that the model does not have."""

    def __init__(self, model: type[Any], column: str, setting: str = "events_column") -> None:
        self.model, self.column, self.setting = model, column, setting
        name = model.__name__
        if setting == "events_column":
            message = (
                f"{name}.events_column is {column!r}, but {name} has no field of that name. Set "
                f"events_column to the name of the field that holds the event log."
            )
        else:
            message = (
                f"{name}.{setting} is set, but {name} has no field {column!r} beside its log. Add "
                f"{column} = models.BigIntegerField(null=True, editable=False) and migrate."
            )
        super().__init__(message)


class InvalidUsage(SolidRunsError, ValueError):
    """A token count that cannot be one: negative, a boolean, or no whole number."""
