from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from solid_runs.statuses import RunStatus
from tests.rest_client import ROUTES


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)


def operations(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [way["get"] for way in schema["paths"].values()]


def parameters(schema: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in schema["paths"][path]["get"]["parameters"]}


def test_the_command_has_nothing_to_warn_of(tmp_path: Path) -> None:
    file, errors = tmp_path / "schema.yml", StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(file), stderr=errors)
    assert errors.getvalue() == ""
    written = yaml.safe_load(file.read_text())
    assert len(written["paths"]) == 3 * (len(ROUTES) + 1)


def test_every_operation_has_a_name_of_its_own(schema: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(schema)]
    assert len(names) == len(set(names))
    assert {"platform_runs_list", "platform_runs_retrieve"} <= set(names)


def test_only_reading_is_documented(schema: dict[str, Any]) -> None:
    assert {method for way in schema["paths"].values() for method in way} == {"get"}


def test_a_key_in_a_path_has_the_type_of_its_column(schema: dict[str, Any]) -> None:
    for route in ROUTES.values():
        for then in ("", "events/"):
            key = parameters(schema, f"/api/{route}/{{id}}/{then}")["id"]
            assert key["schema"] == {"type": "integer"}


def test_a_status_is_documented_once_and_by_name(schema: dict[str, Any]) -> None:
    components = schema["components"]["schemas"]
    known, unknown = components["SolidRunStatus"]["anyOf"]
    assert known == {"type": "string", "enum": RunStatus.values}
    assert unknown["type"] == "string"
    for name in ("SolidRun", "SolidRunDetail", "SolidRunEvents"):
        assert "#/components/schemas/SolidRunStatus" in str(
            components[name]["properties"]["status"]
        )
    status = parameters(schema, "/api/platform-runs/")["status"]["schema"]
    assert status["items"] == {"type": "string", "enum": RunStatus.values}
    assert not [name for name in components if name.endswith("Enum")]


def test_all_run_models_share_their_components(schema: dict[str, Any]) -> None:
    assert set(schema["components"]["schemas"]) == {
        "PaginatedSolidRunList",
        "SolidRun",
        "SolidRunDetail",
        "SolidRunEvent",
        "SolidRunEvents",
        "SolidRunStatus",
        "SolidRunSubject",
        "SolidRunTokens",
    }


def test_a_list_documents_what_it_takes(schema: dict[str, Any]) -> None:
    full = {"status", "agent", "action", "trace", "created_after", "created_before"}
    paging = {"cursor", "limit", "ordering"}
    assert set(parameters(schema, "/api/fresh-runs/")) == full | paging
    assert set(parameters(schema, "/api/minimal-runs/")) == {"status"} | paging
    limit = parameters(schema, "/api/fresh-runs/")["limit"]["schema"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 200, 50)
    ordering = parameters(schema, "/api/fresh-runs/")["ordering"]["schema"]
    assert ordering["enum"] == ["-created", "created"]
    page = schema["components"]["schemas"]["PaginatedSolidRunList"]
    assert set(page["properties"]) == {"next", "previous", "results"}


def test_events_document_where_they_begin_and_end(schema: dict[str, Any]) -> None:
    taken = parameters(schema, "/api/fresh-runs/{id}/events/")
    assert set(taken) == {"id", "after", "limit"}
    assert taken["after"]["schema"]["minimum"] == 0
    assert taken["limit"]["schema"]["maximum"] == 1000


def test_content_may_be_null(schema: dict[str, Any]) -> None:
    detail = schema["components"]["schemas"]["SolidRunDetail"]["properties"]
    for name in ("input_prompt", "output", "error_message", "input_preview", "trace_id", "agent"):
        assert detail[name]["type"] == "string", name
        assert detail[name]["nullable"] is True, name
