"""What a list of runs can be narrowed by, on whatever columns its table has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, cast

import django_filters
from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from solid_runs.columns import AnyModel, columns_of
from solid_runs.rest_framework.parameters import parse_key, parse_moment
from solid_runs.statuses import BY_INTEGER, RunStatus, known_status


class StatusesInput(forms.TextInput):
    """Every value that was given, whether it was repeated or separated by commas."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        given = data.getlist(name) if hasattr(data, "getlist") else [data.get(name) or ""]
        parts = [part.strip() for value in given for part in value.split(",")]
        return [part for part in parts if part]

    def format_value(self, value: Any) -> str:
        return ",".join(value or [])


class StatusesField(forms.Field):
    widget = StatusesInput

    def clean(self, value: Any) -> list[RunStatus]:
        return list(dict.fromkeys(self.status(part) for part in value or []))

    def status(self, text: str) -> RunStatus:
        digit = text.isascii() and text.isdecimal()
        status = known_status(int(text[:5]) if digit else text.lower())
        if status is None:
            raise forms.ValidationError(
                _("“%(value)s” is not a status of a run; use one of %(names)s, or its integer."),
                code="invalid_choice",
                params={"value": text, "names": ", ".join(RunStatus.values)},
            )
        return status


class MomentField(IsoDateTimeField):
    """A moment as parse_moment() reads it."""

    def clean(self, value: Any) -> Any:
        try:
            return parse_moment(value) if value else None
        except (ValueError, OverflowError):
            raise forms.ValidationError(
                _("Give a date or datetime in ISO 8601, such as 2026-01-31T09:30:00Z."),
                code="invalid",
            ) from None


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "string", "enum": RunStatus.values},
        "description": (
            "Any of these statuses: repeated, or separated by commas. Case does not matter; "
            "the integers that stand for them count too: "
            + ", ".join(f"{number} {status.value}" for number, status in BY_INTEGER.items())
            + "."
        ),
    }
)
class StatusFilter(django_filters.Filter):
    field_class = StatusesField


class MomentFilter(django_filters.IsoDateTimeFilter):
    field_class = MomentField


class ExactFilter(django_filters.CharFilter):
    """Text as it is, outer white space included."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, strip=False, **kwargs)


class AgentFilter(ExactFilter):
    """By the agent's name, or by its key on a table that has only that."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        model: AnyModel = qs.model
        fields = columns_of(model).fields
        if "agent_name" in fields or not value:
            return super().filter(qs, value)
        try:
            key = parse_key(fields["agent_id"], value, qs.db)
        except ValueError as error:
            raise ValidationError({"agent": [str(error)]}) from None
        return qs.filter(agent_id=key)


class RunFilterSet(django_filters.FilterSet):
    """Filters by the names that the API shows. Those whose column a model lacks are not offered."""

    needs: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "agent": ("agent_name", "agent_id"),
        "action": ("action_name",),
        "trace": ("trace_id",),
        "created_after": ("created_at",),
        "created_before": ("created_at",),
    }
    """For each optional filter the columns of which it needs one."""

    status = StatusFilter(lookup_expr="in", label=_("Status"))
    agent = AgentFilter(
        field_name="agent_name",
        label=_("Agent"),
        help_text=_("Exactly as the field agent shows it."),
    )
    action = ExactFilter(
        field_name="action_name", label=_("Action"), help_text=_("The name in its column, exactly.")
    )
    trace = ExactFilter(
        field_name="trace_id", label=_("Trace"), help_text=_("The trace's id, exactly.")
    )
    created_after = MomentFilter(
        field_name="created_at",
        lookup_expr="gte",
        label=_("Created after"),
        help_text=_("Created then or later. A date or datetime in ISO 8601; local without offset."),
    )
    created_before = MomentFilter(
        field_name="created_at",
        lookup_expr="lt",
        label=_("Created before"),
        help_text=_("Created earlier. A date or datetime in ISO 8601; local without offset."),
    )


class RunFilterBackend(DjangoFilterBackend):
    def get_filterset_class(self, view: Any, queryset: Any = None) -> Any:
        filterset = super().get_filterset_class(view, queryset)
        if queryset is None or not issubclass(filterset or object, RunFilterSet):
            return filterset
        return offered(filterset, queryset.model)


@cache
def offered(filterset: type[RunFilterSet], model: AnyModel) -> type[RunFilterSet]:
    """The filter set without those filters that need a column which the model lacks."""
    columns = columns_of(model)
    narrowed: Any = type(filterset.__name__, (filterset,), {"__module__": filterset.__module__})
    for name, any_of in filterset.needs.items():
        if not any(column in columns for column in any_of):
            narrowed.base_filters.pop(name, None)
    return cast("type[RunFilterSet]", narrowed)
