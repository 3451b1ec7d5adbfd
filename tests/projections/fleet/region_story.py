"""How a region grows, where it is, who runs it and who waits for it; what its nodes measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.duration import DAY_US
from domain.fleet import condition, growth
from domain.fleet import revenue_share as revenue
from domain.regions import (
    administrators,
    boundaries,
    neighbour_proofs,
    neighbours,
    reachability,
    wait_list,
)
from domain.stream import Stream

HOMES = "region_2"


def grown(nodes: tuple[str, ...], at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact of regions, some of them more than once, and some that undo others."""
    at_us = at["at_us"]
    for workers_min, phase in ((0, "waitlisted"), (2, "opening")):
        terms = growth.GrowthTerms(workers_min=workers_min, workers_max=9)
        stream = growth.growth_stream(HOMES)
        yield stream, growth.RegionGrowthSet(region_id=HOMES, terms=terms, **at)
        yield stream, growth.RegionPhaseSet(region_id=HOMES, phase=phase, cause="hand", **at)
    for number, node_id in enumerate(nodes[:3]):
        for role in ("worker", "ingress" if number == 0 else "worker"):
            fact = growth.RegionMemberSet(
                region_id="region_1",
                node_id=node_id,
                role=role,
                ingress_node_id=nodes[0] if number else None,
                models=("A100",),
                has_seats=False,
                at_us=at_us,
            )
            yield growth.growth_stream("region_1"), fact
    left = growth.RegionMemberLeft(region_id="region_1", node_id=nodes[1], at_us=at_us)
    yield growth.growth_stream("region_1"), left
    yield from _places(at)
    yield from _measured(nodes, at_us)
    yield from _owned(nodes[0], at)


def _places(at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    for east in (None, 13_405_000):
        fact = boundaries.RegionPlaceSet(
            region_id=HOMES,
            boundaries=(boundaries.Boundary("state", "DE-BE"),),
            address=None if east is None else "berlin.example:8420",
            latitude_e6=None if east is None else 52_520_000,
            longitude_e6=east,
            **at,
        )
        yield boundaries.place_stream(HOMES), fact
    for account_id in ("acct_cash", "acct_b"):
        yield (
            administrators.admins_stream(HOMES),
            administrators.RegionAdminGranted(
                region_id=HOMES, account_id=account_id, cause="hand", **at
            ),
        )
    yield (
        administrators.admins_stream(HOMES),
        administrators.RegionAdminRevoked(region_id=HOMES, account_id="acct_b", **at),
    )
    for list_id in (HOMES, "place_FR"):
        stream = wait_list.wait_list_stream(list_id)
        for number, account_id in enumerate(("acct_cash", "acct_b"), 1):
            yield (
                stream,
                wait_list.RegionWaitlistJoined(
                    list_id=list_id,
                    account_id=account_id,
                    number=number,
                    latitude_e6=48_850_000 if number == 1 else None,
                    longitude_e6=2_350_000 if number == 1 else None,
                    **at,
                ),
            )
    stream = wait_list.wait_list_stream(HOMES)
    yield stream, wait_list.RegionWaitlistLeft(list_id=HOMES, account_id="acct_b", **at)
    yield (
        stream,
        wait_list.WaitListTermsSet(list_id=HOMES, threshold=1, first_user_administers=True, **at),
    )
    yield (
        stream,
        wait_list.RegionThresholdReached(list_id=HOMES, waiting=1, threshold=1, at_us=at["at_us"]),
    )


def _measured(nodes: tuple[str, ...], at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    stream = reachability.reach_stream(nodes[0])
    control = reachability.Latency("control", 18_000, 5)
    ingress = reachability.Latency("ingress", 9_000, 5)
    for ways in ((control, ingress), (reachability.Latency("control", 17_000, 3),)):
        yield (
            stream,
            reachability.NodeLatencyReported(
                node_id=nodes[0], region_id="region_1", ways=ways, at_us=at_us
            ),
        )
    for proof in ("", "ab" * 64):
        yield (
            neighbours.neighbours_stream(nodes[0]),
            neighbours.NodeNeighboursTried(
                node_id=nodes[0],
                region_id="region_1",
                challenge=at_us,
                addresses=("10.0.0.7:7714",),
                tried=(neighbour_proofs.Tried(nodes[1], proof),),
                key_id="0" * 16,
                signature="00" * 64,
                at_us=at_us,
            ),
        )
    mining = condition.IdleMiningSet(
        node_id=nodes[0], is_on=True, wallet="0x" + "1" * 40, by="mem_1", at_us=at_us
    )
    yield Stream("node", nodes[0]), mining
    for number in range(2):
        from_us = at_us // DAY_US * DAY_US + number * 1_000
        yield (
            stream,
            reachability.IngressBytesReported(
                node_id=nodes[0],
                region_id="region_1",
                from_us=from_us,
                until_us=from_us + 1_000,
                bytes_in=10,
                bytes_out=20,
                key_id="0" * 16,
                signature="00" * 64,
                at_us=at_us,
            ),
        )


def _owned(node_id: str, at: dict[str, Any]) -> Iterator[tuple[Stream[Any], Any]]:
    stream = revenue.revenue_stream(node_id)
    offered = revenue.NodeTransferOffered(
        node_id=node_id,
        from_account_id="acct_cash",
        to_account_id="acct_b",
        expires_at_us=at["at_us"] + 9,
        **at,
    )
    yield stream, offered
    owners = (revenue.OwnerShare("acct_b", 250_000), revenue.OwnerShare("acct_cash", 1))
    for shares in (owners, owners[:1]):
        transferred = revenue.NodeOwnershipTransferred(
            node_id=node_id,
            from_account_id="acct_cash",
            to_account_id="acct_b",
            share_ppm=250_000,
            shares=shares,
            **at,
        )
        yield stream, transferred
