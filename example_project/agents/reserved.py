"""Reserved runs and what they asked, in every state that a person may meet in the inbox."""

from __future__ import annotations

import json
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
from example_project.agents.conversations import (
    text_message,
    tool_call,
    tool_result,
    user_message,
)
from example_project.agents.jobs import TRACES
from example_project.agents.models import AgentRun, Exchange
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
        self._said: dict[str, list[dict[str, Any]]] = {}

    def begin(
        self, number: int, said: str | None = None, entries: Iterable[dict[str, Any]] = ()
    ) -> RunRecord:
        """A run that has started, on what the user said or on answers, which it takes."""
        key = (self.scope, self.name, f"{self.name}-{number}")
        digested, trace = digest([*key]), str(uuid.uuid5(TRACES, key[-1]))
        if entries:
            record = self.store.admit(*key, digested, entries, by="maria", trace_id=trace).record
        else:
            record = self.store.reserve(*key, digested, trace_id=trace).record
        self._said[record.run_id] = []
        if said is not None:
            self._keep(record, user_message(f"{record.run_id}-user", said))
        self.clock.spend(400)
        return self.store.save(record.start(self.store.now(), {"step": number}))

    def say(self, record: RunRecord, text: str) -> None:
        number = len(self._said[record.run_id])
        self._keep(record, text_message(f"{record.run_id}-{number}", text))

    def _keep(self, record: RunRecord, *messages: dict[str, Any]) -> None:
        said = self._said[record.run_id]
        said += messages
        key = {"scope": self.scope, "thread_id": self.name, "run_id": record.run_id}
        Exchange.objects.update_or_create(**key, defaults={"messages": said})

    def told(self, record: RunRecord) -> RunRecord:
        """With the number of events that these messages took: each a start, words and an end."""
        own = [message for message in self._said[record.run_id] if message["role"] != "user"]
        words = sum(len((message.get("content") or "").split()) for message in own)
        return replace(record, sequence=3 + 2 * len(own) + words)

    def ask(self, number: int, said: str, text: str, *questions: Interrupt) -> RunRecord:
        return self.interrupt(self.begin(number, said), text, *questions)

    def interrupt(self, record: RunRecord, text: str, *questions: Interrupt) -> RunRecord:
        self.say(record, text)
        for one in questions:
            if one.tool_call_id:
                arguments = json.dumps(one.metadata["arguments"])
                self._keep(record, tool_call(one.tool_call_id, one.metadata["tool"], arguments))
        asked = [interrupt.id for interrupt in questions]
        self.work(record, lambda run: run.finish(text, {"waits_for": asked}))
        return self.store.save(
            self.told(record).interrupted(
                questions, self.store.now(), {"step": "waits for a person"}
            )
        )

    def act(
        self, number: int, id: str, given: dict[str, Any], result: str, failure: str | None = None
    ) -> None:
        """A run that brings an answer, acts on it, and ends: as failed if it has a failure."""
        self.clock.spend(90_000)
        record = self.begin(number, entries=[{"interruptId": id, **given}])
        self.store.settle(self.scope, self.name, id, record.run_id)
        if failure is None:
            self._keep(record, tool_result(f"result-{id}", f"call-{id}", result))
            self.end(record, Status.SUCCEEDED, result)
        else:
            self.say(record, result)
            self.end(record, Status.FAILED, failure)

    def end(self, record: RunRecord, ending: Status, last_words: str = "") -> None:
        """``last_words``: the output of a run that succeeded, or why it failed."""
        endings: dict[Status, Callable[[AgentRun], Any]] = {
            Status.SUCCEEDED: lambda run: run.finish(last_words),
            Status.FAILED: lambda run: run.fail(last_words),
            Status.CANCELLED: lambda run: run.cancel("Cancelled by the user"),
        }
        self.work(record, endings[ending])
        failure = {"message": last_words, "code": "agent_error"}
        self.store.save(
            self.told(record).finish(
                ending, self.store.now(), failure if ending is Status.FAILED else None
            )
        )

    def work(
        self, record: RunRecord, end: Callable[[AgentRun], Any] | None, note: str | None = None
    ) -> None:
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
            worker.say(note or f"works on {self.name}")
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
    thread.ask(
        1,
        "Order 1042 came back with a cracked lens. Please refund it.",
        "The parcel is back since Tuesday and the lens is cracked. I can refund 129.00 EUR.",
        due(asked, minutes=45),
    )


