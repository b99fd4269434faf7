"""Follow docs/ag_ui.md to its front end: serve what it builds, and run its JavaScript in Node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from check_npm_client import PATIENCE, ROOT, TESTS, check_node, install
from free_port import free_port

sys.path.insert(0, str(ROOT))
from tests.documents import blocks

PAGE = "docs/ag_ui.md"

QUIETLY = ["--log-level=warning", "--lifespan=off"]

SETTINGS = """
from tests.settings import MIDDLEWARE, SECRET_KEY, TEMPLATES

DEBUG = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "docs.sqlite3",
    "OPTIONS": {"transaction_mode": "IMMEDIATE"}}}
ROOT_URLCONF = "myapp.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIDDLEWARE = [*MIDDLEWARE, "signed_in.signed_in"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
]
"""

SIGNED_IN = """
from django.utils.decorators import async_only_middleware


@async_only_middleware
def signed_in(get_response):
    from django.contrib.auth.models import User

    async def answer(request):
        user, _ = await User.objects.aget_or_create(username="somebody")

        async def auser():
            return user

        request.auser = auser
        return await get_response(request)

    return answer
"""

ASGI = """
from django.core.asgi import get_asgi_application

application = get_asgi_application()
"""


def main() -> None:
    check_node()
    install()
    script = re.findall(r"```js\n(.*?)```", (ROOT / PAGE).read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(script)
    expected = re.findall(r'console\.log\(.*\); // "(.*)"', code)
    with tempfile.TemporaryDirectory() as name:
        said = run_against(project(Path(name)), code)
    if said.splitlines() != expected or not expected:
        sys.exit(f"{PAGE} says {expected}, and Node said:\n{said}")
    print(f"The front end of {PAGE} says what the page says that it does.")


def project(folder: Path) -> Path:
    files = blocks(PAGE)
    app = folder / "myapp"
    app.mkdir()
    (app / "__init__.py").touch()
    for name in ("agents", "apps", "receivers", "urls"):
        (app / f"{name}.py").write_text(files[name])
    (folder / "project_settings.py").write_text(SETTINGS + files["settings"])
    (folder / "signed_in.py").write_text(SIGNED_IN)
    (folder / "asgi.py").write_text(ASGI)
    return folder


def run_against(folder: Path, code: str) -> str:
    with served(folder, "/agents/refund/nothing") as root:
        url = f"{root}/agents/refund/"
        known = f"const url = {url!r}, headers = {{}};\n"
        done = subprocess.run(
            ["node", "--input-type=module"],
            input=known + code,
            cwd=TESTS,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    return done.stdout + done.stderr


@contextmanager
def served(folder: Path, refused: str) -> Iterator[str]:
    """A project that was put in a folder, once it answers a path with an HTTP error."""
    port = free_port()
    here: dict[str, Any] = {"cwd": folder, "env": environment(folder)}
    subprocess.run([sys.executable, "-m", "django", "migrate", "-v", "0"], check=True, **here)
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "asgi:application", f"--port={port}", *QUIETLY], **here
    )
    try:
        wait_for(f"http://127.0.0.1:{port}{refused}", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "project_settings",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
    }


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("What the page builds is not served.")


if __name__ == "__main__":
    main()
