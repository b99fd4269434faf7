from __future__ import annotations

from rest_framework.routers import DefaultRouter

from example_project.agents.models import AgentRun, GeneratorRun, PlatformRun
from solid_runs.rest_framework.views import RunViewSet


class PlatformRunViewSet(RunViewSet):
    queryset = PlatformRun.objects.all()


class GeneratorRunViewSet(RunViewSet):
    queryset = GeneratorRun.objects.all()


class AgentRunViewSet(RunViewSet):
    queryset = AgentRun.objects.all()


router = DefaultRouter()
router.register("agent-runs", AgentRunViewSet)
router.register("platform-runs", PlatformRunViewSet)
router.register("generator-runs", GeneratorRunViewSet)
