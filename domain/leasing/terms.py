"""What a match of a lease and an offer promises, checked against the streams themselves.

    usage fee <= price per GPU-hour <= the renter's cap            of every match there is

The match is made elsewhere, from views that may be late (`domain/market/matching.py`); what is
promised is decided here, when a quote is made and again when it is taken. Price, tariff and shares
are locked with it, whatever is published later.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.fleet.device import DeviceReserved, DeviceState, device_of
from domain.fleet.maintenance import window_within
from domain.fleet.node import existing_node
from domain.fleet.provider import existing_provider
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import OwnerShare, shares_of
from domain.frozen import replace
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import WHOLE
from domain.jobs.job import existing_job, job_of
from domain.lease.lease import (
    MIN_RUNWAY_US,
    FederatedTerms,
    Lease,
    LeaseRequested,
    LeaseReserved,
    ReserveLease,
    lease_of,
)
from domain.lease.turns import QuoteLease
from domain.leasing.demands import require_demands
from domain.market.offer import OfferPublished, existing_offer, offer_of
from domain.market.reasons import MarketReason
from domain.market.sharing import hold_devices, require_offered, shared
from domain.money import Amount, credit
from domain.parties.account import account_of
from domain.parties.counterparty import refusal_between
from domain.parties.reasons import PartiesReason
from domain.pools.group import stays_at_home
from domain.pools.reasons import PoolsReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import TariffPublished, sla_class, tariff_in_force, usage_fee
from domain.refusal import Refused
from domain.stream import World

MATCH_REFUSES = (
    MarketReason.OFFER_UNKNOWN,
    FleetReason.NODE_UNKNOWN,
    MarketReason.OFFER_WITHDRAWN,
    FleetReason.NODE_STATE,
    FleetReason.NODE_IN_MAINTENANCE,
    MarketReason.OFFER_MISMATCH,
    PartiesReason.COUNTERPARTY_DENIED,
    PartiesReason.QUOTA_EXHAUSTED,
    PoolsReason.BASE_FULL,
    FleetReason.DEVICE_UNKNOWN,
    HardwareReason.DEVICE_TAKEN,
    PartiesReason.UNKNOWN_MODE,
    HardwareReason.UNKNOWN_PROFILE,
    PartiesReason.SHARE_OUT_OF_RANGE,
    HardwareReason.MODE_NOT_SUPPORTED,
    PricesReason.GPU_CLASS_UNPRICED,
    PricesReason.TARIFF_UNKNOWN,
    PricesReason.PRICE_ABOVE_CAP,
)
"""What a match can be refused for, when it is quoted and again when it is reserved."""


def matched_terms(
    asked: LeaseRequested, match: ReserveLease | QuoteLease, price: Amount | None, world: World
) -> tuple[LeaseReserved, list[DeviceReserved]]:
    """The terms of a match and what each device gets, checked against the streams themselves.
    `price`: what was quoted; None: the offer's, or the usage fee on the renter's own node.

    Raises Refused: OFFER_UNKNOWN, NODE_UNKNOWN, OFFER_WITHDRAWN, NODE_STATE, NODE_IN_MAINTENANCE,
    BASE_FULL, OFFER_MISMATCH, GPU_CLASS_UNPRICED, TARIFF_UNKNOWN, PRICE_ABOVE_CAP.
    """
    published = existing_offer(world, match.offer_id)
    node = existing_node(world, match.node_id)
    if not offer_of(world, match.offer_id).is_open:
        raise Refused(MarketReason.OFFER_WITHDRAWN, offer_id=match.offer_id)
    if not node.is_matchable:
        raise Refused(FleetReason.NODE_STATE, node_id=match.node_id, phase=node.phase)
    require_no_maintenance(match.node_id, match.at_us, match.at_us + (asked.term_us or 1), world)
    if published.node_id != match.node_id:
        raise Refused(MarketReason.OFFER_MISMATCH, offer_id=match.offer_id)
    devices = [device_of(world, device_id) for device_id in match.device_ids]
    provider = existing_provider(world, published.provider_id)
    is_own = provider.account_id == asked.account_id
    _check_parties(asked, provider.account_id, world, is_own=is_own)
    if not is_own and match.looked.has_base and rents_nothing(asked, world):
        raise Refused(PoolsReason.BASE_FULL, project_id=asked.project_id)
    if not (is_own or node.verdict.sellable):
        raise Refused(
            MarketReason.OFFER_MISMATCH, dimension="sellable", failing=node.verdict.stopping
        )
    _check_devices(match, asked, published, devices, is_own=is_own)
    require_demands(asked, match, published, node, devices[0], provider.account_id, world)
    held = hold_devices(asked.lease_id, asked, devices, match.at_us)
    terms = _terms(asked, published, devices[0], provider.account_id, match.at_us, world)
    terms = shared(terms, held)
    if price is not None and not is_own:
        terms = replace(terms, price_per_gpu_hour=price)
    cap_units = asked.max_price_per_gpu_hour.units
    if terms.price_per_gpu_hour.units > cap_units:
        raise Refused(
            PricesReason.PRICE_ABOVE_CAP, cap=cap_units, price=terms.price_per_gpu_hour.units
        )
    if terms.price_per_gpu_hour < terms.fee_per_gpu_hour:
        # Offered under an earlier tariff, or for devices of another class: no charge could pay it.
        raise Refused(MarketReason.OFFER_MISMATCH, usage_fee=terms.fee_per_gpu_hour.units)
    return terms, held


def quoted_terms(lease: Lease, command: QuoteLease, world: World) -> LeaseReserved:
    """What a quote of these devices promises. Raises Refused like `matched_terms`."""
    assert lease.requested is not None
    return matched_terms(lease.requested, command, command.price_per_gpu_hour, world)[0]


def require_no_maintenance(node_id: str, from_us: int, until_us: int, world: World) -> None:
    """A fixed term never reaches into a maintenance that was announced, and no lease starts in one.

    Raises Refused: NODE_IN_MAINTENANCE.
    """
    window = window_within(world, node_id, from_us, until_us)
    if window is not None:
        raise Refused(
            FleetReason.NODE_IN_MAINTENANCE,
            node_id=node_id,
            maintenance_id=window.told.maintenance_id,
            from_us=window.told.from_us,
        )


def rents_nothing(asked: LeaseRequested, world: World) -> bool:
    """Whether a renter that has nodes of its own takes no other's: its project said so, and the
    job names no pool, which would be its base.
    """
    names_pool = asked.constraints is not None and asked.constraints.pool_id is not None
    is_elsewhere = asked.overflow or names_pool
    return not is_elsewhere and stays_at_home(world, asked.account_id, asked.project_id)


def _check_parties(
    asked: LeaseRequested, provider_account_id: str, world: World, *, is_own: bool
) -> None:
    """Raises Refused: COUNTERPARTY_DENIED by the lists of either side, and of the client; for a
    lease whose quotas are full QUOTA_EXHAUSTED, when it would run on what the renter owns.
    """
    if asked.overflow and is_own:
        raise Refused(
            PartiesReason.QUOTA_EXHAUSTED, rule="what is above the quota is rented elsewhere"
        )
    if is_own:
        return
    refused = refusal_between(world, (asked.account_id, asked.client_id), provider_account_id)
    if refused is not None:
        raise refused


def _check_devices(
    command: ReserveLease | QuoteLease,
    asked: LeaseRequested,
    offer: OfferPublished,
    devices: Sequence[DeviceState],
    *,
    is_own: bool,
) -> None:
    """As many distinct devices as asked, all of the offer's node, of an allowed model."""
    if len(set(command.device_ids)) != asked.gpu_count or len(devices) != asked.gpu_count:
        raise Refused(MarketReason.OFFER_MISMATCH, gpu_count=asked.gpu_count)
    if asked.pay_with not in (None, offer.pay_with) and not is_own:
        raise Refused(MarketReason.OFFER_MISMATCH, settlement=offer.pay_with)
    require_offered(asked, offer)
    if offer.available_until_us is not None:
        end_us = command.at_us + (asked.term_us or MIN_RUNWAY_US)
        if offer.available_until_us < end_us:
            raise Refused(MarketReason.OFFER_MISMATCH, available_until_us=offer.available_until_us)
    for device in devices:
        if device.node_id != command.node_id:
            raise Refused(MarketReason.OFFER_MISMATCH, node_id=command.node_id)
        assert device.registered is not None
        if asked.models and device.registered.model not in asked.models:
            raise Refused(MarketReason.OFFER_MISMATCH, model=device.registered.model)
        if device.gpu_class != devices[0].gpu_class:
            raise Refused(MarketReason.OFFER_MISMATCH, gpu_class=device.gpu_class)


