"""What a store may leave out, if it says so, and how a test tells that it is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Tested = TypeVar("Tested", bound=Callable[..., Any])

NOT_OFFERED: Final = (AttributeError, NotImplementedError, TypeError)
"""What using a capability raises that is not there."""


@dataclass(frozen=True)
class Capabilities:
    required: Collection[str]
    """The methods without which nothing is such a store."""
    optional: Mapping[str, Collection[str]]
    """What a store may leave out, with its methods; ``async`` is the twin of every method."""

    def needs(self, *capabilities: str) -> Callable[[Tested], Tested]:
        """Mark a test, or each test of a class, as one of these capabilities."""
        unknown = set(capabilities) - set(self.optional)
        if unknown:
            raise ValueError(f"There are no such capabilities: {sorted(unknown)}.")

        def mark(tested: Tested) -> Tested:
            for test in tests_of(tested) if isinstance(tested, type) else (tested,):
                test.__dict__["needs"] = needed(test) | set(capabilities)
            return tested

        return mark

    def leave_out(self, tests: type[Any], leaves_out: Collection[str]) -> None:
        """Take the tests of these capabilities out of a class; ValueError for an unknown one."""
        unknown = set(leaves_out) - set(self.optional)
        if unknown:
            raise ValueError(
                f"{tests.__name__} leaves out {sorted(unknown)}; what can be left out is "
                f"{', '.join(self.optional)}."
            )
        for name in dir(tests):
            if name.startswith("test") and needed(getattr(tests, name)) & set(leaves_out):
                setattr(tests, name, None)

    def methods(self, leaves_out: Collection[str] = ()) -> list[str]:
        """The methods that a store has which leaves these capabilities out."""
        kept = [
            name
            for capability, names in self.optional.items()
            for name in names
            if capability not in leaves_out
        ]
        every = [*self.required, *kept]
        return every if "async" in leaves_out else [*every, *(f"a{name}" for name in every)]

    def twins(self) -> list[str]:
        plain = self.methods(("async",))
        return [name for name in self.methods() if name not in plain]

    def advice(self, store: Any, missing: Iterable[str]) -> str:
        """What to do about methods that a store lacks."""
        told = []
        every = frozenset(self.required).union(*self.optional.values())
        for name in missing:
            plain = name if name in every else name.removeprefix("a")
            found = [
                capability
                for capability, names in self.optional.items()
                if plain in names or (capability == "async" and plain != name)
            ]
            declare = f", or declare it: leaves_out = {{{found[-1]!r}}}" if found else ""
            told.append(f"{type(store).__name__} has no {name}(). Write it{declare}.")
        return "\n".join(told)


def tests_of(tested: type[Any]) -> Iterable[Callable[..., Any]]:
    return [
        value for name, value in vars(tested).items() if name.startswith("test") and callable(value)
    ]


def needed(test: Any) -> frozenset[str]:
    return frozenset(getattr(test, "needs", ()))
