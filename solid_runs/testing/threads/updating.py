"""An update writes what it names, clears what it names with None, and leaves the rest."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.threads.records import Status

FULL: Final[dict[str, Any]] = {
    "finished_at": 1000,
    "error": {"message": "No model.", "code": "internal_error"},
    "usage": {"promptTokens": 1, "completionTokens": 2, "totalTokens": 3},
    "sandbox_key": "box-1",
    "detached_since": 500,
    "cancel_requested": True,
    "driver_epoch": 3,
}
"""A value for each field that an update can clear."""

EMPTY: Final[dict[str, Any]] = {
    "finished_at": 0,
    "usage": {},
    "sandbox_key": "",
    "detached_since": 0,
    "cancel_requested": False,
    "driver_epoch": 0,
}
"""Values that are there, although they are false in Python."""

DETAILED: Final[dict[str, Any]] = {
    "promptTokens": 2**53,
    "promptTokensDetails": {"cachedTokens": 0, "audio": None},
    "cost": 0.1,
    "steps": [1, [2, {"z": None}], True, False, "text", ""],
    "note": "\U0001f600 é ' \" \\ \u2028",
    "": {" ": -1},
}


class Updating(StoreTests):
    def test_an_update_returns_nothing(self) -> None:
        self.create()
        self.assertIsNone(self.store.update("r1", {"status": "completed"}))

    def test_a_run_that_is_completed_keeps_its_end_and_its_usage(self) -> None:
        self.create()
        self.update(status="completed", finished_at=10, usage={"totalTokens": 3})
        found = self.get()
        self.assertEqual(found.status, Status.COMPLETED)
        self.assertEqual(found.finished_at, 10)
        self.assertEqual(found.usage, {"totalTokens": 3})

    def test_a_completed_run_that_fails_keeps_the_message_and_the_code(self) -> None:
        self.ended("r1", "completed")
        self.update(status="failed", error={"message": "No model.", "code": "internal_error"})
        found = self.get()
        self.assertEqual(found.status, Status.FAILED)
        self.assertEqual(found.error, {"message": "No model.", "code": "internal_error"})

    def test_any_status_may_follow_any_status(self) -> None:
        for before, after in product(Status, Status):
            with self.subTest(before=before, after=after):
                run_id = f"{before}-{after}"
                self.create(run_id, status=before)
                self.update(run_id, status=after)
                self.assertEqual(self.get(run_id).status, after)

    def test_updating_a_missing_run_is_no_error(self) -> None:
        self.assertIsNone(self.store.update("missing", {"status": "completed"}))

    def test_updating_a_missing_run_creates_none(self) -> None:
        self.store.update("missing", FULL)
        self.assertIsNone(self.get("missing"))

    def test_each_field_reads_back(self) -> None:
        for name, value in FULL.items():
            with self.subTest(name):
                self.create(name)
                self.update(name, **{name: value})
                self.assertEqual(getattr(self.get(name), name), value)

    def test_a_field_that_is_not_named_is_left(self) -> None:
        for name in FULL:
            self.create(name)
            self.update(name, **FULL)
            before = self.get(name).to_json()
            others = FULL.keys() - {name}
            with self.subTest(name):
                self.update(name, **{name: EMPTY.get(name, {"message": "Else."})})
                found = self.get(name)
                for other in others:
                    self.assertEqual(getattr(found, other), FULL[other], other)
                for key in ("runId", "threadId", "startedAt", "status"):
                    self.assertEqual(found.to_json()[key], before[key], key)

    def test_none_clears_a_field(self) -> None:
        for name in FULL:
            self.create(name)
            self.update(name, **FULL)
            with self.subTest(name):
                self.update(name, **{name: None})
                self.assertIsNone(getattr(self.get(name), name))

    def test_none_clears_no_other_field(self) -> None:
        for name in FULL:
            self.create(name)
            self.update(name, **FULL)
            self.update(name, **{name: None})
            found = self.get(name)
            for other in FULL.keys() - {name}:
                with self.subTest(cleared=name, other=other):
                    self.assertEqual(getattr(found, other), FULL[other])

    def test_a_cleared_field_is_left_out_of_the_json(self) -> None:
        self.create()
        before = self.get().to_json()
        self.update(**FULL)
        self.assertEqual(len(self.get().to_json()), len(before) + len(FULL))
        self.update(**dict.fromkeys(FULL))
        self.assertEqual(self.get().to_json(), before)

    def test_clearing_what_was_never_set_changes_nothing(self) -> None:
        self.create()
        with self.unchanged("r1"):
            self.update(**dict.fromkeys(FULL))

    def test_an_empty_patch_changes_nothing(self) -> None:
        self.create()
        self.update(**FULL)
        with self.unchanged("r1"):
            self.update()

    def test_values_that_are_false_are_not_absent(self) -> None:
        for name, value in EMPTY.items():
            with self.subTest(name):
                self.create(name)
                self.update(name, **{name: value})
                found = getattr(self.get(name), name)
                self.assertEqual(repr(found), repr(value))
                self.assertEqual(len(self.get(name).to_json()), 5)

    def test_a_false_value_replaces_another(self) -> None:
        self.create()
        self.update(**FULL)
        self.update(**EMPTY)
        found = self.get()
        for name, value in EMPTY.items():
            with self.subTest(name):
                self.assertEqual(repr(getattr(found, name)), repr(value))

    def test_usage_reads_back_with_all_its_details(self) -> None:
        self.create()
        self.update(usage=DETAILED)
        self.assertEqual(self.get().usage, DETAILED)

    def test_usage_is_replaced_whole(self) -> None:
        self.create()
        self.update(usage=DETAILED)
        self.update(usage={"totalTokens": 1})
        self.assertEqual(self.get().usage, {"totalTokens": 1})

    def test_an_error_is_replaced_whole(self) -> None:
        self.create()
        self.update(error={"message": "First.", "code": "first"})
        self.update(error={"message": "Second."})
        self.assertEqual(self.get().error, {"message": "Second."})

    def test_moments_are_kept_to_the_millisecond(self) -> None:
        self.create()
        for moment in (0, 1, 10, 1000, 1_768_478_400_123, 2**53 - 1, -(2**53 - 1)):
            with self.subTest(moment=moment):
                self.update(finished_at=moment, detached_since=moment)
                found = self.get()
                self.assertEqual((found.finished_at, found.detached_since), (moment, moment))

    def test_an_end_does_not_set_the_time_of_the_end(self) -> None:
        self.create()
        self.update(status="completed")
        self.assertIsNone(self.get().finished_at)

    def test_an_update_changes_no_other_run(self) -> None:
        self.create("r1")
        self.create("r2")
        self.create("r3")
        with self.unchanged("r1", "r3"):
            self.update("r2", status="failed", **FULL)

    def test_the_same_update_twice_is_as_once(self) -> None:
        self.create()
        patch = {"status": "completed", **FULL}
        self.update(**patch)
        with self.unchanged("r1"):
            self.update(**patch)

    def test_what_a_run_was_created_with_outlives_every_update(self) -> None:
        self.create(parent_run_id="r0", subagent_run_id="s1", name="n")
        self.update(status="completed", **FULL)
        found = self.get()
        self.assertEqual(
            (found.parent_run_id, found.subagent_run_id, found.name), ("r0", "s1", "n")
        )


DRIVER: Final[dict[str, Any]] = {
    "sandbox_key": "box-1",
    "detached_since": 500,
    "cancel_requested": True,
    "driver_epoch": 3,
}


class DriverFields(StoreTests):
    def with_driver_fields(self) -> None:
        self.create()
        self.update(**DRIVER)

    def test_a_fresh_record_has_none_of_the_driver_fields(self) -> None:
        for record in (self.create(), self.get()):
            for name in DRIVER:
                self.assertIsNone(getattr(record, name), name)

    def test_the_json_of_a_fresh_record_names_none_of_the_driver_fields(self) -> None:
        for record in (self.create(), self.get()):
            shown = record.to_json()
            for key in ("sandboxKey", "detachedSince", "cancelRequested", "driverEpoch"):
                self.assertNotIn(key, shown)

    def test_the_driver_fields_read_back_together(self) -> None:
        self.with_driver_fields()
        found = self.get()
        self.assertEqual({name: getattr(found, name) for name in DRIVER}, DRIVER)

    def test_another_epoch_leaves_the_other_driver_fields(self) -> None:
        self.with_driver_fields()
        self.update(driver_epoch=4)
        found = self.get()
        self.assertEqual(
            {name: getattr(found, name) for name in DRIVER}, {**DRIVER, "driver_epoch": 4}
        )

    def test_clearing_detached_since_leaves_the_other_driver_fields(self) -> None:
        self.with_driver_fields()
        self.update(detached_since=None)
        found = self.get()
        self.assertEqual(
            {name: getattr(found, name) for name in DRIVER}, {**DRIVER, "detached_since": None}
        )

    def test_a_cancel_request_that_is_false_reads_back_false(self) -> None:
        self.create()
        self.update(cancel_requested=False)
        self.assertIs(self.get().cancel_requested, False)
        self.assertIs(self.get().to_json()["cancelRequested"], False)

    def test_a_cancel_request_that_is_true_reads_back_true(self) -> None:
        self.create()
        self.update(cancel_requested=True)
        self.assertIs(self.get().cancel_requested, True)

    def test_clearing_all_driver_fields_keeps_the_status_and_the_start(self) -> None:
        self.create(started_at=1000)
        self.update(**DRIVER)
        self.update(**dict.fromkeys(DRIVER))
        found = self.get()
        self.assertEqual((found.status, found.started_at), (Status.RUNNING, 1000))
        for name in DRIVER:
            self.assertIsNone(getattr(found, name), name)

    def test_an_end_keeps_the_driver_fields(self) -> None:
        self.with_driver_fields()
        self.update(status="completed", finished_at=1000)
        found = self.get()
        self.assertEqual({name: getattr(found, name) for name in DRIVER}, DRIVER)
