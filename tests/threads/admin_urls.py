"""The admin, and the read API as hosts mount it: as it is, and narrowed to a tenant."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.urls import include, path
from rest_framework.routers import DefaultRouter

from solid_runs.threads.models import ThreadRun
from solid_runs.threads.rest_framework.interrupt_stores import InterruptStoreViewSet
from solid_runs.threads.rest_framework.stores import RunStoreViewSet
from solid_runs.threads.rest_framework.views import ThreadRunViewSet


class TenantRuns(ThreadRunViewSet):
    """Everybody sees the runs of the scope that bears their name."""

    queryset = ThreadRun.objects.all()

    def visible_runs(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(scope=self.request.user.get_username())


router = DefaultRouter()
router.register("runs-of-threads", ThreadRunViewSet)
router.register("tenant-runs-of-threads", TenantRuns, basename="tenantthreadrun")
# Beside the stores, since one schema describes both.
router.register("thread-runs", RunStoreViewSet, basename="thread-run-store")
router.register("thread-interrupts", InterruptStoreViewSet, basename="thread-interrupt-store")

urlpatterns = [path("admin/", admin.site.urls), path("api/", include(router.urls))]
