"""What lies where in the story: volumes in every state, datasets, what leases hold of a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.lease.funds import EscrowPart
from domain.money import credit
from domain.prices.charge_split import Parts
from domain.prices.tariff import MeterRate
from domain.storage import dataset, node_room, volume
from domain.stream import Stream

Told = tuple[Stream[Any], Any]
NODE = "node_1"
ACCOUNT = "acct_cash"
OWNER = "acct_disk"
RATE = MeterRate("volume", credit(100_000), 2_592_000)
HOUR_US = 3_600_000_000


def stored(at: int) -> Iterator[Told]:
    """A lease takes disk and network of a node, volumes live and die, datasets are placed."""
    yield from _room(at)
    yield from _volumes(at)
    yield from _datasets(at)


def _room(at: int) -> Iterator[Told]:
    stream, held = node_room.room_stream(NODE), {"node_id": NODE, "lease_id": "lease_disk"}
    yield (
        stream,
        node_room.NodeRoomTaken(
            **held,
            storage_gib=60,
            network_mbps=400,
            storage_of_gib=100,
            network_of_mbps=1_000,
            at_us=at,
        ),
    )
    yield (
        stream,
        node_room.NodeRoomReturned(**held, storage_gib=0, network_mbps=400, at_us=at + 1),
    )


def _cash(units: int, deposit: int | None = None) -> tuple[EscrowPart, ...]:
    return (EscrowPart("cash", credit(units), deposit=deposit),)


def _volumes(at: int) -> Iterator[Told]:
    """One is erased, one is kept and attached, one is in its grace."""
    for number in range(3):
        name, stream = f"volume_{number}", volume.volume_stream(f"volume_{number}")
        whose = {"volume_id": name, "account_id": ACCOUNT}
        yield (
            stream,
            volume.VolumeProvisioned(
                **whose,
                name=name,
                project_id="p" if number else None,
                region_id="region_1",
                provider_account_id=OWNER,
                size_gib=100,
                rate=RATE if number else None,
                tariff_version=1,
                grace_us=volume.GRACE_US,
                reserve=_cash(100),
                by="mem_a",
                at_us=at,
            ),
        )
        for lease in range(2):
            yield (
                stream,
                volume.VolumeAttached(
                    volume_id=name,
                    lease_id=f"lease_v{lease}",
                    job_id="job_v",
                    node_id=NODE,
                    path="/vol/data",
                    read_only=lease == 1,
                    at_us=at + 1,
                ),
            )
        yield stream, _charged(number, at, 1, ())
        yield (
            stream,
            volume.VolumeDetached(
                volume_id=name, lease_id="lease_v0", cause="lease_over", at_us=at + 2
            ),
        )
        if number != 1:
            yield from _grace(number, whose, at, comes_back=number == 0)
    yield from _erased(at)


def _charged(number: int, at: int, hours: int, reserve: tuple[EscrowPart, ...]) -> Any:
    units = sum(one.amount.units for one in reserve)
    parts = Parts(fee=0, provider=units // 2, platform=units - units // 2, burn=0)
    return volume.VolumeCharged(
        volume_id=f"volume_{number}",
        account_id=ACCOUNT,
        provider_account_id=OWNER,
        project_id=None,
        size_gib=100,
        until_us=at + hours * HOUR_US,
        elapsed_us=hours * HOUR_US,
        elapsed_us_new=HOUR_US,
        rate=None if number == 0 else RATE,
        tariff_version=1,
        charge=credit(units),
        charge_new=credit(units),
        parts=parts,
        parts_new=parts,
        drawn=(),
        reserve_drawn=reserve,
        at_us=at + hours * HOUR_US,
    )


def _grace(number: int, whose: dict[str, Any], at: int, *, comes_back: bool) -> Iterator[Told]:
    stream = volume.volume_stream(whose["volume_id"])
    yield (
        stream,
        volume.VolumeGraceStarted(
            **whose, since_us=at, deletes_at_us=at + volume.GRACE_US, at_us=at
        ),
    )
    yield stream, _charged(number, at, 2, _cash(40))
    if comes_back:
        yield stream, volume.VolumeGraceEnded(**whose, refilled=_cash(40, 2), at_us=at)


def _erased(at: int) -> Iterator[Told]:
    stream = volume.volume_stream("volume_0")
    yield (
        stream,
        volume.VolumeDetached(
            volume_id="volume_0", lease_id="lease_v1", cause="funds_ended", at_us=at
        ),
    )
    yield (
        stream,
        volume.VolumeDeleted(
            volume_id="volume_0",
            account_id=ACCOUNT,
            region_id="region_1",
            cause="owner",
            refund=(*_cash(60), *_cash(40, 2)),
            by="mem_a",
            deleted_at_us=at,
            at_us=at,
        ),
    )
    yield stream, volume.VolumeErased(volume_id="volume_0", node_id=NODE, at_us=at)


def _datasets(at: int) -> Iterator[Told]:
    """Two are placed and one of them moves; a third one is gone."""
    for number, regions in enumerate((("region_1",), ("region_1", "region_2"), ("region_2",))):
        whose = {"dataset_id": f"dataset_{number}", "account_id": ACCOUNT, "name": f"d{number}"}
        stream = dataset.dataset_stream(ACCOUNT, f"d{number}")
        for pinned in (False, number == 1):
            yield (
                stream,
                dataset.DatasetPlaced(
                    **whose, region_ids=regions, pinned=pinned, by="mem_a", at_us=at
                ),
            )
        if number == 2:
            yield stream, dataset.DatasetRemoved(**whose, by="mem_a", at_us=at)
