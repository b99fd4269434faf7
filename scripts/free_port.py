"""A port that can be had; and, before anything long is done, a plain word when one cannot."""

from __future__ import annotations

import errno
import socket
import sys

OTHER = "choose another: make demo PORT=8001"


def problem(port: str) -> str | None:
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        return f"PORT={port} is no port: it must be a number from 1 to 65535."
    with socket.socket() as probe:
        # As the server will ask for it: a connection that is still closing is not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
            probe.listen()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return f"port {port} is taken; {OTHER}"
            if error.errno == errno.EACCES:
                return f"port {port} is not allowed to you; {OTHER}"
            return f"port {port} cannot be used ({error.strerror}); {OTHER}"
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(problem(sys.argv[1]))
