"""A standing bid: what the renter of an interruptible lease pays per GPU-hour as long as it holds.

    floor of the offer <= bid <= the job's cap;   price of the lease == the bid when it is reserved

The highest bids hold the devices, and a lease on demand outranks them all: who is outbid is paused,
not closed, and goes on when its bid is high enough again. Equal bids keep the holder. A lease's
price is locked, so a new bid for a lease that has opened is a lease of its own, which goes on with
the job (`domain/leasing/rebid.py`). Source: design marketplace 4, "continuous bid".
"""

from __future__ import annotations

from typing import Any

from domain.funds.reasons import FundsReason
from domain.lease.lease import lease_of
from domain.lease.reasons import LeaseReason
from domain.market.offer import require_price
from domain.market.reasons import MarketReason
from domain.money import Amount
from domain.prices.modules import STANDING, module_of
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingBidSet:
    """Stream `standing_bid:{lease_id}`: the bid that counts from now on."""

    lease_id: str
    account_id: str
    price_per_gpu_hour: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStandingBid:
    """The first bid of an interruptible lease, or another one while it still waits for devices."""

    lease_id: str
    price_per_gpu_hour: Amount
    at_us: int


@dataclass(frozen=True, slots=True)
class StandingBid:
    current: StandingBidSet | None = None

    @property
    def units(self) -> int | None:
        return None if self.current is None else self.current.price_per_gpu_hour.units


def evolve(bid: StandingBid, fact: StandingBidSet) -> StandingBid:
    del bid
    return StandingBid(fact)


def stream_of(lease_id: str) -> Stream[StandingBid]:
    return Stream("standing_bid", lease_id)


def standing_bid_of(world: World, lease_id: str) -> StandingBid:
    return world.state(stream_of(lease_id))


def decide_set(command: SetStandingBid, world: World) -> list[Change]:
    """Raises Refused: LEASE_UNKNOWN, PRICING_NOT_OFFERED, BID_STATE, AMOUNT_NOT_POSITIVE,
    AMOUNT_OUT_OF_RANGE, PRICE_ABOVE_CAP.
    """
    lease = lease_of(world, command.lease_id)
    asked, price = lease.requested, command.price_per_gpu_hour
    assert asked is not None
    if module_of(asked.pricing).kind != STANDING:
        raise Refused(
            PricesReason.PRICING_NOT_OFFERED, pricing=asked.pricing, lease_id=asked.lease_id
        )
    require_price(price)
    cap = asked.max_price_per_gpu_hour
    if price > cap:
        raise Refused(PricesReason.PRICE_ABOVE_CAP, cap=cap.units, price=price.units)
    current = standing_bid_of(world, command.lease_id).current
    if current is not None and current.price_per_gpu_hour == price:
        return []
    if lease.reserved is not None or lease.closed is not None:
        raise Refused(MarketReason.BID_STATE, lease_id=command.lease_id, status=lease.status)
    fact = StandingBidSet(
        lease_id=command.lease_id,
        account_id=asked.account_id,
        price_per_gpu_hour=price,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.lease_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"standing_bid": (StandingBid(), evolve)}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    SetStandingBid: (
        LeaseReason.LEASE_UNKNOWN,
        PricesReason.PRICING_NOT_OFFERED,
        MarketReason.BID_STATE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PRICE_ABOVE_CAP,
    )
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Any] = {SetStandingBid: decide_set}
