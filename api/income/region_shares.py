"""Regions that share what their nodes earn: under which terms, and what each day came to."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import AfterValidator, Field

from api.door.amounts import Money, Units, credits_
from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    NodeId,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.fleet.providers import own_region
from domain.calendar import day_named, day_text
from domain.fleet.provider import provider_stream, region_stream
from domain.fleet.reasons import FleetReason
from domain.income.region_sharing import NOTICE_DAYS, SetRegionTerms
from domain.income.region_terms import InfraCost, RegionTerms, RegionTermsSet, stream_of
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from projections.fleet.fleet import FLEET
from projections.income import regions
from projections.income.regions import REGIONS

resource = Resource("regions")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")


def _a_day(text: str) -> str:
    day_named(text)
    return text


_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
Date = Annotated[str, Field(pattern=_DATE, examples=["2027-01-01"]), AfterValidator(_a_day)]
Ppm = Annotated[int, Field(ge=0, le=1_000_000)]
Tier = Annotated[int, Field(ge=0, le=4)]


class RegionInfraTermsRequest(RequestModel):
    """Credits per UTC day: `base` in any case, for each node with the role, and `per_gib` of the
    bytes that ingress nodes report; together at most `most`. What a day cannot pay waits as
    arrears, up to `arrears_max`.
    """

    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money
    per_gib: Money | None = None


class RegionTermsRequest(RequestModel):
    """`version` is one more than the last one's. With `shared` false every owner keeps what its
    node earns from that day on. Time below the tier is not paid for.
    """

    version: Annotated[int, Field(ge=1, le=1_000_000)]
    effective_from: Date
    shared: bool
    participation_ppm: Ppm
    availability_min_tier: Tier = 3
    infra: RegionInfraTermsRequest

    model_config = with_examples(
        {
            "version": 1,
            "effective_from": "2027-01-01",
            "shared": True,
            "participation_ppm": 200_000,
            "availability_min_tier": 3,
            "infra": {
                "base": {"asset": "CREDIT", "units": "0"},
                "control": {"asset": "CREDIT", "units": "3000000"},
                "ingress": {"asset": "CREDIT", "units": "3000000"},
                "most": {"asset": "CREDIT", "units": "20000000"},
                "arrears_max": {"asset": "CREDIT", "units": "60000000"},
            },
        }
    )


class RegionInfraTermsAnswer(AnswerModel):
    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money
    per_gib: Money


class RegionTermsVersionAnswer(AnswerModel):
    version: Count
    effective_from: str
    shared: bool
    participation_ppm: Ppm
    availability_min_tier: Tier
    infra: RegionInfraTermsAnswer
    set_at: Told_at


class RegionTermsAnswer(AnswerModel):
    """Every version, oldest first; without any the region shares nothing."""

    region_id: RegionId
    notice_days: Count
    versions: list[RegionTermsVersionAnswer]
    position: Position | None = None


class RegionDayAnswer(AnswerModel):
    """gathered + carry_before = infra + participation + usage + carry. `forgone`: cost of control
    and ingress above the arrears that the terms allow, which is never paid.
    """

    date: str
    terms_version: Count
    gathered: Money
    carry_before: Money
    infra_due: Money
    arrears_before: Money
    infra: Money
    infra_account_id: AccountId
    arrears: Money
    forgone: Money
    participation: Money
    usage: Money
    carry: Money
    control_nodes: Count
    ingress_nodes: Count
    ingress_bytes: Count
    nodes: Count
    shared_at: Told_at
    position: Position


class NodeSharePartAnswer(AnswerModel):
    """`book`: where it waits because the account was closed."""

    account_id: AccountId
    amount: Money
    book: str | None = None


class NodeShareAnswer(AnswerModel):
    """How a node's part was computed. `available_gpu_us`: attested at the tier of the terms;
    `below_tier_gpu_us`: attested, and not paid for; `revenue`: gathered of what it earned.
    """

    node_id: NodeId
    available_gpu_us: Units
    below_tier_gpu_us: Units
    revenue: Money
    participation: Money
    usage: Money
    parts: list[NodeSharePartAnswer]


@resource.post(
    "/v1/regions/{region_id}/terms",
    WRITE,
    RegionTermsAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_TERMS,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.SHARE_OUT_OF_RANGE,
    ],
)
def set_region_terms(region_id: RegionInPath, body: RegionTermsRequest, call: Caller) -> Response:
    """Sets how a region shares what its nodes earn, a whole notice period ahead."""
    infra = body.infra

    def commands() -> SetRegionTerms:
        own_region(call, region_id)
        return SetRegionTerms(
            region_id=region_id,
            account_id=call.principal.account_id,
            version=body.version,
            effective_from_day=day_named(body.effective_from),
            is_shared=body.shared,
            participation_ppm=body.participation_ppm,
            availability_min_tier=body.availability_min_tier,
            infra=InfraCost(
                base=infra.base.amount(),
                control=infra.control.amount(),
                ingress=infra.ingress.amount(),
                most=infra.most.amount(),
                arrears_max=infra.arrears_max.amount(),
                per_gib=credit(0) if infra.per_gib is None else infra.per_gib.amount(),
            ),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _terms(region_id, after.state(stream_of(region_id))))


@resource.get(
    "/v1/regions/{region_id}/terms", READ, RegionTermsAnswer, problems=[FleetReason.REGION_UNKNOWN]
)
def read_region_terms(region_id: RegionInPath, call: Caller) -> Response:
    """Returns how a region shares what its nodes earn. Any account may read it."""
    with call.read(FLEET, REGIONS) as view:
        _provider_of(call, region_id)
        state = call.service.ledger.market.state_of(stream_of(region_id))
        told = _terms(region_id, state).model_copy(update={"position": view.position})
        return call.answer(view, told)


@resource.get(
    "/v1/regions/{region_id}/shares",
    READ,
    page_of(RegionDayAnswer),
    problems=[FleetReason.REGION_UNKNOWN, "cursor_invalid"],
)
def list_region_days(
    region_id: RegionInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists days that a region has shared out, newest first, for its provider and the receivers."""
    place = call.place(cursor, [2**31 - 1])
    with call.read(FLEET, REGIONS) as view:
        _only(call, view.connection, region_id)
        rows = regions.read_days(view.connection, region_id, before=place.after[0], limit=limit + 1)
        return call.page(view, place, rows, limit, lambda row: [row.day], _day)


