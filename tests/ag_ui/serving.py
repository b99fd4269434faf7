"""A real server for tests: ``python -m tests.ag_ui.serving NAMES`` on the test databases of these
names. It prints its port, and ends when its standard input does.

What the user says is what the agent does: ``say``, ``wait``, ``pause``, ``work`` (sync code in a
thread), ``block`` (the same in the event loop), ``flood``, ``ask``. With an answer it uses its
tool, which writes a line into the file that the user names: ``act FILE``; and it waits before it
settles, ``before FILE``, or when the tool has run, ``after FILE``.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.connections: list[Connection] = []
        assert process.stdout is not None
        self.port = int(process.stdout.readline())

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Connection:
        self.connections.append(Connection(self.port, method, path, body, headers))
        return self.connections[-1]

    def close(self) -> None:
        for one in self.connections:
            one.close()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Connection:
    """One request over a raw socket, and what has come back of its answer."""

    def __init__(
        self, port: int, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.received = bytearray()
        sent = b"" if body is None else json.dumps(body).encode()
        lines = {"Host": "test", "X-User": "ann", "Connection": "close"} | headers
        if body is not None:
            lines = {"Content-Type": "application/json"} | lines
        if lines.get("Transfer-Encoding") == "chunked":
            sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(sent), sent)
        else:
            lines["Content-Length"] = str(len(sent))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + sent)

    def until(self, text: str) -> str:
        while text.encode() not in self.received:
            received = self.socket.recv(65536)
            assert received, f"{text!r} is not in {self.text!r}"
            self.received += received
        return self.text

    def all(self) -> str:
        """The rest of the answer; its body, out of the chunks that it came in."""
        while received := self.socket.recv(1 << 20):
            self.received += received
        head, _, rest = bytes(self.received).partition(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head.lower()
        body, at = bytearray(), 0
        while True:
            end = rest.index(b"\r\n", at)
            size = int(rest[at:end], 16)
            if size == 0:
                return body.decode()
            body += rest[end + 2 : end + 2 + size]
            at = end + 2 + size + 2

    @property
    def text(self) -> str:
        return self.received.decode(errors="replace")

    @property
    def status(self) -> int:
        return int(self.until("\r\n").split()[1])

    def close(self) -> None:
        self.socket.close()


@contextmanager
def served(**options: Any) -> Iterator[Server]:
    """A server in a process of its own. ``options`` are attributes of its view.

    ``ending_runs``: whether its application is wrapped in that, which it is unless it is False.
    """
    from django.db import connections

    names = {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ag_ui.serving", json.dumps(names), json.dumps(options)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    server = Server(process)
    try:
        yield server
    finally:
        server.close()


async def script(turn: Any) -> AsyncIterator[Any]:
    from asgiref.sync import sync_to_async

    from tests.ag_ui.agents import approval, say

    told, _, file = turn.input.messages[-1].content.partition(" ")
    opened, content, closed = say("x" * (10_000 if told == "flood" else 1))
    yield opened
    yield content
    for answer in turn.answers if file else ():
        if told == "before":
            await asyncio.sleep(60)
        if answer.holds and await turn.settle(answer.interrupt.id):
            with Path(file).open("a", encoding="utf-8") as ledger:
                ledger.write(f"{turn.run_id}\n")
        yield content
        if told == "after":
            await asyncio.sleep(60)
    if told == "ask":
        yield approval()
    if told == "wait":
        await asyncio.sleep(60)
    elif told == "pause":
        await asyncio.sleep(1)
    elif told == "work":
        await sync_to_async(time.sleep)(8)
    elif told == "block":
        time.sleep(4)  # what a host should not do
    elif told == "flood":
        for _ in range(1000):
            yield content
    yield closed


def serve(names: dict[str, str], options: dict[str, Any]) -> None:
    import django
    import uvicorn
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.db import connections

    django.setup()
    for alias, name in names.items():
        connections.settings[alias]["NAME"] = name
    settings.ROOT_URLCONF = "tests.ag_ui.agents"
    from solid_runs.ag_ui.asgi import ending_runs
    from tests.ag_ui.agents import DatabaseAgent

    application: Any = get_asgi_application()
    if options.pop("ending_runs", True):
        application = ending_runs(application)

    for name, value in ({"heartbeat": 0.2} | options).items():
        setattr(DatabaseAgent, name, value)
    DatabaseAgent.script = staticmethod(script)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, timeout_graceful_shutdown=1, log_level="warning")
    server = uvicorn.Server(config)

    def stop_with_the_test() -> None:
        sys.stdin.read()
        server.should_exit = server.force_exit = True

    threading.Thread(target=stop_with_the_test, daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    server.run([listening])


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
