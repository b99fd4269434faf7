"""What the stores hold, held over HTTP too."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import TestCase, TransactionTestCase, override_settings

from solid_runs.testing.threads import (
    InterruptStoreConformance,
    InterruptStoreRaces,
    RunStoreConformance,
    RunStoreRaces,
)
from solid_runs.threads.models import ThreadRun
from tests.threads.http_store import HttpInterruptStore, HttpRunStore


class OverHttp:
    leaves_out = {"leases", "prune"}

    def make_store(self, **options: Any) -> HttpRunStore:
        return HttpRunStore(**options)

    def store_status(self, run_id: str, status: str) -> None:
        ThreadRun.objects.filter(run_id=run_id).update(status=status)


@override_settings(ROOT_URLCONF="tests.threads.urls")
class TestHttpRunStore(OverHttp, RunStoreConformance, TestCase):
    pass


@pytest.mark.once  # the twins know no database
class TestHttpRunStoreAsync(TestHttpRunStore):
    asynchronous = True


@override_settings(ROOT_URLCONF="tests.threads.urls")
class TestHttpRunStoreRaces(OverHttp, RunStoreRaces, TransactionTestCase):
    pass


class InterruptsOverHttp:
    leaves_out = {"cleaning"}  # the API refuses what it would have to clean

    def make_store(self, **options: Any) -> HttpInterruptStore:
        return HttpInterruptStore(**options)


@override_settings(ROOT_URLCONF="tests.threads.urls")
class TestHttpInterruptStore(InterruptsOverHttp, InterruptStoreConformance, TestCase):
    pass


@pytest.mark.once  # the twins know no database
class TestHttpInterruptStoreAsync(TestHttpInterruptStore):
    asynchronous = True


@override_settings(ROOT_URLCONF="tests.threads.urls")
class TestHttpInterruptStoreRaces(InterruptsOverHttp, InterruptStoreRaces, TransactionTestCase):
    pass
