"""Columns that follow the log are the columns that are read anew, and tell what the facts told."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.duration import DAY_US
from domain.fleet import device, growth, maintenance, node, provider
from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.lease import lease
from domain.lease.looked import Stated
from domain.market import offer
from domain.market.dimensions import Need, OfferedNode
from domain.market.matching import choose
from domain.money import PPM, credit
from domain.parties import counterparty
from domain.prices.tariff import TariffPublished, UsageFee
from domain.stream import Stream
from domain.trust import attribute
from projections import tables
from projections.market import feed as fleet_feed
from projections.market.feed import Feed
from projections.market.match import answer
from projections.trust import scores
from tests.projections.story import PRICE, START_US, Size, Told, Writer, story
from tests.scenes.samples import sample

SIZE = Size(nodes=12, devices=3, leases=4, hours=2)
LATER_US = START_US + 10**9


def _all(feed: Feed) -> dict[tuple[str, str], OfferedNode]:
    rows = [row for of_node in feed.columns.rows_of.values() for row in of_node.values()]
    return {(one.node_id, one.offer_id): one for one in feed.columns.nodes(rows)}


def _member(node_id: str, role: str) -> growth.RegionMemberSet:
    return growth.RegionMemberSet(
        region_id="region_1",
        node_id=node_id,
        role=role,
        ingress_node_id=None,
        models=("M1",),
        has_seats=False,
        at_us=LATER_US,
    )


def _changes() -> list[list[Told]]:
    """What can happen to a fleet, a few facts at a time."""
    at, first, second = LATER_US, SIZE.node(0), SIZE.node(1)
    gpu = SIZE.device(0, 0)
    here: dict[str, Any] = {"node_id": first, "at_us": at}
    by: dict[str, Any] = {"by": "mem_a", "at_us": at}
    statement: dict[str, Any] = {"statement_id": "st_1", "at_us": at, "by": "mem_a"}
    return [
        [
            (
                Stream("device", gpu),
                device.DeviceReserved(
                    device_id=gpu,
                    lease_id="lease_x",
                    share_ppm=142_857,
                    mem_ppm=125_000,
                    at_us=at,
                    mode="mig",
                    mig=device.MigPart("1g.10gb", 6),
                ),
            )
        ],
        [(Stream("node", first), node.NodeMaintenanceStarted(by="mem_a", **here))],
        [
            (Stream("node", first), node.NodeActivated(by="mem_a", **here)),
            (growth.growth_stream("region_1"), _member(first, "worker")),
            (Stream("node", second), PoolNodeAdded(pool_id="pool_1", node_id=second, **by)),
        ],
        [(Stream("offer", "offer_1"), offer.OfferWithdrawn(offer_id="offer_1", **by))],
        [
            (Stream("node", second), PoolNodeRemoved(pool_id="pool_1", node_id=second, **by)),
            (Stream("node", first), PoolNodeAdded(pool_id="pool_2", node_id=first, **by)),
        ],
        [
            (
                Stream("attribute", "st_1"),
                attribute.AttributeStated(
                    subject_id=first,
                    name="certification",
                    value="iso27001",
                    key_id="key_1",
                    signer_account_id="acct_tuev",
                    signature="00",
                    stated_at_us=at,
                    expires_at_us=None,
                    **statement,
                ),
            )
        ],
        [
            (
                Stream("maintenance", first),
                maintenance.MaintenanceScheduled(
                    maintenance_id="mt_1",
                    kind="planned",
                    from_us=at + 10,
                    until_us=at + 20,
                    keep_leases=True,
                    by="mem_a",
                    **here,
                ),
            )
        ],
        [
            (
                Stream("region", "region_1"),
                provider.RegionPolicySet(
                    region_id="region_1",
                    allow_public_jobs=False,
                    security_tier=2,
                    refused_workloads=("mining",),
                    **by,
                    down_ranked_workloads=(),
                ),
            )
        ],
        [
            (Stream("attribute", "st_1"), attribute.AttributeRevoked(**statement)),
            (
                Stream("counterparty", "acct_provider"),
                counterparty.CounterpartyDenied(
                    account_id="acct_provider", counterparty_id="acct_cash", **by
                ),
            ),
        ],
        [
            (
                Stream("device", gpu),
                device.DeviceReleased(
                    device_id=gpu, lease_id="lease_x", share_ppm=142_857, mem_ppm=125_000, at_us=at
                ),
            )
        ],
        [(growth.growth_stream("region_1"), _member(first, "ingress"))],
        [
            (
                growth.growth_stream("region_1"),
                growth.RegionMemberLeft(region_id="region_1", node_id=first, at_us=at),
            )
        ],
        [(Stream("node", second), node.NodeRetired(node_id=second, **by))],
    ]


def test_columns_that_follow_are_those_that_are_read_anew_after_every_change(
    connection: psycopg.Connection[Any],
) -> None:
    writer, feed = Writer(connection), Feed.empty()
    writer.write(story(SIZE))
    tables.step_all(connection)
    assert feed.follow(connection) == writer.position
    for facts in _changes():
        writer.write(facts)
        tables.step_all(connection, only=("fleet",))
        before = feed.columns
        assert feed.follow(connection) == writer.position
        assert feed.columns is before, "only what changed is read"
        anew = Feed.empty()
        anew.follow(connection)
        assert _all(feed) == _all(anew)
        assert feed.columns.lists == anew.columns.lists


def test_the_columns_tell_what_the_facts_told(connection: psycopg.Connection[Any]) -> None:
    writer, feed = Writer(connection), Feed.empty()
    writer.write(story(SIZE))
    for number, facts in enumerate(_changes()):
        writer.write(facts)
        tables.step_all(connection, only=("fleet",))
        feed.follow(connection)
        first = next(one for (name, _), one in _all(feed).items() if name == SIZE.node(0))
        if number == 0:
            cut = first.devices[0]
            assert (cut.mode, cut.free_share_ppm, cut.free_mem_ppm) == ("mig", 857_143, 875_000)
        if number == 4:
            assert (first.pool_id, first.phase) == ("pool_2", "active")
        if number == 6:
            assert Stated("certification", "iso27001", "acct_tuev") in first.attributes
            assert first.maintenance == ((LATER_US + 10, LATER_US + 20),)
        if number == 7:
            assert (first.is_public, first.security_tier) == (False, 2)
            assert first.refused_workloads == ("mining",)
        if number in (10, 11):
            assert first.phase == ("ingress" if number == 10 else "active")
    assert feed.columns.lists["acct_provider"][1] >= {"acct_cash"}
    withdrawn = [one for (name, _), one in _all(feed).items() if name == SIZE.node(1)]
    assert withdrawn == [], "a node that left for good is no node"


def _served(number: int, node_id: str, at_us: int) -> list[Told]:
    """A lease of a stranger that ended well."""
    stream = Stream("lease", f"lease_known_{number}")
    reserved = replace(
        sample(lease.LeaseReserved, leave_out_optional=True),
        lease_id=stream.id,
        node_id=node_id,
        account_id=f"acct_{number}",
        provider_id="prov_1",
        device_ids=(),
        own=False,
        escrow=(),
    )
    closed = replace(
        sample(lease.LeaseClosed, leave_out_optional=True),
        lease_id=stream.id,
        code=0,
        refund=(),
        at_us=at_us,
    )
    return [(stream, reserved), (stream, closed)]


def test_scores_in_the_columns_decay_with_every_day_some_nodes_at_a_time(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_feed, "SCORES_MAX", 5)
    writer, feed, first = Writer(connection), Feed.empty(), SIZE.node(0)
    writer.write(story(SIZE))
    today = (writer.recorded_us // DAY_US + 1) * DAY_US
    gpu = SIZE.device(0, 0)

    def scored(at_us: int) -> int | None:
        """Something is recorded; the score of the node in the columns afterwards."""
        writer.recorded_us = at_us
        writer.write(
            [
                (
                    Stream("device", gpu),
                    device.DeviceRetired(device_id=gpu, node_id=first, at_us=at_us),
                )
            ]
        )
        tables.step_all(connection, only=("fleet", "reputation"))
        for _ in range(3):  # twelve nodes, five at a time
            feed.follow(connection)
        known = {one.reputation_ppm for (name, _), one in _all(feed).items() if name == first}
        assert len(known) == 1
        return known.pop()

    assert scored(today) is None, "provisional"
    for number in range(12):
        writer.write(_served(number, first, today))
    found = [scored(today), scored(today + 40 * DAY_US), scored(today + 400 * DAY_US)]
    days = [today // DAY_US + later for later in (0, 40, 400)]
    expected = [
        scores.read_scores(connection, "node", [first], day=day)[first].score_ppm for day in days
    ]
    assert found == expected
    assert expected == sorted(expected, reverse=True)
    assert not feed.unscored


def test_the_best_of_the_columns_is_the_best_of_the_whole_fleet(
    connection: psycopg.Connection[Any],
) -> None:
    writer, feed = Writer(connection), Feed.empty()
    writer.write(story(SIZE))
    rnd, matched = random.Random(7), 0
    for number in range(60):
        tables.step_all(connection, only=("fleet",))
        position = feed.follow(connection)
        need = Need(
            gpu_count=rnd.choice([1, 1, 2, 3]),
            share_ppm=rnd.choice([PPM, PPM // 2, PPM // 4, PPM // 10]),
            mem_ppm=rnd.choice([PPM // 4, PPM // 10]),
            models=rnd.choice([(), ("M1",), ("M2", "M3")]),
            price_max=rnd.choice([PRICE, PRICE + 1, PRICE + 2]),
            account_id=rnd.choice(["acct_cash", "acct_provider"]),
            settlements=rnd.choice([("cash",), ("burn",), ("cash", "burn")]),
            at_us=LATER_US,
            until_us=LATER_US + 1,
        )
        fees = fleet_feed.fees(connection, LATER_US)
        found = answer(feed.columns, need, fees)
        expected = choose(need, answer(feed.columns, need, fees, limit=500).nodes)
        got = choose(need, found.nodes)
        if expected is None:
            assert (got, found.considered, found.nodes) == (None, 0, ())
            continue
        assert got is not None
        assert (got.node_id, got.device_ids) == (expected.node_id, expected.device_ids)
        assert (got.candidates, found.considered) == (expected.candidates, expected.considered)
        assert position == writer.position
        matched += 1
        mode = need.mode
        writer.write(
            (
                Stream("device", one),
                device.DeviceReserved(
                    device_id=one,
                    lease_id=f"lease_{number}",
                    share_ppm=need.share_ppm,
                    mem_ppm=need.mem_ppm,
                    at_us=START_US,
                    mode=mode,
                    mig=None,
                ),
            )
            for one in got.device_ids
        )
    assert matched > 20


def test_what_a_node_served_is_that_of_this_epoch(connection: psycopg.Connection[Any]) -> None:
    writer, feed = Writer(connection), Feed.empty()
    told = list(story(SIZE))
    half = len(told) // 2
    writer.write(told[:half])
    tables.step_all(connection, only=("fleet",))
    feed.follow(connection)
    writer.write(told[half:])
    tables.step_all(connection, only=("fleet",))
    feed.follow(connection)
    served = dict(
        connection.execute(
            "SELECT node_id, gpu_us FROM proj_fleet.served"
            " WHERE epoch = (SELECT coalesce(max(epoch), 0) FROM proj_fleet.epoch)"
        ).fetchall()
    )
    assert {one.node_id: one.served_gpu_us for one in _all(feed).values()} == {
        name: int(served.get(name, 0)) for name, _ in _all(feed)
    }


def _considered(connection: psycopg.Connection[Any], feed: Feed, renter: str, at_us: int) -> Any:
    need = Need(1, PPM, PPM, (), 10**9, renter, at_us=at_us, until_us=at_us + 1)
    found = answer(feed.columns, need, fleet_feed.fees(connection, at_us), limit=50)
    assert found.considered == len(found.nodes)
    return found.nodes


def test_an_offer_below_the_usage_fee_of_a_later_tariff_is_no_candidate(
    connection: psycopg.Connection[Any],
) -> None:
    writer, feed = Writer(connection), Feed.empty()
    writer.write(story(SIZE))
    dearer = TariffPublished(
        version=2,
        usage_fees=(UsageFee("datacenter", credit(PRICE + 1)),),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        effective_from_us=START_US + 10,
        by="op",
        at_us=START_US,
        split=None,
        federated=None,
        device_fee_per_month=None,
        storage_node_per_hour=None,
        meters=(),
        sla=(),
        notice_us=0,
        free_start=None,
    )
    writer.write([(Stream("tariff", "network"), dearer)])
    tables.step_all(connection, only=("fleet",))
    feed.follow(connection)
    before = {one.price for one in _considered(connection, feed, "acct_cash", START_US + 9)}
    after = {one.price for one in _considered(connection, feed, "acct_cash", START_US + 10)}
    assert min(before) == PRICE
    assert after == before - {PRICE}
    own = _considered(connection, feed, "acct_provider", START_US + 10)
    assert {node.price for node in own} == {PRICE + 1}, "one's own nodes cost the fee"


def test_a_retired_node_and_one_whose_offer_is_withdrawn_are_no_candidates(
    connection: psycopg.Connection[Any],
) -> None:
    writer, feed = Writer(connection), Feed.empty()
    writer.write(story(SIZE))
    tables.step_all(connection, only=("fleet",))
    feed.follow(connection)
    nodes = {one.node_id for one in _considered(connection, feed, "acct_cash", LATER_US)}
    assert SIZE.node(11) not in nodes
    writer.write(_changes()[3])
    tables.step_all(connection, only=("fleet",))
    feed.follow(connection)
    left = {one.node_id for one in _considered(connection, feed, "acct_cash", LATER_US)}
    assert left == nodes - {SIZE.node(1)}
