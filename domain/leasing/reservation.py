"""How a match becomes a reservation: devices, disk, credits, budgets and quotas, all or none.

    reserved  =>  its devices, its node's disk and network, its escrow, its budgets and its quotas
                  hold it in the same append

The match is checked again against the streams (`domain/leasing/terms.py`), and so is its price
(`domain/market/price_gate.py`): a view that is late does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.cloud.quotas import take
from domain.cloud.reasons import CloudReason
from domain.fleet.device import device_of, device_stream
from domain.fleet.node import NodeState, existing_node
from domain.fleet.provider import provider_of
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.funding import require_no_debt
from domain.funds.reasons import FundsReason
from domain.jobs.job import FederatedFeeCarried, existing_job, job_stream
from domain.lease.budgets import count_budgets
from domain.lease.funds import FEDERATED, for_purpose
from domain.lease.holding import hold_for_terms
from domain.lease.lease import (
    Lease,
    LeaseRequested,
    LeaseReserved,
    MatchDecided,
    ReserveLease,
    evolve,
    lease_of,
    lease_stream,
    party_of,
)
from domain.lease.reasons import LeaseReason
from domain.lease.turns import LeaseQuoted
from domain.leasing import escrow_sharing
from domain.leasing.demands import room_asked, room_promised
from domain.leasing.other_resources import ResourceHeld, hold_resources
from domain.leasing.other_resources import stream_of as resource_stream
from domain.leasing.terms import MATCH_REFUSES, matched_terms
from domain.market.offer import existing_offer
from domain.market.price_gate import priced
from domain.market.reasons import MarketReason
from domain.parties.reasons import PartiesReason
from domain.pools.group import RENT, Holder, overflow_of, pool_groups_of, quotas_of
from domain.pools.pool import pool_of
from domain.pools.queue import queue_of
from domain.pools.quota import hold
from domain.pools.reasons import PoolsReason
from domain.prices.provider_kinds import is_cloud
from domain.prices.reasons import PricesReason
from domain.refusal import Reason, Refused
from domain.sites.reasons import SitesReason
from domain.sites.reservation import hold as hold_name
from domain.storage import node_room, volume
from domain.storage.reasons import StorageReason
from domain.stream import Change, World


def decide_reserve(command: ReserveLease, world: World) -> list[Change]:
    """Take a match: everything the lease holds, or nothing at all.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE; QUEUE_MOVED; like `matched_terms` and `priced`;
    UNPAID_DEBT, CREDIT_TOO_LOW, BUDGET_EXHAUSTED, QUOTA_EXHAUSTED; VOLUME_UNKNOWN, VOLUME_STATE,
    VOLUME_REGION, CLOUD_QUOTA_FULL, RESERVATION_UNKNOWN, RESERVATION_HELD.
    """
    lease = lease_of(world, command.lease_id)
    asked = lease.requested
    assert asked is not None
    quote = _accepted(lease, command)
    price = None if quote is None else quote.price_per_gpu_hour
    terms, held = matched_terms(asked, command, price, world)
    node = existing_node(world, command.node_id)
    _require_turn(asked, node, world)
    reserved = replace(terms, pool_id=node.pool_id, quote_id=command.quote_id, by=command.by)
    if quote is not None:
        reserved = replace(reserved, reclaim_window_us=quote.reclaim_window_us)
    price_rule = priced(world, asked, reserved, quote, command.at_us)
    reserved = replace(reserved, prepaid=price_rule.prepaid)
    if asked.escrow_id is None:
        reserved = replace(reserved, escrow=hold_for_terms(asked, reserved, world))
    beside = hold_resources(asked, reserved, world)
    reserved, budgets = _counted(asked, reserved, beside, world)
    reserved, quotas = _within_quotas(asked, reserved, world)
    cloud = _within_cloud_quota(reserved, node, world)
    named = _reservation_held(reserved, world)
    stream = lease_stream(command.lease_id)
    decided = _decided(command, price_rule.pricing)
    holding = [Change(device_stream(one.device_id), one) for one in held]
    holding += _room_and_volumes(command, asked, node, world)
    carried = _fee_carried(asked, reserved)
    changes = [Change(stream, decided), Change(stream, reserved), *holding]
    if asked.escrow_id is not None:
        require_no_debt(world, asked.account_id)
        changes += escrow_sharing.reserved(evolve(lease, reserved), world)
    held_beside = [Change(resource_stream(one.lease_id, one.meter), one) for one in beside]
    counted = [*budgets, *quotas, *cloud, *named]
    return [*changes, *carried, *held_beside, *counted, *price_rule.changes]


def _decided(command: ReserveLease, pricing: str | None) -> MatchDecided:
    """Why this node, with all that is needed to compute it again."""
    return MatchDecided(
        lease_id=command.lease_id,
        rule=command.rule,
        fleet_position=command.fleet_position,
        candidates=command.candidates,
        considered=command.considered,
        node_id=command.node_id,
        offer_id=command.offer_id,
        device_ids=command.device_ids,
        at_us=command.at_us,
        pricing=pricing,
        weights=command.weights,
        narrowed=command.narrowed or (),
    )


def _room_and_volumes(
    command: ReserveLease, asked: LeaseRequested, node: NodeState, world: World
) -> list[Change]:
    """What the lease takes of its node beside devices: disk and network, and the volumes it mounts.

    Raises Refused: like `node_room.take`; VOLUME_UNKNOWN, VOLUME_STATE, VOLUME_REGION.
    """
    promised = room_promised(existing_offer(world, command.offer_id))
    room = room_asked(asked)
    taken = node_room.take(world, command.node_id, command.lease_id, room, promised, command.at_us)
    assert node.joined is not None
    attached = volume.attach(
        world,
        asked.volumes,
        lease_id=command.lease_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        project_id=asked.project_id,
        node_id=command.node_id,
        region_id=node.joined.region_id,
        at_us=command.at_us,
    )
    return [*taken, *attached]


def _accepted(lease: Lease, command: ReserveLease) -> LeaseQuoted | None:
    """The quote that is taken; None: at the offer's price, straight from the request.

    Raises Refused: LEASE_STATE, OFFER_MISMATCH.
    """
    wrong = Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.quote_id is None:
        if lease.status != "requested":
            raise wrong
        return None
    quote = next((one for one in lease.quotes if one.quote_id == command.quote_id), None)
    if lease.status != "quoted" or quote is None:
        raise wrong
    if command.at_us >= quote.expires_at_us:
        raise Refused(
            FleetReason.LEASE_STATE, quote_id=quote.quote_id, expired_us=quote.expires_at_us
        )
    if (command.offer_id, command.device_ids) != (quote.offer_id, quote.device_ids):
        raise Refused(MarketReason.OFFER_MISMATCH, quote_id=quote.quote_id)
    return quote


def _require_turn(asked: LeaseRequested, node: NodeState, world: World) -> None:
    """A pool that keeps a queue serves those who wait, in turn. Raises Refused: QUEUE_MOVED."""
    if node.pool_id is None or not pool_of(world, node.pool_id).queues_requests:
        return
    queue = queue_of(world, node.pool_id)
    is_next = queue.turn is not None and queue.turn in (asked.lease_id, asked.gang_id)
    if queue.waiting and not is_next:
        raise Refused(PoolsReason.QUEUE_MOVED, pool_id=node.pool_id, waiting=len(queue.waiting))


def _counted(
    asked: LeaseRequested, reserved: LeaseReserved, beside: Sequence[ResourceHeld], world: World
) -> tuple[LeaseReserved, list[Change]]:
    """The escrow, and what is held for resources beside the GPU, counted against the budgets that
    have a cap. Raises Refused: BUDGET_EXHAUSTED.
    """
    party, escrow, at_us = party_of(asked), reserved.escrow, reserved.at_us
    own = (*for_purpose(escrow, None), *(part for one in beside for part in one.parts))
    counted, changes = count_budgets(world, party, asked.account_id, own, at_us)
    if reserved.federated is not None:
        creator, fee = reserved.federated.account_id, for_purpose(escrow, FEDERATED)
        theirs, more = count_budgets(world, party, creator, fee, at_us)
        counted, changes = (*counted, *theirs), [*changes, *more]
    return replace(reserved, counted=counted), changes


def _within_quotas(
    asked: LeaseRequested, reserved: LeaseReserved, world: World
) -> tuple[LeaseReserved, list[Change]]:
    """The lease, counted in its groups' and its client's quotas, or rented beside them.

    Raises Refused: QUOTA_EXHAUSTED.
    """
    holder = holder_of(asked, reserved.pool_id)
    if asked.overflow:
        if overflow_of(world, asked.account_id, asked.project_id) != RENT:
            raise Refused(
                PartiesReason.QUOTA_EXHAUSTED, rule="the project's overflow policy refuses"
            )
        if pool_groups_of(world, holder):
            raise Refused(
                PartiesReason.QUOTA_EXHAUSTED, rule="rented outside the pools with a quota"
            )
        return reserved, []
    gpu_ppm = len(reserved.device_ids) * reserved.share_ppm
    quota_ids = quotas_of(world, holder)
    changes = hold(world, quota_ids, asked.lease_id, gpu_ppm, reserved.at_us)
    counted = tuple(change.fact.quota_id for change in changes)
    return replace(reserved, quotas=counted), changes


def _within_cloud_quota(reserved: LeaseReserved, node: NodeState, world: World) -> list[Change]:
    """A lease on a machine of a cloud counts in the quota of its region (C-28).

    Raises Refused: CLOUD_QUOTA_FULL.
    """
    provider = provider_of(world, reserved.provider_id)
    if not is_cloud(world, provider.kind, reserved.at_us):
        return []
    assert node.joined is not None
    device = device_of(world, reserved.device_ids[0]).registered
    assert device is not None
    jobs, at_us = len(reserved.device_ids), reserved.at_us
    return take(world, node.joined.region_id, reserved.lease_id, device.model, jobs, at_us)


def _reservation_held(reserved: LeaseReserved, world: World) -> list[Change]:
    """The name and port that its job keeps, whichever machine it runs on (C-38).

    Raises Refused: RESERVATION_UNKNOWN, RESERVATION_HELD.
    """
    attached = existing_job(world, reserved.job_id).attached
    if attached is None or attached.reservation_id is None:
        return []
    lease_id, node_id = reserved.lease_id, reserved.node_id
    return hold_name(world, attached.reservation_id, lease_id, node_id, reserved.at_us)


def holder_of(asked: LeaseRequested, pool_id: str | None) -> Holder:
    """Whose quotas a lease counts in, on a node of this pool or of none."""
    return Holder(
        account_id=asked.account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        key_id=asked.key_id,
        pool_id=pool_id,
    )


def _fee_carried(asked: LeaseRequested, reserved: LeaseReserved) -> list[Change]:
    """Which lease carries a job's fee is remembered with the job, so no second one does."""
    federated = reserved.federated
    if federated is None or not federated.fee_per_hour.units:
        return []
    fact = FederatedFeeCarried(job_id=asked.job_id, lease_id=asked.lease_id, at_us=reserved.at_us)
    return [Change(job_stream(asked.job_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    ReserveLease: (
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        PoolsReason.QUEUE_MOVED,
        MarketReason.AUCTION_STATE,
        MarketReason.BID_UNKNOWN,
        MarketReason.BID_STATE,
        PricesReason.TERM_NOT_OFFERED,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PartiesReason.BUDGET_EXHAUSTED,
        StorageReason.VOLUME_UNKNOWN,
        StorageReason.VOLUME_STATE,
        StorageReason.VOLUME_REGION,
        CloudReason.CLOUD_QUOTA_FULL,
        SitesReason.RESERVATION_UNKNOWN,
        SitesReason.RESERVATION_HELD,
        *MATCH_REFUSES,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {ReserveLease: decide_reserve}
