"""The suite as one class, with the tests of what a store leaves out replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solid_runs.testing.ag_ui.admitting import Admitting, AdmittingOne
from solid_runs.testing.ag_ui.answers import Expiring, Holding, Redeeming
from solid_runs.testing.ag_ui.base import SCOPE, THREAD, YES
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
from solid_runs.testing.stores import Offered


def _admit(test: Any) -> None:
    test.the_method("admit")(SCOPE, THREAD, "r1", "d1")


def _answer(test: Any) -> None:
    test.asked()
    test.the_method("answer")(SCOPE, THREAD, "i1", YES, by="ann")


def _labels(test: Any) -> None:
    test.the_method("reserve")(SCOPE, THREAD, "r1", "d1", trace_id="0af7", parent_run_id="r0")


def _policy(test: Any) -> None:
    test.the_method("reserve")(SCOPE, THREAD, "r1", "d1", policy="reject")


def _prune(test: Any) -> None:
    test.the_method("prune")(MINUTE)


def _release_settled(test: Any) -> None:
    test.the_method("release_settled")(SCOPE, THREAD, "r1", "i1", by="ann")


def _signals(test: Any) -> None:
    from solid_runs.ag_ui.signals import interrupt_decided, run_interrupted

    with test.heard(run_interrupted) as asked, test.heard(interrupt_decided) as decided:
        test.asked()
        test.redeem()
    if not asked and not decided:
        raise NotImplementedError


def _stalled(test: Any) -> None:
    for name in ("stalled", "fail_stalled"):
        if getattr(test.store.store, name, None) is not None:
            test.the_method(name)(MINUTE)
            return
    raise NotImplementedError


def _status(test: Any) -> None:
    test.the_method("status")(SCOPE, THREAD, "r1")


ATTEMPTS: Final[dict[str, Callable[[Any], object]]] = {
    "admit": _admit,
    "answer": _answer,
    "async": Offered.try_twins,
    "labels": _labels,
    "policy": _policy,
    "prune": _prune,
    "release_settled": _release_settled,
    "signals": _signals,
    "stalled": _stalled,
    "status": _status,
}
"""How each capability would be used."""


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
    Offered,
):
    """What every store of AG-UI runs holds; put it before a TestCase.

    Each test says one thing of the contract. What a store does not have it declares in
    ``leaves_out``, with names out of capabilities.OPTIONAL: the tests that need it are replaced by
    one which holds that it is not offered.
    """

    attempts = ATTEMPTS
