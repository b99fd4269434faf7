"""The endpoint under a real server, over sockets, with this process as another one beside it."""

from __future__ import annotations

import signal
import time
from datetime import timedelta

import pytest
from django.db import connection

from solid_runs.ag_ui.digests import digest, digest_input
from solid_runs.ag_ui.models import ReservedRun
from solid_runs.ag_ui.stores.database import DatabaseStore
from tests.ag_ui.agents import approval, body, dropped, kinds, parse, resolved
from tests.ag_ui.serving import served

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = "/database/"
store = DatabaseStore()


def status_of(run_id: str = "r1") -> str:
    record = store.find("ann", "t1", run_id)
    return str(record.status) if record else "none"


def wait_for(status: str, run_id: str = "r1", seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while status_of(run_id) != status:
        assert time.monotonic() < end, f"{run_id} is {status_of(run_id)}, not {status}"
        time.sleep(0.02)


def test_a_run_streams_over_http():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="say"))
        assert answer.status == 200
        frames = parse(answer.all())
    assert "content-type: text/event-stream" in answer.text.lower()
    assert kinds(frames)[0] == "RUN_STARTED"
    assert kinds(frames)[-1] == "RUN_FINISHED"
    assert status_of() == "succeeded"


def test_a_body_without_a_length_is_read_and_limited():
    with served(body_bytes=1000) as server:
        chunked = {"Transfer-Encoding": "chunked"}
        answer = server.request("POST", ROOT, body(text="say"), **chunked)
        assert kinds(parse(answer.all()))[-1] == "RUN_FINISHED"
        answer = server.request("POST", ROOT, body("r2", text="x" * 1000), **chunked)
        assert answer.status == 413
    assert status_of("r2") == "none"


def test_frames_arrive_as_they_are_yielded_and_comments_between_them():
    with served(keep_alive=0.1) as server:
        answer = server.request("POST", ROOT, body(text="pause"))
        begun = answer.until("TEXT_MESSAGE_CONTENT")
        assert "TEXT_MESSAGE_END" not in begun
        assert status_of() == "started"
        frames = parse(answer.all())
    assert answer.text.count(": ping\n\n") >= 3
    assert kinds(frames)[-1] == "RUN_FINISHED"


def test_a_run_goes_on_when_its_client_hangs_up():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="pause"))
        answer.until("TEXT_MESSAGE_CONTENT")
        answer.close()
        wait_for("succeeded")
        again = server.request("POST", ROOT, body(text="pause"))
        assert kinds(parse(again.all())) == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_run_that_shall_stop_fails_when_its_client_hangs_up():
    with served(on_disconnect="stop") as server:
        answer = server.request("POST", ROOT, body(text="wait"))
        answer.until("TEXT_MESSAGE_CONTENT")
        answer.close()
        wait_for("failed")
    assert store.find("ann", "t1", "r1").failure["code"] == "client_gone"


def test_another_process_cancels_a_run():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="wait"))
        answer.until("TEXT_MESSAGE_CONTENT")
        assert not store.request_cancel("ann", "t1", "r1").ended
        frames = parse(answer.all())
    assert kinds(frames)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert status_of() == "cancelled"


def test_another_request_cancels_a_run_at_once():
    with served(heartbeat=30) as server:
        answer = server.request("POST", ROOT, body(text="wait"))
        answer.until("TEXT_MESSAGE_CONTENT")
        cancel = server.request("POST", f"{ROOT}t1/r1/cancel")
        assert cancel.status == 202
        frames = parse(answer.all())
    assert frames[-1]["outcome"] == {"type": "cancelled"}


def test_two_servers_share_a_run():
    with served() as server, served() as other:
        answer = server.request("POST", ROOT, body(text="wait"))
        answer.until("TEXT_MESSAGE_CONTENT")
        attached = other.request("POST", ROOT, body(text="wait"))
        attached.until("RUN_STARTED")
        assert other.request("POST", f"{ROOT}t1/r1/cancel").status == 202
        for one in (answer, attached):
            assert parse(one.all())[-1]["outcome"] == {"type": "cancelled"}


def test_sync_code_of_an_agent_does_not_hold_up_its_heartbeats():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="work"))
        answer.until("TEXT_MESSAGE_CONTENT")
        time.sleep(3)
        assert store.stalled(timedelta(seconds=2)) == []
        store.request_cancel("ann", "t1", "r1")
        wait_for("cancelled", seconds=4)
        assert parse(answer.all())[-1]["outcome"] == {"type": "cancelled"}


def test_an_agent_that_blocks_the_server_is_told_what_became_of_its_run():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="block"))
        answer.until("TEXT_MESSAGE_START")
        time.sleep(1)
        assert len(store.fail_stalled(timedelta(seconds=0.5))) == 1
        frames = parse(answer.all())
    assert frames[-1].kind == "RUN_ERROR"
    assert frames[-1]["code"] == "stalled"
    assert status_of() == "failed"


def test_a_client_that_reads_slowly_gets_all_of_it():
    with served() as server:
        answer = server.request("POST", ROOT, body(text="flood"))
        answer.until("RUN_STARTED")
        time.sleep(0.5)
        frames = parse(answer.all())
    assert [frame.id for frame in frames] == list(range(1, 1006))


