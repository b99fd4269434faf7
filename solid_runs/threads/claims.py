"""Who drives a run: a claim with its number, which fences what its holder writes too late."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from solid_runs.threads.records import RunRecord
from solid_runs.twins import twin

logger: Final = logging.getLogger("solid_runs.threads")

Reason: TypeAlias = Literal["unknown", "terminal", "superseded", "condition"]


class ClaimedStore(Protocol):
    """What a claim needs of the store that gave it."""

    def get(self, run_id: str) -> RunRecord | None: ...

    def touch(self, run_id: str, epoch: int, now: int | None = None) -> bool: ...

    def update_as_driver(self, run_id: str, epoch: int, patch: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True)
class Claim:
    """The right to drive a run, as long as this is the epoch that the run is at."""

    store: ClaimedStore
    run_id: str
    epoch: int

    def update(self, patch: Mapping[str, Any]) -> bool:
        """Write as the driver of the run; False, and nothing written, for an end too late.

        A superseded holder cannot end the run, nor bring an ended one back; anything else it
        writes, such as its usage, stands. InvalidRecord as for update().
        """
        written = self.store.update_as_driver(self.run_id, self.epoch, patch)
        if not written:
            logger.warning(
                "Run %r is gone, was taken over or ended since claim %s: its %s is not written.",
                self.run_id,
                self.epoch,
                ", ".join(map(str, patch)),
            )
        return written

    def touch(self, now: int | None = None) -> bool:
        """Give a sign of life; False, and nothing written, once the run ended or was taken over.

        ``now``: by the clock that list_stalled() is asked with; the storage's own if None.
        """
        return self.store.touch(self.run_id, self.epoch, now)

    def is_superseded(self) -> bool:
        """Whether this is no longer the claim that the run is at, or the run is gone.

        False where the store cannot be read: that is no reason to stop a healthy driver.
        """
        try:
            record = self.store.get(self.run_id)
        except Exception:
            logger.warning("Run %r cannot be read; its claim stands.", self.run_id, exc_info=True)
            return False
        return record is None or record.driver_epoch != self.epoch

    aupdate = twin(update)
    atouch = twin(touch)
    ais_superseded = twin(is_superseded)


@dataclass(frozen=True)
class Refusal:
    """Why a run was not claimed: false, where a Claim is true.

    ``unknown``: there is no such run; ``terminal``: it has ended; ``superseded``: it is not at the
    epoch that was expected; ``condition``: somebody watches it, or gave a sign of life, or another
    reaper is at it.
    """

    reason: Reason

    def __bool__(self) -> bool:
        return False
