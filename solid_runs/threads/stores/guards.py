"""What must hold of a run in the same step that writes it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from solid_runs.threads.records import TERMINAL, RunRecord
from solid_runs.threads.values import UNSET, Unset


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Each of these is a condition unless it is left out; times are milliseconds since 1970.

    ``statuses``: its status is one of them; ``ended``: whether that is terminal; ``epoch``: exactly
    this one, None for a run that was never claimed; ``watched``: whether somebody watches it;
    ``detached_before``, ``silent_before``: nobody watches, or gave a sign of life, since
    then; ``unleased_at``: no reaper is at it then, by the storage's own clock where that is None.
    """

    statuses: Collection[str] | None = None
    ended: bool | None = None
    epoch: int | Unset | None = UNSET
    watched: bool | None = None
    detached_before: int | None = None
    silent_before: int | None = None
    unleased_at: int | Unset | None = UNSET

    @property
    def allows_ended(self) -> bool:
        """Whether a run that has ended could meet it."""
        if self.ended is not None:
            return self.ended
        return self.statuses is None or bool(TERMINAL.intersection(self.statuses))


def allows(
    guard: Guard,
    record: RunRecord,
    heartbeat_at: int | None = None,
    leased_until: int | None = None,
) -> bool:
    """Whether a run is as the guard demands; ``unleased_at`` is a time here."""
    return (
        (guard.statuses is None or record.status in guard.statuses)
        and (guard.ended is None or record.terminal is guard.ended)
        and (isinstance(guard.epoch, Unset) or record.driver_epoch == guard.epoch)
        and (guard.watched is None or (record.detached_since is None) is guard.watched)
        and _is_before(record.detached_since, guard.detached_before)
        and _is_before(heartbeat_at, guard.silent_before)
        and _is_unleased(leased_until, guard.unleased_at)
    )


def _is_before(value: int | None, cutoff: int | None) -> bool:
    return cutoff is None or (value is not None and value <= cutoff)


def _is_unleased(until: int | None, now: int | Unset | None) -> bool:
    return not isinstance(now, int) or until is None or until <= now
