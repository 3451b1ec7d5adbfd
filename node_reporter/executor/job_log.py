"""What one job prints: read at once, kept up to a bound, sent on in numbered pieces.

    bytes held here <= HELD_BYTES_MAX + one message       a server that is away stops no job

A job never waits for its log: what finds no room is counted and left out.
"""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from collections.abc import Callable

from node_reporter.terminal import printable

PIECE_BYTES_MAX = 16_384
PIECES_MAX = 32
HELD_BYTES_MAX = 1_048_576
READ_BYTES = 65_536

Piece = tuple[str, bytes]
Send = Callable[[int, list[Piece], int], int | None]
"""(number of the first piece, pieces, bytes left out) -> number that comes next, None: not sent."""


class JobLog:
    """Reads two file descriptors in a thread of its own until both are at their end."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self._names = {stdout: "stdout", stderr: "stderr"}
        self._held: deque[Piece] = deque()
        self._held_bytes = 0
        self._left_out = 0
        self._lock = threading.Lock()
        self._next_seq = 0
        self._under_way: list[Piece] = []
        self._under_way_left_out = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def note(self, text: str) -> None:
        """Something the executor has to say to the renter, in one line: names of files that a job
        made may be no text.
        """
        self._keep("note", f"{printable(text)}\n".encode()[:PIECE_BYTES_MAX])

    @property
    def is_empty(self) -> bool:
        """Whether everything was sent on."""
        with self._lock:
            return not (self._held or self._under_way)

    def wait_read(self, seconds: float) -> None:
        """Until everything that was printed has been read; the job has to be over."""
        self._thread.join(seconds)

    def send(self, to: Send) -> bool:
        """Send the next pieces. A lost answer is asked for again with the same pieces."""
        if not self._under_way:
            self._under_way, self._under_way_left_out = self._take()
        if not self._under_way:
            return True
        next_seq = to(self._next_seq, self._under_way, self._under_way_left_out)
        if next_seq is None:
            return False
        self._next_seq = next_seq
        self._under_way = []
        return True

    def _take(self) -> tuple[list[Piece], int]:
        """The next pieces, neighbours of one stream joined."""
        pieces: list[Piece] = []
        with self._lock:
            while self._held:
                stream, body = self._held[0]
                fits = pieces and pieces[-1][0] == stream
                if fits and len(pieces[-1][1]) + len(body) <= PIECE_BYTES_MAX:
                    pieces[-1] = (stream, pieces[-1][1] + body)
                elif len(pieces) < PIECES_MAX:
                    pieces.append((stream, body))
                else:
                    break
                self._held.popleft()
                self._held_bytes -= len(body)
            left_out = self._left_out if pieces else 0
            self._left_out -= left_out
        return pieces, left_out

    def _keep(self, stream: str, body: bytes) -> None:
        with self._lock:
            if self._held_bytes + len(body) > HELD_BYTES_MAX:
                self._left_out += len(body)
                return
            self._held_bytes += len(body)
            for first in range(0, len(body), PIECE_BYTES_MAX):
                self._held.append((stream, body[first : first + PIECE_BYTES_MAX]))

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for fd in self._names:
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    body = os.read(key.fd, READ_BYTES)
                    if body:
                        self._keep(self._names[key.fd], body)
                    else:
                        selector.unregister(key.fd)
