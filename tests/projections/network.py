"""A small network as facts and reports, for tests of what a cut says: made, not decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg

from domain.epochs import epoch
from domain.fleet import device, node, provider
from domain.gpu_time import GPU_HOUR_US
from domain.lease import countersign, lease
from domain.metering import pin, report
from domain.metering.report import Device, Report, Row, lane_of
from domain.money import PPM, Asset, credit
from domain.prices.charge_split import NOTHING
from domain.stream import Stream
from domain.trust import challenge
from projections import tables
from projections.epochs.availability import AVAILABILITY
from projections.epochs.epochs import EPOCHS
from projections.runner import step, step_lanes
from projections.trust.reputation import REPUTATION
from tests.projections.reports import START_US, append
from tests.projections.story import Told, Writer

VIEWS = (EPOCHS, AVAILABILITY, REPUTATION)
EPOCH_HOURS = 2
LATER_US = START_US + 10**15
"""When every report is received: nothing ends ahead of it."""


def gpu(number: int) -> str:
    """A device id of the form that drivers give."""
    return f"GPU-{number:08x}-0000-4000-8000-000000000000"


def node_id(number: int) -> str:
    return f"node_{number:032x}"


@dataclass
class Network:
    """Epochs of two hours from START_US on; `hour` 0 is the first of epoch 1."""

    connection: psycopg.Connection[Any]
    epochs: int = 1
    seq: dict[str, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self.writer = Writer(self.connection)
        self.tell(self._opened(1))

    def tell(self, *told: Told) -> int:
        return self.writer.write(told)

    def _opened(self, number: int) -> Told:
        start_us = START_US + (number - 1) * EPOCH_HOURS * GPU_HOUR_US
        return Stream("epoch", str(number)), epoch.EpochOpened(
            epoch=number,
            start_us=start_us,
            end_us=start_us + EPOCH_HOURS * GPU_HOUR_US,
            policy_version=1,
            at_us=start_us,
        )

    def join(self, name: str, *device_ids: str, account_id: str = "acct_a", hour: int = 0) -> None:
        """A node of this account with these devices, at the beginning of an hour."""
        at_us, provider_id = START_US + hour * GPU_HOUR_US, f"prov_{account_id}"
        self.tell(
            (
                Stream("provider", provider_id),
                provider.ProviderRegistered(
                    provider_id=provider_id,
                    account_id=account_id,
                    kind="physical",
                    payment_mode="credits",
                    at_us=at_us,
                ),
            ),
            (
                Stream("node", name),
                node.NodeJoinRequested(
                    node_id=name,
                    provider_id=provider_id,
                    region_id="region_a",
                    client_id=None,
                    key_id="nk",
                    public_key="33" * 32,
                    token_sha256="44" * 32,
                    agent="test",
                    at_us=at_us,
                ),
            ),
        )
        self.register(name, *device_ids, hour=hour)

    def register(self, name: str, *device_ids: str, hour: int = 0) -> None:
        for device_id in device_ids:
            fact = device.DeviceRegistered(
                device_id=device_id,
                node_id=name,
                provider_id="prov_a",
                vendor="nvidia",
                model="H200",
                gpu_class="datacenter",
                memory_mib=141_000,
                at_us=START_US + hour * GPU_HOUR_US,
                kind="gpu",
                memory="dedicated",
                is_divisible=True,
                capacity_asset=Asset.GPU_MS,
            )
            self.tell((Stream("device", device_id), fact))

    def passed(self, name: str, device_id: str, hour: int, program: str = "test") -> None:
        """A challenge that the device passed."""
        number = f"chal_{self.writer.position:032x}"
        fact = challenge.ChallengeJudged(
            challenge_id=number,
            node_id=name,
            device_id=device_id,
            program=program,
            rule=None,
            took_us=1,
            at_us=START_US + hour * GPU_HOUR_US,
        )
        self.tell((Stream("challenge", number), fact))

    def leased(self, name: str, hour: int, us: int, renter: str = "acct_renter") -> str:
        """Leased time of a node, accrued at the end of an hour; the lease."""
        lease_id = f"lease_{self.writer.position:032x}"
        until_us = START_US + (hour + 1) * GPU_HOUR_US
        fact = lease.UsageAccrued(
            lease_id=lease_id,
            hour_index=0,
            until_us=until_us,
            node_id=name,
            account_id=renter,
            provider_account_id="acct_a",
            client_id="direct",
            project_id="p",
            end_user_ref="",
            lane=0,
            usage_position=1,
            resume_position=1,
            ppm_us=us * PPM,
            gpu_us=us,
            gpu_us_new=us,
            charge=credit(0),
            charge_new=credit(0),
            parts=NOTHING,
            parts_new=NOTHING,
            drawn=(),
            watermarks=(),
            refused=(),
            at_us=until_us,
            client_account_id=None,
            owners=(),
            federated=None,
            owed=None,
            escrow_id=None,
        )
        self.tell((Stream("lease", lease_id), fact))
        return lease_id

    def signed(self, lease_id: str, hour: int, us: int) -> None:
        """The renter's signature for a lease's time up to the end of an hour."""
        until_us = START_US + (hour + 1) * GPU_HOUR_US
        fact = countersign.UsageCountersigned(
            lease_id=lease_id,
            account_id="acct_renter",
            key_id="aa",
            gpu_us=us,
            until_us=until_us,
            signature="00",
            at_us=until_us,
        )
        self.tell((Stream("countersign", lease_id), fact))

    def report(self, name: str, /, *rows: tuple[Device, int, int], **told: Any) -> int:
        """One report with rows of (device, hour of its end, length); returns its lane position.

        Every row ends with its hour. `told` is a device.inventory of the first device.
        """
        self.seq[name] = seq = self.seq.get(name, 0) + 1
        devices = tuple(dict.fromkeys(one for one, _, _ in rows))
        ends = [START_US + (hour + 1) * GPU_HOUR_US for _, hour, _ in rows]
        events = [
            report.Event(type="device.inventory", mono_us=0, wall_us=START_US, device=0, data=told)
        ]
        body = Report(
            node=name,
            seq=seq,
            prev="00" * 32,
            boot="00000000-0000-4000-8000-000000000000",
            agent="test",
            mono_us=10**16,
            wall_us=START_US,
            clock_offset_us=0,
            devices=devices,
            rows=tuple(
                Row(
                    device=devices.index(one),
                    lease=None,
                    driver_epoch=1,
                    mono_start_us=end_us - us,
                    len_us=us,
                    wall_minus_mono_us=0,
                    available_us=us,
                    unavailable_us=0,
                    unknown_us=0,
                    samples=1,
                    energy_mj=us // 10_000,
                )
                for (one, _, us), end_us in zip(rows, ends, strict=True)
            ),
            events=tuple(events if told else ()),
        )
        return append(self.connection, name, seq, report.encode(body), recorded_us=LATER_US + seq)

    def close(self) -> int:
        """The epoch ends at a cut that holds every report so far; the position of its pin."""
        sizes = dict(self.connection.execute("SELECT lane, pos FROM usage_head").fetchall())
        lanes = tuple(pin.LanePin(lane, sizes[lane], "00" * 32, "00" * 32) for lane in range(64))
        closed, self.epochs = self.epochs, self.epochs + 1
        position = self.tell(
            (Stream("epoch", str(closed)), epoch.EpochClosing(epoch=closed, by="op", at_us=1)),
            (Stream("pins", "usage"), pin.UsagePinned(lanes=lanes, lanes_root="11" * 32, at_us=1)),
        )
        self.tell(self._opened(self.epochs))
        self.cuts.append(position)
        return position

    def read(self, facts_max: int = 1_000) -> None:
        """The views of a settlement read on, in steps of so many facts and reports."""
        tables.ensure(self.connection, VIEWS)
        for view in VIEWS:
            moved = 1
            while moved:
                moved = step(self.connection, view, facts_max=facts_max)
                if view.reports is not None:
                    moved += step_lanes(self.connection, view, reports_max=facts_max)


__all__ = ["EPOCH_HOURS", "VIEWS", "Network", "gpu", "lane_of", "node_id"]
