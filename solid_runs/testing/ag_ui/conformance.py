"""The suite as one class, with the tests of what a store leaves out replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solid_runs.ag_ui.exceptions import AGUIError
from solid_runs.testing.ag_ui.admitting import Admitting, AdmittingOne
from solid_runs.testing.ag_ui.answers import Expiring, Holding, Redeeming
from solid_runs.testing.ag_ui.base import SCOPE, THREAD, YES
from solid_runs.testing.ag_ui.capabilities import (
    NOT_OFFERED,
    advice,
    leave_out,
    methods,
)
from solid_runs.testing.ag_ui.finding import Finding, Statuses
from solid_runs.testing.ag_ui.housekeeping import MINUTE, Pruning, Stalling
from solid_runs.testing.ag_ui.records import Copies, Endings, Saving, StaleCopies
from solid_runs.testing.ag_ui.reserving import Identities, Reserving
from solid_runs.testing.ag_ui.resuming import Cancelling, Crashing, Refusing, Resuming
from solid_runs.testing.ag_ui.running import CancelRequests, OneAtATime, SignsOfLife
from solid_runs.testing.ag_ui.scopes import Scopes
from solid_runs.testing.ag_ui.settling import (
    Abandoning,
    Inbox,
    Releasing,
    ReleasingSettled,
    Settling,
)
from solid_runs.testing.ag_ui.signals import Signals, Undone


class RunStoreConformance(
    Reserving,
    Identities,
    Scopes,
    Finding,
    Statuses,
    Saving,
    StaleCopies,
    Copies,
    Endings,
    Redeeming,
    Expiring,
    Holding,
    Settling,
    Releasing,
    Abandoning,
    Inbox,
    ReleasingSettled,
    Resuming,
    Refusing,
    Cancelling,
    Crashing,
    Admitting,
    AdmittingOne,
    OneAtATime,
    SignsOfLife,
    CancelRequests,
    Stalling,
    Pruning,
    Signals,
    Undone,
):
    """What every store of AG-UI runs holds; put it before a TestCase.

    Each test says one thing of the contract. What a store does not have it declares in
    ``leaves_out``, with names out of capabilities.OPTIONAL: the tests that need it are replaced by
    one which holds that it is not offered.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        leave_out(cls, cls.leaves_out)
        for capability in cls.leaves_out:
            setattr(cls, f"test_{capability}_is_not_offered", not_offered(capability))

    def test_every_method_is_there_or_declared_as_left_out(self) -> None:
        store = self.store.store
        missing = [name for name in methods(self.leaves_out) if getattr(store, name, None) is None]
        if missing:
            self.fail(advice(store, missing))


def not_offered(capability: str) -> Callable[[RunStoreConformance], None]:
    def test(self: RunStoreConformance) -> None:
        try:
            ATTEMPTS[capability](self)
        except NOT_OFFERED:
            return
        except AGUIError:
            pass
        self.fail(
            f"{type(self.store.store).__name__} offers {capability!r}, which "
            f"{type(self).__name__} says it leaves out: take it out of leaves_out."
        )

    test.__doc__ = f"That {capability!r} is left out is true."
    return test


def _admit(test: RunStoreConformance) -> None:
    _offered(test, "admit")(SCOPE, THREAD, "r1", "d1")


def _answer(test: RunStoreConformance) -> None:
    test.asked()
    _offered(test, "answer")(SCOPE, THREAD, "i1", YES, by="ann")


def _async(test: RunStoreConformance) -> None:
    twins = [
        name for name in methods(()) if name.startswith("a") and name[1:] in methods(("async",))
    ]
    if not any(getattr(test.store.store, name, None) for name in twins):
        raise NotImplementedError


def _labels(test: RunStoreConformance) -> None:
    _offered(test, "reserve")(SCOPE, THREAD, "r1", "d1", trace_id="0af7", parent_run_id="r0")


def _policy(test: RunStoreConformance) -> None:
    _offered(test, "reserve")(SCOPE, THREAD, "r1", "d1", policy="reject")


def _prune(test: RunStoreConformance) -> None:
    _offered(test, "prune")(MINUTE)


def _release_settled(test: RunStoreConformance) -> None:
    _offered(test, "release_settled")(SCOPE, THREAD, "r1", "i1", by="ann")


def _signals(test: RunStoreConformance) -> None:
    from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted

    with test.heard(run_interrupted) as asked, test.heard(interrupt_decided) as decided:
        test.asked()
        test.redeem()
    if not asked and not decided:
        raise NotImplementedError


def _stalled(test: RunStoreConformance) -> None:
    for name in ("stalled", "fail_stalled"):
        if getattr(test.store.store, name, None) is not None:
            _offered(test, name)(MINUTE)
            return
    raise NotImplementedError


def _status(test: RunStoreConformance) -> None:
    _offered(test, "status")(SCOPE, THREAD, "r1")


def _offered(test: RunStoreConformance, name: str) -> Callable[..., Any]:
    """The method itself, since the caller of the tests explains what is missing."""
    if getattr(test.store.store, name, None) is None:
        raise NotImplementedError
    method: Callable[..., Any] = getattr(test.store, name)
    return method


ATTEMPTS: Final[dict[str, Callable[[RunStoreConformance], None]]] = {
    "admit": _admit,
    "answer": _answer,
    "async": _async,
    "labels": _labels,
    "policy": _policy,
    "prune": _prune,
    "release_settled": _release_settled,
    "signals": _signals,
    "stalled": _stalled,
    "status": _status,
}
"""How each capability would be used."""
