"""Ways of doing a thing, taking turns: the one place that looks at the clock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeAlias

Way: TypeAlias = Callable[[], object]
Figures: TypeAlias = list[float]
"""One figure for each repeat."""


def take_turns(
    ways: Mapping[str, Way], turns: Mapping[str, int], repeats: int
) -> dict[str, Figures]:
    """The median seconds of each way in each repeat.

    A repeat calls every way as often as ``turns`` says, all in one shuffled order, so that what
    else the machine does falls on all of them alike. Each way is called once before the clock
    runs.
    """
    rng = random.Random(0)
    for way in ways.values():
        way()
    found: dict[str, Figures] = {name: [] for name in ways}
    for _ in range(repeats):
        samples: dict[str, list[float]] = {name: [] for name in ways}
        order = [name for name in ways for _ in range(turns[name])]
        rng.shuffle(order)
        for name in order:
            samples[name].append(seconds(ways[name]))
        for name, times in samples.items():
            found[name].append(median(times))
    return found


def seconds(way: Way) -> float:
    begun = time.perf_counter()
    way()
    return time.perf_counter() - begun


def ratios(figures: Figures, reference: Figures) -> Figures:
    """Repeat by repeat."""
    return [figure / other for figure, other in zip(figures, reference, strict=True)]
