from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solid_runs.ag_ui.inbox.forms import ApprovalForm, JSONAnswerForm, PropertiesForm, answer_form
from solid_runs.ag_ui.inbox.schemas import MOST_CHOICES, MOST_PROPERTIES, flat_properties

SCRIPT = "<script>alert(1)</script>"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=10,
)
KEYWORDS = [
    *("type", "properties", "required", "enum", "const", "oneOf", "anyOf", "$ref", "$defs"),
    *("title", "description", "default", "minimum", "maxLength", "minLength", "format"),
]
SCHEMAS = st.recursive(
    JSON | st.sampled_from(["string", "number", "integer", "boolean", "object", "null"]),
    lambda children: st.dictionaries(
        st.sampled_from([*KEYWORDS, "approved", "a"]), children | st.lists(children, max_size=3)
    ),
    max_leaves=15,
)


def flat(required=(), /, **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def field(schema, required=False):
    """The one field of a form for one property."""
    form = answer_form(flat(["it"] if required else [], it=schema))()
    return form.fields["property0"]


def answered(schema, *values):
    """The payload of a form in which these were entered, in order."""
    data = {f"property{number}": value for number, value in enumerate(values) if value is not None}
    form = answer_form(schema)({**data, "answer": "send"})
    assert form.is_valid(), form.errors
    return form.payload()


def refused(schema, value):
    form = answer_form(flat(it=schema))({"property0": value, "answer": "send"})
    return not form.is_valid() and set(form.errors) == {"property0"}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        flat(approved={"type": "boolean"}),
        flat(["approved"], approved={"type": "boolean"}),
        flat(["approved"], approved={"type": "boolean"}, reason={"type": "string"}),
        flat(["approved"], approved={"type": "boolean"}, editedArgs={"type": "object"}),
    ],
)
def test_what_asks_for_approval_only_gets_two_buttons(schema):
    assert answer_form(schema) is ApprovalForm


def test_what_demands_more_than_approval_does_not_get_two_buttons():
    approved = {"type": "boolean"}
    assert issubclass(
        answer_form(flat(["approved", "amount"], approved=approved, amount={"type": "number"})),
        PropertiesForm,
    )
    assert issubclass(
        answer_form(flat(approved=approved, amount={"type": "number"})), PropertiesForm
    )
    nested = flat(["approved", "args"], approved=approved, args={"type": "object"})
    assert answer_form(nested) is JSONAnswerForm


@pytest.mark.parametrize(
    ("pressed", "reason", "payload"),
    [
        ("approve", "", {"approved": True}),
        ("approve", "left over", {"approved": True}),
        ("deny", "", {"approved": False}),
        ("deny", " too much ", {"approved": False, "reason": "too much"}),
    ],
)
def test_the_button_decides_and_a_reason_goes_with_a_denial(pressed, reason, payload):
    form = ApprovalForm({"answer": pressed, "reason": reason})
    assert form.is_valid()
    assert form.payload() == payload


@pytest.mark.parametrize("pressed", [None, "", "send", "Approve", "approve\0"])
def test_no_button_is_no_answer(pressed):
    assert not ApprovalForm({} if pressed is None else {"answer": pressed}).is_valid()


def test_a_flat_schema_is_answered_with_typed_values_under_its_own_names():
    schema = flat(
        ["name", "age", "price", "agreed", "size"],
        name={"type": "string"},
        age={"type": "integer"},
        price={"type": "number"},
        agreed={"type": "boolean"},
        size={"enum": ["S", 42, 4.5, True]},
    )
    assert answered(schema, "Ann", "30", "1.5", "1", "1") == {
        "name": "Ann",
        "age": 30,
        "price": 1.5,
        "agreed": False,
        "size": 42,
    }
    payload = answered(schema, "Ann", "30", "1.5", "0", "3")
    assert (payload["agreed"], payload["size"]) == (True, True)


def test_what_may_be_left_out_and_is_does_not_appear():
    schema = flat(
        note={"type": "string"},
        count={"type": "integer"},
        sure={"type": "boolean"},
        size={"enum": ["S", "L"]},
    )
    assert answered(schema, "", "", "", "") == {}
    assert answered(schema, None, None, None, None) == {}


@pytest.mark.parametrize("schema", [{"type": "boolean"}, {"type": "boolean", "default": None}])
def test_a_boolean_that_is_demanded_is_never_false_by_omission(schema):
    form = answer_form(flat(["it"], it=schema))({"answer": "send"})
    assert set(form.errors) == {"property0"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"type": ["null", "string"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    ],
)
def test_what_is_demanded_and_may_be_null_is_null_when_left_empty(schema):
    assert answered(flat(["it"], it=schema), "") == {"it": None}
    assert answered(flat(it=schema), "") == {}
    assert answered(flat(["it"], it=schema), "x") == {"it": "x"}


