"""The lists of interrupts, and scopes, and what no interrupt holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from solid_runs.testing.stores import Caller
from solid_runs.testing.threads.bad_input import NO_IDS, NO_STATUSES, NO_TIMES, NOT_EVEN_TEXTS
from solid_runs.testing.threads.base import OTHER_SCOPE
from solid_runs.testing.threads.interrupt_base import (
    LISTS,
    InterruptStoreTests,
    needs,
    no,
)
from solid_runs.threads.exceptions import BatchRejected
from solid_runs.threads.interrupts import InterruptStatus


class Listing(InterruptStoreTests):
    def asked(self, listing: str, interrupt_id: str, requested_at: int = 1, of: str = "x1") -> None:
        given: dict[str, Any] = {LISTS[listing][0]: of, "requested_at": requested_at}
        self.ask(f"{listing}-{interrupt_id}", **given)

    def listed(self, listing: str, of: str = "x1") -> list[str]:
        found = getattr(self.store, listing)(of)
        return [record.interrupt_id.removeprefix(f"{listing}-") for record in found]

    def test_nothing_is_listed_of_what_is_unknown(self) -> None:
        for listing in LISTS:
            with self.subTest(listing):
                self.assertEqual(getattr(self.store, listing)("x1"), [])

    def test_each_list_ascends_although_inserted_in_reverse(self) -> None:
        for listing in LISTS:
            with self.subTest(listing):
                of = f"of-{listing}"
                for requested_at in (1000, 10, 9, -1):
                    self.asked(listing, f"i{requested_at}", requested_at, of)
                self.assertEqual(self.listed(listing, of), ["i-1", "i9", "i10", "i1000"])

    def test_those_of_one_moment_are_listed_as_inserted(self) -> None:
        for listing in LISTS:
            with self.subTest(listing):
                of = f"of-{listing}"
                for interrupt_id in ("ib", "ic", "ia"):
                    self.asked(listing, interrupt_id, of=of)
                self.asked(listing, "first", 0, of)
                self.assertEqual(self.listed(listing, of), ["first", "ib", "ic", "ia"])

    def test_a_decision_leaves_the_order(self) -> None:
        for listing in ("list_by_thread", "list_by_run"):
            with self.subTest(listing):
                of = f"of-{listing}"
                for interrupt_id in ("i1", "i2", "i3"):
                    self.asked(listing, interrupt_id, of=of)
                self.store.resolve(f"{listing}-i1", "yes")
                self.assertEqual(self.listed(listing, of), ["i1", "i2", "i3"])

    def test_decided_ones_are_listed_but_where_pending_ones_are_asked_for(self) -> None:
        for listing, (_, pending) in LISTS.items():
            with self.subTest(listing):
                of = f"of-{listing}"
                for number, interrupt_id in enumerate(("i1", "i2", "i3")):
                    self.asked(listing, interrupt_id, number, of)
                self.store.resolve(f"{listing}-i1")
                self.store.cancel(f"{listing}-i3")
                self.assertEqual(
                    self.listed(listing, of), ["i2"] if pending else ["i1", "i2", "i3"]
                )

    def test_the_interrupts_of_others_are_not_listed(self) -> None:
        for listing in LISTS:
            with self.subTest(listing):
                of = f"of-{listing}"
                for number, other in enumerate((of, f"{of} ", of.upper(), "x2")):
                    self.asked(listing, f"i{number}", of=other)
                self.assertEqual(self.listed(listing, of), ["i0"])

    def test_runs_of_one_thread_are_listed_apart(self) -> None:
        self.ask("i1", "r1", "t1")
        self.ask("i2", "r2", "t1")
        self.assertEqual([one.interrupt_id for one in self.store.list_by_run("r2")], ["i2"])
        self.assertEqual(len(self.store.list_by_thread("t1")), 2)

    def test_interrupts_are_listed_as_whole_records(self) -> None:
        for listing, (_, pending) in LISTS.items():
            interrupt_id = f"{listing}-i1"
            self.asked(listing, "i1", of=f"of-{listing}")
            if not pending:
                self.store.resolve(interrupt_id, None)
            with self.subTest(listing):
                (found,) = getattr(self.store, listing)(f"of-{listing}")
                self.assert_same(found, self.get(interrupt_id))


class BadInterrupts(InterruptStoreTests):
    def refuse(self, field: str, call: Callable[..., Any], values: Mapping[str, Any]) -> None:
        for what, value in values.items():
            with self.subTest(what, field=field), self.unchanged("i1", "i2"), self.refused(field):
                call(value)

    def test_an_interrupt_without_ids_is_refused(self) -> None:
        self.ask()
        for field in ("interrupt_id", "run_id", "thread_id"):

            def ask(value: Any, field: str = field) -> None:
                given: dict[str, Any] = {"interrupt_id": "i2", field: value}
                self.ask(**given)

            self.refuse(field, ask, {**NO_IDS, **NOT_EVEN_TEXTS, "None": None})

    def test_a_time_of_asking_that_is_no_whole_number_is_refused(self) -> None:
        ask = partial(self.store.create, "i2", "r1", "t1", payload={})
        times = {**NO_TIMES, "None": None}
        self.refuse("requested_at", lambda value: ask(requested_at=value), times)

    def test_a_payload_that_is_no_object_or_too_large_is_refused(self) -> None:
        payloads: dict[str, Any] = {
            "None": None,
            "a list": [],
            "text": "{}",
            "large": {"text": "x" * 100_000},
        }
        ask = partial(self.store.create, "i2", "r1", "t1", 1)
        self.refuse("payload", ask, payloads)

    def test_a_response_that_is_too_large_is_refused(self) -> None:
        self.ask()
        resolve = partial(self.store.resolve, "i1")
        self.refuse("response", resolve, {"large": "x" * 100_000, "long": ["x" * 99] * 999})

    def test_every_method_refuses_an_interrupt_id_that_no_key_holds(self) -> None:
        for name in ("get", "resolve", "cancel"):
            with self.subTest(name):
                ids = {**NO_IDS, **NOT_EVEN_TEXTS, "None": None}
                self.refuse("interrupt_id", getattr(self.store, name), ids)

    def test_every_list_refuses_an_id_that_no_key_holds(self) -> None:
        for listing, (field, _) in LISTS.items():
            with self.subTest(listing):
                ids = {**NO_IDS, **NOT_EVEN_TEXTS, "None": None}
                self.refuse(field, getattr(self.store, listing), ids)

    @needs("commit_batch")
    def test_an_entry_with_an_unknown_status_is_refused(self) -> None:
        self.ask()

        def commit(value: Any) -> None:
            self.store.commit_batch([{"interrupt_id": "i1", "status": value}])

        self.refuse("entries.0.status", commit, NO_STATUSES)


@needs("scopes")
class InterruptScopes(InterruptStoreTests):
    def theirs(self) -> Caller:
        """A store of another scope over the same storage."""
        return self.new_store(scope=OTHER_SCOPE)

    def test_no_interrupt_of_another_scope_is_found_or_listed(self) -> None:
        self.ask()
        theirs = self.theirs()
        self.assertIsNone(theirs.get("i1"))
        for listing, (field, _) in LISTS.items():
            with self.subTest(listing):
                of = {"thread_id": "t1", "run_id": "r1"}[field]
                self.assertEqual(getattr(theirs, listing)(of), [])
                self.assertEqual(len(getattr(self.store, listing)(of)), 1)

    def test_no_interrupt_of_another_scope_is_decided(self) -> None:
        self.ask()
        theirs = self.theirs()
        with self.unchanged("i1"):
            theirs.resolve("i1", "yes")
            theirs.cancel("i1")

    def test_equal_ids_of_two_scopes_are_two_interrupts(self) -> None:
        theirs = self.theirs()
        self.ask("i1", requested_at=1)
        theirs.create("i1", "r1", "t1", 2, {"theirs": True})
        self.assertEqual(theirs.get("i1").requested_at, 2)
        with self.unchanged("i1"):
            theirs.resolve("i1", "yes")
        self.assertEqual(theirs.get("i1").status, InterruptStatus.RESOLVED)

    @needs("commit_batch")
    def test_a_batch_with_one_of_another_scope_is_rejected_whole(self) -> None:
        self.ask("i1")
        theirs = self.theirs()
        theirs.create("i2", "r1", "t1", 1, {})
        with self.unchanged("i1"), self.assertRaises(BatchRejected) as caught:
            theirs.commit_batch([no("i2"), no("i1")])
        self.assertEqual(caught.exception.interrupt_ids, ("i1",))
        self.assertIs(theirs.get("i2").pending, True)
