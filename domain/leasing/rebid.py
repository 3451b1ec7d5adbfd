"""Another standing bid: at once while the lease waits; for one that has run, as a lease of its own.

    price of a lease == its bid when it was reserved, to its end

So no hour of a lease ever has two prices. What has run is closed and settles by itself; the lease
that goes on with its job competes with the new bid, for the same devices if it is the highest.
"""

from __future__ import annotations

from typing import Any

from domain.duration import MINUTE_US
from domain.lease.close_codes import RENTER_CLOSED
from domain.lease.lease import CloseLease, Lease
from domain.leasing.request import asked_again
from domain.leasing.taking import Place, quoting, reserving
from domain.market.reasons import MarketReason
from domain.market.standing_bid import SetStandingBid
from domain.money import Amount
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import derive_id

KEPT_US = MINUTE_US
"""How long the quote of a raised bid stands: it is taken in the same append."""


@dataclass(frozen=True, slots=True)
class Rebid:
    """The lease that has the bid then, and what is to be recorded for it, together."""

    lease_id: str
    commands: tuple[Any, ...]


def rebidding(
    lease: Lease, bid: Amount, next_id: str, at_us: int, kept: Place | None = None
) -> Rebid:
    """`kept`: the place that it holds now, at the new bid.

    Raises Refused: BID_STATE for a lease that is reserved and has not started, or is over.
    """
    asked = lease.requested
    assert asked is not None
    if lease.status in ("requested", "quoted"):
        command = SetStandingBid(lease_id=asked.lease_id, price_per_gpu_hour=bid, at_us=at_us)
        return Rebid(asked.lease_id, (command,))
    if lease.status not in ("active", "paused", "degraded"):
        raise Refused(MarketReason.BID_STATE, lease_id=asked.lease_id, status=lease.status)
    assert lease.opened is not None
    if lease.opened.price_per_gpu_hour == bid:
        return Rebid(asked.lease_id, ())
    close = CloseLease(
        lease_id=asked.lease_id, closed_at_us=at_us, party="renter", code=RENTER_CLOSED, at_us=at_us
    )
    again = asked_again(asked, next_id, at_us)
    first = SetStandingBid(lease_id=next_id, price_per_gpu_hour=bid, at_us=at_us)
    return Rebid(next_id, (close, again, first, *_keeping(lease, bid, next_id, at_us, kept)))


def _keeping(
    lease: Lease, bid: Amount, next_id: str, at_us: int, kept: Place | None
) -> tuple[Any, ...]:
    """Who raises a bid that holds devices keeps them: nobody can come in between."""
    asked, opened = lease.requested, lease.opened
    assert asked is not None
    assert opened is not None
    if lease.status != "active" or bid < opened.price_per_gpu_hour or asked.pricing is None:
        return ()
    assert kept is not None, "an active lease holds a place"
    quote_id = derive_id("quote", next_id, asked.lease_id)
    quote = quoting(
        next_id,
        quote_id,
        kept,
        at_us,
        pricing=asked.pricing,
        price=bid,
        expires_at_us=at_us + KEPT_US,
    )
    return quote, reserving(next_id, kept, at_us, quote_id=quote_id)
