"""Issuing invoices: which positions a month covers, what stands on the paper, and the monthly job.

    a month covers the positions recorded in it:  (position at its start, position at its end]

so months follow each other without gap or overlap, and what was recorded in a closed month never
changes. An hour that was accrued a moment after midnight stands on the next month's invoice. What
an adjustment gives back of an invoiced charge becomes a credit note as soon as it is booked.
"""

from __future__ import annotations

import logging

from api.income import issuer
from api.process.service import Service
from api.settings import SettingsInvalid
from domain.calendar import month_of_day
from domain.duration import DAY_US
from domain.income.invoice import (
    GRACE_US,
    KINDS,
    CreditLine,
    IssueCreditNote,
    IssueInvoice,
    invoice_stream,
    period_bounds_us,
)
from domain.income.tax import TaxParty
from domain.money import credit
from ledger.beside import billing_details
from ledger.log.handle import LOG_AWAY
from projections.corrections.disputes import DISPUTES
from projections.income import invoices, statements
from projections.income.invoices import INVOICES, GivenBack
from projections.income.movements import MOVEMENTS
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE
from projections.runner import Connection

logger = logging.getLogger(__name__)

VIEWS = (MOVEMENTS, LEASES, USAGE, DISPUTES, INVOICES)
"""What must be followed before a month is added up."""
EVERYBODY_WAITS: tuple[type[Exception], ...] = (SettingsInvalid, *LOG_AWAY)
MONTHS_BACK = 3
"""The job issues for so many closed months; the operator's command for any."""
ACCOUNTS_MAX = 500
INVOICES_MAX = 24
"""Invoices that one adjustment is looked for on."""


def positions_of(connection: Connection, period: str) -> tuple[int, int]:
    """The month's positions (first, last]. Raises ValueError for what is no month."""
    from_us, to_us = period_bounds_us(period)
    return (
        statements.read_position_at(connection, from_us - 1),
        statements.read_position_at(connection, to_us - 1),
    )


def command(
    service: Service,
    connection: Connection,
    account_id: str,
    kind: str,
    period: str,
    *,
    by: str,
    now_us: int,
) -> IssueInvoice:
    """What would be issued: lines from the account's bill, taxes by the rules in force.

    Needs `VIEWS` at the head. Raises ValueError for what is no month.
    """
    first, last = positions_of(connection, period)
    lines = invoices.read_invoice_lines(connection, account_id, kind, first, last)
    # What a provider earned is the provider's to tax; its country is asked, not the renter's.
    details = billing_details.read(connection, account_id)
    party = TaxParty() if details is None else details.tax_party
    total = sum(line.amount.units for line in lines)
    taxes = issuer.read(service.settings.billing_file).taxes.lines(party, total)
    return IssueInvoice(
        account_id=account_id,
        kind=kind,
        period=period,
        first_position=first,
        last_position=last,
        lines=lines,
        taxes=taxes,
        by=by,
        at_us=now_us,
    )


def closed_months(now_us: int) -> list[str]:
    """The last closed months, oldest first."""
    month = month_of_day((now_us - GRACE_US) // DAY_US)
    return [
        f"{each // 12:04d}-{each % 12 + 1:02d}"
        for each in range(max(month - MONTHS_BACK, 1970 * 12), month)
    ]


def run_invoices(service: Service, connection: Connection, now_us: int) -> int:
    """Issue what the last closed months still lack, account by account.

    An account that fails stops by itself. Raises InvoicesStopped, after all others.
    """
    if now_us < GRACE_US:
        return 0
    service.follow(connection, VIEWS)
    done = 0
    stopped: list[str] = []
    for period in closed_months(now_us):
        first, last = positions_of(connection, period)
        for kind in KINDS if first < last else ():
            waiting = invoices.read_not_invoiced(
                connection, kind, period, first, last, ACCOUNTS_MAX
            )
            for account_id in waiting:
                try:
                    asked = command(
                        service, connection, account_id, kind, period, by="job", now_us=now_us
                    )
                    if asked.lines:
                        outcome = service.ledger.handle(asked, key=None, now_us=now_us)
                        done += bool(outcome.changes)
                except EVERYBODY_WAITS:
                    raise  # it is no account's fault, and the next one would fail as well
                except Exception:
                    logger.exception("the invoice of %s for %s stops", account_id, period)
                    stopped.append(account_id)
    done += _credit(service, connection, now_us)
    if stopped:
        raise InvoicesStopped(f"{len(stopped)} accounts stop, the first is {stopped[0]}")
    return done


class InvoicesStopped(Exception):
    """Some accounts' invoices could not be issued; the others were."""


class CreditNoteStopped(Exception):
    """An adjustment gave more back than the account's invoices have left: somebody should look."""


def _credit(service: Service, connection: Connection, now_us: int) -> int:
    """A credit note for everything that adjustments gave back of charges that were invoiced."""
    service.follow(connection, VIEWS)
    _, last = positions_of(connection, closed_months(now_us)[-1])
    done, stopped = 0, []
    for each in invoices.read_given_back(connection, last, ACCOUNTS_MAX):
        try:
            commands = _credit_notes(service, connection, each, now_us)
            if commands is None:
                stopped.append(each.adjustment_id)
            else:
                service.ledger.handle(commands, key=None, now_us=now_us)
                done += len(commands)
        except LOG_AWAY:
            raise
        except Exception:
            logger.exception("the credit note of %s stops", each.adjustment_id)
            stopped.append(each.adjustment_id)
    if stopped:
        raise CreditNoteStopped(f"{len(stopped)} adjustments, the first is {stopped[0]}")
    return done


def _credit_notes(
    service: Service, connection: Connection, given: GivenBack, now_us: int
) -> list[IssueCreditNote] | None:
    """On the line that it was charged on as far as that goes, then on other lines of the same
    invoice, then on the account's latest ones; None where they have not so much left.
    """
    left, commands = given.units, list[IssueCreditNote]()
    for row in invoices.read_invoices_of_charges(
        connection, given.account_id, given.corrects_position, INVOICES_MAX
    ):
        state = service.ledger.market.state_of(invoice_stream(row.invoice_id))
        assert state.issued is not None
        lines: list[CreditLine] = []
        numbered = list(enumerate(state.issued.lines, start=1))
        numbered.sort(key=lambda one: (one[1].what, one[1].detail) != (given.what, given.detail))
        for number, line in numbered:
            units = min(left, line.amount.units - state.credited.get(number, 0))
            if units:
                lines.append(CreditLine(number, credit(units)))
                left -= units
        if lines:
            commands.append(
                IssueCreditNote(
                    invoice_id=row.invoice_id,
                    lines=tuple(lines),
                    cause=f"adjustment:{given.adjustment_id}",
                    reason=given.reason,
                    by="job",
                    at_us=now_us,
                )
            )
        if not left:
            return commands
    return None
