"""Offers: what providers rent out, at which price. Searching needs no credential."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response
from pydantic import Field

from api.door.amounts import Money, credits_, money
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountQuery,
    AnswerModel,
    Count,
    Digits,
    EmptyRequest,
    Moment,
    NodeId,
    NodeQuery,
    NodesQuery,
    OfferId,
    OfferInPath,
    OffersQuery,
    Position,
    ProviderId,
    RegionId,
    RegionQuery,
    RequestModel,
    TextQuery,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.fleet.constraints import (
    CapacityClass,
    Isolation,
    Kernel,
    Mode,
    NetworkClass,
    OfferPromisesForm,
    promises_told,
)
from api.fleet.providers import own_provider
from api.market.offer_supply import OfferSupplyAnswer, supply_of
from domain.cloud.reasons import CloudReason
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import NOTHING, QUANTITY_MAX, Constraints
from domain.hardware.reasons import HardwareReason
from domain.market.dimensions import Need
from domain.market.offer import PublishOffer, WithdrawOffer, offer_stream
from domain.market.reasons import MarketReason
from domain.money import PPM
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.market.match import offers_meeting
from projections.metering.usage import USAGE
from projections.runner import Connection
from projections.trust.reputation import REPUTATION

resource = Resource("offers")

Setting = Literal["edge", "datacenter"]
KindQuery = Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]

Settlement = Literal["cash", "burn"]
GpuClass = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]
PRICE_MAX = 10**12
PriceQuery = Annotated[
    Annotated[int, Field(ge=0, le=PRICE_MAX), Digits] | None,
    Query(description="Micro-credits per GPU-hour"),
]


AmountQuery = Annotated[
    Annotated[int, Field(ge=0, le=QUANTITY_MAX), Digits] | None, Query(description="At least")
]


class OfferRequest(RequestModel):
    """All devices of one node. `settlement`: cash is shared, burn is retired and paid in TOKEN."""

    provider_id: ProviderId
    node_id: NodeId
    price_per_gpu_hour: Money
    settlement: Settlement = "cash"
    fractions: bool = False
    available_until: Moment | None = None
    terms: OfferPromisesForm | None = None

    model_config = with_examples(
        {
            "provider_id": "prov_" + "1" * 32,
            "node_id": "node_" + "1" * 32,
            "price_per_gpu_hour": {"asset": "CREDIT", "units": "2500000"},
            "settlement": "cash",
            "fractions": True,
        }
    )


class OfferAnswer(AnswerModel):
    """`devices_free` counts its priced devices without a holder, as the matcher does: none is free
    of a node that is not active, or has not told its inventory for too long. `memory_mib` is that
    of the smallest of its devices.
    """

    offer_id: OfferId
    provider_id: ProviderId
    node_id: NodeId
    region_id: RegionId | None = None
    price_per_gpu_hour: Money
    settlement: Settlement
    fractions: bool
    available_until: Told_at | None = None
    terms: OfferPromisesForm | None = None
    withdrawn_at: Told_at | None = None
    models: list[str] | None = None
    gpu_classes: list[GpuClass] | None = None
    devices_free: Count | None = None
    supply: OfferSupplyAnswer | None = None
    memory_mib: Count | None = None
    published_at: Told_at
    position: Position | None = None


class OfferWithdrawnAnswer(AnswerModel):
    offer_id: OfferId
    withdrawn: bool
    position: Position | None = None


@resource.post(
    "/v1/offers",
    with_scope("provider"),
    OfferAnswer,
    status=201,
    problems=[
        FleetReason.PROVIDER_UNKNOWN,
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        MarketReason.OFFER_EXISTS,
        PricesReason.GPU_CLASS_UNPRICED,
        PricesReason.TARIFF_UNKNOWN,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PRICE_BELOW_USAGE_FEE,
        HardwareReason.CONSTRAINT_INVALID,
        CloudReason.CAPACITY_CLASS,
    ],
)
def publish_offer(body: OfferRequest, call: Caller) -> Response:
    """Publishes an offer of a node at a price, not below the usage fee of its class."""
    offer_id = call.id("offer")

    def commands() -> PublishOffer:
        own_provider(call, body.provider_id)
        return PublishOffer(
            offer_id=offer_id,
            provider_id=body.provider_id,
            node_id=body.node_id,
            price_per_gpu_hour=body.price_per_gpu_hour.amount(),
            pay_with=body.settlement,
            fractions=body.fractions,
            available_until_us=body.available_until,
            at_us=call.now_us,
            terms=None if body.terms is None else body.terms.terms(),
        )

    def told(after: After) -> AnswerModel:
        published = after.state(offer_stream(offer_id)).published
        assert published is not None, offer_id
        settlement: Any = published.pay_with
        return OfferAnswer(
            offer_id=offer_id,
            provider_id=published.provider_id,
            node_id=published.node_id,
            price_per_gpu_hour=money(published.price_per_gpu_hour),
            settlement=settlement,
            fractions=published.fractions,
            available_until=moment_or_none(published.available_until_us),
            terms=body.terms,
            published_at=moment(published.at_us),
        )

    return call.record(commands, told)


async def _demands(
    vendor: TextQuery = None,
    memory_mib: AmountQuery = None,
    mode: Mode | None = None,
    isolation: Isolation | None = None,
    capability: TextQuery = None,
    cpu_cores: AmountQuery = None,
    ram_mib: AmountQuery = None,
    storage_gib: AmountQuery = None,
    network_mbps: AmountQuery = None,
    arch: TextQuery = None,
    os: TextQuery = None,
    min_kernel: Annotated[Kernel | None, Query()] = None,
    network_class: NetworkClass | None = None,
    substrate: TextQuery = None,
    capacity_class: CapacityClass | None = None,
    workload_class: TextQuery = None,
    security_tier: AmountQuery = None,
    min_reputation_ppm: AmountQuery = None,
    region_id: RegionQuery = None,
    pool_id: TextQuery = None,
) -> Constraints:
    """What a search demands of the machine, as a request for a lease demands it."""
    return Constraints(
        vendors=_one(vendor),
        memory_mib=memory_mib,
        mode=mode,
        isolation=isolation,
        capabilities=_one(capability),
        cpu_cores=cpu_cores,
        ram_mib=ram_mib,
        storage_gib=storage_gib,
        network_mbps=network_mbps,
        arch=arch,
        os=os,
        min_kernel=min_kernel,
        network_class=network_class,
        substrate=substrate,
        capacity_classes=_one(capacity_class),
        workload_class=workload_class,
        security_tier=security_tier,
        min_reputation_ppm=min_reputation_ppm,
        regions=_one(region_id),
        pool_id=pool_id,
    )


@resource.get("/v1/offers", everybody(), page_of(OfferAnswer), problems=["cursor_invalid"])
def search_offers(
    asked: Annotated[Constraints, Depends(_demands)],
    call: Caller,
    model: TextQuery = None,
    gpu_class: GpuClass | None = None,
    price_max: PriceQuery = None,
    account_id: AccountQuery = None,
    node_id: NodeQuery = None,
    setting: Setting | None = None,
    kind: KindQuery = None,
    max_latency_ms: AmountQuery = None,
    gpu_count: AmountQuery = None,
    sla_class: TextQuery = None,
    offer_ids: OffersQuery = None,
    node_ids: NodesQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists open offers that meet every demand, cheapest first, with what is known of each
    machine. With `offer_ids` only these, and those that were closed too.
    """
    place = call.place(cursor, [-1, 0])
    with call.read(FLEET, REPUTATION, USAGE) as view:
        among = _meeting(call, view.connection, asked, gpu_count, sla_class)
        if offer_ids is not None:
            named = offer_ids.split(",")
            among = named if among is None else sorted({*named} & {*among})
        rows = fleet.read_offers(
            view.connection,
            model=model,
            gpu_class=gpu_class,
            price_max=price_max,
            account_id=account_id,
            node_id=node_id,
            node_ids=None if node_ids is None else node_ids.split(","),
            setting=setting,
            kind=kind,
            rtt_us_max=None if max_latency_ms is None else max_latency_ms * 1_000,
            withdrawn=offer_ids is not None,
            among=among,
            after=(place.after[0], place.after[1]),
            limit=limit + 1,
        )
        known = supply_of(view.connection, rows, call.now_us)
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.price_units, row.position],
            lambda row: _offer(call, row, known[row.offer_id]),
        )


