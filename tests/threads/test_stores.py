"""The stores of the package, and what the conformance suite says of others."""

from __future__ import annotations

import subprocess
import sys
import unittest
from typing import Any, ClassVar

import pytest
from django.test import SimpleTestCase, TestCase, TransactionTestCase

from solid_runs.testing.threads import (
    InterruptStoreConformance,
    InterruptStoreRaces,
    RunStoreConformance,
    RunStoreRaces,
)
from solid_runs.testing.threads.capabilities import OPTIONAL, REQUIRED
from solid_runs.testing.threads.conformance import ATTEMPTS
from solid_runs.threads.exceptions import InvalidRecord
from solid_runs.threads.interrupt_stores.database import DatabaseInterruptStore
from solid_runs.threads.interrupt_stores.memory import InterruptRows, MemoryInterruptStore
from solid_runs.threads.models import ThreadRun
from solid_runs.threads.records import checked_patch
from solid_runs.threads.stores.base import BaseRunStore, RunStore
from solid_runs.threads.stores.database import DatabaseRunStore
from solid_runs.threads.stores.guards import Guard
from solid_runs.threads.stores.memory import MemoryRunStore, Rows


class InMemory:
    def make_store(self, **options: Any) -> MemoryRunStore:
        self.rows = getattr(self, "rows", None) or Rows()
        return MemoryRunStore(rows=self.rows, **options)

    def store_status(self, run_id: str, status: str) -> None:
        self.store.store._write(run_id, {"status": status}, Guard())


class InDatabase:
    def make_store(self, **options: Any) -> DatabaseRunStore:
        return DatabaseRunStore(using=self.using, **options)

    def store_status(self, run_id: str, status: str) -> None:
        ThreadRun.objects.using(self.using).filter(run_id=run_id).update(status=status)


@pytest.mark.once
class TestMemoryRunStore(InMemory, RunStoreConformance, unittest.TestCase):
    pass


class TestMemoryRunStoreAsync(TestMemoryRunStore):
    asynchronous = True


class TestDatabaseRunStore(InDatabase, RunStoreConformance, TestCase):
    pass


class TestDatabaseRunStoreAsync(TestDatabaseRunStore):
    asynchronous = True


class TestDatabaseRunStoreElsewhere(InDatabase, RunStoreConformance, TestCase):
    databases = {"other"}  # a statement on default is an error
    using = "other"


@pytest.mark.once
class TestMemoryRunStoreRaces(InMemory, RunStoreRaces, unittest.TestCase):
    pass


class TestDatabaseRunStoreRaces(InDatabase, RunStoreRaces, TransactionTestCase):
    pass


class InterruptsInMemory:
    def make_store(self, **options: Any) -> MemoryInterruptStore:
        self.rows = getattr(self, "rows", None) or InterruptRows()
        return MemoryInterruptStore(rows=self.rows, **options)


class InterruptsInDatabase:
    def make_store(self, **options: Any) -> DatabaseInterruptStore:
        return DatabaseInterruptStore(using=self.using, **options)


@pytest.mark.once
class TestMemoryInterruptStore(InterruptsInMemory, InterruptStoreConformance, unittest.TestCase):
    pass


class TestMemoryInterruptStoreAsync(TestMemoryInterruptStore):
    asynchronous = True


class TestDatabaseInterruptStore(InterruptsInDatabase, InterruptStoreConformance, TestCase):
    pass


class TestDatabaseInterruptStoreAsync(TestDatabaseInterruptStore):
    asynchronous = True


class TestDatabaseInterruptStoreElsewhere(
    InterruptsInDatabase, InterruptStoreConformance, TestCase
):
    databases = {"other"}
    using = "other"


@pytest.mark.once
class TestMemoryInterruptStoreRaces(InterruptsInMemory, InterruptStoreRaces, unittest.TestCase):
    pass


class TestDatabaseInterruptStoreRaces(
    InterruptsInDatabase, InterruptStoreRaces, TransactionTestCase
):
    pass


# A store that cannot be read


@pytest.mark.once
def test_a_store_that_cannot_be_read_fences_no_healthy_holder(caplog):
    class Unreadable(MemoryRunStore):
        def get(self, run_id: str) -> Any:
            raise ConnectionError("The storage is away.")

    store = Unreadable()
    store.create_or_resume("r1", "t1", 1)
    holder = store.claim("r1")
    assert holder.is_superseded() is False
    assert "Run 'r1' cannot be read; its claim stands." in caplog.text
    assert holder.update({"status": "completed"}) is True


# What the suite says of a store that lacks something


class Plain:
    """A host's own store with no more than the protocol, over one of ours."""

    def __init__(self, clock: Any = None) -> None:
        self.kept = MemoryRunStore(clock=clock)
        self.kept._after_commit = lambda send: None

    def create_or_resume(
        self,
        run_id: str,
        thread_id: str,
        started_at: int,
        status: Any = None,
        parent_run_id: Any = None,
        subagent_run_id: Any = None,
        name: Any = None,
    ) -> Any:
        given = (status, parent_run_id, subagent_run_id, name)
        return self.kept.create_or_resume(run_id, thread_id, started_at, *given)

    def update(self, run_id: str, patch: Any) -> None:
        """Refuses a text that it would have to clean."""
        if "\ufffd" in str(checked_patch(patch)):
            raise InvalidRecord("error.message", "This holds a NUL or half of a character.")
        self.kept.update(run_id, patch)

    def get(self, run_id: str) -> Any:
        return self.kept.get(run_id)

    def find_active_run(self, thread_id: str) -> Any:
        return self.kept.find_active_run(thread_id)


