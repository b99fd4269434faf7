"""A scripted agent for AG-UI: what the user says chooses what it does.

    hello                   says what it can do
    refund 12.50            calls a tool, and asks before it does
    refund 12.50 within 30  the same, and wants the answer within so many seconds
    ask twice               calls two tools at once, and asks about both
    survey                  asks for a few words, a number and choices
    count to 100            takes long, so that it can be cancelled
    fail                    fails, and says why
    crash                   fails with an exception, of which the client is told nothing

Its state is ``{"refunds": [{"amount", "tool_call_id"}], "counted": number}``. A refund is a row of
Refund, made when its approval is settled and so at most once.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

from ag_ui.core import (
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from django.utils import timezone

from example_project.agents.journal import Journal
from example_project.agents.models import Refund
from solid_runs.ag_ui.endpoint.turns import AgentError, Turn
from solid_runs.ag_ui.interrupts import Interrupt, Redemption

Events = AsyncIterator[Any]

WORD_SECONDS: Final = 0.02
NUMBER_SECONDS: Final = 0.1
MOST_NUMBERS: Final = 1_000

APPROVAL: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
SURVEY: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "maxLength": 80},
        "nights": {"type": "integer", "title": "Nights", "minimum": 1, "maximum": 30, "default": 2},
        "room": {"type": "string", "title": "Room", "enum": ["single", "double", "suite"]},
        "breakfast": {"type": "boolean", "title": "Breakfast"},
    },
    "required": ["name", "room"],
}


async def answer(turn: Turn, journal: Journal) -> Events:
    """Act on what people have answered, then do what the last message says."""
    text = said(turn)
    yield StateSnapshotEvent(snapshot=await state_of(turn))
    if turn.answers:
        async for event in act_on_answers(turn, journal):
            yield event
    if text is not None or not turn.answers:
        async with journal.step("llm", "scripted") as outcome:
            script, found = understand(text or "")
            outcome["detail"] = script.__name__
        async for event in script(turn, journal, found):
            yield event
    turn.result = {"refunded": str(sum([one.amount async for one in refunds_of(turn)], Decimal(0)))}


def said(turn: Turn) -> str | None:
    """The message that the user has just sent: the last of the conversation, if it is theirs."""
    last = turn.input.messages[-1] if turn.input.messages else None
    if last is None or last.role != "user":
        return None
    return last.content if isinstance(last.content, str) else ""


def refunds_of(turn: Turn) -> Any:
    return Refund.objects.filter(scope=turn.scope, thread_id=turn.thread_id).order_by("pk")


async def state_of(turn: Turn) -> dict[str, Any]:
    """What is true by this project's own tables, whatever the client sent."""
    return {"refunds": [shown(one) async for one in refunds_of(turn)], "counted": 0}


def shown(refund: Refund) -> dict[str, str]:
    return {"amount": str(refund.amount), "tool_call_id": refund.tool_call_id}


# What it does


async def say(text: str) -> Events:
    message_id = uuid4().hex
    yield TextMessageStartEvent(message_id=message_id, role="assistant")
    for word in re.findall(r"\s*\S+\s*", text):
        yield TextMessageContentEvent(message_id=message_id, delta=word)
        await asyncio.sleep(WORD_SECONDS)
    yield TextMessageEndEvent(message_id=message_id)


