"""A progress bar on a terminal; elsewhere a plain line now and then."""

from __future__ import annotations

import sys
from typing import Any, TextIO

WIDTH = 30
PLAIN_LINES = 4


class Progress:
    """Counts up to ``total``, on standard error or on a stream such as a command's ``stderr``."""

    def __init__(self, total: int, stream: Any = None) -> None:
        self.total = max(0, total)
        # A command's own stream would end each write with a line.
        self.stream: TextIO = getattr(stream, "_out", stream) or sys.stderr
        self.is_terminal = self.stream.isatty()
        self.done = 0

    def advance(self, label: str = "", *, by: int = 1) -> None:
        """So many more are done; ``label`` says what they were."""
        before, self.done = self.done, self.done + by
        total = max(self.total, self.done)
        counted = f"{self.done:,}/{total:,}"
        line = max(1, total // PLAIN_LINES)
        if self.is_terminal:
            filled = WIDTH * self.done // max(1, total)
            bar = "█" * filled + "·" * (WIDTH - filled)
            end = "\n" if self.done == total else ""
            self.stream.write(f"\r\033[K  {bar} {counted} {label[:36]}{end}")
        elif before // line < self.done // line or self.done == total:
            self.stream.write(f"  {counted} {label}".rstrip() + "\n")
        self.stream.flush()
