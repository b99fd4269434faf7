"""The admin of runs: RunAdmin is a base that a host registers with its model.

@admin.register(AgentRun)
class AgentRunAdmin(RunAdmin):
    pass
"""

from __future__ import annotations

from solid_runs.admin.filters import CreatedFilter, StatusFilter
from solid_runs.admin.options import RunAdmin

__all__ = ["CreatedFilter", "RunAdmin", "StatusFilter"]
