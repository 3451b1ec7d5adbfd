"""Tariffs: what is published, which version is in force, and the operator's next one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.amounts import Money, Units, money
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Moment,
    Position,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.second_person import checked
from domain.duration import SECOND_US
from domain.money import Amount, MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import (
    NETWORK,
    FederatedFees,
    FreeStart,
    MeterRate,
    PublishTariff,
    SlaClass,
    SlaTier,
    Split,
    SplitShare,
    TariffPublished,
    UsageFee,
)

resource = Resource("tariffs")

GpuClass = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]
Bucket = Literal["provider", "client", "platform", "burn"]
Meter = Literal["cpu", "memory", "storage", "network"]
Share = Annotated[int, Field(ge=0, le=1_000_000, description="Parts per million")]
Rows = Annotated[int, Field(ge=1, le=1_000_000)]
NoticeSeconds = Annotated[int, Field(ge=0, le=366 * 86_400)]
_EXAMPLE: dict[str, Any] = {
    "version": 2,
    "usage_fees": [
        {"gpu_class": "datacenter", "per_gpu_hour": {"asset": "CREDIT", "units": "250000"}}
    ],
    "provider_share_ppm": 500_000,
    "effective_from": "2027-01-01T00:00:00Z",
    "sla": [{"name": "gold", "tiers": [{"below_ppm": 990_000, "credit_ppm": 100_000}]}],
}


class UsageFeeForm(RequestModel):
    gpu_class: GpuClass
    per_gpu_hour: Money


class ChargeSplitShareForm(RequestModel):
    bucket: Bucket
    share_ppm: Share


class ChargeSplitForm(RequestModel):
    """What remains after the usage fee, peeled in this order; `residual` gets the rest."""

    shares: Annotated[list[ChargeSplitShareForm], Field(max_length=4)]
    residual: Bucket


class FederatedFeeForm(RequestModel):
    inference_per_hour: Money
    training_per_hour: Money
    unit: Literal["worker", "job"]


class ResourceRateForm(RequestModel):
    """floor(quantity x price / per) micro-credits; the meter's own unit."""

    meter: Meter
    price: Money
    per: Units


class SlaTierForm(RequestModel):
    below_ppm: Rows
    credit_ppm: Rows


class SlaClassForm(RequestModel):
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,32}$")]
    tiers: Annotated[list[SlaTierForm], Field(min_length=1, max_length=32)]


class FreeStartForm(RequestModel):
    """The time before a program's start succeeded is free for `at_most_seconds`, and not at all for
    starts that follow on `failed_per_hour` failed ones of the account within an hour.
    """

    at_most_seconds: Annotated[int, Field(ge=0, le=600)]
    failed_per_hour: Annotated[int, Field(ge=0, le=100)]


class TariffRequest(RequestModel):
    """The next version, whole: a row that is left out costs nothing under it. Without `free_start`
    all time before a program's start succeeded is free.
    """

    version: Annotated[int, Field(ge=1, le=1_000_000)]
    usage_fees: Annotated[list[UsageFeeForm], Field(max_length=32)]
    provider_share_ppm: Share
    burn_share_ppm: Share = 0
    effective_from: Moment
    split: ChargeSplitForm | None = None
    federated: FederatedFeeForm | None = None
    device_fee_per_month: Money | None = None
    storage_node_per_hour: Money | None = None
    meters: Annotated[list[ResourceRateForm], Field(max_length=4)] | None = None
    sla: Annotated[list[SlaClassForm], Field(max_length=32)] | None = None
    notice_seconds: NoticeSeconds | None = None
    free_start: FreeStartForm | None = None

    model_config = with_examples(_EXAMPLE)


class TariffAnswer(AnswerModel):
    """`in_force`: the version that a lease reserved now would keep."""

    version: Count
    usage_fees: list[UsageFeeForm]
    provider_share_ppm: Share
    burn_share_ppm: Share
    effective_from: Told_at
    published_at: Told_at
    by: Short
    in_force: bool
    split: ChargeSplitForm | None = None
    federated: FederatedFeeForm | None = None
    device_fee_per_month: Money | None = None
    storage_node_per_hour: Money | None = None
    meters: list[ResourceRateForm] | None = None
    sla: list[SlaClassForm] | None = None
    notice_seconds: NoticeSeconds | None = None
    free_start: FreeStartForm | None = None
    position: Position | None = None


class TariffsAnswer(AnswerModel):
    """Every version ever published, oldest first."""

    data: list[TariffAnswer]
    position: Position


@resource.get("/v1/tariffs", everybody(), TariffsAnswer)
def list_tariffs(call: Caller) -> Response:
    """Lists every version of the tariff, oldest first."""
    with call.read() as view:
        told = _told(_published(call), call.now_us)
        return call.answer(view, TariffsAnswer(data=told, position=view.position))


