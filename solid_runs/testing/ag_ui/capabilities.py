"""What a store of AG-UI runs has, and what it may leave out if it says so."""

from __future__ import annotations

from typing import Final

from solid_runs.testing.capabilities import Capabilities

REQUIRED: Final = (
    *("reserve", "find", "latest_run", "latest_interrupted", "save"),
    *("heartbeat", "request_cancel"),
    *("find_interrupt", "redeem_interrupt", "resume", "settle", "release", "abandon"),
)
"""The methods without which nothing is a store of AG-UI runs: those of RunStore."""

OPTIONAL: Final[dict[str, tuple[str, ...]]] = {
    "admit": ("admit",),
    "answer": ("answer",),
    "async": (),
    "labels": (),
    "policy": (),
    "prune": ("prune",),
    "release_settled": ("release_settled",),
    "signals": (),
    "stalled": ("stalled", "fail_stalled"),
    "status": ("status",),
}
"""What a store may leave out, with its methods.

``async``: the twin of every method, its name with an ``a`` before. ``labels``: ``trace_id`` and
``parent_run_id`` of ``reserve()``. ``policy``: that of ``reserve()``. ``signals``:
``run_interrupted`` and ``interrupt_decided``.
"""

CAPABILITIES: Final = Capabilities(REQUIRED, OPTIONAL)

needs = CAPABILITIES.needs
