"""Tables of links on the page of a run."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

MOST_LINKED: Final = 10
"""Of the runs in such a table; there may be more."""


class Line(NamedTuple):
    """One row of a table of links; ``url`` is None for who may not see where it leads."""

    label: str
    url: str | None
    badge: Any
    note: Any = ""
