"""Other resources than GPUs: events in, what became of each, what each meter of a lease costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from api.door import errors
from api.door.amounts import Money, Units, credits_, credits_or_none
from api.door.auth import with_scope
from api.door.call import After, Call, Caller, View
from api.door.door import VALUES_MAX, parse
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EmptyRequest,
    Hex32,
    LeaseId,
    LeaseInPath,
    LeaseQuery,
    NodeId,
    Position,
    Told_at,
    page_of,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.metering.meter_events import BATCH, ONE, Rejected, ResourceEventRequest, refusal_of, split
from domain.fleet.reasons import FleetReason
from domain.lease.reasons import LeaseReason
from domain.leasing.other_resources import STORAGE, ReleaseStorage, stream_of
from domain.refusal import Refused
from ledger.log import meter_log
from ledger.log.meter_log import EVENTS_MAX, Status
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.metering import meters
from projections.metering.meters import METERS

resource = Resource("meters")

SEND = with_scope("meter", "provider")
READ = with_scope("meter", "provider", "renter", "client", "billing:read", "operator", "audit:read")
LEASE_READ = with_scope("renter", "client", "provider", "billing:read", "operator", "audit:read")

MeterName = Literal["cpu", "memory", "storage", "network"]
MeterInPath = Annotated[MeterName, Path()]
Word = Annotated[str | None, Query(pattern=r"^[!-~]{1,256}$")]


class RejectedEventAnswer(AnswerModel):
    """Which event of the request, the rule it breaks, and where."""

    index: Count
    code: Literal[
        "invalid",
        "gpu_time_refused",
        "meter_unknown",
        "unit_wrong",
        "window_empty",
        "quantity_out_of_range",
        "id_reused",
        "window_overlaps",
        "time_out_of_range",
    ]
    detail: str


class ResourceEventsStoredAnswer(AnswerModel):
    """What became of the events: stored, known already, and refused one by one."""

    accepted: Count
    duplicate: Count
    rejected: list[RejectedEventAnswer]


class ResourceEventAnswer(AnswerModel):
    """An event and its result: accepted, matched (it counts), priced, posted (money moved).

    `reason` says why it does not count, or not in full, and `refused` how much of it. `leaf` is the
    hash of `event`, byte for byte; `accrued_position` the fact of the market log that judged it.
    """

    position: Position
    account_id: AccountId
    lease_id: LeaseId
    meter: MeterName
    quantity: Units
    from_: Annotated[Told_at, Field(alias="from")]
    to: Told_at
    route: str | None = None
    dataset: str | None = None
    state: Literal["accepted", "matched", "priced", "posted"]
    reason: str | None = None
    refused: Units | None = None
    accrued_position: Position | None = None
    event: str
    leaf: Hex32
    received_at: Told_at


class LeaseResourceAnswer(AnswerModel):
    """One meter of a lease: all that counts, its price, and where the charge went.

    `charge` is floor(quantity x price / per); `price` absent: it costs nothing. `agreed`: the most
    that the renter pays for it; absent: nothing.
    """

    lease_id: LeaseId
    node_id: NodeId
    meter: MeterName
    unit: str
    quantity: Units
    price: Money | None = None
    per: Units | None = None
    tariff_version: Count
    charge: Money
    provider: Money
    platform: Money
    burn: Money
    agreed: Money | None = None
    events: Count
    events_through: Position
    events_chain: Hex32
    released_at: Told_at | None = None
    accrued_at: Told_at
    accrued_position: Position


class LeaseResourcesAnswer(AnswerModel):
    lease_id: LeaseId
    resources: list[LeaseResourceAnswer]
    position: Position


class ResourceChargeAnswer(AnswerModel):
    """What one fact added. It judged the events after `events_after` up to `events_through`:
    `events_chain` commits to their bytes, `log_chain` to the whole meter log at `log_position`.
    """

    meter: MeterName
    quantity: Units
    charge: Money
    events: Count
    events_after: Position
    events_through: Position
    events_chain: Hex32
    log_position: Position
    log_chain: Hex32
    accrued_at: Told_at
    position: Position


class LeaseTransferAnswer(AnswerModel):
    """Bytes that counted over one route, of one dataset; absent where events named none."""

    route: str | None = None
    dataset: str | None = None
    bytes: Units
    events: Count


class LeaseTransfersAnswer(AnswerModel):
    lease_id: LeaseId
    bytes: Units
    transfers: list[LeaseTransferAnswer]
    position: Position


class StorageReleasedAnswer(AnswerModel):
    lease_id: LeaseId
    released_at: Told_at
    position: Position | None = None


# --- events in -------------------------------------------------------------------------------


@resource.post(
    "/v1/usage/events",
    SEND,
    ResourceEventsStoredAnswer,
    records=False,
    media_type=BATCH,
    raw_items=ResourceEventRequest,
    items_max=EVENTS_MAX,
    one_media_type=ONE,
)
def report_usage_events(call: Caller) -> Response:
    """Records usage of CPU, memory, storage and network: CloudEvents 1.0, one or up to 1,000.

    Each event is answered by itself. Sending an event again is no error. Another payload under its
    source and id is an error, and so is a window that overlaps one of the same source. No
    Idempotency-Key.
    """
    values = _events(call)
    good, rejected = split(values, call.now_us)
    with call.service.ledger.market.datastore.get_connection() as connection:
        told = meter_log.append(
            connection, call.principal.account_id, [item for _, item in good], call.now_us
        )
    for (index, _), one in zip(good, told, strict=True):
        if one.status not in (Status.STORED, Status.DUPLICATE):
            rejected.append(refusal_of(index, one.status, one.position))
    counts = [one.status for one in told]
    answer = ResourceEventsStoredAnswer(
        accepted=counts.count(Status.STORED),
        duplicate=counts.count(Status.DUPLICATE),
        rejected=[_rejected(one) for one in sorted(rejected, key=lambda one: one.index)],
    )
    return Response(answer.model_dump_json(), media_type="application/json")


def _events(call: Call) -> list[Any]:
    """The events of the request. Raises Problem: 400, 413, 415, 422."""
    media_type, _, rest = call.request.headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().replace('"', "")
    encoding = call.request.headers.get("content-encoding", "identity").strip().lower()
    kind = media_type.strip().lower()
    if kind not in (BATCH, ONE) or charset not in ("", "charset=utf-8") or encoding != "identity":
        raise errors.problem("unsupported_media_type", f"{BATCH} or {ONE}, not compressed")
    value = parse(call.body, values_max=3 * VALUES_MAX)
    if kind == ONE:
        return [value]
    if not isinstance(value, list) or not value:
        raise errors.problem("invalid", "a batch is a list of at least one event")
    return value


def _rejected(one: Rejected) -> RejectedEventAnswer:
    code: Any = one.code
    return RejectedEventAnswer(index=one.index, code=code, detail=one.detail)


# --- events and what became of them ----------------------------------------------------------


@resource.get(
    "/v1/usage/events",
    READ,
    page_of(ResourceEventAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_usage_events(
    call: Caller,
    lease_id: LeaseQuery = None,
    meter: MeterName | None = None,
    route: Word = None,
    dataset: Word = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the events you sent; with a lease of yours, all events of that lease."""
    place = call.place(cursor, [0])
    with call.read(LEASES, METERS) as view:
        sender = call.principal.only
        if lease_id is not None:
            _visible(call, view, lease_id)
            sender = None
        rows = meters.read_events(
            view.connection,
            account_id=sender,
            lease_id=lease_id,
            meter=meter,
            route=route,
            dataset=dataset,
            after=place.after[0],
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _event)


