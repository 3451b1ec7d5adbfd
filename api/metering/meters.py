"""Other resources than GPUs: what a lease's node signed, what each meter of it counts and costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from api.door.amounts import Money, Units, credits_, credits_or_none
from api.door.auth import with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountQuery,
    AnswerModel,
    Count,
    FromQuery,
    JobId,
    LeaseId,
    LeaseInPath,
    MomentQuery,
    NodeId,
    NodeQuery,
    Position,
    TextQuery,
    Told_at,
    TruthQuery,
    page_of,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.timespans import bounded
from api.metering.resource_rows import first_position
from api.parties.accounts import visible
from domain.jobs.job import job_stream
from domain.lease.lease import lease_stream
from domain.lease.reasons import LeaseReason
from domain.metering.report import lane_of
from domain.metering.resources import AMOUNTS
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from ledger.log.report_rows import Used, used_by
from ledger.log.usage import StoredReport
from ledger.log.usage_reads import NodeReader
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.metering import meters, resources
from projections.metering.meters import METERS
from projections.metering.resources import RESOURCES

resource = Resource("meters")

READ = with_scope("meter", "renter", "client", "provider", "billing:read", "operator", "audit:read")

MeterName = Literal["cpu", "memory", "storage", "network"]
MeterInPath = Annotated[MeterName, Path()]
Group = Annotated[
    str,
    Query(pattern=rf"^({'|'.join(resources.GROUPS)})$", description="What to sum by: one of these"),
]


class UsedAmountsAnswer(AnswerModel):
    """Signed amounts: processor in microseconds, memory and storage in byte-seconds, bytes."""

    cpu_us: Units
    memory_byte_s: Units
    storage_byte_s: Units
    received_bytes: Units
    sent_bytes: Units


class UsedKnownAnswer(AnswerModel):
    """For how much of the metered time each could be measured, in microseconds."""

    cpu_us: Units
    memory_us: Units
    storage_us: Units
    network_us: Units


class LeaseUsedAnswer(UsedAmountsAnswer):
    """What the node of a lease signed of it beside GPU time, charged or not. `time_us` is the time
    that its rows cover.
    """

    rows: Count
    time_us: Units
    known: UsedKnownAnswer
    from_: Annotated[Told_at, Field(alias="from")]
    to: Told_at


class ResourceRowAnswer(AnswerModel):
    """A signed row: a stretch of time of the lease's work. An absent amount could not be measured.

    `lane`, `usage_position` and `seq` name the signed report it stands in.
    """

    lane: Annotated[int, Field(ge=0, le=63)]
    usage_position: Position
    seq: Count
    node_id: NodeId
    from_: Annotated[Told_at, Field(alias="from")]
    to: Told_at
    microseconds: Units
    source: Literal["cgroup2", "cgroup1", "proc", "other"]
    cpu_us: Units | None = None
    memory_byte_s: Units | None = None
    storage_byte_s: Units | None = None
    received_bytes: Units | None = None
    sent_bytes: Units | None = None
    received_at: Told_at


class RefusedUseAnswer(AnswerModel):
    """What of a report's rows a meter did not count, in the unit of the rows, and the rule."""

    usage_position: Position
    rule: str
    amount: Units
    charged_position: Position


class LeaseResourceAnswer(AnswerModel):
    """One meter of a lease: all that counts, its price, and where the charge went.

    `measured` sums rows: microseconds of processor, byte-seconds or bytes; `quantity` is that in
    whole units; `charge` is floor(quantity x price / per). `agreed`: the most that the renter pays.
    """

    lease_id: LeaseId
    node_id: NodeId
    meter: MeterName
    unit: str
    measured: Units
    quantity: Units
    price: Money
    per: Units
    tariff_version: Count
    charge: Money
    provider: Money
    platform: Money
    burn: Money
    agreed: Money | None = None
    rows: Count
    through_position: Position
    accrued_at: Told_at
    accrued_position: Position


class LeaseResourcesAnswer(AnswerModel):
    """`used`: what the node signed; absent: nothing. `resources`: what of it was charged; a meter
    that is not there costs nothing, as the renter agreed to no maximum or it has no price.
    """

    lease_id: LeaseId
    used: LeaseUsedAnswer | None = None
    resources: list[LeaseResourceAnswer]
    position: Position


class ResourceChargeAnswer(AnswerModel):
    """What one fact added. It judged the reports of the lease's node in its lane after
    `after_position` up to `through_position`; `refused` is what of their rows did not count.
    """

    meter: MeterName
    lane: Annotated[int, Field(ge=0, le=63)]
    after_position: Position
    through_position: Position
    rows: Count
    measured: Units
    quantity: Units
    charge: Money
    refused: list[RefusedUseAnswer]
    accrued_at: Told_at
    position: Position


