from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import serializers, viewsets
from rest_framework.permissions import IsAdminUser
from rest_framework.routers import DefaultRouter

from example_project.agents.models import AgentRun, GeneratorRun, PlatformRun, Refund
from example_project.agents.tokens import TokenAuthentication
from solid_runs.ag_ui.rest_framework.views import InterruptViewSet, ReservedRunViewSet
from solid_runs.rest_framework.views import RunViewSet
from solid_runs.threads.rest_framework.interrupt_stores import InterruptStoreViewSet
from solid_runs.threads.rest_framework.stores import RunStoreViewSet
from solid_runs.threads.rest_framework.views import ThreadRunViewSet


class PlatformRunViewSet(RunViewSet):
    queryset = PlatformRun.objects.all()


class GeneratorRunViewSet(RunViewSet):
    queryset = GeneratorRun.objects.all()


class AgentRunViewSet(RunViewSet):
    queryset = AgentRun.objects.all()


class RefundSerializer(serializers.ModelSerializer[Refund]):
    class Meta:
        model = Refund
        fields = ["id", "thread_id", "trace_id", "tool_call_id", "amount", "made_at"]


class RefundViewSet(viewsets.ReadOnlyModelViewSet[Refund]):
    """What the assistant has refunded, the newest first; ``?thread=`` names a thread."""

    permission_classes = [IsAdminUser]
    serializer_class = RefundSerializer

    def get_queryset(self) -> QuerySet[Refund]:
        refunds = Refund.objects.order_by("-pk")
        thread = self.request.query_params.get("thread")
        return refunds if thread is None else refunds.filter(thread_id=thread)


class ThreadStore(RunStoreViewSet):
    """The store for programs, such as a Node server: each user has a scope of its own."""

    authentication_classes = [TokenAuthentication]


class ThreadInterruptStore(InterruptStoreViewSet):
    authentication_classes = [TokenAuthentication]


router = DefaultRouter()
router.register("agent-runs", AgentRunViewSet)
router.register("platform-runs", PlatformRunViewSet)
router.register("generator-runs", GeneratorRunViewSet)
router.register("interrupts", InterruptViewSet)
router.register("reserved-runs", ReservedRunViewSet)
router.register("refunds", RefundViewSet, basename="refund")
router.register("thread-runs", ThreadRunViewSet)
router.register("thread-store", ThreadStore, basename="thread-run-store")
router.register("thread-interrupts", ThreadInterruptStore, basename="thread-interrupt-store")
