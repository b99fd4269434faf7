"""What every part of the conformance suite stands on: a store, its clock, runs to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, cast

from asgiref.sync import async_to_sync

from solid_runs.testing.stores import Caller, StoreSuite
from solid_runs.testing.threads.capabilities import CAPABILITIES
from solid_runs.testing.threads.clocks import ManualClock
from solid_runs.threads.claims import Claim
from solid_runs.threads.exceptions import InvalidRecord, ThreadsError
from solid_runs.threads.records import RunRecord

OTHER_SCOPE: Final = "globex"


class ThreadStoreTests(StoreSuite):
    """What the suites of both kinds of store stand on."""

    errors: ClassVar[type[Exception]] = ThreadsError

    clock: ManualClock

    def make_store(self, **options: Any) -> Any:
        """Make the store under test, over storage that is empty at the start of each test.

        ``clock``: a callable that gives milliseconds since 1970, by which the store judges and
        notes what happens now. ``scope``: only where a test is about it; such a store shares the
        storage of the first.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a make_store().")

    def setUp(self) -> None:
        super().setUp()
        self.clock = ManualClock()
        self.store = self.new_store()

    def new_store(self, **options: Any) -> Caller:
        return self.called(self.make_store(clock=self.clock, **options))

    def connect(self) -> None:
        self.store.get("nobody's")

    def now(self) -> int:
        return self.clock()

    def later(self, milliseconds: int) -> None:
        self.clock.forward(milliseconds)

    def get(self, key: str) -> Any:
        return self.store.get(key)

    def assert_same(self, one: Any, other: Any) -> None:
        """Equal in all that is stored."""
        self.assertEqual(one and one.to_json(), other and other.to_json())

    @contextmanager
    def unchanged(self, *keys: str) -> Iterator[None]:
        """A block after which these are stored as they were before it, absent ones too."""
        before = {key: self.get(key) for key in keys}
        yield
        for key, record in before.items():
            self.assert_same(self.get(key), record)

    @contextmanager
    def refused(self, field: str) -> Iterator[None]:
        """A block that ends in an InvalidRecord about this field."""
        with self.assertRaises(InvalidRecord) as caught:
            yield
        self.assertEqual(caught.exception.field, field)


class Held:
    """A claim, used as the store is used: through its async twins if the tests say so."""

    def __init__(self, claim: Claim, asynchronous: bool) -> None:
        self.claim, self.epoch, self.asynchronous = claim, claim.epoch, asynchronous

    def update(self, patch: Mapping[str, Any]) -> bool:
        return self._call("update", patch)

    def touch(self, now: Any = None) -> bool:
        return self._call("touch", now)

    def is_superseded(self) -> bool:
        return self._call("is_superseded")

    def _call(self, name: str, *args: Any) -> bool:
        if self.asynchronous:
            return cast(bool, async_to_sync(getattr(self.claim, f"a{name}"))(*args))
        return cast(bool, getattr(self.claim, name)(*args))


class StoreTests(ThreadStoreTests):
    capabilities = CAPABILITIES

    def store_status(self, run_id: str, status: str) -> None:
        """Store a status that no update takes, as another program might have."""
        raise NotImplementedError(
            f"{type(self).__name__} has no store_status(). Write it, or declare it: "
            f"leaves_out = {{'store_status'}}."
        )

    # Runs to begin with

    def create(
        self, run_id: str = "r1", thread_id: str = "t1", started_at: int = 1, **options: Any
    ) -> RunRecord:
        record: RunRecord = self.store.create_or_resume(run_id, thread_id, started_at, **options)
        return record

    def update(self, run_id: str = "r1", /, **patch: Any) -> None:
        self.store.update(run_id, patch)

    def ended(
        self, run_id: str = "r1", status: str = "completed", finished_at: int = 10, **options: Any
    ) -> RunRecord:
        self.create(run_id, **options)
        self.update(run_id, status=status, finished_at=finished_at)
        return self.the_run(run_id)

    def claim(self, run_id: str = "r1", **conditions: Any) -> Held:
        """Claim a run that can be claimed."""
        claim = self.store.claim(run_id, **conditions)
        self.assertTrue(claim, f"{run_id} was refused: {claim!r}")
        return Held(claim, self.asynchronous)

    # What is stored

    def get(self, key: str = "r1") -> Any:
        return super().get(key)

    def the_run(self, run_id: str = "r1") -> RunRecord:
        record = self.get(run_id)
        self.assertIsInstance(record, RunRecord, f"{run_id} is not found")
        return cast(RunRecord, record)

    def ids(self, records: Iterable[RunRecord]) -> list[str]:
        return [record.run_id for record in records]

    def assert_refused(self, reason: str, run_id: str = "r1", **conditions: Any) -> None:
        """That a claim is refused for this reason."""
        refusal = self.store.claim(run_id, **conditions)
        self.assertFalse(refusal, f"{run_id} was claimed")
        self.assertEqual(refusal.reason, reason)

    def refuses(self, field: str, call: Callable[..., Any], values: Mapping[str, Any]) -> None:
        """That each of these values is refused for the field, and nothing written to r1 or r2."""
        for what, value in values.items():
            with self.subTest(what), self.unchanged("r1", "r2"), self.refused(field):
                call(value)
