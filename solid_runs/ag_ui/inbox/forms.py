"""The form in which a person answers an interrupt, out of its response schema.

A schema is read as one of three kinds. Without one, or with one that has a boolean ``approved``
and demands nothing else, the answer is given by two buttons: ``{"approved": true}``, or
``{"approved": false}`` with the ``reason`` if one was written. A flat object of strings, numbers,
integers, booleans and enumerations is a form of these. Anything else is a field for JSON.
Keywords that a form can hold a person to are held; the rest is for the run that takes the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from django import forms
from django.utils.translation import gettext_lazy as _

from solid_runs.ag_ui.inbox.schemas import Property, flat_properties
from solid_runs.printable import text

APPROVED: Final = "approved"
REASON: Final = "reason"
PRESSED: Final = "answer"
"""The name of the buttons of a form; the value says which one was pressed."""


class Button(NamedTuple):
    value: str
    label: Any
    style: str = ""


class AnswerForm(forms.Form):
    """``payload()`` is the answer, once the form is valid; ``buttons`` are the ways to give it."""

    buttons: ClassVar[tuple[Button, ...]] = (Button("send", _("Send answer"), "default"),)

    @property
    def pressed(self) -> str:
        return str(self.data.get(PRESSED, ""))

    def clean(self) -> dict[str, Any]:
        if self.pressed not in {button.value for button in self.buttons}:
            raise forms.ValidationError(_("Use one of the buttons."), code="no_button")
        return self.cleaned_data

    def payload(self) -> Any:
        """Each form has its own."""
        raise NotImplementedError(f"{type(self).__name__} does not say what was answered.")


class ApprovalForm(AnswerForm):
    buttons = (Button("approve", _("Approve"), "default"), Button("deny", _("Deny"), "run-deny"))

    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=2_000,
        widget=forms.TextInput(attrs={"placeholder": _("reason, sent with a denial")}),
    )

    def payload(self) -> dict[str, Any]:
        """Without a reason where none was given: so it equals what a browser sends."""
        if self.pressed == "approve":
            return {APPROVED: True}
        reason = self.cleaned_data.get(REASON)
        return {APPROVED: False, REASON: reason} if reason else {APPROVED: False}


class PropertiesForm(AnswerForm):
    """A field for each property; its fields are numbered, for a property may have any name."""

    properties: ClassVar[tuple[Property, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, one in self._named():
            self.fields[name] = one.field()

    def _named(self) -> Iterator[tuple[str, Property]]:
        return ((f"property{number}", one) for number, one in enumerate(self.properties))

    def payload(self) -> dict[str, Any]:
        """The values with their types; what may be left out and was is not in it."""
        answered: dict[str, Any] = {}
        for name, one in self._named():
            value = one.value(self.cleaned_data.get(name))
            if value is not None or (one.required and one.nullable):
                answered[one.name] = value
        return answered


class JSONAnswerForm(AnswerForm):
    document = forms.CharField(
        label=_("Answer, as JSON"), widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"})
    )

    def clean_document(self) -> Any:
        try:
            return json.loads(self.cleaned_data["document"], parse_constant=_no_json)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(
                _("This is no JSON: %(error)s"), code="json", params={"error": text(error)}
            ) from None

    def payload(self) -> Any:
        return self.cleaned_data["document"]


def _no_json(constant: str) -> Any:
    raise ValueError(constant)


def answer_form(schema: Any) -> type[AnswerForm]:
    """The kind of form that fits a response schema, whatever that is."""
    properties = flat_properties(schema)
    if _is_approval(schema, properties):
        return ApprovalForm
    if not properties:
        return JSONAnswerForm
    return type("SchemaForm", (PropertiesForm,), {"properties": properties})


def _is_approval(schema: Any, properties: tuple[Property, ...] | None) -> bool:
    if not schema:
        return True
    declared = schema.get("properties") if isinstance(schema, Mapping) else None
    approved = declared.get(APPROVED) if isinstance(declared, Mapping) else None
    if not isinstance(approved, Mapping) or approved.get("type") != "boolean":
        return False
    required = schema.get("required")
    if isinstance(required, list) and any(name != APPROVED for name in required):
        return False
    # With flat properties beside these two, a form says more than two buttons.
    return properties is None or {one.name for one in properties} <= {APPROVED, REASON}
