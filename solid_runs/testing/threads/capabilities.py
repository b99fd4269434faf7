"""What a store of the runs of threads has, and what it may leave out if it says so."""

from __future__ import annotations

from typing import Final

from solid_runs.testing.capabilities import Capabilities

REQUIRED: Final = ("create_or_resume", "update", "get", "find_active_run")
"""The methods without which nothing is a store of runs: those of RunStore."""

OPTIONAL: Final[dict[str, tuple[str, ...]]] = {
    "async": (),
    "claim": ("claim",),
    "cleaning": (),
    "labels": (),
    "leases": (),
    "limits": (),
    "list_by_parent_run": ("list_by_parent_run",),
    "list_by_thread": ("list_by_thread",),
    "list_reclaimable": ("list_reclaimable",),
    "list_stalled": ("list_stalled",),
    "prune": ("prune",),
    "request_cancel": ("request_cancel", "was_cancel_requested"),
    "scopes": (),
    "signals": (),
    "store_status": (),
    "touch": ("touch",),
    "update_if": ("update_if",),
}
"""What a store may leave out, with its methods.

``async``: the twin of every method, its name with an ``a`` before. ``cleaning``: a NUL or half of a
character in a message or in the usage is replaced, not refused. ``labels``: ``trace_id`` of
``create_or_resume()``. ``leases``: what reapers claim with, ``lease_ms``, ``watched`` and ``patch``
of ``claim()``. ``limits``: ``limit`` of ``list_reclaimable()`` and ``list_stalled()``. ``scopes``:
a store of another scope over the same storage. ``signals``: ``run_ended``. ``store_status``: the
tests' own way to store a status that is none.
"""

CAPABILITIES: Final = Capabilities(REQUIRED, OPTIONAL)

needs = CAPABILITIES.needs
