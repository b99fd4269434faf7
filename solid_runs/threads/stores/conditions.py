"""Guards as SQL that every database takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from solid_runs.columns import Connection
from solid_runs.database_time import DatabaseMilliseconds
from solid_runs.threads.records import TERMINAL
from solid_runs.threads.stores.guards import Guard
from solid_runs.threads.values import Unset

Condition = tuple[str, Sequence[Any]]

ENDED: Final = tuple(sorted(TERMINAL))


class NextEpoch:
    """The epoch of one more claim."""

    def as_sql(self, compiler: Any, connection: Connection) -> tuple[str, Sequence[Any]]:
        return "COALESCE(driver_epoch, 0) + 1", ()


def conditions_of(
    scope: str, run_id: str, guard: Guard, connection: Connection
) -> Iterator[Condition]:
    yield "run_id = %s AND scope = %s", (run_id, scope)
    if guard.statuses is not None:
        yield f"status IN ({_places(guard.statuses)})", tuple(guard.statuses)
    if guard.ended is not None:
        word = "IN" if guard.ended else "NOT IN"
        yield f"status {word} ({_places(ENDED)})", ENDED
    if guard.epoch is None:
        yield "driver_epoch IS NULL", ()
    elif not isinstance(guard.epoch, Unset):
        yield "driver_epoch = %s", (guard.epoch,)
    if guard.watched is not None:
        yield f"detached_since IS {'' if guard.watched else 'NOT '}NULL", ()
    if guard.detached_before is not None:
        yield "detached_since <= %s", (guard.detached_before,)
    if guard.silent_before is not None:
        yield "heartbeat_at <= %s", (guard.silent_before,)
    if not isinstance(guard.unleased_at, Unset):
        now, params = "%s", (guard.unleased_at,)
        if guard.unleased_at is None:
            clock = DatabaseMilliseconds()
            now, params = clock.as_sql(None, connection)  # type: ignore[arg-type]
        yield f"(leased_until IS NULL OR leased_until <= {now})", params


def _places(values: Any) -> str:
    return ", ".join(["%s"] * len(values))
