"""Which databases the suite can run on here, asked with a real connection through the driver."""

from __future__ import annotations

import importlib.util
import os
import runpy
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 5


@dataclass(frozen=True)
class Database:
    """One that the suite knows: how to reach it, or why it is left out."""

    name: str
    label: str
    left_out: str | None = None


class LeftOut(Exception):
    """Says why, in words for the summary."""


def look_for(name: str) -> Database:
    try:
        return Database(name, FINDERS[name]())
    except LeftOut as reason:
        return Database(name, LABELS[name], str(reason))


def sqlite() -> str:
    return f"SQLite {sqlite3.sqlite_version}"


def postgresql() -> str:
    where = settings("postgresql")
    address = listening(where, "PGHOST", "PGPORT")
    driver("psycopg", "postgresql", "psycopg")
    import psycopg

    try:
        with psycopg.connect(
            host=where["HOST"],
            port=where["PORT"],
            user=where["USER"],
            password=where["PASSWORD"] or None,
            dbname=where["NAME"],
            connect_timeout=TIMEOUT,
            autocommit=True,
        ) as connection:
            version = connection.info.parameter_status("server_version")
            try_to_create(connection.execute)
    except psycopg.Error as error:
        raise refused(where, address, error, "PGUSER", "PGPASSWORD") from None
    return f"PostgreSQL {str(version).split()[0]} at {address}"


def mariadb() -> str:
    where = settings("mariadb")
    address = listening(where, "MYSQL_HOST", "MYSQL_PORT")
    driver("MySQLdb", "mysql", "mysqlclient")
    import MySQLdb

    try:
        connection = MySQLdb.connect(
            host=where["HOST"],
            port=int(where["PORT"]),
            user=where["USER"],
            password=where["PASSWORD"],
            connect_timeout=TIMEOUT,
        )
        cursor = connection.cursor()
        cursor.execute("SELECT VERSION()")
        version = cursor.fetchone()[0]
        try_to_create(cursor.execute)
        connection.close()
    except MySQLdb.Error as error:
        raise refused(where, address, error.args[-1], "MYSQL_USER", "MYSQL_PASSWORD") from None
    product = "MariaDB" if "MariaDB" in version else "MySQL"
    return f"{product} {version.split('-')[0]} at {address}"


FINDERS: dict[str, Callable[[], str]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "mariadb": mariadb,
}
LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}


def settings(name: str) -> dict[str, Any]:
    """Where the suite's own settings look for this database."""
    os.environ["SOLID_RUNS_DB"] = name
    module = runpy.run_path(str(ROOT / "tests" / "settings.py"))
    found: dict[str, Any] = module["DATABASES"]["default"]
    return found


def listening(where: dict[str, Any], host_name: str, port_name: str) -> str:
    """The address, if somebody listens there. A socket file is left to the driver."""
    host, port = where["HOST"], where["PORT"]
    if host.startswith("/"):
        return str(host)
    address = f"{host}:{port}"
    try:
        socket.create_connection((host, int(port)), TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise LeftOut(
            f"nothing answers at {address} ({getattr(error, 'strerror', None) or error}); "
            f"{host_name} and {port_name} say where"
        ) from None
    return address


def driver(module: str, extra: str, package: str) -> None:
    """Install the driver if it is not there: only now is it known to be of use."""
    if importlib.util.find_spec(module) is not None:
        return
    print(f"Installing {package} ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--editable", f"{ROOT}[{extra}]"], capture_output=True, text=True
    )
    importlib.invalidate_caches()
    if done.returncode != 0 or importlib.util.find_spec(module) is None:
        log = Path(sys.prefix) / f"{package}.log"
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        raise LeftOut(f"its driver {package} does not install here{NEEDS[package]}; see {log}")


NEEDS = {
    "psycopg": "",
    "mysqlclient": " (it is compiled: Debian's build-essential, pkg-config, libmariadb-dev and "
    "python3-dev bring what it needs)",
}


def try_to_create(execute: Callable[[str], Any]) -> None:
    """The suite makes databases of its own, so the user must be allowed to."""
    name = f"solid_runs_probe_{os.getpid()}"
    execute(f"CREATE DATABASE {name}")
    execute(f"DROP DATABASE {name}")


def refused(
    where: dict[str, Any], address: str, error: object, user_name: str, password_name: str
) -> LeftOut:
    said = " ".join(str(error).split())
    return LeftOut(
        f"{address} answers, but {where['USER']!r} cannot make test databases there: {said}; "
        f"{user_name} and {password_name} say who"
    )
