"""Stores that speak to the API, as a program without a database does."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from solid_runs.printable import clean
from solid_runs.storable import DEEPEST, json_value
from solid_runs.threads.claims import Claim, Refusal
from solid_runs.threads.exceptions import BatchRejected, InvalidRecord
from solid_runs.threads.interrupts import INTERRUPT_FIELDS, InterruptRecord
from solid_runs.threads.records import FIELDS, RunRecord
from solid_runs.threads.scopes import SHARED, key_of
from solid_runs.threads.values import UNSET
from solid_runs.twins import twin

CLOCK: Final = "X-Test-Clock"
NOBODY: Final = "nobody at all"
"""The user whose scope is the shared one."""

JSON_NAMES: Final = {
    **FIELDS,
    **INTERRUPT_FIELDS,
    "trace_id": "traceId",
    "ttl_ms": "ttlMs",
    "detached_before": "detachedBefore",
    "silent_before": "silentBefore",
}
PYTHON_NAMES: Final = {
    **{json_name: name for name, json_name in JSON_NAMES.items()},
    "expectedStatus": "status",
    "expectedEpoch": "epoch",
    "heldEpoch": "epoch",
}


def token_of(scope: Any) -> str:
    """The token of the user whose scope this is."""
    user, _ = get_user_model().objects.get_or_create(username=name_of(scope))
    return Token.objects.get_or_create(user=user)[0].key


def name_of(scope: Any) -> str:
    """The name of the user: two that a database may take for one are two."""
    return key_of(scope).encode().hex() or NOBODY


def scope_of(name: str) -> Any:
    return SHARED if name == NOBODY else bytes.fromhex(name).decode()


def by_json_name(given: Mapping[str, Any]) -> dict[str, Any]:
    return {JSON_NAMES.get(name, name): value for name, value in given.items()}


def by_python_names(path: str) -> str:
    """A field as a 400 names it: ``entries.0.interruptId`` has names of ours on every level."""
    head, *below = path.split(".")
    if head == "entries":
        below = [PYTHON_NAMES.get(one, one) for one in below]
    return ".".join([PYTHON_NAMES.get(head, head), *below])


def as_json(body: Mapping[str, Any]) -> str:
    """InvalidRecord for what JSON has no word for."""
    found = next(unsayable("", body), None)
    if found:
        raise InvalidRecord(by_python_names(found), "JSON has no word for this.")
    return json.dumps(body)


def unsayable(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        members = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, member in members:
            yield from unsayable(f"{path}.{name}" if path else str(name), member)
    elif not isinstance(value, str | int | float | None):
        yield path


def text(field: str, value: Any) -> str:
    """In a query a number would be text too."""
    if not isinstance(value, str):
        raise InvalidRecord(field, "This must be text.")
    return value


def without_absent(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


class HttpStore:
    """``clock``: the clock that the server is told to use."""

    address: str

    def __init__(self, scope: Any = SHARED, *, clock: Callable[[], int] | None = None) -> None:
        self.scope = key_of(scope)
        self.clock = clock
        self.token = token_of(scope)

    def call(
        self,
        method: str,
        route: str = "",
        body: Any = None,
        *,
        expects: Collection[int] = (200, 201, 204),
        **query: Any,
    ) -> Any:
        """What a route answers; InvalidRecord for a 400."""
        asked = urlencode(by_json_name(query), errors="surrogatepass")
        address = f"{self.address}{route}{'?' if asked else ''}{asked}"
        headers = {CLOCK: str(self.clock())} if self.clock else {}
        sent = "" if body is None else as_json(body)
        client = APIClient(HTTP_AUTHORIZATION=f"Token {self.token}")  # threads share the store
        response = client.generic(
            method, address, sent, content_type="application/json", headers=headers
        )
        if response.status_code == 400:
            field, problems = next(iter(response.json().items()))
            raise InvalidRecord(by_python_names(field), problems[0])
        if response.status_code not in expects:
            raise AssertionError(f"{address} answers {response.status_code}: {response.content!r}")
        return response


class HttpRunStore(HttpStore):
    address = "/api/scoped-runs/"

    def create_or_resume(
        self,
        run_id: str,
        thread_id: str,
        started_at: int,
        status: str | None = None,
        parent_run_id: str | None = None,
        subagent_run_id: str | None = None,
        name: str | None = None,
        *,
        trace_id: str | None = None,
    ) -> RunRecord:
        optional = without_absent(
            status=status,
            parent_run_id=parent_run_id,
            subagent_run_id=subagent_run_id,
            name=name,
            trace_id=trace_id,
        )
        given = {"run_id": run_id, "thread_id": thread_id, "started_at": started_at, **optional}
        return RunRecord.from_json(self.call("POST", body=by_json_name(given)).json())

    def update(self, run_id: str, patch: Mapping[str, Any]) -> None:
        self._patch(run_id, patch)

    def update_if(
        self,
        run_id: str,
        patch: Mapping[str, Any],
        *,
        status: str | Collection[str] | None = None,
        epoch: Any = UNSET,
    ) -> bool:
        expected = {}
        if status is not None:
            expected["expectedStatus"] = status if isinstance(status, str) else ",".join(status)
        if epoch is not UNSET:
            expected["expectedEpoch"] = "none" if epoch is None else epoch
        return self._patch(run_id, patch, **expected)

    def update_as_driver(self, run_id: str, epoch: int, patch: Mapping[str, Any]) -> bool:
        return self._patch(run_id, patch, heldEpoch=epoch)

    def _patch(self, run_id: str, patch: Mapping[str, Any], **query: Any) -> bool:
        if not isinstance(patch, Mapping):
            raise InvalidRecord("patch", "This is no object.")
        response = self.call(
            "PATCH",
            "run/",
            _cleaned(by_json_name(patch)),
            run_id=text("run_id", run_id),
            expects=(204, 409),
            **query,
        )
        return response.status_code == 204

    def get(self, run_id: str) -> RunRecord | None:
        return self._record("run/", run_id=run_id)

    def find_active_run(self, thread_id: str) -> RunRecord | None:
        return self._record("active/", thread_id=thread_id)

    def _record(self, route: str, **query: Any) -> RunRecord | None:
        asked = {name: text(name, value) for name, value in query.items()}
        shown = self.call("GET", route, **asked).json()
        return None if shown is None else RunRecord.from_json(shown)

    def list_by_thread(self, thread_id: str) -> list[RunRecord]:
        return self._records(thread_id=text("thread_id", thread_id))

    def list_by_parent_run(self, parent_run_id: str) -> list[RunRecord]:
        return self._records(parent_run_id=text("parent_run_id", parent_run_id))

    def list_reclaimable(
        self, now: int, ttl_ms: int, *, limit: int | None = None
    ) -> list[RunRecord]:
        return self._records("reclaimable/", now=now, ttlMs=ttl_ms, **without_absent(limit=limit))

    def list_stalled(
        self, now: int | None = None, ttl_ms: int = 60_000, *, limit: int | None = None
    ) -> list[RunRecord]:
        return self._records("stalled/", ttlMs=ttl_ms, **without_absent(now=now, limit=limit))

    def _records(self, route: str = "", **query: Any) -> list[RunRecord]:
        return [RunRecord.from_json(one) for one in self.call("GET", route, **query).json()]

    def claim(
        self,
        run_id: str,
        detached_before: int | None = None,
        *,
        silent_before: int | None = None,
        epoch: Any = UNSET,
    ) -> Claim | Refusal:
        given = without_absent(detachedBefore=detached_before, silentBefore=silent_before)
        if epoch is not UNSET:
            given["expectedEpoch"] = epoch
        response = self.call("POST", "claim/", {"runId": run_id, **given}, expects=(200, 409))
        if response.status_code == 409:
            return Refusal(response.json()["code"])
        return Claim(self, run_id, response.json()["driverEpoch"])

    def touch(self, run_id: str, epoch: int, now: int | None = None) -> bool:
        given = {"runId": run_id, "driverEpoch": epoch, **without_absent(now=now)}
        try:
            return self.call("POST", "touch/", given).json()["held"]
        except InvalidRecord as error:
            field = "epoch" if error.field == "driver_epoch" else error.field
            raise InvalidRecord(field, error.problem) from error

    def request_cancel(self, run_id: str) -> None:
        self.call("POST", "cancel/", {"runId": run_id})

    def was_cancel_requested(self, run_id: str) -> bool:
        record = self.get(run_id)
        return record is not None and record.cancel_requested is True

    acreate_or_resume = twin(create_or_resume)
    aupdate = twin(update)
    aupdate_if = twin(update_if)
    aupdate_as_driver = twin(update_as_driver)
    aget = twin(get)
    afind_active_run = twin(find_active_run)
    alist_by_thread = twin(list_by_thread)
    alist_by_parent_run = twin(list_by_parent_run)
    alist_reclaimable = twin(list_reclaimable)
    alist_stalled = twin(list_stalled)
    aclaim = twin(claim)
    atouch = twin(touch)
    arequest_cancel = twin(request_cancel)
    awas_cancel_requested = twin(was_cancel_requested)


def _cleaned(patch: dict[str, Any]) -> dict[str, Any]:
    """The API takes no NUL, and no end is lost over what a run says of itself."""
    error, usage = patch.get("error"), patch.get("usage")
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        patch["error"] = {**error, "message": clean(error["message"])}
    if isinstance(usage, Mapping):
        patch["usage"] = json_value(usage, max_depth=DEEPEST)
    return patch


class HttpInterruptStore(HttpStore):
    address = "/api/scoped-interrupts/"

    def create(
        self,
        interrupt_id: str,
        run_id: str,
        thread_id: str,
        requested_at: int,
        payload: Mapping[str, Any],
    ) -> None:
        given = {
            "interruptId": interrupt_id,
            "runId": run_id,
            "threadId": thread_id,
            "requestedAt": requested_at,
            "payload": payload,
        }
        self.call("POST", body=given)

    def resolve(self, interrupt_id: str, response: Any = UNSET) -> None:
        answered = {} if response is UNSET else {"response": response}
        self.call("POST", "resolve/", {"interruptId": interrupt_id, **answered})

    def cancel(self, interrupt_id: str) -> None:
        self.call("POST", "cancel/", {"interruptId": interrupt_id})

    def commit_batch(self, entries: Iterable[Mapping[str, Any]]) -> None:
        sent: Any = entries
        if isinstance(entries, Iterable) and not isinstance(entries, Mapping | str):
            sent = [by_json_name(one) if isinstance(one, Mapping) else one for one in entries]
        response = self.call("POST", "commit/", {"entries": sent}, expects=(204, 409))
        if response.status_code == 409:
            told = response.json()
            raise BatchRejected(told["message"], told["interruptIds"])

    def get(self, interrupt_id: str) -> InterruptRecord | None:
        shown = self.call(
            "GET", "interrupt/", interrupt_id=text("interrupt_id", interrupt_id)
        ).json()
        return None if shown is None else InterruptRecord.from_json(shown)

    def list_by_thread(self, thread_id: str) -> list[InterruptRecord]:
        return self._listed(thread_id=thread_id)

    def list_pending(self, thread_id: str) -> list[InterruptRecord]:
        return self._listed(thread_id=thread_id, pending="true")

    def list_by_run(self, run_id: str) -> list[InterruptRecord]:
        return self._listed(run_id=run_id)

    def list_pending_by_run(self, run_id: str) -> list[InterruptRecord]:
        return self._listed(run_id=run_id, pending="true")

    def _listed(self, **query: Any) -> list[InterruptRecord]:
        asked = {name: text(name, value) for name, value in query.items()}
        return [InterruptRecord.from_json(one) for one in self.call("GET", **asked).json()]

    acreate = twin(create)
    aresolve = twin(resolve)
    acancel = twin(cancel)
    acommit_batch = twin(commit_batch)
    aget = twin(get)
    alist_by_thread = twin(list_by_thread)
    alist_pending = twin(list_pending)
    alist_by_run = twin(list_by_run)
    alist_pending_by_run = twin(list_pending_by_run)
