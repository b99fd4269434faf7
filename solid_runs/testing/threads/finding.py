"""The run that a page attaches to, and the lists."""

from __future__ import annotations

from typing import Any, Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import needs
from solid_runs.threads.records import TERMINAL, Status

TTL: Final = 100
NOW: Final = 1000
CUTOFF: Final = NOW - TTL


class FindingActive(StoreTests):
    def active(self, thread_id: str = "t1") -> str | None:
        found = self.store.find_active_run(thread_id)
        return found.run_id if found else None

    def test_no_run_is_active_in_an_unknown_thread(self) -> None:
        self.assertIsNone(self.store.find_active_run("t1"))

    def test_no_run_is_active_when_all_have_ended(self) -> None:
        for status in sorted(TERMINAL):
            self.ended(status, status)
        self.assertIsNone(self.store.find_active_run("t1"))

    def test_the_active_run_is_found_as_get_finds_it(self) -> None:
        self.create(name="n")
        self.update(usage={"totalTokens": 3})
        self.assert_same(self.store.find_active_run("t1"), self.get())

    def test_of_running_runs_the_newest_is_active(self) -> None:
        self.create("r1", started_at=10)
        self.create("r2", started_at=1000)
        self.create("r3", started_at=1)
        self.assertEqual(self.active(), "r2")

    def test_of_runs_that_started_at_once_the_first_is_active(self) -> None:
        for run_id in ("rb", "ra", "rc"):
            self.create(run_id, started_at=10)
        self.assertEqual(self.active(), "rb")

    def test_an_update_does_not_decide_a_tie(self) -> None:
        for run_id in ("r1", "r2", "r3"):
            self.create(run_id, started_at=10)
        for run_id in ("r3", "r1", "r2"):
            self.update(run_id, usage={"totalTokens": 1})
            self.assertEqual(self.active(), "r1")

    def test_the_start_decides_as_a_number(self) -> None:
        self.create("r1", started_at=10)
        self.create("r2", started_at=9)
        self.assertEqual(self.active(), "r1")

    def test_a_run_that_started_before_1970_is_active(self) -> None:
        self.create("r1", started_at=-2)
        self.create("r2", started_at=-1)
        self.assertEqual(self.active(), "r2")

    def test_the_runs_of_other_threads_are_ignored(self) -> None:
        self.create("r1", "t1", 1)
        self.create("r2", "t2", 1000)
        self.assertEqual(self.active("t1"), "r1")

    def test_the_older_run_surfaces_when_the_newest_ends(self) -> None:
        for status in sorted(TERMINAL):
            with self.subTest(status):
                self.create(f"older-{status}", status, 1)
                self.create(f"newest-{status}", status, 10)
                self.update(f"newest-{status}", status=status)
                self.assertEqual(self.active(status), f"older-{status}")

    def test_an_interrupted_run_is_not_active(self) -> None:
        self.create(status="interrupted")
        self.assertIsNone(self.active())

    def test_an_interrupted_run_hides_no_older_one(self) -> None:
        self.create("r1", started_at=1)
        self.create("r2", started_at=10, status="interrupted")
        self.assertEqual(self.active(), "r1")

    def test_an_interrupted_run_that_goes_on_is_active(self) -> None:
        self.create(status="interrupted")
        self.update(status="running")
        self.assertEqual(self.active(), "r1")

    def test_a_detached_run_is_active(self) -> None:
        self.create()
        self.update(detached_since=5)
        self.assertEqual(self.active(), "r1")

    def test_a_run_that_was_asked_to_stop_is_active(self) -> None:
        self.create()
        self.update(cancel_requested=True)
        self.assertEqual(self.active(), "r1")

    def test_a_run_that_ended_after_a_later_one_began_is_not_active(self) -> None:
        self.create("r1", started_at=1)
        self.create("r2", started_at=10)
        self.update("r1", status="completed")
        self.assertEqual(self.active(), "r2")


