"""What a market owes its people, from the documents alone: no line of the product is used here.

    gpu_us = floor(sum(share x available time inside the lease's window) / 10^6)       economics 4
    charge = floor(gpu_us x price / 3,600,000,000)                                     economics 4
    fee = floor(charge x fee rate / price), the provider has half of the rest          economics 3
    cash = deposits - charges of what is settled - what is held                        economics 18

Reports are read as the nodes signed them, each number once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

HOUR_US = 3_600_000_000
USAGE_FEE = 250_000
"""Of a GPU-hour of the class datacenter, under the first tariff."""


@dataclass
class Lease:
    """As its parties know it: from when to when, of which devices, at what price. `term_us`: the
    longest that it may last, with all extensions; None: no term was asked for.
    """

    payer: str
    earner: str
    devices: tuple[str, ...]
    price: int
    opened_us: int | None = None
    closed_us: int | None = None
    gpu_us: int = 0
    term_us: int | None = None


@dataclass
class Reference:
    """The market of one run."""

    deposited: dict[str, int] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    reports: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def report(self, body: bytes) -> None:
        told = json.loads(body)
        known = self.reports.setdefault((told["node"], told["seq"]), told)
        assert known == told, "a node signs one report under a number"

    def reported_us(self, lease_id: str) -> int:
        """What the reports say of a lease inside its window, and never more than the window. A row
        is as long as its monotonic clock says; where it lies, the server's clock.
        """
        lease = self.leases[lease_id]
        if lease.opened_us is None or lease.closed_us is None:
            return 0
        found = 0
        for told in self.reports.values():
            for device, named, start_us, end_us, available_us in _rows(told):
                if named != lease_id or device not in lease.devices:
                    continue
                outside = max(0, lease.opened_us - start_us) + max(0, end_us - lease.closed_us)
                found += max(0, available_us - outside)
        return min(found, (lease.closed_us - lease.opened_us) * len(lease.devices))

    def charge(self, lease_id: str) -> int:
        return self.leases[lease_id].gpu_us * self.leases[lease_id].price // HOUR_US

    def earned(self, lease_id: str) -> int:
        charge = self.charge(lease_id)
        return (charge - charge * USAGE_FEE // self.leases[lease_id].price) // 2

    def cash(self, account: str) -> int:
        """Once all of its leases are settled."""
        spent = sum(self.charge(one) for one, of in self.leases.items() if of.payer == account)
        return self.deposited.get(account, 0) - spent

    def income(self, account: str) -> int:
        return sum(self.earned(one) for one, of in self.leases.items() if of.earner == account)


def _rows(told: dict[str, Any]) -> Iterator[tuple[str, str | None, int, int, int]]:
    """Device, lease, from, until and available time of each row, by the server's clock."""
    count, columns = told["n"], told.get("cols", {})
    rows = {name: one if isinstance(one, list) else [one] * count for name, one in columns.items()}
    mono_us = 0
    for at in range(count):
        mono_us += rows["step_us"][at]  # the first is where the first row starts
        start_us = mono_us + rows["wall_minus_mono_us"][at] + (told["clock_offset_us"] or 0)
        lease = rows["lease"][at]
        yield (
            told["devices"][rows["device"][at]]["id"],
            None if lease is None else told["leases"][lease],
            start_us,
            start_us + rows["len_us"][at] + rows["wall_slew_us"][at],
            rows["available_us"][at],
        )
