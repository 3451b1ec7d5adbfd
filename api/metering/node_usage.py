"""Usage of a node: its signed reports in, receipts out, and how its time was counted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from api.door.amounts import Units
from api.door.auth import everybody
from api.door.call import Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    DeviceId,
    FromQuery,
    LeaseId,
    MomentQuery,
    NodeId,
    NodeInPath,
    PlainQuery,
    Position,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.fleet.nodes import READ_OR_NODE, visible_node
from api.ingest.door import MEDIA_TYPE
from api.metering import refused_rows
from domain.fleet.reasons import FleetReason
from domain.metering.counting import RefusedRow
from domain.metering.report import lane_of
from domain.refusal import Refused
from ledger.log import codec
from projections.fleet.fleet import FLEET
from projections.metering import usage
from projections.metering.usage import USAGE

resource = Resource("nodes")


Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class UsageReceiptAnswer(AnswerModel):
    """The node's half of the stick. `flags` other than 0: stored, and earns nothing."""

    seq: Count
    hash: Hash
    lane: Annotated[int, Field(ge=0, le=63)]
    position: Count
    lane_hash: Hash
    recorded_at: Told_at
    flags: Count


class StoredReportAnswer(AnswerModel):
    status: Literal["stored", "duplicate"]
    receipt: UsageReceiptAnswer


class UsageHeadAnswer(AnswerModel):
    """How far the log holds the node's chain."""

    acked_seq: Count
    head: Hash
    server_time_us: Count


class UsageReceiptsAnswer(UsageHeadAnswer):
    results: list[StoredReportAnswer]


class FlaggedReportAnswer(AnswerModel):
    """A stored report that earns nothing, and the rule it broke."""

    seq: Count
    lane: Annotated[int, Field(ge=0, le=63)]
    usage_position: Count
    flags: Count
    rule: Annotated[str, Field(description="The rule of the report's form that it breaks")]
    detail: str
    claimed_us: Annotated[
        Count | None, Field(description="Available time of its rows; absent: cannot be read")
    ] = None
    recorded_at: Told_at


class RefusedRowAnswer(AnswerModel):
    """A row of a stored report: the stretch of server time it tells of, and what of it was
    refused.
    """

    device_id: DeviceId
    usage_position: Count
    rule: str
    start: Told_at
    end: Told_at
    microseconds: Units


class RefusedTimeAnswer(AnswerModel):
    """Reported time of a lease hour that earned nothing, the rule it broke, and the rows it is of
    (the first 200 of an accrual).
    """

    lease_id: LeaseId
    hour_index: Count
    until: Told_at
    rule: str
    microseconds: Units
    rows: list[RefusedRowAnswer]
    position: Position


class NodeUsageAnswer(AnswerModel):
    """Counts of what was stored; flagged reports after the report `after_seq`, at most 100, and
    refused time after `after_position`, of at most 50 accruals.
    """

    node_id: NodeId
    lane: Annotated[int, Field(ge=0, le=63)]
    reports: Count
    reports_flagged: Count
    last_seq: Count
    last_recorded_at: Told_at | None = None
    flagged: list[FlaggedReportAnswer]
    refused: list[RefusedTimeAnswer]
    position: Position


class NodeHourAnswer(AnswerModel):
    """What a node reported for one UTC hour. Busy time and energy count where measurable;
    `throttled_us`, when power or heat held a clock down, is out of `throttle_known_us`.
    """

    hour: Told_at
    rows: Count
    leased_gpu_us: Units
    idle_gpu_us: Units
    unavailable_us: Units
    unknown_us: Units
    busy_us: Units
    energy_mj: Units
    throttled_us: Units
    throttle_known_us: Units


@resource.get(
    "/v1/nodes/{node_id}/usage/head",
    READ_OR_NODE,
    UsageHeadAnswer,
    problems=[FleetReason.NODE_UNKNOWN, "unavailable"],
)
async def read_usage_head(node_id: NodeInPath, call: Caller) -> Response:
    """Returns how far the log holds this node's chain. A reporter asks this at every start."""
    if not call.node_of_caller(node_id):
        await _must_see(call, node_id)
    if call.service.node_keys.lookup(node_id) is None:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
    return _raw(await call.service.ingest.head(node_id))


class UsageEnvelopeRequest(RequestModel):
    """One signed report as a CloudEvent. Only `data_base64` is signed (DSSE, Ed25519); the other
    fields must agree with it. `id` and `sequence` are its number, `prevhash` the hash before it.
    """

    specversion: Literal["1.0"]
    id: Short
    source: Short
    type: Literal["usage.reported.v1"]
    time: Told_at
    dataschema: Short
    sequence: Short
    prevhash: Hash
    signature: Annotated[str, Field(description="64 bytes, base64")]
    keyid: Short
    data_base64: Annotated[str, Field(description="The signed bytes, at most 256 KiB")]
    datacontenttype: Literal["application/json"] | None = None

    model_config = with_examples(
        {
            "specversion": "1.0",
            "id": "1842",
            "source": "/nodes/node_" + "1" * 32,
            "type": "usage.reported.v1",
            "time": "2026-11-20T08:00:00Z",
            "dataschema": "https://tallystick.org/schema/usage-report/1",
            "sequence": "1842",
            "prevhash": "0" * 64,
            "signature": "A" * 86 + "==",
            "keyid": "0" * 16,
            "data_base64": "e30=",
        }
    )


