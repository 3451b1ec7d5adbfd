"""A fleet of equal nodes for tests of pools and gangs, and what is free of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.fleet.device import DeviceRegistered, DeviceState, free_mem, free_share
from domain.fleet.node import NodeState
from domain.market.matching import FreeDevice, OfferedNode
from domain.parties.account import AccountOpened
from domain.stream import Stream
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import DEVICES, NODE, NOON_US, OFFER, RENTER, scene
from tests.given import Scene

CASH = 10_000_000_000
OTHER = "acct_other"


def node(number: int) -> str:
    return f"node_{number:08d}"


def device(number: int, slot: int) -> str:
    return f"GPU-{number}-{slot}"


def fleet_of(nodes: int, gpus: int) -> Scene:
    """`nodes` active nodes of `gpus` A100s each, all on offer, and two renters with money."""
    base = scene({f"party:{RENTER}:cash": CASH, f"party:{OTHER}:cash": CASH})
    shared = [told for told in base.past if told[0].kind not in ("node", "device", "offer")]
    made: list[tuple[Stream[Any], Any]] = [
        (
            Stream("account", OTHER),
            AccountOpened(account_id=OTHER, kind="party", opened_by="op", at_us=NOON_US),
        )
    ]
    of_node = [fact for stream, fact in base.past if stream.kind == "node"]
    registered = next(fact for _, fact in base.past if isinstance(fact, DeviceRegistered))
    offered = next(fact for stream, fact in base.past if stream.id == OFFER)
    assert registered.device_id == DEVICES[0]
    for number in range(nodes):
        for fact in of_node:
            changes: dict[str, Any] = {"node_id": node(number)}
            if hasattr(fact, "devices"):
                changes["devices"] = tuple(
                    replace(fact.devices[0], device_id=device(number, slot)) for slot in range(gpus)
                )
            made.append((Stream("node", node(number)), replace(fact, **changes)))
        for slot in range(gpus):
            one = replace(registered, device_id=device(number, slot), node_id=node(number))
            made.append((Stream("device", one.device_id), one))
        offer = replace(offered, offer_id=f"offer_{number}", node_id=node(number))
        made.append((Stream("offer", offer.offer_id), offer))
    assert NODE not in {stream.id for stream, _ in made}
    return Scene().given(*shared, *made).having(base.balances)


def free_nodes(world: Booked) -> list[OfferedNode]:
    """What the fleet's projection would tell: every node, with what is free of each device."""
    found = []
    for stream in sorted({change.stream for change in world.log}, key=lambda one: one.id):
        state = world.state(stream)
        if not isinstance(state, NodeState):
            continue
        devices = []
        for device_id in state.device_ids:
            held = world.state(Stream("device", device_id))
            assert isinstance(held, DeviceState)
            devices.append(FreeDevice(device_id, "A100", free_share(held), free_mem(held)))
        number = int(stream.id.removeprefix("node_"))
        found.append(
            OfferedNode(
                node_id=stream.id,
                offer_id=f"offer_{number}",
                account_id="acct_owner",
                price=2_780_000,
                pay_with="cash",
                fractions=True,
                served_gpu_us=0,
                devices=tuple(devices),
            )
        )
    return found
