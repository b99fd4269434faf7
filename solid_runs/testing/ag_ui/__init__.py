"""What a store of AG-UI runs holds, as tests for any store.

With Django's test runner or pytest::

    from django.test import TestCase
    from solid_runs.testing.ag_ui import RunStoreConformance

    class MyStoreTests(RunStoreConformance, TestCase):
        def make_store(self, **options):
            return MyStore(**options)

    class MyAsyncStoreTests(MyStoreTests):
        asynchronous = True
"""

from __future__ import annotations

from solid_runs.testing.ag_ui.clocks import ManualClock
from solid_runs.testing.ag_ui.conformance import RunStoreConformance

__all__ = ["ManualClock", "RunStoreConformance"]
