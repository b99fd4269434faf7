"""Ending the runs of a server that stops, which Django alone does not hear of."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from solid_runs.ag_ui.endpoint.streaming import LiveRun

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

logger = logging.getLogger("solid_runs.ag_ui")


def ending_runs(application: Application) -> Application:
    """Wrap the ASGI application of a project, so that a server which stops ends its runs.

    The two lines of ``asgi.py``, after the import of this function::

        application = get_asgi_application()
        application = ending_runs(application)

    At the ``lifespan.shutdown`` of ASGI, which Django does not take part in, the runs that are
    still going on are stopped and saved as failed, and what they hold is free again. Without that a
    server which is told to stop may leave them as started, until they are found as stalled.

    It must be the outermost but for wrappers that speak lifespan; one within it that does so hears
    of the start and of the end, of the latter when the runs have ended. A server waits for open
    streams before it says that it stops: give it a limit for that, as
    ``uvicorn --timeout-graceful-shutdown`` is.
    """

    async def wrapped(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(application, scope, receive, send)
        else:
            await application(scope, receive, send)

    return wrapped


async def _live(application: Application, scope: Any, receive: Receive, send: Send) -> None:
    """Pass lifespan on to the application, or speak it in place of one that does not."""
    heard: set[str] = set()
    said: set[str] = set()

    async def hear() -> Message:
        message = await receive()
        heard.add(message["type"])
        if message["type"] == "lifespan.shutdown":
            await LiveRun.end_all()
        return message

    async def say(message: Message) -> None:
        said.add(message["type"])
        await send(message)

    try:
        await application(scope, hear, say)
    except Exception:
        if said:
            raise
        logger.debug("The application does not speak lifespan.", exc_info=True)
    if said:
        return
    if "lifespan.startup" not in heard:
        await hear()
    await say({"type": "lifespan.startup.complete"})
    if "lifespan.shutdown" not in heard:
        await hear()
    await say({"type": "lifespan.shutdown.complete"})