class Shared(MemoryRunStore):
    """The first store of a test, which names no scope, has new rows; the others share them."""

    latest: ClassVar[Rows]

    def __init__(self, **options: Any) -> None:
        if "scope" not in options:
            Shared.latest = Rows()
        super().__init__(rows=Shared.latest, **options)


def outcome(store: Any, leaves_out: Any) -> unittest.TestResult:
    """Run the suite over a store, with no way of the tests' own to store a status."""

    class Suite(RunStoreConformance, SimpleTestCase):
        def make_store(self, **options: Any) -> Any:
            return store(**options)

    tests = type("Suite", (Suite,), {"leaves_out": leaves_out})
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
    return result


def failures(result: unittest.TestResult) -> dict[str, str]:
    return {
        getattr(test, "test_case", test)._testMethodName: told
        for test, told in [*result.failures, *result.errors]
    }


@pytest.mark.once
def test_a_store_with_no_more_than_the_protocol_passes_when_it_says_so():
    assert isinstance(Plain(), RunStore)
    result = outcome(Plain, set(OPTIONAL))
    assert failures(result) == {}
    assert result.testsRun > 100
    assert not result.skipped


@pytest.mark.once
def test_a_capability_that_is_missing_and_not_declared_is_named_with_what_to_do():
    result = failures(outcome(Plain, set(OPTIONAL) - {"prune", "claim", "touch", "store_status"}))
    told = result["test_every_method_is_there_or_declared_as_left_out"]
    assert "Plain has no prune(). Write it, or declare it: leaves_out = {'prune'}" in told
    assert "Plain has no touch(). Write it, or declare it: leaves_out = {'touch'}" in told
    assert "Plain has no claim()" in result["test_t4_a_worker_that_comes_back_late_ends_nothing"]
    told = result["test_a_run_of_unknown_status_is_not_active"]
    assert "Suite has no store_status(). Write it, or declare it" in told


@pytest.mark.once
def test_the_twins_for_async_code_are_missed_too():
    told = failures(outcome(Plain, set(OPTIONAL) - {"async"}))
    missing = told["test_every_method_is_there_or_declared_as_left_out"]
    assert "Plain has no aget(). Write it, or declare it: leaves_out = {'async'}" in missing


@pytest.mark.once
@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_method_cannot_be_left_out(name):
    told = failures(outcome(type("Forgetful", (Plain,), {name: None}), set(OPTIONAL)))
    missing = told["test_every_method_is_there_or_declared_as_left_out"]
    assert f"Forgetful has no {name}(). Write it." in missing


@pytest.mark.once
@pytest.mark.parametrize("capability", sorted(set(OPTIONAL) - {"store_status"}))
def test_a_capability_that_is_declared_as_left_out_and_there_is_told(capability):
    result = failures(outcome(Shared, {capability, "store_status"}))
    assert list(result) == [f"test_{capability}_is_not_offered"]
    assert f"Shared offers '{capability}'" in result[f"test_{capability}_is_not_offered"]


@pytest.mark.once
def test_every_capability_can_be_tried():
    assert set(ATTEMPTS) == set(OPTIONAL)
    optional = InterruptStoreConformance.capabilities.optional
    assert set(InterruptStoreConformance.attempts) == set(optional)


@pytest.mark.once
@pytest.mark.parametrize("suite", [RunStoreConformance, RunStoreRaces, InterruptStoreConformance])
def test_a_capability_that_does_not_exist_cannot_be_left_out(suite):
    with pytest.raises(ValueError, match=r"leaves out \['pruning'\]; what can be left out is"):
        type("Suite", (suite,), {"leaves_out": {"pruning"}})


@pytest.mark.once
def test_a_race_of_what_is_left_out_is_left_out():
    class Races(RunStoreRaces, SimpleTestCase):
        leaves_out = frozenset({"claim"})

    names = unittest.defaultTestLoader.getTestCaseNames(Races)
    assert "test_creates_at_once_make_one_record" in names
    assert "test_claims_at_once_get_different_epochs" not in names


@pytest.mark.once
@pytest.mark.parametrize("suite", [RunStoreConformance, InterruptStoreConformance])
def test_no_part_of_a_suite_hides_a_test_or_a_helper_of_another(suite):
    names = [name for part in suite.__bases__ for name in vars(part) if name[:2] != "__"]
    assert sorted(names) == sorted(set(names))


@pytest.mark.once
def test_the_suite_needs_no_pytest():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import unittest, django; django.setup()\n"
        "from solid_runs.threads.stores.memory import MemoryRunStore, Rows\n"
        "from solid_runs.testing.threads import RunStoreConformance\n"
        "class Suite(RunStoreConformance, unittest.TestCase):\n"
        "    leaves_out = {'store_status'}\n"
        "    def make_store(self, **options):\n"
        "        self.rows = getattr(self, 'rows', None) or Rows()\n"
        "        return MemoryRunStore(rows=self.rows, **options)\n"
        "result = unittest.TestResult()\n"
        "unittest.defaultTestLoader.loadTestsFromTestCase(Suite).run(result)\n"
        "print(result.testsRun > 100, result.failures + result.errors)\n"
    )
    env = {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    assert done.stdout.strip() == "True []", done.stderr[-2000:]


def test_both_stores_are_run_stores():
    for store in (MemoryRunStore(), DatabaseRunStore()):
        assert isinstance(store, BaseRunStore)
        assert isinstance(store, RunStore)