class LeaseTransfersAnswer(AnswerModel):
    """Bytes over the network, as the lease's node signed them, in and out; and the datasets that
    its job names. `measured_us` is the time in which they could be measured.
    """

    lease_id: LeaseId
    job_id: JobId
    route_id: str | None = None
    received_bytes: Units
    sent_bytes: Units
    bytes: Units
    measured_us: Units
    datasets: list[str]
    position: Position


class ResourceUseAnswer(UsedAmountsAnswer):
    """Signed use of the leases of one group. `group` is what it was summed by."""

    group: str
    leases: Count
    time_us: Units


@resource.get(
    "/v1/leases/{lease_id}/resources",
    READ,
    LeaseResourcesAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def list_lease_resources(lease_id: LeaseInPath, call: Caller) -> Response:
    """Lists what a lease used beside GPU time, and what each meter of it counts and costs."""
    with call.read(LEASES, METERS, RESOURCES) as view:
        _visible(call, view, lease_id)
        rows = meters.read_resources(view.connection, lease_id)
        reported = resources.read_reported(view.connection, lease_id)
        told = LeaseResourcesAnswer(
            lease_id=lease_id,
            used=None if reported is None else _used(reported),
            resources=[_resource(row) for row in rows],
            position=view.position,
        )
        return call.answer(view, told)


@resource.get(
    "/v1/leases/{lease_id}/resources/{meter}",
    READ,
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
    """Lists the facts of one meter of a lease: what each counted, charged and did not count."""
    place = call.place(cursor, [0])
    with call.read(LEASES, METERS) as view:
        _visible(call, view, lease_id)
        rows = meters.read_accruals(
            view.connection, lease_id, meter, after=place.after[0], limit=limit + 1
        )
        refused = meters.read_refused(
            view.connection,
            lease_id,
            meter,
            place.after[0],
            rows[-1].through_position if rows else 0,
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.through_position],
            lambda row: _charge(row, [one for one in refused if one.position == row.position]),
        )


@resource.get(
    "/v1/leases/{lease_id}/resource-rows",
    READ,
    page_of(ResourceRowAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_resource_rows(
    lease_id: LeaseInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the signed rows of a lease beside GPU time, each with the report it stands in."""
    place = call.place(cursor, [0, -1])
    with call.read(LEASES) as view:
        _visible(call, view, lease_id)
        lease = call.service.ledger.market.state_of(lease_stream(lease_id))
        found: list[tuple[StoredReport, Used]] = []
        if lease.reserved is not None:
            node_id, reader = lease.reserved.node_id, NodeReader(view.connection)
            after, start_us = place.after
            first = after - 1 if after else first_position(reader, lease, 0)
            for report in reader.reports(node_id, first, reader.head(lane_of(node_id))):
                found += [
                    (report, row)
                    for row in used_by(report)
                    if row.lease_id == lease_id
                    and (row.position, row.mono_start_us) > (after, start_us)
                ]
                if len(found) > limit:
                    break
        return call.page(
            view,
            place,
            found[: limit + 1],
            limit,
            lambda one: [one[1].position, one[1].mono_start_us],
            _row,
        )


@resource.get(
    "/v1/leases/{lease_id}/transfers",
    READ,
    LeaseTransfersAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def read_lease_transfers(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the totals of what a lease moved over the network, and the datasets of its job."""
    with call.read(LEASES, RESOURCES) as view:
        _visible(call, view, lease_id)
        lease = call.service.ledger.market.state_of(lease_stream(lease_id))
        assert lease.requested is not None, lease_id
        job = call.service.ledger.market.state_of(job_stream(lease.requested.job_id))
        assert job.submitted is not None, lease_id
        reported = resources.read_reported(view.connection, lease_id)
        received, sent, known_us = (
            (0, 0, 0)
            if reported is None
            else (reported.received_bytes, reported.sent_bytes, reported.network_known_us)
        )
        told = LeaseTransfersAnswer(
            lease_id=lease_id,
            job_id=lease.requested.job_id,
            route_id=lease.requested.route_id,
            received_bytes=str(received),
            sent_bytes=str(sent),
            bytes=str(received + sent),
            measured_us=str(known_us),
            datasets=[one.name for one in job.submitted.references if one.kind == "dataset"],
            position=view.position,
        )
        return call.answer(view, told)


@resource.get(
    "/v1/usage/resources",
    with_scope("billing:read", "earnings:read", "account", "operator"),
    page_of(ResourceUseAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_resource_use(
    call: Caller,
    by: Group = "kind",
    as_provider: TruthQuery = False,
    from_: FromQuery = None,
    to: MomentQuery = None,
    kind: TextQuery = None,
    node_id: NodeQuery = None,
    client_id: TextQuery = None,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists signed use of CPU, memory, storage and network by kind of job, node, client, project or
    lease: of leases reserved in [from, to), at most 366 days.

    Your own leases, or with `as_provider` those on your nodes; operators and auditors see all
    accounts unless they name one.
    """
    who = account_id or call.principal.only
    if account_id is not None:
        visible(call.principal, account_id)
    from_us, to_us = bounded(from_, to, call.now_us)
    place = call.place(cursor, [""])
    with call.read(RESOURCES) as view:
        rows = resources.read_used(
            view.connection,
            who,
            as_provider=as_provider,
            by=by,
            from_us=from_us,
            to_us=to_us,
            after=place.after[0],
            limit=limit + 1,
            kind=kind,
            node_id=node_id,
            client_id=client_id,
        )
        return call.page(view, place, rows, limit, lambda row: [row.group], _use)


def _visible(call: Call, view: View, lease_id: str) -> None:
    """Raises Refused: LEASE_UNKNOWN, also for another party's."""
    found = leases.read_lease(view.connection, lease_id, account_id=call.principal.only)
    if found is None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)


def _amounts(row: resources.Reported | resources.UsedSum) -> dict[str, str]:
    return {name: str(getattr(row, name)) for name in AMOUNTS}


def _used(row: resources.Reported) -> LeaseUsedAnswer:
    span: dict[str, Any] = {"from": moment(row.first_us), "to": moment(row.last_us)}
    return LeaseUsedAnswer(
        rows=row.rows,
        time_us=str(row.time_us),
        known=UsedKnownAnswer(
            cpu_us=str(row.cpu_known_us),
            memory_us=str(row.memory_known_us),
            storage_us=str(row.storage_known_us),
            network_us=str(row.network_known_us),
        ),
        **_amounts(row),
        **span,
    )


def _use(row: resources.UsedSum) -> ResourceUseAnswer:
    return ResourceUseAnswer(
        group=row.group, leases=row.leases, time_us=str(row.time_us), **_amounts(row)
    )


def _row(one: tuple[StoredReport, Used]) -> ResourceRowAnswer:
    report, row = one
    span: dict[str, Any] = {"from": moment(row.from_us), "to": moment(row.until_us)}
    amounts: dict[str, Any] = {
        name: None if units is None else str(units) for name, units in row.amounts.items()
    }
    source: Any = row.source
    return ResourceRowAnswer(
        lane=report.lane,
        usage_position=report.position,
        seq=report.node_seq,
        node_id=report.node_id,
        microseconds=str(row.mono_end_us - row.mono_start_us),
        source=source,
        received_at=moment(report.recorded_us),
        **amounts,
        **span,
    )


def _resource(row: meters.Resource) -> LeaseResourceAnswer:
    meter: Any = row.meter
    return LeaseResourceAnswer(
        lease_id=row.lease_id,
        node_id=row.node_id,
        meter=meter,
        unit=row.unit,
        measured=str(row.measured),
        quantity=str(row.quantity),
        price=credits_(row.price_units),
        per=str(row.per),
        tariff_version=row.tariff_version,
        charge=credits_(row.charge_units),
        provider=credits_(row.provider_units),
        platform=credits_(row.platform_units),
        burn=credits_(row.burn_units),
        agreed=credits_or_none(row.agreed_units),
        rows=row.rows,
        through_position=row.through_position,
        accrued_at=moment(row.at_us),
        accrued_position=row.position,
    )


def _charge(row: meters.Accrual, refused: list[meters.Refused]) -> ResourceChargeAnswer:
    meter: Any = row.meter
    return ResourceChargeAnswer(
        meter=meter,
        lane=row.lane,
        after_position=row.after_position,
        through_position=row.through_position,
        rows=row.rows,
        measured=str(row.measured),
        quantity=str(row.quantity),
        charge=credits_(row.charge_units),
        refused=[
            RefusedUseAnswer(
                usage_position=one.usage_position,
                rule=one.rule,
                amount=str(one.quantity),
                charged_position=one.position,
            )
            for one in refused
        ],
        accrued_at=moment(row.at_us),
        position=row.position,
    )
