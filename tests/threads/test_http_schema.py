"""The schema of the stores: it says what they take, and takes no name of a host's."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import override_settings
from drf_spectacular.settings import patched_settings

from solid_runs.threads.interrupts import INTERRUPT_FIELDS, InterruptStatus
from solid_runs.threads.records import FIELDS, Status
from solid_runs.threads.rest_framework import bodies
from solid_runs.threads.rest_framework.bodies import Fields

pytestmark = [pytest.mark.once, pytest.mark.urls("tests.threads.urls")]

RUNS, INTERRUPTS = "/api/thread-runs/", "/api/thread-interrupts/"
QUERIES = {
    (RUNS, "get"): bodies.RUNS,
    (f"{RUNS}run/", "get"): bodies.ONE_RUN,
    (f"{RUNS}run/", "patch"): bodies.PATCHED_RUN,
    (f"{RUNS}active/", "get"): bodies.ONE_THREAD,
    (f"{RUNS}reclaimable/", "get"): bodies.RECLAIMABLE,
    (f"{RUNS}stalled/", "get"): bodies.STALLED,
    (INTERRUPTS, "get"): bodies.INTERRUPTS,
    (f"{INTERRUPTS}interrupt/", "get"): bodies.ONE_INTERRUPT,
}
BODIES = {
    (RUNS, "post"): bodies.NEW_RUN,
    (f"{RUNS}run/", "patch"): bodies.PATCH,
    (f"{RUNS}claim/", "post"): bodies.CLAIM,
    (f"{RUNS}touch/", "post"): bodies.TOUCH,
    (f"{RUNS}cancel/", "post"): bodies.ONE_RUN,
    (INTERRUPTS, "post"): bodies.NEW_INTERRUPT,
    (f"{INTERRUPTS}resolve/", "post"): bodies.RESOLVE,
    (f"{INTERRUPTS}cancel/", "post"): bodies.ONE_INTERRUPT,
    (f"{INTERRUPTS}commit/", "post"): bodies.COMMIT,
}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: Any) -> dict[str, Any]:
    file, errors = tmp_path_factory.mktemp("schema") / "schema.yml", StringIO()
    with override_settings(ROOT_URLCONF="tests.threads.urls"):
        call_command("spectacular", "--validate", "--fail-on-warn", file=str(file), stderr=errors)
    assert errors.getvalue() == ""
    return yaml.safe_load(file.read_text())


def operations(schema: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if path.startswith((RUNS, INTERRUPTS))
    }


def resolved(schema: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    name = shown["$ref"].removeprefix("#/components/schemas/")
    return schema["components"]["schemas"][name]


def content(shown: dict[str, Any]) -> dict[str, Any]:
    assert list(shown["content"]) == ["application/json"]
    return shown["content"]["application/json"]


def test_every_route_is_told_of(schema: dict[str, Any]) -> None:
    assert operations(schema).keys() == QUERIES.keys() | BODIES.keys()


def test_the_schema_of_openapi_3_1_has_nothing_to_warn_of_either(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"
    with patched_settings({"OAS_VERSION": "3.1.0"}):
        call_command("spectacular", "--validate", "--fail-on-warn", file=str(file))
    components = yaml.safe_load(file.read_text())["components"]["schemas"]
    assert {"type": "null"} in components["ThreadStoreRunOrNull"]["oneOf"]


def test_a_route_takes_the_parameters_that_are_told_of(schema: dict[str, Any]) -> None:
    for key, operation in operations(schema).items():
        fields = QUERIES.get(key, Fields())
        told = {one["name"]: one.get("required", False) for one in operation.get("parameters", [])}
        assert told == {name: name in fields.required for name in fields.checks}, key


def test_a_route_takes_the_body_that_is_told_of(schema: dict[str, Any]) -> None:
    for key, operation in operations(schema).items():
        if key not in BODIES:
            assert "requestBody" not in operation
            continue
        body = resolved(schema, content(operation["requestBody"])["schema"])
        assert body["properties"].keys() == BODIES[key].checks.keys(), key
        assert set(body.get("required", ())) == BODIES[key].required.keys(), key


def test_an_entry_of_a_batch_is_told_of(schema: dict[str, Any]) -> None:
    entry = schema["components"]["schemas"]["ThreadStoreDecision"]
    assert entry["properties"].keys() == set(bodies.ENTRY)
    assert entry["required"] == ["interruptId", "status"]
    words = schema["components"]["schemas"]["ThreadStoreDecisionStatus"]["enum"]
    assert words == ["resolved", "cancelled"]


def test_a_record_says_what_may_be_absent_and_that_nothing_is_null(schema: dict[str, Any]) -> None:
    record = schema["components"]["schemas"]["ThreadStoreRun"]
    assert record["properties"].keys() == set(FIELDS.values())
    assert set(record["required"]) == {"runId", "threadId", "status", "startedAt"}
    assert not [one for one in record["properties"].values() if one.get("nullable")]
    error = schema["components"]["schemas"]["ThreadStoreError"]
    assert error["required"] == ["message"]
    interrupt = schema["components"]["schemas"]["ThreadStoreInterrupt"]
    assert interrupt["properties"].keys() == set(INTERRUPT_FIELDS.values())
    assert interrupt["properties"].keys() - set(interrupt["required"]) == {
        "resolvedAt",
        "response",
    }


def test_a_patch_says_that_null_clears(schema: dict[str, Any]) -> None:
    changes = schema["components"]["schemas"]["PatchedThreadStoreRunChanges"]["properties"]
    assert {name for name, one in changes.items() if one.get("nullable")} == {*changes} - {"status"}


def test_times_are_wide_enough(schema: dict[str, Any]) -> None:
    started_at = schema["components"]["schemas"]["ThreadStoreRun"]["properties"]["startedAt"]
    assert (started_at["format"], started_at["maximum"]) == ("int64", 2**53 - 1)


def test_a_run_that_is_not_there_is_told_to_be_null(schema: dict[str, Any]) -> None:
    for path in (f"{RUNS}run/", f"{RUNS}active/"):
        answer = operations(schema)[path, "get"]["responses"]["200"]
        assert resolved(schema, content(answer)["schema"])["nullable"] is True, path


def test_every_refusal_is_told_of(schema: dict[str, Any]) -> None:
    for key, operation in operations(schema).items():
        assert "400" in operation["responses"], key
        assert "404" not in operation["responses"], key
        assert operation["security"] == [{"tokenAuth": []}], key
    conflicts = {key for key, one in operations(schema).items() if "409" in one["responses"]}
    assert conflicts == {
        (f"{RUNS}run/", "patch"),
        (f"{RUNS}claim/", "post"),
        (f"{INTERRUPTS}commit/", "post"),
    }


def test_components_have_names_of_our_own(schema: dict[str, Any]) -> None:
    components = schema["components"]["schemas"]
    ours = [name.removeprefix("Patched").startswith("ThreadStore") for name in components]
    assert all(ours), sorted(components)
    assert components["ThreadStoreRunStatus"]["enum"] == list(Status)
    assert components["ThreadStoreInterruptStatus"]["enum"] == list(InterruptStatus)


def test_an_example_is_one_that_is_taken(schema: dict[str, Any]) -> None:
    examples = {
        (key, name): one["value"]
        for key, operation in operations(schema).items()
        if "requestBody" in operation
        for name, one in content(operation["requestBody"]).get("examples", {}).items()
    }
    assert len(examples) == 5
    for (key, _), value in examples.items():
        assert BODIES[key].checked(value).keys() == value.keys()
