"""Run make demo as a newcomer would, look at what it serves, and stop it.

Arguments go to make: VENV=… PYTHON=….
"""

from __future__ import annotations

import base64
import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from free_port import free_port

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300
TABLES = ["agentrun", "generatorrun", "platformrun"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for round_name in ("a new database", "the same database again"):
            port = free_port()
            print(f"make demo with {round_name}, on port {port}", flush=True)
            with_server(folder, port)
        check_taken_port(folder)
    print("The demo serves its admin, its API and its agent, twice; a taken port is said.")


def with_server(folder: str, port: int) -> None:
    server = subprocess.Popen(
        make(folder, port),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said: list[str] = []
    reader = threading.Thread(target=read, args=(server, said), daemon=True)
    reader.start()
    try:
        wait_until_served(server, said)
        look(f"http://127.0.0.1:{port}", "".join(said))
    finally:
        os.killpg(server.pid, signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def make(folder: str, port: int) -> list[str]:
    return ["make", "demo", f"PORT={port}", f"DEMO_DIR={folder}/demo", *sys.argv[1:]]


def read(server: subprocess.Popen[str], said: list[str]) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        print(f"  | {line}", end="", flush=True)
        said.append(line)


def wait_until_served(server: subprocess.Popen[str], said: list[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if any("Ctrl-C stops" in line for line in said):
            return
        if server.poll() is not None:
            sys.exit(f"make demo ended with {server.returncode} before it served anything.")
        time.sleep(0.2)
    sys.exit(f"make demo served nothing within {PATIENCE} s.")


def look(root: str, said: str) -> None:
    found = re.search(r"Login\s+(\w+), password (\w+)", said)
    assert found, "the login was not printed"
    name, password = found.groups()
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    page = fetch(browser, f"{root}/admin/login/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token, "the login page has no form"
    form = {"username": name, "password": password, "csrfmiddlewaretoken": token.group(1)}
    page = fetch(browser, f"{root}/admin/login/?next=/admin/", form)
    assert "Log out" in page, "the login that was printed does not work"
    for table in TABLES:
        address = f"{root}/admin/agents/{table}/"
        assert address in said, f"{address} was not printed"
        page = fetch(browser, address)
        # The first row leads to its page.
        row = re.search(rf'href="(/admin/agents/{table}/\d+/change/[^"]*)"', page)
        assert row, f"{address} lists no run"
        fetch(browser, root + row.group(1))
    assert "/static/" in page
    fetch(browser, root + re.findall(r'href="(/static/admin/[^"]+\.css)"', page)[0])
    inbox, assistant = f"{root}/admin/solid_runs_ag_ui/runinterrupt/", f"{root}/assistant/"
    for address, holds in [
        (inbox, "Refund 129.00 EUR to order 1042?"),
        (assistant, "count to 100"),
    ]:
        assert address in said, f"{address} was not printed"
        assert holds in fetch(browser, address), f"{address} does not show {holds!r}"
    fetch(browser, f"{root}/static/solid_runs_ag_ui/admin.css")
    look_at_threads(browser, root, said)
    fetch(browser, f"{root}/favicon.ico")
    talk(root, said)

    credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
    program = urllib.request.build_opener()
    program.addheaders = [("Authorization", f"Basic {credentials}")]
    lists = re.findall(rf"{re.escape(root)}/api/(?!reserved|thread)\S+-runs/", said)
    assert len(lists) == len(TABLES), f"the API's addresses were not printed: {lists}"
    for address in lists:
        runs = json.loads(fetch(program, address))["results"]
        assert runs, f"{address} lists no run"
        fetch(program, f"{address}{runs[0]['id']}/")
        fetch(program, f"{address}{runs[0]['id']}/events/")
    for name in ("interrupts", "reserved-runs", "thread-runs"):
        assert f"{root}/api/{name}/" in said, f"the address of {name} was not printed"
        assert json.loads(fetch(program, f"{root}/api/{name}/"))["results"], f"there are no {name}"
    assert "openapi" in fetch(program, f"{root}/api/schema/")
    refuses_strangers(lists[0])


def look_at_threads(browser: urllib.request.OpenerDirector, root: str, said: str) -> None:
    """The admin of conversations, and the store behind it as a Node server uses it."""
    address = f"{root}/admin/solid_runs_threads/threadrun/"
    assert address in said, f"{address} was not printed"
    page = fetch(browser, address)
    assert "chat-newsletter" in page, f"{address} lists no conversation"
    fetch(browser, f"{root}/static/solid_runs_threads/admin.css")
    found = re.search(r"Thread run store\s+(\S+)", said)
    assert found, "the thread run store was not printed"
    node = urllib.request.build_opener()
    node.addheaders = [("Authorization", "Bearer demo-token")]
    active = json.loads(fetch(node, f"{found[1]}active/?threadId=chat-newsletter"))
    assert active["status"] == "running", active
    assert json.loads(fetch(node, f"{found[1]}active/?threadId=nowhere")) is None
    refuses_strangers(f"{found[1]}active/?threadId=chat-newsletter")


def talk(root: str, said: str) -> None:
    """One run of the agent, over HTTP."""
    found = re.search(r"AG-UI endpoint\s+(\S+)\s+token\s+(\S+),", said)
    assert found, "the endpoint and its token were not printed"
    address, token = found.groups()
    run = {
        "threadId": f"smoke-{time.time_ns()}",
        "runId": "1",
        "state": {},
        "messages": [{"id": "1", "role": "user", "content": "count to 3"}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
    }
    request = urllib.request.Request(address, json.dumps(run).encode(), headers)
    arrived: list[float] = []
    events: list[dict[str, object]] = []
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        for line in answer:
            if line.startswith(b"data: "):
                arrived.append(time.monotonic())
                events.append(json.loads(line.removeprefix(b"data: ")))
    print(f"  {answer.status} {address}, {len(events)} events", flush=True)
    text = "".join(
        str(event["delta"]) for event in events if "messageId" in event and "delta" in event
    )
    assert text == "1 2 3 ", text
    assert events[0]["type"] == "RUN_STARTED"
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    assert events[-1]["outcome"] == {"type": "success"}, events[-1]
    assert arrived[-1] - arrived[0] > 0.2, "the events came all at once, so they were held back"


def fetch(
    opener: urllib.request.OpenerDirector, address: str, form: dict[str, str] | None = None
) -> str:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    with opener.open(address, data, timeout=60) as answer:
        body = answer.read().decode()
    print(f"  {answer.status} {address}", flush=True)
    return str(body)


def refuses_strangers(address: str) -> None:
    try:
        urllib.request.urlopen(address, timeout=60)
        code = 200
    except urllib.error.HTTPError as error:
        code = error.code
    print(f"  {code} {address} without a login")
    assert code in (401, 403), "the API answers strangers"


def check_taken_port(folder: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = subprocess.run(make(folder, port), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0, "make demo did not mind a taken port"
    assert f"port {port} is taken" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


if __name__ == "__main__":
    main()
