from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from tests.ag_ui import agents

DATABASE = pytest.param("database", marks=pytest.mark.django_db(transaction=True))


@pytest.fixture(params=["memory", DATABASE])
def view(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of a served endpoint over each of the stores, which a test may change."""
    cls, store = {
        "memory": (agents.MemoryAgent, MemoryStore()),
        "database": (agents.DatabaseAgent, DatabaseStore()),
    }[request.param]
    for name in ("heartbeat", "keep_alive", "attach_limit", "body_bytes", "offer", "policy"):
        monkeypatch.setattr(cls, name, getattr(cls, name))
    monkeypatch.setattr(cls, "interrupt_ttl", None)
    monkeypatch.setattr(cls, "on_disconnect", "continue")
    monkeypatch.setattr(cls, "store", store)
    monkeypatch.setattr(cls, "root", f"/{request.param}/", raising=False)
    monkeypatch.setattr(cls, "script", staticmethod(agents.says("Hi")))
    with override_settings(ROOT_URLCONF="tests.ag_ui.agents"):
        yield cls


@pytest.fixture
def client(view: Any) -> agents.AgentClient:
    return agents.AgentClient(view.root)
