"""What the matcher is told is what the rule would choose from, had it seen the whole fleet."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain import device
from domain.matching import FreeDevice, Need, OfferedNode, choose
from domain.money import PPM, credit
from domain.stream import Stream
from domain.tariff import TariffPublished, UsageFee
from projections import fleet, tables
from projections.fleet import FLEET
from tests.projections.story import FEE, PRICE, START_US, Size, Told, Writer, story

SIZE = Size(nodes=12, devices=3, leases=4, hours=2)


@pytest.fixture
def connection(database: str) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def _whole_fleet(connection: psycopg.Connection[Any], renter: str) -> list[OfferedNode]:
    """Every standing offer with all its devices, put together from the plain reads."""
    nodes = {node.node_id: node for node in fleet.read_nodes(connection, limit=500)}
    served = dict(
        connection.execute(
            "SELECT node_id, gpu_us FROM proj_fleet.served"
            " WHERE epoch = (SELECT max(epoch) FROM proj_fleet.epoch)"
        ).fetchall()
    )
    return [
        OfferedNode(
            node_id=offer.node_id,
            offer_id=offer.offer_id,
            account_id=offer.account_id,
            price=FEE if offer.account_id == renter else offer.price_units,
            settlement=offer.settlement,
            fractions=offer.fractions,
            served_gpu_us=served.get(offer.node_id, 0),
            devices=tuple(
                FreeDevice(each.device_id, each.model, each.share_free, each.mem_free)
                for each in fleet.read_devices(connection, node_id=offer.node_id)
                if not each.retired
            ),
        )
        for offer in fleet.read_offers(connection, limit=500)
        if nodes[offer.node_id].phase == "active" and not nodes[offer.node_id].quarantined
    ]


def _reserve(free: FreeDevice, lease_id: str, share: int, mem: int) -> Told:
    return Stream("device", free.device_id), device.DeviceReserved(
        device_id=free.device_id, lease_id=lease_id, share_ppm=share, mem_ppm=mem, at_us=START_US
    )


def test_the_best_of_the_candidates_is_the_best_of_the_whole_fleet(
    connection: psycopg.Connection[Any],
) -> None:
    writer = Writer(connection)
    writer.write(story(SIZE))
    rnd = random.Random(7)
    matched = 0
    for number in range(60):
        tables.step_all(connection, only=("fleet",))
        need = Need(
            gpu_count=rnd.choice([1, 1, 2, 3]),
            share_ppm=rnd.choice([PPM, PPM // 2, PPM // 4, PPM // 10]),
            mem_ppm=rnd.choice([PPM // 4, PPM // 10]),
            models=rnd.choice([(), ("M1",), ("M2", "M3")]),
            price_max=rnd.choice([PRICE, PRICE + 1, PRICE + 2]),
            account_id=rnd.choice(["acct_cash", "acct_provider"]),
            settlements=rnd.choice([("cash",), ("burn",), ("cash", "burn")]),
        )
        found = fleet.candidates(connection, need, START_US + 10**9)
        expected = choose(need, _whole_fleet(connection, need.account_id))
        got = choose(need, found.nodes)
        if expected is None:
            assert (got, found.considered, found.nodes) == (None, 0, ())
            continue
        assert got is not None
        assert (got.node_id, got.device_ids) == (expected.node_id, expected.device_ids)
        assert got.candidates == expected.candidates
        assert found.considered == expected.considered
        assert found.position == writer.position
        matched += 1
        taken = [d for n in found.nodes if n.node_id == got.node_id for d in n.devices]
        writer.write(
            _reserve(each, f"lease_{number}", need.share_ppm, need.mem_ppm) for each in taken
        )
    assert matched > 20
    assert tables.rebuild(connection, FLEET).differing == ()


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
        device_id=gpu, lease_id="lease_1", share_ppm=428_571, mem_ppm=500_000, at_us=START_US,
        mode="mig", profile="3g.40gb", start=4,
    )  # fmt: skip
    gone = device.DeviceReleased(
        device_id=gpu, lease_id="lease_1", share_ppm=428_571, mem_ppm=500_000, at_us=START_US
    )
    writer.write([(stream, three)])
    assert _held(connection, gpu) == [("lease_1", "mig", "3g.40gb", 4)]
    assert fleet.read_devices(connection, device_id=gpu)[0].mode == "mig"
    # Released and held again, elsewhere on the device, between two looks.
    writer.write([(stream, gone), (stream, replace(three, start=0))])
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


def test_a_node_in_maintenance_and_a_withdrawn_offer_are_no_candidates(
    connection: psycopg.Connection[Any],
) -> None:
    Writer(connection).write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    last = fleet.read_node(connection, SIZE.node(11))
    assert last is not None
    assert (last.phase, last.quarantined) == ("retired", True)
    need = Need(1, PPM, PPM, (), 10**9, "acct_cash")
    found = fleet.candidates(connection, need, START_US, limit=50)
    assert found.considered == len(found.nodes) == 11
    assert SIZE.node(11) not in {node.node_id for node in found.nodes}
    offers = fleet.read_offers(connection, limit=50)
    assert len(offers) == 11
    assert len(fleet.read_offers(connection, withdrawn=True, limit=50)) == 12
    assert [o.price_units for o in offers] == sorted(o.price_units for o in offers)


def test_an_offer_below_the_usage_fee_of_a_later_tariff_is_no_candidate(
    connection: psycopg.Connection[Any],
) -> None:
    writer = Writer(connection)
    writer.write(story(SIZE))
    dearer = TariffPublished(
        version=2, usage_fees=(UsageFee("datacenter", credit(PRICE + 1)),),
        provider_share_ppm=500_000, burn_share_ppm=0, effective_from_us=START_US + 10,
        by="op", at_us=START_US,
    )  # fmt: skip
    writer.write([(Stream("tariff", "network"), dearer)])
    tables.step_all(connection, only=("fleet",))
    need = Need(1, PPM, PPM, (), 10**9, "acct_cash")
    before = fleet.candidates(connection, need, START_US + 9, limit=50)
    after = fleet.candidates(connection, need, START_US + 10, limit=50)
    prices = {node.price for node in before.nodes}
    assert min(prices) == PRICE
    assert {node.price for node in after.nodes} == prices - {PRICE}
    own = fleet.candidates(connection, Need(1, PPM, PPM, (), 10**9, "acct_provider"), START_US + 10)
    assert {node.price for node in own.nodes} == {PRICE + 1}, "one's own nodes cost the fee"


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