def test_titles_descriptions_and_defaults_are_shown():
    shown = field({"type": "integer", "title": "Bags", "description": "Checked ones", "default": 2})
    assert (shown.label, shown.help_text, shown.initial) == ("Bags", "Checked ones", 2)
    assert field({"type": "string"}).label == "it"
    assert field({"enum": ["a", "b"], "default": "b"}).initial == "1"
    assert field({"type": "boolean", "default": False}).initial == "1"
    assert field({"type": "boolean", "default": True}).initial == "0"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "default": "2"},
        {"type": "integer", "default": True},
        {"type": "string", "default": ["x"]},
        {"enum": [1, 2], "default": True},
        {"enum": ["a"], "default": "z"},
    ],
)
def test_a_default_of_another_type_is_none(schema):
    assert field(schema).initial is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "one"),
        ({"type": "integer", "minimum": 3}, "2"),
        ({"type": "number", "maximum": 3}, "3.5"),
        ({"type": "number"}, "nan"),
        ({"type": "number"}, "1e400"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "string", "minLength": 2}, "a"),
        ({"type": "string", "format": "email"}, "nobody"),
        ({"type": "string", "format": "uri"}, "nowhere"),
        ({"type": "string", "format": "date"}, "2026-13-01"),
        ({"type": "string"}, "a\0b"),
        ({"enum": ["a"]}, "a"),
        ({"enum": ["a"]}, "1"),
        ({"type": "boolean"}, "true"),
    ],
)
def test_what_the_schema_excludes_is_refused(schema, value):
    assert refused(schema, value)


def test_formats_stay_text():
    schema = flat(
        mail={"type": "string", "format": "email"},
        link={"type": "string", "format": "uri"},
        day={"type": "string", "format": "date"},
        other={"type": "string", "format": "color"},
    )
    assert answered(schema, "a@b.de", "https://b.de/x", "2026-01-31", "red") == {
        "mail": "a@b.de",
        "link": "https://b.de/x",
        "day": "2026-01-31",
        "other": "red",
    }


def test_choices_are_labelled_by_titles_and_const_is_one_choice():
    titled = {"oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}
    assert list(field(titled).choices)[1:] == [("0", "Red"), ("1", "g")]
    named = {"enum": [1, 2], "enumNames": ["One", "Two"]}
    assert list(field(named).choices)[1:] == [("0", "One"), ("1", "Two")]
    assert answered(flat(it={"const": "only", "type": "string"}), "0") == {"it": "only"}


def test_a_definition_is_looked_up():
    schema = {
        **flat(["size"], size={"$ref": "#/$defs/Size", "title": "Your size"}),
        "$defs": {"Size": {"enum": ["S", "L"], "type": "string", "title": "Size"}},
    }
    form = answer_form(schema)()
    assert form.fields["property0"].label == "Your size"
    assert answered(schema, "1") == {"size": "L"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
        {"type": "object"},
        flat(it={"type": "object"}),
        flat(it={"type": "array", "items": {"type": "string"}}),
        flat(it={"type": "null"}),
        flat(it={}),
        flat(it={"$ref": "#/$defs/Gone"}),
        flat(it={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        flat(it={"type": "string", "not": {"const": "x"}}),
        flat(it={"enum": []}),
        flat(it={"enum": [{"a": 1}]}),
        flat(it={"enum": list(range(MOST_CHOICES + 1))}),
        flat(["other"], it={"type": "string"}),
        {**flat(it={"type": "string"}), "allOf": [{"required": ["it"]}]},
        flat(**{f"p{number}": {"type": "string"} for number in range(MOST_PROPERTIES + 1)}),
    ],
)
def test_anything_else_is_answered_in_json(schema):
    assert answer_form(schema) is JSONAnswerForm


@pytest.mark.parametrize("text", ['{"a": [1, "x"]}', "[]", "null", '"x"', " 1.5 "])
def test_json_is_taken_as_it_is(text):
    form = JSONAnswerForm({"document": text, "answer": "send"})
    assert form.is_valid()
    assert form.payload() == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, "1" * 5_000])
def test_what_is_no_json_is_refused(text):
    form = JSONAnswerForm({"document": text, "answer": "send"})
    assert set(form.errors) == {"document"}


def test_a_property_may_be_called_anything():
    names = ["answer", "csrfmiddlewaretoken", SCRIPT, "a b", "__class__"]
    schema = flat(**{name: {"type": "string"} for name in names})
    assert answered(schema, *"abcde") == dict(zip(names, "abcde", strict=True))
    assert SCRIPT not in str(answer_form(schema)(prefix="i1"))


def test_what_a_schema_says_is_escaped():
    schema = flat(
        it={"type": "string", "title": SCRIPT, "description": SCRIPT, "default": SCRIPT},
        one={"enum": [SCRIPT]},
    )
    shown = answer_form(schema)().as_p()
    assert "alert(1)" in shown
    assert "<script" not in shown


@settings(deadline=None)
@given(SCHEMAS)
def test_any_schema_has_a_form_that_can_be_shown_and_posted(schema):
    form_class = answer_form(schema)
    assert str(form_class())
    properties = flat_properties(schema) or ()
    entered = {f"property{number}": "0" for number in range(len(properties))}
    form = form_class({"answer": "send", **entered})
    assert form.is_valid() is not bool(form.errors)
