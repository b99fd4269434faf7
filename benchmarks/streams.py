"""What the store adds to a run that streams its answer through the endpoint, frame by frame."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from itertools import count
from math import floor
from typing import Any, Final, NamedTuple

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpRequest
from django.test import AsyncRequestFactory
from django.test.utils import CaptureQueriesContext

from benchmarks.names import HEARTBEAT, WITH, WITHOUT
from benchmarks.plans import Plan
from benchmarks.turns import ratios
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.stores.base import BaseStore
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore

OWN: Final = 2
"""The updates of every run: its start and its end."""
number: Iterator[int] = count()


class Streamed(NamedTuple):
    seconds: float
    frames: int
    updates: int


def measure(plan: Plan) -> dict[str, Any]:
    """``{"frames": count, "rate": {store: frames a second}, "kept": figures, "updates": figures,
    "updates a heartbeat": figures}``; empty without ``ag-ui-protocol``.

    ``updates``: those of the run's row, beyond its start and its end.
    """
    if find_spec("ag_ui") is None:
        return {}
    stores: dict[str, BaseStore] = {WITH: DatabaseStore(), WITHOUT: MemoryStore()}
    for store in stores.values():
        stream(store, 100)
    found: dict[str, list[Streamed]] = {name: [] for name in stores}
    for _ in range(plan.repeats):
        for name, store in stores.items():
            found[name].append(stream(store, plan.frames))
    rate = {name: [one.frames / one.seconds for one in runs] for name, runs in found.items()}
    return {
        "frames": plan.frames,
        "rate": rate,
        "kept": ratios(rate[WITH], rate[WITHOUT]),
        "updates": [float(one.updates) for one in found[WITH]],
        "updates a heartbeat": [
            one.updates / max(1, floor(one.seconds / HEARTBEAT)) for one in found[WITH]
        ],
    }


def stream(store: BaseStore, frames: int) -> Streamed:
    with CaptureQueriesContext(connection) as captured:
        begun = time.perf_counter()
        told = read(store, frames)
        took = time.perf_counter() - begun
    assert told.count("data: ") == frames
    assert '"type":"success"' in told.replace(" ", "")
    update = f"UPDATE {connection.ops.quote_name(ReservedRun._meta.db_table)}"
    updates = sum(each["sql"].startswith(update) for each in captured)
    return Streamed(took, frames, max(0, updates - OWN))


@async_to_sync
async def read(store: BaseStore, frames: int) -> str:
    """A whole run as its client gets it."""
    from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent, TextMessageStartEvent

    from solid_runs.ag_ui.views import AgentView, Turn

    class Agent(AgentView):
        heartbeat = HEARTBEAT

        async def scope_of(self, request: HttpRequest) -> str:
            return "tenant"

        async def run(self, turn: Turn) -> AsyncIterator[Any]:
            yield TextMessageStartEvent(message_id="m", role="assistant")
            for _ in range(frames - 4):  # beside the run's own two and the message's
                yield TextMessageContentEvent(message_id="m", delta="Three invoices are overdue. ")
            yield TextMessageEndEvent(message_id="m")

    Agent.store = store
    body = {
        "threadId": f"stream-{next(number)}",
        "runId": "run",
        "messages": [{"id": "q", "role": "user", "content": "Which invoices are overdue?"}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    request = AsyncRequestFactory().post(
        "/", json.dumps(body), content_type="application/json", headers={"accept": "*/*"}
    )
    response = await Agent.as_view()(request)
    assert response.status_code == 200, response.content
    return "".join([chunk.decode() async for chunk in response])
