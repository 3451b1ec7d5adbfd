"""The registry of decisions: which state a stream folds to, and which function decides a command.

Each file of the domain names what it adds: STREAMS, kind -> (initial state, evolve), and
DECIDERS, command type -> decide(command, world). Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from domain import (
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
from domain.stream import Change, World

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
for _file in _FILES:
    assert not STREAMS.keys() & _file.STREAMS.keys(), _file
    assert not DECIDERS.keys() & _file.DECIDERS.keys(), _file
    STREAMS.update(_file.STREAMS)
    DECIDERS.update(_file.DECIDERS)


def initial(kind: str) -> Any:
    """The state of a stream of this kind before its first fact."""
    return STREAMS[kind][0]


def evolve(kind: str, state: Any, fact: Any) -> Any:
    """The state after one more fact. Never refuses: what was recorded, happened."""
    return STREAMS[kind][1](state, fact)


def decide(command: Any, world: World) -> list[Change]:
    """What the command leads to in this world. Raises Refused."""
    return list(DECIDERS[type(command)](command, world))
