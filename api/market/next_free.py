"""When the next matching GPU is free, for a caller who was refused because all of them are held."""

from __future__ import annotations

from collections import defaultdict

from api.process.service import Service
from domain.market.dimensions import Need
from domain.market.free_room import Held, free_at_us
from projections.fleet.fleet import FLEET
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.market import feed as fleet_feed
from projections.market.match import lacking_room

NODES_MAX = 100
"""Nodes whose leases are looked at: with more, the moment told is one of theirs, and holds too."""


def next_free_us(service: Service, need: Need, members: int = 1) -> int | None:
    """By when at the latest there is room for so many leases of a need, as leases end now; None:
    not known.
    """
    with service.connection() as connection:
        service.follow(connection, [FLEET, LEASES])
        fees = fleet_feed.fees(connection, need.at_us)
        nodes = service.fleet.ask(
            connection,
            lambda columns, _: lacking_room(columns, need, fees, NODES_MAX),
            follow=False,
        )
        devices = [one.device_id for node in nodes for one in node.devices]
        found = leases.read_ends(connection, devices)
    held: dict[str, list[Held]] = defaultdict(list)
    for one in found:
        held[one.device_id].append(Held(one.share_ppm, one.mem_ppm, one.ends_us))
    return free_at_us(need, nodes, held, members)
