from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from solid_runs.ag_ui.admin import ReservedRunAdmin, RunInterruptAdmin
from solid_runs.ag_ui.models import ReservedRun, RunInterrupt
from solid_runs.ag_ui.stores.database import DatabaseStore
from tests.ag_ui.asking import (
    APPROVED,
    DENIED,
    acted_on,
    asked,
    expire,
    fresh,
    question,
    row,
    staff,
    started,
)
from tests.models import FreshRun

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
BREAKOUT = "</pre><img src=x onerror=alert(1)>"
VIEW = ("view_runinterrupt", "view_reservedrun")
FLIGHT = {
    "type": "object",
    "required": ["flight"],
    "properties": {
        "flight": {"enum": ["LH441", "UA62"], "title": "Flight"},
        "bags": {"type": "integer", "maximum": 3},
    },
}


def page(row, view="change"):
    return reverse(f"admin:solid_runs_ag_ui_{row._meta.model_name}_{view}", args=[row.pk])


INBOX = "/admin/solid_runs_ag_ui/runinterrupt/"
RUNS = "/admin/solid_runs_ag_ui/reservedrun/"


def client(user):
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def viewer():
    return client(staff("viewer", *VIEW))


@pytest.fixture
def maria():
    """May see and answer, and nothing else."""
    return client(staff("maria", *VIEW, "decide_interrupt"))


@pytest.fixture
def operator():
    """May do all there is."""
    allowed = ("decide_interrupt", "release_interrupt", "cancel_run", "view_run_content")
    return client(staff("operator", *VIEW, *allowed))


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def shown(browser, query=""):
    """The interrupts of a list, in its order."""
    response = browser.get(f"{INBOX}{query}")
    assert response.status_code == 200
    return [card.interrupt.interrupt_id for card in response.context["cl"].cards]


def post(browser, interrupt, pressed="approve", **entered):
    prefix = f"interrupt{interrupt.pk}-"
    data = {f"{prefix}{name}": value for name, value in entered.items() if name != "back"}
    extra = {"back": entered["back"]} if "back" in entered else {}
    return browser.post(
        page(interrupt, "answer"), {**data, **extra, "answer": pressed}, follow=True
    )


def told(response):
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def history(row):
    entries = LogEntry.objects.filter(
        object_id=str(row.pk), content_type__app_label="solid_runs_ag_ui"
    )
    return [(entry.user.get_username(), entry.change_message) for entry in entries.order_by("pk")]


# The list


def test_the_inbox_shows_what_waits_by_deadline_and_those_without_one_last(viewer):
    now = datetime.now(UTC)
    asked(question("never"), thread_id="a")
    asked(question("tomorrow", expires_at=now + timedelta(days=1)), thread_id="b")
    asked(question("soon", expires_at=now + timedelta(minutes=1)), thread_id="c")
    asked(question("past", expires_at=now + timedelta(minutes=1)), thread_id="d")
    expire(RunInterrupt.objects.get(interrupt_id="past"))
    asked(question("stale"), thread_id="e")
    asked(question("current"), thread_id="e", run_id="r2")
    acted_on(asked(question("answered"), thread_id="f"))
    assert shown(viewer) == ["soon", "tomorrow", "never", "current"]
    assert shown(viewer, "?show=stale") == ["stale"]
    assert shown(viewer, "?show=expired") == ["past"]
    assert shown(viewer, "?show=answered") == ["answered"]
    assert len(shown(viewer, "?show=all")) == 7
    tabs = {str(tab["label"]): tab["count"] for tab in viewer.get(INBOX).context["cl"].tabs()}
    assert tabs == {
        "Waiting": "4",
        "Needs attention": "1",
        "Expired": "1",
        "Stale": "1",
        "Answered": "",
        "All": "",
    }


def test_what_needs_attention_was_acted_on_by_a_run_that_came_to_no_good_end(viewer, operator):
    for name, status in {
        "failed": "failed",
        "cancelled": "cancelled",
        "fine": "succeeded",
        "acting": None,
    }.items():
        acted_on(asked(question(name), thread_id=name), status=status)
    # Of the same names as one that failed, but not of its thread or scope.
    acted_on(asked(question("other"), thread_id="failed", scope="s2"), status="succeeded")
    gone, store = asked(question("gone"), thread_id="gone"), DatabaseStore()
    cancelled = [{"interruptId": "gone", "status": "cancelled"}]
    taker = store.admit("s1", "gone", "r2", "digest", cancelled).record
    store.save(taker.start(store.now()).finish("failed", store.now()))
    assert fresh(gone).state == "settled"
    assert shown(viewer, "?show=attention") == ["cancelled", "failed"]
    lost = RunInterrupt.objects.get(interrupt_id="failed")
    operator.post(page(lost, "release"))
    assert shown(viewer, "?show=attention") == ["cancelled"]


