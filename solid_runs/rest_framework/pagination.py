"""Pages by position: stable while runs arrive, as quick at the end as at the beginning."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import Model, Q, QuerySet
from django.template import loader
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from solid_runs.columns import AnyModel, columns_of
from solid_runs.rest_framework.parameters import parse_count, parse_key, parse_moment

NEWEST_FIRST: Final = "-created"
OLDEST_FIRST: Final = "created"

BAD_CURSOR: Final = "This is no cursor of this list; start again without it."


class Position(NamedTuple):
    """A place in the order of a list: that of one run, and the side of it that is asked for."""

    is_before: bool
    values: tuple[Any, ...]
    """Those of keyset()."""


def keyset(model: AnyModel) -> tuple[str, ...]:
    """The columns that give runs their order: creation where that is indexed, then the key."""
    created = columns_of(model).fields.get("created_at")
    if len(columns_of(model).recency) == 1 or created is None or created.null:
        return ("pk",)
    return ("created_at", "pk")


class RunPagination(BasePagination):
    """``{"next", "previous", "results"}``, with ``?limit=``, ``?ordering=`` and ``?cursor=``.

    Two queries: one for the keys of the page, which touches no big column even where it has to
    sort, and one for its rows. Nothing is counted.
    """

    default_limit = 50
    max_limit = 200
    parameters = ("cursor", "limit", "ordering")
    template = "rest_framework/pagination/previous_and_next.html"

    next_link: str | None = None
    previous_link: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        names = self.keyset(queryset.model)
        limit = self.limit_of(request)
        position = self.position_of(request, queryset)
        going_back = position is not None and position.is_before
        descending = self.is_descending(request) != going_back

        runs = queryset
        if position is not None:
            runs = runs.filter(beyond(names, position.values, descending))
        order = [f"-{name}" for name in names] if descending else list(names)
        keys = list(runs.order_by(*order).values_list(*names)[: limit + 1])
        more = len(keys) > limit
        keys = keys[:limit]
        if going_back:
            keys.reverse()
        self._link(request, position, keys, more)
        # The conditions once more: a run that meanwhile left the list is not shown.
        rows = queryset.order_by().filter(pk__in=[key[-1] for key in keys])
        by_key = {row.pk: row for row in rows}
        return [by_key[key[-1]] for key in keys if key[-1] in by_key]

    def keyset(self, model: AnyModel) -> tuple[str, ...]:
        """The columns that the list is ordered by: the primary key, or a moment and that."""
        return keyset(model)

    def limit_of(self, request: Request) -> int:
        text = request.query_params.get("limit")
        try:
            return parse_count(text, 1, self.max_limit) if text else self.default_limit
        except ValueError as error:
            raise ValidationError({"limit": [str(error)]}) from None

    def is_descending(self, request: Request) -> bool:
        ordering = request.query_params.get("ordering") or NEWEST_FIRST
        if ordering not in (NEWEST_FIRST, OLDEST_FIRST):
            raise ValidationError(
                {"ordering": [f"Use {NEWEST_FIRST} (newest first) or {OLDEST_FIRST}."]}
            )
        return ordering == NEWEST_FIRST

    def position_of(self, request: Request, queryset: QuerySet[Any]) -> Position | None:
        text = request.query_params.get("cursor")
        try:
            names = self.keyset(queryset.model)
            return decode(text, names, queryset.model, queryset.db) if text else None
        except (ValueError, OverflowError, RecursionError):
            raise ValidationError({"cursor": [BAD_CURSOR]}) from None

    def _link(
        self, request: Request, position: Position | None, keys: list[Any], more: bool
    ) -> None:
        url = request.build_absolute_uri()
        if not keys:  # everything past the position is gone
            self.previous_link = position and remove_query_param(url, "cursor")
        else:
            going_back = position is not None and position.is_before
            if more or going_back:
                after = encode(Position(False, keys[-1]))
                self.next_link = replace_query_param(url, "cursor", after)
            if more if going_back else position is not None:
                before = encode(Position(True, keys[0]))
                self.previous_link = replace_query_param(url, "cursor", before)
        self.display_page_controls = bool(self.next_link or self.previous_link)

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self.next_link, "previous": self.previous_link, "results": data})

    def to_html(self) -> str:
        context = {"previous_url": self.previous_link, "next_url": self.next_link}
        return loader.get_template(self.template).render(context)

    def get_results(self, data: Any) -> Any:
        return data["results"]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": "cursor",
                "in": "query",
                "required": False,
                "description": "Where the page begins: out of the links next and previous.",
                "schema": {"type": "string"},
            },
            {
                "name": "limit",
                "in": "query",
                "required": False,
                "description": "The most runs on a page.",
                "schema": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.max_limit,
                    "default": self.default_limit,
                },
            },
            {
                "name": "ordering",
                "in": "query",
                "required": False,
                "description": (
                    "By creation, the newest first or the oldest; by primary key where the table "
                    "has no index on that."
                ),
                "schema": {
                    "type": "string",
                    "enum": [NEWEST_FIRST, OLDEST_FIRST],
                    "default": NEWEST_FIRST,
                },
            },
        ]


def beyond(names: tuple[str, ...], values: tuple[Any, ...], descending: bool) -> Q:
    """The runs past a position. This form lets databases walk the index from there."""
    side = "lt" if descending else "gt"
    if len(names) == 1:
        return Q((f"{names[0]}__{side}", values[0]))
    first, last = names
    not_past = "gte" if descending else "lte"
    same = Q((first, values[0]), (f"{last}__{not_past}", values[1]))
    return Q((f"{first}__{side}e", values[0])) & ~same


def encode(position: Position) -> str:
    """An opaque text for a position; moments keep their microseconds."""
    texts = [
        value.isoformat() if isinstance(value, datetime) else str(value)
        for value in position.values
    ]
    data = json.dumps([int(position.is_before), *texts], separators=(",", ":"))
    return urlsafe_b64encode(data.encode()).decode().rstrip("=")


def decode(text: str, names: tuple[str, ...], model: AnyModel, using: str) -> Position:
    """The position in the order of ``names`` that encode() wrote down; ValueError for none."""
    data = json.loads(urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)))
    match data:
        case [0 | 1 as before, *texts] if len(texts) == len(names) and all(
            isinstance(part, str) for part in texts
        ):
            key = parse_key(pk_of(model), texts[-1], using)
            return Position(bool(before), (*map(parse_moment, texts[:-1]), key))
    raise ValueError(BAD_CURSOR)


def pk_of(model: type[Model]) -> Any:
    return model._meta.pk