async def greet(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    async for event in say(f"Try one of these: {', '.join(phrase for phrase, _ in phrases())}."):
        yield event


async def ask_refund(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    amount, seconds = found["amount"], found["seconds"]
    async for event in say(f"I can refund {amount} EUR. May I?"):
        yield event
    async for event in ask(amount, timedelta(seconds=int(seconds)) if seconds else None):
        yield event


async def ask_twice(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    async for event in say("Two refunds are due. May I?"):
        yield event
    for amount in ("10.00", "20.00"):
        async for event in ask(amount, None):
            yield event


async def ask(amount: str, within: timedelta | None) -> Events:
    """Call the tool, and ask before it runs."""
    tool_call_id, arguments = uuid4().hex, {"amount": amount, "currency": "EUR"}
    yield ToolCallStartEvent(tool_call_id=tool_call_id, tool_call_name="refund")
    yield ToolCallArgsEvent(tool_call_id=tool_call_id, delta=json.dumps(arguments))
    yield ToolCallEndEvent(tool_call_id=tool_call_id)
    yield Interrupt(
        id=uuid4().hex,
        reason="tool_call",
        message=f"Refund {amount} EUR?",
        tool_call_id=tool_call_id,
        response_schema=APPROVAL,
        expires_at=None if within is None else timezone.now() + within,
        metadata={"tool": "refund", "arguments": arguments},
    )


async def survey(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    async for event in say("I need a few facts for the booking."):
        yield event
    yield Interrupt(
        id=uuid4().hex,
        reason="input_required",
        message="Which room shall I book?",
        response_schema=SURVEY,
        metadata={"form": "booking"},
    )


async def count(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    most, message_id = min(int(found["most"]), MOST_NUMBERS), uuid4().hex
    async with journal.step("tool", "count") as outcome:
        yield TextMessageStartEvent(message_id=message_id, role="assistant")
        for number in range(1, most + 1):
            yield TextMessageContentEvent(message_id=message_id, delta=f"{number} ")
            yield patch("replace", "/counted", number)
            outcome["detail"] = f"counted to {number}"
            await asyncio.sleep(NUMBER_SECONDS)
        yield TextMessageEndEvent(message_id=message_id)


async def fail(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    async for event in say("Let me look."):
        yield event
    raise AgentError("The booking system is closed on Sundays.", code="closed")


async def crash(turn: Turn, journal: Journal, found: re.Match[str]) -> Events:
    async for event in say("Let me look."):
        yield event
    raise RuntimeError("no connection to ledger.internal as user payroll")


def patch(op: str, path: str, value: Any) -> StateDeltaEvent:
    return StateDeltaEvent(delta=[{"op": op, "path": path, "value": value}])


# What it does with answers


async def act_on_answers(turn: Turn, journal: Journal) -> Events:
    for tool_call_id in turn.abandoned:
        yield tool_result(tool_call_id, "Cancelled: nobody approved this.")
    for tool_call_id in turn.unknown:
        made = await refunds_of(turn).filter(tool_call_id=tool_call_id).aexists()
        yield tool_result(tool_call_id, "Refunded before." if made else "The outcome is unknown.")
    closing: list[str] = []
    if any(given.interrupt.cancelled for given in turn.answers):
        closing.append("Without an answer I leave that.")
    for given in turn.answers:
        if given.holds and await turn.settle(given.interrupt.id):
            async for event in act_on(turn, journal, given):
                yield event
            closing += closing_words(given.interrupt)
    if closing:
        async for event in say(" ".join(dict.fromkeys(closing))):
            yield event


def answers_to(interrupt: Interrupt) -> dict[str, Any]:
    payload = interrupt.decision.payload if interrupt.decision else None
    return payload if isinstance(payload, dict) else {}


def closing_words(interrupt: Interrupt) -> list[str]:
    if interrupt.tool_call_id is None:
        return []
    if answers_to(interrupt).get("approved") is not True:
        return ["You said no, so I have left that alone."]
    if is_refund(interrupt):
        return ["The refund is made."]
    return ["That is done, as far as a demo does it: its refunds are its only tool."]


def is_refund(interrupt: Interrupt) -> bool:
    """The prepared threads of the demo ask about other tools too, which it does not have."""
    return bool(interrupt.metadata and interrupt.metadata.get("tool") == "refund")


def booked(answers: dict[str, Any]) -> str:
    if "room" in answers:
        return f"I book a {answers['room']} for {answers.get('name')}."
    words = {True: "yes", False: "no"}
    given = [
        f"{name} {words[value] if isinstance(value, bool) else value}"
        for name, value in answers.items()
    ]
    return f"I book that: {', '.join(given)}."


async def act_on(turn: Turn, journal: Journal, given: Redemption) -> Events:
    interrupt, answers = given.interrupt, answers_to(given.interrupt)
    if interrupt.tool_call_id is None:
        async with journal.step("tool", "book") as outcome:
            outcome["detail"] = json.dumps(answers)
        async for event in say(booked(answers)):
            yield event
    elif answers.get("approved") is True and not is_refund(interrupt):
        yield tool_result(interrupt.tool_call_id, "Done.")
    elif answers.get("approved") is True:
        async with journal.step("tool", "refund") as outcome:
            refund = await make_refund(turn, interrupt)
            outcome["detail"] = f"refunded {refund.amount} EUR"
        yield tool_result(interrupt.tool_call_id, f"Refunded {refund.amount} EUR.")
        yield patch("add", "/refunds/-", shown(refund))
    else:
        reason = answers.get("reason") or "no reason given"
        await journal.run.aadd_log(f"denied: {reason}")
        yield tool_result(interrupt.tool_call_id, f"Denied: {reason}.")


async def make_refund(turn: Turn, interrupt: Interrupt) -> Refund:
    """The tool. What it refunds is what was asked about, not what a client says it was."""
    return await Refund.objects.acreate(
        scope=turn.scope,
        thread_id=turn.thread_id,
        trace_id=turn.trace_id,
        tool_call_id=interrupt.tool_call_id,
        amount=Decimal(interrupt.metadata["arguments"]["amount"]),
    )


def tool_result(tool_call_id: str, content: str) -> ToolCallResultEvent:
    return ToolCallResultEvent(
        message_id=f"result-{tool_call_id}", tool_call_id=tool_call_id, content=content
    )


# What it understands

Script = Callable[[Turn, Journal, re.Match[str]], Events]

SCRIPTS: Final[dict[str, Script]] = {
    r"refund (?P<amount>\d{1,6}(\.\d\d?)?)( within (?P<seconds>\d{1,6}))?": ask_refund,
    r"ask twice": ask_twice,
    r"survey": survey,
    r"count to (?P<most>\d{1,6})": count,
    r"fail": fail,
    r"crash": crash,
    r".*": greet,
}


def understand(text: str) -> tuple[Script, re.Match[str]]:
    for pattern, script in SCRIPTS.items():
        if found := re.fullmatch(pattern, text.strip().lower(), re.DOTALL):
            return script, found
    raise AssertionError("The last pattern matches everything.")


def phrases() -> list[tuple[str, str]]:
    """What can be said and what it does, as the docstring above has it."""
    return re.findall(r"^    (\S.*?)  +(\S.*)$", __doc__ or "", re.MULTILINE)
