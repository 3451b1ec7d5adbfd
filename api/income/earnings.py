"""Earnings: what each provider's nodes have earned, by node, lease, hour and epoch, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from api.door import errors
from api.door.amounts import Money, Units, credits_, money
from api.door.auth import nodes_or_scope, with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    EpochQuery,
    FactAnswer,
    FromQuery,
    LeaseId,
    LeaseQuery,
    MomentQuery,
    NodeId,
    NodeInPath,
    NodeQuery,
    Position,
    PositionInPath,
    Told_at,
    page_of,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.timespans import bounded
from api.fleet.nodes import visible_node
from api.income.statement_lines import (
    ArithmeticStepAnswer,
    BookMovementAnswer,
    moved_told,
    step_told,
)
from api.metering.consumed import lease_before
from domain.duration import DAY_US
from domain.fleet.reasons import FleetReason
from domain.lease.accrual_steps import steps
from domain.lease.lease import UsageAccrued
from ledger.log import codec
from projections.audit import audit_index
from projections.fleet.fleet import FLEET, Node
from projections.income import earnings, movements
from projections.income.earnings import EARNINGS
from projections.income.movements import MOVEMENTS

resource = Resource("earnings")

READ = with_scope("earnings:read", "client")
_NAMES = "node_id|lease_id|hour|epoch"
By = Annotated[
    str,
    Query(
        pattern=rf"^({_NAMES})(,({_NAMES})){{0,3}}$",
        description="What to sum by: of node_id, lease_id, hour, epoch, with commas between",
    ),
]


class EarningAnswer(AnswerModel):
    """fee + provider + client + platform + burn = charge. `provider` is the provider's part; `burn`
    is retired for it and paid in TOKEN when the epoch is sealed.

    What volumes earn in the provider's regions has neither node_id nor lease_id.

    `earned` is what this account got: of its own leases, or as an owner of the node or as the
    client that brought the job, whose rows hold nothing else. A lease hour counts in the UTC `hour`
    in which it begins.
    """

    account_id: AccountId
    node_id: NodeId | None = None
    lease_id: LeaseId | None = None
    hour: Told_at | None = None
    epoch: Count | None = None
    accruals: Count
    gpu_us: Units
    charge: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    client: Money
    earned: Money


class NodeDayEarningsAnswer(AnswerModel):
    """What a node's accruals of one UTC day came to, for its provider, up to now: its last hour may
    not be accrued yet. `earned` is in credits; what is paid in TOKEN instead is `burn`.
    """

    node_id: NodeId
    day: Told_at
    accruals: Count
    gpu_us: Units
    earned: Money
    burn: Money
    position: Position


class EarningExplanationAnswer(FactAnswer):
    """One accrual, step by step: the terms locked at the opening, the totals, and each receiver's
    part.

    Amounts are computed on the lease's cumulative totals and booked as differences.
    """

    position: Position
    lease_id: LeaseId
    node_id: NodeId
    account_id: AccountId
    hour_index: Count
    until: Told_at
    settlement: str
    own_node: bool
    gpu_class: str
    share_ppm: Count
    tariff_version: Count
    price_per_gpu_hour: Money
    fee_per_gpu_hour: Money
    provider_share_ppm: Count
    burn_share_ppm: Count
    steps: list[ArithmeticStepAnswer]
    entry: list[BookMovementAnswer]


@resource.get("/v1/earnings", READ, page_of(EarningAnswer), problems=["cursor_invalid"])
def list_earnings(
    call: Caller,
    by: By = "node_id,epoch",
    node_id: NodeQuery = None,
    lease_id: LeaseQuery = None,
    epoch: EpochQuery = None,
    account_id: AccountQuery = None,
    from_: FromQuery = None,
    to: MomentQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists sums of earnings: your own, or those of all accounts for operators and auditors.

    By hour, or with `from` or `to`: hours that begin in [from, to), at most 366 days, by default
    the 31 days up to `to` or now.
    """
    names = tuple(dict.fromkeys("hour_us" if one == "hour" else one for one in by.split(",")))
    from_us, to_us = from_, to
    if "hour_us" in names or from_us is not None or to_us is not None:
        from_us, to_us = bounded(from_, to, call.now_us)
    place = call.place(cursor, list(earnings.START))
    with call.read(EARNINGS) as view:
        rows = earnings.read_earnings(
            view.connection,
            account_id=call.principal.among(account_id),
            node_id=node_id,
            lease_id=lease_id,
            epoch=epoch,
            from_us=from_us,
            to_us=to_us,
            by=names,
            after=place.after,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: row.key, _earning)


