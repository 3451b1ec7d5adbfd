"""Revenue shares: which accounts own a node together, and what each gets of its earnings."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EmptyRequest,
    NodeId,
    NodeInPath,
    Position,
    Ppm,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.nodes import READ_OR_NODE, WRITE, visible_node
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import (
    OWNERS_MAX,
    AcceptNodeTransfer,
    LeaveRevenueShares,
    OfferNodeTransfer,
    OwnerShare,
    SetRevenueShares,
    revenue_stream,
)
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from projections.fleet.fleet import FLEET

resource = Resource("nodes")


class OwnerShareForm(RequestModel):
    account_id: AccountId
    share_ppm: Ppm


class RevenueSharesRequest(RequestModel):
    """The owners that share what the node's provider earns; the provider's own account owns the
    rest.
    """

    shares: Annotated[list[OwnerShareForm], Field(max_length=OWNERS_MAX)]

    model_config = with_examples({"shares": []})


class RevenueSharesAnswer(AnswerModel):
    """`provider_ppm`: what is left for the provider's own account."""

    node_id: NodeId
    shares: list[OwnerShareForm]
    provider_ppm: Count
    position: Position | None = None


class RevenueSharesLeftAnswer(AnswerModel):
    node_id: NodeId
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/revenue-shares",
    WRITE,
    RevenueSharesAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        MoneyReason.DUPLICATE_ID,
        PartiesReason.SHARE_OUT_OF_RANGE,
    ],
)
def set_revenue_shares(node_id: NodeInPath, body: RevenueSharesRequest, call: Caller) -> Response:
    """Splits what a node earns among its owners, for leases reserved from now on."""

    def commands() -> SetRevenueShares:
        shares = tuple(OwnerShare(row.account_id, row.share_ppm) for row in body.shares)
        return SetRevenueShares(
            node_id=node_id,
            account_id=call.principal.account_id,
            shares=shares,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(
        commands, lambda after: _shares(node_id, after.state(revenue_stream(node_id)).shares)
    )


@resource.get(
    "/v1/nodes/{node_id}/revenue-shares",
    READ_OR_NODE,
    RevenueSharesAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_revenue_shares(node_id: NodeInPath, call: Caller) -> Response:
    """Lists the owners that share what the node's provider earns."""
    with call.read(FLEET) as view:
        visible_node(call, view, node_id)
        shares = call.service.ledger.market.state_of(revenue_stream(node_id)).shares
        return call.answer(view, _shares(node_id, shares))


@resource.post(
    "/v1/nodes/{node_id}/revenue-shares/release",
    WRITE,
    RevenueSharesLeftAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def release_revenue_shares(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Gives up your share of a node that another provider runs, for leases reserved from now on."""
    del body
    command = LeaveRevenueShares(
        node_id=node_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, lambda _after: RevenueSharesLeftAnswer(node_id=node_id))


class NodeTransferRequest(RequestModel):
    """The account that gets your whole part of what the node earns, once it accepts."""

    account_id: AccountId

    model_config = with_examples({"account_id": "acct_" + "1" * 32})


class NodeTransferAnswer(AnswerModel):
    """`transferred`: what is earned from now on is the new owner's. What was earned before stays
    the old one's.
    """

    node_id: NodeId
    from_account_id: AccountId
    to_account_id: AccountId
    transferred: bool
    expires_at: Told_at | None = None
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/transfer",
    WRITE,
    NodeTransferAnswer,
    status=201,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        MoneyReason.DUPLICATE_ID,
    ],
)
def create_node_transfer(node_id: NodeInPath, body: NodeTransferRequest, call: Caller) -> Response:
    """Offers your part of a node to another account. Nothing changes until that one accepts."""
    command = OfferNodeTransfer(
        node_id=node_id,
        account_id=call.principal.account_id,
        to_account_id=body.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: After) -> AnswerModel:
        offered = after.state(revenue_stream(node_id)).offered
        assert offered is not None, node_id
        return NodeTransferAnswer(
            node_id=node_id,
            from_account_id=offered.from_account_id,
            to_account_id=offered.to_account_id,
            transferred=False,
            expires_at=moment(offered.expires_at_us),
        )

    return call.record(lambda: command, told)


@resource.post(
    "/v1/nodes/{node_id}/transfer/accept",
    WRITE,
    NodeTransferAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_BUSY, FleetReason.TRANSFER_UNKNOWN],
)
def accept_node_transfer(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Accepts a part of a node that its owner offered you. No lease may hold the node: drain it."""
    del body
    offered = call.service.ledger.market.state_of(revenue_stream(node_id)).offered
    command = AcceptNodeTransfer(
        node_id=node_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(_after: After) -> AnswerModel:
        assert offered is not None, node_id
        return NodeTransferAnswer(
            node_id=node_id,
            from_account_id=offered.from_account_id,
            to_account_id=offered.to_account_id,
            transferred=True,
        )

    return call.record(lambda: command, told)


def _shares(node_id: str, shares: tuple[OwnerShare, ...]) -> RevenueSharesAnswer:
    rows = [OwnerShareForm(account_id=one.account_id, share_ppm=one.share_ppm) for one in shares]
    rest_ppm = 1_000_000 - sum(one.share_ppm for one in shares)
    return RevenueSharesAnswer(node_id=node_id, shares=rows, provider_ppm=rest_ppm)
