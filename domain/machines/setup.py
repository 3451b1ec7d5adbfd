"""What an owner states about a machine: UPnP, exclusive access, and mining while it is idle.

    UPnP off behind a corporate firewall, on behind an internet provider             advised, told
    idle mining is on   ==>   the provider's account has a wallet that is paid       when turned on

Nobody checks these words, so they are told as stated. A device that no lease holds a part of is
mined in the capacity books while this is on, apart from idle and never usage of a lease
(`domain/hardware/capacity.py`). Rows C-10, C-32 and C-33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from domain.fleet.condition import UPLINKS, IdleMiningSet, NodeSetupStated
from domain.fleet.node import NodeState, existing_node, node_stream
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNodeSetup:
    node_id: str
    uplink: str | None
    upnp: bool | None
    exclusive_access: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdleMining:
    node_id: str
    is_on: bool
    by: str
    at_us: int


def advised_upnp(uplink: str | None) -> bool | None:
    """Off behind a corporate firewall, on behind an internet provider; None: not stated."""
    return None if uplink is None else uplink == "internet_provider"


def decide_setup(command: StateNodeSetup, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, UNKNOWN_MODE."""
    state = _standing(command.node_id, world)
    if command.uplink not in (None, *UPLINKS):
        raise Refused(PartiesReason.UNKNOWN_MODE, uplink=command.uplink)
    fact = NodeSetupStated(
        node_id=command.node_id,
        uplink=command.uplink,
        upnp=command.upnp,
        exclusive_access=command.exclusive_access,
        by=command.by,
        at_us=command.at_us,
    )
    known = state.condition.setup
    if known is not None and replace(fact, by=known.by, at_us=known.at_us) == known:
        return []
    return [Change(node_stream(command.node_id), fact)]


def decide_mining(command: SetIdleMining, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, ACCOUNT_CLOSED, WALLET_NEEDED."""
    state = _standing(command.node_id, world)
    if command.is_on == state.condition.is_mining:
        return []
    wallet = None
    if command.is_on:
        assert state.joined is not None
        account_id = existing_provider(world, state.joined.provider_id).account_id
        wallet = open_account(world, account_id).wallet_at(command.at_us)
        if wallet is None:
            raise Refused(FleetReason.WALLET_NEEDED, account_id=account_id)
    fact = IdleMiningSet(
        node_id=command.node_id,
        is_on=command.is_on,
        wallet=wallet,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(node_stream(command.node_id), fact)]


def _standing(node_id: str, world: World) -> NodeState:
    state = existing_node(world, node_id)
    if state.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=node_id, phase=state.phase)
    return state


STREAMS: dict[str, tuple[Any, Any]] = {}
DECIDERS: dict[type[Any], Any] = {StateNodeSetup: decide_setup, SetIdleMining: decide_mining}
