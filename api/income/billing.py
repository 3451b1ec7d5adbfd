"""Balances, the journal and statements: what an account has, what moved, and why.

Present balances come from the books themselves and never lag; past ones from the statements view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path, Response
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
    Told_at,
    page_of,
)
from api.door.moments import moment, parse_moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.door.positions import ReadAsOf
from api.parties.accounts import visible
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.corrections import agreed
from projections.corrections.disputes import DISPUTES
from projections.income import earnings, statements
from projections.income.earnings import EARNINGS
from projections.income.statements import STATEMENTS
from projections.lease import work
from projections.lease.countersigned import COUNTERSIGNED
from projections.lease.leases import LEASES
from projections.lease.work import WORK
from projections.metering import usage
from projections.metering.usage import USAGE
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("billing")

READ = with_scope("account", "billing:read", "operator")
Name = Annotated[str, Field(examples=["party:acct_" + "1" * 32 + ":cash"])]
Period = Annotated[str, Path(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$", examples=["2026-11"])]


class BalanceAnswer(AnswerModel):
    """One book account of the party, on its normal side; `part` is the last part of its name."""

    name: Name
    part: str
    balance: Money


class BalancesAnswer(AnswerModel):
    """`recorded_by`: the time asked for with `as_of`."""

    account_id: AccountId
    data: list[BalanceAnswer]
    position: Position
    as_of: Told_at | None = None


class JournalLineAnswer(AnswerModel):
    """One account's part of one posting: debits above zero, credits below."""

    name: Name
    movement: SignedMoney
    balance_after: Money
    type: Annotated[str, Field(examples=["lease.usage_accrued.v1"])]
    lease_id: LeaseId | None = None
    at: Told_at
    recorded_at: Told_at
    position: Position


class StatementLeaseAnswer(AnswerModel):
    """What one lease used and cost in the period. matched + unconfirmed + contested = gpu_us: what
    its renter signed for, what lies after the last signature, and what lies before it unsigned.
    `free_start_us`: from the moment its node took the work up until billing began, which is free.
    """

    lease_id: LeaseId
    gpu_us: Units
    refused_us: Units
    matched_gpu_us: Units
    unconfirmed_gpu_us: Units
    contested_gpu_us: Units
    charge: Money
    accruals: Count
    free_start_us: Units | None = None


class MonthlyStatementAnswer(AnswerModel):
    """A month in UTC: balances before and after, and the leases that were charged.

    Hours count in the month in which they begin. `leases` is one page of the leases that the
    account paid for as a renter; `charge` and `gpu_us` are the sums over all of them, on every
    page. What renters of its nodes paid is theirs: `earned` is what the account got of it.
    """

    account_id: AccountId
    period: str
    from_: Annotated[Told_at, Field(alias="from")]
    to: Told_at
    opening_position: Position
    closing_position: Position
    opening: list[BalanceAnswer]
    closing: list[BalanceAnswer]
    leases: list[StatementLeaseAnswer]
    has_more: bool
    next_cursor: str | None = None
    charge: Money
    gpu_us: Units
    earned: Money
    is_final: bool
    position: Position


@resource.get(
    "/v1/accounts/{account_id}/balances",
    READ,
    BalancesAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "as_of_unsupported"],
)
def read_balances(account_id: AccountInPath, call: Caller, as_of: ReadAsOf) -> Response:
    """Returns the balances of an account: now, or as of a position or a time."""
    visible(call.principal, account_id)
    views = [ACCESS] if as_of.is_now else [ACCESS, STATEMENTS]
    with call.read(*views, as_of=as_of) as view:
        _existing(view, account_id)
        told = BalancesAnswer(
            account_id=account_id,
            data=_balances(view, account_id, view.as_of),
            position=view.position,
            as_of=None if as_of.at_us is None else moment(as_of.at_us),
        )
        return call.answer(view, told)


