"""The AG-UI endpoint of the example, and the page that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.generic import TemplateView

from example_project.agents.assistant import answer, phrases, said
from example_project.agents.journal import Journal
from example_project.agents.tokens import user_of
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

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        async with Journal(turn, said(turn)) as journal, aclosing(answer(turn, journal)) as events:
            async for event in events:
                journal.note(event)
                yield event


class AssistantPage(LoginRequiredMixin, TemplateView):
    template_name = "agents/assistant.html"
    extra_context = {"phrases": phrases()}
