"""What one append to a long log costs, beside the lock-read-rewrite form that Rails uses.

    python benchmarks/append_cost.py [--length 1000] [--repeats 5] [--appends 20]
                                     [--database postgresql|mariadb|sqlite ...]

Over the tables as Rails makes them, in a scratch database that is created and dropped. All ways
are measured in one run, taking turns at every append, each on a row of its own whose log is set
back for every repeat. A figure is the median; a ratio is the median of the repeats' ratios, with
the lowest and the highest. The floor is one INSERT of 250 bytes through the driver, autocommit.

The address of a server comes from PGHOST, PGPORT, PGUSER, PGPASSWORD and MYSQL_HOST, MYSQL_PORT,
MYSQL_USER, MYSQL_PASSWORD. A database that does not answer is left out, and that is said.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import django
from django.conf import settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SCRATCH = "solid_runs_benchmark"
ENTRY_BYTES = 250
FLOOR = "driver INSERT"

Way: TypeAlias = Callable[[], None]
Samples: TypeAlias = dict[str, list[float]]


def databases(folder: str) -> dict[str, dict[str, Any]]:
    env = os.environ.get
    return {
        "postgresql": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": env("PGHOST", "127.0.0.1"),
            "PORT": env("PGPORT", "5432"),
            "USER": env("PGUSER", "postgres"),
            "PASSWORD": env("PGPASSWORD", ""),
            "NAME": "postgres",
            "TEST": {"NAME": SCRATCH},
        },
        "mariadb": {
            "ENGINE": "django.db.backends.mysql",
            "HOST": env("MYSQL_HOST", "127.0.0.1"),
            "PORT": env("MYSQL_PORT", "3306"),
            "USER": env("MYSQL_USER", "root"),
            "PASSWORD": env("MYSQL_PASSWORD", ""),
            "NAME": "mysql",
            "OPTIONS": {"charset": "utf8mb4"},
            "TEST": {"NAME": SCRATCH, "CHARSET": "utf8mb4"},
        },
        "sqlite": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": f"{folder}/{SCRATCH}.sqlite3",
            "TEST": {"NAME": f"{folder}/{SCRATCH}_test.sqlite3"},
        },
    }


@contextmanager
def scratch(alias: str) -> Iterator[Any]:
    """A database of its own with the tables as Rails leaves them."""
    from django.db import connections

    from tests.dumps import create_legacy_tables

    connection = connections[alias]
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        create_legacy_tables(connection)
        yield connection
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def entry_arguments(rng: random.Random) -> dict[str, Any]:
    """An event that takes about 250 bytes as JSON, with text that hardly compresses."""
    eid, detail = f"{rng.getrandbits(32):08x}", f"{rng.getrandbits(512):0128x}"
    return {"kind": "tool", "label": "search_invoices", "eid": eid, "detail": detail}


def long_log(length: int) -> list[Any]:
    from solid_runs.events import event_entry

    rng = random.Random(1)
    return [event_entry(**entry_arguments(rng)) for _ in range(length)]


def lock_read_rewrite(model: Any, pk: int, using: str, rng: random.Random) -> Way:
    """As Rails does it, by hand and as lean as the ORM allows: the row's log and nothing else."""
    from django.db import transaction

    from solid_runs.events import event_entry

    rows = model.objects.using(using).filter(pk=pk)

    def append() -> None:
        entry = event_entry(**entry_arguments(rng))
        with transaction.atomic(using=using):
            log = rows.select_for_update().values_list("logs", flat=True).get()
            rows.update(logs=[*log, entry])

    return append


def appends_in_sql(run: Any, rng: random.Random) -> Way:
    return lambda: run.append_event(**entry_arguments(rng)) and None


def insert_by_driver(connection: Any) -> Way:
    """The floor."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE floor_rows (line text)")
    mark = "?" if connection.vendor == "sqlite" else "%s"
    statement, line = f"INSERT INTO floor_rows VALUES ({mark})", "x" * ENTRY_BYTES

    def insert() -> None:
        cursor = connection.connection.cursor()
        cursor.execute(statement, (line,))
        cursor.close()

    return insert


def measure(connection: Any, length: int, repeats: int, appends: int) -> list[Samples]:
    """For each repeat, the seconds of each way's appends."""
    from tests.models import PlatformJsonRun, PlatformRun

    using, rng, log = connection.alias, random.Random(0), long_log(length)
    ways: dict[str, Way] = {FLOOR: insert_by_driver(connection)}
    kinds: dict[str, Any] = {"json": PlatformJsonRun}
    if connection.vendor == "postgresql":
        kinds = {"jsonb": PlatformRun, **kinds}
    for kind, model in kinds.items():
        ours, theirs = (model.objects.using(using).create(status="running") for _ in range(2))
        ways[f"append_event, {kind}"] = appends_in_sql(ours, rng)
        ways[f"lock, read, rewrite, {kind}"] = lock_read_rewrite(model, theirs.pk, using, rng)
    found = []
    for _ in range(repeats):
        for model in kinds.values():
            model.objects.using(using).filter(status="running").update(logs=log)
        samples: Samples = {name: [] for name in ways}
        for turn in range(appends + 1):
            order = list(ways)
            rng.shuffle(order)
            for name in order:
                begun = time.perf_counter()
                ways[name]()
                if turn:  # the first one warms up
                    samples[name].append(time.perf_counter() - begun)
        found.append(samples)
    return found


def report(alias: str, found: list[Samples]) -> None:
    medians = [{name: median(times) for name, times in samples.items()} for samples in found]
    floor = median(repeat[FLOOR] for repeat in medians)
    print(f"\n{alias}\n  {'way':28}{'median ms':>10}{'floors':>8}   ours / lock, read, rewrite")
    for name in medians[0]:
        typical = median(repeat[name] for repeat in medians)
        line = f"  {name:28}{typical * 1000:10.2f}{typical / floor:8.1f}"
        rival = name.replace("append_event", "lock, read, rewrite")
        if rival != name:
            ratios = [repeat[name] / repeat[rival] for repeat in medians]
            line += f"   {median(ratios):.2f}  ({min(ratios):.2f} to {max(ratios):.2f})"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--length", type=int, default=1000, help="entries in the log")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--appends", type=int, default=20, help="appends of each way a repeat")
    parser.add_argument(
        "--database", nargs="+", choices=["postgresql", "mariadb", "sqlite"], help="default: all"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = databases(folder)
        settings.configure(
            DATABASES={"default": known["sqlite"], **known},
            INSTALLED_APPS=["django.contrib.contenttypes", "solid_runs", "tests"],
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            USE_TZ=True,
        )
        django.setup()
        from django.db import OperationalError, connections

        print(f"one append of an entry of {len(json.dumps(long_log(1)[0]))} bytes, log of", end=" ")
        print(f"{options.length} entries, {options.repeats} × {options.appends} appends")
        for alias in options.database or list(known):
            try:
                connections[alias].ensure_connection()
            except OperationalError as error:
                print(f"\n{alias} was left out, it does not answer: {error}")
                continue
            with scratch(alias) as connection:
                found = measure(connection, options.length, options.repeats, options.appends)
            report(alias, found)


if __name__ == "__main__":
    main()