@resource.post(
    "/v1/tariffs",
    with_scope("operator"),
    TariffAnswer,
    status=201,
    problems=[
        PricesReason.TARIFF_VERSION,
        PricesReason.TARIFF_NOTICE,
        PricesReason.PROFIT_BOUND,
        PartiesReason.SHARE_OUT_OF_RANGE,
        MoneyReason.DUPLICATE_ID,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.UNKNOWN_MODE,
    ],
    checked=True,
)
def publish_tariff(body: TariffRequest, call: Caller) -> Response:
    """Publishes the next version. Leases that are reserved already keep theirs."""

    def told(after: After) -> AnswerModel:
        published = after.state(NETWORK).published
        return _told(published, call.now_us)[body.version - 1]

    return call.record(lambda: checked(call, _command(body, call)), told)


def _published(call: Caller) -> tuple[TariffPublished, ...]:
    return call.service.ledger.market.state_of(NETWORK).published


def _command(body: TariffRequest, call: Caller) -> PublishTariff:
    return PublishTariff(
        version=body.version,
        usage_fees=tuple(
            UsageFee(row.gpu_class, row.per_gpu_hour.amount()) for row in body.usage_fees
        ),
        provider_share_ppm=body.provider_share_ppm,
        burn_share_ppm=body.burn_share_ppm,
        effective_from_us=body.effective_from,
        by=call.principal.member_id,
        at_us=call.now_us,
        split=_split(body.split),
        federated=_federated(body.federated),
        device_fee_per_month=_amount(body.device_fee_per_month),
        storage_node_per_hour=_amount(body.storage_node_per_hour),
        meters=tuple(
            MeterRate(row.meter, row.price.amount(), int(row.per)) for row in body.meters or ()
        ),
        sla=tuple(
            SlaClass(row.name, tuple(SlaTier(t.below_ppm, t.credit_ppm) for t in row.tiers))
            for row in body.sla or ()
        ),
        notice_us=(body.notice_seconds or 0) * SECOND_US,
        free_start=_free_start(body.free_start),
    )


def _free_start(row: FreeStartForm | None) -> FreeStart | None:
    return None if row is None else FreeStart(row.at_most_seconds * SECOND_US, row.failed_per_hour)


def _amount(given: Money | None) -> Amount | None:
    return None if given is None else given.amount()


def _split(row: ChargeSplitForm | None) -> Split | None:
    if row is None:
        return None
    shares = tuple(SplitShare(share.bucket, share.share_ppm) for share in row.shares)
    return Split(shares, row.residual)


def _federated(row: FederatedFeeForm | None) -> FederatedFees | None:
    if row is None:
        return None
    return FederatedFees(row.inference_per_hour.amount(), row.training_per_hour.amount(), row.unit)


def _told(published: tuple[TariffPublished, ...], now_us: int) -> list[TariffAnswer]:
    started = [row.version for row in published if row.effective_from_us <= now_us]
    return [_one(row, is_in_force=row.version == max(started, default=0)) for row in published]


def _one(row: TariffPublished, *, is_in_force: bool) -> TariffAnswer:
    plain: dict[str, Any] = {
        "version": row.version,
        "usage_fees": [
            {"gpu_class": fee.gpu_class, "per_gpu_hour": money(fee.per_gpu_hour)}
            for fee in row.usage_fees
        ],
        "provider_share_ppm": row.provider_share_ppm,
        "burn_share_ppm": row.burn_share_ppm,
        "effective_from": moment(row.effective_from_us),
        "published_at": moment(row.at_us),
        "by": row.by,
        "in_force": is_in_force,
    }
    if row.split is not None:
        shares = [{"bucket": one.bucket, "share_ppm": one.share_ppm} for one in row.split.shares]
        plain["split"] = {"shares": shares, "residual": row.split.residual}
    if row.federated is not None:
        plain["federated"] = {
            "inference_per_hour": money(row.federated.inference_per_hour),
            "training_per_hour": money(row.federated.training_per_hour),
            "unit": row.federated.unit,
        }
    for name in ("device_fee_per_month", "storage_node_per_hour"):
        if getattr(row, name) is not None:
            plain[name] = money(getattr(row, name))
    if row.meters:
        plain["meters"] = [
            {"meter": one.meter, "price": money(one.price), "per": str(one.per)}
            for one in row.meters
        ]
    if row.sla:
        plain["sla"] = [
            {
                "name": one.name,
                "tiers": [
                    {"below_ppm": tier.below_ppm, "credit_ppm": tier.credit_ppm}
                    for tier in one.tiers
                ],
            }
            for one in row.sla
        ]
    if row.free_start is not None:
        plain["free_start"] = {
            "at_most_seconds": row.free_start.at_most_us // SECOND_US,
            "failed_per_hour": row.free_start.failed_per_hour,
        }
    if row.notice_us:
        plain["notice_seconds"] = row.notice_us // SECOND_US
    return TariffAnswer.model_validate(plain)
