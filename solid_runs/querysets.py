"""Queries over runs, by the contract's names, on whatever columns a table has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models import BigIntegerField, ExpressionWrapper, F, Sum, Value
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from solid_runs.columns import columns_of
from solid_runs.event_logs.log import begin_log
from solid_runs.statuses import IN_PROGRESS, TERMINAL, RunStatus

if TYPE_CHECKING:
    from solid_runs.mixin import AgentRunMixin

_R = TypeVar("_R", bound="AgentRunMixin", covariant=True)


class RunQuerySet(models.QuerySet[_R]):
    """A filter on a column that the table lacks gives the empty queryset."""

    def bulk_create(self, objs: Iterable[_R], *args: Any, **kwargs: Any) -> list[_R]:
        """Stock Django, but for where the log of each run will be: see AbstractRunEvent."""
        runs, self._for_write = list(objs), True
        for run in runs:
            begin_log(run, columns_of(self.model), self.db)
        return super().bulk_create(runs, *args, **kwargs)

    def recent(self) -> Self:
        """Newest first: by creation where that column is indexed, else by primary key."""
        return self.order_by(*columns_of(self.model).recency)

    def successful(self) -> Self:
        return self.for_status(RunStatus.COMPLETE)

    def failed(self) -> Self:
        return self.for_status(RunStatus.FAILED)

    def in_progress(self) -> Self:
        """Pending or running."""
        return self.filter(status__in=sorted(IN_PROGRESS))

    def finished(self) -> Self:
        """Complete, failed or cancelled."""
        return self.filter(status__in=sorted(TERMINAL))

    def for_status(self, status: RunStatus | str | int) -> Self:
        """By member, name or integer; ValueError for anything else."""
        if status is None:
            raise ValueError("for_status() takes a status, by member, name or integer.")
        return self.filter(status=status)

    def today(self) -> Self:
        """Created since local midnight and before the next one."""
        if "created_at" not in columns_of(self.model):
            return self.none()
        midnight = local_midnight()
        return self.filter(created_at__gte=midnight, created_at__lt=local_midnight(days=1))

    def for_agent(self, name: str) -> Self:
        return self._where("agent_name", name)

    def for_action(self, name: str) -> Self:
        return self._where("action_name", name)

    def with_trace(self, trace_id: str) -> Self:
        return self.none() if trace_id is None else self._where("trace_id", str(trace_id))

    def _where(self, name: str, value: Any) -> Self:
        return self.filter(**{name: value}) if name in columns_of(self.model) else self.none()

    def with_total_tokens(self) -> Self:
        """Annotate ``tokens``, the total_tokens of the contract, in 64 bits.

        For ordering and filtering, which the computed property cannot do.
        """
        return self.annotate(tokens=total_tokens_expression(self.model))

    def total_tokens_sum(self) -> int:
        """The sum of total_tokens over the rows, reported or added up; 0 for no rows."""
        total = self.aggregate(total=Sum(total_tokens_expression(self.model)))["total"]
        return int(total or 0)

    async def atotal_tokens_sum(self) -> int:
        """See total_tokens_sum()."""
        return await sync_to_async(self.total_tokens_sum)()


def total_tokens_expression(model: type[models.Model]) -> Any:
    columns = columns_of(model)
    counts = [
        Coalesce(Cast(F(name), BigIntegerField()), Value(0), output_field=BigIntegerField())
        for name in ("input_tokens", "output_tokens")
        if name in columns
    ]
    total: Any = Value(0, output_field=BigIntegerField())
    for count in counts:
        total = count if isinstance(total, Value) else total + count
    if "reported_total_tokens" not in columns:
        # Django takes a sum for one of 32 bits, which no figure past them is compared with.
        return ExpressionWrapper(total, output_field=BigIntegerField())
    reported = Cast(F("reported_total_tokens"), BigIntegerField())
    return Coalesce(reported, total, output_field=BigIntegerField())


def local_midnight(days: int = 0) -> datetime:
    """The start of today, or of the day so many days from it, in the current time zone."""
    now = timezone.now()
    today = timezone.localdate(now) if timezone.is_aware(now) else now.date()
    midnight = datetime.combine(today + timedelta(days=days), time.min)
    return timezone.make_aware(midnight) if timezone.is_aware(now) else midnight
