"""No query parameter without an effect."""

from __future__ import annotations

from collections.abc import Collection

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