@resource.get(
    "/v1/accounts/{account_id}/journal",
    READ,
    page_of(JournalLineAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "as_of_unsupported", "cursor_invalid"],
)
def list_journal(
    account_id: AccountInPath,
    call: Caller,
    as_of: ReadAsOf,
    order: ByNumber,
    from_: FromQuery = None,
    to: MomentQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists every movement on the account's books, in order; recorded in [from, to)."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0, ""], order)
    with call.read(ACCESS, STATEMENTS, as_of=as_of) as view:
        _existing(view, account_id)
        until = [one for one in (view.as_of, place.first_position) if one is not None]
        rows = statements.read_lines(
            view.connection,
            prefixes=statements.accounts_of(account_id),
            from_us=from_,
            to_us=to,
            as_of_position=min(until, default=None),
            after=(place.after[0], place.after[1]),
            newest=place.way.newest,
            limit=limit + 1,
        )
        return call.page(
            view, place, rows, limit, lambda row: [row.position, row.account_name], _line
        )


@resource.get(
    "/v1/accounts/{account_id}/statements/{period}",
    READ,
    MonthlyStatementAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def read_statement(
    account_id: AccountInPath,
    period: Period,
    call: Caller,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Returns the statement of one month: balances, what was charged, and what was earned."""
    visible(call.principal, account_id)
    place = call.place(cursor, [""])
    from_us, to_us = _month(period)
    views = (ACCESS, STATEMENTS, USAGE, LEASES, COUNTERSIGNED, DISPUTES, EARNINGS, WORK)
    with call.read(*views) as view:
        _existing(view, account_id)
        until = view.position if place.first_position is None else place.first_position
        opening = min(until, statements.read_position_at(view.connection, from_us - 1))
        closing = min(until, statements.read_position_at(view.connection, to_us - 1))
        period_: dict[str, Any] = {"from_us": from_us, "to_us": to_us, "until_position": until}
        asked = {"renter_id": account_id, **period_}
        total = usage.read_usage_total(view.connection, **asked)
        rows = usage.read_usage(
            view.connection, **asked, after=(place.after[0], 0), limit=limit + 1
        )
        lines, more, headers = call.cut(view, place, rows, limit, lambda row: [row.group])
        asked["lease_ids"] = [line.group for line in lines]
        said = agreed.read_agreed_by_lease(view.connection, **asked)
        starts = work.read_free_starts(view.connection, asked["lease_ids"])
        told: dict[str, Any] = {
            "account_id": account_id,
            "period": period,
            "from": moment(from_us),
            "to": moment(to_us),
            "opening_position": opening,
            "closing_position": closing,
            "opening": _plain(_balances(view, account_id, opening)),
            "closing": _plain(_balances(view, account_id, closing)),
            "leases": _plain([_lease_line(one, said[one.group], starts) for one in lines]),
            **more,
            "charge": credits_(total.charge).model_dump(),
            "gpu_us": str(total.gpu_us),
            "earned": credits_(
                earnings.read_earned(view.connection, account_id, **period_)
            ).model_dump(),
            "is_final": to_us <= call.now_us,
        }
        return call.answer(view, told, headers)


def _month(period: str) -> tuple[int, int]:
    """[first moment, first moment of the next month) in UTC."""
    year, month = int(period[:4]), int(period[5:])
    following = (year, month + 1) if month < 12 else (year + 1, 1)
    first, after = (f"{y:04d}-{m:02d}-01T00:00:00Z" for y, m in ((year, month), following))
    return parse_moment(first), parse_moment(after)


def _balances(view: View, account_id: str, as_of_position: int | None) -> list[BalanceAnswer]:
    rows = statements.read_balances(
        view.connection, prefixes=statements.accounts_of(account_id), as_of_position=as_of_position
    )
    return [_balance(row) for row in rows]


def _balance(row: statements.Balance) -> BalanceAnswer:
    asset: Any = row.asset
    return BalanceAnswer(
        name=row.account_name,
        part=row.account_name.rpartition(":")[2],
        balance=Money(asset=asset, units=str(row.units)),
    )


def _line(row: statements.Line) -> JournalLineAnswer:
    asset: Any = row.asset
    return JournalLineAnswer(
        name=row.account_name,
        movement=SignedMoney(asset=asset, units=str(row.units)),
        balance_after=Money(asset=asset, units=str(row.balance_after)),
        type=row.topic,
        lease_id=row.lease_id,
        at=moment(row.at_us),
        recorded_at=moment(row.recorded_us),
        position=row.position,
    )


def _lease_line(
    row: usage.UsageSum, said: agreed.Agreed, starts: Mapping[str, int]
) -> StatementLeaseAnswer:
    assert said.matched + said.unconfirmed + said.contested == row.gpu_us, (row, said)
    return StatementLeaseAnswer(
        lease_id=row.group,
        gpu_us=str(row.gpu_us),
        refused_us=str(row.refused_us),
        matched_gpu_us=str(said.matched),
        unconfirmed_gpu_us=str(said.unconfirmed),
        contested_gpu_us=str(said.contested),
        charge=credits_(row.charge),
        accruals=row.accruals,
        free_start_us=None if row.group not in starts else str(starts[row.group]),
    )


def _plain(told: list[Any]) -> list[dict[str, Any]]:
    return [one.model_dump(mode="json", exclude_none=True) for one in told]


def _existing(view: View, account_id: str) -> None:
    if access.read_account(view.connection, account_id) is None:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