SEARCHED = (
    "place",
    "pool",
    "vendor",
    "gpus",
    "memory",
    "mode",
    "isolation",
    "cpu",
    "ram",
    "storage",
    "network",
    "network_class",
    "arch",
    "os",
    "kernel",
    "substrate",
    "capabilities",
    "capacity",
    "workload",
    "security_tier",
    "provisional",
    "reputation",
    "sla",
)
"""Dimensions of the match that a search can ask about, beside what the view filters by itself."""


def _meeting(
    call: Call,
    connection: Connection,
    asked: Constraints,
    gpu_count: int | None,
    sla_class: str | None,
) -> list[str] | None:
    """Offers that meet the demands, whatever is free of them now; None where nothing is asked."""
    if asked == NOTHING and gpu_count is None and sla_class is None:
        return None
    need = Need(
        gpu_count=gpu_count or 1,
        share_ppm=PPM,
        mem_ppm=PPM,
        models=(),
        price_max=0,
        account_id="",
        constraints=asked,
        at_us=call.now_us,
        sla_classes=None if sla_class is None else (sla_class,),
    )
    unasked = set()
    if asked.mode is None:
        unasked.add("mode")
    if asked.capacity_classes is None:
        unasked.add("capacity")
    names = [name for name in SEARCHED if name not in unasked]
    return call.service.fleet.ask(
        connection, lambda columns, _position: offers_meeting(columns, need, names)
    )


