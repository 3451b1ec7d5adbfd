"""What pricing modules there are, providers' price lists, and what standing bids pay now.

A request names its module when it opens a lease (`pricing` of `POST /v1/leases`); a pool has one of
its own. How each works is in the documentation of pricing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import Field, model_validator

from api.door.amounts import Money, credits_, credits_or_none
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    OfferId,
    OfferInPath,
    Position,
    ProviderId,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.providers import own_provider
from domain.duration import SECOND_US
from domain.funds.reasons import FundsReason
from domain.lease.reserved_term import ReservedPrice
from domain.market.auction import BIDS_LIMIT, CLOSES_AFTER_MAX_US
from domain.market.offer import offer_stream
from domain.market.offer_prices import SetOfferPrices, stream_of
from domain.market.reasons import MarketReason
from domain.money import MoneyReason
from domain.prices.modules import AUCTION, MODULES, STANDING, TERM, label
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.market import bids
from projections.market.bids import BIDS
from projections.pools.pools import POOLS

resource = Resource("pricing")

Months = Literal[1, 3, 6]
PoolQuery = Annotated[str | None, Query(pattern=r"^pool_[0-9A-Za-z]{1,64}$")]
ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
GpuClass = Literal["development", "professional", "datacenter"]


class LeasePricingRequest(RequestModel):
    """How the lease is priced. An auction (`reverse_auction`, `second_price`) waits for bids until
    `closes_in_seconds` from now; `pick`: the cheapest wins by itself, or you accept one. A standing
    bid (`continuous_bid`) has `bid`. A reserved term (`reserved`) has `months`.
    """

    module: ModuleName
    closes_in_seconds: Annotated[int, Field(ge=1, le=CLOSES_AFTER_MAX_US // SECOND_US)] = 600
    deposit: Money | None = None
    bids_max: Annotated[int, Field(ge=1, le=BIDS_LIMIT)] | None = None
    pick: Literal["cheapest", "renter"] = "cheapest"
    bid: Money | None = None
    months: Months | None = None

    model_config = with_examples({"module": "reverse_auction", "closes_in_seconds": 60})

    @model_validator(mode="after")
    def _fits(self) -> LeasePricingRequest:
        for amount in (self.deposit, self.bid):
            if amount is not None and amount.asset != "CREDIT":
                raise ValueError("bids and deposits are CREDIT")
        kind = None if self.module not in MODULES else MODULES[self.module].kind
        if kind is None:
            return self  # the rule says which there are
        if (kind == STANDING) != (self.bid is not None):
            raise ValueError("a standing bid names its bid, and nothing else does")
        if (kind == TERM) != (self.months is not None):
            raise ValueError("a reserved term names its months, and nothing else does")
        only = {"deposit", "bids_max", "pick", "closes_in_seconds"} & self.model_fields_set
        if kind != AUCTION and only:
            raise ValueError(f"{', '.join(sorted(only))}: of auctions only")
        return self


class PricingModuleAnswer(AnswerModel):
    """`kind`: posted (at once), auction (after bids), standing (a lasting bid), term (months)."""

    pricing: str
    kind: Literal["posted", "auction", "standing", "term"]
    meaning: str


class PricingModulesAnswer(AnswerModel):
    data: list[PricingModuleAnswer]
    position: Position


class ReservedLineRequest(RequestModel):
    """The price of so many months, and how much of what is unused an early end gives back."""

    months: Months
    price_per_gpu_hour: Money
    refund_ppm: Annotated[int, Field(ge=0, le=1_000_000)]


class OfferPriceListRequest(RequestModel):
    """What is absent is not offered: without a floor no interruptible leases, without a line no
    reserved term of so many months.
    """

    interruptible_floor: Money | None = None
    reserved: Annotated[list[ReservedLineRequest], Field(max_length=3)] = Field(
        default_factory=list
    )

    model_config = with_examples(
        {
            "interruptible_floor": {"asset": "CREDIT", "units": "900000"},
            "reserved": [
                {
                    "months": 3,
                    "price_per_gpu_hour": {"asset": "CREDIT", "units": "1800000"},
                    "refund_ppm": 500_000,
                }
            ],
        }
    )


class ReservedLineAnswer(AnswerModel):
    months: Count
    price_per_gpu_hour: Money
    refund_ppm: Count


class OfferPriceListAnswer(AnswerModel):
    offer_id: OfferId
    provider_id: ProviderId
    interruptible_floor: Money | None = None
    reserved: list[ReservedLineAnswer]
    set_at: Told_at
    position: Position | None = None


class MarketPriceAnswer(AnswerModel):
    """The standing bids that hold devices of a class: how many leases, the lowest and the highest.
    A bid above `lowest` displaces it.
    """

    gpu_class: GpuClass
    holding: Count
    lowest: Money
    highest: Money


class MarketPricesAnswer(AnswerModel):
    data: list[MarketPriceAnswer]
    position: Position


@resource.get("/v1/pricing-modules", everybody(), PricingModulesAnswer)
def list_pricing_modules(call: Caller) -> Response:
    """Lists every pricing module of this installation, plug-ins too, with its version."""
    with call.read(BIDS) as view:
        data = [
            PricingModuleAnswer(pricing=label(one), kind=_kind(one.kind), meaning=_meaning(one))
            for _, one in sorted(MODULES.items())
        ]
        return call.answer(view, PricingModulesAnswer(data=data, position=view.position))


def _kind(kind: str) -> Any:
    return kind


def _meaning(module: object) -> str:
    """The first sentence of a module's documentation."""
    words = " ".join((type(module).__doc__ or type(module).__name__).split())
    return words.split(". ")[0].rstrip(".") + "."


