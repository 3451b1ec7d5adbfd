"""Programs of tests that are forked from one that has imported everything, and so start at once.

A driver library is found through the environment when a process starts and loaded once in it: so
each program has a process of its own, and one server forks those that find the same libraries.

    python -m tests.node_reporter.forks PROGRAM DESCRIPTOR
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARIES = "LD_LIBRARY_PATH"
REQUEST_BYTES_MAX = 65_536


class Forked:
    """The far end of a line to a program; a command answers what it prints."""

    def __init__(self, program: str, environment: Mapping[str, str], *arguments: str) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            server = _server(program, environment.get(LIBRARIES, ""))
            request = json.dumps([dict(environment), arguments]).encode()
            assert len(request) <= REQUEST_BYTES_MAX
            socket.send_fds(server, [request], [theirs.fileno()])
            self.pid = int(server.recv(20))
        self._line = self._socket.makefile("rw")

    def __call__(self, name: str, *arguments: Any) -> Any:
        self._line.write(json.dumps([name, *arguments]) + "\n")
        self._line.flush()
        return json.loads(self._line.readline())

    def end(self) -> None:
        """Nothing more is asked; back when the process has ended."""
        with self._socket, self._line:
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(10)
            assert self._line.read() == "", "everything it said was read"


@cache
def _server(program: str, libraries: str) -> socket.socket:
    """Ends with this process, which holds the other end of its line."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.node_reporter.forks", program, str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, LIBRARIES: libraries},
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


def _serve(program: str, line: socket.socket) -> None:
    main = import_module(program).main
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a child
    while True:
        request, descriptors, _, _ = socket.recv_fds(line, REQUEST_BYTES_MAX, 1)
        if not request:
            return
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.close()
            _become(main, request, descriptors[0])
        os.close(descriptors[0])
        line.send(str(child).encode())


def _become(main: Any, request: bytes, descriptor: int) -> None:
    """Run the program on this descriptor, and end."""
    code = 1
    try:
        for standard in (0, 1):
            os.dup2(descriptor, standard)
        os.close(descriptor)
        environment, arguments = json.loads(request)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[1:] = arguments
        main()
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
