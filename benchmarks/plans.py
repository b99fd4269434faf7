"""How much is measured: enough to be believed, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass

WRITERS = 8
PER_FLUSH = 100
ENTRIES_A_RUN = 20
TAIL = 50


@dataclass(frozen=True)
class Plan:
    """Numbers are for one repeat. A figure is the median of the repeats' medians."""

    repeats: int
    lengths: tuple[int, ...]
    floors: int
    table_appends: int
    column_appends: tuple[int, ...]
    """For each length, as the long ones are slow."""
    flushes: int
    column_entries_a_writer: int
    table_entries_a_writer: int
    runs: int
    tails: int
    followed: int
    """The entries of the run whose memory is watched."""
    stored_runs: tuple[int, int]
    """The runs in a small and in a large table, of AG-UI and of threads."""
    lookups: int
    """In each of them."""
    frames: int
    """Of a stream."""

    def column_appends_at(self, length: int) -> int:
        return self.column_appends[self.lengths.index(length)]


FULL = Plan(
    repeats=5,
    lengths=(0, 100, 1_000, 10_000),
    floors=100,
    table_appends=60,
    column_appends=(40, 30, 10, 2),
    flushes=4,
    column_entries_a_writer=20,
    table_entries_a_writer=150,
    runs=40,
    tails=40,
    followed=10_000,
    stored_runs=(1_000, 1_000_000),
    lookups=200,
    frames=2_000,
)
QUICK = Plan(
    repeats=2,
    lengths=(0, 100, 1_000, 10_000),
    floors=10,
    table_appends=5,
    column_appends=(5, 5, 2, 1),
    flushes=1,
    column_entries_a_writer=5,
    table_entries_a_writer=20,
    runs=3,
    tails=5,
    followed=500,
    stored_runs=(1_000, 20_000),
    lookups=20,
    frames=2_000,
)