@resource.post(
    "/v1/nodes/{node_id}/usage",
    everybody(),
    UsageReceiptsAnswer,
    records=False,
    media_type=MEDIA_TYPE,
    raw_items=UsageEnvelopeRequest,
    problems=[
        "malformed",
        "bad_signature",
        "revoked",
        "quarantined",
        "gap",
        "fork",
        "too_large",
        "unsupported_media_type",
        "equivocation",
        "one_request_at_a_time",
        "too_many_reports",
        "internal",
        "unavailable",
    ],
)
async def ingest_usage(
    node_id: Annotated[str, Path(pattern=r"^[^/]{1,100}$")], call: Caller
) -> Response:
    """Stores signed usage reports and returns receipts after the commit.

    A CloudEvents 1.0 batch of at most 64 reports. The reports prove themselves: no other credential
    is needed, and sending one again gives its first receipt again.
    """
    headers = call.request.headers
    raw = await call.service.ingest.ingest(node_id, call.body, headers.get("content-encoding"))
    return _raw(raw)


def _raw(answer: tuple[int, list[tuple[bytes, bytes]], bytes]) -> Response:
    status, headers, body = answer
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return Response(body, status, named)


@resource.get(
    "/v1/nodes/{node_id}/usage", READ_OR_NODE, NodeUsageAnswer, problems=[FleetReason.NODE_UNKNOWN]
)
def read_node_usage(
    node_id: NodeInPath, call: Caller, after_seq: PlainQuery = 0, after_position: PlainQuery = 0
) -> Response:
    """Lists a node's stored usage, and the part that earns nothing, with the rule."""
    with call.read(FLEET, USAGE) as view:
        visible_node(call, view, node_id)
        connection = view.connection
        counted = usage.read_node_reports(connection, node_id)
        first = usage.read_flagged(connection, node_id, after=after_seq, limit=1)
        flagged = [
            one
            for row in first
            for one in refused_rows.broken_reports(
                connection, node_id, row.position - 1, FLAGGED_MAX
            )
        ]
        told = NodeUsageAnswer(
            node_id=node_id,
            lane=lane_of(node_id),
            reports=counted.reports if counted else 0,
            reports_flagged=counted.flagged if counted else 0,
            last_seq=counted.last_seq if counted else 0,
            last_recorded_at=moment(counted.last_recorded_us) if counted else None,
            flagged=[
                FlaggedReportAnswer(
                    seq=one.stored.node_seq,
                    lane=one.stored.lane,
                    usage_position=one.stored.position,
                    flags=one.stored.flags,
                    rule=one.rule,
                    detail=one.detail[:300],
                    claimed_us=one.claimed_us,
                    recorded_at=moment(one.stored.recorded_us),
                )
                for one in flagged
            ],
            refused=_refused_time(call, connection, node_id, after_position),
            position=view.position,
        )
        return call.answer(view, told)


_REFUSED = """
    SELECT a.position, e.state FROM proj_usage.accrual a
    JOIN public.market_events e ON e.notification_id = a.position
    WHERE a.node_id = %s AND a.refused_us > 0 AND a.position > %s ORDER BY a.position LIMIT 50
"""
FLAGGED_MAX = 100


def _refused_time(call: Call, connection: Any, node_id: str, after: int) -> list[RefusedTimeAnswer]:
    told: list[RefusedTimeAnswer] = []
    for position, state in connection.execute(_REFUSED, (node_id, after)).fetchall():
        fact = codec.decode("lease.usage_accrued.v1", bytes(state))
        rows = refused_rows.rows_of_accrual(call.service.ledger.market, connection, fact, position)[
            : refused_rows.ROWS_MAX
        ]
        told.extend(
            RefusedTimeAnswer(
                lease_id=fact.lease_id,
                hour_index=fact.hour_index,
                until=moment(fact.until_us),
                rule=refused.rule,
                microseconds=str(refused.us),
                position=position,
                rows=[_refused_row(one) for one in rows if one.rule == refused.rule],
            )
            for refused in fact.refused
        )
    return told


def _refused_row(one: RefusedRow) -> RefusedRowAnswer:
    return RefusedRowAnswer(
        device_id=one.row.device_id,
        usage_position=one.row.position,
        rule=one.rule,
        start=moment(max(0, one.row.wall_start_us)),
        end=moment(max(0, one.row.wall_end_us)),
        microseconds=str(one.us),
    )


@resource.get(
    "/v1/nodes/{node_id}/usage/hours",
    READ_OR_NODE,
    page_of(NodeHourAnswer),
    problems=[FleetReason.NODE_UNKNOWN, "cursor_invalid"],
)
def list_node_hours(
    node_id: NodeInPath,
    call: Caller,
    order: ByNumber,
    from_: FromQuery = None,
    to: MomentQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists what a node reported, by UTC hour; hours that begin in [from, to)."""
    place = call.place(cursor, [-1], order)
    with call.read(FLEET, USAGE) as view:
        visible_node(call, view, node_id)
        rows = usage.read_node_hours(
            view.connection,
            node_id,
            from_us=from_ or 0,
            to_us=to or 2**53,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.hour_us], _hour)


def _hour(row: usage.NodeHour) -> NodeHourAnswer:
    return NodeHourAnswer(
        hour=moment(row.hour_us),
        rows=row.rows,
        leased_gpu_us=str(row.leased_gpu_us),
        idle_gpu_us=str(row.idle_gpu_us),
        unavailable_us=str(row.unavailable_us),
        unknown_us=str(row.unknown_us),
        busy_us=str(row.busy_us),
        energy_mj=str(row.energy_mj),
        throttled_us=str(row.throttled_us),
        throttle_known_us=str(row.throttle_known_us),
    )


async def _must_see(call: Call, node_id: str) -> None:
    """Raises Refused: NODE_UNKNOWN."""

    def look() -> None:
        with call.read(FLEET) as view:
            visible_node(call, view, node_id)

    await run_in_threadpool(look)
