"""What an endpoint answers, and what it refuses before any stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine
from typing import Any, Final, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase
from django.http.response import StreamingHttpResponse

from solid_runs.ag_ui.endpoint.isolation import let_go_of_connections as let_go_of_connections
from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.scopes import identifier

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
WORTH_A_THREAD: Final = 50_000
"""Bytes of a request."""

T = TypeVar("T")


class Refused(Exception):
    """A request that gets an HTTP error, before any stream."""

    def __init__(self, status: int, code: str, message: str, **facts: Any) -> None:
        self.status, self.facts = status, {"code": code, "message": message} | facts
        super().__init__(message)


def stream(content: AsyncIterable[str]) -> HttpResponseBase:
    response = StreamingHttpResponse(content, content_type=EVENT_STREAM)
    response.headers["Cache-Control"] = "no-cache, no-transform"
    response.headers["X-Accel-Buffering"] = "no"  # or nginx holds frames back
    return response


async def aside(size: int, work: Callable[..., T], *args: Any) -> T:
    """Do what takes a while for so many bytes where it holds up nobody else's stream."""
    if size < WORTH_A_THREAD:
        return work(*args)
    return await sync_to_async(work, thread_sensitive=False)(*args)


async def unless_gone(answer: Coroutine[Any, Any, HttpResponseBase]) -> HttpResponseBase:
    """Await what may reserve a run; a client that leaves meanwhile does not break it off.

    The run would be reserved and never begin. What would have been read is closed instead.
    """
    answering = asyncio.ensure_future(answer)
    try:
        return await asyncio.shield(answering)
    except asyncio.CancelledError:
        answering.add_done_callback(_close)
        raise


def _close(answered: asyncio.Future[HttpResponseBase]) -> None:
    if not answered.cancelled() and answered.exception() is None:
        answered.result().close()


def shown(record: RunRecord) -> dict[str, Any]:
    hidden = ("scope", "digest")
    return {name: value for name, value in record.to_dict().items() if name not in hidden}


def answer_shown(interrupt: Interrupt) -> dict[str, Any]:
    """What became of a question: its answer, and whether a run has taken it and acted on it."""
    decision = interrupt.decision
    return {
        "interruptId": interrupt.id,
        "status": decision and decision.status,
        "payload": decision and decision.payload,
        "state": interrupt.state.value,
        "redeemedBy": interrupt.redeemed_by,
    }


def readable(thread_id: str, run_id: str | None) -> None:
    try:
        identifier("The thread", thread_id)
        if run_id is not None:
            identifier("The run", run_id)
    except ConfigurationError as error:
        raise Refused(400, "malformed", str(error)) from error


def not_found() -> Refused:
    return Refused(404, "not_found", "There is no such run.")


def refuse_without_asgi(request: HttpRequest) -> None:
    """A WSGI server ends the event loop with the view: nothing would run the agent."""
    if not isinstance(request, ASGIRequest):
        raise ImproperlyConfigured(
            "An AG-UI stream needs an ASGI server, such as uvicorn or daphne; this request came "
            "through WSGI. Serve the project's asgi.py."
        )
