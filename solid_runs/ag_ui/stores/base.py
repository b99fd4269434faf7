"""What a store of AG-UI runs is, and the base class that makes one of a few steps of storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from solid_runs.ag_ui.answers import Answer
from solid_runs.ag_ui.interrupts import Decision, Interrupt, Redemption
from solid_runs.ag_ui.records import Admission, CancelRequest, Reservation, RunKey, RunRecord
from solid_runs.ag_ui.stores.steps import Labels, Policy, Since, StorageSteps
from solid_runs.ag_ui.stores.twins import AsyncTwins

__all__ = [
    "Admission",
    "BaseStore",
    "CancelRequest",
    "Labels",
    "Policy",
    "RunKey",
    "RunStore",
    "Since",
    "StorageSteps",
]


@runtime_checkable
class RunStore(Protocol):
    """The methods that every store has; BaseStore says what each does.

    A store is whatever passes ``solid_runs.testing.ag_ui``, which also tests the others that
    BaseStore has, unless a store declares that it leaves them out: reserve()'s policy and labels,
    admit(), answer(), status(), release_settled(), the stalled runs, prune(), the signals, and the
    twins for async code.
    """

    def reserve(self, scope: Any, thread_id: str, run_id: str, digest: str) -> Reservation: ...

    def find(self, scope: Any, thread_id: str, run_id: str) -> RunRecord | None: ...

    def latest_run(self, scope: Any, thread_id: str) -> RunRecord | None: ...

    def latest_interrupted(self, scope: Any, thread_id: str) -> RunRecord | None: ...

    def save(self, record: RunRecord) -> RunRecord: ...

    def heartbeat(self, record: RunRecord, now: datetime | None = None) -> bool: ...

    def request_cancel(self, scope: Any, thread_id: str, run_id: str) -> CancelRequest | None: ...

    def find_interrupt(self, scope: Any, thread_id: str, interrupt_id: str) -> Interrupt | None: ...

    def redeem_interrupt(
        self,
        scope: Any,
        thread_id: str,
        interrupt_id: str,
        decision: Decision | Mapping[str, Any],
        now: datetime | None = None,
        run_id: str | None = None,
    ) -> Redemption: ...

    def resume(
        self,
        scope: Any,
        thread_id: str,
        entries: Iterable[Answer | Mapping[str, Any]],
        run_id: str,
        now: datetime | None = None,
    ) -> tuple[Redemption, ...]: ...

    def settle(
        self,
        scope: Any,
        thread_id: str,
        interrupt_id: str,
        run_id: str,
        now: datetime | None = None,
    ) -> bool: ...

    def release(self, scope: Any, thread_id: str, run_id: str) -> int: ...

    def abandon(
        self, scope: Any, thread_id: str, now: datetime | None = None, by: str | None = None
    ) -> int: ...


class BaseStore(AsyncTwins):
    """A store over the steps of StorageSteps, which a subclass provides.

    Every method refuses a scope or an id that no key can hold with ConfigurationError, and reads
    and writes on behalf of one scope alone. A method that changes a thread is one transaction, in
    which nobody else changes that thread. Values are copied in and out. Each has a twin for async
    code, ``areserve()`` and so on.
    """
