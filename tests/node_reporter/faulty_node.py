"""A whole reporter on the scripted NVML, in a process of its own, whose time only moves when told.

Forked as a program it reads one command a line and answers it: reporter, spool, meter and the small
server are the real ones of these tests, and only the driver library is scripted. `Node` is the
other end. A fault is written into the machine's script, time passes, and `told` is what the server
has then been told of every device.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacl.signing import SigningKey

from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.nvml.backend import NvmlGpus
from node_reporter.gpus.seam import DeviceLost, MonitorBlind
from node_reporter.identity import public_key
from tests.node_reporter.forks import Forked
from tests.node_reporter.model_server import NODE, NODE_KEY, ModelServer, Wire

if TYPE_CHECKING:
    from tests.node_reporter.conftest import FakeMachine  # it brings pytest into every process

SECOND_US = 1_000_000
WALL_US = 1_795_161_600_000_000
KEY = SigningKey(b"f" * 32)


class Node(Forked):
    """The far end of a line to a reporter."""

    def __init__(self, machine: FakeMachine) -> None:
        self.machine = machine
        super().__init__("tests.node_reporter.faulty_node", machine.environment())
        assert self("inventory") is not None, "it has opened the driver"

    def run(self, seconds: int) -> bool:
        """Let so many polls happen, a second apart; whether the reporter wants a new process."""
        return bool(self("run", seconds))

    def told(self) -> dict[str, dict[str, Any]]:
        """Sums over the rows of every device that the server holds, and its events."""
        return dict(self("told"))


class _Program:
    """What answers the commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = SteppedClock(wall_us=WALL_US, mono_us=10**9)
        self._fake = ctypes.CDLL("libnvidia-ml.so.1")
        self._fake.fake_nvml_set_ms.argtypes = [ctypes.c_ulonglong]
        self._pass_time(0)
        self._server = ModelServer(public_key=public_key(KEY), clock=self._clock)
        self.gpus = NvmlGpus(lambda: self._clock.now().mono_us / SECOND_US)
        self._reporter = Reporter(
            NODE,
            KEY,
            self.gpus,
            self._clock,
            folder / "spool.db",
            Wire(self._server),
            node_key=NODE_KEY,
            tick_us=SECOND_US,
            draw=min,
            lease_files=folder / "leases.d",
        )
        self._look()

    def run(self, seconds: int) -> bool:
        for _ in range(seconds):
            self._pass_time(SECOND_US)
            self._look()
            self._reporter.turn()
        return self._reporter.must_restart

    def lease(self, number: int, device_id: str, **more: Any) -> str:
        lease_id = f"lease_{number:032d}"
        window = {"lease_id": lease_id, "device_id": device_id, "from_us": WALL_US, **more}
        self._server.windows.append(window)
        self._reporter.flush()
        return lease_id

    def write(self, device_id: str, text: str) -> None:
        """A scheduler on this machine writes or takes away what works on a device."""
        file = self._folder / "leases.d" / device_id
        file.parent.mkdir(exist_ok=True)
        if text:
            file.write_text(text)
            now_ns = self._clock.now().wall_us * 1_000
            os.utime(file, ns=(now_ns, now_ns))
        else:
            file.unlink()
        self._reporter.flush()

    def by_lease(self) -> dict[str, list[Any]]:
        """[device, shape, share, microseconds available] of every lease that was told."""
        self._reporter.flush()
        found: dict[str, list[Any]] = {}
        for one in self._server.reports():
            for row in one.rows:
                if row.lease is None or row.available_us == 0:
                    continue
                device = one.devices[row.device]
                start = [device.id, device.shape, device.share_ppm, 0]
                sums = found.setdefault(one.leases[row.lease], start)
                assert sums[:3] == start[:3], "a lease stays where it is"
                sums[3] += row.available_us
        return found

    def told(self) -> dict[str, dict[str, Any]]:
        self._reporter.flush()
        found: dict[str, dict[str, Any]] = {}
        for one in self._server.reports():
            for row in one.rows:
                device = one.devices[row.device]
                sums = found.setdefault(device.id, _nothing())
                sums["shape"], sums["share_ppm"] = device.shape, device.share_ppm
                sums["reasons"].append(row.reason)
                sums["leases"] += [] if row.lease is None else [one.leases[row.lease]]
                for name in SUMMED:
                    value = getattr(row, name)
                    if value is not None:
                        sums[name] = value + (sums[name] or 0)
            for event in one.events:
                of = None if event.device is None else one.devices[event.device].id
                sums = found.setdefault(of or "node", _nothing())
                sums["events"].append([event.type, event.data])
        return found

    def inventory(self) -> list[str]:
        return [device.id for device in self.gpus.inventory()]

    def fault(self, timeout_s: float) -> bool:
        """Wait for one event of the driver, as the loop does; whether there was one."""
        try:
            found = self.gpus.faults(timeout_s)
        except MonitorBlind:
            self._reporter.lose_sight()
            return False
        for fault in found:
            self._reporter.notice(fault)
        return bool(found)

    def fork(self, device_id: str) -> list[Any]:
        """What a forked child is told when it asks for this device."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(theirs, json.dumps(self._tried(device_id)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        answer: list[Any] = json.loads(os.read(ours, 1_000))
        return answer

    def _tried(self, device_id: str) -> list[Any]:
        try:
            self.gpus.read(device_id)
        except (DeviceLost, MonitorBlind) as error:
            return [type(error).__name__, getattr(error, "restart", False)]
        return ["healthy", False]

    def _look(self) -> None:
        self._reporter.poll()

    def _pass_time(self, us: int) -> None:
        self._clock.advance(us)
        self._fake.fake_nvml_set_ms(self._clock.now().wall_us // 1_000)


SUMMED = (
    "available_us",
    "unavailable_us",
    "unknown_us",
    "len_us",
    "busy_us",
    "mem_byte_s",
    "energy_mj",
    "energy_gaps",
    "throttle_power_ns",
    "throttle_thermal_ns",
)


def _nothing() -> dict[str, Any]:
    lists: dict[str, Any] = {"reasons": [], "leases": [], "events": []}
    return dict.fromkeys(SUMMED) | lists


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = _Program(Path(folder))
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
            answer = getattr(program, name)(*arguments, **named)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
