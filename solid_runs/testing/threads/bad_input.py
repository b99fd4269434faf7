"""What no record holds is refused with its name, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solid_runs.testing.threads.base import StoreTests
from solid_runs.testing.threads.capabilities import OPTIONAL, needs
from solid_runs.testing.threads.updating import FULL

NO_TEXTS: Final[dict[str, Any]] = {
    "over-long": "x" * 10_000,
    "a NUL": "r\0",
    "half of a character": "r\ud800",
}
NO_IDS: Final[dict[str, Any]] = {
    **NO_TEXTS,
    "a little over-long": "x" * 256,
    "empty": "",
    "blank": " \t",
}
NOT_EVEN_TEXTS: Final[dict[str, Any]] = {
    "bytes": b"r1",
    "a number": 1,
    "a bool": True,
    "a list": ["r1"],
}
NO_NUMBERS: Final[dict[str, Any]] = {
    "a bool": True,
    "a float": 1.5,
    "a whole float": 1.0,
    "text": "soon",
    "a list": [1],
    "too great": 2**53,
    "far too great": 10**400,
}
NO_TIMES: Final[dict[str, Any]] = {**NO_NUMBERS, "too small": -(2**53), "a number as text": "1000"}
NO_EPOCHS: Final[dict[str, Any]] = {**NO_NUMBERS, "negative": -1, "over the limit": 2**52 + 1}
NO_FLAGS: Final[dict[str, Any]] = {"1": 1, "0": 0, "text": "true", "empty": "", "a list": []}
NO_STATUSES: Final[dict[str, Any]] = {
    "unknown": "paused",
    "in capitals": "Running",
    "with a space": "running ",
    "empty": "",
    "a number": 1,
    "a bool": True,
    "a NUL": "running\0",
}
NO_DOCUMENTS: Final[dict[str, Any]] = {
    "a list": [1],
    "text": "{}",
    "a number": 1,
    "a bool": False,
    "too large": {"text": "x" * 100_000},
    "large in many parts": {f"k{number}": "x" * 100 for number in range(1000)},
}

Call = Callable[[Any, Any], Any]

BY_ID: Final[dict[str, tuple[str, Call]]] = {
    "create_or_resume": ("run_id", lambda store, value: store.create_or_resume(value, "t1", 1)),
    "update": ("run_id", lambda store, value: store.update(value, {"status": "failed"})),
    "get": ("run_id", lambda store, value: store.get(value)),
    "find_active_run": ("thread_id", lambda store, value: store.find_active_run(value)),
    "list_by_thread": ("thread_id", lambda store, value: store.list_by_thread(value)),
    "list_by_parent_run": ("parent_run_id", lambda store, value: store.list_by_parent_run(value)),
    "claim": ("run_id", lambda store, value: store.claim(value)),
    "touch": ("run_id", lambda store, value: store.touch(value, 1)),
    "update_if": (
        "run_id",
        lambda store, value: store.update_if(value, {"status": "failed"}, status="running"),
    ),
    "request_cancel": ("run_id", lambda store, value: store.request_cancel(value)),
    "was_cancel_requested": ("run_id", lambda store, value: store.was_cancel_requested(value)),
}
"""Every method that takes an id, with the name of that."""


class BadIds(StoreTests):
    def refuse_ids(self, values: dict[str, Any]) -> None:
        left_out = {name for capability in self.leaves_out for name in OPTIONAL[capability]}
        self.create()
        for name, (field, call) in BY_ID.items():
            if name not in left_out:
                with self.subTest(method=name):
                    self.refuses(field, lambda value, call=call: call(self.store, value), values)

    def test_every_method_refuses_an_id_that_no_key_holds(self) -> None:
        self.refuse_ids(NO_IDS)

    def test_every_method_refuses_an_id_that_is_no_text(self) -> None:
        self.refuse_ids(NOT_EVEN_TEXTS)

    def test_every_method_refuses_an_id_that_is_none(self) -> None:
        self.refuse_ids({"None": None})


class BadCreates(StoreTests):
    def refuse_new(self, field: str, values: dict[str, Any]) -> None:
        def create(value: Any) -> None:
            given = {"thread_id": "t2", "started_at": 1, field: value}
            self.store.create_or_resume("r2", **given)

        self.create()
        self.refuses(field, create, values)
        self.assertIsNone(self.store.find_active_run("t2"))

    def test_a_run_in_no_thread_is_refused(self) -> None:
        self.refuse_new("thread_id", {**NO_IDS, **NOT_EVEN_TEXTS, "None": None})

    def test_a_start_that_is_no_whole_number_is_refused(self) -> None:
        self.refuse_new("started_at", {**NO_TIMES, "None": None})

    def test_a_new_run_with_an_unknown_status_is_refused(self) -> None:
        self.refuse_new("status", NO_STATUSES)

    def test_a_parent_that_no_key_holds_is_refused(self) -> None:
        self.refuse_new("parent_run_id", {**NO_IDS, **NOT_EVEN_TEXTS})

    def test_a_subagent_that_no_key_holds_is_refused(self) -> None:
        self.refuse_new("subagent_run_id", {**NO_IDS, **NOT_EVEN_TEXTS})

    def test_a_name_that_is_no_text_is_refused(self) -> None:
        self.refuse_new("name", {**NO_TEXTS, **NOT_EVEN_TEXTS})

    @needs("labels")
    def test_a_trace_that_no_key_holds_is_refused(self) -> None:
        self.refuse_new("trace_id", {**NO_IDS, **NOT_EVEN_TEXTS})

    def test_a_bad_value_is_refused_although_the_run_is_there(self) -> None:
        self.create()
        with self.unchanged("r1"), self.refused("status"):
            self.store.create_or_resume("r1", "t1", 1, status="paused")


class BadPatches(StoreTests):
    def refuse_patched(self, field: str, values: dict[str, Any], named: str = "") -> None:
        """That no update takes these values of a field, beside others that it would take."""
        self.create()

        def update(value: Any) -> None:
            self.store.update("r1", {**FULL, "status": "completed", field: value})

        self.refuses(named or field, update, values)

    def test_an_unknown_status_is_refused(self) -> None:
        self.refuse_patched("status", NO_STATUSES)

    def test_a_status_cannot_be_cleared(self) -> None:
        self.refuse_patched("status", {"None": None})

    def test_an_end_that_is_no_whole_number_is_refused(self) -> None:
        self.refuse_patched("finished_at", NO_TIMES)

    def test_a_time_of_leaving_that_is_no_whole_number_is_refused(self) -> None:
        self.refuse_patched("detached_since", NO_TIMES)

    def test_an_epoch_that_is_no_whole_number_is_refused(self) -> None:
        self.refuse_patched("driver_epoch", NO_EPOCHS)

    def test_a_cancel_request_that_is_no_bool_is_refused(self) -> None:
        self.refuse_patched("cancel_requested", NO_FLAGS)

    def test_a_sandbox_that_is_no_text_is_refused(self) -> None:
        self.refuse_patched("sandbox_key", {**NO_TEXTS, **NOT_EVEN_TEXTS})

    def test_a_usage_that_is_no_object_or_too_large_is_refused(self) -> None:
        self.refuse_patched("usage", NO_DOCUMENTS)

    def test_an_error_that_is_no_object_is_refused(self) -> None:
        self.refuse_patched("error", {"text": "No model.", "a list": ["No model."], "a number": 1})

    def test_an_error_without_a_message_is_refused(self) -> None:
        messages = {"absent": {}, "None": {"message": None}, "a number": {"message": 1}}
        messages["an object"] = {"message": {"text": "No model."}}
        self.refuse_patched("error", messages, "error.message")

    def test_an_error_with_a_code_that_is_none_is_refused(self) -> None:
        codes = {**NO_TEXTS, **NOT_EVEN_TEXTS}
        errors = {what: {"message": "m", "code": code} for what, code in codes.items()}
        self.refuse_patched("error", errors, "error.code")

    def test_an_error_with_another_key_is_refused(self) -> None:
        self.refuse_patched("error", {"stack": {"message": "m", "stack": "s"}}, "error.stack")

    def test_an_unknown_key_is_refused(self) -> None:
        self.create()
        for name in (
            *("bogus", "run_id", "thread_id", "started_at", "parent_run_id", "subagent_run_id"),
            *("name", "scope", "trace_id", "heartbeat_at", "leased_until", "id"),
        ):
            for value in ("r2", 1, None):
                with self.subTest(name, value=value), self.unchanged("r1"), self.refused(name):
                    self.store.update("r1", {"status": "completed", name: value})

    def test_a_patch_that_is_no_object_is_refused(self) -> None:
        self.create()
        values: dict[str, Any] = {"None": None, "a list": [], "text": "completed", "a number": 1}
        self.refuses("patch", lambda value: self.store.update("r1", value), values)

    def test_a_bad_patch_of_an_unknown_run_is_refused(self) -> None:
        with self.refused("status"):
            self.update("missing", status="paused")
        with self.refused("bogus"):
            self.update("missing", bogus=1)
        self.assertIsNone(self.get("missing"))

    @needs("claim")
    def test_a_bad_patch_of_a_holder_is_refused(self) -> None:
        self.create()
        holder = self.claim()
        for name, value in (("status", "paused"), ("finished_at", 1.5), ("bogus", 1)):
            with self.subTest(name), self.unchanged("r1"), self.refused(name):
                holder.update({**FULL, name: value})

    @needs("update_if")
    def test_a_bad_patch_of_a_run_that_is_as_expected_is_refused(self) -> None:
        self.create()
        for name, value in (("status", "paused"), ("finished_at", 1.5), ("bogus", 1)):
            with self.subTest(name), self.unchanged("r1"), self.refused(name):
                self.store.update_if("r1", {**FULL, name: value}, status="running")


class BadConditions(StoreTests):
    @needs("update_if")
    def test_an_expected_status_that_is_none_is_refused(self) -> None:
        self.create()
        values = {what: value for what, value in NO_STATUSES.items() if isinstance(value, str)}
        self.refuses(
            "status",
            lambda value: self.store.update_if("r1", {"finished_at": 1}, status=value),
            {**values, "one of two": ["running", "paused"]},
        )

    @needs("update_if")
    def test_an_expected_epoch_that_is_no_whole_number_is_refused(self) -> None:
        self.create()
        self.refuses(
            "epoch",
            lambda value: self.store.update_if("r1", {"finished_at": 1}, epoch=value),
            NO_EPOCHS,
        )

    @needs("claim")
    def test_a_condition_of_a_claim_that_is_no_whole_number_is_refused(self) -> None:
        self.create()
        for name, values in (
            ("detached_before", NO_TIMES),
            ("silent_before", NO_TIMES),
            ("epoch", NO_EPOCHS),
        ):
            self.refuses(
                name, lambda value, name=name: self.store.claim("r1", **{name: value}), values
            )

    @needs("claim", "leases")
    def test_a_lease_that_is_no_whole_number_is_refused(self) -> None:
        self.create()
        self.refuses(
            "lease_ms",
            lambda value: self.store.claim("r1", lease_ms=value),
            {**NO_NUMBERS, "negative": -1},
        )

    @needs("claim", "touch")
    def test_a_touch_at_no_time_is_refused(self) -> None:
        self.create()
        self.refuses("now", self.claim().touch, NO_TIMES)

    @needs("touch")
    def test_a_touch_of_no_epoch_is_refused(self) -> None:
        self.create()
        self.refuses("epoch", lambda value: self.store.touch("r1", value), NO_EPOCHS)

    @needs("list_reclaimable")
    def test_what_was_left_is_not_listed_by_what_is_no_whole_number(self) -> None:
        self.refuses("now", lambda value: self.store.list_reclaimable(value, 0), NO_NUMBERS)
        self.refuses(
            "ttl_ms",
            lambda value: self.store.list_reclaimable(1000, value),
            {**NO_NUMBERS, "negative": -1},
        )

    @needs("list_stalled")
    def test_what_is_stalled_is_not_listed_by_what_is_no_whole_number(self) -> None:
        self.refuses("now", lambda value: self.store.list_stalled(value, 0), NO_NUMBERS)
        self.refuses(
            "ttl_ms",
            lambda value: self.store.list_stalled(1000, value),
            {**NO_NUMBERS, "negative": -1},
        )

    @needs("limits", "list_reclaimable", "list_stalled")
    def test_a_limit_that_is_no_whole_number_is_refused(self) -> None:
        values = {**NO_NUMBERS, "negative": -1}
        self.refuses("limit", lambda value: self.store.list_reclaimable(1, 0, limit=value), values)
        self.refuses("limit", lambda value: self.store.list_stalled(1, 0, limit=value), values)

    @needs("prune")
    def test_what_is_old_is_not_pruned_by_what_is_no_whole_number(self) -> None:
        self.ended()
        self.create("r9", started_at=2)
        self.refuses("before", lambda value: self.store.prune(value), {**NO_TIMES, "None": None})
