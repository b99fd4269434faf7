from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from html import unescape

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse

from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.stores.database import DatabaseStore
from solid_runs.threads import conversations
from solid_runs.threads.admin import ThreadInterruptAdmin, ThreadRunAdmin
from solid_runs.threads.models import ThreadInterrupt, ThreadRun
from solid_runs.threads.stores.database import DatabaseRunStore
from tests.models import FreshRun
from tests.threads.looking import MINUTE, asked, fresh, made, now, silent, staff

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
BREAKOUT = "</pre><img src=x onerror=alert(1)>"
VIEW = ("view_threadrun", "view_threadinterrupt")
RUNS = "/admin/solid_runs_threads/threadrun/"
INTERRUPTS = "/admin/solid_runs_threads/threadinterrupt/"
SECRET = "/srv/app/agent.py api_key=sk-x"
CONTENT = ("error", "usage", "sandbox_key", "payload", "response")


def page(row, view="change"):
    return reverse(f"admin:solid_runs_threads_{row._meta.model_name}_{view}", args=[row.pk])


def client(user):
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def viewer():
    return client(staff("viewer", *VIEW))


@pytest.fixture
def operator():
    """May do all there is."""
    content = ("view_run_content", "view_interrupt_content")
    return client(staff("operator", *VIEW, *content, "cancel_run"))


def text(response):
    assert response.status_code == 200
    return unescape(response.content.decode()).replace("\xa0", " ")


