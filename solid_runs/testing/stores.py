"""What the suites of different stores have in common.

A suite names the methods of its store and what of them may be left out, and stands on StoreSuite::

    CAPABILITIES = Capabilities(
        required=("create", "get"), optional={"async": (), "claim": ("claim",)}
    )
    needs = CAPABILITIES.needs

    class StoreTests(StoreSuite):
        capabilities = CAPABILITIES
        errors = MyError  # the base class of what the store raises

        def setUp(self):
            super().setUp()
            self.store = self.called(self.make_store())

    @needs("claim")
    class Claiming(StoreTests):
        def test_a_claim_is_held(self):
            self.assertTrue(self.store.claim("r1"))

    class MyStoreConformance(Claiming, Offered):
        attempts = {
            "async": Offered.try_twins,
            "claim": lambda test: test.the_method("claim")("r1"),
        }

    class MyStoreRaces(StoreTests):
        def test_a_run_is_claimed_by_one(self):
            told = self.race([partial(self.store.claim, "r1")] * 8)
            self.the_only(Claim, told, Refusal)

``self.store`` goes through the async twins where the class says ``asynchronous = True``;
``self.store.store`` is the store itself. A host puts a suite before a TestCase, and races before a
TransactionTestCase.
"""

from __future__ import annotations

import sys
import threading
import unittest
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final

from asgiref.sync import async_to_sync
from django.db import connections
from django.dispatch import Signal

from solid_runs.testing.capabilities import NOT_OFFERED, Capabilities

PATIENCE: Final = 60
"""The seconds that the threads of a race wait for each other, and a test for them."""

if TYPE_CHECKING:
    Base = unittest.TestCase
else:
    Base = object


class Caller:
    """Calls a store, or its async twins, and says what to do about a method that is missing."""

    def __init__(self, store: Any, asynchronous: bool, capabilities: Capabilities) -> None:
        self.store, self.asynchronous, self._capabilities = store, asynchronous, capabilities

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method_name = f"a{name}" if self.asynchronous else name
        method = getattr(self.store, method_name, None)
        if method is None:
            raise AssertionError(self._capabilities.advice(self.store, [method_name]))
        called: Callable[..., Any] = async_to_sync(method) if self.asynchronous else method
        return called


class StoreSuite(Base):
    asynchronous: ClassVar[bool] = False
    """Whether the tests go through the async twins of the methods."""
    leaves_out: ClassVar[Collection[str]] = frozenset()
    """What the store does not have, out of ``capabilities.optional``."""
    using: ClassVar[str] = "default"
    """The database whose commits the store's signals wait for."""

    capabilities: ClassVar[Capabilities]
    errors: ClassVar[type[Exception]]
    """The base class of what the store raises."""
    store: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.leaves_out:
            cls.capabilities.leave_out(cls, cls.leaves_out)

    def called(self, store: Any) -> Caller:
        return Caller(store, self.asynchronous, self.capabilities)

    def committed(self) -> AbstractContextManager[Any]:
        """A block at whose end what waits for a commit has been done."""
        capture = getattr(self, "captureOnCommitCallbacks", None)
        return capture(using=self.using, execute=True) if capture else nullcontext()

    @contextmanager
    def heard(self, signal: Signal) -> Iterator[list[dict[str, Any]]]:
        """What the signal says of what happens in the block; look at it after the block."""
        said: list[dict[str, Any]] = []

        def receive(**kwargs: Any) -> None:
            said.append(kwargs)

        signal.connect(receive)
        try:
            with self.committed():
                yield said
        finally:
            signal.disconnect(receive)

    # Races

    def connect(self) -> None:
        """Read something of the store, so that each thread has a connection before a race."""

    def race(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """What each call gave, or the error of the store's that it raised, all made at once."""
        barrier = threading.Barrier(len(calls), timeout=PATIENCE)

        def run(call: Callable[[], Any]) -> Any:
            try:
                self.connect()
                barrier.wait()
                return call()
            except self.errors as error:
                return error
            finally:
                connections.close_all()

        with switching_often(), ThreadPoolExecutor(len(calls)) as pool:
            return [future.result(PATIENCE) for future in [pool.submit(run, c) for c in calls]]

    def the_only(self, kind: type[Any], told: Sequence[Any], others: type[Any]) -> Any:
        """The one outcome of a kind, when all the others are of another."""
        found = [one for one in told if isinstance(one, kind)]
        rest = [one for one in told if isinstance(one, others)]
        self.assertEqual((len(found), len(rest)), (1, len(told) - 1), told)
        return found[0]


class Offered(StoreSuite):
    """That a store offers what it does not declare as left out, and nothing that it does.

    In place of the tests of what is left out is one which holds that it is not offered.
    """

    attempts: ClassVar[Mapping[str, Callable[[Any], object]]]
    """How each capability would be used, given the test."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for capability in cls.leaves_out:
            setattr(cls, f"test_{capability}_is_not_offered", not_offered(capability))

    def test_every_method_is_there_or_declared_as_left_out(self) -> None:
        store, methods = self.store.store, self.capabilities.methods(self.leaves_out)
        missing = [name for name in methods if getattr(store, name, None) is None]
        if missing:
            self.fail(self.capabilities.advice(store, missing))

    def the_method(self, name: str) -> Callable[..., Any]:
        """The method itself, since the caller of the tests explains what is missing."""
        if getattr(self.store.store, name, None) is None:
            raise NotImplementedError
        method: Callable[..., Any] = getattr(self.store, name)
        return method

    def try_twins(self) -> None:
        """The attempt at ``async``."""
        twins = self.capabilities.twins()
        if not any(getattr(self.store.store, name, None) for name in twins):
            raise NotImplementedError


def not_offered(capability: str) -> Callable[[Offered], None]:
    def test(self: Offered) -> None:
        try:
            self.attempts[capability](self)
        except NOT_OFFERED:
            return
        except self.errors:
            pass
        self.fail(
            f"{type(self.store.store).__name__} offers {capability!r}, which "
            f"{type(self).__name__} says it leaves out: take it out of leaves_out."
        )

    test.__doc__ = f"That {capability!r} is left out is true."
    return test


@contextmanager
def switching_often() -> Iterator[None]:
    """A block in which Python's threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
