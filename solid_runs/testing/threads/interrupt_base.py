"""What every test of a store of interrupts stands on."""

from __future__ import annotations

from typing import Any, Final

from solid_runs.testing.capabilities import Capabilities
from solid_runs.testing.threads.base import ThreadStoreTests

CAPABILITIES: Final = Capabilities(
    required=(
        *("create", "resolve", "cancel", "get"),
        *("list_by_thread", "list_pending", "list_by_run", "list_pending_by_run"),
    ),
    optional={"async": (), "cleaning": (), "commit_batch": ("commit_batch",), "scopes": ()},
)
needs = CAPABILITIES.needs

LISTS: Final[dict[str, tuple[str, bool]]] = {
    "list_by_thread": ("thread_id", False),
    "list_pending": ("thread_id", True),
    "list_by_run": ("run_id", False),
    "list_pending_by_run": ("run_id", True),
}
"""Each list with what it is asked by, and whether it is of pending ones alone."""


def yes(interrupt_id: str, **fields: Any) -> dict[str, Any]:
    return {"interrupt_id": interrupt_id, "status": "resolved", **fields}


def no(interrupt_id: str) -> dict[str, Any]:
    return {"interrupt_id": interrupt_id, "status": "cancelled"}


class InterruptStoreTests(ThreadStoreTests):
    capabilities = CAPABILITIES

    def ask(
        self,
        interrupt_id: str = "i1",
        run_id: str = "r1",
        thread_id: str = "t1",
        requested_at: int = 1,
        payload: Any = None,
    ) -> None:
        asked = {"question": "May I?"} if payload is None else payload
        self.store.create(interrupt_id, run_id, thread_id, requested_at, asked)

    def get(self, key: str = "i1") -> Any:
        return super().get(key)

    def assert_decided(self, status: str, key: str = "i1", **fields: Any) -> None:
        """That it was asked as ask() does, and decided now, with these fields."""
        asked = {"interruptId": key, "runId": "r1", "threadId": "t1", "requestedAt": 1}
        asked["payload"] = {"question": "May I?"}
        decided = {"status": status, "resolvedAt": self.now(), **fields}
        self.assertEqual(self.get(key).to_json(), {**asked, **decided})