def test_the_questions_of_a_run_are_shown_in_its_order(viewer):
    asked(*(question(name) for name in "abc"), thread_id="first")
    asked(*(question(name) for name in "de"), thread_id="second")
    assert shown(viewer, "?show=all") == ["d", "e", "a", "b", "c"]
    assert shown(viewer, "?q=first") == ["a", "b", "c"]


def test_a_search_that_finds_nothing_says_what_is_searched(viewer):
    assert "the whole id of a thread, a run or an interrupt" in text(viewer.get(f"{INBOX}?q=i-"))


def test_the_inbox_has_one_name(viewer):
    interrupt = asked()
    for url in (INBOX, page(interrupt)):
        [crumbs] = re.findall(
            r'<(?:div|ol) class="breadcrumbs">.*?</(?:div|ol)>', text(viewer.get(url)), re.S
        )
        assert "Approval inbox" in crumbs
        assert "nterrupts" not in crumbs
    assert f'href="{INBOX}"' in crumbs


def test_a_search_finds_whole_ids_in_every_state(viewer):
    acted_on(asked(question("i-A"), run_id="run-A", thread_id="thread-A"))
    asked(question("i-B"), run_id="run-B", thread_id="thread-B")
    for term in ("i-A", "run-A", "thread-A", " thread-A "):
        assert shown(viewer, f"?q={term}") == ["i-A"], term
    for term in ("i-", "RUN-A", "%25", "i-A run-A", "'"):
        assert shown(viewer, f"?q={term}") == [], term
    assert shown(viewer, "?q=i-A&show=waiting") == []


@pytest.mark.parametrize("url", [INBOX, RUNS])
def test_an_address_that_asks_for_anything_else_is_refused(viewer, url):
    asked()
    for query in ("run__scope=s1", "metadata__contains=x", "scope=s1", "interrupts__reason=x"):
        assert viewer.get(f"{url}?{query}").status_code == 400, query
    for query in ("q=%00", "p=99999999999999999999", "p=x", "show=nosuch", "status=nosuch", "o=1"):
        assert viewer.get(f"{url}?{query}", follow=True).status_code in (200, 400), query


def test_a_card_says_what_until_when_and_with_which_arguments(viewer):
    deadline = datetime.now(UTC) + timedelta(minutes=14, seconds=30)
    metadata = {"toolName": "refund", "arguments": {"amount": "1284.50"}, "cost": 3}
    asked(
        question(message="Refund it?", metadata=metadata, expires_at=deadline),
        run_id="r-77",
        thread_id="order-1182",
        scope="tenant-1",
    )
    body = unescape(text(viewer.get(INBOX)))
    for part in ("tool_call · refund", "order-1182", "r-77", "tenant-1", "expires in 14"):
        assert part in body.replace("\xa0", " "), part
    assert re.search(r"<h2[^>]*><a[^>]*>Refund it\?</a></h2>", body)
    assert f'href="{RUNS}?q=order-1182"' in body
    assert '{"amount": "1284.50"}' in body
    assert '{"cost": 3}' in body
    assert re.search(r'title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+"', body)


@pytest.mark.parametrize(
    ("url", "most"),
    [(INBOX, 12), (f"{INBOX}?show=answered", 13), (f"{INBOX}?show=attention", 15), (RUNS, 12)],
)
def test_a_list_costs_the_same_for_any_number_of_rows(operator, url, most):
    def queries():
        with CaptureQueriesContext(connection) as made:
            assert operator.get(url).status_code == 200
        return made.captured_queries

    def fill(count, name):
        for number in range(count):
            asked(thread_id=f"{name}{number}")
            acted_on(asked(thread_id=f"{name}-done{number}"))

    fill(2, "few")
    few = queries()
    fill(8, "many")
    assert len(queries()) == len(few) <= most
    sql = [query["sql"] for query in few]
    assert not [one for one in sql if '"snapshot"' in one or "`snapshot`" in one]
    counts = [one for one in sql if "COUNT(*)" in one and "solid_runs_ag_ui" in one]
    assert all("LIMIT" in one for one in counts)


# Who may


def test_who_may_not_decide_sees_no_buttons_and_cannot_post(viewer):
    interrupt = asked()
    for url in (INBOX, page(interrupt)):
        body = text(viewer.get(url))
        assert "tool_call" in body
        assert 'name="answer"' not in body
    assert viewer.post(page(interrupt, "answer"), {"answer": "approve"}).status_code == 403
    assert fresh(interrupt).decision is None


