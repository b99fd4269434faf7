"""The stores over HTTP: who may, what is refused, what a lost answer does."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import modify_settings
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.authentication import SessionAuthentication
from rest_framework.test import APIClient, APIRequestFactory

from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.rest_framework import strict_json
from solid_runs.threads.rest_framework.interrupt_stores import InterruptStoreViewSet
from solid_runs.threads.rest_framework.stores import RunStoreViewSet
from tests.threads.http_store import HttpRunStore, name_of, token_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.threads.urls")]

RUNS, INTERRUPTS = "/api/thread-runs/", "/api/thread-interrupts/"
JSON = "application/json"

NEW = {"runId": "r1", "threadId": "t1", "startedAt": 1000}
RECORD = {**NEW, "status": "running"}
ASKED = {
    "interruptId": "i1",
    "runId": "r1",
    "threadId": "t1",
    "requestedAt": 1000,
    "payload": {"question": "Go on?"},
}
RESOLVED = {"interruptId": "i1", "status": "resolved", "response": True}

READS = [
    f"{RUNS}?threadId=t1",
    f"{RUNS}?parentRunId=r0",
    f"{RUNS}run/?runId=r1",
    f"{RUNS}active/?threadId=t1",
    f"{RUNS}reclaimable/?now=9999&ttlMs=0",
    f"{RUNS}stalled/?now=9999&ttlMs=0",
    f"{INTERRUPTS}?threadId=t1",
    f"{INTERRUPTS}?runId=r1",
    f"{INTERRUPTS}interrupt/?interruptId=i1",
]
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", RUNS, {**NEW, "runId": "r2"}),
    ("PATCH", f"{RUNS}run/?runId=r1", {"status": "completed"}),
    ("POST", f"{RUNS}claim/", {"runId": "r1"}),
    ("POST", f"{RUNS}touch/", {"runId": "r1", "driverEpoch": 1}),
    ("POST", f"{RUNS}cancel/", {"runId": "r1"}),
    ("POST", INTERRUPTS, {**ASKED, "interruptId": "i2"}),
    ("POST", f"{INTERRUPTS}resolve/", {"interruptId": "i1", "response": True}),
    ("POST", f"{INTERRUPTS}cancel/", {"interruptId": "i1"}),
    ("POST", f"{INTERRUPTS}commit/", {"entries": [RESOLVED]}),
]


def client(name: str = "ann") -> APIClient:
    return APIClient(HTTP_AUTHORIZATION=f"Token {token_of(name)}")


@pytest.fixture
def ann() -> APIClient:
    return client()


@pytest.fixture
def stored(ann: APIClient) -> Callable[[], Any]:
    """A run that is claimed and detached, with a parent and a question; reads all rows."""
    assert ann.post(RUNS, {**NEW, "parentRunId": "r0"}, format="json").status_code == 201
    assert ann.post(f"{RUNS}claim/", {"runId": "r1"}, format="json").status_code == 200
    now = {"runId": "r1", "driverEpoch": 1, "now": 1}
    assert ann.post(f"{RUNS}touch/", now, format="json").json() == {"held": True}
    assert patch(ann, {"detachedSince": 1}).status_code == 204
    assert ann.post(INTERRUPTS, ASKED, format="json").status_code == 204
    return rows


def rows() -> Any:
    return list(ThreadRun.objects.order_by("pk").values()), list(
        ThreadInterrupt.objects.order_by("pk").values()
    )


def send(api: APIClient, method: str, url: str, body: Any, content_type: str = JSON) -> Any:
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    return api.generic(method, url, raw, content_type=content_type)


def patch(api: APIClient, body: Any, run_id: str = "r1", **query: Any) -> Any:
    asked = "".join(f"&{name}={value}" for name, value in query.items())
    return send(api, "PATCH", f"{RUNS}run/?runId={run_id}{asked}", body)


def run(api: APIClient, run_id: str = "r1") -> Any:
    return api.get(f"{RUNS}run/", {"runId": run_id}).json()


def named(response: Any) -> set[str]:
    """The fields that a 400 names, each with a list of sentences."""
    assert response.status_code == 400, response.content
    for problems in response.json().values():
        assert isinstance(problems, list), response.content
        assert all(isinstance(one, str) and one for one in problems)
    return set(response.json())


# Who may


def test_a_stranger_is_asked_for_a_token(stored: Callable[[], Any]) -> None:
    before = stored()
    for api in (APIClient(), APIClient(HTTP_AUTHORIZATION="Token never-given")):
        answers = [api.get(url) for url in READS]
        answers += [send(api, *write) for write in WRITES]
        for answer in answers:
            assert answer.status_code == 401, answer.request
            assert answer["WWW-Authenticate"] == "Token"
    assert stored() == before


def test_a_session_is_no_token(stored: Callable[[], Any], django_user_model: Any) -> None:
    api = APIClient()
    api.force_login(django_user_model.objects.get(username=name_of("ann")))
    assert {api.get(url).status_code for url in READS} == {401}


def test_a_token_of_a_user_who_was_switched_off_is_none(django_user_model: Any) -> None:
    api = client()
    django_user_model.objects.filter(username=name_of("ann")).update(is_active=False)
    assert api.get(READS[0]).status_code == 401


def test_what_is_of_another_scope_is_answered_as_what_never_was(
    stored: Callable[[], Any],
) -> None:
    def answers(name: str) -> list[Any]:
        api = client(name)
        found = [api.get(url) for url in READS]
        found += [send(api, *write) for write in WRITES if write[1] not in (RUNS, INTERRUPTS)]
        for query in ({"heldEpoch": 1}, {"expectedStatus": "running"}, {"expectedEpoch": 1}):
            found.append(patch(api, {"status": "failed"}, **query))
        return [(one.status_code, one.content) for one in found]

    before = stored()
    theirs = answers("bob")
    assert stored() == before
    ThreadRun.objects.all().delete()
    ThreadInterrupt.objects.all().delete()
    assert answers("bob") == theirs
    assert not [content for _, content in theirs if b"r1" in content]


def test_the_same_ids_in_two_scopes_are_two_runs(stored: Callable[[], Any]) -> None:
    bob = client("bob")
    answer = bob.post(RUNS, {**NEW, "threadId": "t2"}, format="json")
    assert (answer.status_code, answer.json()["threadId"]) == (201, "t2")
    assert run(client())["threadId"] == "t1"
    assert bob.post(f"{RUNS}claim/", {"runId": "r1"}, format="json").json() == {"driverEpoch": 1}


def test_the_scope_is_the_key_of_the_user(ann: APIClient, django_user_model: Any) -> None:
    ann.post(RUNS, NEW, format="json")
    assert ThreadRun.objects.get().scope == str(django_user_model.objects.get().pk)


def test_a_host_that_names_no_scope_is_told_so() -> None:
    class Unscoped(RunStoreViewSet):
        def get_scope(self) -> None:
            return None

    view = Unscoped.as_view({"get": "active"})
    request = APIRequestFactory().get(
        "/", {"threadId": "t1"}, headers={"Authorization": f"Token {token_of('ann')}"}
    )
    with pytest.raises(ImproperlyConfigured, match=r"Unscoped\.get_scope\(\) gave nothing"):
        view(request)


@pytest.mark.parametrize("scope", ["x" * 300, "\xa0", "a\0"])
def test_a_scope_that_a_request_brought_and_no_key_holds_is_a_400(scope: str) -> None:
    class Brought(RunStoreViewSet):
        def get_scope(self) -> str:
            return scope

    view = Brought.as_view({"get": "active"})
    request = APIRequestFactory().get(
        "/", {"threadId": "t1"}, headers={"Authorization": f"Token {token_of('ann')}"}
    )
    response = view(request)
    assert response.status_code == 400
    assert list(response.data) == ["scope"]


@modify_settings(INSTALLED_APPS={"remove": "rest_framework.authtoken"})
def test_a_host_without_tokens_is_told_what_to_do() -> None:
    for view in (RunStoreViewSet, InterruptStoreViewSet):
        with pytest.raises(ImproperlyConfigured, match=r"add 'rest_framework\.authtoken' to"):
            view.as_view({"get": "list"})

    class OfSessions(RunStoreViewSet):
        authentication_classes = [SessionAuthentication]

    assert OfSessions.as_view({"get": "list"})


# What it answers


def test_a_new_run_is_created_and_one_that_is_there_is_returned(ann: APIClient) -> None:
    for status in (201, 200):
        answer = ann.post(RUNS, NEW, format="json")
        assert (answer.status_code, answer.json()) == (status, RECORD)
    other = {**NEW, "threadId": "t2", "startedAt": 5, "status": "failed", "name": "n"}
    assert ann.post(RUNS, other, format="json").json() == RECORD


def test_null_is_absent_in_a_new_run(ann: APIClient) -> None:
    optional = ("status", "parentRunId", "subagentRunId", "name", "traceId")
    answer = ann.post(RUNS, {**NEW, **dict.fromkeys(optional)}, format="json")
    assert answer.json() == RECORD


def test_the_trace_is_stored_and_no_part_of_the_record(ann: APIClient) -> None:
    assert ann.post(RUNS, {**NEW, "traceId": "0af7"}, format="json").json() == RECORD
    assert ThreadRun.objects.get().trace_id == "0af7"


def test_what_is_not_there_is_null_and_no_404(ann: APIClient) -> None:
    for url in (READS[2], READS[3], READS[8]):
        answer = ann.get(url)
        assert (answer.status_code, answer.content) == (200, b"null")
    assert ann.get(READS[0]).json() == ann.get(READS[6]).json() == []


def test_ids_may_hold_whatever_an_address_gives_a_meaning(ann: APIClient) -> None:
    for one in ("a/b", "..", "a?b", "a#b", "a%2Fb", "a+b", "a b", "é\U0001f600", "&x=1", "\t"):
        if one.strip():
            ann.post(RUNS, {**NEW, "runId": one, "threadId": one}, format="json")
            assert run(ann, one)["runId"] == one
            assert ann.get(f"{RUNS}active/", {"threadId": one}).json()["runId"] == one


def test_a_patch_answers_with_nothing(ann: APIClient, stored: Callable[[], Any]) -> None:
    for url in ("r1", "unknown"):
        answer = patch(ann, {"status": "completed", "finishedAt": 5}, url)
        assert (answer.status_code, answer.content) == (204, b"")
    assert run(ann)["status"] == "completed"
    assert run(ann, "unknown") is None


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"expectedStatus": "running"}, 204),
        ({"expectedStatus": "interrupted,running"}, 204),
        ({"expectedStatus": "interrupted"}, 409),
        ({"expectedEpoch": "1"}, 204),
        ({"expectedEpoch": "none"}, 409),
        ({"expectedEpoch": "2"}, 409),
        ({"expectedStatus": "running", "expectedEpoch": "2"}, 409),
        ({"expectedStatus": "running", "expectedEpoch": "1"}, 204),
    ],
)
def test_a_patch_is_written_where_the_run_is_as_expected(
    ann: APIClient, stored: Callable[[], Any], query: dict[str, str], status: int
) -> None:
    before = stored()
    answer = patch(ann, {"status": "completed"}, **query)
    assert answer.status_code == status
    if status == 409:
        assert answer.json()["code"] == "not_as_expected"
        assert stored() == before
    else:
        assert run(ann)["status"] == "completed"


def test_a_patch_of_an_unknown_run_with_a_condition_is_refused(ann: APIClient) -> None:
    for query in ({"expectedStatus": "running"}, {"expectedEpoch": "none"}, {"heldEpoch": "1"}):
        assert patch(ann, {"status": "completed"}, **query).status_code == 409


def test_a_refused_claim_says_why(ann: APIClient, stored: Callable[[], Any]) -> None:
    patch(ann, {"detachedSince": 50})
    before = stored()
    for body, code in [
        ({"runId": "unknown"}, "unknown"),
        ({"runId": "r1", "detachedBefore": 49}, "condition"),
        ({"runId": "r1", "silentBefore": 0}, "condition"),
        ({"runId": "r1", "expectedEpoch": None}, "superseded"),
        ({"runId": "r1", "expectedEpoch": 0}, "superseded"),
    ]:
        answer = ann.post(f"{RUNS}claim/", body, format="json")
        assert (answer.status_code, answer.json()["code"]) == (409, code), body
    assert stored() == before
    patch(ann, {"status": "failed"})
    answer = ann.post(f"{RUNS}claim/", {"runId": "r1"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "terminal")


def test_lists_are_bounded_where_it_is_asked(ann: APIClient) -> None:
    for number in range(3):
        ann.post(RUNS, {**NEW, "runId": f"r{number}"}, format="json")
        patch(ann, {"detachedSince": number}, f"r{number}")
        ann.post(f"{RUNS}claim/", {"runId": f"r{number}"}, format="json")
    for route in ("reclaimable/?now=9999&ttlMs=0", "stalled/?ttlMs=0&now=99999999999999"):
        assert len(ann.get(f"{RUNS}{route}").json()) == 3
        assert [one["runId"] for one in ann.get(f"{RUNS}{route}&limit=2").json()] == ["r0", "r1"]


def test_a_null_answer_is_an_answer(ann: APIClient, stored: Callable[[], Any]) -> None:
    url = f"{INTERRUPTS}interrupt/?interruptId=i1"
    ann.post(f"{INTERRUPTS}resolve/", {"interruptId": "i1"}, format="json")
    assert "response" not in ann.get(url).json()
    ann.post(f"{INTERRUPTS}resolve/", {"interruptId": "i1", "response": None}, format="json")
    assert ann.get(url).json()["response"] is None


def test_a_rejected_batch_names_what_it_failed_over(
    ann: APIClient, stored: Callable[[], Any]
) -> None:
    before = stored()
    for entries in ([RESOLVED, {**RESOLVED, "interruptId": "i9"}], [RESOLVED, RESOLVED]):
        answer = ann.post(f"{INTERRUPTS}commit/", {"entries": entries}, format="json")
        assert (answer.status_code, answer.json()["code"]) == (409, "batch_rejected")
        assert answer.json()["interruptIds"] == [entries[1]["interruptId"]]
    assert stored() == before


# What is refused, field by field


WRONG_TIMES = ["5", True, 1.5, 5.0, 2**53, -(2**53), 10**400, [], {}, None]
WRONG_IDS = ["", " ", "a" * 10_000, "a\0b", "\ud800", 5, True, [], {}, None]

WRONG_BODIES: list[tuple[int, Any, str]] = [
    *((0, {**NEW, "startedAt": one}, "startedAt") for one in WRONG_TIMES),
    *((0, {**NEW, "runId": one}, "runId") for one in WRONG_IDS),
    *((0, {**NEW, "threadId": one}, "threadId") for one in WRONG_IDS),
    *((0, {**NEW, name: "a" * 256}, name) for name in ("parentRunId", "subagentRunId", "name")),
    (0, {**NEW, "traceId": "a\0"}, "traceId"),
    (0, {**NEW, "status": "done"}, "status"),
    (0, {**NEW, "status": ["running"]}, "status"),
    (0, {**NEW, "run_id": "r1"}, "run_id"),
    (0, {**NEW, "scope": "1"}, "scope"),
    (0, {"runId": "r1", "threadId": "t1"}, "startedAt"),
    *((1, {"finishedAt": one}, "finishedAt") for one in WRONG_TIMES[:-1]),
    *((1, {"detachedSince": one}, "detachedSince") for one in WRONG_TIMES[:-1]),
    *((1, {"driverEpoch": one}, "driverEpoch") for one in [*WRONG_TIMES[:-1], -1]),
    *((1, {"status": one}, "status") for one in ("done", "RUNNING", "", None, 1, [])),
    *((1, {"cancelRequested": one}, "cancelRequested") for one in ("true", 1, 0, [])),
    *((1, {"usage": one}, "usage") for one in ("text", [], 5, {"a": "x" * 70_000})),
    (1, {"usage": {"a": "x" * 10_000_000}}, "usage"),
    (1, {"usage": {"promptTokens": "\0"}}, "usage.promptTokens"),
    (1, {"usage": {"promptTokens": 10**400}}, "usage.promptTokens"),
    (1, {"usage": {"promptTokens": float("nan")}}, "usage.promptTokens"),
    (1, {"usage": {"details": [1, {"a": "\udfff"}]}}, "usage.details.1.a"),
    (1, '{"usage": {"totalTokens": 1e999}}', "usage.totalTokens"),
    (1, {"error": "boom"}, "error"),
    (1, {"error": {}}, "error.message"),
    (1, {"error": {"message": 5}}, "error.message"),
    (1, {"error": {"message": "a\0b"}}, "error.message"),
    (1, {"error": {"message": "m", "code": "\ud83d"}}, "error.code"),
    (1, {"error": {"message": "m", "code": "c" * 256}}, "error.code"),
    (1, {"error": {"message": "m", "stack": "s"}}, "error.stack"),
    (1, {"sandboxKey": "k" * 2001}, "sandboxKey"),
    *((1, {name: "x"}, name) for name in ("runId", "threadId", "startedAt", "finished_at", "")),
    *((2, {"runId": one}, "runId") for one in WRONG_IDS),
    *((2, {"runId": "r1", "detachedBefore": one}, "detachedBefore") for one in WRONG_TIMES[:-1]),
    *((2, {"runId": "r1", "silentBefore": one}, "silentBefore") for one in WRONG_TIMES[:-1]),
    *((2, {"runId": "r1", "expectedEpoch": one}, "expectedEpoch") for one in (-1, "none", 2**53)),
    (2, {"runId": "r1", "leaseMs": 5}, "leaseMs"),
    *((3, {"runId": "r1", "driverEpoch": one}, "driverEpoch") for one in WRONG_TIMES),
    *((3, {"runId": "r1", "driverEpoch": 1, "now": one}, "now") for one in WRONG_TIMES[:-1]),
    (3, {"runId": "r1"}, "driverEpoch"),
    (4, {}, "runId"),
    (4, {"runId": "r1", "why": "x"}, "why"),
    *((5, {**ASKED, "requestedAt": one}, "requestedAt") for one in WRONG_TIMES),
    *((5, {**ASKED, "interruptId": one}, "interruptId") for one in WRONG_IDS),
    *((5, {**ASKED, "payload": one}, "payload") for one in (None, 5, "x", [])),
    (5, {**ASKED, "payload": {"question": "\0"}}, "payload.question"),
    (5, {**ASKED, "status": "resolved"}, "status"),
    (6, {"interruptId": "i1", "response": "\ud800"}, "response"),
    (6, {"interruptId": "i1", "response": "x" * 70_000}, "response"),
    (7, {"interruptId": "i1", "response": None}, "response"),
    *((8, {"entries": one}, "entries") for one in (None, {}, "x", 5, [RESOLVED] * 1001)),
    (8, {"entries": [5]}, "entries.0"),
    (8, {"entries": [RESOLVED, {"interruptId": "i2"}]}, "entries.1.status"),
    (8, {"entries": [{**RESOLVED, "status": "pending"}]}, "entries.0.status"),
    (8, {"entries": [{**RESOLVED, "status": ["resolved"]}]}, "entries.0.status"),
    (8, {"entries": [{**RESOLVED, "status": "cancelled"}]}, "entries.0.response"),
    (8, {"entries": [{**RESOLVED, "interrupt_id": "i1"}]}, "entries.0.interrupt_id"),
    (8, {"entries": [{"status": "cancelled"}]}, "entries.0.interruptId"),
    (8, {"entries": [{**RESOLVED, "response": "x" * 70_000}]}, "entries.0.response"),
]


def test_a_wrong_value_is_named_and_nothing_is_written(
    ann: APIClient, stored: Callable[[], Any]
) -> None:
    before = stored()
    for which, body, field in WRONG_BODIES:
        method, url, _ = WRITES[which]
        answer = send(ann, method, url, body)
        assert named(answer) == {field}, (url, str(body)[:200], answer.content)
    assert stored() == before


def test_every_field_at_fault_is_named(ann: APIClient) -> None:
    answer = send(ann, "POST", RUNS, {"threadId": "", "status": "x", "y": 1})
    assert named(answer) == {"runId", "threadId", "startedAt", "status", "y"}


DEEP = 100_000

NO_BODIES = [
    b"",
    b"null",
    b"5",
    b'"text"',
    b"[]",
    b"{",
    b"{'runId': 'r1'}",
    b'{"runId": "r1",}',
    b'{"runId": NaN',
    b"NaN",
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
    '{"runId": "r1"}'.encode("utf-16"),
    b'{"runId": "\xed\xa0\x80"}',
    b'{"runId": ' + b"1" * DEEP + b"}",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
]


def test_what_is_no_object_of_json_is_refused(ann: APIClient, stored: Callable[[], Any]) -> None:
    before = stored()
    for method, url, _ in WRITES:
        for raw in NO_BODIES:
            assert named(send(ann, method, url, raw)) == {"body"}, (url, raw[:50])
    assert stored() == before


def test_what_is_nested_too_deeply_is_named(ann: APIClient, stored: Callable[[], Any]) -> None:
    deepest = {"usage": json.loads('{"a":' * 200 + "1" + "}" * 200)}
    assert patch(ann, deepest).status_code == 204
    assert run(ann)["usage"] == deepest["usage"]
    before = stored()
    (field,) = named(patch(ann, {"usage": {"a": deepest["usage"]}}))
    assert field.startswith("usage.a.a.")
    assert stored() == before


def test_a_name_that_comes_twice_is_refused(ann: APIClient, stored: Callable[[], Any]) -> None:
    before = stored()
    assert named(patch(ann, '{"status": "failed", "status": "completed"}')) == {"status"}
    assert named(patch(ann, '{"usage": {"n": 1, "n": 1}}')) == {"n"}
    assert stored() == before


def test_a_name_at_fault_is_shown_however_strange(ann: APIClient) -> None:
    for name, shown in [("\ud800", "�"), ("a\0b", "a�b"), ("é", "é")]:
        assert named(patch(ann, {name: 1})) == {shown}
    for value in (1, [0] * 100_000 + ["\0"]):
        (long,) = named(patch(ann, {"x" * 1_000_000: value}))
        assert len(long) <= 200


WRONG_QUERIES = [
    ("?", {"threadId", "parentRunId"}),
    ("?threadId=t1&parentRunId=r0", {"threadId", "parentRunId"}),
    ("?threadId=t1&limit=5", {"limit"}),
    ("?thread=t1", {"thread"}),
    ("?threadId=t1&threadId=t1", {"threadId"}),
    ("?threadId=", {"threadId"}),
    ("?threadId=%20", {"threadId"}),
    ("?threadId=a%00", {"threadId"}),
    ("?threadId=%ff", {"threadId"}),
    ("?threadId=%ED%A0%80", {"threadId"}),
    ("?threadId=t1&%ED%A0%80=1", {"���"}),
    (f"?threadId={'a' * 10_000}", {"threadId"}),
    ("run/", {"runId"}),
    ("run/?runId=r1&expectedStatus=running", {"expectedStatus"}),
    ("active/", {"threadId"}),
    ("reclaimable/", {"now", "ttlMs"}),
    *((f"reclaimable/?ttlMs=0&now={one}", {"now"}) for one in ("", "x", "1.5", "1e3", "٣", 2**53)),
    *((f"reclaimable/?now=0&ttlMs={one}", {"ttlMs"}) for one in ("-1", "true", "9" * 5000)),
    *((f"stalled/?limit={one}", {"limit"}) for one in ("", "-1", "x", 2**53)),
    ("stalled/?ttlMs=1+", {"ttlMs"}),
]
WRONG_CONDITIONS = [
    ("expectedStatus=", {"expectedStatus"}),
    ("expectedStatus=done", {"expectedStatus"}),
    ("expectedStatus=running,", {"expectedStatus"}),
    ("expectedStatus=running&expectedStatus=failed", {"expectedStatus"}),
    *((f"expectedEpoch={one}", {"expectedEpoch"}) for one in ("", "-1", "None", "null", 2**53)),
    *((f"heldEpoch={one}", {"heldEpoch"}) for one in ("", "-1", "none", "1.0", 2**53)),
    ("heldEpoch=1&expectedEpoch=1", {"heldEpoch"}),
    ("heldEpoch=1&expectedStatus=running", {"heldEpoch"}),
    ("status=running", {"status"}),
]
WRONG_INTERRUPT_QUERIES = [
    ("", {"threadId", "runId"}),
    ("?threadId=t1&runId=r1", {"threadId", "runId"}),
    *((f"?threadId=t1&pending={one}", {"pending"}) for one in ("", "1", "True")),
    ("interrupt/?runId=r1", {"runId"}),
    ("interrupt/", {"interruptId"}),
]


def test_a_wrong_parameter_is_named(ann: APIClient, stored: Callable[[], Any]) -> None:
    for query, fields in WRONG_QUERIES:
        assert named(ann.get(f"{RUNS}{query}")) == fields, query[:100]
    for query, fields in WRONG_INTERRUPT_QUERIES:
        assert named(ann.get(f"{INTERRUPTS}{query}")) == fields, query


def test_a_wrong_condition_is_named_and_nothing_is_written(
    ann: APIClient, stored: Callable[[], Any]
) -> None:
    before = stored()
    for query, fields in WRONG_CONDITIONS:
        answer = send(ann, "PATCH", f"{RUNS}run/?runId=r1&{query}", {"status": "failed"})
        assert named(answer) == fields, query
    for method, url, body in WRITES:
        answer = send(ann, method, f"{url}{'&' if '?' in url else '?'}dry=1", body)
        assert named(answer) == {"dry"}, url
    assert stored() == before


def test_a_body_past_the_limit_is_refused_without_being_read(
    ann: APIClient, stored: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored()

    class Unread(io.BytesIO):
        def read(self, *args: Any) -> bytes:
            raise AssertionError("The body was read.")

    for method, url, _ in WRITES:
        path, _, query = url.partition("?")
        answer = ann.request(
            REQUEST_METHOD=method,
            PATH_INFO=path,
            QUERY_STRING=query,
            CONTENT_TYPE=JSON,
            CONTENT_LENGTH="20000001",
            **{"wsgi.input": Unread()},
        )
        assert answer.status_code == 413, answer.content
        assert list(answer.json()) == ["body"]
    assert stored() == before


def test_a_body_of_the_limit_is_read(ann: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = json.dumps(NEW)
    monkeypatch.setattr(strict_json, "MOST_BODY_BYTES", len(raw))
    assert send(ann, "POST", RUNS, raw).status_code == 201
    assert send(ann, "POST", RUNS, f"{raw} ").status_code == 413


def test_only_json_is_taken(ann: APIClient, stored: Callable[[], Any]) -> None:
    before = stored()
    for method, url, body in WRITES:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            assert send(ann, method, url, body, kind).status_code == 415, (url, kind)
    assert stored() == before


def test_only_json_is_given(ann: APIClient) -> None:
    for url in READS:
        assert ann.get(url)["Content-Type"] == JSON
        assert ann.get(url, headers={"accept": "text/html"}).status_code == 406
        assert ann.get(url, headers={"accept": "text/html,*/*;q=0.1"})["Content-Type"] == JSON


def test_other_methods_are_not_allowed(ann: APIClient, stored: Callable[[], Any]) -> None:
    before = stored()
    allowed = {(method, url.partition("?")[0]) for method, url, _ in WRITES}
    allowed |= {("GET", url.partition("?")[0]) for url in READS}
    for url in {url for _, url in allowed}:
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"}:
            if (method, url) not in allowed:
                assert send(ann, method, f"{url}?runId=r1", {}).status_code == 405, (method, url)
        assert ann.options(url).status_code == 200
    assert stored() == before


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.sampled_from(["r1", "running", "resolved", "i1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["message", "code", "status", "interruptId", "x\0"]), inner
        )
    ),
    max_leaves=6,
)
names = st.sampled_from(
    sorted({name for _, _, body in WRITES for name in body} | {"error", "usage", "now", "x"})
)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    write=st.sampled_from(WRITES),
    body=json_values | st.dictionaries(names, json_values, max_size=4),
    whole=st.booleans(),
)
def test_no_json_makes_a_server_error_nor_writes_what_was_refused(
    ann: APIClient, stored: Callable[[], Any], write: Any, body: Any, whole: bool
) -> None:
    method, url, right = write
    sent = {**right, **body} if whole and isinstance(body, dict) else body
    before = rows()
    answer = send(ann, method, url, sent)
    assert answer.status_code in (200, 201, 204, 400, 409), answer.content
    if answer.status_code >= 400:
        assert rows() == before
        json.loads(answer.content)


parameters = st.sampled_from(
    [
        *("runId", "threadId", "parentRunId", "interruptId", "pending", "now", "ttlMs", "limit"),
        *("expectedStatus", "expectedEpoch", "heldEpoch", "x"),
    ]
)
texts = (
    st.text(st.characters(exclude_categories=()))
    | st.integers().map(str)
    | st.sampled_from(["r1", "t1", "true", "none", "running", "running,failed", "1", "1.5", "\0"])
)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    url=st.sampled_from(READS),
    asked=st.dictionaries(parameters, texts, max_size=4),
    bare=st.booleans(),
)
def test_no_query_makes_a_server_error_nor_writes_what_was_refused(
    ann: APIClient, stored: Callable[[], Any], url: str, asked: dict[str, str], bare: bool
) -> None:
    path, _, right = url.partition("?")
    query = "&".join(
        filter(None, ["" if bare else right, urlencode(asked, errors="surrogatepass")])
    )
    before = rows()
    assert ann.get(f"{path}?{query}").status_code in (200, 400)
    assert rows() == before
    if path == f"{RUNS}run/":
        answer = send(ann, "PATCH", f"{path}?{query}", {"usage": {"n": 1}})
        assert answer.status_code in (204, 400, 409)
        assert answer.status_code == 204 or rows() == before


def test_more_parameters_than_django_reads_are_refused(ann: APIClient) -> None:
    assert ann.get(f"{READS[0]}{'&x=1' * 2000}").status_code == 400


# T7: the answer is lost


def test_a_create_whose_answer_is_lost_is_sent_again(ann: APIClient) -> None:
    first = ann.post(RUNS, NEW, format="json").json()
    patch(ann, {"usage": {"totalTokens": 3}})
    again = ann.post(RUNS, NEW, format="json")
    assert (again.status_code, again.json()) == (200, {**first, "usage": {"totalTokens": 3}})
    assert ThreadRun.objects.count() == 1


def test_a_patch_whose_answer_is_lost_is_sent_again(ann: APIClient) -> None:
    ann.post(RUNS, NEW, format="json")
    end = {"status": "completed", "finishedAt": 5, "usage": {"totalTokens": 3}}
    for _ in range(2):
        assert patch(ann, end).status_code == 204
        assert run(ann) == {**RECORD, **end}
    for _ in range(2):  # an end that may have been written is expected too
        assert patch(ann, end, expectedStatus="running,completed").status_code == 204


def test_a_delayed_retry_of_an_older_status_revives_nothing(ann: APIClient) -> None:
    ann.post(RUNS, {**NEW, "status": "interrupted"}, format="json")
    assert patch(ann, {"status": "running"}, expectedStatus="interrupted").status_code == 204
    assert patch(ann, {"status": "completed"}, expectedStatus="running").status_code == 204
    late = patch(ann, {"status": "running"}, expectedStatus="interrupted")
    assert (late.status_code, late.json()["code"]) == (409, "not_as_expected")
    assert run(ann)["status"] == "completed"


def test_two_clients_that_claim_get_two_epochs_and_the_first_ends_nothing() -> None:
    first, second = HttpRunStore("acme"), HttpRunStore("acme")
    first.create_or_resume("r1", "t1", 1)
    one, two = first.claim("r1"), second.claim("r1")
    assert (one.epoch, two.epoch) == (1, 2)
    assert one.update({"status": "completed", "finished_at": 5}) is False
    assert second.get("r1").status == "running"
    assert one.update({"usage": {"totalTokens": 3}}) is True
    assert one.touch() is False
    assert two.touch() is True
    assert two.update({"status": "failed"}) is True
    assert second.get("r1").usage == {"totalTokens": 3}


def test_the_end_of_a_superseded_driver_is_told_as_such(
    ann: APIClient, stored: Callable[[], Any]
) -> None:
    ann.post(f"{RUNS}claim/", {"runId": "r1"}, format="json")
    answer = patch(ann, {"status": "completed"}, heldEpoch=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "superseded")
    assert patch(ann, {"status": "completed"}, heldEpoch=2).status_code == 204


# How often the database is asked


CONTROL = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET )")


@pytest.mark.parametrize(
    ("count", "call"),
    [
        (1, lambda api: api.post(RUNS, {**NEW, "runId": "new"}, format="json")),
        (2, lambda api: api.post(RUNS, NEW, format="json")),
        (1, lambda api: patch(api, {"usage": {"totalTokens": 3}})),
        (1, lambda api: patch(api, {"status": "completed"})),
        (1, lambda api: patch(api, {"status": "completed"}, expectedStatus="running")),
        (1, lambda api: patch(api, {"status": "completed"}, heldEpoch=1)),
        (1, lambda api: api.get(READS[2])),
        (1, lambda api: api.get(READS[3])),
        (1, lambda api: api.get(READS[0])),
        (2, lambda api: api.post(f"{RUNS}claim/", {"runId": "r1"}, format="json")),
        (1, lambda api: send(api, *WRITES[3])),
        (1, lambda api: send(api, *WRITES[4])),
    ],
)
def test_a_request_asks_for_the_token_and_then_no_more_than_the_store(
    ann: APIClient, stored: Callable[[], Any], count: int, call: Callable[[APIClient], Any]
) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert call(ann).status_code < 300
    found = [query["sql"] for query in captured if not CONTROL.match(query["sql"])]
    assert "authtoken_token" in found[0]
    assert len(found) == 1 + count, "\n".join(found)
