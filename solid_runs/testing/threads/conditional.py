"""An update that may come too late says what it expects."""

from __future__ import annotations

from itertools import product

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.testing.threads.updating import FULL
from solid_runs.threads.records import Status


@needs("update_if")
class UpdatingIf(StoreTests):
    def test_a_run_of_the_expected_status_is_updated(self) -> None:
        self.create()
        told = self.store.update_if("r1", {"status": "completed", **FULL}, status="running")
        self.assertIs(told, True)
        found = self.the_run()
        self.assertEqual(found.status, Status.COMPLETED)
        for name, value in FULL.items():
            self.assertEqual(getattr(found, name), value, name)

    def test_a_run_of_another_status_is_left(self) -> None:
        for stored, expected in product(Status, Status):
            run_id = f"{stored}-{expected}"
            self.create(run_id, status=stored)
            with self.subTest(stored=stored, expected=expected):
                told = self.store.update_if(run_id, {"finished_at": 10}, status=expected)
                self.assertIs(told, stored == expected)
                self.assertEqual(self.the_run(run_id).finished_at, 10 if told else None)

    def test_several_statuses_may_be_expected(self) -> None:
        for stored in Status:
            self.create(stored, status=stored)
            expected = ["running", "interrupted"]
            told = self.store.update_if(stored, {"status": "aborted"}, status=expected)
            self.assertIs(told, stored in expected, stored)

    def test_nothing_of_a_patch_is_written_to_a_run_that_is_not_as_expected(self) -> None:
        self.ended()
        with self.unchanged("r1"):
            told = self.store.update_if("r1", {"status": "running", **FULL}, status="running")
        self.assertIs(told, False)

    def test_an_unknown_run_is_not_as_expected(self) -> None:
        for patch in ({"status": "failed"}, {"finished_at": 1}):
            self.assertIs(self.store.update_if("missing", patch, status="running"), False)
            self.assertIs(self.store.update_if("missing", patch, epoch=None), False)
        self.assertIsNone(self.get("missing"))

    def test_a_run_at_the_expected_epoch_is_updated(self) -> None:
        self.create()
        for epoch in (None, 0, 1, 7):
            self.update(driver_epoch=epoch)
            with self.subTest(epoch=epoch):
                self.assertIs(self.store.update_if("r1", {"finished_at": 1}, epoch=epoch), True)

    def test_a_run_at_another_epoch_is_left(self) -> None:
        self.create()
        for stored, expected in product((None, 0, 1, 7), (None, 0, 1, 6, 8)):
            if stored != expected:
                self.update(driver_epoch=stored)
                with self.subTest(stored=stored, expected=expected), self.unchanged("r1"):
                    told = self.store.update_if("r1", {"finished_at": 1}, epoch=expected)
                    self.assertIs(told, False)

    def test_status_and_epoch_must_both_be_as_expected(self) -> None:
        self.create()
        self.update(driver_epoch=2)
        patch = {"status": "completed"}
        for status, epoch in (("running", 1), ("interrupted", 2), ("failed", None)):
            with self.subTest(status=status, epoch=epoch), self.unchanged("r1"):
                told = self.store.update_if("r1", patch, status=status, epoch=epoch)
                self.assertIs(told, False)
        self.assertIs(self.store.update_if("r1", patch, status="running", epoch=2), True)

    def test_a_run_that_is_as_expected_and_as_written_counts_as_updated(self) -> None:
        self.ended()
        with self.unchanged("r1"):
            told = self.store.update_if("r1", {"status": "completed"}, status="completed")
        self.assertIs(told, True)

    def test_none_clears_a_field_of_a_run_that_is_as_expected(self) -> None:
        self.create()
        self.update(**FULL)
        self.assertIs(
            self.store.update_if("r1", {"detached_since": None}, status="running", epoch=3), True
        )
        self.assertIsNone(self.the_run().detached_since)
        self.assertEqual(self.the_run().usage, FULL["usage"])

    def test_an_empty_patch_tells_whether_a_run_is_as_expected(self) -> None:
        self.create()
        with self.unchanged("r1"):
            self.assertIs(self.store.update_if("r1", {}, status="running"), True)
            self.assertIs(self.store.update_if("r1", {}, status="failed"), False)
            self.assertIs(self.store.update_if("missing", {}, status="running"), False)

    def test_an_epoch_that_was_expected_is_replaced(self) -> None:
        self.create()
        self.assertIs(self.store.update_if("r1", {"driver_epoch": 1}, epoch=None), True)
        self.assertIs(self.store.update_if("r1", {"driver_epoch": 1}, epoch=None), False)
        self.assertIs(self.store.update_if("r1", {"driver_epoch": 2}, epoch=1), True)
        self.assertEqual(self.the_run().driver_epoch, 2)

    def test_an_expected_update_changes_no_other_run(self) -> None:
        self.create("r1")
        self.create("r2")
        with self.unchanged("r2"):
            self.store.update_if("r1", {"status": "failed"}, status="running")
