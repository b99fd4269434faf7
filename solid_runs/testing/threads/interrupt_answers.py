"""What runs asked, and what became of it."""

from __future__ import annotations

from typing import Any, Final

from solid_runs.testing.threads.creating import ALIKE, MOMENTS
from solid_runs.testing.threads.interrupt_base import (
    InterruptStoreTests,
    needs,
)
from solid_runs.testing.threads.updating import DETAILED
from solid_runs.threads.interrupts import InterruptRecord

RESPONSES: Final[list[Any]] = [None, False, 0, "", [], {}, "yes", 0.1, [None], DETAILED]


class Asking(InterruptStoreTests):
    def test_an_interrupt_that_was_never_created_is_none(self) -> None:
        self.assertIsNone(self.get("i1"))

    def test_a_create_returns_nothing(self) -> None:
        self.assertIsNone(self.store.create("i1", "r1", "t1", 1, {}))

    def test_a_new_interrupt_is_pending_with_what_was_given(self) -> None:
        self.ask("i1", "r1", "t1", 1000, {"question": "May I?"})
        self.assertEqual(
            self.get().to_json(),
            {
                "interruptId": "i1",
                "runId": "r1",
                "threadId": "t1",
                "status": "pending",
                "requestedAt": 1000,
                "payload": {"question": "May I?"},
            },
        )

    def test_a_new_interrupt_is_a_record(self) -> None:
        self.ask()
        self.assertIsInstance(self.get(), InterruptRecord)
        self.assertIs(self.get().pending, True)

    def test_a_second_create_stores_nothing(self) -> None:
        self.ask()
        with self.unchanged("i1"):
            self.ask("i1", "r2", "t2", 99, {"question": "Else?"})

    def test_a_create_opens_no_decided_interrupt_again(self) -> None:
        self.ask("i1")
        self.ask("i2")
        self.store.resolve("i1", "yes")
        self.store.cancel("i2")
        with self.unchanged("i1", "i2"):
            self.ask("i1")
            self.ask("i2")

    def test_a_payload_reads_back_with_all_its_details(self) -> None:
        for number, payload in enumerate(({}, DETAILED, {"a": None})):
            self.ask(f"i{number}", payload=payload)
            self.assertEqual(self.get(f"i{number}").payload, payload)

    def test_a_payload_that_is_changed_changes_nothing_stored(self) -> None:
        payload = {"options": ["a"]}
        self.ask(payload=payload)
        payload["options"].append("b")
        self.get().payload["options"].append("c")
        self.assertEqual(self.get().payload, {"options": ["a"]})

    def test_the_time_of_asking_is_kept_to_the_millisecond(self) -> None:
        for moment in MOMENTS:
            with self.subTest(moment=moment):
                self.ask(f"i{moment}", requested_at=moment)
                self.assertEqual(self.get(f"i{moment}").requested_at, moment)

    def test_interrupt_ids_that_look_alike_are_two_interrupts(self) -> None:
        for one, other in ALIKE:
            with self.subTest(one=one, other=other):
                self.ask(one)
                self.assertIsNone(self.get(other))
                self.assertEqual(self.get(one).interrupt_id, one)

    def test_the_run_and_the_thread_need_not_be_known(self) -> None:
        self.ask(run_id="elsewhere", thread_id="nowhere")
        self.assertEqual((self.get().run_id, self.get().thread_id), ("elsewhere", "nowhere"))

    @needs("cleaning")
    def test_a_payload_with_a_nul_or_half_of_a_character_is_stored_cleaned(self) -> None:
        self.ask(payload={"text": "a\0b", "half\ud83d": 1})
        self.assertEqual(self.get().payload, {"text": "a\ufffdb", "half\ufffd": 1})


class Deciding(InterruptStoreTests):
    def test_an_interrupt_is_resolved_with_its_response_and_its_time(self) -> None:
        self.ask()
        self.later(5)
        self.assertIsNone(self.store.resolve("i1", {"approved": True}))
        self.assert_decided("resolved", response={"approved": True})

    def test_a_response_that_was_not_given_is_absent(self) -> None:
        self.ask()
        self.store.resolve("i1")
        self.assert_decided("resolved")

    def test_a_response_of_null_is_a_response(self) -> None:
        self.ask()
        self.store.resolve("i1", None)
        self.assertIn("response", self.get().to_json())
        self.assert_decided("resolved", response=None)

    def test_every_response_reads_back(self) -> None:
        for number, response in enumerate(RESPONSES):
            self.ask(f"i{number}")
            with self.subTest(response=response):
                self.store.resolve(f"i{number}", response)
                self.assertEqual(
                    repr(sorted_keys(self.get(f"i{number}").response)), repr(sorted_keys(response))
                )

    def test_a_response_that_is_changed_changes_nothing_stored(self) -> None:
        self.ask()
        response = {"chosen": ["a"]}
        self.store.resolve("i1", response)
        response["chosen"].append("b")
        self.get().response["chosen"].append("c")
        self.assertEqual(self.get().response, {"chosen": ["a"]})

    def test_a_later_answer_overwrites_an_earlier_one(self) -> None:
        self.ask()
        self.store.resolve("i1", {"approved": True})
        self.later(5)
        self.store.resolve("i1", "no")
        self.assert_decided("resolved", response="no")

    def test_a_later_answer_without_a_response_leaves_none(self) -> None:
        self.ask()
        self.store.resolve("i1", "yes")
        self.store.resolve("i1")
        self.assert_decided("resolved")

    def test_an_interrupt_is_cancelled_with_its_time_and_no_response(self) -> None:
        self.ask()
        self.later(5)
        self.assertIsNone(self.store.cancel("i1"))
        self.assert_decided("cancelled")

    def test_a_cancel_overwrites_an_answer(self) -> None:
        self.ask()
        self.store.resolve("i1", "yes")
        self.later(5)
        self.store.cancel("i1")
        self.assert_decided("cancelled")

    def test_an_answer_overwrites_a_cancel(self) -> None:
        self.ask()
        self.store.cancel("i1")
        self.later(5)
        self.store.resolve("i1", "yes")
        self.assert_decided("resolved", response="yes")

    def test_what_is_unknown_stays_unknown(self) -> None:
        self.assertIsNone(self.store.resolve("missing", "yes"))
        self.assertIsNone(self.store.cancel("missing"))
        self.assertIsNone(self.get("missing"))

    def test_a_decision_changes_no_other_interrupt(self) -> None:
        for interrupt_id in ("i1", "i2", "i3"):
            self.ask(interrupt_id)
        with self.unchanged("i3"):
            self.store.resolve("i1", "yes")
            self.store.cancel("i2")


def sorted_keys(value: Any) -> Any:
    """Whatever order its keys are stored in."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(one) for one in value] if isinstance(value, list) else value
