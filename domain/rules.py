"""The registry of decisions: which state a stream folds to, and which function decides a command.

Each file of the domain names what it adds: STREAMS, kind -> (initial state, evolve), and
DECIDERS, command type -> decide(command, world). Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from domain import account_closing
from domain.chain import burn
from domain.chain import payout_root as payout
from domain.chain import transaction as chain_tx
from domain.corrections import dispute, dispute_opening, dispute_ruling, late_usage, sla
from domain.corrections import reversal as funds_taken
from domain.epochs import epoch, forfeit, policy, reward_correction
from domain.fleet import (
    device,
    edge_device,
    executor_key,
    licence,
    maintenance,
    node,
    provider,
    revenue_share,
    storage_node,
)
from domain.fleet import key_rotation as node_rotation
from domain.fleet import kinds as resource_kind
from domain.fleet import roles as node_role
from domain.funds import (
    budget,
    card_money,
    debt,
    deposit,
    funding,
    payment,
    payment_terms,
    promotion,
    top_up,
)
from domain.governance import breakers, grant
from domain.governance import proposal as policy_proposal
from domain.governance import vote as policy_vote
from domain.income import (
    adjustment,
    cash_out,
    invoice,
    maturity,
    region_pool,
    region_sharing,
    region_terms,
)
from domain.income import cash_out_matching as payout_matching
from domain.jobs import gang, job, task_queue
from domain.jobs import parts as job_parts
from domain.lease import countersign, lease, reserved_term
from domain.leasing import accrual as lease_accrual
from domain.leasing import bidding, drain, escrow_sharing
from domain.leasing import gangs as gang_life
from domain.leasing import life as lease_life
from domain.leasing import other_resources as resource_usage
from domain.leasing import request as lease_request
from domain.leasing import reservation as lease_reservation
from domain.leasing import top_up as lease_top_up
from domain.leasing import work as lease_work
from domain.market import auction, offer, offer_prices, standing_bid
from domain.metering import pin
from domain.parties import account, counterparty, webhook
from domain.parties import client as compute_client
from domain.pools import group, pool, quota
from domain.pools import queue as pool_queue
from domain.prices import price_feed, tariff
from domain.refusal import Reason
from domain.stream import Change, World
from domain.trust import attribute, challenge
from domain.trust import record as trust_record

Evolve = Callable[[Any, Any], Any]
Decide = Callable[[Any, World], Sequence[Change]]

_FILES = (
    account,
    account_closing,
    adjustment,
    attribute,
    auction,
    bidding,
    breakers,
    budget,
    burn,
    card_money,
    cash_out,
    chain_tx,
    challenge,
    compute_client,
    counterparty,
    countersign,
    debt,
    deposit,
    device,
    dispute,
    dispute_opening,
    dispute_ruling,
    drain,
    edge_device,
    epoch,
    escrow_sharing,
    executor_key,
    forfeit,
    funding,
    funds_taken,
    gang,
    gang_life,
    grant,
    group,
    invoice,
    job,
    job_parts,
    late_usage,
    lease,
    lease_accrual,
    lease_life,
    lease_request,
    lease_reservation,
    lease_top_up,
    lease_work,
    licence,
    maintenance,
    maturity,
    node,
    node_role,
    node_rotation,
    offer,
    offer_prices,
    payment,
    payment_terms,
    payout,
    payout_matching,
    pin,
    policy,
    policy_proposal,
    policy_vote,
    pool,
    pool_queue,
    price_feed,
    promotion,
    provider,
    quota,
    region_pool,
    region_sharing,
    region_terms,
    reserved_term,
    resource_kind,
    resource_usage,
    revenue_share,
    reward_correction,
    sla,
    standing_bid,
    storage_node,
    tariff,
    task_queue,
    top_up,
    trust_record,
    webhook,
)

STREAMS: dict[str, tuple[Any, Evolve]] = {}
DECIDERS: dict[type[Any], Decide] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {}
"""What the commands that declare it can be refused for."""
for _file in _FILES:
    assert not STREAMS.keys() & _file.STREAMS.keys(), _file
    assert not DECIDERS.keys() & _file.DECIDERS.keys(), _file
    STREAMS.update(_file.STREAMS)
    DECIDERS.update(_file.DECIDERS)
    REFUSES.update(getattr(_file, "REFUSES", {}))


def refused_by(*commands: type[Any], never: Iterable[Reason] = ()) -> tuple[Reason, ...]:
    """What any of these commands can be refused for, each reason once. `never`: what cannot
    happen, because an earlier command of the same append saw to it.
    """
    found = dict.fromkeys(reason for command in commands for reason in REFUSES[command])
    return tuple(reason for reason in found if reason not in set(never))


def initial(kind: str) -> Any:
    """The state of a stream of this kind before its first fact."""
    return STREAMS[kind][0]


def evolve(kind: str, state: Any, fact: Any) -> Any:
    """The state after one more fact. Never refuses: what was recorded, happened."""
    return STREAMS[kind][1](state, fact)


def decide(command: Any, world: World) -> list[Change]:
    """What the command leads to in this world. Raises Refused."""
    return list(DECIDERS[type(command)](command, world))
