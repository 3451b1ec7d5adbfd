"""What systemd asks of a service of `Type=notify`: I am ready, I am alive, I am ending.

Not a thread of its own: the loop beats, so a loop that hangs is seen. Without systemd every call
does nothing. The protocol is a datagram of `NAME=value` lines (sd_notify(3)).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress

from node_reporter.reports.client import Response, Transport

BEATS_PER_WATCHDOG = 4


class Notifier:
    """Speaks to the service manager that started this process, if one did."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for a name in the abstract namespace, which begins with a zero byte.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        watchdog_us = environment.get("WATCHDOG_USEC", "")
        known = watchdog_us.isascii() and watchdog_us.isdecimal()
        self._every_s = int(watchdog_us) / 1_000_000 / BEATS_PER_WATCHDOG if known else None
        self._is_ready = False
        self._due_s = 0.0

    def beat(self) -> None:
        """The loop goes round. The first beat says that the service is up."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")
        if self._every_s is not None and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + self._every_s
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The books are being closed: no more beats come."""
        self._send("STOPPING=1")

    def _send(self, line: str) -> None:
        if not self._address or not hasattr(socket, "AF_UNIX"):
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
            speaker.sendto(line.encode(), self._address)


class BeatingTransport:
    """A transport whose calls count as signs of life: a slow server is no hang of ours."""

    def __init__(self, carrier: Transport, notifier: Notifier) -> None:
        self._carrier, self._notifier = carrier, notifier

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self._notifier.beat()
        answer = self._carrier.request(method, path, headers, body)
        self._notifier.beat()
        return answer