@resource.get(
    "/v1/regions/{region_id}/shares/{date}",
    READ,
    page_of(NodeShareAnswer),
    problems=[FleetReason.REGION_UNKNOWN, "cursor_invalid"],
)
def list_region_shares(
    region_id: RegionInPath,
    date: Annotated[str, Path(pattern=_DATE, examples=["2027-01-01"])],
    call: Caller,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists every node's share of a day and why; of other regions, the shares paid to you."""
    place = call.place(cursor, [""])
    try:
        day = day_named(date)
    except ValueError:
        day = -1  # no such day: nothing was shared on it
    with call.read(FLEET, REGIONS) as view:
        only = _only(call, view.connection, region_id)
        rows = regions.read_shares(
            view.connection,
            region_id,
            day=day,
            account_id=only,
            after=place.after[0],
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.node_id], _share)


def _provider_of(call: Call, region_id: str) -> str:
    """The account of a region's provider. Raises Refused: REGION_UNKNOWN."""
    state = call.service.ledger.market.state_of(region_stream(region_id))
    if state.opened is None:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)
    stream = provider_stream(state.opened.provider_id)
    provider = call.service.ledger.market.state_of(stream)
    return provider.account_id


def _only(call: Call, connection: Any, region_id: str) -> str | None:
    """The account whose shares the caller may see; None for all of them.

    Raises Refused: REGION_UNKNOWN, also for regions that never paid the caller.
    """
    if call.principal.may_see(_provider_of(call, region_id)):
        return None
    account_id = call.principal.account_id
    if not regions.has_share(connection, region_id, account_id):
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)
    return account_id


def _terms(region_id: str, state: RegionTerms) -> RegionTermsAnswer:
    return RegionTermsAnswer(
        region_id=region_id,
        notice_days=NOTICE_DAYS,
        versions=[_version(one) for one in state.versions],
    )


def _version(one: RegionTermsSet) -> RegionTermsVersionAnswer:
    infra = one.infra
    return RegionTermsVersionAnswer(
        version=one.version,
        effective_from=day_text(one.effective_from_day),
        shared=one.is_shared,
        participation_ppm=one.participation_ppm,
        availability_min_tier=one.availability_min_tier,
        infra=RegionInfraTermsAnswer(
            base=credits_(infra.base.units),
            control=credits_(infra.control.units),
            ingress=credits_(infra.ingress.units),
            most=credits_(infra.most.units),
            arrears_max=credits_(infra.arrears_max.units),
            per_gib=credits_(infra.per_gib.units),
        ),
        set_at=moment(one.at_us),
    )


def _day(row: regions.Day) -> RegionDayAnswer:
    return RegionDayAnswer(
        date=day_text(row.day),
        terms_version=row.terms_version,
        gathered=credits_(row.gathered),
        carry_before=credits_(row.carry_before),
        infra_due=credits_(row.infra_due),
        arrears_before=credits_(row.arrears_before),
        infra=credits_(row.infra),
        infra_account_id=row.infra_account_id,
        arrears=credits_(row.arrears),
        forgone=credits_(row.forgone),
        participation=credits_(row.participation),
        usage=credits_(row.usage),
        carry=credits_(row.carry),
        control_nodes=row.control_nodes,
        ingress_nodes=row.ingress_nodes,
        ingress_bytes=row.ingress_bytes,
        nodes=row.nodes,
        shared_at=moment(row.at_us),
        position=row.position,
    )


def _share(row: regions.Share) -> NodeShareAnswer:
    return NodeShareAnswer(
        node_id=row.node_id,
        available_gpu_us=str(row.available_us),
        below_tier_gpu_us=str(row.below_tier_us),
        revenue=credits_(row.revenue),
        participation=credits_(row.participation),
        usage=credits_(row.usage),
        parts=[
            NodeSharePartAnswer(
                account_id=part["account_id"],
                amount=credits_(int(part["units"])),
                book=part.get("book"),
            )
            for part in row.parts
        ],
    )
