from __future__ import annotations

from django.contrib import admin

from example_project.agents.models import Agent, AgentRun, Document, GeneratorRun, PlatformRun
from solid_runs.admin import RunAdmin

admin.site.register([Agent, Document])
admin.site.register([AgentRun, GeneratorRun, PlatformRun], RunAdmin)
