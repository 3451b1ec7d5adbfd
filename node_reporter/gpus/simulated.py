"""Backend `sim`: accelerators that exist only in arithmetic. For tests, demos, software seats.

Not random and not a recording: every answer is a function of (seed, device, monotonic time), so two
runs on one stepped clock give the same reports, byte for byte. Its driver calls itself `simulated`,
and a server outside development refuses that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from node_reporter.clock import Clock
from node_reporter.gpus.seam import Device, DeviceLost, Fault, Health, MonitorBlind, Reading

DRIVER = "simulated"
MODEL = "NVIDIA H200"
MEM_BYTES = 150_754_820_096
POWER_LIMIT_MW = 700_000
IDLE_MW = 80_000
MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Between these monotonic times the device at `index` cannot be read, for this reason."""

    index: int
    from_us: int
    until_us: int
    health: Health = Health.GONE
    code: int = 15


class SimulatedGpus:
    """`count` devices of one model whose UUIDs follow from the seed, of any maker and kind. With
    `licence` they are seats 1 to `count` of that licence, on a machine without accelerators.
    """

    vendor = "sim"

    def __init__(
        self,
        clock: Clock,
        *,
        count: int = 1,
        seed: str = "0",
        model: str = MODEL,
        mem_bytes: int = MEM_BYTES,
        maker: str | None = None,
        kind: str | None = None,
        licence: str | None = None,
        outages: Sequence[Outage] = (),
    ) -> None:
        assert count >= 1, count
        self._clock = clock
        self._outages = tuple(outages)
        self._devices = tuple(
            Device(
                id=device_uuid(seed, index) if licence is None else f"{licence}:{index + 1}",
                name=model,
                mem_bytes=mem_bytes if licence is None else 0,
                pci=f"00000000:{index + 1:02X}:00.0",
                compute_capability="9.0",
                driver=DRIVER,
                power_limit_mw=POWER_LIMIT_MW,
                busy_source="util",
                energy_scope="device",
                vendor=maker,
                kind="seat" if licence is not None else kind,
            )
            for index in range(count)
        )
        self._index = {device.id: index for index, device in enumerate(self._devices)}

    def open(self) -> None:
        """Nothing to load."""

    def close(self) -> None:
        """Nothing to release."""

    def inventory(self) -> Sequence[Device]:
        return self._devices

    def look(self, board_id: str) -> Sequence[Device]:
        return (self._devices[self._index[board_id]],)

    def read(self, device_id: str) -> Reading:
        index = self._index[device_id]
        mono_us = self._clock.now().mono_us
        self._fail_in_outage(index, mono_us)
        return Reading(
            energy_mj=_energy_mj(device_id, mono_us),
            power_limit_mw=POWER_LIMIT_MW,
            busy_ppm=_busy_ppm(device_id, mono_us // MINUTE_US),
            mem_used_bytes=(self._devices[index].mem_bytes or 0) // 2,
        )

    def faults(self, timeout_s: float) -> Sequence[Fault]:
        """A simulated device reports no fault by itself; outages show in `read`."""
        del timeout_s
        return ()

    def attest(self, device_id: str, nonce: bytes) -> bytes | None:
        """Simulated devices have no identity to prove."""
        del device_id, nonce
        return None

    def _fail_in_outage(self, index: int, mono_us: int) -> None:
        for outage in self._outages:
            if outage.index == index and outage.from_us <= mono_us < outage.until_us:
                if outage.health is Health.GONE:
                    raise DeviceLost(outage.code, "simulated loss")
                raise MonitorBlind(outage.code, "simulated blindness")


def device_uuid(seed: str, index: int) -> str:
    """A UUID in the form NVML writes, the same for the same seed and index."""
    digest = sha256(f"tallystick/sim/{seed}/{index}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _busy_ppm(device_id: str, minute: int) -> int:
    return sha256(f"{device_id}/{minute}".encode()).digest()[0] * 100 // 255 * 10_000


def _energy_mj(device_id: str, mono_us: int) -> int:
    """A counter that grows with time between idle and 90 % of the limit, a rate per device."""
    weight = sha256(device_id.encode()).digest()[0]
    rate_mw = IDLE_MW + (POWER_LIMIT_MW * 9 // 10 - IDLE_MW) * weight // 255
    return rate_mw * mono_us // 1_000_000
