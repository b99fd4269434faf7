from __future__ import annotations

from typing import NamedTuple

import pytest

from solid_runs.threads import conversations
from solid_runs.threads.conversations import conversation, judged, placed
from solid_runs.threads.models import ThreadRun
from tests.threads.looking import made, silent


class Run(NamedTuple):
    run_id: str
    parent_run_id: str | None = None


def order(*runs: tuple[str, str | None]) -> list[tuple[str, int]]:
    return [(one.run.run_id, one.depth) for one in placed([Run(*run) for run in runs])]


@pytest.mark.once
def test_children_come_after_their_parents_in_their_order() -> None:
    runs = [("a", None), ("b", None), ("a1", "a"), ("b1", "b"), ("a2", "a"), ("a11", "a1")]
    assert order(*runs) == [("a", 0), ("a1", 1), ("a11", 2), ("a2", 1), ("b", 0), ("b1", 1)]


@pytest.mark.once
def test_a_child_that_started_before_its_parent_is_under_it_all_the_same() -> None:
    assert order(("child", "parent"), ("parent", None)) == [("parent", 0), ("child", 1)]


@pytest.mark.once
def test_a_run_whose_parent_is_elsewhere_is_at_the_top() -> None:
    assert order(("a", "gone"), ("b", "a")) == [("a", 0), ("b", 1)]


@pytest.mark.once
@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        ([("a", "a")], [("a", 0)]),
        ([("a", "b"), ("b", "a")], [("a", 0), ("b", 1)]),
        (
            [("top", None), ("a", "c"), ("b", "a"), ("c", "b"), ("hangs", "b")],
            [("top", 0), ("a", 0), ("b", 1), ("c", 2), ("hangs", 2)],
        ),
        ([("hangs", "a"), ("a", "b"), ("b", "a")], [("hangs", 0), ("a", 0), ("b", 1)]),
    ],
)
def test_nothing_vanishes_in_a_circle_and_nothing_comes_twice(
    runs: list[tuple[str, str | None]], shown: list[tuple[str, int]]
) -> None:
    assert sorted(order(*runs)) == sorted(shown)


@pytest.mark.once
def test_a_chain_of_any_length_is_followed() -> None:
    runs = [(f"r{n}", f"r{n - 1}" if n else None) for n in range(5_000)]
    assert order(*runs) == [(f"r{n}", n) for n in range(5_000)]


@pytest.mark.django_db
def test_the_latest_runs_of_one_scope_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_RUNS", 3)
    for number in range(5):
        made(f"r{number}", started_at=number, status="completed")
    first = made("active", started_at=-1)
    made("r9", scope="other", started_at=9)
    talk = conversation(ThreadRun.objects.all(), "s1", "t1")
    assert [one.run.run_id for one in talk.runs] == ["r2", "r3", "r4"]
    assert (talk.active, talk.has_earlier) == (first.pk, True)
    assert not conversation(ThreadRun.objects.all(), "other", "t1").has_earlier


@pytest.mark.django_db
def test_the_active_run_started_last_and_of_one_moment_first() -> None:
    made("late", started_at=5, status="completed")
    first = made("a", started_at=4)
    made("b", started_at=4)
    made("early", started_at=3)
    assert conversation(ThreadRun.objects.all(), "s1", "t1").active == first.pk
    ThreadRun.objects.update(status="completed")
    assert conversation(ThreadRun.objects.all(), "s1", "t1").active is None


@pytest.mark.django_db
def test_silence_is_judged_by_the_clock_of_the_database_and_the_setting(settings: object) -> None:
    silent("quiet", ago=90_000)
    silent("lively", ago=-1_000)
    silent("ended", status="completed")
    made("unclaimed", heartbeat_at=0)

    def stalled() -> list[str]:
        runs = judged(ThreadRun.objects.order_by("pk"))
        return [run.run_id for run in runs if run.is_stalled]

    assert stalled() == ["quiet"]
    settings.SOLID_RUNS = {"THREADS_STALL_AFTER": 120}  # type: ignore[attr-defined]
    assert stalled() == []
