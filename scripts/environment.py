"""Make a virtual environment ready: create it, and install this project with what is asked for.

What was installed is remembered, so that a second run costs nothing until something changes.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PIP = (25, 1)  # the first that knows --group


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("venv", type=Path)
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--django", default="", help="a version specifier, such as ~=5.2.0")
    options = parser.parse_args()

    venv: Path = options.venv.absolute()
    create(venv)
    wanted = [
        "--editable",
        f"{ROOT}[{','.join(options.extra)}]",
        *(
            part
            for group in options.group
            for part in ("--group", f"{ROOT}/pyproject.toml:{group}")
        ),
        f"django{options.django}",
    ]
    stamp = venv / f".installed-{'-'.join(['project', *options.extra, *options.group])}"
    state = hashlib.sha256(
        "\n".join([*wanted, (ROOT / "pyproject.toml").read_text(encoding="utf-8")]).encode()
    ).hexdigest()
    if stamp.is_file() and stamp.read_text() == state:
        return
    names = ", ".join([*options.extra, *options.group])
    print(f"Installing into {options.venv} ({names}); this takes a minute ...", flush=True)
    forget_other_django(venv, options.django)
    pip(venv, "install", "-qq", "--upgrade", *wanted)
    stamp.write_text(state)


def forget_other_django(venv: Path, django: str) -> None:
    """Another choice of Django takes away what earlier installs had counted on."""
    chosen = venv / ".django"
    if chosen.is_file() and chosen.read_text() != django:
        for stamp in venv.glob(".installed-*"):
            stamp.unlink()
    chosen.write_text(django)


def create(venv: Path) -> None:
    """A virtual environment of this Python, with a pip that is new enough."""
    if venv.exists() and not (venv / "pyvenv.cfg").is_file() and any(venv.iterdir()):
        sys.exit(f"{venv} is in the way: it is not a virtual environment. Choose another VENV.")
    if version_of(venv) != sys.version_info[:2]:
        print(f"Making a virtual environment with Python {sys.version.split()[0]} ...", flush=True)
        make = [sys.executable, "-m", "venv", "--clear", str(venv)]
        # Debian's Python has no ensurepip unless python3-venv is there; its pip can stand in.
        if subprocess.run(make, capture_output=True).returncode != 0:
            run([*make, "--without-pip"])
            run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "--python",
                    str(venv),
                    *QUIET,
                    "install",
                    "-qq",
                    "pip",
                ]
            )
    if pip_version(venv) < OLDEST_PIP:
        pip(venv, "install", "-qq", "--upgrade", f"pip>={'.'.join(map(str, OLDEST_PIP))}")


def version_of(venv: Path) -> tuple[int, ...] | None:
    """The Python of a virtual environment that works, pip included, else None."""
    if not pip_version(venv):
        return None
    code = "import sys; print(*sys.version_info[:2])"
    return tuple(map(int, output([str(venv / "bin/python"), "-c", code]).split()))


def pip_version(venv: Path) -> tuple[int, ...]:
    """Empty when there is no pip."""
    text = output([str(venv / "bin/python"), "-c", "import pip; print(pip.__version__)"])
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


QUIET = ["--disable-pip-version-check", "--no-input"]


def pip(venv: Path, *arguments: str) -> None:
    run([str(venv / "bin/python"), "-m", "pip", *QUIET, *arguments])


def output(command: list[str]) -> str:
    """What a command prints; nothing when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def run(command: list[str]) -> None:
    done = subprocess.run(command)
    if done.returncode != 0:
        sys.exit(f"This failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
