"""What the simulated agents are asked to do: data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from example_project.agents import tools


class Call(NamedTuple):
    """A tool call: the name that the log shows, the function, and about how long it takes."""

    tool: str
    function: Callable[[], Any]
    ms: int


class Case(NamedTuple):
    document: str
    prompt: str
    output: str


class Task(NamedTuple):
    agent: str
    action: str
    provider: str
    model: str
    instructions: str
    calls: tuple[Call, ...]
    cases: tuple[Case, ...]
    thinking_ms: int


AGENTS: Final = [
    "Report summariser",
    "Translator",
    "Invoice reader",
    "Travel desk",
    "Site crawler",
    "Support triage",
]
"""Keys 1 to 5 are those that the rows of the Rails platform point at."""

DOCUMENTS: Final = [
    "Quarterly report, Q3",
    "Manual of the Model 70 (French)",
    "Invoice 2025-1184, Hafner & Söhne",
    "Itinerary Lisbon, November",
    "Sitemap of the help centre",
    "Invoice 2025-1201, Kitagawa Optical",
    "Minutes of the supervisory board, 14 October",
    "Ticket 48213: login loop after the update",
    "Ticket 48377: refund still missing",
    "Data sheet of the Model 80 (Japanese)",
]
"""Keys 1, 3 and 5 are those that the rows of the Rails generator point at."""

TASKS: Final = [
    Task(
        agent="Report summariser",
        action="summarise",
        provider="anthropic",
        model="claude-sonnet",
        instructions=(
            "You summarise business documents for readers who have two minutes. Lead with what "
            "changed, give figures with their units, and name the page of each."
        ),
        calls=(
            Call("read_document", partial(tools.read_document, "Quarterly report, Q3", 38), 1_900),
            Call("search_archive", partial(tools.search, "archive", "Q2 revenue", 4), 700),
        ),
        cases=(
            Case(
                "Quarterly report, Q3",
                "Summarise the third quarter for the sales team in five bullet points. Leave out "
                "everything about the office move.",
                "• Revenue 48.2 M EUR, up 6.1 % on Q2 (p. 4)\n• Orders from Japan doubled to "
                "3.9 M EUR (p. 9)\n• Gross margin 41.5 %, down 0.8 points on freight (p. 11)\n"
                "• Two price rises held, churn unchanged at 1.2 % (p. 17)\n• Backlog covers "
                "eleven weeks (p. 21)",
            ),
            Case(
                "Minutes of the supervisory board, 14 October",
                "Which decisions did the board take, who voted against, and what is due before "
                "the next meeting?",
                "Three decisions: the 2026 budget (unanimous), the sale of the Graz site (Ms "
                "Adeyemi against), the audit mandate (unanimous). Due by 9 December: a revised "
                "liquidity plan and the shortlist for the data protection officer.",
            ),
        ),
        thinking_ms=5_200,
    ),
    Task(
        agent="Translator",
        action="translate",
        provider="openai",
        model="gpt-4o",
        instructions="You are a careful translator. Keep numbers, part names and layout as found.",
        calls=(
            Call("glossary", partial(tools.search, "glossary", "torque", 2), 240),
            Call("read_document", partial(tools.read_document, "Model 70", 112), 3_400),
        ),
        cases=(
            Case(
                "Manual of the Model 70 (French)",
                "Traduis le chapitre 4 (« Entretien de la courroie ») en anglais britannique.",
                "4 Looking after the belt\nSlacken the two M6 bolts by half a turn. The belt is "
                "tight enough when it gives 8 mm under your thumb …",
            ),
            Case(
                "Data sheet of the Model 80 (Japanese)",
                "仕様表を英語に訳してください。単位はそのままで。",
                "Rated voltage 24 V DC · Rated torque 1.8 N·m · Ambient temperature −10 … 50 °C",
            ),
        ),
        thinking_ms=8_700,
    ),
    Task(
        agent="Invoice reader",
        action="extract",
        provider="anthropic",
        model="claude-haiku",
        instructions="Answer with the figure only. Say “not found” rather than guess.",
        calls=(
            Call("search_invoices", partial(tools.search, "invoices", "1184", 3), 1_100),
            Call("convert", partial(tools.convert, "1399.90", "USD"), 90),
        ),
        cases=(
            Case(
                "Invoice 2025-1184, Hafner & Söhne",
                "Find the invoice total, VAT included, and convert it to EUR at the day's rate.",
                "The total is 1,284.31 EUR.",
            ),
            Case(
                "Invoice 2025-1201, Kitagawa Optical",
                "When is invoice 2025-1201 due, and is there a discount for paying early?",
                "Due 30 December; 2 % within ten days.",
            ),
        ),
        thinking_ms=1_300,
    ),
    Task(
        agent="Travel desk",
        action="book",
        provider="openai",
        model="gpt-4o-mini",
        instructions=(
            "You book business travel under the company's rules: economy below six hours, hotels "
            "up to 160 EUR a night, and nobody flies where a train takes less than four hours."
        ),
        calls=(
            Call("flights", partial(tools.look_up_flights, "VIE", "LIS", 7), 2_600),
            Call("trains", partial(tools.search, "timetable", "Vienna–Munich 18 Nov", 5), 800),
        ),
        cases=(
            Case(
                "Itinerary Lisbon, November",
                "Book Vienna–Lisbon on 18 November, back on the 21st after 15:00, aisle seat, and "
                "a hotel within walking distance of the fair 🛫",
                "Booked: OS 1783 on 18 Nov 07:20, seat 14C; back with TP 1276 on 21 Nov 16:05. "
                "Hotel Oriente, three nights at 148 EUR.",
            ),
        ),
        thinking_ms=2_400,
    ),
    Task(
        agent="Support triage",
        action="ask",
        provider="mistral",
        model="mistral-small",
        instructions=(
            "You sort support tickets. Answer with a queue, an urgency from 1 to 4, and one "
            "sentence that the customer may read."
        ),
        calls=(
            Call("search_tickets", partial(tools.search, "tickets", "login loop", 19), 420),
            Call(
                "query_ledger",
                partial(tools.query_ledger, "SELECT … FROM refunds WHERE ticket = 48377", 1),
                350,
            ),
        ),
        cases=(
            Case(
                "Ticket 48213: login loop after the update",
                "Since version 4.2 I am sent back to the login page after every click. Cleared "
                "cookies, tried two browsers. Please help, the month-end closes tomorrow!",
                "Queue: identity · urgency 1 · “This is a known fault of 4.2; signing in with the "
                "company account works until the fix of tonight.”",
            ),
            Case(
                "Ticket 48377: refund still missing",
                "I sent the lamp back three weeks ago and the 89 EUR are still not on my card.",
                "Queue: payments · urgency 2 · “Your refund of 89.00 EUR left us on the 12th; "
                "the bank takes up to five working days.”",
            ),
        ),
        thinking_ms=1_800,
    ),
    Task(
        agent="Site crawler",
        action="crawl",
        provider="ollama",
        model="llama3.1:8b",
        instructions="",
        calls=(
            Call("sitemap", partial(tools.search, "sitemap", "help/*", 412), 900),
            Call("read_document", partial(tools.read_document, "help/billing", 12), 6_800),
            Call("read_document", partial(tools.read_document, "help/devices", 31), 9_500),
        ),
        cases=(
            Case(
                "Sitemap of the help centre",
                "Crawl the help centre and list the pages that still show the old logo.",
                "17 of 412 pages still show the old logo; the list is in crawl-0412.csv.",
            ),
        ),
        thinking_ms=14_000,
    ),
]

FAULTS: Final = [
    Call("download", partial(tools.download, "https://archive.example/q3.pdf"), 30_000),
    Call("parse_reply", partial(tools.parse_reply, '{"queue": "payments", "urgency": '), 40),
    Call("convert", partial(tools.convert, "310.00", "XAU"), 110),
    Call(
        "fetch_pages",
        partial(
            tools.fetch_pages,
            ["https://help.example/billing", "https://help.example/devices"],
        ),
        60_000,
    ),
    Call("average", partial(tools.average, []), 60),
]
"""Calls that raise, each in its own way."""

CANCEL_REASONS: Final = [
    "Cancelled by user",
    "Superseded by a newer request",
    "The document was withdrawn",
]