def _terms(
    asked: LeaseRequested,
    offer: OfferPublished,
    device: DeviceState,
    provider_account_id: str,
    at_us: int,
    world: World,
) -> LeaseReserved:
    """The price and the tariff this lease will keep, whatever is published later."""
    tariff = tariff_in_force(world, at_us)
    if device.gpu_class is None:
        raise Refused(PricesReason.GPU_CLASS_UNPRICED, node_id=offer.node_id)
    fee = usage_fee(tariff, device.gpu_class)
    own = provider_account_id == asked.account_id
    return LeaseReserved(
        lease_id=asked.lease_id,
        job_id=asked.job_id,
        account_id=asked.account_id,
        client_id=asked.client_id,
        project_id=asked.project_id,
        end_user_ref=asked.end_user_ref,
        node_id=offer.node_id,
        provider_id=offer.provider_id,
        provider_account_id=provider_account_id,
        offer_id=offer.offer_id,
        device_ids=(),
        share_ppm=asked.share_ppm,
        mem_ppm=asked.mem_ppm,
        gpu_class=device.gpu_class,
        price_per_gpu_hour=fee if own else offer.price_per_gpu_hour,
        pay_with="cash" if own else offer.pay_with,
        own=own,
        tariff_version=tariff.version,
        fee_per_gpu_hour=fee,
        provider_share_ppm=tariff.provider_share_ppm,
        burn_share_ppm=tariff.burn_share_ppm,
        escrow=(),
        at_us=at_us,
        split=tariff.split,
        client_account_id=_client_with_a_share(asked, tariff, world),
        owners=_owners_with_a_share(offer.node_id, world),
        federated=_federated(asked, tariff, world),
        sla_class=None if asked.sla_class is None else sla_class(tariff, asked.sla_class).name,
        reclaim_window_us=offer.terms.reclaim_window_us,
        interruptible=_is_interruptible(asked, offer),
        gang_id=asked.gang_id,
        mode=WHOLE,  # and what `shared` says, as the devices and the parts
        mig=None,
        counted=(),
        quotas=(),
        prepaid=None,
        pool_id=None,
        quote_id=None,
        by=None,
        meter_maxima=asked.meter_maxima,
    )