def words(response):
    """What is read on a page."""
    body = re.sub(r"<(script|style).*?</\1>", "", text(response), flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def shown(browser, query="", url=RUNS):
    response = browser.get(f"{url}{query}")
    assert response.status_code == 200, query
    name = "run_id" if url == RUNS else "interrupt_id"
    return [getattr(row, name) for row in response.context["cl"].result_list]


def row_of(browser, run_id, url=RUNS):
    """One row of a list, or of the page of a conversation."""
    rows = re.findall(r"<tr\b.*?</tr>", text(browser.get(url)), re.S)
    [found] = [row for row in rows if f">{run_id}<" in row]
    return " ".join(re.sub(r"<[^>]+>", " ", found).split())


def tree(browser, run):
    """The runs of a conversation with their depths, as its page has them."""
    rows = browser.get(page(run, "conversation")).context["rows"]
    return [(row.run.run_id, row.depth) for row in rows]


def told(response):
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def history(row):
    entries = LogEntry.objects.filter(
        object_id=str(row.pk), content_type__app_label="solid_runs_threads"
    )
    return [(entry.user.get_username(), entry.change_message) for entry in entries.order_by("pk")]


def queries(browser, url):
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(url).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


# The list


def test_a_row_says_how_it_goes(viewer):
    started = now() - 5 * MINUTE - 1_000
    made("plain", status="completed", started_at=started, finished_at=started + 3_300, name="Bot")
    silent("quiet", thread_id="t2", started_at=started)
    made("left", detached_since=now() - 3 * MINUTE - 1_000, cancel_requested=True)
    made("watched", cancel_requested=False, driver_epoch=1_234)
    plain = row_of(viewer, "plain")
    for part in ("completed", "t1", "Bot", "5 minutes ago", "3.3 s", "s1"):
        assert part in plain, part
    for word in ("stalled", "detached", "asked"):
        assert word not in plain
        assert word not in row_of(viewer, "watched")
    assert "stalled, silent for 7 minutes" in row_of(viewer, "quiet")
    left = row_of(viewer, "left")
    assert "detached for 3 minutes" in left
    assert "asked to stop" in left
    assert "1,234" in row_of(viewer, "watched")


def test_the_duration_of_a_stalled_run_ends_with_its_last_sign_of_life(viewer):
    started = now() - 60 * MINUTE
    run = silent("quiet", started_at=started)
    ThreadRun.objects.filter(pk=run.pk).update(heartbeat_at=started + 3_300)
    assert "3.3 s" in row_of(viewer, "quiet")
    assert "run-live" not in text(viewer.get(RUNS))
    made("lively")
    assert "run-live" in text(viewer.get(RUNS))


def test_a_run_that_nobody_has_claimed_says_so(viewer):
    watched = made("watched")
    left = made("left", detached_since=now())
    claimed = made("claimed", driver_epoch=7)
    ended = made("ended", status="completed")
    claims = {
        run: row_of(viewer, run.run_id).split()[-2] for run in (watched, left, claimed, ended)
    }
    assert claims == {watched: "never", left: "never", claimed: "7", ended: "-"}
    told = {run: "does not judge it" in words(viewer.get(page(run))) for run in claims}
    assert told == {watched: True, left: False, claimed: False, ended: False}


def test_an_interrupted_run_with_an_open_question_waits_for_a_person(viewer):
    for name in ("asking", "answered", "silent"):
        made(name, status="interrupted")
    made("going-on")
    made("answered", status="interrupted", scope="s2", thread_id="t2")
    asked("i1", "asking")
    asked("i2", "answered", status="resolved")
    asked("i3", "going-on")
    asked("i4", "silent", scope="s3")
    assert words(viewer.get(RUNS)).count("waits for a person") == 1
    assert "waits for a person" in row_of(viewer, "asking")
    runs_only = client(staff("runs", "view_threadrun"))
    assert "waits for a person" not in words(runs_only.get(RUNS))


def test_a_search_that_finds_nothing_says_that_ids_are_whole(viewer):
    made()
    asked()
    for url in (RUNS, INTERRUPTS):
        assert "whole ids only" in words(viewer.get(f"{url}?q=r"))
        assert "whole ids only" not in words(viewer.get(f"{url}?q=r1"))
        assert "whole ids only" not in words(viewer.get(url))


def test_what_has_ended_is_neither_detached_nor_asked_to_stop(viewer):
    values = {"detached_since": 1, "cancel_requested": True, "finished_at": 5, "started_at": 1}
    made("ended", status="aborted", **values)
    row = row_of(viewer, "ended")
    assert "detached" not in row
    assert "asked" not in row


def test_a_duration_is_never_negative(viewer):
    made("ended", status="completed", started_at=10, finished_at=9)
    made("running", started_at=now() + 10 * MINUTE)
    made("paused", status="interrupted", started_at=10)
    assert "9 ms" not in row_of(viewer, "ended")
    listed = viewer.get(RUNS).context["cl"]
    durations = {run.run_id: listed.model_admin.duration(run) for run in listed.result_list}
    assert durations == {"ended": "-", "running": "-", "paused": "-"}


def test_a_status_that_nobody_knows_is_shown_as_it_is_and_found(viewer):
    made("odd", status="exploded")
    made("even")
    assert "exploded" in row_of(viewer, "odd")
    assert "run-unknown" in text(viewer.get(RUNS))
    assert shown(viewer, "?status=other") == ["odd"]
    assert "exploded" in words(viewer.get(page(ThreadRun.objects.get(run_id="odd"))))


def test_the_filters_narrow_by_status_and_by_condition(viewer):
    made("running")
    made("left", detached_since=1)
    silent("quiet")
    made("asked", status="interrupted", cancel_requested=True)
    made("done", status="completed", detached_since=1, cancel_requested=True)
    silent("gone", status="failed")
    found = {
        "status=running": ["quiet", "left", "running"],
        "status=interrupted": ["asked"],
        "status=completed": ["done"],
        "condition=detached": ["left"],
        "condition=stalled": ["quiet"],
        "condition=asked": ["asked"],
        "condition=asked&status=running": [],
        "status=&condition=": ["gone", "done", "asked", "quiet", "left", "running"],
    }
    assert {query: shown(viewer, f"?{query}") for query in found} == found


def test_who_is_stalled_is_a_matter_of_the_setting(viewer, settings):
    silent(ago=90_000)
    assert shown(viewer, "?condition=stalled") == ["r1"]
    settings.SOLID_RUNS = {"THREADS_STALL_AFTER": 120}
    assert shown(viewer, "?condition=stalled") == []
    assert "stalled" not in row_of(viewer, "r1")


def test_a_search_finds_whole_ids(viewer):
    made("run-A", "thread-A", parent_run_id="parent-A", trace_id="trace-A", sandbox_key="box")
    made("run-B", "thread-B")
    for term in ("run-A", "thread-A", "parent-A", "trace-A", " run-A "):
        assert shown(viewer, f"?q={term}") == ["run-A"], term
    for term in ("run-", "RUN-A", "%25", "run-A thread-A", "'", "box", "x" * 3_000):
        assert shown(viewer, f"?q={term}") == [], term


@pytest.mark.parametrize("url", [RUNS, INTERRUPTS])
def test_an_address_that_asks_for_anything_else_is_refused(viewer, url):
    made()
    asked()
    for query in ("scope=s1", "error__contains=x", "sandbox_key=x", "payload=x", "run_id=r1"):
        assert viewer.get(f"{url}?{query}").status_code == 400, query
    for query in (
        "q=%00",
        "p=99999999999999999999",
        "p=x",
        "status=nosuch",
        "condition=%00",
        "o=1",
        "e=1",
    ):
        assert viewer.get(f"{url}?{query}", follow=True).status_code in (200, 400), query


def test_no_more_than_the_cap_is_counted(viewer, monkeypatch):
    monkeypatch.setattr("solid_runs.admin.paginator.CappedPaginator.cap", 3)
    for number in range(5):
        made(f"r{number}")
    assert "3+ thread runs" in words(viewer.get(RUNS))


@pytest.mark.parametrize(
    "url",
    [
        *(RUNS, f"{RUNS}?q=t1", f"{RUNS}?status=running", f"{RUNS}?condition=stalled"),
        *(INTERRUPTS, f"{INTERRUPTS}?q=t1", f"{INTERRUPTS}?status=pending"),
    ],
)
def test_a_list_costs_the_same_for_any_number_of_rows(operator, url):
    def fill(first, last):
        for number in range(first, last):
            silent(f"r{number}", detached_since=1, error={"message": "x"}, name="Bot")
            made(f"p{number}", status="interrupted")
            asked(f"i{number}", f"r{number}")

    fill(0, 5)
    few = queries(operator, url)
    fill(5, 50)
    assert len(queries(operator, url)) == len(few) <= 8
    for sql in few:
        assert not [name for name in CONTENT if re.search(rf"[\"`]{name}[\"`]", sql)], sql
    counts = [sql for sql in few if "COUNT(*)" in sql and "solid_runs_threads" in sql]
    assert counts
    assert all("LIMIT" in sql for sql in counts)


# A conversation


def test_a_conversation_shows_its_runs_in_order_with_children_under_their_parents(viewer):
    made("first", started_at=1, status="completed", finished_at=2)
    made("second", started_at=2, status="interrupted")
    made("child", started_at=3, parent_run_id="first", status="completed", name="Search")
    made("grandchild", started_at=4, parent_run_id="child", status="failed")
    third = made("third", started_at=5)
    made("other", "t2")
    made("third", scope="s2")
    expected = [("first", 0), ("child", 1), ("grandchild", 2), ("second", 0), ("third", 0)]
    assert tree(viewer, third) == expected
    assert "active" in row_of(viewer, "third", page(third, "conversation"))
    assert "active" not in row_of(viewer, "first", page(third, "conversation"))
    body = words(viewer.get(page(third, "conversation")))
    assert "Conversation t1" in body
    assert "active run third" in body.lower()


def test_a_conversation_says_who_is_detached_stalled_and_asked_to_stop_and_who_asks(viewer):
    run = silent("quiet", detached_since=now() - 3 * MINUTE - 1_000, cancel_requested=True)
    ThreadRun.objects.filter(pk=run.pk).update(driver_epoch=12)
    made("asking", status="interrupted")
    asked("i1", "asking")
    asked("i2", "asking")
    asked("i3", "asking", status="resolved")
    asked("i4", "asking", scope="s2")
    address = page(run, "conversation")
    quiet = row_of(viewer, "quiet", address)
    for part in ("silent for 7 minutes", "detached for 3 minutes", "asked to stop", "12"):
        assert part in quiet, part
    assert "2 pending" in row_of(viewer, "asking", address)
    pending = re.search(r'href="([^"]*)">2 pending', text(viewer.get(address)))[1]
    assert shown(viewer, pending.removeprefix(INTERRUPTS), INTERRUPTS) == ["i4", "i2", "i1"]


def test_a_parent_that_is_not_above_its_child_is_named(viewer):
    elsewhere = made("elsewhere", "t2", started_at=1)
    child = made("child", parent_run_id="elsewhere", started_at=2)
    made("orphan", parent_run_id="gone", started_at=3)
    made("gone", scope="s2")
    made("a", parent_run_id="b", started_at=4)
    made("b", parent_run_id="a", started_at=5)
    made("self", parent_run_id="self", started_at=6)
    assert tree(viewer, child) == [
        *(("child", 0), ("orphan", 0), ("a", 0), ("b", 1), ("self", 0)),
    ]
    address = page(child, "conversation")
    assert "of a run in another conversation: elsewhere" in row_of(viewer, "child", address)
    assert page(elsewhere) in text(viewer.get(address))
    assert "its parent is not there: gone" in row_of(viewer, "orphan", address)
    rows = {row.run.run_id: row for row in viewer.get(address).context["rows"]}
    for name in ("a", "self"):
        assert str(rows[name].parent.note) == "its parents go round in a circle"
    assert rows["b"].parent is None


def test_a_conversation_of_any_depth_is_shown(viewer):
    for number in range(60):
        run = made(f"r{number}", parent_run_id=f"r{number - 1}", started_at=number)
    assert tree(viewer, run) == [(f"r{number}", number) for number in range(60)]
    rows = viewer.get(page(run, "conversation")).context["rows"]
    assert {row.indent for row in rows} == set(range(9))
    assert "level 59" in row_of(viewer, "r59", page(run, "conversation"))


def test_a_long_conversation_says_that_there_is_more_and_who_is_active_all_the_same(
    viewer, monkeypatch
):
    monkeypatch.setattr(conversations, "MOST_RUNS", 3)
    made("r0", started_at=0)
    for number in range(1, 6):
        run = made(f"r{number}", started_at=number, status="completed", parent_run_id="r0")
    assert tree(viewer, run) == [("r3", 0), ("r4", 0), ("r5", 0)]
    body = text(viewer.get(page(run, "conversation")))
    assert "runs that started last are shown" in body
    assert f'href="{RUNS}?q=t1"' in body
    assert "of an earlier run" in row_of(viewer, "r3", page(run, "conversation"))
    active = viewer.get(page(run, "conversation")).context["run_facts"][0]
    assert (active.value, active.url) == ("r0", page(ThreadRun.objects.get(run_id="r0")))


def test_every_row_and_every_page_of_a_run_lead_to_its_conversation(viewer):
    run, other = made("a"), made("b", "t2")
    listed = text(viewer.get(RUNS))
    for one in (run, other):
        assert f'href="{page(one, "conversation")}"' in listed
        assert f'href="{page(one, "conversation")}"' in text(viewer.get(page(one)))


def test_a_conversation_costs_the_same_for_any_number_of_runs(operator):
    def fill(first, last):
        for number in range(first, last):
            silent(f"r{number}", parent_run_id=f"gone{number}", detached_since=1)
            silent(f"c{number}", parent_run_id=f"r{number}")
            asked(f"i{number}", f"r{number}")

    fill(0, 3)
    address = page(ThreadRun.objects.get(run_id="r0"), "conversation")
    few = queries(operator, address)
    fill(3, 30)
    assert len(queries(operator, address)) == len(few) <= 9
    for sql in few:
        assert not [name for name in CONTENT if re.search(rf"[\"`]{name}[\"`]", sql)], sql


# One run


def test_the_page_of_a_run_shows_its_facts_and_its_surroundings(operator):
    made("parent", started_at=1, status="completed")
    run = silent(
        "r1",
        started_at=2,
        parent_run_id="parent",
        subagent_run_id="sub-1",
        name="Bot",
        detached_since=now() - 3 * MINUTE - 1_000,
        cancel_requested=True,
        trace_id="trace-1",
    )
    made("child", "t9", parent_run_id="r1", started_at=3)
    made("next", started_at=4)
    asked("i1", "r1", "t1")
    body = words(operator.get(page(run)))
    for part in ("2 of 3 runs", "sub-1", "Bot", "trace-1", "silent for 7 minutes", "reap_runs"):
        assert part in body, part
    for one in (*ThreadRun.objects.exclude(run_id="r1"), ThreadInterrupt.objects.get()):
        assert f'href="{page(one)}"' in text(operator.get(page(run))), one


def test_a_parent_that_is_gone_or_elsewhere_is_told_of(viewer):
    orphan = made("orphan", parent_run_id="gone")
    made("gone", scope="s2")
    assert "gone not there" in words(viewer.get(page(orphan)))
    made("far", "t2")
    child = made("child", parent_run_id="far")
    assert "far in another conversation" in words(viewer.get(page(child)))


def test_error_usage_and_sandbox_take_a_permission(viewer, operator):
    """F67."""
    run = made(
        status="failed",
        error={"message": SECRET, "code": "boom"},
        usage={"promptTokens": 4711},
        sandbox_key="sbx-1",
    )
    read = words(operator.get(page(run)))
    for part in (f"boom: {SECRET}", '{"promptTokens": 4711}', "sbx-1"):
        assert part in read
    hidden = words(viewer.get(page(run)))
    for part in ("sk-x", "boom", "4711", "sbx-1"):
        assert part not in hidden
    assert "Can see the errors, the usage and the sandboxes of runs" in hidden
    sql = " ".join(queries(viewer, page(run)))
    assert not re.search(r'["`](error|usage|sandbox_key)["`]', sql)


@pytest.mark.parametrize("error", ["just text", ["a"], {"message": 7}, {"odd": SCRIPT}, 0, {}])
def test_an_error_of_any_shape_is_shown(operator, error):
    run = made(status="failed", error=error, usage=[error])
    assert operator.get(page(run)).status_code == 200


def test_the_page_of_a_run_costs_the_same_for_any_number_of_rows(operator):
    run = made(parent_run_id="p", trace_id="trace-1")

    def fill(first, last):
        for number in range(first, last):
            made(f"c{number}", parent_run_id="r1", trace_id="trace-1")
            asked(f"i{number}", "r1")

    fill(0, 2)
    few = len(queries(operator, page(run)))
    fill(2, 40)
    assert len(queries(operator, page(run))) == few
    body = text(operator.get(page(run)))
    assert f'href="{RUNS}?q=r1"' in body
    assert f'href="{INTERRUPTS}?q=r1"' in body


def test_what_shares_the_trace_is_linked_for_who_may_see_it(operator):
    run = made(trace_id="trace-1")
    made("same", "t2", "s2", trace_id="trace-1")
    agent_run = FreshRun.objects.create(status="complete", trace_id="trace-1")
    DatabaseStore().reserve("s1", "t1", "agui", "digest", trace_id="trace-1")
    before = words(operator.get(page(run)))
    assert "Thread run same" in before
    assert "agui" not in before
    names = ("view_freshrun", "view_reservedrun")
    staff("operator").user_permissions.add(*Permission.objects.filter(codename__in=names))
    body = text(operator.get(page(run)))
    assert reverse("admin:tests_freshrun_change", args=[agent_run.pk]) in body
    assert "AG-UI run agui" in words(operator.get(page(run)))
    traced = operator.get(page(run)).context["traced"]
    assert len(traced) == 3
    there = reverse(
        "admin:solid_runs_ag_ui_reservedrun_change", args=[ReservedRun.objects.get().pk]
    )
    assert f'href="{page(run)}"' in text(operator.get(there))
    assert operator.get(page(made("untraced"))).context["traced"] == []


# Who may


def test_nobody_sees_anything_without_the_permission():
    run, interrupt = made(), asked()
    blind = client(staff("blind", "cancel_run", "view_run_content"))
    urls = (RUNS, INTERRUPTS, page(run), page(interrupt), page(run, "conversation"))
    for url in urls:
        assert blind.get(url).status_code == 403, url
        assert Client().get(url).status_code == 302, url
    assert blind.post(page(run, "cancel")).status_code == 403
    assert fresh(run).cancel_requested is None


def test_what_a_person_may_not_see_is_not_there(operator, monkeypatch):
    """F66: get_queryset() narrows every path."""
    mine = made("mine", parent_run_id="hidden", trace_id="x", started_at=2)
    theirs = made("hidden", trace_id="x", started_at=1)
    made("child-hidden", parent_run_id="mine", started_at=3)
    asked("i-hidden", "mine")
    runs, interrupts = ThreadRunAdmin.get_queryset, ThreadInterruptAdmin.get_queryset
    monkeypatch.setattr(
        ThreadRunAdmin,
        "get_queryset",
        lambda self, request: runs(self, request).exclude(run_id__endswith="hidden"),
    )
    monkeypatch.setattr(
        ThreadInterruptAdmin, "get_queryset", lambda self, request: interrupts(self, request).none()
    )
    assert shown(operator) == ["mine"]
    assert tree(operator, mine) == [("mine", 0)]
    for url in (page(mine), page(mine, "conversation")):
        body = text(operator.get(url))
        assert "child-hidden" not in body
        assert "i-hidden" not in body
        assert page(theirs) not in body
    for view in ("change", "conversation", "history"):
        assert operator.get(page(theirs, view)).status_code in (302, 404)
    assert operator.post(page(theirs, "cancel")).status_code == 404
    assert fresh(theirs).cancel_requested is None


def test_links_to_interrupts_are_for_who_may_see_them():
    run = made()
    interrupt = asked()
    runs_only = client(staff("runs", "view_threadrun"))
    for url in (RUNS, page(run), page(run, "conversation")):
        assert INTERRUPTS not in text(runs_only.get(url))
    interrupts_only = client(staff("interrupts", "view_threadinterrupt"))
    for url in (INTERRUPTS, page(interrupt)):
        assert RUNS not in text(interrupts_only.get(url))


@pytest.mark.parametrize("model", [ThreadRun, ThreadInterrupt])
def test_nothing_is_added_changed_or_deleted(admin_client, model):
    """F64."""
    made()
    asked()
    one = model.objects.get()
    assert admin_client.post(page(one), {"status": "completed"}).status_code == 403
    assert admin_client.post(page(one, "delete"), {"post": "yes"}).status_code == 403
    url = reverse(f"admin:solid_runs_threads_{model._meta.model_name}_add")
    assert admin_client.post(url, {}).status_code == 403
    listed = reverse(f"admin:solid_runs_threads_{model._meta.model_name}_changelist")
    admin_client.post(listed, {"action": "delete_selected", "_selected_action": [one.pk]})
    assert model.objects.filter(pk=one.pk).exists()


@pytest.mark.parametrize("pk", ["99999999999999999999", "0", "x", "1%00"])
def test_what_is_not_there_is_not_found(operator, pk):
    for url in (f"{RUNS}{pk}/change/", f"{RUNS}{pk}/conversation/", f"{INTERRUPTS}{pk}/change/"):
        assert operator.get(url).status_code == 404, url
    assert operator.post(f"{RUNS}{pk}/cancel/").status_code == 404


# Asking to stop


def test_asking_says_how_many_were_asked_and_who_was_skipped_and_why(operator):
    run, second = made("running", driver_epoch=1), made("second", driver_epoch=0)
    unclaimed = made("unclaimed")
    paused = made("paused", status="interrupted", cancel_requested=False, driver_epoch=1)
    before = made("before", cancel_requested=True)
    ended = made("ended", status="failed")
    keys = [one.pk for one in (run, second, unclaimed, paused, before, ended)]
    data = {"action": "cancel_selected", "_selected_action": keys}
    assert sorted(told(operator.post(RUNS, data, follow=True))) == [
        "1 run that no driver has claimed was asked to stop: whoever drives it must look at the "
        "request, and nobody else ends it while it is watched.",
        "1 run that nobody drives now was asked to stop: whoever takes it up sees the request, and "
        "nobody else ends it.",
        "1 run was skipped: it had ended already.",
        "1 run was skipped: it was asked to stop before.",
        "2 runs were asked to stop: they go on until their drivers end them.",
    ]
    for one in (run, second, unclaimed, paused):
        assert fresh(one).cancel_requested is True
        assert fresh(one).status == one.status
        assert history(one) == [("operator", "Asked to stop.")]
    assert fresh(ended).cancel_requested is None
    assert history(before) == history(ended) == []


def test_who_may_ask_is_decided_run_by_run(operator, monkeypatch):
    mine, other = made("mine", driver_epoch=1), made("other", driver_epoch=1)
    monkeypatch.setattr(
        ThreadRunAdmin,
        "has_cancel_permission",
        lambda self, request, obj=None: obj is None or obj.run_id == "mine",
    )
    data = {"action": "cancel_selected", "_selected_action": [mine.pk, other.pk]}
    assert sorted(told(operator.post(RUNS, data, follow=True))) == [
        "1 run was asked to stop: it goes on until its driver ends it.",
        "1 run was skipped: you may not ask it to stop.",
    ]
    assert fresh(other).cancel_requested is None
    assert page(other, "cancel") not in text(operator.get(page(other)))


def test_one_run_is_asked_from_its_page_once(operator):
    run = made()
    url = page(run, "cancel")
    body = text(operator.get(page(run)))
    assert f'action="{url}"' in body
    assert "This is a request." in body
    assert operator.get(url).status_code == 405
    response = operator.post(url, follow=True)
    assert response.redirect_chain == [(page(run), 302)]
    assert "was asked to stop" in told(response)[0]
    assert DatabaseRunStore("s1").was_cancel_requested("r1")
    assert url not in text(operator.get(page(run)))
    assert "asked to stop before" in told(operator.post(url, follow=True))[0]
    assert history(run) == [("operator", "Asked to stop.")]


@pytest.mark.parametrize(
    ("values", "truth"),
    [
        ({"driver_epoch": 1}, "The run goes on until its driver sees the request and ends the run"),
        ({}, "No driver has claimed the run: whoever drives it must look at the request"),
        (
            {"status": "interrupted", "driver_epoch": 1},
            "Nobody drives the run now: whoever takes it up sees the request",
        ),
    ],
    ids=["claimed", "unclaimed", "interrupted"],
)
def test_who_ends_a_run_is_said_before_and_after_asking(operator, values, truth):
    run = made(**values)
    before = operator.get(page(run))
    assert f"This is a request. {truth}" in words(before)
    after = operator.post(page(run, "cancel"), follow=True)
    assert truth in words(after)
    assert "This is a request" not in words(after)


def test_only_what_is_not_all_can_be_shown_whole(viewer):
    first = made("first")
    made("second")
    assert "Show all" not in words(viewer.get(page(first)))
    made("third")
    assert "Show all" in words(viewer.get(page(first)))
    alone = made("alone", "t2")
    assert "1 of 1 run " in words(viewer.get(page(alone)))


@pytest.mark.parametrize("status", ["completed", "failed", "aborted"])
def test_a_run_that_has_ended_has_no_button(operator, status):
    run = made(status=status)
    assert page(run, "cancel") not in text(operator.get(page(run)))


def test_a_run_of_the_shared_scope_is_asked_in_that(operator):
    shared, same = made("r1", scope=""), made("r1", scope="s1")
    operator.post(page(shared, "cancel"))
    assert fresh(shared).cancel_requested is True
    assert fresh(same).cancel_requested is None
    assert "shared" in row_of(operator, "r1", f"{RUNS}?condition=asked")


def test_asking_takes_a_permission_the_token_and_post(viewer):
    run = made()
    assert page(run, "cancel") not in text(viewer.get(page(run)))
    assert "cancel_selected" not in text(viewer.get(RUNS))
    assert viewer.post(page(run, "cancel")).status_code == 403
    viewer.post(RUNS, {"action": "cancel_selected", "_selected_action": [run.pk]})
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(staff("operator", *VIEW, "cancel_run"))
    assert strict.post(page(run, "cancel")).status_code == 403
    assert fresh(run).cancel_requested is None


# Interrupts


def test_interrupts_are_found_by_status_and_whole_ids(viewer):
    made()
    asked("i-A", "run-A", "thread-A")
    asked("i-B", "run-B", "thread-B", status="resolved", resolved_at=now())
    asked("i-C", "run-B", "thread-B", status="cancelled", resolved_at=now())
    assert shown(viewer, "", INTERRUPTS) == ["i-C", "i-B", "i-A"]
    for status, name in {"pending": "i-A", "resolved": "i-B", "cancelled": "i-C"}.items():
        assert shown(viewer, f"?status={status}", INTERRUPTS) == [name]
    for term in ("i-A", "run-A", "thread-A"):
        assert shown(viewer, f"?q={term}", INTERRUPTS) == ["i-A"], term
    assert shown(viewer, "?q=i-", INTERRUPTS) == []


def test_the_list_of_interrupts_links_the_runs_and_the_conversations(viewer):
    run, same = made(), made("r1", scope="s2")
    asked()
    asked("i2", "r1", "t-other", "s2")
    asked("i3", "gone")
    body = text(viewer.get(INTERRUPTS))
    assert f'href="{page(run)}"' in body
    assert f'href="{page(run, "conversation")}"' in body
    assert f'href="{page(same)}"' in body
    assert f'href="{page(same, "conversation")}"' not in body
    assert "gone" in row_of(viewer, "i3", INTERRUPTS)


def test_an_open_interrupt_says_that_it_is_answered_elsewhere(viewer):
    assert "through the application" in words(viewer.get(page(asked())))
    answered = asked("i2", status="resolved")
    assert "through the application" not in words(viewer.get(page(answered)))


def test_the_page_of_an_interrupt_links_its_run_and_its_conversation(viewer):
    run = made()
    made("r1", scope="s2")
    interrupt = asked()
    body = text(viewer.get(page(interrupt)))
    assert f'href="{page(run)}"' in body
    assert f'href="{page(run, "conversation")}"' in body
    astray = asked("i2", "r1", "t-other")
    assert f'href="{page(run, "conversation")}"' not in text(viewer.get(page(astray)))
    assert viewer.get(page(asked("i3", "gone"))).status_code == 200


def test_what_was_asked_and_answered_takes_a_permission(viewer):
    interrupt = asked(payload={"secret": "sk-x"}, response={"yes": 4711}, has_response=True)
    hidden = words(viewer.get(page(interrupt)))
    assert "sk-x" not in hidden
    assert "4711" not in hidden
    assert "Can see what runs asked and were answered" in hidden
    of_runs = client(staff("of_runs", *VIEW, "view_run_content"))
    assert "sk-x" not in words(of_runs.get(page(interrupt)))
    reader = client(staff("reader", *VIEW, "view_interrupt_content"))
    read = words(reader.get(page(interrupt)))
    assert '{"secret": "sk-x"}' in read
    assert '{"yes": 4711}' in read


@pytest.mark.parametrize(
    ("response", "shown_as"), [(None, "null"), ("", '""'), ([], "[]"), ({}, "{}"), (False, "false")]
)
def test_an_answer_that_is_next_to_nothing_is_an_answer(operator, response, shown_as):
    interrupt = asked(status="resolved", response=response, has_response=True)
    blocks = operator.get(page(interrupt)).context["run_blocks"]
    assert [block.text for block in blocks][1:] == [shown_as]
    assert len(operator.get(page(asked("open"))).context["run_blocks"]) == 1


# Text and times


def test_only_escaped_text_is_shown_whoever_wrote_it(operator):
    """F63."""
    evil = f"{SCRIPT}{BREAKOUT}"
    named = {"thread_id": evil, "scope": evil}
    run = made(
        evil,
        parent_run_id=f"{evil}p",
        subagent_run_id=evil,
        name=evil,
        trace_id=evil,
        error={"message": evil, "code": evil},
        usage={evil: evil},
        sandbox_key=evil,
        status="<b>",
        **named,
    )
    made(f"{evil}2", parent_run_id=evil, trace_id=evil, **named)
    made(f"{evil}3", evil + "x", evil, parent_run_id=evil)
    interrupt = asked(evil, evil, evil, evil, payload={evil: evil}, response=evil)
    pages = [RUNS, INTERRUPTS, page(run), page(run, "conversation"), page(interrupt)]
    bodies = [operator.get(url) for url in [*pages, *(f"{url}?q={evil}" for url in pages[:2])]]
    bodies.append(operator.post(page(run, "cancel"), follow=True))
    bodies.append(operator.get(page(run, "history")))
    for body in (response.content.decode() for response in bodies):
        assert "alert(1)" in body
        assert SCRIPT not in body
        assert "<img src=x" not in body
        assert "<b>" not in re.sub(r'<b class="run-active">', "", body)


LARGEST = 2**63 - 1


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize(
    "ms",
    [
        *(0, 1, -1, 2**53 - 1, -(2**53) + 1, LARGEST, -LARGEST),
        *(253402300799999, 253402300800000, -62135596800000, -62135596800001),
    ],
    ids=str,
)
def test_times_of_any_size_are_shown(operator, ms, use_tz):
    with override_settings(USE_TZ=use_tz):
        run = made(
            started_at=ms,
            finished_at=-ms,
            detached_since=ms,
            heartbeat_at=ms,
            leased_until=ms,
            driver_epoch=LARGEST,
        )
        interrupt = asked(requested_at=ms, resolved_at=ms)
        for url in (RUNS, INTERRUPTS, page(run), page(run, "conversation"), page(interrupt)):
            assert operator.get(url).status_code == 200, url
        if abs(ms) > 253402300800000:
            assert f">{ms}</span>" in text(operator.get(RUNS))
            assert f">{ms}</span>" in text(operator.get(page(interrupt)))


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_shown_in_the_current_time_zone(viewer, use_tz):
    moment = datetime.now(timezone(timedelta(hours=9))).replace(microsecond=0) - timedelta(hours=3)
    with override_settings(USE_TZ=use_tz):
        run = made(started_at=int(moment.timestamp() * 1000))
        for url in (RUNS, page(run), page(run, "conversation")):
            body = text(viewer.get(url))
            assert f"{moment:%Y-%m-%d %H:%M:%S} JST" in body
            assert "3 hours ago" in body


def test_nothing_is_loaded_from_elsewhere(operator):
    run, interrupt = made(), asked()
    for url in (RUNS, INTERRUPTS, page(run), page(run, "conversation"), page(interrupt)):
        body = text(operator.get(url))
        assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', body)
        assert "solid_runs_threads/admin.css" in body


site = AdminSite()
site.register(ThreadRun, ThreadRunAdmin)
urlpatterns = [path("admin/", site.urls)]


@pytest.mark.urls(__name__)
def test_a_site_may_be_without_interrupts(operator):
    run = made(trace_id="trace-1", parent_run_id="gone")
    asked()
    for url in (RUNS, page(run), page(run, "conversation")):
        assert "r1" in text(operator.get(url))


@pytest.mark.django_db(databases=["default", "other"])
def test_requests_go_to_the_alias_of_the_router(settings, operator):
    settings.DATABASE_ROUTERS = ["tests.threads.test_admin.ToOther"]
    run = made()
    assert run._state.db == "other"
    assert "was asked to stop" in told(operator.post(page(run, "cancel"), follow=True))[0]
    assert fresh(run).cancel_requested is True
    assert tree(operator, run) == [("r1", 0)]
    assert operator.get(page(run)).status_code == 200
    assert not ThreadRun.objects.using("default").exists()


class ToOther:
    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "solid_runs_threads" else None

    db_for_write = db_for_read
