"""The stores as hosts mount them: as they are, and with a scope that the host decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import include, path
from rest_framework.routers import DefaultRouter

from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.rest_framework.interrupt_stores import InterruptStoreViewSet
from solid_runs.threads.rest_framework.stores import RunStoreViewSet
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.threads.http_store import CLOCK, scope_of


class Scoped:
    """The scope is that of the user, and a test may send what time it is."""

    request: Any

    def get_scope(self) -> Any:
        return scope_of(self.request.user.get_username())

    @property
    def clock(self) -> Callable[[], int] | None:
        now = self.request.headers.get(CLOCK)
        return (lambda: int(now)) if now else None


class ScopedRuns(Scoped, RunStoreViewSet):
    def get_store(self) -> DatabaseRunStore:
        return DatabaseRunStore(self.get_scope(), clock=self.clock)


class ScopedInterrupts(Scoped, InterruptStoreViewSet):
    def get_store(self) -> DatabaseInterruptStore:
        return DatabaseInterruptStore(self.get_scope(), clock=self.clock)


router = DefaultRouter()
router.register("thread-runs", RunStoreViewSet, basename="thread-run-store")
router.register("thread-interrupts", InterruptStoreViewSet, basename="thread-interrupt-store")
router.register("scoped-runs", ScopedRuns, basename="scoped-run-store")
router.register("scoped-interrupts", ScopedInterrupts, basename="scoped-interrupt-store")

urlpatterns = [path("api/", include(router.urls))]
