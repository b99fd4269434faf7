"""What a write costs, on every database that answers: ``make bench``.

Everything is measured in scratch databases that are made and dropped, where the test suite's
settings look for its own (PGHOST, MYSQL_HOST and so on). The report is printed, and a whole run
writes it to benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.on_database import PARTS
from benchmarks.report import report
from scripts.databases import FINDERS, Database, look_for

HERE = Path(__file__).resolve().parent
ORDER = ("postgresql", "mariadb", "sqlite")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", default="", help="names, divided by commas; all if empty")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--quick", action="store_true", help="a try: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="where else to write the report")
    options = parser.parse_args()
    asked = [name for name in options.databases.split(",") if name]
    if unknown := set(asked) - set(FINDERS):
        parser.error(f"no database of ours: {', '.join(sorted(unknown))}")

    load = os.getloadavg()[0]
    found = [
        (database, None if database.left_out else measure(database, options))
        for database in (look_for(name) for name in ORDER if not asked or name in asked)
    ]
    text = report(found, load, quick=options.quick)
    print(text)
    whole = not (asked or options.quick or len(options.parts) < len(PARTS))
    output = options.output or (HERE / "RESULTS.md" if whole else None)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        print(f"Written to {output}", file=sys.stderr)
    return 0


def measure(database: Database, options: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own, as settings name one database."""
    print(f"== {database.label}", file=sys.stderr, flush=True)
    environment = {
        **os.environ,
        "SOLID_RUNS_DB": database.name,
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks.on_database", str(out)]
        command += ["--parts", *options.parts, *(["--quick"] if options.quick else [])]
        subprocess.run(command, cwd=HERE.parent, env=environment, check=True)
        figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return figures


if __name__ == "__main__":
    sys.exit(main())
