"""The address of a controller contract answers for one pool, for ever.

    pools of an address <= 1          the address's own stream says which

Without this, two pools could show the same contract, and a renter could take the metadata and
heads of one for those of the other. Source: row J-4.
"""

from __future__ import annotations

import re
from typing import Any

from domain.parties.reasons import PartiesReason
from domain.pools.reasons import PoolsReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNamed:
    """Stream `controller:{address}`, in lower case."""

    address: str
    pool_id: str
    at_us: int


_ADDRESS = re.compile(r"0x[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class ControllerAddress:
    pool_id: str | None = None


def evolve(state: ControllerAddress, fact: ControllerNamed) -> ControllerAddress:
    del state
    return ControllerAddress(fact.pool_id)


def controller_stream(address: str) -> Stream[ControllerAddress]:
    return Stream("controller", address.lower())


def name_controller(world: World, address: str, pool_id: str, at_us: int) -> Change:
    """The address is this pool's from now on.

    Raises Refused: BAD_ADDRESS, CONTROLLER_TAKEN.
    """
    if not _ADDRESS.fullmatch(address.lower()):
        raise Refused(PartiesReason.BAD_ADDRESS, controller_address=address)
    stream = controller_stream(address)
    if world.state(stream).pool_id is not None:
        raise Refused(PoolsReason.CONTROLLER_TAKEN, controller_address=address)
    return Change(stream, ControllerNamed(address=address.lower(), pool_id=pool_id, at_us=at_us))


STREAMS: dict[str, tuple[Any, Any]] = {"controller": (ControllerAddress(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
