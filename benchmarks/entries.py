"""What is logged: events of about 250 bytes as JSON, with text that hardly compresses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from solid_runs.events import Entry, event_entry

ENTRY_BYTES = 250


def arguments(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Arguments for append_event() without end, made beforehand."""
    rng = random.Random(seed)
    return cycle([_arguments(rng) for _ in range(1000)])


def _arguments(rng: random.Random) -> dict[str, Any]:
    eid, detail = f"{rng.getrandbits(32):08x}", f"{rng.getrandbits(512):0128x}"
    return {"kind": "tool", "label": "search_invoices", "eid": eid, "detail": detail}


def entries(count: int) -> list[Entry]:
    made = arguments(seed=1)
    return [event_entry(**next(made)) for _ in range(count)]
