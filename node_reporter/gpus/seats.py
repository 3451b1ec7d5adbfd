"""Backend `seats`: seats of a software licence on this machine, rented like devices, without a GPU.

    every seat is well <=> the owner's check ended with 0 within its time

A seat has no driver, so the owner names a command that asks the software itself: status 0 means
that it answers, any other that it does not (unavailable), a check that cannot be started or does
not end is blind (unknown). All seats are one program on one machine: one check speaks for all of
them, at most one a second. Seats have no memory, energy or utilisation of their own: None.
Source: design metering 10, decision 0026, row V-4.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from domain.fleet.licence import seat_id
from node_reporter.gpus.seam import Device, DeviceLost, Fault, MonitorBlind, Reading

CHECK_S = 2.0
"""A check that takes longer saw nothing that can be dated."""
FRESH_S = 0.9
"""So long an answer speaks for the other seats: a little less than a tick."""


class LicenceSeats:
    """Seats 1 to `count` of one licence."""

    vendor = "seats"

    def __init__(
        self,
        licence: str,
        count: int,
        *,
        model: str,
        maker: str,
        check: Sequence[str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`check` is a program with its arguments; no shell reads it."""
        assert count >= 1, count
        assert check, "a seat nobody can check is not sold"
        self._check, self._now_s = tuple(check), now_s
        self._lock = threading.Lock()
        self._answer: tuple[float, Exception | None] | None = None
        self._is_open = False
        self._devices = {
            device.id: device
            for device in (
                Device(
                    id=seat_id(licence, number), name=model, mem_bytes=0, vendor=maker, kind="seat"
                )
                for number in range(1, count + 1)
            )
        }

    def open(self) -> None:
        """Nothing to load."""
        self._is_open = True

    def close(self) -> None:
        """Nothing to release."""
        self._is_open = False

    def inventory(self) -> Sequence[Device]:
        return tuple(self._devices.values())

    def look(self, board_id: str) -> Sequence[Device]:
        return (self._devices[board_id],)

    def read(self, device_id: str) -> Reading:
        """Raises DeviceLost, MonitorBlind."""
        assert device_id in self._devices, device_id
        if not self._is_open:
            raise MonitorBlind(None, "the seats are not open", restart=True)
        with self._lock:
            now_s = self._now_s()
            if self._answer is None or now_s - self._answer[0] >= FRESH_S:
                self._answer = (now_s, self._asked())
            error = self._answer[1]
        if error is not None:
            raise error.with_traceback(None)
        return Reading()

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """None by themselves: what happened shows in `read`."""
        del timeout_s
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """A seat has no identity to prove: its licence has."""
        del device_id, nonce
        return None

    def _asked(self) -> DeviceLost | MonitorBlind | None:
        """What the check says of all seats."""
        try:
            done = subprocess.run(  # noqa: S603 - the owner's own command, without a shell
                self._check,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return MonitorBlind(None, f"the check did not end within {CHECK_S:.0f} s")
        except OSError as error:
            return MonitorBlind(error.errno, f"the check cannot be started: {error.strerror}")
        if done.returncode < 0:
            return MonitorBlind(-done.returncode, "the check was ended by a signal")
        if done.returncode > 0:
            return DeviceLost(done.returncode, "the software does not answer")
        return None
