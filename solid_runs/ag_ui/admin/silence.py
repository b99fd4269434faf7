"""Runs that go on by their status while nothing has been heard of their owner."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from solid_runs.ag_ui.records import ACTIVE
from solid_runs.conf import setting

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from solid_runs.ag_ui.models import ReservedRun


def silent(runs: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    return runs.filter(status__in=ACTIVE, alive_at__lt=_since(now))


def is_silent(run: ReservedRun, now: datetime) -> bool:
    return run.status in ACTIVE and run.alive_at < _since(now)


def _since(now: datetime) -> datetime:
    return now - timedelta(seconds=setting("AG_UI_STALL_AFTER"))
