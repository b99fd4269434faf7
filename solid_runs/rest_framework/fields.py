"""Fields of more than one serializer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from solid_runs.storable import DEEPEST, json_value


class WordField(serializers.Field[Any, Any, str, Any]):
    """One of a few words."""

    words: ClassVar[Collection[str]] = ()

    def to_representation(self, value: Any) -> str:
        return str(value)


class NamedWords(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """The schema of a field with ``words``: a component with a name of its own.

    Whatever else in the host's API is called a status. Subclass with ``target_class`` and ``name``.
    """

    name = ""

    def get_name(self) -> str:
        return self.name

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return {"type": "string", "enum": [str(word) for word in self.target.words]}


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class KeyField(serializers.Field[Any, Any, int | str, Any]):
    """A primary key: a number, or the text of any other kind."""

    def to_representation(self, value: Any) -> int | str:
        return value if isinstance(value, int) else str(value)


@extend_schema_field(OpenApiTypes.ANY)
class DocumentField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON."""

    def to_representation(self, value: Any) -> Any:
        return json_value(value, max_depth=DEEPEST)


class ContentField(serializers.Field[Any, Any, Any, Any]):
    """What was said in a run: null, and not even read, unless the request may see it."""

    def __init__(self, read: Callable[[Any], Any], **kwargs: Any) -> None:
        self.read = read
        super().__init__(source="*", read_only=True, allow_null=True, **kwargs)

    def to_representation(self, run: Any) -> Any:
        return self.read(run) if self.context.get("content") else None


@extend_schema_field(OpenApiTypes.STR)
class ContentText(ContentField):
    pass


@extend_schema_field(OpenApiTypes.ANY)
class ContentJSON(ContentField):
    """Any JSON; what older writers left that is none (NaN, lone surrogates) is mended."""

    def to_representation(self, run: Any) -> Any:
        return json_value(super().to_representation(run), max_depth=DEEPEST)