def test_who_may_decide_but_not_see_cannot_post():
    interrupt = asked()
    blind = client(staff("blind", "decide_interrupt"))
    assert blind.post(page(interrupt, "answer"), {"answer": "approve"}).status_code == 403
    assert fresh(interrupt).decision is None


def test_a_host_decides_who_may_decide_what(maria, monkeypatch):
    mine, other = asked(thread_id="mine"), asked(thread_id="other")
    monkeypatch.setattr(
        RunInterruptAdmin,
        "can_decide",
        lambda self, request, interrupt: interrupt.run.thread_id == "mine",
    )
    body = text(maria.get(INBOX))
    assert page(mine, "answer") in body
    assert page(other, "answer") not in body
    assert maria.post(page(other, "answer"), {"answer": "approve"}).status_code == 403
    assert post(maria, mine).status_code == 200
    assert (fresh(mine).state, fresh(other).state) == ("free", "open")


def test_what_a_person_may_not_see_is_not_there(maria, monkeypatch):
    """F66: get_queryset() narrows every path."""
    theirs = asked(scope="theirs")
    visible = RunInterruptAdmin.get_queryset
    monkeypatch.setattr(
        RunInterruptAdmin,
        "get_queryset",
        lambda self, request: visible(self, request).filter(run__scope="mine"),
    )
    assert shown(maria, "?show=all") == []
    assert maria.post(page(theirs, "answer"), {"answer": "approve"}).status_code == 404
    assert fresh(theirs).decision is None


def test_an_answer_needs_the_token_and_post(maria):
    interrupt = asked()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(staff("maria"))
    assert strict.post(page(interrupt, "answer"), {"answer": "approve"}).status_code == 403
    assert maria.get(page(interrupt, "answer")).status_code == 405
    assert fresh(interrupt).decision is None


@pytest.mark.parametrize("model", [ReservedRun, RunInterrupt])
def test_nothing_is_added_changed_or_deleted(admin_client, model):
    """F64."""
    interrupt = asked()
    one = interrupt if model is RunInterrupt else interrupt.run
    assert admin_client.post(page(one), {"status": "succeeded"}).status_code == 403
    assert admin_client.post(page(one, "delete"), {"post": "yes"}).status_code == 403
    url = reverse(f"admin:solid_runs_ag_ui_{model._meta.model_name}_add")
    assert admin_client.post(url, {}).status_code == 403
    listed = reverse(f"admin:solid_runs_ag_ui_{model._meta.model_name}_changelist")
    admin_client.post(listed, {"action": "delete_selected", "_selected_action": [one.pk]})
    assert model.objects.filter(pk=one.pk).exists()


@pytest.mark.parametrize("pk", ["99999999999999999999", "0", "x", "1%00"])
def test_what_is_not_there_is_not_found(operator, pk):
    for url in (f"{INBOX}{pk}/answer/", f"{INBOX}{pk}/release/", f"{RUNS}{pk}/cancel/"):
        assert operator.post(url, {"answer": "approve"}).status_code == 404
    for url in (f"{INBOX}{pk}/change/", f"{RUNS}{pk}/change/"):
        assert operator.get(url).status_code == 404


# Answers


def test_an_approval_is_recorded_and_says_what_happens_next(maria):
    interrupt = asked(question(message="Refund 12.50 EUR?"))
    response = post(maria, interrupt, "approve", back="show=all")
    assert told(response) == [
        "Approved: “Refund 12.50 EUR?”. The next run of the thread takes the answer."
    ]
    assert response.redirect_chain == [(f"{INBOX}?show=all", 302)]
    answered = fresh(interrupt)
    assert answered.decision == {
        "status": "resolved",
        "payload": {"approved": True},
        "metadata": None,
    }
    assert (answered.state, answered.decided_by) == ("free", "maria")
    assert history(interrupt) == [("maria", 'Approved: {"approved":true}')]


def test_an_answer_waits_for_those_to_the_other_questions_of_its_run(maria, operator):
    one = asked(*(question(name) for name in ("a", "b", "late")))
    expire(RunInterrupt.objects.get(interrupt_id="late"))
    once = "takes the answer once the other question of this run is answered."
    assert once in told(post(maria, one))[0]
    for url in (page(one), f"{INBOX}?show=answered"):
        assert once in text(maria.get(url))
    other = RunInterrupt.objects.get(interrupt_id="b")
    assert "The next run of the thread takes the answer." in told(post(maria, other))[0]
    assert "takes the answer once" not in text(maria.get(page(one)))


