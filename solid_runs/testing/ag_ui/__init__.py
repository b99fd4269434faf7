"""What a store of AG-UI runs holds, as tests for any store.

With Django's test runner or pytest::

    from django.test import TestCase, TransactionTestCase
    from solid_runs.testing.ag_ui import RunStoreConformance, RunStoreRaces

    class MyStoreTests(RunStoreConformance, TestCase):
        def make_store(self, **options):
            return MyStore(**options)

    class MyAsyncStoreTests(MyStoreTests):
        asynchronous = True

What only threads find out is a suite of its own, for a TransactionTestCase, whose threads see what
was written; a store that needs no database may have a TestCase of unittest::

    class MyStoreRaces(RunStoreRaces, TransactionTestCase):
        def make_store(self, **options):
            return MyStore(**options)
"""

from __future__ import annotations

from solid_runs.testing.ag_ui.clocks import ManualClock
from solid_runs.testing.ag_ui.conformance import RunStoreConformance
from solid_runs.testing.ag_ui.races import RunStoreRaces

__all__ = ["ManualClock", "RunStoreConformance", "RunStoreRaces"]