def _one(word: str | None) -> tuple[str, ...] | None:
    return None if word is None else (word,)


@resource.get(
    "/v1/offers/{offer_id}", everybody(), OfferAnswer, problems=[MarketReason.OFFER_UNKNOWN]
)
def read_offer(offer_id: OfferInPath, call: Caller) -> Response:
    """Returns an offer, with what is known of its machine."""
    with call.read(FLEET, REPUTATION, USAGE) as view:
        found = fleet.read_offer(view.connection, offer_id)
        if found is None:
            raise Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id)
        known = supply_of(view.connection, [found], call.now_us)
        return call.answer(view, _offer(call, found, known[offer_id]))


@resource.post(
    "/v1/offers/{offer_id}/withdraw",
    with_scope("provider"),
    OfferWithdrawnAnswer,
    problems=[MarketReason.OFFER_UNKNOWN],
)
def withdraw_offer(offer_id: OfferInPath, body: EmptyRequest, call: Caller) -> Response:
    """Closes an offer. Leases opened from it keep their price."""
    del body

    def commands() -> WithdrawOffer:
        _own_offer(call, offer_id)
        return WithdrawOffer(offer_id=offer_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(
        commands, lambda _after: OfferWithdrawnAnswer(offer_id=offer_id, withdrawn=True)
    )


def _own_offer(call: Call, offer_id: str) -> None:
    state = call.service.ledger.market.state_of(offer_stream(offer_id))
    unknown = Refused(MarketReason.OFFER_UNKNOWN, offer_id=offer_id)
    if state.published is None:
        raise unknown
    try:
        own_provider(call, state.published.provider_id)
    except Refused:
        raise unknown from None


def _is_matched(call: Call, row: fleet.Offer) -> bool:
    """Whether the matcher gives leases to the node of an offer, as long as it has room: demands
    `node` and `spec_age` of `domain/market/dimensions.py`.
    """
    ttl_us = call.service.settings.spec_ttl_s * SECOND_US
    age_us = None if row.specs_at_us is None else call.now_us - row.specs_at_us
    is_fresh = not ttl_us or (age_us is not None and age_us <= ttl_us)
    return row.phase == "active" and not row.quarantined and is_fresh


def _offer(call: Call, row: fleet.Offer, known: OfferSupplyAnswer) -> OfferAnswer:
    told: Any = row
    return OfferAnswer(
        offer_id=row.offer_id,
        provider_id=row.provider_id,
        node_id=row.node_id,
        region_id=row.region_id,
        price_per_gpu_hour=credits_(row.price_units),
        settlement=told.pay_with,
        fractions=row.fractions,
        available_until=moment_or_none(row.available_until_us),
        terms=promises_told(row.terms),
        withdrawn_at=moment_or_none(row.withdrawn_at_us),
        models=row.models,
        gpu_classes=told.gpu_classes,
        devices_free=row.free if _is_matched(call, row) else 0,
        supply=known,
        memory_mib=row.memory_mib,
        published_at=moment(row.at_us),
    )
