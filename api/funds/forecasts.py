"""Forecasts: the second when the funds of each lease end, and until when the balance would last."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Response

from api.door.amounts import Money, credits_, money
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import AccountId, AccountInPath, AnswerModel, Count, LeaseId, Position, Told_at
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.parties.accounts import visible
from domain.funds.funding import sources_of
from domain.lease.escrow import TIME_MAX_US
from domain.lease.forecast import Draw, charge_per_hour, lasts_until_us
from domain.lease.lease import Lease, lease_stream
from domain.market.offer import SETTLEMENTS
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("billing")

LEASES_MAX = 1_000


class LeaseForecastAnswer(AnswerModel):
    """A running lease. It ends at `ends_at`: its funds end then, or its term.

    Absent `funds_end_at`: it never runs out. `charge_per_hour` is for all of its devices.
    """

    lease_id: LeaseId
    settlement: Literal["cash", "burn"]
    price_per_gpu_hour: Money
    gpu_ppm_total: Count
    charge_per_hour: Money
    held: Money
    funds_end_at: Told_at | None = None
    term_end_at: Told_at | None = None
    ends_at: Told_at | None = None


class BalanceForecastAnswer(AnswerModel):
    """What can be spent in one way of paying, and until when it would last.

    As if each running lease that is paid this way went on after its funds end and drew on the
    balance at its own rate, to its term. Exact to the second; absent: it lasts for ever.
    """

    settlement: Literal["cash", "burn"]
    spendable: Money
    charge_per_hour: Money
    leases: Count
    lasts_until: Told_at | None = None


class FundsForecastAnswer(AnswerModel):
    """As things stand now: what is deposited, opened or closed later is not foreseen."""

    account_id: AccountId
    at: Told_at
    leases: list[LeaseForecastAnswer]
    leases_left_out: Count
    balances: list[BalanceForecastAnswer]
    position: Position | None = None


@resource.get(
    "/v1/accounts/{account_id}/forecast",
    with_scope("account", "billing:read", "renter", "operator"),
    FundsForecastAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_forecast(account_id: AccountInPath, call: Caller) -> Response:
    """Returns the second when funds end: of each running lease, and of the balance behind them."""
    visible(call.principal, account_id)
    with call.read(ACCESS, LEASES) as view:
        if access.read_account(view.connection, account_id) is None:
            raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)
        ids = leases.read_live_leases(view.connection, account_id)
        market = call.service.ledger.market
        states = {one: market.state_of(lease_stream(one)) for one in ids[:LEASES_MAX]}
        running = {one: state for one, state in states.items() if state.uses_funds}
        told = FundsForecastAnswer(
            account_id=account_id,
            at=moment(call.now_us),
            leases=[_lease(lease_id, lease) for lease_id, lease in running.items()],
            leases_left_out=max(0, len(ids) - LEASES_MAX),
            balances=[
                _balance(call, account_id, settlement, list(running.values()))
                for settlement in SETTLEMENTS
            ],
        )
        return call.answer(view, told)


def _draw(lease: Lease) -> Draw:
    assert lease.reserved is not None
    assert lease.opened is not None
    return Draw(
        price_per_gpu_hour=lease.opened.price_per_gpu_hour.units,
        gpu_ppm_total=lease.gpu_ppm_total,
        funds_end_us=lease.funds_end_us,
        term_end_us=lease.opened.term_end_us,
    )


def _lease(lease_id: str, lease: Lease) -> LeaseForecastAnswer:
    assert lease.reserved is not None
    assert lease.opened is not None
    draw = _draw(lease)
    settlement: Any = lease.reserved.pay_with
    return LeaseForecastAnswer(
        lease_id=lease_id,
        settlement=settlement,
        price_per_gpu_hour=money(lease.opened.price_per_gpu_hour),
        gpu_ppm_total=draw.gpu_ppm_total,
        charge_per_hour=credits_(charge_per_hour([draw])),
        held=credits_(lease.held_units),
        funds_end_at=_end(draw.funds_end_us),
        term_end_at=moment_or_none(draw.term_end_us),
        ends_at=_end(lease.window_end_us),
    )


def _end(at_us: int) -> str | None:
    """None for what ends with the calendar: it is free, or funded beyond all moments."""
    return None if at_us > TIME_MAX_US - 2_000_000 else moment(at_us)


def _balance(
    call: Caller, account_id: str, settlement: Any, running: list[Lease]
) -> BalanceForecastAnswer:
    sources = sources_of(call.service.ledger.world(), account_id, settlement, call.now_us)
    spendable = sum(source.units for source in sources)
    draws = [
        _draw(lease)
        for lease in running
        if lease.reserved is not None and lease.reserved.pay_with == settlement
    ]
    return BalanceForecastAnswer(
        settlement=settlement,
        spendable=credits_(spendable),
        charge_per_hour=credits_(charge_per_hour(draws)),
        leases=len(draws),
        lasts_until=moment_or_none(lasts_until_us(spendable, draws, call.now_us)),
    )
