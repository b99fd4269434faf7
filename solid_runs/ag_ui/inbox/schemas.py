"""The flat part of JSON Schema, as fields of a form: an object of scalar properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.core.validators import EmailValidator, URLValidator
from django.utils.html import escape
from django.utils.translation import gettext_lazy as _

from solid_runs.printable import text

MOST_PROPERTIES: Final = 50
MOST_CHOICES: Final = 200
LONG_TEXT: Final = 200
"""A string that may be longer than this, and says so, gets several lines."""

SCALARS: Final = ("string", "number", "integer", "boolean")
NESTED: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "$ref", "items", "properties"})
"""Keywords of a property that no single field can stand for."""


@dataclass(frozen=True, kw_only=True)
class Property:
    """One property of a flat schema; ``choices`` are its values and their labels, if it has any."""

    name: str
    kind: str
    schema: Mapping[str, Any]
    required: bool = False
    nullable: bool = False
    choices: tuple[tuple[Any, str], ...] | None = None

    def field(self) -> forms.Field:
        label, help_text = self.schema.get("title"), self.schema.get("description")
        return self._field(
            {
                "label": text(label) if isinstance(label, str) and label else self.name,
                # Django takes a help text for HTML.
                "help_text": escape(text(help_text)) if isinstance(help_text, str) else "",
                "required": self.required and not self.nullable,
                "initial": self._initial(),
            }
        )

    def _field(self, common: dict[str, Any]) -> forms.Field:
        if self.choices is not None:
            shown = [(str(number), label) for number, (_value, label) in enumerate(self.choices)]
            return forms.ChoiceField(choices=[("", "—"), *shown], **common)
        if self.kind == "string":
            return self._text_field(common)
        limits: dict[str, Any] = {
            "min_value": number_of(self.schema.get("minimum")),
            "max_value": number_of(self.schema.get("maximum")),
        }
        if self.kind == "integer":
            return forms.IntegerField(**limits, **common)
        return forms.FloatField(**limits, widget=forms.NumberInput(attrs={"step": "any"}), **common)

    def _text_field(self, common: dict[str, Any]) -> forms.Field:
        shortest, longest = length_of(self.schema, "minLength"), length_of(self.schema, "maxLength")
        form = self.schema.get("format")
        if form == "date":
            return forms.DateField(widget=forms.DateInput(attrs={"type": "date"}), **common)
        field = forms.CharField(min_length=shortest, max_length=longest, **common)
        if form == "email":
            field.widget = forms.EmailInput(attrs=field.widget_attrs(forms.EmailInput()))
            field.validators.append(EmailValidator())
        elif form == "uri":
            field.widget = forms.URLInput(attrs=field.widget_attrs(forms.URLInput()))
            field.validators.append(URLValidator())
        elif longest is not None and longest > LONG_TEXT:
            field.widget = forms.Textarea(attrs={"rows": 3, "maxlength": longest})
        field.widget.is_required = field.required
        return field

    def _initial(self) -> Any:
        default = self.schema.get("default")
        if self.choices is None:
            return default if is_a(self.kind, default) else None
        for number, (value, _label) in enumerate(self.choices):
            if type(value) is type(default) and value == default:
                return str(number)
        return None

    def value(self, cleaned: Any) -> Any:
        """What a cleaned value of the field is in the answer; None for a field left empty."""
        if cleaned in (None, ""):
            return None
        if self.choices is not None:
            return self.choices[int(cleaned)][0]
        return cleaned.isoformat() if hasattr(cleaned, "isoformat") else cleaned


def flat_properties(schema: Any) -> tuple[Property, ...] | None:
    """The properties of a flat object schema, in their order; None for any other."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        return None
    declared, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(declared, Mapping) or not isinstance(required, list):
        return None
    if not 0 < len(declared) <= MOST_PROPERTIES or (NESTED - {"properties"}) & set(schema):
        return None
    if any(name not in list(declared) for name in required):
        return None
    definitions = schema.get("$defs")
    found = [
        _property(str(name), described, definitions, name in required)
        for name, described in declared.items()
    ]
    return None if any(one is None for one in found) else tuple(one for one in found if one)


def _property(name: str, described: Any, definitions: Any, required: bool) -> Property | None:
    plain = _resolved(described, definitions)
    if plain is None:
        return None
    plain, nullable = _without_null(plain)
    plain = _resolved(plain, definitions) or {}
    choices = _choices(plain)
    kind = plain.get("type")
    if choices is None and (not isinstance(kind, str) or kind not in SCALARS):
        return None
    if set(plain) & NESTED and not (choices and set(plain) & NESTED == {"oneOf"}):
        return None
    if choices is not None and not 0 < len(choices) <= MOST_CHOICES:
        return None
    return Property(
        name=name,
        kind=str(kind),
        schema=plain,
        required=required,
        nullable=nullable,
        choices=choices,
    )


def _resolved(described: Any, definitions: Any) -> dict[str, Any] | None:
    """A property with what it refers to among the definitions of its schema, one step far."""
    if not isinstance(described, Mapping):
        return None
    reference = described.get("$ref")
    if not isinstance(reference, str) or not isinstance(definitions, Mapping):
        return dict(described)
    meant = definitions.get(reference.removeprefix("#/$defs/"))
    own = {key: value for key, value in described.items() if key != "$ref"}
    return {**meant, **own} if isinstance(meant, Mapping) else dict(described)


def _without_null(described: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A property without the null that it may be besides: the two ways to write that."""
    kinds, ways = described.get("type"), described.get("anyOf")
    if isinstance(kinds, list) and len(kinds) == 2 and "null" in kinds:
        others = [kind for kind in kinds if kind != "null"]
        return {**described, "type": others[0] if others else "null"}, True
    if isinstance(ways, list) and len(ways) == 2 and {"type": "null"} in ways:
        others = [way for way in ways if way != {"type": "null"}]
        if others and isinstance(others[0], Mapping):
            own = {key: value for key, value in described.items() if key != "anyOf"}
            return {**others[0], **own}, True
    return described, False


def _choices(described: Mapping[str, Any]) -> tuple[tuple[Any, str], ...] | None:
    if "const" in described:
        values, labels = [described["const"]], None
    elif isinstance(described.get("enum"), list):
        values, labels = described["enum"], described.get("enumNames")
    elif isinstance(described.get("oneOf"), list):
        ways = described["oneOf"]
        if not all(isinstance(way, Mapping) and "const" in way for way in ways):
            return None
        values, labels = [way["const"] for way in ways], [way.get("title") for way in ways]
    elif described.get("type") == "boolean":
        return ((True, _("Yes")), (False, _("No")))  # type: ignore[return-value]  # lazy
    else:
        return None
    if not all(any(is_a(kind, value) for kind in SCALARS) for value in values):
        return None
    if not isinstance(labels, list) or len(labels) != len(values):
        labels = [None] * len(values)
    return tuple(
        (value, text(label) if isinstance(label, str) and label else text(value))
        for value, label in zip(values, labels, strict=True)
    )


def is_a(kind: str, value: Any) -> bool:
    """Whether a value is of this scalar type of JSON Schema."""
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == "integer":
        return isinstance(value, int)
    return isinstance(value, str if kind == "string" else int | float)


def number_of(value: Any) -> int | float | None:
    return value if is_a("number", value) else None


def length_of(described: Mapping[str, Any], keyword: str) -> int | None:
    value = described.get(keyword)
    return value if isinstance(value, int) and is_a("integer", value) and value >= 0 else None