def mail_waits(thread: Thread) -> None:
    asked = approval(
        "mail-supplier", "send_mail", "Send this reminder?", to="billing@example.com", invoice=77
    )
    thread.ask(
        1,
        "Remind the supplier of invoice 77.",
        "Invoice 77 is open for 34 days. I have a reminder ready.",
        due(asked, hours=30),
    )


def trip_wants_facts(thread: Thread) -> None:
    asked = Interrupt(
        id="trip-facts",
        reason="input_required",
        message="How shall I book the flight to Lisbon?",
        response_schema=TRIP,
        metadata={"trip": "LIS, 3 nights"},
    )
    thread.ask(1, "Book me a flight to Lisbon.", "Before I book I need a few facts.", asked)


def two_at_once(thread: Thread) -> None:
    thread.ask(
        1,
        "Tidy the drafts up and publish the news of May.",
        "Fourteen drafts are older than a year, and the news of May is ready.",
        approval("delete-drafts", "delete_pages", "Delete 14 drafts?", pages=14),
        approval("publish-news", "publish", "Publish the news of May?", page="news/may"),
    )


def too_late(thread: Thread) -> None:
    asked = approval("hold-seat", "book_flight", "Book seat 12A?", seat="12A", price="212.40")
    thread.ask(
        1,
        "A window seat to Vienna, if there is one.",
        "Seat 12A is free for 212.40 EUR; the airline holds it for a while.",
        due(asked, hours=-1),
    )


def asked_again(thread: Thread) -> None:
    """Two runs side by side that both asked: the first one's question is stale."""
    first = thread.begin(1, "What should the lamp cost?")
    second = thread.begin(2, "And with the new freight?")
    thread.interrupt(
        first,
        "By last month's freight it is 19.90 EUR.",
        approval("price-old", "set_price", "Set 19.90?", price="19.90"),
    )
    thread.interrupt(
        second,
        "By the new freight it is 21.90 EUR.",
        approval("price-new", "set_price", "Set 21.90?", price="21.90"),
    )


def approved(thread: Thread) -> None:
    thread.ask(
        1,
        "Refund the shipping of order 980.",
        "The shipping was 18.00 EUR.",
        approval("refund-980", "refund", "Refund 18.00 EUR?", amount="18.00"),
    )
    thread.act(2, "refund-980", APPROVED, "Refunded 18.00 EUR.")


def denied(thread: Thread) -> None:
    thread.ask(
        1,
        "The customer of order 981 wants everything back.",
        "All of order 981 is 940.00 EUR.",
        approval("refund-981", "refund", "Refund 940.00 EUR?", amount="940.00"),
    )
    thread.act(2, "refund-981", DENIED, "Denied: over budget.")


def answered_in_the_inbox(thread: Thread) -> None:
    """Nobody's browser has taken the answer yet."""
    thread.ask(
        1,
        "Order 982 was charged twice for the gift wrap.",
        "It was; one of the two is 7.50 EUR.",
        approval("refund-982", "refund", "Refund 7.50 EUR?", amount="7.50"),
    )
    thread.clock.spend(600_000)
    thread.store.answer(thread.scope, thread.name, "refund-982", APPROVED, by="maria")


def outcome_unknown(thread: Thread) -> None:
    """The run acted on the approval and never said how that went."""
    thread.ask(
        1,
        "Pay invoice 55 today.",
        "Invoice 55 is 2,400.00 EUR, by wire transfer.",
        approval("wire-55", "wire_transfer", "Pay 2,400.00 EUR?", amount="2400.00"),
    )
    thread.act(
        2, "wire-55", APPROVED, "I send it to the bank.", "The bank's answer did not arrive."
    )


def failed(thread: Thread) -> None:
    record = thread.begin(1, "How much did we refund in May?")
    thread.say(record, "I ask the ledger.")
    thread.end(record, Status.FAILED, "The ledger did not answer.")


def cancelled(thread: Thread) -> None:
    record = thread.begin(1, "Translate the manual of the Model 70.")
    thread.say(record, "4 Looking after the belt. Slacken the two M6 bolts by half a turn …")
    thread.end(record, Status.CANCELLED)


def gone_silent(thread: Thread) -> None:
    """Its process is gone. Whoever ends the AG-UI run has to end the run of the agent too."""
    record = thread.begin(1, "Crawl the help centre for the old logo.")
    thread.say(record, "17 of 412 pages so far …")
    thread.store.save(thread.told(record))
    thread.work(
        record, None, "works on nightly-crawl; its process is gone, so nobody ends this run"
    )


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
