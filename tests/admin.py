from __future__ import annotations

from django.contrib import admin

from solid_runs.admin import RunAdmin
from tests.models import (
    AgentOwnedRun,
    ChildRun,
    Document,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
    UUIDDocument,
)

RUN_MODELS = (
    PlatformRun,
    PlatformJsonRun,
    GeneratorRun,
    FreshRun,
    TableRun,
    MinimalRun,
    FreshRunProxy,
    ChildRun,
    AgentOwnedRun,
)

admin.site.register(RUN_MODELS, RunAdmin)
admin.site.register([Document, UUIDDocument])
