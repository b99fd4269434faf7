"""Reserved runs and what they asked, in every state that a person may meet in the inbox."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from example_project.agents.assistant import APPROVAL
from example_project.agents.clocks import PastClock
from example_project.agents.jobs import TRACES
from example_project.agents.models import AgentRun
from example_project.agents.simulated import Worker, put_into_past
from solid_runs.ag_ui.digests import digest
from solid_runs.ag_ui.interrupts import Interrupt
from solid_runs.ag_ui.records import RunRecord, Status
from solid_runs.ag_ui.stores.database import DatabaseStore

TRIP: Final = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "title": "Class", "enum": ["economy", "business"]},
        "bags": {"type": "integer", "title": "Bags", "minimum": 0, "maximum": 3, "default": 1},
        "limit": {"type": "number", "title": "Price limit in EUR"},
        "window": {"type": "boolean", "title": "Window seat"},
    },
    "required": ["class"],
}
APPROVED: Final = {"status": "resolved", "payload": {"approved": True}}
DENIED: Final = {"status": "resolved", "payload": {"approved": False, "reason": "over budget"}}


class Thread:
    """One conversation, told through the store at a time that is past."""

    def __init__(self, scope: Any, name: str, hours: float) -> None:
        self.scope, self.name = str(scope), name
        self.clock = PastClock(timezone.now() - timedelta(hours=hours))
        self.store = DatabaseStore(clock=lambda: self.clock.now)

    def begin(self, number: int, entries: Iterable[dict[str, Any]] = ()) -> RunRecord:
        """A run that has started. With answers, it takes them."""
        key = (self.scope, self.name, f"{self.name}-{number}")
        said, trace = digest([*key]), str(uuid.uuid5(TRACES, key[-1]))
        if entries:
            record = self.store.admit(*key, said, entries, by="maria", trace_id=trace).record
        else:
            record = self.store.reserve(*key, said, trace_id=trace).record
        self.clock.spend(400)
        return self.store.save(record.start(self.store.now(), {"step": number}))

    def ask(self, number: int, *questions: Interrupt) -> RunRecord:
        return self.interrupt(self.begin(number), *questions)

    def interrupt(self, record: RunRecord, *questions: Interrupt) -> RunRecord:
        asked = [interrupt.id for interrupt in questions]
        self.work(record, lambda run: run.finish(questions[0].message, {"waits_for": asked}))
        return self.store.save(
            record.interrupted(questions, self.store.now(), {"step": "waits for a person"})
        )

    def act(self, number: int, ending: Status, *answered: tuple[str, dict[str, Any]]) -> None:
        """A run that brings answers, acts on them, and ends."""
        self.clock.spend(90_000)
        record = self.begin(number, [{"interruptId": id, **given} for id, given in answered])
        for id, _ in answered:
            self.store.settle(self.scope, self.name, id, record.run_id)
        self.end(record, ending)

    def end(self, record: RunRecord, ending: Status, why: str = "It ended without a word") -> None:
        endings: dict[Status, Callable[[AgentRun], Any]] = {
            Status.SUCCEEDED: lambda run: run.finish("Done."),
            Status.FAILED: lambda run: run.fail(why),
            Status.CANCELLED: lambda run: run.cancel("Cancelled by the user"),
        }
        self.work(record, endings[ending])
        failure = {"message": why, "code": "agent_error"} if ending is Status.FAILED else None
        self.store.save(record.finish(ending, self.store.now(), failure))

    def work(self, record: RunRecord, end: Callable[[AgentRun], Any] | None) -> None:
        """Keep the run of the agent beside it, under the same trace."""
        run = AgentRun(
            action_name="converse",
            agent_name="Assistant",
            trace_id=str(uuid.uuid5(TRACES, record.run_id)),
            input_params={"thread": self.name, "run": record.run_id},
        )
        run.save()
        run.start()
        began, worker = self.clock.now, Worker(run, None, self.clock, random.Random(record.run_id))
        with worker.step("llm", "scripted", 6_000):
            worker.say(f"works on {self.name}")
        if end is not None:
            end(run)
        put_into_past(worker, queued=record.created_at, began=began)


def approval(id: str, tool: str, message: str, **arguments: Any) -> Interrupt:
    return Interrupt(
        id=id,
        reason="tool_call",
        message=message,
        tool_call_id=f"call-{id}",
        response_schema=APPROVAL,
        metadata={"tool": tool, "arguments": arguments},
    )


def due(interrupt: Interrupt, **after: float) -> Interrupt:
    """With a deadline so long after now."""
    return replace(interrupt, expires_at=timezone.now() + timedelta(**after))


# The conversations


def refund_waits(thread: Thread) -> None:
    asked = approval("refund-1042", "refund", "Refund 129.00 EUR to order 1042?", amount="129.00")
    thread.ask(1, due(asked, minutes=45))


def mail_waits(thread: Thread) -> None:
    asked = approval(
        "mail-supplier", "send_mail", "Send this reminder?", to="billing@example.com", invoice=77
    )
    thread.ask(1, due(asked, hours=30))


def trip_wants_facts(thread: Thread) -> None:
    asked = Interrupt(
        id="trip-facts",
        reason="input_required",
        message="How shall I book the flight to Lisbon?",
        response_schema=TRIP,
        metadata={"trip": "LIS, 3 nights"},
    )
    thread.ask(1, asked)


def two_at_once(thread: Thread) -> None:
    thread.ask(
        1,
        approval("delete-drafts", "delete_pages", "Delete 14 drafts?", pages=14),
        approval("publish-news", "publish", "Publish the news of May?", page="news/may"),
    )


def too_late(thread: Thread) -> None:
    asked = approval("hold-seat", "book_flight", "Book seat 12A?", seat="12A", price="212.40")
    thread.ask(1, due(asked, hours=-1))


def asked_again(thread: Thread) -> None:
    """Two runs side by side that both asked: the first one's question is stale."""
    first, second = thread.begin(1), thread.begin(2)
    thread.interrupt(first, approval("price-old", "set_price", "Set 19.90?", price="19.90"))
    thread.interrupt(second, approval("price-new", "set_price", "Set 21.90?", price="21.90"))


