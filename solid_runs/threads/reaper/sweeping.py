"""One pass over the runs of a store."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from solid_runs.threads.reaper.finalising import Overran, failure_within
from solid_runs.threads.reaper.outcomes import PRODUCING, UNKNOWN, Finished, Outcome
from solid_runs.threads.records import RunRecord, Status
from solid_runs.threads.values import LARGEST

logger: Final = logging.getLogger("solid_runs.threads")

LEASE_MARGIN_MS: Final = 30_000
"""For what a reaper does with a run beside the finaliser."""

Probe: TypeAlias = Callable[[RunRecord], Any]
Finaliser: TypeAlias = Callable[[RunRecord], Any]


class Sweep:
    """One pass over the runs of a store."""

    def __init__(
        self,
        store: Any,
        *,
        ttl_ms: int,
        stall_ms: int,
        now: int | None,
        limit: int | None,
        probe: Probe | None,
        finalise: Finaliser | None,
        budget_ms: int,
        dry_run: bool,
    ) -> None:
        self.store, self.given_now, self.limit, self.dry_run = store, now, limit, dry_run
        self.ttl_ms, self.stall_ms, self.budget_ms = ttl_ms, stall_ms, budget_ms
        self.probe, self.finalise = probe, finalise

    def outcomes(self) -> Iterator[tuple[RunRecord, Outcome]]:
        now = self._now()
        self.expires_at, self.stalls_at = now - self.ttl_ms, now - self.stall_ms
        detached = self.store.list_reclaimable(now, 0)
        past = [record for record in detached if self._is_past(record)]
        rest = [record for record in detached if not self._is_past(record)]
        for record in _some(past, self.limit):
            yield record, self._outcome(self._expire, record)
        room = None if self.limit is None else max(0, self.limit - len(past))
        for record in _some(rest, room):
            yield record, self._outcome(self._ask, record)
        # Silence of a run that nobody watches means nothing: its agent goes on in its sandbox.
        silent = self.store.list_stalled(self.given_now, self.stall_ms)
        watched = [record for record in silent if record.detached_since is None]
        for record in _some(watched, self.limit):
            yield record, self._outcome(self._fail, record)

    def _outcome(self, end: Callable[[RunRecord], Outcome], record: RunRecord) -> Outcome:
        try:
            return end(record)
        except Exception:
            logger.exception("Run %r could not be reaped.", record.run_id)
            return Outcome.ERROR

    # Each way to end a run

    def _expire(self, record: RunRecord) -> Outcome:
        if self.dry_run:
            return Outcome.EXPIRED
        patch: dict[str, Any] = {"cancel_requested": True}
        if self.finalise is None:  # it ends as it is claimed, so that no viewer comes between
            patch |= {"status": Status.ABORTED, "finished_at": self._now()}
        claim = self._claim(record, patch, detached_before=self.expires_at)
        if not claim:
            return Outcome.NOT_CLAIMED
        if self.finalise is None:
            return Outcome.EXPIRED
        outcome = self._finalise(record, self.finalise)
        end = {"status": Status.ABORTED, "finished_at": self._now()}
        # Its driver may have paused it meanwhile, of which nobody would know any more; an end that
        # somebody wrote stays, and so does a run that was claimed since.
        live = [Status.RUNNING, Status.INTERRUPTED]
        ended = self.store.update_if(record.run_id, end, status=live, epoch=claim.epoch)
        return outcome if ended else Outcome.NOT_CLAIMED

    def _finalise(self, record: RunRecord, finalise: Finaliser) -> Outcome:
        latest = self.store.get(record.run_id) or record
        failure = failure_within(self.budget_ms / 1000, finalise, latest)
        if failure is None:
            return Outcome.EXPIRED
        overran = isinstance(failure, Overran)
        logger.error(
            "The finaliser %s for run %r, which is aborted all the same.",
            f"takes longer than {self.budget_ms / 1000:g} seconds" if overran else "failed",
            record.run_id,
            exc_info=None if overran else failure,
        )
        return Outcome.FINALISER_OVERRAN if overran else Outcome.FINALISER_FAILED

    def _ask(self, record: RunRecord) -> Outcome:
        answer = UNKNOWN if self.probe is None else self.probe(record)
        if isinstance(answer, Finished):
            return self._finish(record, answer)
        if answer in (PRODUCING, UNKNOWN):
            return Outcome(answer)
        raise TypeError(f"A probe gives Finished(...), PRODUCING or UNKNOWN, not {answer!r}.")

    def _finish(self, record: RunRecord, finished: Finished) -> Outcome:
        if self.dry_run:
            return Outcome.FINISHED
        end = dict(finished.patch)
        if end.get("finished_at") is None:
            end["finished_at"] = self._now()
        claim = self._claim(
            record, end, detached_before=record.detached_since, epoch=record.driver_epoch
        )
        return Outcome.FINISHED if claim else Outcome.NOT_CLAIMED

    def _fail(self, record: RunRecord) -> Outcome:
        if self.dry_run:
            return Outcome.STALLED
        message = f"Nothing was heard of its driver for {self.stall_ms / 1000:g} seconds or longer."
        end = {
            "status": Status.FAILED,
            "error": {"message": message, "code": "stalled"},
            "finished_at": self._now(),
        }
        claim = self._claim(
            record, end, watched=True, silent_before=self.stalls_at, epoch=record.driver_epoch
        )
        return Outcome.STALLED if claim else Outcome.NOT_CLAIMED

    # Steps

    def _claim(self, record: RunRecord, patch: dict[str, Any], **conditions: Any) -> Any:
        """Claim it and write the patch in one step, so that nobody comes between."""
        return self.store.claim(
            record.run_id,
            status=Status.RUNNING,
            lease_ms=min(self.budget_ms + LEASE_MARGIN_MS, LARGEST),
            now=self.given_now,
            patch=patch,
            **conditions,
        )

    def _is_past(self, record: RunRecord) -> bool:
        return record.detached_since is not None and record.detached_since <= self.expires_at

    def _now(self) -> int:
        return int(self.store.now()) if self.given_now is None else self.given_now


def _some(records: list[RunRecord], count: int | None) -> list[RunRecord]:
    """So many by chance, so that none is left out for ever."""
    if count is None or count >= len(records):
        return records
    return random.sample(records, count)
