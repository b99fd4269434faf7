"""The AG-UI endpoint of the example, and the page that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.generic import TemplateView

from example_project.agents.assistant import answer, phrases, said
from example_project.agents.conversations import Transcript, conversation
from example_project.agents.journal import Journal
from example_project.agents.tokens import user_of
from solid_runs.ag_ui.records import RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.views import AgentView, Turn


class Assistant(AgentView):
    """Everybody sees the runs that they began themselves."""

    store = DatabaseStore()

    async def scope_of(self, request: HttpRequest) -> Any:
        user = await user_of(request)
        if user is None:
            raise PermissionDenied("Log in, or send a token.")
        return user.pk

    async def actor_of(self, request: HttpRequest) -> str | None:
        user = await user_of(request)
        return None if user is None else user.get_username()

    async def messages_of(self, request: HttpRequest, record: RunRecord) -> Sequence[Any] | None:
        return await conversation(record.scope, record.thread_id)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            journal = await stack.enter_async_context(Journal(turn, said(turn)))
            transcript = await stack.enter_async_context(Transcript(turn))
            events = await stack.enter_async_context(aclosing(answer(turn, journal)))
            async for event in events:
                journal.note(event)
                await transcript.note(event)
                yield event


class AssistantPage(LoginRequiredMixin, TemplateView):
    template_name = "agents/assistant.html"
    extra_context = {"phrases": phrases()}


ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">
<rect width="16" height="16" rx="4" fill="#1769aa"/>
<path d="M5 4l6 4-6 4z" fill="#fff"/></svg>"""


def favicon(request: HttpRequest) -> HttpResponse:
    """What every browser asks for, and what would be a line of 404 in the terminal."""
    headers = {"Cache-Control": "max-age=86400"}
    return HttpResponse(ICON, content_type="image/svg+xml", headers=headers)
