"""What is free is what nobody holds; lists leave nothing out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.fleet import device
from domain.market.matching import FreeDevice
from domain.money import PPM
from domain.stream import Stream
from projections import read, tables
from projections.fleet import fleet
from tests.projections.story import START_US, Size, Told, Writer, story

SIZE = Size(nodes=12, devices=3, leases=4, hours=2)


def _reserve(free: FreeDevice, lease_id: str, share: int, mem: int) -> Told:
    return Stream("device", free.device_id), device.DeviceReserved(
        device_id=free.device_id,
        lease_id=lease_id,
        share_ppm=share,
        mem_ppm=mem,
        at_us=START_US,
        mode="memory",
        mig=None,
    )


def test_what_is_free_is_what_nobody_holds(connection: psycopg.Connection[Any]) -> None:
    writer = Writer(connection)
    writer.write(story(SIZE))
    gpu = SIZE.device(0, 0)
    held = [
        _reserve(FreeDevice(gpu, "M0", PPM, PPM), f"lease_{n}", PPM // 4, PPM // 8) for n in (1, 2)
    ]
    stream, reserved = held[0]
    released = device.DeviceReleased(
        device_id=gpu, lease_id="lease_1", share_ppm=PPM // 4, mem_ppm=PPM // 8, at_us=START_US
    )
    writer.write(held)
    tables.step_all(connection, only=("fleet",))
    free = fleet.read_devices(connection, device_id=gpu)[0]
    assert (free.share_free, free.mem_free) == (PPM // 2, PPM * 3 // 4)
    assert [h.lease_id for h in fleet.read_holdings(connection, device_id=gpu)] == [
        "lease_1",
        "lease_2",
    ]
    writer.write([(stream, released), (stream, reserved), (stream, released)])
    tables.step_all(connection, only=("fleet",))
    free = fleet.read_devices(connection, device_id=gpu)[0]
    assert (free.share_free, free.mem_free) == (PPM * 3 // 4, PPM * 7 // 8)
    assert [h.lease_id for h in fleet.read_holdings(connection, lease_id="lease_2")] == ["lease_2"]


def _held(connection: psycopg.Connection[Any], gpu: str) -> list[tuple[Any, ...]]:
    tables.step_all(connection, only=("fleet",))
    return [
        (one.lease_id, one.mode, one.profile, one.start)
        for one in fleet.read_holdings(connection, device_id=gpu)
    ]


def test_a_device_shows_the_mode_of_those_who_hold_it_and_none_when_nobody_does(
    connection: psycopg.Connection[Any],
) -> None:
    writer = Writer(connection)
    writer.write(story(SIZE))
    gpu = SIZE.device(0, 0)
    stream = Stream("device", gpu)
    three = device.DeviceReserved(
        device_id=gpu,
        lease_id="lease_1",
        share_ppm=428_571,
        mem_ppm=500_000,
        at_us=START_US,
        mode="mig",
        mig=device.MigPart("3g.40gb", 4),
    )
    gone = device.DeviceReleased(
        device_id=gpu, lease_id="lease_1", share_ppm=428_571, mem_ppm=500_000, at_us=START_US
    )
    writer.write([(stream, three)])
    assert _held(connection, gpu) == [("lease_1", "mig", "3g.40gb", 4)]
    assert fleet.read_devices(connection, device_id=gpu)[0].mode == "mig"
    # Released and held again, elsewhere on the device, between two looks.
    writer.write([(stream, gone), (stream, replace(three, mig=device.MigPart("3g.40gb", 0)))])
    assert _held(connection, gpu) == [("lease_1", "mig", "3g.40gb", 0)]
    writer.write([(stream, gone)])
    assert _held(connection, gpu) == []
    free = fleet.read_devices(connection, device_id=gpu)[0]
    assert (free.mode, free.share_free, free.mem_free) == (None, PPM, PPM)


@pytest.mark.parametrize(
    "change",
    [
        "share_free = -1, mode = 'memory'",
        "mem_free = -1, mode = 'memory'",
        "share_free = 1000001",
        "share_free = 500000",
        "mode = 'memory'",
    ],
)
def test_the_database_refuses_a_device_that_is_leased_more_than_once_or_in_no_mode(
    connection: psycopg.Connection[Any], change: str
) -> None:
    Writer(connection).write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    with pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(f"UPDATE proj_fleet.device SET {change} WHERE share_free = 1000000")


def test_withdrawn_offers_and_retired_nodes_are_told_as_such(
    connection: psycopg.Connection[Any],
) -> None:
    Writer(connection).write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    last = fleet.read_node(connection, SIZE.node(11))
    assert last is not None
    assert (last.phase, last.quarantined) == ("retired", True)
    offers = fleet.read_offers(connection, limit=50)
    assert len(offers) == 11
    assert len(fleet.read_offers(connection, withdrawn=True, limit=50)) == 12
    assert [o.price_units for o in offers] == sorted(o.price_units for o in offers)


def test_offers_of_a_model_are_asked_one_by_one(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones of a common model: the devices of all nodes are not read for them."""
    Writer(connection).write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    plans, many = [], read.many

    def explained(connection: Any, row: Any, sql: str, **values: Any) -> Any:
        plans.append([line for (line,) in connection.execute("EXPLAIN " + sql, values)])
        return many(connection, row, sql, **values)

    monkeypatch.setattr(read, "many", explained)
    (model,) = fleet.read_offers(connection, limit=1)[0].models
    assert len(fleet.read_offers(connection, model=model, gpu_class="datacenter", limit=2)) == 2
    assert not [line for line in plans[-1] if "hashed SubPlan" in line]


def test_lists_come_in_pages_that_leave_nothing_out(connection: psycopg.Connection[Any]) -> None:
    Writer(connection).write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    nodes, after = [], 0
    while page := fleet.read_nodes(connection, account_id="acct_provider", after=after, limit=5):
        nodes += page
        after = page[-1].position
    assert [node.node_id for node in nodes] == [SIZE.node(n) for n in range(12)]
    offers, key = [], (-1, 0)
    while cheap := fleet.read_offers(connection, after=key, limit=4):
        offers += cheap
        key = (cheap[-1].price_units, cheap[-1].position)
    assert len({offer.offer_id for offer in offers}) == len(offers) == 11
    assert fleet.read_nodes(connection, account_id="acct_cash") == []
    provider = fleet.read_provider(connection, "prov_1")
    assert provider is not None
    assert fleet.read_providers(connection, account_id="acct_provider") == [provider]
    region = fleet.read_regions(connection, region_id="region_1")[0]
    assert (region.account_id, region.allow_public_jobs) == ("acct_provider", True)
    offer = fleet.read_offer(connection, "offer_0")
    assert offer is not None
    assert (offer.models, offer.gpu_classes, offer.free) == (["M0"], ["datacenter"], 4)