@resource.get(
    "/v1/usage/unmatched", READ, page_of(ResourceEventAnswer), problems=["cursor_invalid"]
)
def list_unmatched_usage(
    call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists events of yours that do not count yet, or never will, each with its reason."""
    place = call.place(cursor, [0])
    with call.read(LEASES, METERS) as view:
        rows = meters.read_unmatched(
            view.connection, account_id=call.principal.only, after=place.after[0], limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _event)


@resource.get(
    "/v1/leases/{lease_id}/resources",
    LEASE_READ,
    LeaseResourcesAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def list_lease_resources(lease_id: LeaseInPath, call: Caller) -> Response:
    """Lists what each meter of a lease counts and costs."""
    with call.read(LEASES, METERS) as view:
        _visible(call, view, lease_id)
        rows = meters.read_resources(view.connection, lease_id)
        told = LeaseResourcesAnswer(
            lease_id=lease_id, resources=[_resource(row) for row in rows], position=view.position
        )
        return call.answer(view, told)


@resource.get(
    "/v1/leases/{lease_id}/resources/{meter}",
    LEASE_READ,
    page_of(ResourceChargeAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_resource_charges(
    lease_id: LeaseInPath,
    meter: MeterInPath,
    call: Caller,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the facts of one meter of a lease: what each counted, charged and commits to."""
    place = call.place(cursor, [0])
    with call.read(LEASES, METERS) as view:
        _visible(call, view, lease_id)
        rows = meters.read_accruals(
            view.connection, lease_id, meter, after=place.after[0], limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.through_position], _charge)


