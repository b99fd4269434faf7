"""The admin of AG-UI runs: an inbox for what waits for an answer, and the runs that asked.

Both are registered. A host with rules of its own, of who may see or decide what, subclasses one of
them and registers that instead.
"""

from __future__ import annotations

from django.contrib import admin

from solid_runs.ag_ui.admin.inbox import RunInterruptAdmin
from solid_runs.ag_ui.admin.runs import ReservedRunAdmin
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt

__all__ = ["ReservedRunAdmin", "RunInterruptAdmin"]

admin.site.register(ReservedRun, ReservedRunAdmin)
admin.site.register(RunInterrupt, RunInterruptAdmin)
