"""A batch of answers is taken whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from solid_runs.testing.threads.interrupt_base import (
    InterruptStoreTests,
    needs,
    no,
    yes,
)
from solid_runs.threads.exceptions import BatchRejected


@needs("commit_batch")
class Batches(InterruptStoreTests):
    def three(self) -> None:
        for interrupt_id in ("i1", "i2", "i3"):
            self.ask(interrupt_id)

    @contextmanager
    def rejected(self, *interrupt_ids: str) -> Iterator[None]:
        """A block that ends in a BatchRejected about these, with nothing written."""
        with self.unchanged("i1", "i2", "i3", "missing"):
            with self.assertRaises(BatchRejected) as caught:
                yield
            self.assertEqual(sorted(caught.exception.interrupt_ids), sorted(interrupt_ids))

    def test_a_batch_decides_each_of_its_interrupts(self) -> None:
        self.three()
        self.later(5)
        with self.unchanged("i3"):
            told = self.store.commit_batch([yes("i1", response={"a": 1}), no("i2")])
        self.assertIsNone(told)
        self.assert_decided("resolved", "i1", response={"a": 1})
        self.assert_decided("cancelled", "i2")

    def test_a_batch_tells_an_absent_response_from_null(self) -> None:
        self.three()
        self.store.commit_batch([yes("i1"), yes("i2", response=None)])
        self.assert_decided("resolved", "i1")
        self.assert_decided("resolved", "i2", response=None)

    def test_an_empty_batch_decides_nothing(self) -> None:
        self.three()
        with self.unchanged("i1", "i2", "i3"):
            self.store.commit_batch([])

    def test_a_batch_that_names_one_twice_is_rejected_whole(self) -> None:
        self.three()
        with self.rejected("i1"):
            self.store.commit_batch([yes("i1"), yes("i2"), no("i1")])

    def test_a_batch_that_names_an_unknown_one_is_rejected_whole(self) -> None:
        self.three()
        with self.rejected("missing"):
            self.store.commit_batch([yes("i1"), yes("missing"), no("i2")])

    def test_a_batch_that_names_a_resolved_one_is_rejected_whole(self) -> None:
        self.three()
        self.store.resolve("i2", "yes")
        with self.rejected("i2"):
            self.store.commit_batch([yes("i1"), yes("i2", response="no"), no("i3")])

    def test_a_batch_that_names_a_cancelled_one_is_rejected_whole(self) -> None:
        self.three()
        self.store.cancel("i3")
        with self.rejected("i3"):
            self.store.commit_batch([yes("i1"), no("i3")])

    def test_a_batch_that_comes_again_is_rejected(self) -> None:
        self.three()
        self.store.commit_batch([yes("i1"), no("i2")])
        with self.rejected("i1", "i2"):
            self.store.commit_batch([yes("i1"), no("i2")])

    def test_a_batch_of_several_threads_is_one_batch(self) -> None:
        self.ask("i1", "r1", "t1")
        self.ask("i2", "r2", "t2")
        self.store.commit_batch([no("i1"), no("i2")])
        self.assertEqual([self.get(one).status for one in ("i1", "i2")], ["cancelled"] * 2)

    def test_a_batch_is_answered_by_the_very_ids(self) -> None:
        self.three()
        with self.rejected("I1"):
            self.store.commit_batch([yes("I1"), yes("i2")])

    def test_an_entry_that_is_none_is_refused_with_its_place(self) -> None:
        self.three()
        entries: list[tuple[str, dict[str, Any]]] = [
            ("interrupt_id", {"status": "resolved"}),
            ("interrupt_id", yes("")),
            ("status", {"interrupt_id": "i1"}),
            ("status", {"interrupt_id": "i1", "status": "pending"}),
            ("status", {"interrupt_id": "i1", "status": "paused"}),
            ("response", {**no("i1"), "response": None}),
            ("response", yes("i1", response="x" * 100_000)),
            ("payload", yes("i1", payload={})),
        ]
        for field, entry in entries:
            with (
                self.subTest(field=field, entry=str(entry)[:60]),
                self.unchanged("i1", "i2"),
                self.refused(f"entries.1.{field}"),
            ):
                self.store.commit_batch([yes("i2"), entry])

    def test_what_is_no_batch_is_refused(self) -> None:
        for batch in (None, "i1", 1, {"interrupt_id": "i1", "status": "resolved"}):
            with self.subTest(batch=batch), self.refused("entries"):
                self.store.commit_batch(batch)

    def test_an_entry_that_is_no_object_is_refused(self) -> None:
        for entry in (None, "i1", 1, ["i1"]):
            with self.subTest(entry=entry), self.refused("entries.0"):
                self.store.commit_batch([entry])