def test_a_silent_run_holds_no_connection_to_the_database(vendor):
    with served() as server:
        for number in range(1, 6):
            answer = server.request("POST", ROOT, body(f"r{number}", text="wait"))
            answer.until("TEXT_MESSAGE_CONTENT")
        time.sleep(0.5)
        counts = [connections_beside_this_one(vendor) for _ in range(10)]
    assert min(counts) <= 1, counts


def connections_beside_this_one(vendor: str) -> int:
    sql = {
        "postgresql": "pg_stat_activity WHERE datname = current_database()",
        "mysql": "information_schema.processlist WHERE db = database()",
        "sqlite": "(SELECT 1) AS one",  # a file has no connections to count
    }[vendor]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) - 1 FROM {sql}")
        (count,) = cursor.fetchone()
    time.sleep(0.03)
    return int(count)


@pytest.mark.parametrize("client", ["attached", "gone"])
def test_a_server_that_is_told_to_stop_ends_its_runs(client):
    asked_before()
    with served() as server:
        answer = server.request("POST", ROOT, body("r2", text="wait", resume=[resolved()]))
        answer.until("TEXT_MESSAGE_CONTENT")
        assert store.find_interrupt("ann", "t1", "i1").redeemed_by == "r2"
        if client == "gone":
            answer.close()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
    record = store.find("ann", "t1", "r2")
    assert (record.status, record.failure["code"]) == ("failed", "stalled")
    free = store.find_interrupt("ann", "t1", "i1")
    assert (free.state, free.redeemed_by) == ("free", None)


def asked_before() -> None:
    """A run r1 that has asked i1."""
    sent = body("r1")
    begun = store.admit("ann", "t1", "r1", digest(digest_input(sent)), ()).record
    begun = store.save(begun.start(store.now()))
    store.save(begun.interrupted([approval()], store.now()))


def test_a_server_that_is_interrupted_ends_its_runs():
    with served(ending_runs=False) as server:
        answer = server.request("POST", ROOT, body(text="wait"))
        answer.until("TEXT_MESSAGE_CONTENT")
        answer.close()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        server.process.wait(20)
    record = store.find("ann", "t1", "r1")
    assert (record.status, record.failure["code"]) == ("failed", "stalled")
    assert ReservedRun.objects.count() == 1


# A server that is killed

AT_ONCE = timedelta(0)
SAID = "TEXT_MESSAGE_CONTENT"


def asked_and_answered(server, told, run_id="r2", **more):
    """The run that brings an approval, after one that asked; what it streams so far."""
    if status_of() == "none":
        assert parse(server.request("POST", ROOT, body(text="ask")).all())[-1]["outcome"]
    sent = body(run_id, text=told, resume=[resolved(approved=True)], **more)
    return server.request("POST", ROOT, sent)


def killed(server):
    server.process.kill()
    server.process.wait()


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def acted(ledger):
    return ledger.read_text().split() if ledger.exists() else []


def test_a_server_killed_before_the_permission_leaves_the_tool_to_one_retry(
    ledger,
):
    with served() as server:
        asked_and_answered(server, f"before {ledger}").until(SAID)
        killed(server)
    assert (status_of("r2"), acted(ledger)) == ("started", [])
    with served(attach_limit=0.2) as server:
        again = asked_and_answered(server, f"before {ledger}")
        assert parse(again.all())[-1]["code"] == "run_in_progress"
        assert [record.run_id for record in store.fail_stalled(AT_ONCE)] == ["r2"]
        again = asked_and_answered(server, f"before {ledger}")
        assert parse(again.all())[-1]["code"] == "stalled"
        retry = asked_and_answered(server, f"act {ledger}", "r3")
        assert parse(retry.all())[-1]["outcome"] == {"type": "success"}
        late = asked_and_answered(server, f"act {ledger}", "r4")
        assert parse(late.all())[-1]["code"] == "interrupt_answered"
    assert acted(ledger) == ["r3"]


def test_a_server_killed_after_the_permission_leaves_a_tool_that_no_retry_repeats(ledger):
    with served() as server:
        answer = asked_and_answered(server, f"after {ledger}")
        answer.until(SAID)
        end = time.monotonic() + 10
        while not acted(ledger) and time.monotonic() < end:
            time.sleep(0.02)
        killed(server)
    with served() as server:
        store.fail_stalled(AT_ONCE)
        again = asked_and_answered(server, f"act {ledger}", "r3")
        assert parse(again.all())[-1]["code"] == "interrupt_answered"
        gave_up = body("r4", text=f"act {ledger}", resume=[dropped()])
        frames = parse(server.request("POST", ROOT, gave_up).all())
        assert frames[-1]["outcome"] == {"type": "success"}
    assert acted(ledger) == ["r2"]


def test_a_server_killed_in_mid_stream_leaves_a_run_that_is_found_and_told_of_truthfully():
    with served() as server:
        server.request("POST", ROOT, body(text="wait")).until(SAID)
        killed(server)
    assert [record.run_id for record in store.stalled(AT_ONCE)] == ["r1"]
    with served(attach_limit=0.2) as server:
        stream = {"Accept": "text/event-stream"}
        still = server.request("GET", f"{ROOT}t1/r1", **stream)
        assert parse(still.all())[-1]["code"] == "run_in_progress"
        store.fail_stalled(AT_ONCE)
        ended = server.request("GET", f"{ROOT}t1/r1", **stream)
        assert parse(ended.all())[-1]["code"] == "stalled"
        told = server.request("GET", f"{ROOT}t1")
        told.until('"code": "stalled"')
        assert told.status == 200