def _is_interruptible(asked: LeaseRequested, offer: OfferPublished) -> bool:
    """Whether the lease may be paused: the renter asked for it, and the offer takes such leases."""
    wants = asked.constraints is not None and bool(asked.constraints.interruptible)
    return wants and bool(offer.terms.interruptible)


def _client_with_a_share(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> str | None:
    """The compute client that brought the job, where the tariff has a share for clients (R-17)."""
    split = tariff.split
    if split is None or "client" not in {split.residual, *(one.bucket for one in split.shares)}:
        return None
    client = account_of(world, asked.client_id)
    return asked.client_id if client.kind == "client" and client.is_open else None


def _owners_with_a_share(node_id: str, world: World) -> tuple[OwnerShare, ...]:
    """The owners the revenue is split among (K-1). What was a closed account's is the provider's:
    nobody could ever spend what such an account earns.
    """
    shares = shares_of(world, node_id)
    return tuple(one for one in shares if account_of(world, one.account_id).is_open)


def _federated(
    asked: LeaseRequested, tariff: TariffPublished, world: World
) -> FederatedTerms | None:
    """The federated fee of a lease that is not its job's creator's: cross-project work (C-21)."""
    job, fees = existing_job(world, asked.job_id), tariff.federated
    if job.federated is None or fees is None or job.account_id == asked.account_id:
        return None
    fee = fees.training_per_hour if job.federated == "training" else fees.inference_per_hour
    if fees.unit == "job":
        carrier = job_of(world, asked.job_id).fee_carrier
        if carrier is not None and lease_of(world, carrier).is_live:
            fee = credit(0)
    return FederatedTerms(account_id=job.account_id, kind=job.federated, fee_per_hour=fee)
