"""The reaper: a function that a host calls now and then, from wherever it schedules things."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from solid_runs.conf import setting
from solid_runs.threads.reaper.outcomes import Outcome
from solid_runs.threads.reaper.sweeping import Finaliser, Probe, Sweep
from solid_runs.threads.records import RunRecord
from solid_runs.threads.values import LARGEST, span, whole

NEEDED: Final = ("claim", "list_reclaimable", "list_stalled", "now", "update_if")
"""Of what a store may omit, what a reaper cannot do without."""

Report: TypeAlias = Callable[[RunRecord, Outcome], Any]


def reap(
    store: Any,
    *,
    ttl_ms: int | None = None,
    stall_ms: int | None = None,
    now: int | None = None,
    limit: int | None = 100,
    probe: Probe | str | None = None,
    finalise: Finaliser | str | None = None,
    budget_ms: int | None = None,
    dry_run: bool = False,
    report: Report | None = None,
    is_stopped: Callable[[], bool] | None = None,
) -> dict[str, int]:
    """Sweep the runs of a store once; how many had each Outcome, by its name.

    A detached run ends as ``probe(record)`` says, which gives Finished(...), PRODUCING or UNKNOWN;
    aborted after ``ttl_ms``, once it was asked to cancel and ``finalise(record)`` has returned,
    raised, or taken ``budget_ms``. A watched one fails after ``stall_ms`` without a sign of life.
    Whatever else is found is not written to, and several may sweep at once: each run is ended by
    one of them.

    What is not given is taken from the settings, and the time from the store's clock. ``limit``:
    the most detached runs and the most stalled ones that are looked at, of all that are listed;
    None for all. ``dry_run``: write nothing, only
    say what would become of each. ``report``: called with each record and its outcome.
    ``is_stopped``: asked between two runs, and the sweep breaks off where it is true.

    Nothing raises over a single run; ImproperlyConfigured for a store that no reaper can work on.
    """
    missing = [name for name in NEEDED if not hasattr(store, name)]
    if missing:
        raise ImproperlyConfigured(
            f"A reaper cannot sweep a {type(store).__name__}, which omits {', '.join(missing)}."
        )
    sweep = Sweep(
        store,
        ttl_ms=_span("ttl_ms", ttl_ms, "THREADS_DETACHED_TTL"),
        stall_ms=_span("stall_ms", stall_ms, "THREADS_STALL_AFTER"),
        now=now,
        limit=None if limit is None else whole("limit", limit, 0, LARGEST, "a number of runs"),
        probe=_plain("THREADS_PROBE", probe),
        finalise=_plain("THREADS_FINALISE", finalise),
        budget_ms=_span("budget_ms", budget_ms, "THREADS_FINALISE_BUDGET"),
        dry_run=dry_run,
    )
    counts = {outcome.value: 0 for outcome in Outcome}
    for record, outcome in sweep.outcomes():
        counts[outcome.value] += 1
        if report is not None:
            report(record, outcome)
        if is_stopped is not None and is_stopped():
            break
    return counts


async def areap(store: Any, **options: Any) -> dict[str, int]:
    """See reap(). It has a thread and database connections of its own, since it may take long."""

    def work() -> dict[str, int]:
        try:
            return reap(store, **options)
        finally:
            connections.close_all()

    return await sync_to_async(work, thread_sensitive=False)()


def _span(name: str, given: int | None, key: str) -> int:
    if given is None:
        return int(setting(key) * 1000)
    return span(name, given)


def _plain(key: str, given: Callable[..., Any] | str | None) -> Callable[[Any], Any] | None:
    """What was given or set, as a function that waits for what it gives."""
    found = setting(key) if given is None else given
    call = import_string(found) if isinstance(found, str) else found
    return None if call is None else partial(_waited_for, call)


def _waited_for(call: Callable[[Any], Any], record: RunRecord) -> Any:
    given = call(record)

    async def wait() -> Any:
        return await given

    return async_to_sync(wait)() if isawaitable(given) else given