@resource.get(
    "/v1/nodes/{node_id}/earnings/today",
    nodes_or_scope("earnings:read"),
    NodeDayEarningsAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_node_today(node_id: NodeInPath, call: Caller) -> Response:
    """Returns a node's earnings since midnight UTC: its provider's, or your part as its owner."""
    day_us = call.now_us - call.now_us % DAY_US
    with call.read(FLEET, EARNINGS) as view:
        node = visible_node(call, view, node_id)
        rows = earnings.read_earnings(
            view.connection,
            account_id=_earner(call, node),
            node_id=node_id,
            from_us=day_us,
            to_us=day_us + DAY_US,
            by=("node_id",),
            limit=1,
        )
        found = rows[0] if rows else None
        told = NodeDayEarningsAnswer(
            node_id=node_id,
            day=moment(day_us),
            accruals=found.accruals if found else 0,
            gpu_us=str(found.gpu_us if found else 0),
            earned=credits_(found.earned if found else 0),
            burn=credits_(found.burn if found else 0),
            position=view.position,
        )
        return call.answer(view, told)


def _earner(call: Call, node: Node) -> str:
    """Whose earnings the caller is shown: the provider's, which the node itself shows too, or the
    caller's own part.
    """
    is_its = call.node_of_caller(node.node_id) or call.principal.may_see(node.account_id)
    return node.account_id if is_its else call.principal.account_id


@resource.get(
    "/v1/earnings/explain/{position}", READ, EarningExplanationAnswer, problems=["not_found"]
)
def explain_earning(position: PositionInPath, call: Caller) -> Response:
    """Returns how one accrual was shared: every number of the arithmetic, and the booked entry."""
    with call.read(MOVEMENTS) as view:
        fact = _accrual(call, view, position)
        lease = lease_before(call.service.ledger, fact, position)
        terms = lease.reserved
        assert terms is not None
        assert lease.opened is not None
        told = EarningExplanationAnswer(
            position=position,
            lease_id=fact.lease_id,
            node_id=fact.node_id,
            account_id=fact.provider_account_id,
            hour_index=fact.hour_index,
            until=moment(fact.until_us),
            settlement=terms.pay_with,
            own_node=terms.own,
            gpu_class=terms.gpu_class,
            share_ppm=terms.share_ppm,
            tariff_version=terms.tariff_version,
            price_per_gpu_hour=money(lease.opened.price_per_gpu_hour),
            fee_per_gpu_hour=money(terms.fee_per_gpu_hour),
            provider_share_ppm=terms.provider_share_ppm,
            burn_share_ppm=terms.burn_share_ppm,
            steps=[step_told(step) for step in steps(lease, fact)],
            entry=moved_told(call, position),
        )
        return call.answer(view, told)


def _accrual(call: Call, view: View, position: int) -> UsageAccrued:
    """The accrual at a position that the caller earned by. Raises Problem: 404."""
    found = audit_index.read_event(view.connection, position)
    own = call.principal.only
    if found is not None and found.topic == codec.NAME_OF[UsageAccrued]:
        fact = codec.decode_values(found.topic, found.body)
        assert isinstance(fact, UsageAccrued)
        earned = movements.EARNED_PARTS
        if (
            own is None
            or own == fact.provider_account_id
            or any(
                line.part in earned
                for line in movements.read_movements(
                    view.connection, own, first=position - 1, last=position
                )
            )
        ):
            return fact
    raise errors.problem("not_found", f"no accrual of yours at {position}")


def _earning(row: earnings.Earned) -> EarningAnswer:
    return EarningAnswer(
        account_id=row.account_id,
        node_id=row.node_id or None,
        lease_id=row.lease_id or None,
        hour=moment_or_none(row.hour_us),
        epoch=row.epoch,
        accruals=row.accruals,
        gpu_us=str(row.gpu_us),
        charge=credits_(row.charge),
        fee=credits_(row.fee),
        provider=credits_(row.provider),
        platform=credits_(row.platform),
        burn=credits_(row.burn),
        client=credits_(row.client),
        earned=credits_(row.earned),
    )