def test_a_denial_is_resolved_and_carries_its_reason(maria):
    interrupt = asked()
    response = post(maria, interrupt, "deny", reason="Not today")
    assert told(response)[0].startswith("Denied: ")
    assert response.redirect_chain == [(page(interrupt), 302)]
    decision = fresh(interrupt).decision
    assert decision["status"] == "resolved"
    assert decision["payload"] == {"approved": False, "reason": "Not today"}
    assert history(interrupt) == [("maria", 'Denied: {"approved":false,"reason":"Not today"}')]


def test_the_enter_key_in_the_reason_does_not_approve(maria):
    asked()
    forms = re.findall(r"<form.*?</form>", text(maria.get(INBOX)), re.S)
    [with_reason] = [form for form in forms if "-reason" in form]
    assert re.findall(r'name="answer" value="(\w+)"', with_reason) == ["deny"]


def test_a_form_is_answered_with_its_values(maria):
    interrupt = asked(question(reason="input_required", response_schema=FLIGHT))
    assert "Flight" in text(maria.get(INBOX))
    response = post(maria, interrupt, "send", property0="1", property1="2")
    assert told(response) == [
        "Answered: “input_required”. The next run of the thread takes the answer."
    ]
    assert fresh(interrupt).decision["payload"] == {"flight": "UA62", "bags": 2}
    assert '<code>{"flight":"UA62","bags":2}</code>' in unescape(
        text(maria.get(f"{INBOX}?show=answered"))
    )


def test_a_form_that_is_filled_in_wrongly_comes_back_with_what_was_entered(maria):
    interrupt = asked(question(response_schema=FLIGHT))
    response = post(maria, interrupt, "send", property0="0", property1="7", back="show=all")
    body = text(response)
    assert "less than or equal to 3" in body
    assert 'value="7"' in body
    [note] = re.findall(r'<p class="errornote">.*?</p>', body, re.S)
    assert "Your answer was not sent" in note
    assert f'href="{INBOX}?show=all"' in note
    assert '<input type="hidden" name="back" value="show=all">' in body
    assert fresh(interrupt).decision is None
    assert history(interrupt) == []


def test_any_other_schema_is_answered_in_json(maria):
    schema = {"type": "array", "items": {"type": "string"}}
    interrupt = asked(question(response_schema=schema))
    assert "array" in text(maria.get(INBOX))
    assert "This is no JSON" in text(post(maria, interrupt, "send", document="[oops"))
    assert fresh(interrupt).decision is None
    post(maria, interrupt, "send", document='["a", 1]')
    assert fresh(interrupt).decision["payload"] == ["a", 1]


def test_who_was_slower_reads_who_was_faster(maria):
    interrupt = asked(question(message="Refund it?"))
    reason = {"approved": False, "reason": "Too much"}
    DatabaseStore().answer("s1", "t1", "i1", {**DENIED, "payload": reason}, by="jonas")
    [message] = told(post(maria, interrupt, "approve"))
    assert re.fullmatch(
        r"Your answer to “Refund it\?” was not taken: somebody was faster, it was denied by jonas "
        r"\d seconds? ago \(“Too much”\)\.",
        message,
    )
    assert fresh(interrupt).decision["payload"] == reason
    assert history(interrupt) == []


def test_who_gives_the_same_answer_again_reads_that_it_was_given(maria):
    interrupt = asked()
    DatabaseStore().answer("s1", "t1", "i1", APPROVED, by="jonas")
    [message] = told(post(maria, interrupt, "approve"))
    assert "of the same mind: “tool_call” was approved by jonas" in message
    assert fresh(interrupt).decided_by == "jonas"
    assert history(interrupt) == []


def test_an_answer_after_the_deadline_reads_when_that_was(maria):
    interrupt = asked()
    expire(interrupt)
    [message] = told(post(maria, interrupt))
    assert re.search(r"it expired at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", message)
    assert fresh(interrupt).decision is None
    assert 'name="answer"' not in text(maria.get(page(interrupt)))


@pytest.mark.parametrize("later_id", ["other", "i1"])
def test_an_answer_to_a_stale_one_reads_which_run_asked_later(maria, later_id):
    """Also if the later run gave its question the same id: what was not seen is not approved."""
    stale = asked(question("i1"))
    later = asked(question(later_id), run_id="r-9")
    [message] = told(post(maria, stale))
    assert "stale, run r-9 has asked later" in message
    assert fresh(stale).decision is None
    assert fresh(later).decision is None
    body = text(maria.get(page(stale)))
    assert "Run r-9 of the thread has asked later" in body
    assert 'name="answer"' not in body


def test_an_answer_to_what_was_deleted_is_not_found(maria):
    interrupt = asked()
    url = page(interrupt, "answer")
    interrupt.run.delete()
    assert maria.post(url, {"answer": "approve"}).status_code == 404


