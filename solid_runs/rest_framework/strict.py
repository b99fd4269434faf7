"""No query parameter and no field of a body without an effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request


def check_parameters(request: Request, known: Collection[str], single: Collection[str]) -> None:
    """A 400 for a parameter that would have no effect: a typing error, or one given twice.

    ``single``: those of ours that make no sense twice.
    """
    errors = {
        name: [f"There is no such parameter; use {', '.join(sorted(known))}."]
        for name in request.query_params
        if name not in known
    }
    errors |= {
        name: ["Give this parameter once."]
        for name, values in request.query_params.lists()
        if name in set(single) & set(known) and len(values) > 1
    }
    if errors:
        raise ValidationError(errors)


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses a field that it does not know, since that would have no effect."""

    def to_internal_value(self, data: Any) -> Any:
        known = {*self.fields, "csrfmiddlewaretoken"}  # a form of the browsable API has that
        unknown = [name for name in data if name not in known] if isinstance(data, Mapping) else []
        if unknown:
            told = f"There is no such field; use {', '.join(self.fields)}."
            raise serializers.ValidationError({str(name): [told] for name in unknown})
        return super().to_internal_value(data)
