"""Statements of any moment: what an account had, what moved and for what, what is still to come.

    closing == opening + sum of the lines, part by part          asserted at every reading

`GET /v1/accounts/{id}/statements` covers everything recorded in [from, to) and up to the moment
asked for. A part is one sort of money (`cash`, `escrow.cash`, `holdback`), a kind is what a line is
for (`deposit`, `hold`, `usage`, `refund`, `earning`). Where each line comes from is told by
`api/income/statement_lines.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import Field

from api.door.amounts import Money, SignedMoney, Units, credits_
from api.door.auth import with_scope
from api.door.call import Caller, View
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    Count,
    FromQuery,
    LeaseId,
    MomentQuery,
    Position,
    TextQuery,
    Told_at,
    VolumeId,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.door.positions import ReadAsOf
from api.metering.unbilled import UnbilledUsageAnswer, not_billed
from api.parties.accounts import visible
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.corrections import agreed
from projections.corrections.disputes import DISPUTES
from projections.income import movements, statements
from projections.income.movements import MOVEMENTS
from projections.lease.countersigned import COUNTERSIGNED
from projections.lease.leases import LEASES
from projections.metering import usage
from projections.metering.usage import USAGE
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("statements")

READ = with_scope("account", "billing:read", "operator")
"""So many running leases are estimated in one answer; how many more there are is told."""
GROUPS_MAX = 500

Part = Annotated[
    str, Field(description="One sort of money of the account", examples=["cash", "escrow.cash"])
]
Kind = Annotated[
    str, Field(description="What a line is for", examples=["usage", "hold", "refund", "deposit"])
]
KindQuery = Annotated[str | None, Query(pattern=r"^[a-z_]{1,40}$")]
By = Annotated[
    Literal["client_id", "project_id", "end_user_ref", "lease_id"] | None,
    Query(description="Add up the usage by this"),
]


class BalancePartAnswer(AnswerModel):
    """What the account has of one sort; of `owed`, what it owes."""

    part: Part
    balance: Money


class StatementKindAnswer(AnswerModel):
    """All lines of one kind on one part. A movement above zero raises the part's balance."""

    kind: Kind
    part: Part
    lines: Count
    movement: SignedMoney


class StatementLineAnswer(AnswerModel):
    """One line: one fact's effect on one part. `position` leads to the fact and its proof."""

    position: Position
    type: Annotated[str, Field(examples=["lease.usage_accrued.v1"])]
    kind: Kind
    part: Part
    movement: SignedMoney
    balance_after: Money
    lease_id: LeaseId | None = None
    volume_id: VolumeId | None = None
    client_id: str | None = None
    project_id: str | None = None
    end_user_ref: str | None = None
    at: Told_at
    recorded_at: Told_at


class UsageOfGroupAnswer(AnswerModel):
    """Accrued GPU time and its charge of one client, project, end user or lease."""

    group: str
    gpu_us: Units
    charge: Money
    accruals: Count


class StatementUsageAnswer(AnswerModel):
    """What the account's own leases used: sums over the accruals that the filters let through.

    matched + unconfirmed + contested = gpu_us: what the renter signed for, what lies after the last
    signature, and what lies before it and was not signed for. Disputed: in an open dispute.
    """

    gpu_us: Units
    matched_gpu_us: Units
    unconfirmed_gpu_us: Units
    contested_gpu_us: Units
    disputed_gpu_us: Units
    charge: Money
    accruals: Count
    by: str | None = None
    groups: list[UsageOfGroupAnswer]
    groups_left_out: bool


class AccountStatementAnswer(AnswerModel):
    """A statement of any period, as of any moment. `kinds` are the sums of all lines, whatever the
    page; `lines` is one page of them.
    """

    account_id: AccountId
    from_: Annotated[Told_at | None, Field(alias="from")] = None
    to: Told_at | None = None
    as_of: Told_at | None = None
    opening_position: Position
    closing_position: Position
    opening: list[BalancePartAnswer]
    closing: list[BalancePartAnswer]
    kinds: list[StatementKindAnswer]
    lines: list[StatementLineAnswer]
    has_more: bool
    next_cursor: str | None = None
    usage: StatementUsageAnswer | None = None
    unbilled_estimate: UnbilledUsageAnswer | None = None
    position: Position


