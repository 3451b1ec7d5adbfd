"""A place for a lease, and the commands that take it.

    recorded choice == the candidates, the rule and the position that the place was chosen from

Every way of buying a lease ends here: what was chosen is recorded with its inputs, and what the
views told of it goes with the command, so that the decision can ask every demand again.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.frozen import replace
from domain.hardware.constraints import Weights
from domain.lease.choice import Choice, Narrowed
from domain.lease.lease import ReserveLease
from domain.lease.looked import NOT_LOOKED, Looked
from domain.lease.turns import LeaseQuoted, QuoteLease
from domain.market.matching import Match
from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Devices of one node for one lease, and from which inputs they were chosen. `position`: of
    the fleet's view, 0 where none was asked.
    """

    match: Match
    rule: str
    looked: Looked = NOT_LOOKED
    position: int = 0
    weights: Weights | None = None
    narrowed: tuple[Narrowed, ...] | None = None


def reserving(
    lease_id: str, place: Place, at_us: int, *, quote_id: str | None = None, by: str | None = None
) -> ReserveLease:
    """The command that reserves a place: at a quote's price, or else at the offer's."""
    match = place.match
    return ReserveLease(
        lease_id=lease_id,
        rule=place.rule,
        fleet_position=place.position,
        candidates=match.candidates,
        considered=match.considered,
        node_id=match.node_id,
        offer_id=match.offer_id,
        device_ids=match.device_ids,
        at_us=at_us,
        quote_id=quote_id,
        weights=place.weights,
        narrowed=place.narrowed,
        by=by,
        looked=place.looked,
    )


def quoting(
    lease_id: str,
    quote_id: str,
    place: Place,
    at_us: int,
    *,
    pricing: str,
    price: Amount | None,
    expires_at_us: int,
    bid_id: str | None = None,
) -> QuoteLease:
    """The command that promises a place at a price, in micro-credits per GPU-hour, until it
    expires. `price` None: the offer's, or the usage fee on the renter's own node.
    """
    match = place.match
    return QuoteLease(
        lease_id=lease_id,
        quote_id=quote_id,
        rule=pricing,
        node_id=match.node_id,
        offer_id=match.offer_id,
        device_ids=match.device_ids,
        price_per_gpu_hour=price,
        expires_at_us=expires_at_us,
        at_us=at_us,
        bid_id=bid_id,
        looked=place.looked,
    )


def quoted_instead(
    reserve: ReserveLease, quote_id: str, pricing: str, expires_at_us: int
) -> QuoteLease:
    """Promise what would have been reserved, at the offer's price, until it expires. The quote
    keeps what it was chosen from: its acceptance is the same decision, carried out later.
    """
    match = Match(reserve.node_id, reserve.offer_id, reserve.device_ids, (), 1)
    place = Place(match=match, rule=reserve.rule, looked=reserve.looked)
    quote = quoting(
        reserve.lease_id,
        quote_id,
        place,
        reserve.at_us,
        pricing=pricing,
        price=None,
        expires_at_us=expires_at_us,
    )
    choice = Choice(
        rule=reserve.rule,
        fleet_position=reserve.fleet_position,
        candidates=reserve.candidates,
        considered=reserve.considered,
        weights=reserve.weights,
        narrowed=reserve.narrowed or (),
    )
    return replace(quote, choice=choice)


def quoted_place(quote: LeaseQuoted, looked: Looked) -> Place:
    """The place that a quote promises, with the choice that led to it. `looked`: what the views
    tell of it now.
    """
    choice = quote.choice
    if choice is None:
        match = Match(quote.node_id, quote.offer_id, quote.device_ids, (), 1)
        return Place(match=match, rule=quote.rule, looked=looked)
    return Place(
        match=Match(
            quote.node_id, quote.offer_id, quote.device_ids, choice.candidates, choice.considered
        ),
        rule=choice.rule,
        looked=looked,
        position=choice.fleet_position,
        weights=choice.weights,
        narrowed=choice.narrowed,
    )
