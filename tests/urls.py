from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.urls import include, path
from rest_framework.routers import DefaultRouter

from solid_runs.rest_framework.views import RunViewSet
from tests.models import (
    AgentOwnedRun,
    ChildRun,
    FreshRun,
    FreshRunProxy,
    GeneratorRun,
    MinimalRun,
    PlatformJsonRun,
    PlatformRun,
    TableRun,
)


class PlatformRuns(RunViewSet):
    queryset = PlatformRun.objects.all()


class PlatformJsonRuns(RunViewSet):
    queryset = PlatformJsonRun.objects.all()


class AgentOwnedRuns(RunViewSet):
    queryset = AgentOwnedRun.objects.all()


class GeneratorRuns(RunViewSet):
    queryset = GeneratorRun.objects.all()


class FreshRuns(RunViewSet):
    queryset = FreshRun.objects.all()


class TableRuns(RunViewSet):
    queryset = TableRun.objects.all()


class ProxyRuns(RunViewSet):
    queryset = FreshRunProxy.objects.all()


class ChildRuns(RunViewSet):
    queryset = ChildRun.objects.all()


class MinimalRuns(RunViewSet):
    queryset = MinimalRun.objects.all()


class TenantRuns(RunViewSet):
    """Everybody sees the runs of the agent that bears their name."""

    queryset = FreshRun.objects.all()

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(agent_name=self.request.user.get_username())


router = DefaultRouter()
router.register("platform-runs", PlatformRuns)
router.register("platform-json-runs", PlatformJsonRuns)
router.register("agent-owned-runs", AgentOwnedRuns)
router.register("generator-runs", GeneratorRuns)
router.register("fresh-runs", FreshRuns)
router.register("table-runs", TableRuns)
router.register("proxy-runs", ProxyRuns)
router.register("child-runs", ChildRuns)
router.register("minimal-runs", MinimalRuns)
router.register("tenant-runs", TenantRuns, basename="tenantrun")

urlpatterns = [path("admin/", admin.site.urls), path("api/", include(router.urls))]
