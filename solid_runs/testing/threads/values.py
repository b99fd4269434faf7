"""Values are copied in and out, and an end is not lost over what it says."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import Status


class Copies(StoreTests):
    def test_usage_that_is_changed_after_it_was_given_is_stored_as_it_was(self) -> None:
        self.create()
        usage: dict[str, Any] = {"totalTokens": 3, "details": {"cached": [1]}}
        self.update(usage=usage)
        usage["totalTokens"] = 4
        usage["details"]["cached"].append(2)
        self.assertEqual(self.the_run().usage, {"totalTokens": 3, "details": {"cached": [1]}})

    def test_an_error_that_is_changed_after_it_was_given_is_stored_as_it_was(self) -> None:
        self.create()
        error = {"message": "No model."}
        self.update(error=error)
        error["message"] = "Changed."
        self.assertEqual(self.the_run().error, {"message": "No model."})

    def test_a_returned_record_that_is_changed_changes_nothing_stored(self) -> None:
        self.create()
        self.update(usage={"details": {"cached": [1]}}, error={"message": "No model."})
        found = [self.get(), self.create(), self.store.find_active_run("t1")]
        for record in found:
            record.usage["details"]["cached"].append(2)
            record.error["message"] = "Changed."
            record.to_json()["usage"]["details"].clear()
        self.assertEqual(self.the_run().usage, {"details": {"cached": [1]}})
        self.assertEqual(self.the_run().error, {"message": "No model."})

    @needs("list_by_thread")
    def test_a_listed_record_that_is_changed_changes_nothing_stored(self) -> None:
        self.create()
        self.update(usage={"details": [1]})
        (listed,) = self.store.list_by_thread("t1")
        listed.usage["details"].append(2)
        self.assertEqual(self.the_run().usage, {"details": [1]})

    def test_an_update_leaves_the_patch_as_it_was_given(self) -> None:
        self.create()
        patch = {
            "status": "completed",
            "usage": {"a": [1]},
            "error": {"message": "m", "code": None},
        }
        given = deepcopy(patch)
        self.store.update("r1", patch)
        self.assertEqual(patch, given)

    def test_a_record_stays_as_it_was_when_the_run_goes_on(self) -> None:
        record = self.create()
        self.update(status="completed", usage={"a": 1})
        self.assertEqual((record.status, record.usage), (Status.RUNNING, None))

    def test_a_code_that_is_none_is_absent(self) -> None:
        self.create()
        self.update(error={"message": "No model.", "code": None})
        self.assertEqual(self.the_run().error, {"message": "No model."})


class Ends(StoreTests):
    """An end is saved whatever the run has to say."""

    def failed_with(self, message: str) -> str:
        self.create()
        self.update(status="failed", finished_at=10, error={"message": message, "code": "c"})
        found = self.the_run()
        self.assertEqual((found.status, found.finished_at), (Status.FAILED, 10))
        self.assertEqual(found.error["code"], "c")
        stored: str = found.error["message"]
        return stored

    def test_an_overlong_message_is_cut_and_the_end_saved(self) -> None:
        message = "No model. " * 20_000
        stored = self.failed_with(message)
        self.assertEqual(stored[:1000], message[:1000])
        self.assertLess(len(stored), len(message))

    def test_an_overlong_message_is_not_cut_within_a_character(self) -> None:
        stored = self.failed_with("\U0001f600" * 100_000)
        self.assertEqual(stored[:1000], "\U0001f600" * 1000)
        stored.encode()

    def test_a_message_of_many_lines_and_signs_reads_back(self) -> None:
        message = "a\r\n\tb\u2028 \x01 \U0001f600 é ' \" \\ %s {} </script> \u202e"
        self.assertEqual(self.failed_with(message), message)

    def test_an_empty_message_is_a_message(self) -> None:
        self.assertEqual(self.failed_with(""), "")

    @needs("cleaning")
    def test_a_message_with_a_nul_is_stored_cleaned_and_the_end_saved(self) -> None:
        self.assertEqual(self.failed_with("a\0b"), "a\ufffdb")

    @needs("cleaning")
    def test_a_message_with_half_of_a_character_is_stored_cleaned_and_the_end_saved(self) -> None:
        self.assertEqual(self.failed_with("a\ud83db"), "a\ufffdb")

    @needs("cleaning")
    def test_a_usage_with_a_nul_or_half_of_a_character_is_stored_cleaned(self) -> None:
        self.create()
        self.update(status="completed", usage={"model": "a\0b", "not\ude00e": 1})
        found = self.the_run()
        self.assertEqual(found.status, Status.COMPLETED)
        self.assertEqual(found.usage, {"model": "a\ufffdb", "not\ufffde": 1})

    @needs("claim")
    def test_a_holder_ends_a_run_with_an_overlong_message(self) -> None:
        self.create()
        holder = self.claim()
        error = {"message": "No model. " * 20_000}
        self.assertIs(holder.update({"status": "failed", "error": error}), True)
        self.assertEqual(self.the_run().status, Status.FAILED)


@needs("store_status")
class UnknownStatuses(StoreTests):
    """A status that another program stored is reported as it is, and guessed to be nothing."""

    def paused(self, run_id: str = "r1", **options: Any) -> None:
        self.create(run_id, **options)
        self.store_status(run_id, "paused")

    def test_an_unknown_status_is_reported_as_it_is(self) -> None:
        self.paused()
        self.assertEqual(self.the_run().status, "paused")
        self.assertEqual(self.the_run().to_json()["status"], "paused")

    def test_a_run_of_unknown_status_has_not_ended(self) -> None:
        self.paused()
        self.assertIs(self.the_run().terminal, False)

    def test_a_run_of_unknown_status_is_not_active(self) -> None:
        self.paused()
        self.assertIsNone(self.store.find_active_run("t1"))

    def test_a_run_of_unknown_status_hides_no_active_one(self) -> None:
        self.create("r1", started_at=1)
        self.paused("r2", started_at=2)
        self.assertEqual(self.store.find_active_run("t1").run_id, "r1")

    def test_a_run_of_unknown_status_is_created_again_as_it_is(self) -> None:
        self.paused()
        self.assertEqual(self.create().status, "paused")

    def test_a_run_of_unknown_status_can_be_updated(self) -> None:
        self.paused()
        self.update(usage={"a": 1})
        self.assertEqual((self.the_run().status, self.the_run().usage), ("paused", {"a": 1}))
        self.update(status="completed")
        self.assertEqual(self.the_run().status, Status.COMPLETED)

    @needs("list_by_thread")
    def test_a_run_of_unknown_status_is_listed_in_its_thread(self) -> None:
        self.paused()
        self.assertEqual(self.ids(self.store.list_by_thread("t1")), ["r1"])

    @needs("list_reclaimable")
    def test_a_run_of_unknown_status_is_not_reclaimable(self) -> None:
        self.paused()
        self.update(detached_since=1)
        self.assertEqual(self.store.list_reclaimable(1000, 0), [])

    @needs("claim", "list_stalled")
    def test_a_run_of_unknown_status_is_not_stalled(self) -> None:
        self.create()
        self.claim()
        self.store_status("r1", "paused")
        self.later(1000)
        self.assertEqual(self.store.list_stalled(None, 1000), [])

    @needs("claim")
    def test_a_run_of_unknown_status_can_be_claimed(self) -> None:
        self.paused()
        self.assertEqual(self.claim().epoch, 1)
        self.assertEqual(self.the_run().status, "paused")

    @needs("update_if")
    def test_a_run_of_unknown_status_is_not_as_expected(self) -> None:
        self.paused()
        expected = [status.value for status in Status]
        with self.unchanged("r1"):
            self.assertIs(self.store.update_if("r1", {"status": "failed"}, status=expected), False)

    @needs("prune")
    def test_a_run_of_unknown_status_is_not_pruned(self) -> None:
        self.paused()
        self.update(finished_at=1)
        self.create("r2", started_at=2)
        self.assertEqual(self.store.prune(1000), 0)
        self.assertEqual(self.the_run().status, "paused")