@pytest.mark.parametrize("back", ["//evil.example", "x\r\nSet-Cookie: a=b", "\\\\evil"])
def test_an_answer_leads_nowhere_but_back_to_the_list(maria, back):
    interrupt = asked()
    data = {"answer": "approve", "back": back}
    response = maria.post(page(interrupt, "answer"), data)
    assert response.status_code == 302
    assert response["Location"].startswith(f"{INBOX}?")
    assert "Set-Cookie: a" not in str(response.headers)


def test_an_answered_card_says_who_when_and_what_happens_next(viewer):
    store = DatabaseStore()
    asked(question("free"), thread_id="free")
    store.answer(
        "s1",
        "free",
        "free",
        {"status": "resolved", "payload": {"approved": False, "reason": "Too much"}},
        by="jonas",
    )
    asked(question("held"), thread_id="held")
    store.answer("s1", "held", "held", APPROVED, by="maria")
    store.admit("s1", "held", "r-13", "digest")
    acted_on(asked(question("done"), thread_id="done"), status="succeeded")
    acted_on(asked(question("lost"), thread_id="lost"), by="r-41", status="failed")
    gone = asked(question("gone"), thread_id="gone")
    store.request_cancel("s1", "gone", gone.run.run_id, by="root")

    def said(interrupt_id):
        interrupt = RunInterrupt.objects.get(interrupt_id=interrupt_id)
        body = re.sub(r"<[^>]+>", "", text(viewer.get(page(interrupt))))
        return " ".join(unescape(body).split())

    assert re.search(r"Denied by jonas \d+ seconds? ago\. “Too much”", said("free"))
    assert "The next run of the thread takes the answer." in said("free")
    assert "Run r-13 has taken the answer and not acted on it yet." in said("held")
    assert re.search(r"Acted on by run r2 \d+ seconds? ago\.", said("done"))
    assert "which then ended as failed: outcome unknown" in said("lost")
    assert "outcome unknown" not in said("done")
    assert re.search(r"Cancelled by root \d+ seconds? ago\.", said("gone"))


# Releasing


def test_a_release_is_asked_about_first_and_then_done_and_logged(operator):
    interrupt = asked()
    acted_on(interrupt, by="r2", status="failed")
    assert page(interrupt, "release") in text(operator.get(f"{INBOX}?show=answered"))
    acted_on(asked(question("fine"), thread_id="fine"), status="succeeded")
    fine = RunInterrupt.objects.get(interrupt_id="fine")
    assert page(fine, "release") not in text(operator.get(f"{INBOX}?show=answered"))
    assert page(fine, "release") in text(operator.get(page(fine)))
    confirmation = text(operator.get(page(interrupt, "release")))
    assert "the tool may run twice" in confirmation
    assert fresh(interrupt).state == "settled"
    response = operator.post(page(interrupt, "release"), follow=True)
    assert told(response) == [
        "Released: “tool_call”. The next run of the thread takes the answer. "
        "Run r2 had acted on it before, so its tool may run twice."
    ]
    assert fresh(interrupt).state == "free"
    assert history(interrupt) == [
        ("operator", "Released: run r2 had acted on it, so its tool may run twice.")
    ]


@pytest.mark.parametrize("use_tz", [True, False])
def test_a_released_answer_keeps_saying_so(operator, use_tz):
    with override_settings(USE_TZ=use_tz):
        interrupt = asked()
        acted_on(interrupt, by="r2", status="failed")
        operator.post(page(interrupt, "release"))
        for url in (page(interrupt), f"{INBOX}?show=answered"):
            body = re.sub(r"<[^>]+>", "", text(operator.get(url)))
            assert re.search(
                r"Released by operator \d+ seconds? ago: run r2 had acted on it before, so its "
                r"tool may run twice\.",
                body,
            )
            assert "No run has taken the answer again yet." in body
        assert '<span class="run-badge run-failed">released</span>' in text(operator.get(url))


def test_a_release_takes_a_permission_of_its_own(maria):
    interrupt = asked()
    acted_on(interrupt)
    assert "release" not in text(maria.get(page(interrupt)))
    for method in (maria.get, maria.post):
        assert method(page(interrupt, "release")).status_code == 403
    assert fresh(interrupt).state == "settled"


