from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.urls import include, path
from rest_framework.routers import DefaultRouter

from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.rest_framework.views import InterruptViewSet, ReservedRunViewSet


class TenantInterrupts(InterruptViewSet):
    """Everybody sees the interrupts of the scope that bears their name."""

    queryset = RunInterrupt.objects.all()

    def visible_interrupts(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(run__scope=self.request.user.get_username())


class TenantRuns(ReservedRunViewSet):
    queryset = ReservedRun.objects.all()

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(scope=self.request.user.get_username())


router = DefaultRouter()
router.register("interrupts", InterruptViewSet)
router.register("ag-ui-runs", ReservedRunViewSet)
router.register("tenant-interrupts", TenantInterrupts, basename="tenantinterrupt")
router.register("tenant-ag-ui-runs", TenantRuns, basename="tenantreservedrun")

urlpatterns = [path("admin/", admin.site.urls), path("api/", include(router.urls))]
