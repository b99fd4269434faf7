"""Run the tests of tests/npm, whose client is the npm package of AG-UI, against the served example.

It needs Node 20 or later with npm. What they need is installed from the lock file, and the example
gets a database of its own in a temporary folder.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_port import free_port

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "npm"
OLDEST_NODE = 20
PATIENCE = 60
TOKEN = "demo-token"
LOG = "server.log"


def main() -> None:
    check_node()
    install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder) as root:
            environment = {**os.environ, "EXAMPLE_URL": root, "EXAMPLE_TOKEN": TOKEN}
            done = subprocess.run(["node", "--test", *sys.argv[1:]], cwd=TESTS, env=environment)
        if done.returncode != 0:
            lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
            said = [line for line in lines if not line.startswith(("INFO:", "Not Found:"))]
            print("The server's last words:", *said[-60:], sep="\n")
    sys.exit(done.returncode)


def check_node() -> None:
    needed = f"Node {OLDEST_NODE} or later with npm is needed"
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            sys.exit(f"{needed}; there is no {program} on the PATH.")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    found = re.match(r"v(\d+)\.", said)
    if found is None or int(found.group(1)) < OLDEST_NODE:
        sys.exit(f"{needed}; this one says {said or 'nothing'}.")


def install(tests: Path = TESTS) -> None:
    """Into the node_modules of a folder of tests, once for each lock file."""
    lock, stamp = tests / "package-lock.json", tests / "node_modules" / ".installed"
    wanted = lock.read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    print("Installing the npm packages ...", flush=True)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=tests)
    if done.returncode != 0:
        sys.exit(f"npm could not install what {lock.relative_to(ROOT)} names.")
    stamp.write_text(wanted, encoding="utf-8")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The example on a free port, and what it said if it does not start."""
    environment = {**os.environ, "SOLID_RUNS_DEMO_DIR": str(folder / "demo")}
    manage = [sys.executable, str(ROOT / "example_project" / "manage.py")]
    built = subprocess.run(
        [*manage, "build_demo"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if built.returncode != 0:
        sys.exit(f"The example could not be built:\n{built.stdout}")
    port = free_port()
    with (folder / LOG).open("w+", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*manage, "serve_demo", str(port)],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_served(server, Path(log.name))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_until_served(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while "Ctrl-C stops" not in log.read_text(encoding="utf-8"):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"The example is not served:\n{log.read_text(encoding='utf-8')}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
