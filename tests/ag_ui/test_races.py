"""Races for runs, answers and threads between real processes, on whatever database the suite has.

No racer may meet an error of the database: the race fails with its traceback if one does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from solid_runs.ag_ui.exceptions import StreamError
from solid_runs.ag_ui.interrupts import AnswerState, Interrupt
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt, RunThread
from solid_runs.ag_ui.records import TERMINAL, RunRecord
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.database_time import DatabaseNow
from tests.ag_ui.racers import APPROVED, DENIED, SCOPE
from tests.races import Racer, race, racers

pytestmark = pytest.mark.usefixtures("committed")

store = DatabaseStore()
Told = dict[str, Any]


@pytest.fixture(scope="module")
def field(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Racer]]:
    """Twenty processes for the whole module."""
    with racers(20) as processes:
        yield processes


def call(method: str, /, *, at: float | None = None, until: str | None = None, **arguments: Any):
    return {"task": "ask", "method": method, "arguments": arguments, "at": at, "until": until}


def held(field: Sequence[Racer], tasks: Sequence[dict[str, Any]], turn: int = 0) -> list[Told]:
    """What each was told, when every task is the first to hear the pistol once in so many turns."""
    shift = turn % len(tasks)
    told = [outcome.result for outcome in race(field, [*tasks[shift:], *tasks[:shift]])]
    return [*told[len(tasks) - shift :], *told[: len(tasks) - shift]]


def gave(told: Sequence[Told]) -> list[Any]:
    return [one["gave"] for one in told if not one["refused"]]


def refused(told: Sequence[Told]) -> list[tuple[str, str]]:
    return [(one["refused"], one["code"]) for one in told if one["refused"]]


def started(thread: str, run: str) -> RunRecord:
    record = store.reserve(SCOPE, thread, run, "d").record
    return store.save(record.start(store.now()))


def asked(thread: str, run: str = "r1", **given: Any) -> Interrupt:
    """A thread that waits for an answer to i1."""
    interrupt = Interrupt(id="i1", reason="tool_call", **given)
    store.save(started(thread, run).interrupted([interrupt], store.now()))
    return interrupt


def silence(thread: str, run: str) -> None:
    """As if the owner had died five minutes ago."""
    run_row(thread, run).update(alive_at=DatabaseNow(ago=timedelta(minutes=5)))


def run_row(thread: str, run: str) -> Any:
    return ReservedRun.objects.filter(scope=SCOPE, thread_id=thread, run_id=run)


def stored(thread: str, run: str) -> RunRecord:
    record = store.find(SCOPE, thread, run)
    assert record is not None
    return record


def answer_of(thread: str, interrupt: str = "i1") -> Interrupt:
    found = store.find_interrupt(SCOPE, thread, interrupt)
    assert found is not None
    return found


def decision_of(thread: str) -> Any:
    decision = answer_of(thread).decision
    return decision and {"status": decision.status, "payload": decision.payload}


def assert_answer_makes_sense(interrupt: Interrupt) -> None:
    """What no interleaving may leave behind."""
    if interrupt.state is AnswerState.SETTLED and not interrupt.cancelled:
        assert interrupt.redeemed_by, "somebody acted on it, and nobody is named"
    assert (interrupt.redeemed_by is None) == (interrupt.redeemed_at is None)
    assert (interrupt.decision is None) == (interrupt.decided_at is None)


# Reserving


@pytest.mark.parametrize("method", ["reserve", "admit"])
@pytest.mark.parametrize("policy", ["allow", "reject"])
def test_twenty_reserves_of_one_identity_give_one_new(
    method: str, policy: str, field: list[Racer]
) -> None:
    for thread in (f"t{n}" for n in range(2)):
        one = call(method, thread_id=thread, run_id="r1", digest="d", policy=policy)
        told = gave(held(field, [one] * 20))
        assert Counter(each["new"] for each in told) == {True: 1, False: 19}
        assert run_row(thread, "r1").count() == 1


def test_reserves_with_and_without_a_lock_give_one_new(field: list[Racer]) -> None:
    for thread in (f"t{n}" for n in range(2)):
        common = {"thread_id": thread, "run_id": "r1", "digest": "d"}
        tasks = [call("reserve", **common), call("admit", **common)] * 8
        tasks += [call("reserve", policy="reject", **common)] * 4
        told = gave(held(field, tasks))
        assert Counter(each["new"] for each in told) == {True: 1, False: 19}


def test_twenty_threads_of_one_process_give_one_new() -> None:
    def reserve(number: int) -> bool:
        try:
            return store.reserve(SCOPE, "t", "r1", "d").new
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as crowd:
        assert Counter(crowd.map(reserve, range(20))) == {True: 1, False: 19}


def test_of_two_inputs_under_one_id_one_is_refused(field: list[Racer]) -> None:
    for turn in range(10):
        common = {"thread_id": f"t{turn}", "run_id": "r1"}
        tasks = [call("reserve", digest=digest, **common) for digest in "ab"]
        told = held(field, tasks, turn)
        assert refused(told) == [("RunConflictError", "run_conflict")]
        assert gave(told) == [{"new": True, "status": "reserved"}]
        assert stored(f"t{turn}", "r1").digest == ("b" if told[0]["refused"] else "a")


@pytest.mark.parametrize("method", ["reserve", "admit"])
def test_a_thread_that_allows_one_run_takes_one_of_two(method: str, field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        common = {"thread_id": thread, "digest": "d", "policy": "reject"}
        tasks = [call(method, run_id=run, **common) for run in ("r1", "r2")]
        told = held(field, tasks, turn)
        assert [each["new"] for each in gave(told)] == [True]
        assert refused(told) == [("ThreadBusyError", "thread_busy")]
        assert ReservedRun.objects.filter(thread_id=thread).count() == 1


def test_twenty_first_runs_of_one_thread_all_get_in(field: list[Racer]) -> None:
    for thread in (f"t{n}" for n in range(3)):
        common = {"thread_id": thread, "digest": "d"}
        told = gave(held(field, [call("admit", run_id=f"r{n}", **common) for n in range(20)]))
        assert [each["new"] for each in told] == [True] * 20
        assert RunThread.objects.count() == int(thread[1:]) + 1


@pytest.mark.parametrize("policy", ["allow", "reject"])
def test_many_new_threads_at_once_lock_none_of_their_neighbours(
    policy: str, field: list[Racer]
) -> None:
    """Each goes through all of them in an order of its own."""
    threads = [f"t{n:03}" for n in range(60)]
    orders = [threads[3 * n :] + threads[: 3 * n] for n in range(10)]
    orders += [list(reversed(order)) for order in orders]
    tasks = [
        {"task": "reserve_each", "threads": order, "run_id": "r1", "policy": policy}
        for order in orders
    ]
    assert sum(outcome.result for outcome in race(field, tasks)) == len(threads)
    assert ReservedRun.objects.count() == len(threads)


# Ending


@pytest.mark.parametrize(
    "endings", [("succeeded", "failed"), ("cancelled", "succeeded"), ("failed", "cancelled")]
)
def test_two_ends_of_one_started_copy_give_one_outcome(
    endings: tuple[str, str], field: list[Racer]
) -> None:
    for turn in range(30):
        thread = f"t{turn}"
        copy = started(thread, "r1")
        ends = [copy.finish(status, store.now(), {"message": status}) for status in endings]
        told = held(field, [call("save", record=end.to_storage()) for end in ends], turn)
        assert refused(told) == [(StreamError.__name__, "internal_error")]
        (winner,) = (end for end, one in zip(ends, told, strict=True) if not one["refused"])
        assert stored(thread, "r1").to_storage() == winner.to_storage()


def test_a_cancel_request_against_an_end_leaves_the_end(field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        end = started(thread, "r1").finish("succeeded", store.now())
        tasks = [
            call("save", record=end.to_storage()),
            call("request_cancel", thread_id=thread, run_id="r1"),
        ]
        saved, request = held(field, tasks, turn)
        assert not saved["refused"]
        assert stored(thread, "r1").status == "succeeded"
        asked_in_time = run_row(thread, "r1").get().cancel_requested_at is not None
        assert asked_in_time == (not request["gave"]["ended"])


def test_a_live_owner_hears_of_a_cancel_that_came_meanwhile(field: list[Racer]) -> None:
    for turn in range(40):
        thread = f"t{turn}"
        record = started(thread, "r1").to_storage()
        beat = call("heartbeat", record=record)
        cancel = call("request_cancel", thread_id=thread, run_id="r1")
        told = held(field, [beat, cancel, beat, cancel, beat], turn)
        assert refused(told) == []
        assert {told[n]["gave"]["status"] for n in (1, 3)} == {"started"}
        assert store.heartbeat(stored(thread, "r1")) is True


def test_a_cancel_of_a_silent_run_against_its_end_gives_one_outcome(field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        end = started(thread, "r1").finish("succeeded", store.now())
        silence(thread, "r1")
        tasks = [
            call("save", record=end.to_storage()),
            call("request_cancel", thread_id=thread, run_id="r1"),
        ]
        saved, request = held(field, tasks, turn)
        assert request["gave"] == {"ended": True, "status": stored(thread, "r1").status}
        assert stored(thread, "r1").status == ("cancelled" if saved["refused"] else "succeeded")


def test_a_run_that_gave_a_sign_of_life_in_time_is_not_failed(field: list[Racer]) -> None:
    beaten = 0
    for turn in range(60):
        thread = f"t{turn}"
        record = started(thread, "r1")
        silence(thread, "r1")
        begun = time.time() + 0.02
        late = begun + turn % 30 * 0.0002
        tasks = [
            call("fail_stalled", before=60, at=begun),
            call("heartbeat", record=record.to_storage(), at=late),
            call("fail_stalled", before=60, at=begun),
        ]
        first, beat, second = held(field, tasks, turn)
        reaped = first["gave"] + second["gave"]
        status = stored(thread, "r1").status
        if beat["refused"]:
            assert (reaped, status) == (["r1"], "failed")
        else:
            beaten += 1
            assert (reaped, status) == ([], "started"), "it was alive, and was failed"
    assert beaten, "nobody raced"


# Answering


def redeem(thread: str, run: str, decision: Any = APPROVED, **given: Any) -> dict[str, Any]:
    common = {"thread_id": thread, "interrupt_id": "i1", "decision": decision}
    return call("redeem_interrupt", run_id=run, **common, **given)


def bring(thread: str, run: str, decision: Any = APPROVED) -> dict[str, Any]:
    entries = [{"interruptId": "i1", **decision}]
    return call("admit", thread_id=thread, run_id=run, digest=run, entries=entries)


def test_twenty_equal_answers_by_twenty_runs_give_one_hold(field: list[Racer]) -> None:
    for turn in range(2):
        thread = f"t{turn}"
        asked(thread)
        told = held(field, [redeem(thread, f"b{n}") for n in range(20)])
        assert gave(told) == [{"recorded": True, "holds": True, "id": "i1"}]
        assert refused(told) == [("ResumeRejectedError", "interrupt_answered")] * 19
        (holder,) = (n for n, one in enumerate(told) if not one["refused"])
        assert answer_of(thread).redeemed_by == f"b{holder}"


def test_twenty_answers_that_disagree_leave_the_first(field: list[Racer]) -> None:
    for turn in range(2):
        thread = f"t{turn}"
        asked(thread)
        decisions = [{"status": "resolved", "payload": n} for n in range(20)]
        told = held(field, [redeem(thread, f"b{n}", decisions[n]) for n in range(20)])
        assert len(gave(told)) == 1
        (holder,) = (n for n, one in enumerate(told) if not one["refused"])
        assert decision_of(thread) == decisions[holder]
        assert answer_of(thread).redeemed_by == f"b{holder}"


def test_twenty_runs_that_find_a_free_answer_give_one_hold(field: list[Racer]) -> None:
    for turn in range(2):
        thread = f"t{turn}"
        asked(thread)
        store.answer(SCOPE, thread, "i1", APPROVED, by="inbox")
        common = {"thread_id": thread, "digest": "d"}
        told = gave(held(field, [call("admit", run_id=f"b{n}", **common) for n in range(20)]))
        holders = [one["run"] for one in told if one["answers"] and one["answers"][0]["holds"]]
        assert holders == [answer_of(thread).redeemed_by]


@pytest.mark.parametrize("other", [APPROVED, DENIED])
def test_of_two_tabs_that_answer_one_runs(other: Any, field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        asked(thread)
        told = held(field, [bring(thread, "r2"), bring(thread, "r3", other)], turn)
        assert refused(told) == [("ResumeRejectedError", "interrupt_answered")]
        (winner,) = gave(told)
        assert winner["answers"] == [{"recorded": True, "holds": True, "id": "i1"}]
        assert answer_of(thread).redeemed_by == winner["run"]
        assert decision_of(thread) == (APPROVED if winner["run"] == "r2" else other)
        runs = ReservedRun.objects.filter(thread_id=thread).values_list("run_id", flat=True)
        assert sorted(runs) == ["r1", winner["run"]], "what was refused left a row"


def test_two_batches_that_agree_in_part_never_mix(field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        both = [Interrupt(id=one, reason="ask") for one in ("i1", "i2")]
        store.save(started(thread, "r1").interrupted(both, store.now()))
        batches = [[("i1", APPROVED), ("i2", DENIED)], [("i2", APPROVED), ("i1", APPROVED)]]
        tasks = [
            call(
                "resume",
                thread_id=thread,
                run_id=f"b{n}",
                entries=[{"interruptId": one, **decision} for one, decision in batch],
            )
            for n, batch in enumerate(batches)
        ]
        told = held(field, tasks, turn)
        assert refused(told) == [("ResumeRejectedError", "interrupt_answered")]
        holder = "b1" if told[0]["refused"] else "b0"
        assert {answer_of(thread, one).redeemed_by for one in ("i1", "i2")} == {holder}


@pytest.mark.parametrize("given", [APPROVED, DENIED])
def test_a_tab_against_the_inbox_leaves_the_first_answer(given: Any, field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        asked(thread)
        inbox = {"thread_id": thread, "interrupt_id": "i1", "decision": given, "by": "anna"}
        tab, person = held(field, [bring(thread, "r2"), call("answer", **inbox)], turn)
        answer = answer_of(thread)
        assert_answer_makes_sense(answer)
        if given == APPROVED:
            assert not tab["refused"]
            assert not person["refused"]
            assert answer.redeemed_by == "r2"
            assert tab["gave"]["answers"][0]["recorded"] != person["gave"]["recorded"]
            assert answer.decided_by == ("anna" if person["gave"]["recorded"] else None)
        else:
            assert bool(tab["refused"]) != bool(person["refused"])
            assert decision_of(thread) == (DENIED if tab["refused"] else APPROVED)
            assert answer.redeemed_by == (None if tab["refused"] else "r2")


def test_a_withdrawal_against_an_answer_has_one_winner(field: list[Racer]) -> None:
    for turn in range(20):
        thread = f"t{turn}"
        asked(thread)
        tasks = [redeem(thread, "r2"), call("abandon", thread_id=thread, by="host")]
        redeemed, abandoned = held(field, tasks, turn)
        answer = answer_of(thread)
        if redeemed["refused"]:
            assert abandoned["gave"] == 1
            assert answer.cancelled
            assert (answer.state, answer.decided_by) == ("settled", "host")
        else:
            assert abandoned["gave"] == 0
            assert (answer.state, answer.redeemed_by) == ("held", "r2")


def test_an_answer_against_its_deadline_has_one_winner(field: list[Racer]) -> None:
    """A plain run gets the question offered until its time is up, and then withdraws it."""
    in_time = 0
    for turn in range(100):
        thread, deadline = f"t{turn}", store.now() + timedelta(milliseconds=200)
        asked(thread, expires_at=deadline)
        moment = deadline.timestamp() + (turn % 21 - 14) / 500
        common = {"thread_id": thread, "run_id": "r3", "digest": "d"}
        tasks = [redeem(thread, "r2", at=moment), call("admit", **common, until="new", at=moment)]
        redeemed, plain = held(field, tasks, turn)
        answer = answer_of(thread)
        assert_answer_makes_sense(answer)
        assert plain["gave"]["new"]
        if redeemed["refused"]:
            assert redeemed["code"] in ("interrupt_expired", "interrupt_answered")
            assert answer.cancelled
            assert (answer.state, answer.redeemed_by, answer.decided_by) == (
                *("settled", "r3", "expiry"),
            )
        else:
            in_time += 1
            assert decision_of(thread) == APPROVED
            assert (answer.state, answer.redeemed_by) == ("held", "r2")
            assert answer.decided_at is not None
            assert answer.decided_at < deadline
    assert 0 < in_time < 100, "only one of them ever won"


# Acting


def holding(thread: str) -> RunRecord:
    """A thread whose run r2 holds the answer to i1."""
    asked(thread)
    admitted = store.admit(
        SCOPE, thread, "r2", "d", [{"interruptId": "i1", **APPROVED}], parent_run_id="r1"
    )
    return store.save(admitted.record.start(store.now()))


def settle(thread: str, run: str = "r2") -> dict[str, Any]:
    return call("settle", thread_id=thread, interrupt_id="i1", run_id=run)


def assert_acted_on_or_free(thread: str, acted: bool) -> None:
    answer = answer_of(thread)
    assert_answer_makes_sense(answer)
    if acted:
        assert (answer.state, answer.redeemed_by) == ("settled", "r2")
    else:
        assert (answer.state, answer.redeemed_by) == ("free", None)
    assert decision_of(thread) == APPROVED


def test_twenty_permissions_to_act_are_one(field: list[Racer]) -> None:
    for turn in range(2):
        thread = f"t{turn}"
        holding(thread)
        assert Counter(gave(held(field, [settle(thread)] * 20))) == {True: 1, False: 19}


@pytest.mark.parametrize("how", ["save", "release", "fail_stalled", "request_cancel"])
def test_acting_against_giving_back_has_one_winner(how: str, field: list[Racer]) -> None:
    for turn in range(100 if how == "release" else 25):
        thread = f"t{turn}"
        record = holding(thread)
        end = record.finish("failed", store.now(), {"message": "broken"})
        key = {"thread_id": thread, "run_id": "r2"}
        rival = {
            "save": partial(call, "save", record=end.to_storage()),
            "release": partial(call, "release", **key),
            "fail_stalled": partial(call, "fail_stalled", before=60),
            "request_cancel": partial(call, "request_cancel", **key),
        }[how]()
        if how in ("fail_stalled", "request_cancel"):
            silence(thread, "r2")
        acted, other = held(field, [settle(thread), rival], turn)
        assert (acted["refused"], other["refused"]) == (None, None)
        assert_acted_on_or_free(thread, acted["gave"])


def test_a_cancel_request_to_a_live_run_takes_no_permission_away(field: list[Racer]) -> None:
    for turn in range(30):
        thread = f"t{turn}"
        holding(thread)
        cancel = call("request_cancel", thread_id=thread, run_id="r2")
        acted, cancelled = held(field, [settle(thread), cancel], turn)
        assert acted["gave"] is True
        assert cancelled["gave"] == {"ended": False, "status": "started"}
        assert_acted_on_or_free(thread, True)


def test_acting_against_the_next_run_never_lets_both_act(field: list[Racer]) -> None:
    """The holder is failed, and the run that agrees takes what it has not acted on."""
    for turn in range(25):
        thread = f"t{turn}"
        holding(thread)
        silence(thread, "r2")
        tasks = [settle(thread), call("fail_stalled", before=60), bring(thread, "r3")]
        acted, reaped, brought = held(field, tasks, turn)
        assert reaped["gave"] == ["r2"]
        answer = answer_of(thread)
        assert_answer_makes_sense(answer)
        took = not brought["refused"] and brought["gave"]["answers"][0]["holds"]
        assert not (acted["gave"] and took)
        if took:
            assert store.settle(SCOPE, thread, "i1", "r3")
        assert not store.settle(SCOPE, thread, "i1", "r2")


# Everything at once


def assert_threads_make_sense(told: Sequence[Told]) -> None:
    rows = {(row.thread_id, row.run_id): row for row in ReservedRun.objects.all()}
    for one in told:
        for thread, run, status in one["ended"]:
            row = rows.get((thread, run))
            assert row is None or row.status == status, "an end that was stored has changed"
    acted = [tuple(acted) for one in told for acted in one["acted"]]
    assert acted, [one["steps"] for one in told]
    twice = [key for key, count in Counter((t, i) for t, i, _ in acted).items() if count > 1]
    assert not twice, "a tool may have run twice"
    actors = {(thread, interrupt): run for thread, interrupt, run in acted}
    for interrupt in RunInterrupt.objects.select_related("run"):
        thread = interrupt.run.thread_id
        (record,) = (
            one
            for one in stored(thread, interrupt.run.run_id).interrupts
            if one.id == interrupt.interrupt_id
        )
        assert_answer_makes_sense(record)
        actor = actors.get((thread, interrupt.interrupt_id))
        if actor is not None:
            assert (record.state, record.redeemed_by) == ("settled", actor)
        if record.state is AnswerState.HELD:
            holder = rows.get((thread, record.redeemed_by or ""))
            assert holder is not None
            assert holder.status not in TERMINAL, "held by the dead"


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_eight_processes_that_do_everything_leave_threads_that_make_sense(
    threads: int, prune: bool, field: list[Racer]
) -> None:
    names = [f"t{n}" for n in range(threads)]
    task = {"task": "converse", "count": 50, "threads": names, "prune": prune}
    told = [one.result for one in race(field, [{**task, "writer": n} for n in range(8)])]
    assert_threads_make_sense(told)


def test_a_prune_against_writers_of_other_threads_takes_only_what_is_old(
    field: list[Racer],
) -> None:
    for n in range(60):
        store.save(started("old", f"r{n}").finish("succeeded", store.now()))
    ReservedRun.objects.update(alive_at=DatabaseNow(ago=timedelta(days=1)))
    converse = {"task": "converse", "count": 50, "threads": ["new"]}
    tasks = [{**converse, "writer": n} for n in range(6)]
    tasks += [call("prune", before=3600, batch_size=7)] * 2
    told = [outcome.result for outcome in race(field, tasks)]
    assert_threads_make_sense(told[:6])
    assert sum(one["gave"] for one in told[6:]) == 59
    assert [row.run_id for row in ReservedRun.objects.filter(thread_id="old")] == ["r59"]
    born = ReservedRun.objects.filter(thread_id="new").count()
    assert born >= sum(len(one["ended"]) for one in told[:6])


def test_a_repeated_identity_against_its_prune_is_attached_or_new(field: list[Racer]) -> None:
    for turn in range(30):
        thread = f"t{turn}"
        for run in ("r1", "r2"):
            store.save(started(thread, run).finish("succeeded", store.now()))
        silence(thread, "r1")
        again = call("reserve", thread_id=thread, run_id="r1", digest="d")
        late = stored(thread, "r1").advance(store.now()).to_storage()
        tasks = [again, call("prune", before=60), call("save", record=late), again]
        told = held(field, tasks, turn)
        reserved = [one["gave"]["new"] for one in (told[0], told[3]) if not one["refused"]]
        assert len(reserved) == 2
        assert reserved.count(True) <= told[1]["gave"]
