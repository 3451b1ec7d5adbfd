"""How a lease holds its devices: in one mode, with the same part of each of them.

    price_per_gpu_hour == ceil(offered x weight / share)     of a MIG instance; else as offered

A lease of a MIG profile pays for what the instance takes from others: its larger dimension, compute
or memory. GPU time stays the compute share, so the books of capacity add up, and the price of that
time is higher. The renter's own node costs the usage fee alone, whatever the mode.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.fleet.device import DeviceReserved, DeviceState, reserve
from domain.frozen import replace
from domain.hardware.sharing import Held, mode_of, price_weight_ppm
from domain.lease.lease import LeaseRequested, LeaseReserved, MigInstances
from domain.market.offer import OfferPublished, modes_of
from domain.market.reasons import MarketReason
from domain.money import Amount
from domain.refusal import Refused


def mode_asked(asked: LeaseRequested) -> str:
    """The mode of the request's constraints, or the one that its shares mean."""
    wanted = None if asked.constraints is None else asked.constraints.mode
    return mode_of(wanted, asked.share_ppm, asked.mem_ppm)


def require_offered(asked: LeaseRequested, offer: OfferPublished) -> None:
    """Raises Refused: OFFER_MISMATCH, when the offer does not have the mode."""
    mode = mode_asked(asked)
    if mode not in modes_of(offer):
        raise Refused(MarketReason.OFFER_MISMATCH, mode=mode, share_ppm=asked.share_ppm)


def hold_devices(
    lease_id: str, asked: LeaseRequested, devices: Sequence[DeviceState], at_us: int
) -> list[DeviceReserved]:
    """What each device's stream gets, in order; the device decides where a MIG instance begins.

    Raises Refused: as `domain.fleet.device.reserve`, and OFFER_MISMATCH when the profile is of
    another size on one of them.
    """
    profile = None if asked.constraints is None else asked.constraints.mig_profile
    held = [
        reserve(
            device,
            lease_id,
            asked.share_ppm,
            asked.mem_ppm,
            at_us,
            mode=mode_asked(asked),
            profile=profile,
        )
        for device in devices
    ]
    if len({(one.share_ppm, one.mem_ppm) for one in held}) != 1:
        raise Refused(MarketReason.OFFER_MISMATCH, mig_profile=profile, rule="one_size_of_instance")
    return held


def shared(terms: LeaseReserved, held: Sequence[DeviceReserved]) -> LeaseReserved:
    """The terms with what the lease holds of each device, and the price that this has."""
    first = held[0]
    starts = tuple(one.mig.start for one in held if one.mig is not None)
    return replace(
        terms,
        device_ids=tuple(one.device_id for one in held),
        share_ppm=first.share_ppm,
        mem_ppm=first.mem_ppm,
        mode=first.mode,
        mig=None if first.mig is None else MigInstances(first.mig.profile, starts),
        price_per_gpu_hour=_price(terms, Held(first.share_ppm, first.mem_ppm, first.mode)),
    )


def _price(terms: LeaseReserved, part: Held) -> Amount:
    """Of one GPU-hour of compute share; rounded up, so an hour of the instance is not less than
    its weight of the price that is offered.
    """
    offered, weight = terms.price_per_gpu_hour, price_weight_ppm(part)
    if terms.own or weight == part.share_ppm:
        return offered
    return Amount(offered.asset, -(-offered.units * weight // part.share_ppm))
