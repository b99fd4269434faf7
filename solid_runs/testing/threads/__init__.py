"""What a store of the runs of threads holds, as tests for any store.

With Django's test runner or pytest::

    from django.test import TestCase, TransactionTestCase
    from solid_runs.testing.threads import RunStoreConformance, RunStoreRaces

    class MyStoreTests(RunStoreConformance, TestCase):
        leaves_out = {"store_status"}

        def make_store(self, **options):
            return MyStore(**options)

    class MyAsyncStoreTests(MyStoreTests):
        asynchronous = True

What only threads find out is a suite of its own, for a TransactionTestCase, whose threads see what
was written; a store that needs no database may have a TestCase of unittest::

    class MyStoreRaces(RunStoreRaces, TransactionTestCase):
        def make_store(self, **options):
            return MyStore(**options)

Stores of interrupts have suites of the same kind, InterruptStoreConformance and
InterruptStoreRaces.
"""

from __future__ import annotations

from solid_runs.testing.threads.clocks import ManualClock
from solid_runs.testing.threads.conformance import RunStoreConformance
from solid_runs.testing.threads.interrupts import InterruptStoreConformance, InterruptStoreRaces
from solid_runs.testing.threads.races import RunStoreRaces

__all__ = [
    "InterruptStoreConformance",
    "InterruptStoreRaces",
    "ManualClock",
    "RunStoreConformance",
    "RunStoreRaces",
]