@pytest.mark.parametrize("case", ["open", "free", "held", "cancelled", "acting", "stale"])
def test_only_what_was_acted_on_by_a_run_that_ended_is_released(operator, case):
    interrupt, store = asked(), DatabaseStore()
    if case in ("free", "held"):
        store.answer("s1", "t1", "i1", APPROVED, by="maria")
    if case == "held":
        store.admit("s1", "t1", "r2", "digest")
    if case == "cancelled":
        store.request_cancel("s1", "t1", "r1", by="maria")
    if case in ("acting", "stale"):
        acted_on(interrupt, status=None if case == "acting" else "failed")
    if case == "stale":
        asked(question("later"), run_id="r3")
    before = fresh(interrupt)
    assert "/release/" not in text(operator.get(page(interrupt)))
    assert operator.get(page(interrupt, "release")).status_code == 302
    response = operator.post(page(interrupt, "release"), follow=True)
    assert told(response)[0].startswith("Nothing was released")
    assert fresh(interrupt).settled_at == before.settled_at
    assert fresh(interrupt).redeemed_by == before.redeemed_by
    assert history(interrupt) == []


# Runs


def test_runs_are_found_by_whole_ids_and_by_status(viewer):
    asked(question("i-A"), run_id="run-A", thread_id="thread-A", trace_id="trace-A")
    started("run-B", "thread-B")

    def found(query):
        response = viewer.get(f"{RUNS}?{query}")
        assert response.status_code == 200
        return [run.run_id for run in response.context["cl"].result_list]

    for term in ("run-A", "thread-A", "trace-A", "i-A"):
        assert found(f"q={term}") == ["run-A"], term
    assert found("q=run-") == []
    assert found("status=started") == ["run-B"]
    assert found("") == ["run-B", "run-A"]


def test_the_list_of_runs_says_who_is_alive_and_what_they_wait_for(viewer):
    deadline = datetime.now(UTC) + timedelta(hours=2, minutes=5)
    asked(question("a", expires_at=deadline), question("b"), run_id="asks", thread_id="t1")
    started("runs", "t2")
    started("stops", "t3")
    DatabaseStore().request_cancel("s1", "t3", "stops")
    body = unescape(text(viewer.get(RUNS))).replace("\xa0", " ")
    rows = {
        name: re.search(rf"<tr>(?:(?!</tr>).)*>{name}<.*?</tr>", body, re.S)[0]
        for name in ("asks", "runs", "stops")
    }
    assert "2 answers" in rows["asks"]
    assert "expires in 2 hours" in rows["asks"]
    assert "its owner, to cancel it" in rows["stops"]
    assert "silent" not in "".join(rows.values())


def test_what_interrupted_runs_wait_for_is_told_apart(viewer):
    store = DatabaseStore()
    asked(thread_id="free", run_id="free")
    store.answer("s1", "free", "i1", APPROVED, by="maria")
    asked(thread_id="held", run_id="held")
    store.answer("s1", "held", "i1", APPROVED, by="maria")
    store.admit("s1", "held", "taker", "digest")
    acted_on(asked(thread_id="done", run_id="done"), status="succeeded")
    asked(thread_id="stale", run_id="stale")
    asked(thread_id="stale", run_id="later")
    listed = viewer.get(RUNS).context["cl"]
    runs = {run.run_id: listed.model_admin.waits_for(run) for run in listed.result_list}
    assert runs["free"] == "the next run, to take 1 answer"
    assert runs["held"] == "the run that took 1 answer"
    assert runs["done"] is None
    assert runs["stale"] == "nothing: a later run has asked"
    assert str(runs["later"]) == "1 answer"


def test_a_run_whose_owner_is_silent_is_marked_and_its_page_says_what_to_do(viewer):
    started("lively", "t1")
    started("quiet", "t2")
    ago = datetime.now(UTC) - timedelta(hours=7, minutes=1)
    ReservedRun.objects.filter(run_id="quiet").update(alive_at=ago)
    asked(run_id="asks", thread_id="t3")
    ReservedRun.objects.filter(run_id="asks").update(alive_at=ago)
    listed = viewer.get(f"{RUNS}?status=silent")
    assert [run.run_id for run in listed.context["cl"].result_list] == ["quiet"]
    assert text(viewer.get(RUNS)).count("silent for 7\xa0hours") == 1
    quiet = text(viewer.get(page(row("quiet", "t2"))))
    assert "silent for 7\xa0hours" in quiet
    assert "fail_stalled_ag_ui_runs" in quiet
    assert "fail_stalled_ag_ui_runs" not in text(viewer.get(page(row("lively"))))


def test_the_page_of_a_run_shows_its_questions_its_thread_and_its_trace(operator):
    FreshRun.objects.create(status="complete", trace_id="trace-1")
    operator_user = staff("operator")
    operator_user.user_permissions.add(Permission.objects.get(codename="view_freshrun"))
    interrupt = asked(
        question(metadata={"toolName": "refund"}), snapshot={"n": 1}, trace_id="trace-1"
    )
    started("later")
    run = interrupt.run
    body = unescape(text(operator.get(page(run))))
    for part in (page(interrupt), page(row("later")), '{"n": 1}', "refund"):
        assert part in body, part
    traced = FreshRun.objects.get(trace_id="trace-1")
    assert reverse("admin:tests_freshrun_change", args=[traced.pk]) in body