@resource.get(
    "/v1/accounts/{account_id}/statements",
    READ,
    AccountStatementAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "as_of_unsupported", "cursor_invalid"],
)
def read_account_statement(
    account_id: AccountInPath,
    call: Caller,
    as_of: ReadAsOf,
    order: ByNumber,
    from_: FromQuery = None,
    to: MomentQuery = None,
    kind: KindQuery = None,
    by: By = None,
    client_id: TextQuery = None,
    project_id: TextQuery = None,
    end_user_ref: TextQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Returns a statement of any period, accrued as of now or as of any moment.

    `kind` chooses among the lines; so do `client_id`, `project_id` and `end_user_ref`, which leave
    the lines of accruals that name them. Balances and `kinds` are always those of the whole
    account.
    """
    visible(call.principal, account_id)
    place = call.place(cursor, [0, ""], order)
    filters = {"client_id": client_id, "project_id": project_id, "end_user_ref": end_user_ref}
    with_usage = by is not None or any(one is not None for one in filters.values())
    is_now = as_of.is_now and cursor is None and (to is None or to > call.now_us)
    views = [ACCESS, MOVEMENTS, *([LEASES] if is_now or with_usage else [])]
    views += [USAGE, COUNTERSIGNED, DISPUTES] if with_usage else []
    with call.read(*views, as_of=as_of) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        first, last = _span(view, from_, to, place.first_position)
        told = _bill(view, account_id, first, last)
        rows = movements.read_movements(
            view.connection,
            account_id,
            first=first,
            last=last,
            kind=kind,
            **filters,
            after=(place.after[0], place.after[1]),
            newest=place.way.newest,
            limit=limit + 1,
        )
        lines, more, headers = call.cut(
            view, place, rows, limit, lambda row: [row.position, row.part]
        )
        told |= {"lines": _plain([line_told(line) for line in lines]), **more}
        if with_usage:
            told["usage"] = _usage(view, account_id, first, last, by, filters).model_dump(
                mode="json", exclude_none=True
            )
        if is_now:
            told["unbilled_estimate"] = not_billed(
                call.service.ledger, view.connection, account_id, call.now_us
            ).model_dump(mode="json")
        for name, at_us in (("from", from_), ("to", to), ("as_of", as_of.at_us)):
            told |= {} if at_us is None else {name: moment(at_us)}
        return call.answer(view, told, headers)


def _span(view: View, from_us: int | None, to_us: int | None, page: int | None) -> tuple[int, int]:
    """Positions (first, last] that were recorded in [from, to) and are part of this snapshot."""
    bounds = [one for one in (view.as_of, page, view.position) if one is not None]
    if to_us is not None:
        bounds.append(statements.read_position_at(view.connection, to_us - 1))
    first = 0 if from_us is None else statements.read_position_at(view.connection, from_us - 1)
    last = min(bounds)
    return min(first, last), last


def _bill(view: View, account_id: str, first: int, last: int) -> dict[str, Any]:
    """Balances before and after, and what moved between them. Checked against each other."""
    opening = movements.read_part_balances(view.connection, account_id, first)
    closing = movements.read_part_balances(view.connection, account_id, last)
    sums = movements.read_kind_sums(view.connection, account_id, first, last)
    expected = {each.part: each.units for each in opening}
    for each in sums:
        expected[each.part] = expected.get(each.part, 0) + each.change
    assert expected == {each.part: each.units for each in closing}, (account_id, first, last)
    return {
        "account_id": account_id,
        "opening_position": first,
        "closing_position": last,
        "opening": _plain([_part(each) for each in opening]),
        "closing": _plain([_part(each) for each in closing]),
        "kinds": _plain([_kind(each) for each in sums]),
    }


def _usage(
    view: View, account_id: str, first: int, last: int, by: str | None, filters: dict[str, Any]
) -> StatementUsageAnswer:
    asked: dict[str, Any] = {
        "renter_id": account_id,
        "after_position": first,
        "until_position": last,
        **filters,
    }
    total = usage.read_usage_total(view.connection, **asked)
    said = agreed.read_agreed(view.connection, **asked)
    assert said.matched + said.unconfirmed + said.contested == total.gpu_us, (account_id, said)
    groups = (
        []
        if by is None
        else usage.read_usage(view.connection, by=by, **asked, limit=GROUPS_MAX + 1)
    )
    return StatementUsageAnswer(
        gpu_us=str(total.gpu_us),
        charge=credits_(total.charge),
        accruals=total.accruals,
        by=by,
        matched_gpu_us=str(said.matched),
        unconfirmed_gpu_us=str(said.unconfirmed),
        contested_gpu_us=str(said.contested),
        disputed_gpu_us=str(said.disputed),
        groups=[_group(each) for each in groups[:GROUPS_MAX]],
        groups_left_out=len(groups) > GROUPS_MAX,
    )


def line_told(row: movements.Movement) -> StatementLineAnswer:
    """One line of a statement as it is told."""
    asset: Any = row.asset
    return StatementLineAnswer(
        position=row.position,
        type=row.topic,
        kind=row.kind,
        part=row.part,
        movement=SignedMoney(asset=asset, units=str(row.change)),
        balance_after=Money(asset=asset, units=str(row.balance_after)),
        lease_id=row.lease_id,
        volume_id=row.volume_id,
        client_id=row.client_id,
        project_id=row.project_id,
        end_user_ref=row.end_user_ref,
        at=moment(row.at_us),
        recorded_at=moment(row.recorded_us),
    )


def _part(row: movements.PartBalance) -> BalancePartAnswer:
    asset: Any = row.asset
    return BalancePartAnswer(part=row.part, balance=Money(asset=asset, units=str(row.units)))


def _kind(row: movements.KindSum) -> StatementKindAnswer:
    asset: Any = row.asset
    return StatementKindAnswer(
        kind=row.kind,
        part=row.part,
        lines=row.lines,
        movement=SignedMoney(asset=asset, units=str(row.change)),
    )


def _group(row: usage.UsageSum) -> UsageOfGroupAnswer:
    return UsageOfGroupAnswer(
        group=row.group, gpu_us=str(row.gpu_us), charge=credits_(row.charge), accruals=row.accruals
    )


def _plain(told: Sequence[AnswerModel]) -> list[dict[str, Any]]:
    return [one.model_dump(mode="json", exclude_none=True) for one in told]
