"""Filters of the list of runs: statuses by name, and ranges of time computed in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from solid_runs.querysets import local_midnight
from solid_runs.statuses import RunStatus, known_status


class StatusFilter(SimpleListFilter):
    """One of the five statuses, in the order of the lifecycle."""

    title = _("status")
    parameter_name = "status"
    needs = "status"
    """The column without which the filter is left out; read by RunAdmin."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(status.value, status.label) for status in RunStatus]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        status = known_status(int(value) if value in DIGITS else value)
        if status is None:
            raise IncorrectLookupParameters(f"{value!r} is not a status of a run.")
        return queryset.filter(status__in=[status])


DIGITS: Final = {str(status.integer) for status in RunStatus}


class CreatedFilter(SimpleListFilter):
    """When the run was recorded: half-open ranges over the bare column, which its index serves."""

    title = _("created")
    parameter_name = "created"
    needs = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, label) for name, (label, _range) in RANGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value not in RANGES:
            raise IncorrectLookupParameters(f"{value!r} is none of {', '.join(RANGES)}.")
        start, end = RANGES[value][1]()
        return queryset.filter(created_at__gte=start, created_at__lt=end)


def last_hour() -> tuple[datetime, datetime]:
    now = timezone.now()
    return now - timedelta(hours=1), now


def today() -> tuple[datetime, datetime]:
    return local_midnight(), local_midnight(days=1)


def past_week() -> tuple[datetime, datetime]:
    return local_midnight(days=-7), local_midnight(days=1)


RANGES: Final[dict[str, tuple[str | Promise, Callable[[], tuple[datetime, datetime]]]]] = {
    "hour": (_("last hour"), last_hour),
    "today": (_("today"), today),
    "week": (_("past 7 days"), past_week),
}
