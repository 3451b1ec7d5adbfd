"""A provider's price list for an offer: the floor of interruptible leases, and whole months.

    usage fee <= every price of the list;   each number of months once

The offer itself says the price on demand. A later list touches no lease that is reserved: price
and refund are locked with the reservation. Not who gets the devices: `domain/prices/modules.py`.
"""

from __future__ import annotations

from typing import Any

from domain.lease.reserved_term import MONTHS, ReservedPrice
from domain.market.offer import existing_offer, offer_of, require_covers_fee, require_price
from domain.market.reasons import MarketReason
from domain.money import PPM, Amount, MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPricesSet:
    """Stream `offer_prices:{offer_id}`. What is absent is not offered any more."""

    offer_id: str
    provider_id: str
    interruptible_floor: Amount | None  # the lowest bid that an interruptible lease is let at
    reserved: tuple[ReservedPrice, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOfferPrices:
    offer_id: str
    provider_id: str
    interruptible_floor: Amount | None
    reserved: tuple[ReservedPrice, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class OfferPrices:
    """The list in force; None: none was ever set."""

    current: OfferPricesSet | None = None

    def reserved(self, months: int) -> ReservedPrice | None:
        lines = () if self.current is None else self.current.reserved
        return next((line for line in lines if line.months == months), None)


def evolve(prices: OfferPrices, fact: OfferPricesSet) -> OfferPrices:
    del prices
    return OfferPrices(fact)


def stream_of(offer_id: str) -> Stream[OfferPrices]:
    return Stream("offer_prices", offer_id)


def prices_of(world: World, offer_id: str) -> OfferPrices:
    return world.state(stream_of(offer_id))


def decide_set(command: SetOfferPrices, world: World) -> list[Change]:
    """Raises Refused: OFFER_UNKNOWN, OFFER_WITHDRAWN, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    PRICE_BELOW_USAGE_FEE, TERM_NOT_OFFERED, DUPLICATE_ID, SHARE_OUT_OF_RANGE.
    """
    published = existing_offer(world, command.offer_id)
    if published.provider_id != command.provider_id:
        raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=command.offer_id)
    if not offer_of(world, command.offer_id).is_open:
        raise Refused(MarketReason.OFFER_WITHDRAWN, offer_id=command.offer_id)
    floor = command.interruptible_floor
    prices = [line.price_per_gpu_hour for line in command.reserved]
    for price in [*prices, *([] if floor is None else [floor])]:
        require_price(price)
        require_covers_fee(world, published.node_id, price, command.at_us)
    _require_lines(command.reserved)
    fact = OfferPricesSet(
        offer_id=command.offer_id,
        provider_id=command.provider_id,
        interruptible_floor=floor,
        reserved=command.reserved,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.offer_id), fact)]


def _require_lines(lines: tuple[ReservedPrice, ...]) -> None:
    for line in lines:
        if line.months not in MONTHS:
            raise Refused(PricesReason.TERM_NOT_OFFERED, months=line.months, offered=MONTHS)
        if not 0 <= line.refund_ppm <= PPM:
            raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, refund_ppm=line.refund_ppm)
    if len({line.months for line in lines}) != len(lines):
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each number of months once")


STREAMS: dict[str, tuple[Any, Any]] = {"offer_prices": (OfferPrices(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetOfferPrices: decide_set}
