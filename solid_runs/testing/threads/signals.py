"""Hosts hear of the end of a run, after the commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import TERMINAL, Status
from solid_runs.threads.signals import run_ended


@needs("signals")
class Signals(StoreTests):
    def told(self, said: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(one["run_id"], one["status"]) for one in said]

    def test_the_end_of_a_run_is_told(self) -> None:
        for status in sorted(TERMINAL):
            self.create(status)
            with self.subTest(status), self.heard(run_ended) as said:
                self.update(status, status=status)
            self.assertEqual(self.told(said), [(status, status)])
            self.assertIsInstance(said[0]["status"], Status)

    def test_the_end_of_an_interrupted_run_is_told(self) -> None:
        self.create(status="interrupted")
        with self.heard(run_ended) as said:
            self.update(status="aborted")
        self.assertEqual(self.told(said), [("r1", "aborted")])

    def test_an_end_is_told_with_the_store_that_reads_the_run(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            self.update(status="completed", usage={"a": 1})
        (told,) = said
        self.assertIs(told["sender"], type(told["store"]))
        self.assert_same(told["store"].get("r1"), self.get())

    def test_an_end_is_told_once(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            for _ in range(3):
                self.update(status="completed", finished_at=10)
        self.assertEqual(self.told(said), [("r1", "completed")])

    def test_an_end_that_is_corrected_is_no_other_end(self) -> None:
        self.ended()
        with self.heard(run_ended) as said:
            self.update(status="failed", error={"message": "No model."})
        self.assertEqual(said, [])

    def test_what_ends_no_run_is_not_told(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            self.create("r1", status="completed")
            self.update(status="interrupted")
            self.update(status="running")
            self.update(usage={"a": 1}, finished_at=10, cancel_requested=True)
            self.update("missing", status="completed")
        self.assertEqual(said, [])

    def test_a_run_that_is_created_as_ended_was_never_seen_to_end(self) -> None:
        with self.heard(run_ended) as said:
            self.create(status="completed")
        self.assertEqual(said, [])

    def test_a_refused_update_is_not_told(self) -> None:
        self.create()
        with self.heard(run_ended) as said, self.refused("finished_at"):
            self.update(status="completed", finished_at=1.5)
        self.assertEqual(said, [])

    @needs("update_if")
    def test_the_end_of_a_run_that_was_as_expected_is_told(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            self.store.update_if("r1", {"status": "failed"}, status="interrupted")
            self.store.update_if("r1", {"status": "completed"}, status="running")
            self.store.update_if("r1", {"status": "failed"}, status="completed")
        self.assertEqual(self.told(said), [("r1", "completed")])

    @needs("claim")
    def test_the_end_by_a_holder_is_told_and_a_late_one_is_not(self) -> None:
        self.create()
        first, second = self.claim(), self.claim()
        with self.heard(run_ended) as said:
            first.update({"status": "failed"})
            second.update({"status": "completed"})
        self.assertEqual(self.told(said), [("r1", "completed")])

    @needs("claim", "leases")
    def test_an_end_that_a_claim_writes_is_told_once(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            self.claim(patch={"status": "completed", "finished_at": 10})
        self.assertEqual(self.the_run().status, Status.COMPLETED)
        self.assertEqual(self.told(said), [("r1", "completed")])

    @needs("request_cancel")
    def test_a_cancel_request_is_not_told_as_an_end(self) -> None:
        self.create()
        with self.heard(run_ended) as said:
            self.store.request_cancel("r1")
        self.assertEqual(said, [])

    def test_a_receiver_sees_the_end_that_it_is_told_of(self) -> None:
        self.create()
        seen: list[Any] = []

        def receive(store: Any, run_id: str, **kwargs: Any) -> None:
            seen.append((store.get(run_id).status, store.get(run_id).finished_at))

        run_ended.connect(receive)
        try:
            with self.committed():
                self.update(status="completed", finished_at=10)
        finally:
            run_ended.disconnect(receive)
        self.assertEqual(seen, [("completed", 10)])

    def test_a_receiver_that_fails_stops_nobody(self) -> None:
        self.create()

        def fail(**kwargs: Any) -> None:
            raise RuntimeError("a receiver failed")

        run_ended.connect(fail)
        try:
            with self.heard(run_ended) as said:
                self.update(status="completed")
        finally:
            run_ended.disconnect(fail)
        self.assertEqual(self.told(said), [("r1", "completed")])
        self.assertEqual(self.the_run().status, Status.COMPLETED)

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """A transaction of the caller's that is undone, if the test has a database."""
        if self.using not in getattr(self, "databases", ()):
            yield
            return
        with transaction.atomic(self.using):
            yield
            transaction.set_rollback(True, self.using)

    def test_an_end_that_the_callers_transaction_undoes_is_not_told(self) -> None:
        self.create()
        with self.heard(run_ended) as said, self.rolled_back():
            self.update(status="completed")
        self.assertEqual(len(said), int(self.the_run().terminal))
