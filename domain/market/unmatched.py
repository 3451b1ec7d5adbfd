"""A request that found no node: what was asked, and what each demand left over of the fleet (R-5).

    facts of one account in ten minutes <= 6      of one need in ten minutes <= 1

A choice of nothing is a choice, too: its inputs are kept like those of a match. The refusal itself
is recorded with the idempotency key; this is what it was decided from. It is kept of an account
that holds credits, so a stranger fills no log; `times` is how often the account was refused for the
same since it was last recorded, as the process counted that recorded it. A request that waits has
its own facts and needs none of this (`domain/pools/queue.py`, `domain/market/standing_bid.py`).

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from domain.duration import MINUTE_US
from domain.funds.funding import sources_of
from domain.hardware.constraints import Constraints
from domain.lease.choice import Narrowed
from domain.lease.lease import LeaseRequested
from domain.market.explanation import Relaxation
from domain.market.offer import SETTLEMENTS
from domain.money import Amount
from domain.record import dataclass
from domain.stream import Change, Stream, World

WINDOW_US = 10 * MINUTE_US
NEEDS_MAX = 6
"""Different needs of one account that are recorded in a window."""

# What can happen.


@dataclass(frozen=True, slots=True)
class Eased:
    """The nearest single demand whose easing gives a match, on so many nodes."""

    field: str
    required: str
    offered: str
    nodes: int
    distance_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUnmatched:
    """Stream `unmatched:{account_id}`."""

    account_id: str
    client_id: str
    project_id: str
    code: str  # of the refusal
    need_sha256: str
    members: int  # of a gang; 1: a lease
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]
    max_price_per_gpu_hour: Amount
    constraints: Constraints | None
    pricing: str | None
    fleet_position: int  # position of the fleet projection that was asked
    nodes: int  # looked at
    narrowed: tuple[Narrowed, ...]  # by each demand, in the order of asking
    eased: Eased | None
    times: int
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnmatched:
    """Keep why a request was refused; `asked`: what it would have been recorded as."""

    asked: LeaseRequested
    members: int
    code: str
    fleet_position: int
    nodes: int
    narrowed: tuple[Narrowed, ...]
    eased: Relaxation | None
    times: int
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class Unmatched:
    """The newest needs that were recorded, each with its time."""

    recent: tuple[tuple[str, int], ...] = ()


def evolve(state: Unmatched, fact: RequestUnmatched) -> Unmatched:
    return Unmatched((*state.recent, (fact.need_sha256, fact.at_us))[-NEEDS_MAX:])


def stream_of(account_id: str) -> Stream[Unmatched]:
    return Stream("unmatched", account_id)


# How we decide.

_NEED = (
    "gpu_count",
    "share_ppm",
    "mem_ppm",
    "models",
    "max_price_per_gpu_hour",
    "pay_with",
    "term_us",
    "sla_class",
    "constraints",
    "pricing",
    "months",
)


def need_sha256(asked: LeaseRequested, members: int) -> str:
    """What makes two requests of an account the same: all that a node has to meet."""
    told = asdict(asked)
    need = {"members": members, **{name: told[name] for name in _NEED}}
    return sha256(json.dumps(need, sort_keys=True, default=str).encode()).hexdigest()


def is_kept(world: World, account_id: str, need: str, at_us: int) -> bool:
    """Whether a refusal of this need would be recorded now."""
    recent = world.state(stream_of(account_id)).recent
    since = [known for known, told_us in recent if told_us > at_us - WINDOW_US]
    if need in since or len(since) >= NEEDS_MAX:
        return False
    return any(
        one.units > 0 for way in SETTLEMENTS for one in sources_of(world, account_id, way, at_us)
    )


def decide(command: RecordUnmatched, world: World) -> list[Change]:
    """What was recorded lately, and of an account without credits, changes nothing."""
    asked, eased = command.asked, command.eased
    need = need_sha256(asked, command.members)
    if not is_kept(world, asked.account_id, need, command.at_us):
        return []
    fact = RequestUnmatched(
        account_id=asked.account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        code=command.code,
        need_sha256=need,
        members=command.members,
        gpu_count=asked.gpu_count,
        share_ppm=asked.share_ppm,
        mem_ppm=asked.mem_ppm,
        models=asked.models,
        max_price_per_gpu_hour=asked.max_price_per_gpu_hour,
        constraints=asked.constraints,
        pricing=asked.pricing,
        fleet_position=command.fleet_position,
        nodes=command.nodes,
        narrowed=command.narrowed,
        eased=None if eased is None else Eased(**asdict(eased)),
        times=command.times,
        at_us=command.at_us,
    )
    return [Change(stream_of(asked.account_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"unmatched": (Unmatched(), evolve)}
DECIDERS: dict[type[Any], Any] = {RecordUnmatched: decide}
