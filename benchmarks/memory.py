"""How far a process grows that appends a long log and follows it: a process of its own.

``python -m benchmarks.memory ENTRIES`` appends so many to a new run with the table log, reads
what is new after every hundred, then all of them again in pages of 500 as a client does that
comes late, and prints by how many MB its memory exceeded what it had been before, at the most.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.entries import arguments
from benchmarks.plans import Plan

ROOT = Path(__file__).resolve().parent.parent
NEW_AFTER, PAGE = 100, 500


def measure(plan: Plan) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", str(plan.followed)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "benchmarks.settings"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return {"MB": float(done.stdout)}


def append_and_follow(count: int) -> None:
    from benchmarks.models import TableRun

    run, made, seen = TableRun.objects.create(status="running"), arguments(), 0
    for number in range(1, count + 1):
        run.append_event(**next(made))
        if number % NEW_AFTER == 0:
            for numbered in run.events_after(seen):
                seen = numbered.seq
    assert seen == count
    seen = 0
    while page := run.events_after(seen, limit=PAGE):
        seen = page[-1].seq
    assert seen == count


def megabytes(now: bool) -> float:
    """What the process holds now, or the most that it ever held (all that is known off Linux)."""
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(f"Vm{'RSS' if now else 'HWM'}:\\s+(\\d+) kB", status.read_text())
        assert found is not None
        return int(found[1]) / 1024
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    import django

    django.setup()
    append_and_follow(NEW_AFTER)  # what is loaded and compiled once is not growth
    before = megabytes(now=True)
    append_and_follow(int(sys.argv[1]))
    print(megabytes(now=False) - before)


if __name__ == "__main__":
    main()