@needs("list_by_thread")
class ListingByThread(StoreTests):
    def in_thread(self, thread_id: str = "t1") -> list[str]:
        return self.ids(self.store.list_by_thread(thread_id))

    def test_an_unknown_thread_has_no_runs(self) -> None:
        self.assertEqual(self.store.list_by_thread("t1"), [])

    def test_a_thread_is_listed_ascending_although_inserted_in_reverse(self) -> None:
        for started_at in (1000, 100, 10, 9, 1, -1):
            self.create(f"r{started_at}", started_at=started_at)
        self.assertEqual(self.in_thread(), ["r-1", "r1", "r9", "r10", "r100", "r1000"])

    def test_runs_of_a_thread_that_started_at_once_are_listed_as_inserted(self) -> None:
        inserted = ["rb", "rc", "ra", "rd"]
        for run_id in inserted:
            self.create(run_id, started_at=10)
        self.create("last", started_at=11)
        self.create("first", started_at=9)
        self.assertEqual(self.in_thread(), ["first", *inserted, "last"])

    def test_updates_leave_the_order_of_a_thread(self) -> None:
        for run_id in ("r1", "r2", "r3"):
            self.create(run_id, started_at=10)
        for run_id in ("r3", "r1"):
            self.update(run_id, status="completed", finished_at=5)
        self.assertEqual(self.in_thread(), ["r1", "r2", "r3"])

    def test_a_thread_is_listed_in_all_statuses(self) -> None:
        for number, status in enumerate(Status):
            self.create(status, started_at=number, status=status)
        self.assertEqual(self.in_thread(), list(Status))

    def test_the_runs_of_other_threads_are_not_listed(self) -> None:
        self.create("r1", "t1")
        self.create("r2", "t2")
        self.assertEqual(self.in_thread("t1"), ["r1"])

    def test_a_thread_is_listed_with_whole_records(self) -> None:
        self.create(name="n", parent_run_id="r0")
        self.update(usage={"totalTokens": 3}, cancel_requested=False)
        (found,) = self.store.list_by_thread("t1")
        self.assert_same(found, self.get())


@needs("list_by_parent_run")
class ListingByParent(StoreTests):
    def children(self, parent_run_id: str = "p1") -> list[str]:
        return self.ids(self.store.list_by_parent_run(parent_run_id))

    def test_a_run_without_children_has_none_listed(self) -> None:
        self.create("p1")
        self.assertEqual(self.store.list_by_parent_run("p1"), [])

    def test_children_are_listed_ascending_although_inserted_in_reverse(self) -> None:
        for started_at in (1000, 10, 9, 1):
            self.create(f"r{started_at}", started_at=started_at, parent_run_id="p1")
        self.assertEqual(self.children(), ["r1", "r9", "r10", "r1000"])

    def test_children_that_started_at_once_are_listed_as_inserted(self) -> None:
        for run_id in ("rb", "rc", "ra"):
            self.create(run_id, started_at=10, parent_run_id="p1")
        self.assertEqual(self.children(), ["rb", "rc", "ra"])

    def test_children_are_listed_in_all_statuses(self) -> None:
        for number, status in enumerate(Status):
            self.create(status, started_at=number, status=status, parent_run_id="p1")
        self.assertEqual(self.children(), list(Status))

    def test_children_are_listed_whatever_their_thread(self) -> None:
        self.create("r1", "t1", 1, parent_run_id="p1")
        self.create("r2", "t2", 2, parent_run_id="p1")
        self.assertEqual(self.children(), ["r1", "r2"])

    def test_children_in_another_thread_than_their_parents_are_listed(self) -> None:
        self.create("p1", "t1", 1)
        self.create("r1", "t2", 2, parent_run_id="p1")
        self.assertEqual(self.children(), ["r1"])

    def test_the_parent_and_the_children_of_others_are_not_listed(self) -> None:
        self.create("p1")
        self.create("r1", parent_run_id="p1")
        self.create("r2", parent_run_id="p2")
        self.create("r3", parent_run_id="r1")
        self.create("r4")
        self.assertEqual(self.children(), ["r1"])

    def test_the_parent_need_not_be_known(self) -> None:
        self.create("r1", parent_run_id="elsewhere")
        self.assertEqual(self.children("elsewhere"), ["r1"])

    def test_parents_that_look_alike_are_two(self) -> None:
        self.create("r1", parent_run_id="P1")
        self.create("r2", parent_run_id="p1 ")
        self.assertEqual(self.children("p1"), [])
        self.assertEqual(self.children("P1"), ["r1"])

    def test_children_are_listed_as_whole_records(self) -> None:
        self.create(parent_run_id="p1", name="n")
        self.update(usage={"totalTokens": 3})
        (found,) = self.store.list_by_parent_run("p1")
        self.assert_same(found, self.get())


