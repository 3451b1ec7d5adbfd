"""Reserved names of work on the network, by mDNS, while the work runs. Row C-38.

    published here  =>  a lease that holds the name runs here

`avahi-publish` of the system tells the address and the port (a service of the type
`_tallystick._tcp`); it ends with the work and with us, and the name is gone from the network with
it. While a machine that had the name before still tells it, the name cannot be had: it is asked for
again until it can. Libraries that could do the same are not of a licence that we ship.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field

from domain.sites.names import NAME
from domain.sites.reservation import PORTS
from node_reporter.executor.runner import NotStarted, RunnerUnusable

PROGRAM = "avahi-publish"
SERVICE = "_tallystick._tcp"
PORT_MIN = 1_024
AGAIN_US = 2_000_000
END_SECONDS_MAX = 5


@dataclass(frozen=True, slots=True)
class ReservedPort:
    """The name, without `.local`, and the port that work listens on, as the server told them."""

    host_name: str
    port: int

    @property
    def full_name(self) -> str:
        return f"{self.host_name}.local"

    def check(self) -> None:
        """Raises NotStarted."""
        if NAME.fullmatch(self.host_name) is None or self.port not in PORTS:
            raise NotStarted("a reservation was refused for its name or port")
        if self.port < PORT_MIN:
            raise NotStarted(f"port {self.port} is the machine's own: reserve one from 1024 on")


@dataclass(slots=True)
class _Told:
    """One thing that is told to the network, by a process of its own."""

    argv: list[str]
    process: subprocess.Popen[bytes] | None = None
    again_us: int = 0
    is_noted: bool = False


@dataclass(slots=True)
class ReservedNames:
    """The names that are published as an address of this machine, by lease."""

    address: str
    _told: dict[str, list[_Told]] = field(default_factory=dict)

    def check(self) -> None:
        """Raises RunnerUnusable."""
        if shutil.which(PROGRAM) is None:
            raise RunnerUnusable(f"{PROGRAM} is not installed: apt-get install avahi-utils")

    def publish(self, lease_id: str, name: ReservedPort) -> None:
        """From the next look on, the name is told."""
        full, service = name.full_name, f"{name.host_name} {name.port}"
        ends_with_us = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        words = [*ends_with_us, PROGRAM, "--no-fail"]
        self._told[lease_id] = [
            _Told([*words, "--address", "--no-reverse", full, self.address]),
            _Told([*words, "--service", f"--host={full}", service, SERVICE, str(name.port)]),
        ]

    def look(self, lease_id: str, now_us: int) -> list[str]:
        """Keep a lease's name told; what is wrong with it, once."""
        wrongs = []
        for one in self._told.get(lease_id, ()):
            if one.process is not None and one.process.poll() is None:
                continue
            if one.process is not None:
                why = _last_words(one.process)
                if not one.is_noted:
                    wrongs.append(f"{one.argv[-2]} is not published, and tried again: {why}")
                one.process, one.is_noted, one.again_us = None, True, now_us + AGAIN_US
            if now_us >= one.again_us:
                with suppress(OSError):
                    one.process = _started(one.argv)
        return wrongs

    def withdraw(self, lease_id: str) -> None:
        """The name is told no more. Twice is once."""
        for one in self._told.pop(lease_id, ()):
            if one.process is not None:
                one.process.terminate()
                try:
                    one.process.wait(END_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    one.process.kill()
                    one.process.wait()
                _last_words(one.process)


def _started(argv: list[str]) -> subprocess.Popen[bytes]:
    """Raises OSError."""
    return subprocess.Popen(  # noqa: S603
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """Of one that is over: the last line that it printed."""
    assert process.stderr is not None
    with process.stderr as told:
        lines = told.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {process.returncode}"