@resource.get(
    "/v1/leases/{lease_id}/transfers",
    LEASE_READ,
    LeaseTransfersAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def list_lease_transfers(lease_id: LeaseInPath, call: Caller) -> Response:
    """Lists bytes of a lease that counted, by network route and dataset; the 1,000 largest."""
    with call.read(LEASES, METERS) as view:
        _visible(call, view, lease_id)
        rows = meters.read_transfers(view.connection, lease_id)
        told = LeaseTransfersAnswer(
            lease_id=lease_id,
            bytes=str(sum(row.quantity for row in rows)),
            transfers=[
                LeaseTransferAnswer(
                    route=row.route, dataset=row.dataset, bytes=str(row.quantity), events=row.events
                )
                for row in rows
            ],
            position=view.position,
        )
        return call.answer(view, told)


@resource.post(
    "/v1/leases/{lease_id}/storage/release",
    with_scope("renter", "client"),
    StorageReleasedAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE],
)
def release_storage(lease_id: LeaseInPath, body: EmptyRequest, call: Caller) -> Response:
    """Releases the storage of a closed lease. It is billed until now."""
    del body
    command = ReleaseStorage(
        lease_id=lease_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: After) -> StorageReleasedAnswer:
        released_us = after.state(stream_of(lease_id, STORAGE)).released_us
        assert released_us is not None, lease_id
        return StorageReleasedAnswer(lease_id=lease_id, released_at=moment(released_us))

    return call.record(lambda: command, told)


def _visible(call: Call, view: View, lease_id: str) -> None:
    """Raises Refused: LEASE_UNKNOWN, also for another party's."""
    found = leases.read_lease(view.connection, lease_id, account_id=call.principal.only)
    if found is None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)


def _event(row: meters.Event) -> ResourceEventAnswer:
    told: dict[str, Any] = {
        "position": row.position,
        "account_id": row.account_id,
        "lease_id": row.lease_id,
        "meter": row.meter,
        "quantity": str(row.quantity),
        "from": moment(row.from_us),
        "to": moment(row.to_us),
        "route": row.route,
        "dataset": row.dataset,
        "state": row.state,
        "reason": row.reason,
        "refused": None if row.refused is None else str(row.refused),
        "accrued_position": row.accrued_position,
        "event": bytes(row.body).decode(),
        "leaf": bytes(row.leaf).hex(),
        "received_at": moment(row.recorded_us),
    }
    return ResourceEventAnswer(**told)


def _resource(row: meters.Resource) -> LeaseResourceAnswer:
    meter: Any = row.meter
    return LeaseResourceAnswer(
        lease_id=row.lease_id,
        node_id=row.node_id,
        meter=meter,
        unit=row.unit,
        quantity=str(row.quantity),
        price=credits_or_none(row.price_units),
        per=None if row.per is None else str(row.per),
        tariff_version=row.tariff_version,
        charge=credits_(row.charge_units),
        provider=credits_(row.provider_units),
        platform=credits_(row.platform_units),
        burn=credits_(row.burn_units),
        agreed=credits_or_none(row.agreed_units),
        events=row.events,
        events_through=row.through_position,
        events_chain=row.events_chain,
        released_at=moment_or_none(row.released_at_us),
        accrued_at=moment(row.at_us),
        accrued_position=row.position,
    )


def _charge(row: meters.Accrual) -> ResourceChargeAnswer:
    meter: Any = row.meter
    return ResourceChargeAnswer(
        meter=meter,
        quantity=str(row.quantity),
        charge=credits_(row.charge_units),
        events=row.events,
        events_after=row.after_position,
        events_through=row.through_position,
        events_chain=row.events_chain,
        log_position=row.log_position,
        log_chain=row.log_chain,
        accrued_at=moment(row.at_us),
        position=row.position,
    )