@needs("list_reclaimable")
class ListingReclaimable(StoreTests):
    def reclaimable(self, now: int = NOW, ttl_ms: int = TTL) -> list[str]:
        return self.ids(self.store.list_reclaimable(now, ttl_ms))

    def left(self, run_id: str = "r1", since: int = CUTOFF, **options: Any) -> None:
        self.create(run_id, **options)
        self.update(run_id, detached_since=since)

    def test_nothing_is_reclaimable_where_nothing_runs(self) -> None:
        self.assertEqual(self.store.list_reclaimable(NOW, TTL), [])

    def test_a_run_that_was_left_before_the_cutoff_is_reclaimable(self) -> None:
        self.left(since=CUTOFF - 1)
        self.assertEqual(self.reclaimable(), ["r1"])

    def test_a_run_that_was_left_exactly_at_the_cutoff_is_reclaimable(self) -> None:
        self.left(since=CUTOFF)
        self.assertEqual(self.reclaimable(), ["r1"])

    def test_a_run_that_was_left_a_millisecond_too_late_is_not_reclaimable(self) -> None:
        self.left(since=CUTOFF + 1)
        self.assertEqual(self.reclaimable(), [])

    def test_a_finished_run_is_not_reclaimable(self) -> None:
        for status in sorted(TERMINAL):
            self.left(status)
            self.update(status, status=status)
        self.assertEqual(self.reclaimable(), [])

    def test_a_run_that_was_never_left_is_not_reclaimable(self) -> None:
        self.create(started_at=1)
        self.assertEqual(self.reclaimable(), [])

    def test_an_interrupted_run_is_not_reclaimable(self) -> None:
        self.left(status="interrupted")
        self.assertEqual(self.reclaimable(), [])

    def test_with_a_ttl_of_0_a_run_that_is_left_now_is_reclaimable(self) -> None:
        self.left(since=NOW)
        self.assertEqual(self.reclaimable(NOW, 0), ["r1"])

    def test_with_a_ttl_of_0_a_run_that_is_left_later_is_not_reclaimable(self) -> None:
        self.left(since=NOW + 1)
        self.assertEqual(self.reclaimable(NOW, 0), [])

    def test_a_run_that_was_left_in_1970_is_reclaimable(self) -> None:
        self.left(since=0)
        self.assertEqual(self.reclaimable(), ["r1"])

    def test_a_viewer_that_comes_back_takes_a_run_out(self) -> None:
        self.left()
        self.update(detached_since=None)
        self.assertEqual(self.reclaimable(), [])

    def test_runs_of_all_threads_are_reclaimable_the_longest_left_first(self) -> None:
        for run_id, since in (("r1", 30), ("r2", 10), ("r3", 9), ("r4", 20)):
            self.left(run_id, since, thread_id=f"t-{run_id}")
        self.assertEqual(self.reclaimable(), ["r3", "r2", "r4", "r1"])

    def test_a_run_that_was_claimed_or_asked_to_stop_is_reclaimable(self) -> None:
        self.left()
        self.update(driver_epoch=1, cancel_requested=True)
        self.assertEqual(self.reclaimable(), ["r1"])

    def test_the_cutoff_is_the_callers_and_no_clock_of_a_store(self) -> None:
        self.later(10_000)
        self.left(since=CUTOFF + 1)
        self.assertEqual(self.reclaimable(), [])

    def test_reclaimable_runs_are_listed_as_whole_records(self) -> None:
        self.left(name="n", parent_run_id="r0")
        self.update(usage={"totalTokens": 3}, sandbox_key="box")
        (found,) = self.store.list_reclaimable(NOW, TTL)
        self.assert_same(found, self.get())

    def test_listing_what_is_reclaimable_changes_nothing(self) -> None:
        self.left()
        with self.unchanged("r1"):
            self.reclaimable()

    @needs("limits")
    def test_a_limit_takes_those_that_were_left_longest(self) -> None:
        for run_id, since in (("r1", 30), ("r2", 10), ("r3", 20)):
            self.left(run_id, since)
        found = self.store.list_reclaimable(NOW, TTL, limit=2)
        self.assertEqual(self.ids(found), ["r2", "r3"])
