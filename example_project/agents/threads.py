"""Conversations as a TanStack AI front end leaves them: watched, left, taken over, gone silent."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from example_project.agents.jobs import TRACES
from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.stores.database import DatabaseRunStore

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


class Conversation:
    """One thread, told through the stores at times that are past."""

    def __init__(self, scope: Any, name: str, ago: int) -> None:
        self.name = name
        self.runs = DatabaseRunStore(scope)
        self.interrupts = DatabaseInterruptStore(scope)
        self.now = self.runs.now() - ago

    def begin(self, run: str, name: str | None = None, parent: str | None = None) -> str:
        run_id = f"{self.name}-{run}"
        parent_id = None if parent is None else f"{self.name}-{parent}"
        links = {} if parent is None else {"parent_run_id": parent_id, "subagent_run_id": run_id}
        shared = TRACED.get(run_id)
        trace = None if shared is None else str(uuid.uuid5(TRACES, shared))
        self.runs.create_or_resume(run_id, self.name, self.now, name=name, trace_id=trace, **links)
        self.now += 2 * SECOND
        return run_id

    def end(self, run_id: str, status: str = "completed", tokens: int = 900, **patch: Any) -> None:
        self.now += 20 * SECOND
        usage = {
            "promptTokens": tokens,
            "completionTokens": tokens // 4,
            "totalTokens": tokens + tokens // 4,
        }
        ending = {"status": status, "finished_at": self.now, "usage": usage}
        self.runs.update(run_id, {**ending, **patch})
        self.now += MINUTE

    def leave(self, run_id: str) -> None:
        self.runs.update(run_id, {"detached_since": self.now, "sandbox_key": f"box/{self.name}"})


def answered(talk: Conversation) -> None:
    for number in (1, 2, 3):
        talk.end(talk.begin(str(number)), tokens=700 * number)


def researched(talk: Conversation) -> None:
    """A run with agents of its own, one of which failed and was started again."""
    lead = talk.begin("1", "lead")
    talk.end(talk.begin("1-search", "researcher", parent="1"), tokens=5_200)
    error = {"message": "The index of 2019 is not there.", "code": "not_found"}
    talk.end(talk.begin("1-archive", "archivist", parent="1"), "failed", error=error)
    talk.end(talk.begin("1-archive-2", "archivist", parent="1"), tokens=2_100)
    talk.end(talk.begin("1-facts", "fact checker", parent="1-search"), tokens=400)
    talk.end(lead, tokens=9_400)


def watched(talk: Conversation) -> None:
    lead = talk.begin("1", "lead")
    talk.begin("1-draft", "writer", parent="1")
    talk.end(talk.begin("1-search", "researcher", parent="1"), tokens=3_100)
    talk.runs.update(lead, {"cancel_requested": False})


def left(talk: Conversation) -> None:
    """The reader closed the page, and the agent goes on in its sandbox."""
    talk.end(talk.begin("1"))
    run_id = talk.begin("2", "coder")
    talk.runs.claim(run_id, now=talk.now)
    talk.leave(run_id)


def taken_over(talk: Conversation) -> None:
    run_id = talk.begin("1", "coder")
    talk.runs.claim(run_id, now=talk.now)
    talk.leave(run_id)
    second = talk.runs.claim(run_id, now=talk.now + MINUTE)
    talk.runs.update(run_id, {"detached_since": None})
    if second:
        talk.now += 2 * MINUTE
        second.update({"status": "completed", "finished_at": talk.now})


def gone_silent(talk: Conversation) -> None:
    """The process is gone while somebody watches: the reaper ends such a run."""
    run_id = talk.begin("1", "crawler")
    talk.runs.claim(run_id, now=talk.now)


def asked_to_stop(talk: Conversation) -> None:
    talk.runs.request_cancel(talk.begin("1", "translator"))


def waits_for_a_person(talk: Conversation) -> None:
    run_id = talk.begin("1", "bookkeeper")
    payload = {"toolName": "pay", "input": {"invoice": 77, "amount": "1,284.50"}}
    talk.interrupts.create(f"{run_id}-pay", run_id, talk.name, talk.now, payload)
    talk.runs.update(run_id, {"status": "interrupted"})


def given_up(talk: Conversation) -> None:
    run_id = talk.begin("1", "coder")
    talk.runs.request_cancel(run_id)
    talk.end(run_id, "aborted")


CONVERSATIONS: Final[dict[str, tuple[int, Callable[[Conversation], None]]]] = {
    "chat-opening-hours": (30 * HOUR, answered),
    "chat-archive-research": (26 * HOUR, researched),
    "chat-refactoring": (9 * HOUR, taken_over),
    "chat-old-logo-crawl": (7 * HOUR, gone_silent),
    "chat-manual-translation": (5 * HOUR, asked_to_stop),
    "chat-test-suite": (4 * HOUR, given_up),
    "chat-invoice-77": (3 * HOUR, waits_for_a_person),
    "chat-migration": (25 * MINUTE, left),
    "chat-newsletter": (3 * MINUTE, watched),
}
"""Each thread: how long ago it began, and what happened there."""

SCOPES: Final = {"chat-test-suite": "acme"}
"""Threads that are of another scope than the rest."""

TRACED: Final = {"chat-invoice-77-1": "invoice-77-1", "chat-old-logo-crawl-1": "nightly-crawl-1"}
"""Runs under the trace of an AG-UI run, and of the run of an agent, of the demo."""


def talk_missing(scope: Any) -> int:
    """Tell the conversations that are not there; how many that was."""
    told = 0
    for name, (ago, tell) in CONVERSATIONS.items():
        talk = Conversation(SCOPES.get(name, scope), name, ago)
        if not talk.runs.list_by_thread(name):
            tell(talk)
            told += 1
    return told