def test_the_page_of_a_run_shows_only_what_a_person_may_see(operator, monkeypatch):
    """F66: get_queryset() narrows the runs and the interrupts beside it too."""
    interrupt = asked(question(reason="visible_reason"))
    started("hidden-run")
    runs, interrupts = ReservedRunAdmin.get_queryset, RunInterruptAdmin.get_queryset
    assert "hidden-run" in text(operator.get(page(interrupt.run)))
    assert "visible_reason" in text(operator.get(page(interrupt.run)))
    monkeypatch.setattr(
        ReservedRunAdmin,
        "get_queryset",
        lambda self, request: runs(self, request).exclude(run_id="hidden-run"),
    )
    monkeypatch.setattr(
        RunInterruptAdmin, "get_queryset", lambda self, request: interrupts(self, request).none()
    )
    body = text(operator.get(page(interrupt.run)))
    assert "hidden-run" not in body
    assert "visible_reason" not in body


def test_links_lead_only_where_one_may_go():
    FreshRun.objects.create(status="complete", trace_id="trace-1")
    interrupt = asked(trace_id="trace-1")
    runs_only = client(staff("runs", "view_reservedrun"))
    body = text(runs_only.get(page(interrupt.run)))
    assert page(interrupt) not in body
    assert "freshrun" not in body
    interrupts_only = client(staff("interrupts", "view_runinterrupt"))
    for url in (INBOX, page(interrupt)):
        assert page(interrupt.run) not in text(interrupts_only.get(url))


def test_state_and_failure_take_a_permission(viewer, operator):
    """F67."""
    interrupt, store = asked(snapshot={"secret": "sk-x"}), DatabaseStore()
    record = started("failed", "t2")
    store.save(record.finish("failed", store.now(), failure={"code": "boom", "message": "sk-y"}))
    for run, secret in ((interrupt.run, "sk-x"), (row("failed", "t2"), "sk-y")):
        assert secret in text(operator.get(page(run)))
        body = text(viewer.get(page(run)))
        assert secret not in body
        assert "Can see the state and the failures of runs" in body


def test_the_page_of_a_run_costs_the_same_for_any_number_of_rows(operator):
    run = asked(trace_id="trace-1").run

    def queries():
        with CaptureQueriesContext(connection) as made:
            assert operator.get(page(run)).status_code == 200
        return len(made)

    few = queries()
    for number in range(20):
        started(f"other{number}", trace_id="trace-1")
    asked(*(question(f"q{number}") for number in range(20)), run_id="many", thread_id="t9")
    assert queries() == few
    run = row("many", "t9")
    assert queries() <= few + 1


def test_cancelling_says_what_happened_and_what_was_skipped(operator):
    store = DatabaseStore()
    store.reserve("s1", "t1", "reserved", "digest")
    started("running", "t2")
    interrupt = asked(thread_id="t3", run_id="asks")
    record = started("done", "t4")
    store.save(record.finish("succeeded", store.now()))
    keys = list(ReservedRun.objects.values_list("pk", flat=True))
    response = operator.post(
        RUNS, {"action": "cancel_selected", "_selected_action": keys}, follow=True
    )
    assert sorted(told(response)) == [
        "1 run was asked to stop: its owner sees that at its next heartbeat.",
        "1 run was cancelled.",
        "1 run was skipped: there was nothing to cancel any more.",
        "The open questions of 1 run were cancelled.",
    ]
    assert row("reserved").status == "cancelled"
    assert row("running", "t2").cancel_requested_at is not None
    assert fresh(interrupt).decided_by == "operator"
    assert row("done", "t4").status == "succeeded"
    assert history(row("reserved")) == [("operator", "Cancelled.")]
    assert history(row("running", "t2")) == [("operator", "Asked to cancel.")]
    assert history(row("done", "t4")) == []


def test_one_run_is_cancelled_from_its_page(operator):
    started("running")
    url = page(row("running"), "cancel")
    assert url in text(operator.get(page(row("running"))))
    assert operator.get(url).status_code == 405
    assert "was asked to stop" in told(operator.post(url, follow=True))[0]


def test_cancelling_takes_a_permission(maria):
    started("running")
    run = row("running")
    assert "cancel" not in text(maria.get(page(run))).lower()
    assert "cancel_selected" not in text(maria.get(RUNS))
    assert maria.post(page(run, "cancel")).status_code == 403
    maria.post(RUNS, {"action": "cancel_selected", "_selected_action": [run.pk]})
    assert row("running").cancel_requested_at is None


