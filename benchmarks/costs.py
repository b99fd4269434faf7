"""What the methods of a store cost: in floors of the same turns, and in statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeVar

from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.floor import insert_by_driver
from benchmarks.names import FLOOR
from benchmarks.plans import Plan
from benchmarks.scratch import settle
from benchmarks.turns import Figures, Way, ratios, take_turns

T = TypeVar("T")


class Costs(NamedTuple):
    """By the name of the way."""

    seconds: dict[str, Figures]
    floors: dict[str, Figures]
    statements: dict[str, int]
    """BEGIN and COMMIT apart."""


def costs(ways: dict[str, Way], plan: Plan) -> Costs:
    settle()
    every = {FLOOR: insert_by_driver(), **ways}
    turns = {name: plan.floors if name == FLOOR else plan.runs for name in every}
    found = take_turns(every, turns, plan.repeats)
    floors = {name: ratios(found[name], found[FLOOR]) for name in ways}
    return Costs(found, floors, {name: len(statements_of(way)) for name, way in ways.items()})


def made(make: Callable[[], T], plan: Plan) -> Iterator[T]:
    """One for each call of costs(), made beforehand."""
    calls = plan.runs * plan.repeats + len(("to warm up", "to count its statements"))
    return iter([make() for _ in range(calls)])


def statements_of(way: Way) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        way()
    return [each["sql"] for each in captured if not CONTROL.match(each["sql"])]


CONTROL: Final = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET ")
