"""Follow docs/tanstack.md: serve its Django side, type-check its TypeScript, run tests/tanstack.

It needs Node 20 or later with npm. What they need is installed from the lock file, and the project
of the page gets a database of its own in a temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_docs_client import environment, served
from check_npm_client import ROOT, check_node, install

sys.path.insert(0, str(ROOT))
from tests.documents import blocks

PAGE = "docs/tanstack.md"
ADAPTER = ROOT / "typescript" / "solid-runs.ts"
TESTS = ROOT / "tests" / "tanstack"
USERS = ("node", "another")

SETTINGS = """
from tests.settings import MIDDLEWARE, SECRET_KEY, TEMPLATES

ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "docs.sqlite3",
    "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30}}}
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
]
"""

ASGI = """
from django.core.asgi import get_asgi_application

application = get_asgi_application()
"""

TOKENS = f"""
import io
import django

django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from rest_framework.authtoken.models import Token

for name in {USERS!r}:
    User.objects.create_user(name)
    call_command("drf_create_token", name, stdout=io.StringIO())
    print(Token.objects.get(user__username=name).key)
"""

STRICTEST = {
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noPropertyAccessFromIndexSignature": True,
    "noImplicitReturns": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "verbatimModuleSyntax": True,
    "erasableSyntaxOnly": True,
    "isolatedModules": True,
    "skipLibCheck": True,
    "target": "es2022",
}
PROJECTS = {
    "Node": {"module": "nodenext", "lib": ["es2022"], "types": ["node"]},
    "a bundler": {
        "module": "esnext",
        "moduleResolution": "bundler",
        "lib": ["es2022", "dom", "dom.iterable"],
        "types": ["node"],
    },
}
"""Kinds of projects that the page may be copied into."""


def main() -> None:
    check_node()
    install(TESTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = compile_page(folder / "pasted")
        compile_tests()
        tests = sorted((TESTS / "build" / "tests" / "tanstack").glob("*.test.js"))
        done = run_tests(django_side(folder / "django"), [page, *tests])
    sys.exit(done)


def compile_page(folder: Path) -> Path:
    """The TypeScript of the page, in a project that it was copied into; the tests of it."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    pasted = dict(re.findall(r"```ts\n// (\S+\.ts)\n(.*?)```", text, re.DOTALL))
    shutil.copytree(TESTS / "page", folder)
    shutil.copy(ADAPTER, folder)
    (folder / "node_modules").symlink_to(TESTS / "node_modules", target_is_directory=True)
    (folder / "package.json").write_text('{"type": "module"}')
    for name, code in pasted.items():
        (folder / name).write_text(code, encoding="utf-8")
    for kind, options in PROJECTS.items():
        config = {"compilerOptions": {**STRICTEST, **options, "outDir": "build"}}
        (folder / "tsconfig.json").write_text(json.dumps(config))
        if tsc(folder).returncode != 0:
            sys.exit(f"The TypeScript of {PAGE} has faults in a project for {kind}.")
    return folder / "build" / "page.test.js"


def compile_tests() -> None:
    shutil.rmtree(TESTS / "build", ignore_errors=True)
    if tsc(TESTS).returncode != 0:
        sys.exit("The types of tests/tanstack have faults.")


def tsc(folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["node", "node_modules/typescript/bin/tsc"], cwd=folder, check=False)


def django_side(folder: Path) -> Path:
    folder.mkdir()
    files = blocks(PAGE)
    (folder / "project_settings.py").write_text(SETTINGS + files.pop("settings"))
    for name, code in {**files, "asgi": ASGI}.items():
        (folder / f"{name}.py").write_text(code)
    return folder


def run_tests(folder: Path, tests: list[Path]) -> int:
    with served(folder, "/api/thread-runs/") as root:
        tokens = subprocess.run(
            [sys.executable, "-c", TOKENS],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        known = {
            "DJANGO_URL": root,
            "DJANGO_TOKEN": tokens[0],
            "DJANGO_TOKEN_OF_ANOTHER": tokens[1],
        }
        return subprocess.run(
            ["node", "--test", *sys.argv[1:], *map(str, tests)],
            cwd=TESTS,
            env={**os.environ, **known},
            check=False,
        ).returncode


if __name__ == "__main__":
    main()
