"""A conversation as people look at it: the runs of a thread, children under their parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef

from solid_runs.conf import setting
from solid_runs.database_time import DatabaseMilliseconds
from solid_runs.threads.models import ThreadRun, ThreadRunQuerySet

CONTENT: Final = ("error", "usage", "sandbox_key")
"""What only those see who may see the content of runs. Lists never load it."""
MOST_RUNS: Final = 500


def stall_cutoff() -> DatabaseMilliseconds:
    """A driver that was last heard of by then counts as gone."""
    return DatabaseMilliseconds(-round(setting("THREADS_STALL_AFTER") * 1000))


def judged(runs: ThreadRunQuerySet) -> ThreadRunQuerySet:
    """With ``clock``, the time of the database, and ``is_stalled``, which is judged by it."""
    stalled = ThreadRun.objects.stalled(stall_cutoff()).filter(pk=OuterRef("pk"))
    return runs.annotate(clock=DatabaseMilliseconds(), is_stalled=Exists(stalled))


@dataclass(frozen=True, slots=True)
class Placed:
    """A run and how deep it is under the first of its parents that is shown."""

    run: Any
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """``active``: the key of the run that a client would attach to, wherever it is."""

    runs: list[Placed]
    active: Any
    has_earlier: bool
    """There are more than are shown, which started before them."""


def conversation(runs: ThreadRunQuerySet, scope: str, thread_id: str) -> Conversation:
    """The latest runs of a thread: two queries."""
    latest = runs.of_thread(scope, thread_id)
    found = list(latest.reverse()[: MOST_RUNS + 1])
    active = latest.active().order_by("-started_at", "pk").values_list("pk", flat=True).first()
    shown = list(placed(found[:MOST_RUNS][::-1]))
    return Conversation(shown, active, len(found) > MOST_RUNS)


def placed(runs: Sequence[Any]) -> Iterator[Placed]:
    """Each of the runs of one scope once, in their order, children after their parents.

    A run whose parent is not among them is at the depth of 0. Where parents go round in a circle
    the first run that leads there is.
    """
    ids = {run.run_id for run in runs}
    children: dict[str | None, list[Any]] = {}
    for run in runs:
        children.setdefault(run.parent_run_id, []).append(run)
    seen: set[str] = set()
    first = [run for run in runs if run.parent_run_id not in ids]
    for top in (*first, *runs):  # whoever is below none of the first leads into a circle
        pending = [(top, 0)]
        while pending:
            run, depth = pending.pop()
            if run.run_id in seen:
                continue
            seen.add(run.run_id)
            yield Placed(run, depth)
            below = children.get(run.run_id, ())
            pending += [(child, depth + 1) for child in reversed(below)]
