"""The AG-UI endpoint of a host, which writes one async generator of events."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, Literal, cast
from uuid import uuid4

from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import URLPattern, path
from django.views.generic import View

from solid_runs.ag_ui import digests
from solid_runs.ag_ui.endpoint import frames, inputs, replaying
from solid_runs.ag_ui.endpoint.csrf import csrf_failure, is_ambient
from solid_runs.ag_ui.endpoint.responses import (
    EVENT_STREAM,
    JSON,
    Refused,
    answer_shown,
    aside,
    let_go_of_connections,
    not_found,
    readable,
    refuse_without_asgi,
    shown,
    stream,
    unless_gone,
)
from solid_runs.ag_ui.endpoint.streaming import GRACE, LiveRun
from solid_runs.ag_ui.endpoint.turns import AgentError, Turn
from solid_runs.ag_ui.exceptions import (
    ConfigurationError,
    InterruptsPendingError,
    ResumeRejectedError,
    RunConflictError,
    ThreadBusyError,
)
from solid_runs.ag_ui.records import Admission, RunKey, RunRecord
from solid_runs.ag_ui.scopes import scope_key
from solid_runs.ag_ui.stores.base import BaseStore, Policy
from solid_runs.conf import setting

__all__ = ["AgentError", "AgentView", "Turn"]

REFUSALS: Final = (
    *(RunConflictError, ThreadBusyError, ResumeRejectedError, InterruptsPendingError),
)
"""What is told in the stream: the request was well-formed, and AG-UI has codes for it."""
SETTINGS: Final = {
    "heartbeat": "AG_UI_HEARTBEAT",
    "keep_alive": "AG_UI_KEEP_ALIVE",
    "attach_limit": "AG_UI_ATTACH_LIMIT",
    "body_bytes": "AG_UI_BODY_BYTES",
    "offer": "AG_UI_OFFER",
    "interrupt_ttl": "AG_UI_INTERRUPT_TTL",
}
"""Attributes of a view that are None unless a host states them, and the settings they follow."""


logger = logging.getLogger("solid_runs.ag_ui")


class AgentView(View):
    """An endpoint that runs an agent for AG-UI clients. It needs an ASGI server.

    A host states ``store``, says in scope_of() whose runs a request may see, and writes run().
    ``urls()`` gives the patterns. What is None follows the setting of SETTINGS.

    ``policy``: whether a run may begin beside another of its thread; that of the store if None.
    ``on_disconnect``: what becomes of a run whose client goes away: it goes on, or fails with the
    code ``client_gone``. ``stop_grace``: seconds that an agent has to stop when it is cancelled.
    The times of the other attributes are seconds too.
    """

    store: ClassVar[BaseStore]
    policy: Policy | None = None
    on_disconnect: Literal["continue", "stop"] = "continue"
    stop_grace: float = GRACE
    heartbeat: float | None = None
    keep_alive: float | None = None
    attach_limit: float | None = None
    body_bytes: int | None = None
    offer: bool | None = None
    interrupt_ttl: timedelta | float | None = None

    # What a host writes

    async def scope_of(self, request: HttpRequest) -> Any:
        """Whose runs the request may start, see and cancel: a str, an int or a UUID.

        Raise PermissionDenied for nobody's, which None means too. Another scope's runs do not
        exist for the request.
        """
        raise PermissionDenied(f"{type(self).__name__} does not say whose runs these are.")

    def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Do the work: an async generator of AG-UI events, and of interrupts.

        The run succeeds when it ends, and is interrupted when it has yielded an Interrupt, ours or
        that of ``ag_ui``; what is open then is closed for it. It fails when it raises: an
        AgentError with its message, anything else with one that says nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} has no agent: write run().")

    async def actor_of(self, request: HttpRequest) -> str | None:
        """Who answers and cancels, as it is recorded; by default the name of the user."""
        user = await request.auser() if hasattr(request, "auser") else None
        return user.get_username() if user is not None and user.is_authenticated else None

    def digest_input(self, body: Mapping[str, Any]) -> Any:
        """What of a request makes it that request when its run id is sent again: a JSON value."""
        return digests.digest_input(body)

    def trace_id_of(self, request: HttpRequest | None, input: frames.RunAgentInput) -> str | None:
        """What the run's rows are found by in other tables; a new UUID by default.

        ``request``: None in run_without_client().
        """
        return str(uuid4())

    async def messages_of(self, request: HttpRequest, record: RunRecord) -> Sequence[Any] | None:
        """The whole conversation for a client that attaches, or None, which leaves the client's.

        No text is kept by the store: a host that keeps its own gives it to a reloaded page here,
        and once more when a run ends for which the page waited. Messages that are left out are
        removed from the client.
        """
        return None

    def needs_csrf(self, request: HttpRequest) -> bool:
        """Whether the request must bear a CSRF token: when its credentials are a browser's own.

        These are cookies, REMOTE_USER and HTTP Basic; a request with a token in the Authorization
        header is exempt. Say False only where scope_of() reads none of them.
        """
        return is_ambient(request)

    # Without a client

    @classmethod
    async def run_without_client(
        cls, scope: Any, body: Mapping[str, Any], *, by: str | None = None
    ) -> RunRecord:
        """Run the agent for nobody's browser, to its end, and return how it ended.

        For a task queue, such as when an inbox has answered. ``body``: what a client would send,
        with ``threadId``, ``runId``, ``messages`` and so on. A run id that is known runs nothing
        and gives the run as it is, so a task may come twice. MalformedInput names a field that is
        wrong; the other errors are those of admit(), with InterruptsPendingError for a thread that
        still waits for an answer.
        """
        view, sent = cls(), inputs.read_object(dict(body))
        trace_id = view.trace_id_of(None, sent.input)
        admission = await view._reserve(scope_key(scope), sent, trace_id, by=by, offer=False)
        if admission.new:
            turn = Turn(cls.store, admission.record, sent.input, None, admission.answers, trace_id)
            async for _ in view._live(turn).begin():
                pass
        return await cls.store.afind(*RunKey.of(admission.record)) or admission.record

    # Routes

    @classmethod
    def urls(cls, name: str = "ag-ui", **initkwargs: Any) -> list[URLPattern]:
        """POST a run to the root; below it are its threads, their runs, and cancel of each.

        ``name``: begins the names of the patterns: ``-run``, ``-thread``, ``-attach``, ``-cancel``.
        """
        write = cls.as_view(http_method_names=["post", "options"], **initkwargs)
        read = cls.as_view(http_method_names=["get", "head", "options"], **initkwargs)
        return [
            path("", write, name=f"{name}-run"),
            path("<str:thread_id>", read, name=f"{name}-thread"),
            path("<str:thread_id>/<str:run_id>", read, name=f"{name}-attach"),
            path("<str:thread_id>/<str:run_id>/cancel", write, name=f"{name}-cancel"),
        ]

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        view: Any = super().as_view(**initkwargs)
        for alias in connections:  # what is announced has to be committed
            view = transaction.non_atomic_requests(using=alias)(view)
        view.csrf_exempt = True  # judged by needs_csrf()
        view.login_required = False  # judged by scope_of()
        return cast(Callable[..., Any], view)

    async def dispatch(  # type: ignore[override]  # all of it is async
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            response: HttpResponseBase = await super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        except Refused as refusal:
            response = JsonResponse(refusal.facts, status=refusal.status)
        except PermissionDenied as error:
            logger.warning("Forbidden: %r. %s", request.path, error)
            told = {"code": "forbidden", "message": "You may not do this."}
            response = JsonResponse(told, status=403)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    async def post(
        self, request: HttpRequest, thread_id: str | None = None, run_id: str | None = None
    ) -> HttpResponseBase:
        if thread_id is not None and run_id is not None:
            return await self._cancel(request, thread_id, run_id)
        raw = self._read_body(request)
        await self._check_csrf(request)
        scope = await self._scope(request)  # a stranger's request is not worth reading
        try:
            sent = await aside(len(raw), inputs.read_request, raw)
        except frames.MalformedInput as error:
            raise Refused(400, "malformed", str(error), field=error.field) from error
        refuse_without_asgi(request)
        return await unless_gone(self._answer(request, scope, sent))

    async def _answer(
        self, request: HttpRequest, scope: str, sent: inputs.Request
    ) -> HttpResponseBase:
        trace_id = self.trace_id_of(request, sent.input)
        try:
            admission = await self._reserve(
                *(scope, sent, trace_id),
                by=await self.actor_of(request),
                offer=self._option("offer"),
            )
        except REFUSALS as error:
            return stream(replaying.refused(str(error), error.code))
        except ConfigurationError as error:
            raise Refused(400, "malformed", str(error)) from error
        record = admission.record
        if admission.offered:
            messages = await self.messages_of(request, record)
            return stream(replaying.offered(record, sent.input.run_id, messages))
        if admission.attached:
            return await self._attach(request, record)
        await let_go_of_connections()
        turn = Turn(self.store, record, sent.input, request, admission.answers, trace_id)
        return stream(self._live(turn).begin())

    async def get(
        self, request: HttpRequest, thread_id: str, run_id: str | None = None
    ) -> HttpResponseBase:
        scope = await self._scope(request)
        readable(thread_id, run_id)
        if run_id is None:
            record = await self.store.alatest_run(scope, thread_id)
        else:
            record = await self.store.afind(scope, thread_id, run_id)
        if record is None:
            raise not_found()
        if request.get_preferred_type([JSON, EVENT_STREAM]) == EVENT_STREAM:
            return await self._attach(request, record, by_thread=run_id is None)
        told: dict[str, Any] = {"run": shown(record)}
        if run_id is None:
            asking = await self.store.alatest_interrupted(scope, thread_id)
            open_ones = asking.answerable_interrupts(self.store.now()) if asking else ()
            told["interrupts"] = [one.to_dict() for one in open_ones]
            told["answers"] = [
                answer_shown(one) for one in (asking.interrupts if asking else ()) if one.decided
            ]
        response = JsonResponse(told)
        response.headers["Vary"] = "Accept"
        return response

    async def _cancel(self, request: HttpRequest, thread_id: str, run_id: str) -> HttpResponseBase:
        await self._check_csrf(request)
        scope = await self._scope(request)
        readable(thread_id, run_id)
        asked = await self.store.arequest_cancel(
            scope, thread_id, run_id, by=await self.actor_of(request)
        )
        if asked is None:
            raise not_found()
        LiveRun.nudge(self.store, RunKey.of(asked.record))
        return JsonResponse({"run": shown(asked.record)}, status=200 if asked.ended else 202)

    # Steps of these

    async def _reserve(
        self, scope: str, sent: inputs.Request, trace_id: str | None, *, by: str | None, offer: bool
    ) -> Admission:
        return await self.store.aadmit(
            scope,
            sent.input.thread_id,
            sent.input.run_id,
            await aside(sent.size, lambda: digests.digest(self.digest_input(sent.body))),
            sent.body.get("resume") or (),
            by=by,
            offer=offer,
            policy=self.policy,
            trace_id=trace_id,
            parent_run_id=sent.input.parent_run_id,
        )

    def _live(self, turn: Turn) -> LiveRun:
        ttl = self._option("interrupt_ttl")
        return LiveRun(
            self.run,
            turn,
            self.store,
            heartbeat=self._option("heartbeat"),
            keep_alive=self._option("keep_alive"),
            stop_when_left=self.on_disconnect == "stop",
            interrupt_ttl=ttl if ttl is None or isinstance(ttl, timedelta) else timedelta(0, ttl),
            grace=self.stop_grace,
        )

    async def _attach(
        self, request: HttpRequest, record: RunRecord, by_thread: bool = False
    ) -> HttpResponseBase:
        refuse_without_asgi(request)
        await let_go_of_connections()
        return stream(
            replaying.attached(
                self.store,
                record,
                partial(self.messages_of, request),
                limit=self._option("attach_limit"),
                heartbeat=self._option("heartbeat"),
                keep_alive=self._option("keep_alive"),
                by_thread=by_thread,
            )
        )

    def _option(self, name: str) -> Any:
        stated = getattr(self, name)
        return setting(SETTINGS[name]) if stated is None else stated

    def _read_body(self, request: HttpRequest) -> bytes:
        charset = (request.content_params or {}).get("charset", "utf-8").lower()
        if request.content_type != JSON or charset not in ("utf-8", "utf8"):
            raise Refused(415, "unsupported_media_type", f"The body of a run is {JSON} in UTF-8.")
        limit = self._option("body_bytes")
        raw: bytes = request.read(limit + 1)  # a body need not say how long it is
        if len(raw) > limit:
            raise Refused(413, "too_large", f"The body takes more than {limit:,} bytes.")
        return raw

    async def _check_csrf(self, request: HttpRequest) -> None:
        if self.needs_csrf(request) and (why := await csrf_failure(request)):
            raise Refused(403, "csrf", f"CSRF verification failed: {why}")

    async def _scope(self, request: HttpRequest) -> str:
        scope = await self.scope_of(request)
        if scope is None:
            raise PermissionDenied("These are nobody's runs.")
        try:
            return scope_key(scope)
        except ConfigurationError as error:
            if isinstance(scope, str):  # such as a claim of the client's
                raise PermissionDenied(str(error)) from error
            raise
