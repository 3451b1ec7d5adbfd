"""Administrators of regions: granted, revoked, listed."""

from __future__ import annotations

from typing import Literal

from fastapi import Response

from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    EmptyRequest,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.providers import own_region, visible_region
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.regions.administrators import GrantRegionAdmin, RevokeRegionAdmin, admins_stream
from projections.fleet import regions
from projections.fleet.fleet import FLEET

resource = Resource("regions")

WRITE = with_scope("provider", "operator")
READ = with_scope("provider", "operator", "audit:read")


class RegionAdminRequest(RequestModel):
    account_id: AccountId

    model_config = with_examples({"account_id": "acct_" + "1" * 32})


class RegionAdminAnswer(AnswerModel):
    """`cause`: granted by `hand`, or the `first_user` that waited for the region."""

    account_id: AccountId
    cause: Literal["hand", "first_user"]
    granted_at: Told_at


class RegionAdminsAnswer(AnswerModel):
    """Beside the provider's own account, in the order of their grants."""

    region_id: RegionId
    account_ids: list[AccountId]
    data: list[RegionAdminAnswer] | None = None
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/admins",
    WRITE,
    RegionAdminsAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def grant_region_admin(region_id: RegionInPath, body: RegionAdminRequest, call: Caller) -> Response:
    """Lets another account see and manage the nodes of a region. Money stays the provider's."""

    def commands() -> GrantRegionAdmin:
        _require_grants(call, region_id)
        return GrantRegionAdmin(
            region_id=region_id,
            account_id=body.account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    stream = admins_stream(region_id)
    return call.record(commands, lambda after: _told(region_id, after.state(stream).account_ids))


@resource.post(
    "/v1/regions/{region_id}/admins/{account_id}/revoke",
    WRITE,
    RegionAdminsAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def revoke_region_admin(
    region_id: RegionInPath, account_id: AccountInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Takes the administration of a region from an account; an administrator may step down."""
    del body

    def commands() -> RevokeRegionAdmin:
        state = call.service.ledger.market.state_of(admins_stream(region_id))
        steps_down = call.principal.owns(account_id) and account_id in state.account_ids
        if not steps_down:
            _require_grants(call, region_id)
        return RevokeRegionAdmin(
            region_id=region_id,
            account_id=account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    stream = admins_stream(region_id)
    return call.record(commands, lambda after: _told(region_id, after.state(stream).account_ids))


@resource.get(
    "/v1/regions/{region_id}/admins",
    READ,
    RegionAdminsAnswer,
    problems=[FleetReason.REGION_UNKNOWN],
)
def list_region_admins(region_id: RegionInPath, call: Caller) -> Response:
    """Lists the administrators of a region beside its provider."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        rows = regions.read_admins(view.connection, region_id)
        told = _told(region_id, tuple(row.account_id for row in rows))
        data = [_admin(row) for row in rows]
        return call.answer(view, told.model_copy(update={"data": data, "position": view.position}))


def _require_grants(call: Call, region_id: str) -> None:
    if not call.principal.is_operator:
        own_region(call, region_id)


def _admin(row: regions.Admin) -> RegionAdminAnswer:
    cause: Literal["hand", "first_user"] = "first_user" if row.cause == "first_user" else "hand"
    return RegionAdminAnswer(account_id=row.account_id, cause=cause, granted_at=moment(row.at_us))


def _told(region_id: str, account_ids: tuple[str, ...]) -> RegionAdminsAnswer:
    return RegionAdminsAnswer(region_id=region_id, account_ids=list(account_ids))
