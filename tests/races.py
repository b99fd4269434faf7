"""Races between real processes: the racers, and the pistol that starts them.

``python -m tests.races NAMES LINES`` sets Django up on the test databases of these names and
becomes a process for each line, a socket on which tasks come in as JSON. A task is a generator:
what stands before its ``yield`` is preparation, the rest runs once every racer is ready. Each
racer counts the signals that its own process sent.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60
"""Seconds after which a silent racer counts as hung."""

Task: TypeAlias = Generator[None, None, Any]


class Sent(NamedTuple):
    """A signal as a racer received it."""

    from_status: str
    to_status: str
    trace_id: str | None
    using: str


class Outcome(NamedTuple):
    result: Any
    signals: list[Sent]


class Racer:
    """The near end of a process that has Django and connections of its own."""

    def __init__(self, line: socket.socket) -> None:
        line.settimeout(PATIENCE)
        self.line = line
        self.stream = line.makefile("rw", encoding="utf-8")

    def send(self, message: Any) -> None:
        send(self.stream, message)

    def receive(self) -> Any:
        """The next answer. TimeoutError when the process hangs."""
        line = self.stream.readline()
        if not line:
            raise RuntimeError("A racer died; its standard error says why.")
        return json.loads(line)

    def close(self) -> None:
        self.stream.close()
        self.line.close()


@contextmanager
def racers(count: int) -> Iterator[list[Racer]]:
    """So many processes on the test databases."""
    from django.db import connections

    names = {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
    lines = [socket.socketpair() for _ in range(count)]
    far_ends = [far.fileno() for _, far in lines]
    starter = subprocess.Popen(
        [sys.executable, "-m", "tests.races", json.dumps(names), json.dumps(far_ends)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        pass_fds=far_ends,
        start_new_session=True,
    )
    for _, far in lines:
        far.close()
    field = [Racer(near) for near, _ in lines]
    try:
        yield field
    finally:
        for racer in field:
            racer.close()
        try:
            starter.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(starter.pid, signal.SIGKILL)
            starter.wait()


def send(stream: TextIO, message: Any) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def race(field: Sequence[Racer], tasks: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Run each task in a process of its own, all at once; the outcomes in the tasks' order."""
    running = list(zip(field, tasks, strict=False))
    assert len(running) == len(tasks), "there are fewer racers than tasks"
    for racer, task in running:
        racer.send(task)
    for racer, _ in running:
        racer.receive()
    for racer, _ in running:
        racer.send("go")
    replies = [racer.receive() for racer, _ in running]
    errors = [reply["error"] for reply in replies if reply["error"]]
    assert not errors, "\n".join(errors)
    return [
        Outcome(reply["result"], [Sent(*sent) for sent in reply["signals"]]) for reply in replies
    ]


# What follows runs in the racer's process.


def loaded(model: str, pk: Any) -> Any:
    from django.apps import apps

    return apps.get_model("tests", model)._base_manager.get(pk=pk)


def shown(run: Any, won: bool) -> dict[str, Any]:
    """Whether this racer did it, and what its copy says now."""
    return {
        "won": won,
        "status": str(run.status),
        "started_at": run.started_at and run.started_at.isoformat(),
        "completed_at": run.completed_at and run.completed_at.isoformat(),
        "trace_id": run.trace_id,
    }


def move(model: str, pk: Any, how: str, **arguments: Any) -> Task:
    """Call a transition on a copy that was read before the start."""
    run = loaded(model, pk)
    yield
    return shown(run, getattr(run, how)(**arguments))


def start_in_threads(model: str, pk: Any, threads: int) -> Task:
    """start() from so many threads, each with a copy and a connection of its own."""
    from django.db import connection

    won: list[bool] = []
    barrier = threading.Barrier(threads + 1, timeout=PATIENCE)

    def claim() -> None:
        try:
            run = loaded(model, pk)
            barrier.wait()
            barrier.wait()
            won.append(run.start())
        finally:
            connection.close()

    crowd = [threading.Thread(target=claim) for _ in range(threads)]
    for thread in crowd:
        thread.start()
    barrier.wait()
    yield
    barrier.wait()
    for thread in crowd:
        thread.join()
    return won


def append(
    model: str,
    pk: Any,
    writer: int,
    count: int,
    *,
    locked: bool = False,
    timeout: int | None = None,
) -> Task:
    """Append entries whose eids tell the writer and the order.

    ``locked``: by the row-lock form; ``timeout``: the seconds that SQLite waits for a lock.
    """
    from unittest import mock

    from django.db import connection

    from solid_runs.event_logs import column

    run = loaded(model, pk)
    if timeout is not None and connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {timeout * 1000}")
    yield
    with mock.patch.dict(column.APPEND, clear=locked):
        for n in range(count):
            run.append_event("tool", "race", eid=f"{writer}-{n}", detail="ü" * 40)
    if timeout is not None:
        connection.close()  # the next task gets the settings' own timeout again
    return None


