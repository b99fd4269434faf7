"""A progress bar on a terminal; elsewhere a plain line now and then."""

from __future__ import annotations

import sys
from typing import TextIO

WIDTH = 30
PLAIN_LINES = 4


class Progress:
    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.stream = stream or sys.stderr
        self.is_terminal = self.stream.isatty()
        self.done = 0

    def advance(self, label: str) -> None:
        """One more is done; ``label`` says what it was."""
        self.done += 1
        counted = f"{self.done}/{self.total}"
        if self.is_terminal:
            filled = WIDTH * self.done // self.total
            bar = "█" * filled + "·" * (WIDTH - filled)
            end = "\n" if self.done == self.total else ""
            self.stream.write(f"\r\033[K  {bar} {counted} {label[:36]}{end}")
        elif self.done % max(1, self.total // PLAIN_LINES) == 0 or self.done == self.total:
            self.stream.write(f"  {counted} {label}\n")
        self.stream.flush()
