"""The code of a document, made into a project that runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(document: str) -> dict[str, str]:
    """The Python of a document, by the file that each block names."""
    found: dict[str, str] = defaultdict(str)
    text = (ROOT / document).read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        name = re.match(r"# (\S+)\n", code)
        assert name, f"a block of {document} names no file:\n{code}"
        found[Path(name[1]).stem] += code
    return found


def follow(folder: Path, settings: str, files: dict[str, str], run: str) -> None:
    """Write the files as the app ``myapp``, ``usage`` beside it, and run a script over them."""
    app = folder / "myapp"
    app.mkdir()
    (app / "__init__.py").touch()
    (folder / "project_settings.py").write_text(settings)
    for name, code in files.items():
        (folder if name == "usage" else app).joinpath(f"{name}.py").write_text(code)
    (folder / "run.py").write_text(run)
    done = subprocess.run(
        [sys.executable, "-W", "error", "run.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
