"""Kinds of providers: an open registry of dated rows, and what a GPU-hour costs on each."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api.door.amounts import Money, credits_
from api.door.auth import everybody, with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Moment, Position, RequestModel, Told_at, with_examples
from api.door.moments import moment
from api.door.operation import Resource
from domain.parties.reasons import PartiesReason
from domain.prices.provider_kinds import NETWORK, SEED, ProviderKindRegistered, RegisterProviderKind
from domain.prices.reasons import PricesReason
from projections.fleet.fleet import FLEET

resource = Resource("providers")

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]


class ProviderKindRequest(RequestModel):
    """`cost_per_gpu_hour`: what the cheapest GPU-hour of this kind costs its owner beside the usage
    fee. It is above that of physical machines, which are the cheapest kind.
    """

    kind: Name
    cloud: bool
    cost_per_gpu_hour: Money
    effective_from: Moment

    model_config = with_examples(
        {
            "kind": "acme",
            "cloud": True,
            "cost_per_gpu_hour": {"asset": "CREDIT", "units": "400000"},
            "effective_from": "2027-01-01T00:00:00Z",
        }
    )


class ProviderKindAnswer(AnswerModel):
    kind: str
    cloud: bool
    cost_per_gpu_hour: Money
    effective_from: Told_at
    position: Position | None = None


class ProviderKindsAnswer(AnswerModel):
    """The seeded rows and those the network registered; of one kind the newest in force counts."""

    data: list[ProviderKindAnswer]
    position: Position


@resource.post(
    "/v1/provider-kinds",
    with_scope("operator"),
    ProviderKindAnswer,
    status=201,
    problems=[
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PricesReason.PROVIDER_KIND_COST,
        PricesReason.TARIFF_NOTICE,
    ],
)
def register_provider_kind(body: ProviderKindRequest, call: Caller) -> Response:
    """Registers a kind of provider, or another cost of one, from a date on."""
    command = RegisterProviderKind(
        kind=body.kind,
        is_cloud=body.cloud,
        cost_per_gpu_hour=body.cost_per_gpu_hour.amount(),
        effective_from_us=body.effective_from,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    told = ProviderKindAnswer(
        kind=body.kind,
        cloud=body.cloud,
        cost_per_gpu_hour=body.cost_per_gpu_hour,
        effective_from=moment(body.effective_from),
    )
    return call.record(lambda: command, lambda _after: told)


@resource.get("/v1/provider-kinds", everybody(), ProviderKindsAnswer)
def list_provider_kinds(call: Caller) -> Response:
    """Lists the kinds of providers and what a GPU-hour costs on each. Anyone may read them."""
    with call.read(FLEET) as view:
        rows = (*SEED, *call.service.ledger.market.state_of(NETWORK).rows)
        told = ProviderKindsAnswer(data=[_kind(row) for row in rows], position=view.position)
        return call.answer(view, told)


def _kind(row: ProviderKindRegistered) -> ProviderKindAnswer:
    return ProviderKindAnswer(
        kind=row.kind,
        cloud=row.is_cloud,
        cost_per_gpu_hour=credits_(row.cost_per_gpu_hour.units),
        effective_from=moment(row.effective_from_us),
    )
