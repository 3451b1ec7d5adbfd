"""Kinds of resources and licences: what can be rented at all, and which seats a provider holds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    EmptyRequest,
    Hex32,
    Moment,
    Position,
    ProviderId,
    ProviderQuery,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.providers import own_provider
from domain.fleet.kinds import SEED, ClassModel, RegisterResourceKind
from domain.fleet.licence import SEATS_MAX, GrantLicence, RevokeLicence, licence_stream
from domain.fleet.reasons import FleetReason
from domain.money import Asset
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.fleet import supply
from projections.fleet.fleet import FLEET

resource = Resource("resource-kinds")

Word = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]
Dimension = Literal["compute", "memory", "seats"]
Memory = Literal["dedicated", "unified", "none"]
CapacityAsset = Literal["GPU_MS", "SEAT_MS"]
Model = Annotated[str, Field(min_length=1, max_length=100)]
LicenceId = Annotated[str, Field(pattern=r"^lic_[0-9a-z]{1,64}$")]
LicenceInPath = Annotated[str, Path(pattern=r"^lic_[0-9a-z]{1,64}$")]


class ResourceKindRequest(RequestModel):
    """A vendor's devices of a kind. Seats count in SEAT_MS and have no memory of their own."""

    kind: Word
    vendor: Word
    dimensions: Annotated[list[Dimension], Field(min_length=1, max_length=3)]
    memory: Memory
    divisible: bool
    capacity_asset: CapacityAsset
    effective_from: Moment

    model_config = with_examples(
        {
            "kind": "npu",
            "vendor": "acme",
            "dimensions": ["compute", "memory"],
            "memory": "dedicated",
            "divisible": False,
            "capacity_asset": "GPU_MS",
            "effective_from": "2027-01-01T00:00:00Z",
        }
    )


class ResourceKindAnswer(AnswerModel):
    kind: str
    vendor: str
    dimensions: list[Dimension]
    memory: Memory
    divisible: bool
    capacity_asset: CapacityAsset
    effective_from: Told_at
    position: Position | None = None


class ModelClassRequest(RequestModel):
    """A vendor's models with these words in their name pay this class's fee: a row of the tariff.
    Nothing but the vendor's own words may stand before them.
    """

    vendor: Word
    model: Model
    gpu_class: Word
    effective_from: Moment

    model_config = with_examples(
        {
            "vendor": "acme",
            "model": "Acme One",
            "gpu_class": "accelerator",
            "effective_from": "2027-01-01T00:00:00Z",
        }
    )


class ModelClassAnswer(AnswerModel):
    vendor: str
    model: str
    gpu_class: str
    effective_from: Told_at
    position: Position | None = None


class ResourceKindsAnswer(AnswerModel):
    """The seeded kinds and those the network registered, and models it has classed."""

    data: list[ResourceKindAnswer]
    models: list[ModelClassAnswer]
    position: Position


class LicenceRequest(RequestModel):
    """So many seats of a product. Seat n is the device `{licence_id}:{n}` of a node's inventory,
    of kind `seat`; `terms_sha256` names the paper that grants them.
    """

    provider_id: ProviderId
    vendor: Word
    model: Model
    seats: Annotated[int, Field(ge=1, le=SEATS_MAX)]
    terms_sha256: Hex32
    from_: Annotated[Moment, Field(alias="from")]
    until: Moment | None = None

    model_config = with_examples(
        {
            "provider_id": "prov_" + "1" * 32,
            "vendor": "thirdai",
            "model": "ThirdAI Bolt",
            "seats": 8,
            "terms_sha256": "0a" * 32,
            "from": "2026-11-20T00:00:00Z",
        }
    )


class LicenceAnswer(AnswerModel):
    licence_id: LicenceId
    provider_id: ProviderId
    vendor: str
    model: str
    seats: Count
    terms_sha256: str
    from_: Annotated[Told_at, Field(alias="from")]
    until: Told_at | None = None
    granted_at: Told_at
    revoked_at: Told_at | None = None
    position: Position | None = None


class LicenceRevokedAnswer(AnswerModel):
    licence_id: LicenceId
    revoked: bool
    position: Position | None = None


@resource.get("/v1/resource-kinds", everybody(), ResourceKindsAnswer)
def list_resource_kinds(call: Caller) -> Response:
    """Lists every kind of resource that can be rented, by kind and vendor."""
    with call.read(FLEET) as view:
        kinds, models = (
            supply.read_kinds(view.connection),
            supply.read_model_classes(view.connection),
        )
        told = ResourceKindsAnswer(
            data=[*map(_kind, SEED), *map(_kind, kinds)],
            models=[
                ModelClassAnswer(
                    vendor=row.vendor,
                    model=row.model,
                    gpu_class=row.gpu_class,
                    effective_from=moment(row.effective_from_us),
                )
                for row in models
            ],
            position=view.position,
        )
        return call.answer(view, told)