def append_slowly(model: str, pk: Any, writer: int, count: int, pause: float) -> Task:
    """Append each entry in a transaction that stays open for so many seconds."""
    from django.db import transaction

    run = loaded(model, pk)
    yield
    for n in range(count):
        with transaction.atomic():
            run.append_event("tool", "slow", eid=f"{writer}-{n}")
            time.sleep(pause)
    return None


def append_to_each(model: str, pks: list[Any], writer: int, count: int) -> Task:
    """Append to all of these runs in one transaction, in this order, again and again."""
    from django.db import transaction

    runs = [loaded(model, pk) for pk in pks]
    yield
    for n in range(count):
        with transaction.atomic():
            for run in runs:
                run.append_event("tool", "each", eid=f"{writer}-{n}")
    return None


def tail(model: str, pk: Any, expected: int, limit: int) -> Task:
    """Read past the last number seen until so many entries came; what came, in its order."""
    run = loaded(model, pk)
    yield
    found: list[tuple[int, str]] = []
    last, end = 0, time.monotonic() + PATIENCE / 2
    while len(found) < expected and time.monotonic() < end:
        page = run.events_after(last, limit)
        found += [(numbered.seq, numbered.entry["eid"]) for numbered in page]
        last = page[-1].seq if page else last
        if not page:
            time.sleep(0.002)
    return found


def add_log(model: str, pk: Any, writer: int, count: int) -> Task:
    run = loaded(model, pk)
    yield
    for n in range(count):
        run.add_log(f"{writer}-{n}")
    return None


def save_prompt(model: str, pk: Any, writer: int, count: int) -> Task:
    """Save a stale copy whole, again and again."""
    run = loaded(model, pk)
    yield
    for n in range(count):
        run.input_prompt = f"{writer}-{n}"
        run.save()
    return shown(run, True)


def save_status(model: str, pk: Any, status: str) -> Task:
    """Save a copy whose status was assigned; a refusal counts as lost."""
    from solid_runs.exceptions import StaleRun

    run = loaded(model, pk)
    run.status = status
    yield
    try:
        run.save()
    except StaleRun:
        return {"won": False}
    return shown(run, True)


def append_to_both(model: str, pks: list[Any], writer: int) -> Task:
    """Append to two runs in one transaction, in the order given; the error's name or None."""
    from django.db import OperationalError, transaction

    first, second = (loaded(model, pk) for pk in pks)
    yield
    try:
        with transaction.atomic():
            first.append_event("tool", "crossing", eid=str(writer))
            time.sleep(0.3)  # until the other one holds its first row too
            second.append_event("tool", "crossing", eid=str(writer))
    except OperationalError as error:
        return type(error).__name__
    return None


def look(model: str, pk: Any) -> Task:
    """What another process sees of the row."""
    yield
    return shown(loaded(model, pk), False)


TASKS = {
    task.__name__: task
    for task in (
        add_log,
        append,
        append_slowly,
        append_to_both,
        append_to_each,
        look,
        move,
        save_prompt,
        save_status,
        start_in_threads,
        tail,
    )
}


def main(names: dict[str, str], lines: list[int]) -> None:
    """Load Django once, then fork a process for each line, before anything is connected."""
    import django
    from django.db import connections

    django.setup()
    from tests.ag_ui import racers as ag_ui  # their models want the apps
    from tests.threads import racers as threads

    TASKS.update(ag_ui.TASKS)
    TASKS.update(threads.TASKS)
    for alias, name in names.items():
        connections.settings[alias]["NAME"] = name  # from which every thread makes its wrapper
    for line in lines:
        if os.fork() == 0:
            for other in set(lines) - {line}:
                os.close(other)
            with (
                socket.socket(fileno=line) as mine,
                mine.makefile("rw", encoding="utf-8") as stream,
            ):
                serve(stream)
            return
    for line in lines:
        os.close(line)
    for _ in lines:
        os.wait()


def serve(stream: TextIO) -> None:
    from solid_runs.signals import run_status_changed

    signals: list[Sent] = []

    def note(run: Any, from_status: str, to_status: str, **facts: Any) -> None:
        signals.append(Sent(str(from_status), str(to_status), facts["trace_id"], facts["using"]))

    run_status_changed.connect(note)
    while line := stream.readline():
        asked = json.loads(line)
        signals.clear()
        result = error = None
        try:
            task = TASKS[asked.pop("task")](**asked)
            next(task)
        except Exception:
            error = traceback.format_exc()
        send(stream, "ready")
        stream.readline()
        try:
            if error is None:
                next(task)
        except StopIteration as stop:
            result = stop.value
        except Exception:
            error = traceback.format_exc()
        send(stream, {"result": result, "error": error, "signals": signals})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