def approved(thread: Thread) -> None:
    thread.ask(1, approval("refund-980", "refund", "Refund 18.00 EUR?", amount="18.00"))
    thread.act(2, Status.SUCCEEDED, ("refund-980", APPROVED))


def denied(thread: Thread) -> None:
    thread.ask(1, approval("refund-981", "refund", "Refund 940.00 EUR?", amount="940.00"))
    thread.act(2, Status.SUCCEEDED, ("refund-981", DENIED))


def answered_in_the_inbox(thread: Thread) -> None:
    """Nobody's browser has taken the answer yet."""
    thread.ask(1, approval("refund-982", "refund", "Refund 7.50 EUR?", amount="7.50"))
    thread.clock.spend(600_000)
    thread.store.answer(thread.scope, thread.name, "refund-982", APPROVED, by="maria")


def outcome_unknown(thread: Thread) -> None:
    """The run acted on the approval and never said how that went."""
    thread.ask(1, approval("wire-55", "wire_transfer", "Pay 2,400.00 EUR?", amount="2400.00"))
    thread.act(2, Status.FAILED, ("wire-55", APPROVED))


def failed(thread: Thread) -> None:
    thread.end(thread.begin(1), Status.FAILED, "The ledger did not answer.")


def cancelled(thread: Thread) -> None:
    thread.end(thread.begin(1), Status.CANCELLED)


def gone_silent(thread: Thread) -> None:
    thread.work(thread.begin(1), None)


CONVERSATIONS: Final[dict[str, tuple[float, Callable[[Thread], None]]]] = {
    "order-981": (30, denied),
    "order-980": (29, approved),
    "wire-55": (26, outcome_unknown),
    "prices": (20, asked_again),
    "seat-12a": (9, too_late),
    "ledger": (8, failed),
    "nightly-crawl": (7, gone_silent),
    "translation": (5, cancelled),
    "order-982": (4, answered_in_the_inbox),
    "website": (3, two_at_once),
    "lisbon": (2, trip_wants_facts),
    "invoice-77": (1, mail_waits),
    "order-1042": (0.3, refund_waits),
}
"""Each thread: how many hours ago it began, and what happened there."""


def reserve_missing(scope: Any) -> int:
    """Tell the conversations that are not there; how many that was."""
    told = 0
    for name, (hours, tell) in CONVERSATIONS.items():
        thread = Thread(scope, name, hours)
        if thread.store.latest_run(thread.scope, name) is None:
            with transaction.atomic():
                tell(thread)
            told += 1
    return told