@resource.get("/v1/market-prices", everybody(), MarketPricesAnswer)
def read_market_prices(call: Caller, pool_id: PoolQuery = None) -> Response:
    """Returns the present prices of winning standing bids, by class: in all pools, or in one."""
    with call.read(BIDS, POOLS) as view:
        rows = bids.read_market_prices(view.connection, pool_id=pool_id)
        data = [market_price(row) for row in rows]
        return call.answer(view, MarketPricesAnswer(data=data, position=view.position))


def market_price(row: bids.MarketPrice) -> MarketPriceAnswer:
    gpu_class: Any = row.gpu_class
    return MarketPriceAnswer(
        gpu_class=gpu_class,
        holding=row.holding,
        lowest=credits_(row.lowest_units),
        highest=credits_(row.highest_units),
    )


@resource.post(
    "/v1/offers/{offer_id}/prices",
    with_scope("provider"),
    OfferPriceListAnswer,
    problems=[
        MarketReason.OFFER_UNKNOWN,
        MarketReason.OFFER_WITHDRAWN,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PRICE_BELOW_USAGE_FEE,
        PricesReason.TARIFF_UNKNOWN,
        PricesReason.GPU_CLASS_UNPRICED,
        MoneyReason.DUPLICATE_ID,
    ],
)
def set_offer_prices(offer_id: OfferInPath, body: OfferPriceListRequest, call: Caller) -> Response:
    """Sets the lowest price of interruptible leases, and the prices of whole months."""

    def commands() -> SetOfferPrices:
        floor = body.interruptible_floor
        return SetOfferPrices(
            offer_id=offer_id,
            provider_id=_own_offer(call, offer_id),
            interruptible_floor=None if floor is None else floor.amount(),
            reserved=tuple(
                ReservedPrice(one.months, one.price_per_gpu_hour.amount(), one.refund_ppm)
                for one in body.reserved
            ),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        current = after.state(stream_of(offer_id)).current
        assert current is not None, offer_id
        floor = current.interruptible_floor
        return OfferPriceListAnswer(
            offer_id=offer_id,
            provider_id=current.provider_id,
            interruptible_floor=None if floor is None else credits_(floor.units),
            reserved=[
                ReservedLineAnswer(
                    months=line.months,
                    refund_ppm=line.refund_ppm,
                    price_per_gpu_hour=credits_(line.price_per_gpu_hour.units),
                )
                for line in current.reserved
            ],
            set_at=moment(current.at_us),
        )

    return call.record(commands, told)


@resource.get(
    "/v1/offers/{offer_id}/prices",
    everybody(),
    OfferPriceListAnswer,
    problems=[MarketReason.OFFER_UNKNOWN],
)
def read_offer_prices(offer_id: OfferInPath, call: Caller) -> Response:
    """Returns the price list of an offer, where its provider has set one."""
    with call.read(BIDS) as view:
        found = bids.read_price_lists(view.connection, offer_id=offer_id)
        if not found:
            raise Refused(
                MarketReason.OFFER_UNKNOWN, offer_id=offer_id, rule="it has no price list"
            )
        return call.answer(view, _list(found[0]))


def _list(row: bids.PriceList) -> OfferPriceListAnswer:
    return OfferPriceListAnswer(
        offer_id=row.offer_id,
        provider_id=row.provider_id,
        interruptible_floor=credits_or_none(row.floor_units),
        set_at=moment(row.at_us),
        reserved=[
            ReservedLineAnswer(
                months=line["months"],
                refund_ppm=line["refund_ppm"],
                price_per_gpu_hour=credits_(int(line["price_per_gpu_hour"]["units"])),
            )
            for line in row.reserved
        ],
    )


def _own_offer(call: Call, offer_id: str) -> str:
    """The provider of an offer of the caller's. Raises Refused: OFFER_UNKNOWN."""
    state = call.service.ledger.market.state_of(offer_stream(offer_id))
    unknown = Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id)
    if state.published is None:
        raise unknown
    try:
        own_provider(call, state.published.provider_id)
    except Refused:
        raise unknown from None
    return state.published.provider_id
