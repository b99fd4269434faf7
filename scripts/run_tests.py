"""Run the suite on every database that answers, and say which those were."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from databases import FINDERS, ROOT, Database, look_for

WHOLE_SUITE = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile"]
"""Without arguments: all of it, on all cores. With arguments pytest does just what they say."""


@dataclass(frozen=True)
class Outcome:
    database: Database
    text: str
    ok: bool


def main() -> int:
    # Their own output goes to the same place, so ours must not stay behind in a buffer.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", default="", help="names, divided by commas; all if empty")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    options = parser.parse_args()
    asked = names(options.databases, "DB")
    required = asked | names(os.environ.get("SOLID_RUNS_REQUIRE", ""), "SOLID_RUNS_REQUIRE")

    outcomes: list[Outcome] = []
    for name in FINDERS:
        if asked and name not in asked:
            continue
        database = look_for(name)
        if database.left_out is None:
            outcomes.append(run_on(database, options.pytest))
        else:
            word = "REQUIRED, but left out" if name in required else "left out"
            outcomes.append(Outcome(database, f"{word}: {database.left_out}", name not in required))
    summarise(outcomes)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def names(text: str, source: str) -> set[str]:
    found = {part.strip().lower() for part in text.split(",") if part.strip()}
    if unknown := found - set(FINDERS):
        known = ", ".join(FINDERS)
        sys.exit(f"{source} names {', '.join(sorted(unknown))}; the suite knows {known}.")
    return found


def run_on(database: Database, arguments: list[str]) -> Outcome:
    print(f"\n== {database.label}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}"]
        command += arguments or WHOLE_SUITE
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "SOLID_RUNS_DB": database.name})
        seconds = time.monotonic() - began
        if not report.is_file():
            return Outcome(database, f"did not run (pytest exited {done.returncode})", False)
        text = counted(report)
    ok = done.returncode == 0
    return Outcome(database, f"{'' if ok else 'FAILED: '}{text} in {seconds:.0f} s", ok)


def counted(report: Path) -> str:
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for key in total:
            total[key] += int(suite.get(key, 0))
    passed = total["tests"] - total["failures"] - total["errors"] - total["skipped"]
    words = {
        "failed": total["failures"],
        "errors": total["errors"],
        "passed": passed,
        "skipped or expected to fail": total["skipped"],
    }
    return ", ".join(f"{count} {word}" for word, count in words.items() if count) or "no tests"


def summarise(outcomes: list[Outcome]) -> None:
    import django

    print(f"\nOn Python {platform.python_version()} with Django {django.__version__}:")
    width = max(len(outcome.database.label) for outcome in outcomes)
    for outcome in outcomes:
        print(f"  {outcome.database.label:<{width}}  {outcome.text}")


if __name__ == "__main__":
    sys.exit(main())
