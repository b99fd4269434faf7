"""What the simulated agents call: functions that work, and some that really raise."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from decimal import Decimal

RATES = {"EUR": Decimal(1), "USD": Decimal("1.09"), "CHF": Decimal("0.94")}


def search(index: str, query: str, hits: int) -> str:
    return f"{hits} hits in {index} for {query!r}"


def read_document(title: str, pages: int) -> str:
    return f"read {pages} pages of “{title}”"


def convert(amount: str, currency: str) -> str:
    return f"{amount} {currency} = {Decimal(amount) / RATES[currency]:.2f} EUR"


def query_ledger(sql: str, rows: int) -> dict[str, object]:
    return {"sql": sql, "rows": rows}


def look_up_flights(origin: str, destination: str, offers: int) -> dict[str, object]:
    return {"from": origin, "to": destination, "offers": offers}


def download(url: str) -> str:
    try:
        raise ConnectionResetError(104, "Connection reset by peer")
    except ConnectionResetError as error:
        raise TimeoutError(f"{url} did not answer within 30 s, after 3 tries") from error


def parse_reply(reply: str) -> object:
    return json.loads(reply)


def average(figures: Sequence[float]) -> float:
    return statistics.mean(figures)


def fetch_pages(urls: Sequence[str]) -> None:
    errors: list[Exception] = []
    for url in urls:
        try:
            download(url)
        except TimeoutError as error:
            errors.append(error)
    raise ExceptionGroup(f"{len(errors)} of {len(urls)} pages could not be fetched", errors)
