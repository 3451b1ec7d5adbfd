"""Who works on which device, as far as the node knows: the server's assignments, and `leases.d`.

    an instance has one lease at a time, and a lease one instance of a board

The server leases parts of a board and does not know the instances it is cut into. A lease of a MIG
profile is counted on an instance of that profile: the one that `leases.d` names, else a free one,
and it stays there. Not the truth about money: the ledger's window and share win.
Source: design metering 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from domain.metering.report import PPM
from node_reporter.gpus.seam import Device
from node_reporter.meter.lease_files import LocalLease
from node_reporter.meter.leases import Window

KEPT_US = 3_600_000_000
"""So long a lease that a file named is remembered after the file went: rows may still be open."""


class Tenants:
    """The leases of one node's devices."""

    def __init__(self, assigned: Sequence[Window]) -> None:
        self.assigned = tuple(assigned)
        """In the server's words."""
        self._local: dict[tuple[str, str], Window] = {}
        self._named: dict[str, str] = {}
        self._instance_of: dict[tuple[str, str], str] = {}

    def learn(self, found: Iterable[LocalLease], clock_offset_us: int, server_us: int) -> None:
        """Take what `leases.d` holds now; what it holds no more has ended."""
        now = {(one.device_id, one.lease_id): one for one in found}
        self._named = {one.lease_id: one.device_id for one in now.values()}
        for key, window in self._local.items():
            if key not in now and window.until_us is None:
                self._local[key] = replace(window, until_us=max(server_us, window.from_us))
        for key, one in now.items():
            if key not in self._local or self._local[key].until_us is not None:
                self._local[key] = _window(one, clock_offset_us)
        self._local = {
            key: window
            for key, window in self._local.items()
            if window.until_us is None or window.until_us > server_us - KEPT_US
        }

    def windows(self) -> tuple[Window, ...]:
        """All of them: the server's, and of `leases.d` those of leases it has not told of."""
        known = {window.lease_id for window in self.assigned}
        return (*self.assigned, *(w for w in self._local.values() if w.lease_id not in known))

    def of(self, device: Device, present: Sequence[Device]) -> tuple[Window, ...]:
        """The windows of one of the devices there are."""
        windows = self.windows()
        own = tuple(window for window in windows if window.device_id == device.id)
        if device.parent is None:
            return own
        on_board = [window for window in windows if _is_for_instance(window, device.parent)]
        beside = [one for one in present if one.parent == device.parent and one.id != device.id]
        self._pair(on_board, sorted([device, *beside], key=lambda one: (one.gi or 0, one.ci or 0)))
        held = (
            w for w in on_board if self._instance_of.get((w.device_id, w.lease_id)) == device.id
        )
        # The instance is all of what it is: its own share of the board says how much that is.
        return (*own, *(replace(w, device_id=device.id, share_ppm=PPM, mem_ppm=PPM) for w in held))

    def _pair(self, windows: Sequence[Window], instances: Sequence[Device]) -> None:
        """Give every lease an instance of its profile that no other has at that time."""
        known = {instance.id for instance in instances}
        for window in windows:
            named = self._named.get(window.lease_id)
            if named in known:
                self._instance_of[window.device_id, window.lease_id] = named
        for window in sorted(windows, key=lambda w: (w.mig_start or 0, w.from_us, w.lease_id)):
            key = (window.device_id, window.lease_id)
            if self._instance_of.get(key) in known:
                continue
            taken = {
                self._instance_of.get((other.device_id, other.lease_id))
                for other in windows
                if _overlap(window, other)
            }
            free = (
                instance.id
                for instance in instances
                if instance.shape == f"mig:{window.mig_profile}" and instance.id not in taken
            )
            if (first := next(free, None)) is not None:
                self._instance_of[key] = first
        listed = {(window.device_id, window.lease_id) for window in self.windows()}
        self._instance_of = {key: one for key, one in self._instance_of.items() if key in listed}


def _is_for_instance(window: Window, board_id: str) -> bool:
    return window.device_id == board_id and window.mode == "mig"


def _overlap(a: Window, b: Window) -> bool:
    a_ends = b.until_us is not None and b.until_us <= a.from_us
    b_ends = a.until_us is not None and a.until_us <= b.from_us
    return not (a_ends or b_ends)


def _window(one: LocalLease, clock_offset_us: int) -> Window:
    return Window(
        lease_id=one.lease_id,
        device_id=one.device_id,
        from_us=one.since_us + clock_offset_us,
        share_ppm=one.share_ppm,
        mem_ppm=one.share_ppm,
        mode=one.mode,
    )
