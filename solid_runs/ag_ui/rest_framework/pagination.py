"""Pages by primary key, which is the order of reservation."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any, Final

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from solid_runs.rest_framework.pagination import (
    BAD_CURSOR,
    Position,
    RunPagination,
    beyond,
    pk_of,
)
from solid_runs.rest_framework.parameters import parse_key

KEYSET: Final = ("pk",)


class StorePagination(RunPagination):
    """RunPagination for tables whose only order is that of their keys: one query a page."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        limit, position = self.limit_of(request), self.position_of(request, queryset)
        going_back = position is not None and position.is_before
        descending = self.is_descending(request) != going_back
        if position is not None:
            queryset = queryset.filter(beyond(KEYSET, position.values, descending))
        rows = list(queryset.order_by("-pk" if descending else "pk")[: limit + 1])
        more, rows = len(rows) > limit, rows[:limit]
        if going_back:
            rows.reverse()
        self._link(request, position, [(row.pk,) for row in rows], more)
        return rows

    def position_of(self, request: Request, queryset: QuerySet[Any]) -> Position | None:
        text = request.query_params.get("cursor")
        try:
            return decode(text, queryset) if text else None
        except (ValueError, OverflowError, RecursionError):
            raise ValidationError({"cursor": [BAD_CURSOR]}) from None


def decode(text: str, rows: QuerySet[Any]) -> Position:
    """The position that a link wrote down; ValueError for anything else."""
    data = json.loads(urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)))
    match data:
        case [0 | 1 as before, str(key)]:
            return Position(bool(before), (parse_key(pk_of(rows.model), key, rows.db),))
    raise ValueError(BAD_CURSOR)
