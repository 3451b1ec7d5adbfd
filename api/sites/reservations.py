"""Reserved ports of a region: a host name and a port that work keeps when it moves."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.call import Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    EmptyRequest,
    LeaseId,
    NodeId,
    Position,
    RegionId,
    RegionInPath,
    RegionQuery,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.providers import own_region
from api.sites.datastores import READ, WRITE, SiteName, machines_of
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from domain.sites.reasons import SitesReason
from domain.sites.reservation import AddReservation, RemoveReservation, reservation_stream
from projections.sites import sites
from projections.sites.sites import SITES

resource = Resource("sites")

ReservationId = Annotated[str, Field(pattern=r"^reservation_[0-9A-Za-z]{1,64}$")]
ReservationInPath = Annotated[str, Path(pattern=r"^reservation_[0-9A-Za-z]{1,64}$")]
Port = Annotated[int, Field(ge=1, le=65_535)]


class ReservationRequest(RequestModel):
    """`host_name`: published with mDNS on the region's network, without `.local`."""

    name: SiteName
    kind: Literal["port"] = "port"
    host_name: SiteName
    port: Port

    model_config = with_examples({"name": "viewer", "host_name": "viewer", "port": 8888})


class ReservationAnswer(AnswerModel):
    """`lease_id` holds it now, on `node_id`."""

    reservation_id: ReservationId
    region_id: RegionId
    account_id: AccountId
    name: SiteName
    kind: Literal["port"]
    host_name: SiteName
    port: Port
    lease_id: LeaseId | None = None
    node_id: NodeId | None = None
    added_at: Told_at
    position: Position | None = None


class ReservationRemovedAnswer(AnswerModel):
    reservation_id: ReservationId
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/reservations",
    WRITE,
    ReservationAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        SitesReason.PLAN_NEEDED,
        SitesReason.REGION_EMPTY,
        SitesReason.RESERVATION_INVALID,
        SitesReason.SITE_NAME_TAKEN,
    ],
)
def add_reservation(region_id: RegionInPath, body: ReservationRequest, call: Caller) -> Response:
    """Reserves a host name and a port in a region of yours."""
    reservation_id = call.id("reservation")

    def commands() -> AddReservation:
        own_region(call, region_id)
        return AddReservation(
            reservation_id=reservation_id,
            region_id=region_id,
            **body.model_dump(),
            machines=machines_of(call, region_id),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: Any) -> ReservationAnswer:
        return _told(after.state(reservation_stream(reservation_id)).added)

    return call.record(commands, told)


@resource.get("/v1/reservations", READ, page_of(ReservationAnswer), problems=["cursor_invalid"])
def list_reservations(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    region_id: RegionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists reservations, and the lease that holds each."""
    place = call.place(cursor, [0], order)
    with call.read(SITES) as view:
        rows = sites.read_reservations(
            view.connection,
            account_id=call.principal.among(account_id),
            region_id=region_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _told)


@resource.post(
    "/v1/reservations/{reservation_id}/remove",
    WRITE,
    ReservationRemovedAnswer,
    problems=[SitesReason.RESERVATION_UNKNOWN, SitesReason.RESERVATION_HELD],
)
def remove_reservation(
    reservation_id: ReservationInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Removes a reservation that no lease holds."""
    del body

    def commands() -> RemoveReservation:
        added = call.service.ledger.market.state_of(reservation_stream(reservation_id)).added
        if added is None or not call.principal.owns(added.account_id):
            raise Refused(SitesReason.RESERVATION_UNKNOWN, reservation_id=reservation_id)
        return RemoveReservation(
            reservation_id=reservation_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(
        commands, lambda _after: ReservationRemovedAnswer(reservation_id=reservation_id)
    )


def _told(row: Any) -> ReservationAnswer:
    return ReservationAnswer(
        reservation_id=row.reservation_id,
        region_id=row.region_id,
        account_id=row.account_id,
        name=row.name,
        kind=row.kind,
        host_name=row.host_name,
        port=row.port,
        lease_id=getattr(row, "lease_id", None),
        node_id=getattr(row, "node_id", None),
        added_at=moment(row.at_us),
    )
