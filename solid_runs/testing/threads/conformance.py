"""The suite as one class, with the tests of what a store leaves out replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solid_runs.testing.stores import Offered
from solid_runs.testing.threads.bad_input import BadConditions, BadCreates, BadIds, BadPatches
from solid_runs.testing.threads.base import OTHER_SCOPE
from solid_runs.testing.threads.cancelling import CancelRequests
from solid_runs.testing.threads.claiming import (
    Claiming,
    ClaimingDetached,
    ClaimingExpected,
    Fencing,
    Leasing,
)
from solid_runs.testing.threads.conditional import UpdatingIf
from solid_runs.testing.threads.creating import Creating, Identities
from solid_runs.testing.threads.finding import (
    FindingActive,
    ListingByParent,
    ListingByThread,
    ListingReclaimable,
)
from solid_runs.testing.threads.heartbeats import Stalling, Touching
from solid_runs.testing.threads.pruning import Pruning
from solid_runs.testing.threads.scenarios import Scenarios
from solid_runs.testing.threads.scopes import Scopes
from solid_runs.testing.threads.signals import Signals
from solid_runs.testing.threads.updating import DriverFields, Updating
from solid_runs.testing.threads.values import Copies, Ends, UnknownStatuses
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.signals import run_ended


def _claim(test: Any) -> None:
    test.the_method("claim")("r1")


def _cleaning(test: Any) -> None:
    test.create()
    try:
        test.update(error={"message": "a\0b"})
    except InvalidRecord as error:
        raise NotImplementedError from error


def _labels(test: Any) -> None:
    test.store.create_or_resume("r1", "t1", 1, trace_id="0af7")


def _leases(test: Any) -> None:
    test.the_method("claim")("r1", lease_ms=1000, watched=True, patch={})


def _limits(test: Any) -> None:
    for name in ("list_reclaimable", "list_stalled"):
        if getattr(test.store.store, name, None) is not None:
            test.the_method(name)(1000, 0, limit=1)
            return
    raise NotImplementedError


def _list_by_parent_run(test: Any) -> None:
    test.the_method("list_by_parent_run")("r1")


def _list_by_thread(test: Any) -> None:
    test.the_method("list_by_thread")("t1")


def _list_reclaimable(test: Any) -> None:
    test.the_method("list_reclaimable")(1000, 0)


def _list_stalled(test: Any) -> None:
    test.the_method("list_stalled")(1000, 0)


def _prune(test: Any) -> None:
    test.the_method("prune")(1000)


def _request_cancel(test: Any) -> None:
    test.the_method("request_cancel")("r1")


def _scopes(test: Any) -> None:
    theirs = test.new_store(scope=OTHER_SCOPE)
    test.create()
    if theirs.get("r1") is not None:
        raise NotImplementedError


def _signals(test: Any) -> None:
    with test.heard(run_ended) as said:
        test.ended()
    if not said:
        raise NotImplementedError


def _store_status(test: Any) -> None:
    test.create()
    test.store_status("r1", "paused")


def _touch(test: Any) -> None:
    test.the_method("touch")("r1", 1)


def _update_if(test: Any) -> None:
    test.the_method("update_if")("r1", {}, status="running")


ATTEMPTS: Final[dict[str, Callable[[Any], object]]] = {
    "async": Offered.try_twins,
    "claim": _claim,
    "cleaning": _cleaning,
    "labels": _labels,
    "leases": _leases,
    "limits": _limits,
    "list_by_parent_run": _list_by_parent_run,
    "list_by_thread": _list_by_thread,
    "list_reclaimable": _list_reclaimable,
    "list_stalled": _list_stalled,
    "prune": _prune,
    "request_cancel": _request_cancel,
    "scopes": _scopes,
    "signals": _signals,
    "store_status": _store_status,
    "touch": _touch,
    "update_if": _update_if,
}
"""How each capability would be used."""


class RunStoreConformance(
    Creating,
    Identities,
    Updating,
    DriverFields,
    FindingActive,
    ListingByThread,
    ListingByParent,
    ListingReclaimable,
    Claiming,
    ClaimingDetached,
    ClaimingExpected,
    Fencing,
    Leasing,
    Stalling,
    Touching,
    CancelRequests,
    UpdatingIf,
    Scenarios,
    Copies,
    Ends,
    UnknownStatuses,
    BadIds,
    BadCreates,
    BadPatches,
    BadConditions,
    Scopes,
    Pruning,
    Signals,
    Offered,
):
    """What every store of the runs of threads holds; put it before a TestCase.

    Each test says one thing of the contract. What a store does not have it declares in
    ``leaves_out``, with names out of capabilities.OPTIONAL: the tests that need it are replaced by
    one which holds that it is not offered.
    """

    attempts = ATTEMPTS
