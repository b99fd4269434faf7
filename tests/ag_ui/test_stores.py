"""Both stores of the package, and what the conformance suite says of others."""

from __future__ import annotations

import subprocess
import sys
import unittest
from typing import Any

import pytest
from django.test import SimpleTestCase, TestCase, TransactionTestCase

from solid_runs.ag_ui.exceptions import ConfigurationError
from solid_runs.ag_ui.stores.base import BaseStore, RunStore
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.ag_ui.stores.memory import MemoryStore
from solid_runs.testing.ag_ui import ManualClock, RunStoreConformance, RunStoreRaces
from solid_runs.testing.ag_ui.capabilities import OPTIONAL, REQUIRED
from solid_runs.testing.ag_ui.conformance import ATTEMPTS


@pytest.mark.once
class TestMemoryStore(RunStoreConformance, unittest.TestCase):
    def make_store(self, **options: Any) -> MemoryStore:
        return MemoryStore(**options)


class TestMemoryStoreAsync(TestMemoryStore):
    asynchronous = True


class TestDatabaseStore(RunStoreConformance, TestCase):
    def make_store(self, **options: Any) -> DatabaseStore:
        return DatabaseStore(**options)


class TestDatabaseStoreAsync(TestDatabaseStore):
    asynchronous = True


class TestDatabaseStoreElsewhere(RunStoreConformance, TestCase):
    databases = {"other"}  # a statement on default is an error
    using = "other"

    def make_store(self, **options: Any) -> DatabaseStore:
        return DatabaseStore("other", **options)


@pytest.mark.once
class TestMemoryStoreRaces(RunStoreRaces, unittest.TestCase):
    def make_store(self, **options: Any) -> MemoryStore:
        return MemoryStore(**options)


class TestDatabaseStoreRaces(RunStoreRaces, TransactionTestCase):
    def make_store(self, **options: Any) -> DatabaseStore:
        return DatabaseStore(**options)


# What the suite says of a store that lacks something


LEFT_OUT = set(OPTIONAL)


class Plain:
    """A host's own store with no more than the protocol, over one of ours."""

    def __init__(self, **options: Any) -> None:
        self.kept = MemoryStore(**options)

    def reserve(self, scope: Any, thread_id: str, run_id: str, digest: str) -> Any:
        return self.kept.reserve(scope, thread_id, run_id, digest)


for name in REQUIRED[1:]:
    setattr(
        Plain,
        name,
        lambda self, *args, _name=name, **kwargs: getattr(self.kept, _name)(*args, **kwargs),
    )


def outcome(store: Any, leaves_out: Any, *, asynchronous: bool = False) -> unittest.TestResult:
    """Run the suite over a store."""

    class Suite(RunStoreConformance, SimpleTestCase):
        def make_store(self, **options: Any) -> Any:
            return store(**options)

    Suite.leaves_out = leaves_out
    Suite = type("Suite", (Suite,), {"asynchronous": asynchronous})  # with its tests replaced
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Suite).run(result)
    return result


def failures(result: unittest.TestResult) -> dict[str, str]:
    return {
        test.id().rpartition(".")[2].partition(" ")[0]: told
        for test, told in [*result.failures, *result.errors]
    }


def test_a_store_with_no_more_than_the_protocol_passes_when_it_says_so():
    assert isinstance(Plain(), RunStore)

    class Quiet(Plain):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.kept._after_commit = lambda send: None

    result = outcome(Quiet, LEFT_OUT)
    assert failures(result) == {}
    assert result.testsRun > 100
    assert not result.skipped


def test_a_capability_that_is_missing_and_not_declared_is_named_with_what_to_do():
    result = failures(outcome(Plain, LEFT_OUT - {"prune", "stalled", "signals"}))
    told = result["test_every_method_is_there_or_declared_as_left_out"]
    assert "Plain has no prune(). Write it, or declare it: leaves_out = {'prune'}" in told
    assert "Plain has no fail_stalled(). Write it, or declare it: leaves_out = {'stalled'}" in told
    assert "Plain has no prune()" in result["test_old_ended_runs_are_deleted"]


def test_the_twins_for_async_code_are_missed_too():
    result = failures(outcome(Plain, LEFT_OUT - {"async"}))
    told = result["test_every_method_is_there_or_declared_as_left_out"]
    assert "Plain has no afind(). Write it, or declare it: leaves_out = {'async'}" in told


def test_a_required_method_cannot_be_left_out():
    class Forgetful(Plain):
        find = None

    told = failures(outcome(Forgetful, LEFT_OUT))
    assert (
        "Forgetful has no find(). Write it."
        in told["test_every_method_is_there_or_declared_as_left_out"]
    )


@pytest.mark.parametrize("capability", sorted(OPTIONAL))
def test_a_capability_that_is_declared_as_left_out_and_there_is_told(capability):
    result = failures(outcome(MemoryStore, {capability}))
    assert list(result) == [f"test_{capability}_is_not_offered"]
    assert f"MemoryStore offers '{capability}'" in result[f"test_{capability}_is_not_offered"]


def test_every_capability_can_be_tried():
    assert set(ATTEMPTS) == set(OPTIONAL)


def test_a_capability_that_does_not_exist_cannot_be_left_out():
    with pytest.raises(ValueError, match=r"leaves out \['pruning'\]; what can be left out is"):
        type("Suite", (RunStoreConformance,), {"leaves_out": {"pruning"}})


def test_a_race_of_what_is_left_out_is_left_out():
    class Races(RunStoreRaces, SimpleTestCase):
        leaves_out = frozenset({"stalled"})

    names = unittest.defaultTestLoader.getTestCaseNames(Races)
    assert "test_an_identity_is_claimed_by_one" in names
    assert "test_each_stalled_run_is_failed_by_one" not in names
    with pytest.raises(ValueError, match=r"leaves out \['pruning'\]"):
        type("Suite", (RunStoreRaces,), {"leaves_out": {"pruning"}})


def test_the_suite_needs_no_pytest():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import unittest, django; django.setup()\n"
        "from solid_runs.ag_ui.stores.memory import MemoryStore\n"
        "from solid_runs.testing.ag_ui import RunStoreConformance\n"
        "class Suite(RunStoreConformance, unittest.TestCase):\n"
        "    def make_store(self, **options):\n"
        "        return MemoryStore(**options)\n"
        "result = unittest.TestResult()\n"
        "unittest.defaultTestLoader.loadTestsFromTestCase(Suite).run(result)\n"
        "print(result.testsRun > 100, result.wasSuccessful())\n"
    )
    env = {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr[-2000:]


# What a store is made with


def test_a_clock_stands_still_until_it_is_moved():
    clock = ManualClock()
    before = clock()
    assert clock() == before
    assert clock.forward(minutes=5) == clock() > before
    assert clock.back(minutes=5) == clock() == before


@pytest.mark.parametrize("store", [MemoryStore, DatabaseStore])
def test_an_unknown_policy_is_refused_when_a_store_is_made(store):
    with pytest.raises(ConfigurationError, match="'queue'"):
        store(policy="queue")


def test_both_stores_are_run_stores():
    assert issubclass(MemoryStore, BaseStore)
    assert issubclass(DatabaseStore, BaseStore)
    assert isinstance(MemoryStore(), RunStore)
    assert isinstance(DatabaseStore(), RunStore)
