"""Interruptible leases: the highest standing bids hold the devices, and the others are paused."""

from __future__ import annotations

from domain.duration import HOUR_US
from domain.lease.lease import ReadyLease, RequestLease
from domain.lease.turns import PauseLease, QuoteLease, ResumeLease
from domain.market.offer_prices import SetOfferPrices
from domain.market.standing_bid import SetStandingBid
from domain.money import credit
from tests.domain.adversary.network import PRICE, Network

STANDING = "continuous_bid"


def rent_interruptible(
    network: Network, renter: str, node: str, pay_with: str, bid: int
) -> str | None:
    """A lease at the bid of its renter, which may be paused."""
    lease_id, free, offer_id = network.name("lease"), network.free(node), f"{node}_{pay_with}"
    asked, quote_id = network.job_of(renter, client=True), network.name("quote")
    floor = SetOfferPrices(
        offer_id=offer_id,
        provider_id=f"prov_{node}",
        interruptible_floor=credit(1),
        reserved=(),
        by="m",
        at_us=network.now_us,
    )
    if free is None or not network.try_(
        floor,
        asked,
        RequestLease(
            lease_id=lease_id,
            job_id=asked.job_id,
            account_id=renter,
            term_us=None,
            funds=credit(PRICE * 3),
            pricing=STANDING,
            at_us=network.now_us,
        ),
        SetStandingBid(lease_id=lease_id, price_per_gpu_hour=credit(bid), at_us=network.now_us),
        QuoteLease(
            lease_id=lease_id,
            quote_id=quote_id,
            rule=f"{STANDING}/1",
            node_id=node,
            offer_id=offer_id,
            device_ids=(free,),
            price_per_gpu_hour=credit(bid),
            expires_at_us=network.now_us + HOUR_US // 60,
            at_us=network.now_us,
        ),
        network.reservation(lease_id, node, pay_with, free, f"{STANDING}/1", quote_id),
        ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=network.now_us),
    ):
        return None
    network.leases.append(lease_id)
    return lease_id


def pause(network: Network, lease_id: str, minutes: int) -> None:
    """It is outbid for some minutes, and goes on."""
    network.try_(PauseLease(lease_id=lease_id, reason="outbid", by="matcher", at_us=network.now_us))
    network.now_us += minutes * 60_000_000
    network.try_(ResumeLease(lease_id=lease_id, by="matcher", at_us=network.now_us))
