"""A cancel request is an intent and no status."""

from __future__ import annotations

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import Status


@needs("request_cancel")
class CancelRequests(StoreTests):
    def test_a_cancel_request_returns_nothing(self) -> None:
        self.create()
        self.assertIsNone(self.store.request_cancel("r1"))

    def test_a_cancel_request_writes_true(self) -> None:
        self.create()
        self.store.request_cancel("r1")
        self.assertIs(self.the_run().cancel_requested, True)

    def test_a_cancel_request_writes_nothing_else(self) -> None:
        for status in Status:
            self.create(status, status=status, name="n")
            self.update(
                status,
                usage={"a": 1},
                detached_since=5,
                sandbox_key="box",
                driver_epoch=3,
                cancel_requested=False,
            )
            before = self.the_run(status).to_json()
            with self.subTest(status):
                self.store.request_cancel(status)
                self.assertEqual(
                    self.the_run(status).to_json(), {**before, "cancelRequested": True}
                )

    def test_a_cancel_request_of_an_unknown_run_creates_none(self) -> None:
        self.store.request_cancel("missing")
        self.assertIsNone(self.get("missing"))

    def test_a_cancel_request_leaves_other_runs(self) -> None:
        self.create("r1")
        self.create("r2")
        with self.unchanged("r2"):
            self.store.request_cancel("r1")

    def test_a_cancel_was_requested_only_where_true_is_stored(self) -> None:
        self.create()
        for stored, told in ((None, False), (False, False), (True, True)):
            self.update(cancel_requested=stored)
            with self.subTest(stored=stored):
                self.assertIs(self.store.was_cancel_requested("r1"), told)

    def test_no_cancel_of_a_fresh_run_was_requested(self) -> None:
        self.create()
        self.assertIs(self.store.was_cancel_requested("r1"), False)

    def test_no_cancel_of_an_unknown_run_was_requested(self) -> None:
        self.assertIs(self.store.was_cancel_requested("missing"), False)

    def test_a_cancel_that_was_requested_stays_so_after_the_end(self) -> None:
        self.create()
        self.store.request_cancel("r1")
        self.update(status="aborted")
        self.assertIs(self.store.was_cancel_requested("r1"), True)

    @needs("claim")
    def test_an_interrupted_run_that_was_asked_to_stop_may_end_aborted(self) -> None:
        self.create(status="interrupted")
        self.store.request_cancel("r1")
        self.assertEqual(self.the_run().status, Status.INTERRUPTED)
        self.assertIs(self.claim().update({"status": "aborted", "finished_at": 10}), True)
        self.assertEqual(self.the_run().status, Status.ABORTED)

    @needs("claim")
    def test_a_cancel_request_supersedes_no_holder(self) -> None:
        self.create()
        holder = self.claim()
        self.store.request_cancel("r1")
        self.assertIs(holder.is_superseded(), False)
        self.assertIs(holder.update({"status": "completed"}), True)
