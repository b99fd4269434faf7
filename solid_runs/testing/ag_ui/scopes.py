"""A scope names a tenant, and no tenant sees another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from solid_runs.ag_ui.exceptions import ConfigurationError, ResumeRejectedError
from solid_runs.testing.ag_ui.base import SCOPE, THREAD, YES, StoreTests, entries
from solid_runs.testing.ag_ui.capabilities import OPTIONAL

NO_SCOPES: Final = [
    *(None, "", " ", "\t\n", True, False, 1.0, b"1", ("1",), object(), "a\0b", "x" * 256),
]

Call = Callable[[Any, Any], Any]

CALLS: Final[dict[str, Call]] = {
    "reserve": lambda store, scope: store.reserve(scope, THREAD, "r1", "d1"),
    "find": lambda store, scope: store.find(scope, THREAD, "r1"),
    "latest_run": lambda store, scope: store.latest_run(scope, THREAD),
    "latest_interrupted": lambda store, scope: store.latest_interrupted(scope, THREAD),
    "find_interrupt": lambda store, scope: store.find_interrupt(scope, THREAD, "i1"),
    "redeem_interrupt": lambda store, scope: store.redeem_interrupt(scope, THREAD, "i1", YES),
    "abandon": lambda store, scope: store.abandon(scope, THREAD),
    "admit": lambda store, scope: store.admit(scope, THREAD, "r1", "d1"),
    "answer": lambda store, scope: store.answer(scope, THREAD, "i1", YES, by="ann"),
    "release": lambda store, scope: store.release(scope, THREAD, "r1"),
    "release_settled": lambda store, scope: store.release_settled(
        scope, THREAD, "r1", "i1", by="ann"
    ),
    "request_cancel": lambda store, scope: store.request_cancel(scope, THREAD, "r1"),
    "resume": lambda store, scope: store.resume(scope, THREAD, entries(i1=YES), "r2"),
    "settle": lambda store, scope: store.settle(scope, THREAD, "i1", "r2"),
    "status": lambda store, scope: store.status(scope, THREAD, "r1"),
}
"""Every method that takes a scope."""

STRANGERS: Final[dict[str, Any]] = {
    "find": None,
    "latest_run": None,
    "latest_interrupted": None,
    "find_interrupt": None,
    "redeem_interrupt": ResumeRejectedError,
    "abandon": 0,
    "answer": ResumeRejectedError,
    "release": 0,
    "release_settled": ResumeRejectedError,
    "request_cancel": None,
    "resume": ResumeRejectedError,
    "settle": False,
    "status": None,
}
"""What each says of another tenant's thread: that there is nothing."""


class Scopes(StoreTests):
    def offered(self, names: Any) -> list[str]:
        left_out = {name for capability in self.leaves_out for name in OPTIONAL[capability]}
        return [name for name in names if name not in left_out]

    def test_every_method_refuses_what_names_no_tenant(self) -> None:
        self.asked()
        for name in self.offered(CALLS):
            for scope in NO_SCOPES:
                with (
                    self.subTest(method=name, scope=scope),
                    self.assertRaises(ConfigurationError),
                ):
                    CALLS[name](self.store, scope)
        self.assert_state("open")

    def test_a_tenant_sees_nothing_of_another_and_changes_nothing(self) -> None:
        self.asked()
        for name in self.offered(STRANGERS):
            said = STRANGERS[name]
            with self.subTest(method=name), self.unchanged("r1"):
                if isinstance(said, type):
                    with self.assertRaises(said):
                        CALLS[name](self.store, "globex")
                else:
                    self.assertEqual(CALLS[name](self.store, "globex"), said)
        self.assertIsNone(self.store.latest_run("globex", THREAD))

    def test_equal_ids_of_two_tenants_are_two_runs(self) -> None:
        mine = self.asked()
        theirs = self.store.reserve("globex", THREAD, "r1", "another digest")
        self.assertIs(theirs.new, True)
        self.assert_same(self.find(), mine)
        self.saved(theirs.record.finish("failed", self.clock()))
        self.assert_same(self.find(), mine)
        self.assertEqual(self.store.latest_run("globex", THREAD).status, "failed")

    def test_an_answer_of_one_tenant_leaves_the_equal_interrupt_of_another_open(self) -> None:
        self.asked()
        self.asked(scope="globex")
        self.redeem()
        self.assertTrue(self.store.find_interrupt("globex", THREAD, "i1").pending)

    def test_a_run_of_one_tenant_cannot_settle_or_release_what_another_tenants_holds(self) -> None:
        self.asked()
        self.answer_for("r2")
        self.store.reserve("globex", THREAD, "r2", "d1")
        self.assertIs(self.store.settle("globex", THREAD, "i1", "r2"), False)
        self.store.release("globex", THREAD, "r2")
        self.assert_state("held")
        self.assertIs(self.store.settle(SCOPE, THREAD, "i1", "r2"), True)

    def test_a_number_and_its_text_are_one_scope(self) -> None:
        for number in (1, 0, -7, 2**70):
            with self.subTest(number=number):
                record = self.reserved(scope=number)
                self.assertEqual(record.scope, str(number))
                self.assert_same(self.find(scope=str(number)), record)
                self.assertIs(self.store.reserve(str(number), THREAD, "r1", "d1").attached, True)

    def test_a_number_written_otherwise_is_another_scope(self) -> None:
        self.reserved(scope=1)
        for scope in ("01", "1 ", "+1", "1.0", "１"):
            with self.subTest(scope=scope):
                self.assertIsNone(self.find(scope=scope))

    def test_a_uuid_and_its_canonical_text_are_one_scope(self) -> None:
        tenant = UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
        record = self.reserved(scope=tenant)
        self.assertEqual(record.scope, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
        self.assert_same(self.find(scope=str(tenant)), record)
        self.assertIsNone(self.find(scope=str(tenant).upper()))
        self.assertIsNone(self.find(scope=tenant.hex))