# Text, times and places


def test_only_escaped_text_is_shown_whoever_wrote_it(operator):
    """F63."""
    evil = f"{SCRIPT}{BREAKOUT}"
    metadata = {"toolName": evil, "arguments": {evil: evil}, evil: evil}
    schema = {
        "type": "object",
        "properties": {
            evil: {"type": "string", "title": evil, "description": evil, "default": evil},
            "pick": {"enum": [evil]},
        },
    }
    interrupt = asked(
        question(evil, reason=evil, message=evil, metadata=metadata, tool_call_id=evil),
        question("form", reason=evil, response_schema=schema, subagent_run_id=evil),
        run_id=evil,
        thread_id=evil,
        scope=evil,
        snapshot={evil: evil},
        trace_id=evil,
        parent_run_id=evil,
    )
    form = RunInterrupt.objects.get(interrupt_id="form")
    pages = [INBOX, RUNS, page(interrupt), page(form), page(interrupt.run)]
    pages += [f"{INBOX}?q={evil}", f"{RUNS}?q={evil}"]
    bodies = [text(operator.get(url)) for url in pages]
    bodies.append(text(post(operator, form, "send", property1="x")))
    bodies.append(text(post(operator, interrupt, "deny", reason=evil)))
    acted_on(asked(question(evil), run_id="r-next", thread_id=evil, scope=evil), by=f"{evil}2")
    later = RunInterrupt.objects.get(run__run_id="r-next")
    bodies += [text(operator.get(page(later, view))) for view in ("change", "release", "history")]
    bodies += [text(operator.get(page(interrupt, "history"))), text(post(operator, interrupt))]
    for body in bodies:
        assert "alert(1)" in body
        assert SCRIPT not in body
        assert "<img src=x" not in body


def test_long_texts_are_cut_in_the_list_and_say_so(maria):
    interrupt = asked(question(message="m" * 5_000, metadata={"arguments": ["a" * 5_000]}))
    listed = text(maria.get(INBOX))
    assert "m" * 2_000 not in listed
    assert "read the rest before you decide" in listed
    whole = text(maria.get(page(interrupt)))
    assert "m" * 5_000 in whole
    assert "a" * 5_000 in whole


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_right_with_and_without_time_zones(operator, use_tz):
    deadline = datetime.now(UTC) + timedelta(minutes=30, seconds=30)
    with override_settings(USE_TZ=use_tz):
        interrupt = asked(question(expires_at=deadline))
        started("running", "t2")
        body = text(operator.get(page(interrupt))).replace("\xa0", " ")
        assert "expires in 30 minutes" in body
        local = deadline.astimezone(datetime.fromisoformat("2000-01-01T00:00+09:00").tzinfo)
        assert f"{local:%Y-%m-%d %H:%M:%S}" in body
        assert operator.get(RUNS).status_code == 200
        assert operator.get(page(row("running", "t2"))).status_code == 200
        assert told(post(operator, interrupt))[0].startswith("Approved: ")
        expired = asked(question("late", expires_at=deadline), run_id="r5", thread_id="t5")
        expire(expired)
        assert "it expired at" in told(post(operator, expired))[0]


@pytest.mark.django_db(databases=["default", "other"])
def test_answers_go_to_the_alias_of_the_rows(settings, maria):
    settings.DATABASE_ROUTERS = ["tests.ag_ui.test_admin.ToOther"]
    interrupt = asked(using="other")
    assert shown(maria) == ["i1"]
    assert told(post(maria, interrupt))[0].startswith("Approved: ")
    assert fresh(interrupt).decided_by == "maria"
    assert maria.get(page(interrupt.run)).status_code == 200
    assert not RunInterrupt.objects.using("default").exists()


class ToOther:
    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "solid_runs_ag_ui" else None

    db_for_write = db_for_read


def test_a_host_says_who_answered_and_through_which_store(maria, monkeypatch):
    now = datetime.now(UTC) + timedelta(days=400)
    monkeypatch.setattr(RunInterruptAdmin, "decided_by", lambda self, request: "desk 7")
    monkeypatch.setattr(
        RunInterruptAdmin, "get_store", lambda self: DatabaseStore(clock=lambda: now)
    )
    interrupt = asked(question(expires_at=now + timedelta(minutes=2, seconds=5)))
    assert "expires in 2\xa0minutes" in text(maria.get(INBOX))
    post(maria, interrupt)
    assert (fresh(interrupt).decided_by, fresh(interrupt).decided_at) == ("desk 7", now)
