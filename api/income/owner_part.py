"""What part of a price is the owner's, before anything is offered, and when it can be spent.

fee + provider + platform + burn == price        of one GPU-hour, by the tariff in force
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from api.door.amounts import Money, credits_, money
from api.door.auth import nodes_or_scope
from api.door.call import Call, Caller, View
from api.door.models import AnswerModel, Count, Digits, NodeId, NodeInPath, OfferId, Position
from api.door.operation import Resource
from api.fleet.nodes import visible_node
from api.market.offers import PRICE_MAX, GpuClass, Settlement
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.income.cash_out import POLICY
from domain.income.maturity import DESTINATION_DELAY_US, window_at
from domain.income.maturity import NETWORK as WINDOWS
from domain.money import Amount, credit
from domain.prices.charge_split import peel
from domain.prices.reasons import PricesReason
from domain.prices.tariff import TariffPublished, tariff_in_force, usage_fee
from domain.refusal import Refused
from projections.fleet import fleet
from projections.fleet.fleet import FLEET

resource = Resource("earnings")

PriceQuery = Annotated[
    Annotated[int, Field(ge=1, le=PRICE_MAX), Digits] | None,
    Query(description="Micro-credits per GPU-hour; default: the prices of the node's open offers"),
]
DEVICES_MAX = 500
OFFERS_MAX = 50


class OwnerPartAnswer(AnswerModel):
    """Of one GPU-hour: `provider` is the owner's part. With the settlement
    `burn` the whole charge is retired, and the owner is paid in TOKEN when the epoch is sealed.
    """

    gpu_class: GpuClass
    price: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    settlement: Settlement
    offer_id: OfferId | None = None


class OwnerPartsAnswer(AnswerModel):
    """`held_back_seconds`: how long what is earned now waits for disputes until it matures;
    `destination_seconds`: how long no cash-out leaves after its destination was changed. Owners of
    parts of the node divide `provider` among them.
    """

    node_id: NodeId
    tariff_version: Count
    data: list[OwnerPartAnswer]
    held_back_seconds: Count
    cash_out_minimum: Money
    destination_seconds: Count
    position: Position


@resource.get(
    "/v1/nodes/{node_id}/earnings/per-hour",
    nodes_or_scope("earnings:read", "provider"),
    OwnerPartsAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        PricesReason.GPU_CLASS_UNPRICED,
        PricesReason.TARIFF_UNKNOWN,
        PricesReason.PRICE_BELOW_USAGE_FEE,
    ],
)
def read_owner_part(node_id: NodeInPath, call: Caller, price: PriceQuery = None) -> Response:
    """Returns the owner's part of a GPU-hour of a node, at a price or at those of its offers."""
    world = call.service.ledger.world()
    tariff = tariff_in_force(world, call.now_us)
    with call.read(FLEET) as view:
        visible_node(call, view, node_id)
        told = OwnerPartsAnswer(
            node_id=node_id,
            tariff_version=tariff.version,
            data=_parts(view, node_id, price, tariff),
            held_back_seconds=_held_back_us(call) // SECOND_US,
            cash_out_minimum=money(call.service.ledger.market.state_of(POLICY).minimum),
            destination_seconds=DESTINATION_DELAY_US // SECOND_US,
            position=view.position,
        )
        return call.answer(view, told)


def _held_back_us(call: Call) -> int:
    return window_at(call.service.ledger.market.state_of(WINDOWS).versions, call.now_us)


def _parts(
    view: View, node_id: str, price: int | None, tariff: TariffPublished
) -> list[OwnerPartAnswer]:
    devices = fleet.read_devices(view.connection, node_id=node_id, limit=DEVICES_MAX)
    classes = sorted({one.gpu_class for one in devices if one.gpu_class and not one.retired})
    if price is not None:
        return [_part(tariff, name, credit(price), "cash", None) for name in classes]
    offers = fleet.read_offers(view.connection, node_id=node_id, limit=OFFERS_MAX)
    return [
        _part(tariff, name, credit(offer.price_units), offer.pay_with, offer.offer_id)
        for offer in offers
        for name in classes
    ]


def _part(
    tariff: TariffPublished, gpu_class: str, price: Amount, pay_with: str, offer_id: str | None
) -> OwnerPartAnswer:
    """Raises Refused: GPU_CLASS_UNPRICED, PRICE_BELOW_USAGE_FEE."""
    fee = usage_fee(tariff, gpu_class)
    if price.units < fee.units:
        raise Refused(PricesReason.PRICE_BELOW_USAGE_FEE, usage_fee=fee.units)
    parts = peel(
        price.units,
        price.units,
        fee.units,
        tariff.provider_share_ppm,
        tariff.burn_share_ppm,
        tariff.split,
    )
    assert parts.total == price.units, (parts, price)
    settlement: Settlement = "burn" if pay_with == "burn" else "cash"
    return OwnerPartAnswer(
        gpu_class=gpu_class,
        price=money(price),
        fee=credits_(parts.fee),
        provider=credits_(parts.provider),
        platform=credits_(parts.platform),
        burn=credits_(parts.burn),
        settlement=settlement,
        offer_id=offer_id,
    )
