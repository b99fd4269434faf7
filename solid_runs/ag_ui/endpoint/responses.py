"""What an endpoint answers, and what it refuses before any stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Coroutine
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase
from django.http.response import StreamingHttpResponse

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.scopes import identifier

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"


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


async def let_go_of_connections() -> None:
    """Those of the request's thread: a stream may last longer than a connection should."""
    await sync_to_async(close_old_connections)()


def shown(record: RunRecord) -> dict[str, Any]:
    hidden = ("scope", "digest")
    return {name: value for name, value in record.to_dict().items() if name not in hidden}


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