@resource.post(
    "/v1/resource-kinds",
    with_scope("operator"),
    ResourceKindAnswer,
    status=201,
    problems=[
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.TARIFF_NOTICE,
    ],
)
def register_resource_kind(body: ResourceKindRequest, call: Caller) -> Response:
    """Registers a vendor's devices of a kind, from a date on."""
    command = RegisterResourceKind(
        kind=body.kind,
        vendor=body.vendor,
        dimensions=tuple(body.dimensions),
        memory=body.memory,
        is_divisible=body.divisible,
        capacity_asset=Asset(body.capacity_asset),
        effective_from_us=body.effective_from,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    told = ResourceKindAnswer(
        kind=body.kind,
        vendor=body.vendor,
        dimensions=body.dimensions,
        memory=body.memory,
        divisible=body.divisible,
        capacity_asset=body.capacity_asset,
        effective_from=moment(body.effective_from),
    )
    return call.record(lambda: command, lambda _after: told)


@resource.post(
    "/v1/resource-kinds/models",
    with_scope("operator"),
    ModelClassAnswer,
    status=201,
    problems=[
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.TARIFF_NOTICE,
    ],
)
def register_model_class(body: ModelClassRequest, call: Caller) -> Response:
    """Puts a model into a class of the tariff, from a date on. The class decides its fee."""
    command = ClassModel(
        vendor=body.vendor,
        model=body.model,
        gpu_class=body.gpu_class,
        effective_from_us=body.effective_from,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    told = ModelClassAnswer(
        vendor=body.vendor,
        model=body.model,
        gpu_class=body.gpu_class,
        effective_from=moment(body.effective_from),
    )
    return call.record(lambda: command, lambda _after: told)


def _kind(told: Any) -> ResourceKindAnswer:
    return ResourceKindAnswer(
        kind=told.kind,
        vendor=told.vendor,
        dimensions=list(told.dimensions),
        memory=told.memory,
        divisible=told.is_divisible,
        capacity_asset=told.capacity_asset,
        effective_from=moment(told.effective_from_us),
    )


# --- licences --------------------------------------------------------------------------------


@resource.post(
    "/v1/licences",
    with_scope("provider"),
    LicenceAnswer,
    status=201,
    problems=[
        FleetReason.PROVIDER_UNKNOWN,
        FleetReason.LICENCE_EXISTS,
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        FleetReason.BAD_PERIOD,
    ],
)
def grant_licence(body: LicenceRequest, call: Caller) -> Response:
    """Records a licence that one of your providers holds. Its nodes may list the seats."""
    licence_id = call.id("lic")

    def commands() -> GrantLicence:
        own_provider(call, body.provider_id)
        return GrantLicence(
            licence_id=licence_id,
            provider_id=body.provider_id,
            vendor=body.vendor,
            model=body.model,
            seats=body.seats,
            terms_sha256=body.terms_sha256,
            from_us=body.from_,
            until_us=body.until,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        granted = after.state(licence_stream(licence_id)).granted
        return _licence(granted)

    return call.record(commands, told)


@resource.get(
    "/v1/licences",
    with_scope("provider", "operator", "audit:read"),
    page_of(LicenceAnswer),
    problems=["cursor_invalid"],
)
def list_licences(
    call: Caller,
    order: InOrder,
    provider_id: ProviderQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists licences in the order of their grant: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = supply.read_licences(
            view.connection,
            provider_id=provider_id,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _licence)


@resource.post(
    "/v1/licences/{licence_id}/revoke",
    with_scope("provider", "operator"),
    LicenceRevokedAnswer,
    problems=[FleetReason.LICENCE_UNKNOWN],
)
def revoke_licence(licence_id: LicenceInPath, body: EmptyRequest, call: Caller) -> Response:
    """Revokes a licence. Its seats are not accepted in further nodes; held ones run to their
    end.
    """
    del body

    def commands() -> RevokeLicence:
        _own_licence(call, licence_id)
        return RevokeLicence(licence_id=licence_id, by=call.principal.member_id, at_us=call.now_us)

    told = LicenceRevokedAnswer(licence_id=licence_id, revoked=True)
    return call.record(commands, lambda _after: told)


def _own_licence(call: Call, licence_id: str) -> None:
    state = call.service.ledger.market.state_of(licence_stream(licence_id))
    unknown = Refused(FleetReason.LICENCE_UNKNOWN, licence_id=licence_id)
    if state.granted is None:
        raise unknown
    if call.principal.is_operator:
        return
    try:
        own_provider(call, state.granted.provider_id)
    except Refused:
        raise unknown from None


def _licence(row: Any) -> LicenceAnswer:
    revoked_us = getattr(row, "revoked_at_us", None)
    span: Any = {"from": moment(row.from_us), "until": moment_or_none(row.until_us)}
    return LicenceAnswer(
        licence_id=row.licence_id,
        provider_id=row.provider_id,
        vendor=row.vendor,
        model=row.model,
        seats=row.seats,
        terms_sha256=row.terms_sha256,
        **span,
        granted_at=moment(row.at_us),
        revoked_at=moment_or_none(revoked_us),
    )
