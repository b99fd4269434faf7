"""What a store may leave out, if it says so, and how a test tells that it is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

Tested = TypeVar("Tested", bound=Callable[..., Any])

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

NOT_OFFERED: Final = (AttributeError, NotImplementedError, TypeError)
"""What using a capability raises that is not there."""


def needs(*capabilities: str) -> Callable[[Tested], Tested]:
    """Mark a test, or each test of a class, as one of these capabilities."""
    unknown = set(capabilities) - set(OPTIONAL)
    if unknown:
        raise ValueError(f"There are no such capabilities: {sorted(unknown)}.")

    def mark(tested: Tested) -> Tested:
        for test in tests_of(tested) if isinstance(tested, type) else (tested,):
            test.__dict__["needs"] = needed(test) | set(capabilities)
        return tested

    return mark


def tests_of(tested: type[Any]) -> Iterable[Callable[..., Any]]:
    return [
        value for name, value in vars(tested).items() if name.startswith("test") and callable(value)
    ]


def needed(test: Any) -> frozenset[str]:
    return frozenset(getattr(test, "needs", ()))


def leave_out(tests: type[Any], leaves_out: Collection[str]) -> None:
    """Take the tests of these capabilities out of a class; ValueError for an unknown one."""
    unknown = set(leaves_out) - set(OPTIONAL)
    if unknown:
        raise ValueError(
            f"{tests.__name__} leaves out {sorted(unknown)}; what can be left out is "
            f"{', '.join(OPTIONAL)}."
        )
    for name in dir(tests):
        if name.startswith("test") and needed(getattr(tests, name)) & set(leaves_out):
            setattr(tests, name, None)


def methods(leaves_out: Iterable[str]) -> list[str]:
    """The methods that a store has which leaves these capabilities out."""
    kept = [
        name
        for capability, names in OPTIONAL.items()
        for name in names
        if capability not in leaves_out
    ]
    every = [*REQUIRED, *kept]
    return every if "async" in leaves_out else [*every, *(f"a{name}" for name in every)]


def advice(store: Any, missing: Iterable[str]) -> str:
    """What to do about methods that a store lacks."""
    told = []
    for name in missing:
        plain = name.removeprefix("a") if name not in plain_names() else name
        found = [
            capability
            for capability, names in OPTIONAL.items()
            if plain in names or (capability == "async" and plain != name)
        ]
        declare = f", or declare it: leaves_out = {{{found[-1]!r}}}" if found else ""
        told.append(f"{type(store).__name__} has no {name}(). Write it{declare}.")
    return "\n".join(told)


def plain_names() -> frozenset[str]:
    return frozenset(REQUIRED).union(*OPTIONAL.values())
