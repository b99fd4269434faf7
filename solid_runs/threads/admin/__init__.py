"""The admin of the runs of threads: what goes on in a conversation, and what it asked.

Both are registered. A host with rules of its own, of who may see what, subclasses one of them and
registers that instead.
"""

from __future__ import annotations

from django.contrib import admin

from solid_runs.threads.admin.interrupts import ThreadInterruptAdmin
from solid_runs.threads.admin.runs import ThreadRunAdmin
from solid_runs.threads.models import ThreadInterrupt, ThreadRun

__all__ = ["ThreadInterruptAdmin", "ThreadRunAdmin"]

admin.site.register(ThreadRun, ThreadRunAdmin)
admin.site.register(ThreadInterrupt, ThreadInterruptAdmin)
