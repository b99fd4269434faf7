"""Everything that solid_runs raises on its own account."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured


class SolidRunsError(Exception):
    """Base of the errors of solid_runs."""


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


class LogFull(SolidRunsError):
    """The log column of this run has no room for another entry. Nothing was written."""

    def __init__(self, model: type[Any], pk: Any, column: str, capacity: int) -> None:
        self.model, self.pk, self.column, self.capacity = model, pk, column, capacity
        super().__init__(
            f"The log of {model.__name__} {pk!r} is full: {column!r} holds {capacity:,} bytes. "
            f"Change the column to a larger type, such as LONGTEXT."
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
    """A model names a log column that it does not have."""

    def __init__(self, model: type[Any], column: str) -> None:
        self.model, self.column = model, column
        super().__init__(
            f"{model.__name__}.events_column is {column!r}, but {model.__name__} has no field of "
            f"that name. Set events_column to the name of the field that holds the event log."
        )


class InvalidUsage(SolidRunsError, ValueError):
    """A token count that cannot be one: negative, a boolean, or no whole number."""
