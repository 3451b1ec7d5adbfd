"""Cash-outs on their way: asked for by themselves in payment mode cash, sent, and matched.

    automatic:  mode cash, enough earned, not asked today -> CashOutRequested, one per UTC day
    send:       CashOutStarted (the intent) -> the processor, under the cash-out's id -> CashOutSent
    match:      the processor's list against ours -> CashOutPaid, CashOutReturned, or a difference

The intent is in the log before the processor hears of it, so whoever comes after a crash knows what
may have been asked and asks again under the same id: at the processor that is the same payout. What
is held waits and is no failure. What fails stops at its item, is named, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from api.governance.passing import why_it_waits
from api.income.maturing_timer import ACCOUNTS_MAX, raise_if
from api.process.service import Service
from api.processors.seam import NewPayout, PayoutSeen, Processor, ProcessorAway, ProcessorRefused
from domain.duration import DAY_US
from domain.funds.reasons import FundsReason
from domain.governance.breakers import CASH_OUT
from domain.income.cash_out import (
    POLICY,
    CashOut,
    ConfirmCashOutPaid,
    ConfirmCashOutSent,
    FailCashOut,
    RequestCashOut,
    ReturnCashOut,
    StartCashOut,
    stream_of,
    turn_of,
)
from domain.income.cash_out_matching import (
    Listed,
    Matching,
    Ours,
    RecordDifference,
    SettleDifference,
    ids_of,
    match,
)
from domain.income.reasons import IncomeReason
from domain.money import credit
from domain.refusal import Refused
from domain.stream import derive_id
from ledger.log.handle import LOG_AWAY, Ledger
from projections import tables
from projections.income import money_out
from projections.runner import Connection

logger = logging.getLogger(__name__)

JOB = "job"
WAITS = frozenset(
    {IncomeReason.CASH_OUT_HELD, FundsReason.CREDIT_TOO_LOW, IncomeReason.CASH_OUT_TOO_SMALL}
)
"""Refusals of what only has to wait: for a release, for money in the bank, for more to earn."""
EVERYBODY_WAITS: tuple[type[Exception], ...] = (ProcessorAway, *LOG_AWAY)
LIST_US = 7 * DAY_US
"""How far back payouts are listed and matched again; further where a cash-out is still open."""
DIFFERENCES_MAX = 1_000
REASON_LENGTH_MAX = 200


class PayoutsDiffer(Exception):
    """The processor's payouts and our cash-outs do not agree: a person has to look."""


def request_automatic(ledger: Ledger, connection: Connection, now_us: int) -> int:
    """Ask for all that was earned by accounts paid in cash, once per UTC day; how many.

    They are sent in the order in which they were asked for, so the order is that of the day's draw;
    for that the ids of all of them are held at once.
    What is held or too little waits for another day. Raises MoneyOutStopped.
    """
    tables.step_all(connection, only=("money_out",))
    least, day = ledger.market.state_of(POLICY).minimum.units, now_us // DAY_US
    done = 0
    stopped: list[str] = []
    for account_id in sorted(_paid_in_cash(connection, least), key=lambda one: turn_of(one, day)):
        command = RequestCashOut(
            cash_out_id=derive_id("cashout", account_id, f"automatic/{day}"),
            account_id=account_id,
            amount=None,
            by=JOB,
            at_us=now_us,
        )
        try:
            done += len(ledger.handle(command, key=None, now_us=now_us).changes)
        except LOG_AWAY:
            raise
        except Refused as refused:
            if refused.reason not in WAITS:
                logger.exception("the cash-out of %s stops", account_id)
                stopped.append(account_id)
        except Exception:
            logger.exception("the cash-out of %s stops", account_id)
            stopped.append(account_id)
    raise_if(stopped, "request cash-outs")
    return done


def _paid_in_cash(connection: Connection, least: int) -> Iterator[str]:
    """Accounts that ask by themselves and have earned enough; read page by page."""
    after = ""
    while due := money_out.read_paid_in_cash(connection, least, after=after, limit=ACCOUNTS_MAX):
        after = due[-1].account_id
        yield from (payee.account_id for payee in due)


# --- sending ---------------------------------------------------------------------------------


def send(ledger: Ledger, connection: Connection, processor: Processor, now_us: int) -> int:
    """Hand every requested cash-out that is not held to the processor; how many it took.

    Raises ProcessorAway, after which nothing more is tried; MoneyOutStopped.
    """
    tables.step_all(connection, only=("money_out",))
    done, stopped = 0, []
    leaving = sum(row.units for row in _open(connection, ("started", "sent")))
    for row in _open(connection, ("requested", "started")):
        try:
            if _send_one(ledger, processor, row.cash_out_id, leaving, now_us):
                done += 1
                leaving += row.units if row.state == "requested" else 0
        except EVERYBODY_WAITS:
            raise  # the next one would wait as long
        except Refused as refused:
            if refused.reason not in WAITS:
                logger.exception("cash-out %s stops", row.cash_out_id)
                stopped.append(row.cash_out_id)
        except Exception:
            logger.exception("cash-out %s stops", row.cash_out_id)
            stopped.append(row.cash_out_id)
    raise_if(stopped, "send cash-outs")
    return done


class OtherProcessor(Exception):
    """Another processor was asked for this cash-out, and is not there to say how it ended."""


def _send_one(
    ledger: Ledger, processor: Processor, cash_out_id: str, leaving: int, now_us: int
) -> int:
    start = StartCashOut(
        cash_out_id=cash_out_id,
        processor=processor.name,
        leaving=leaving,
        customers_cash=ledger.books.customers_cash(),
        at_us=now_us,
    )
    before = _state(ledger, cash_out_id)
    if before.status not in ("requested", "started"):
        return 0
    if before.processor not in (None, processor.name):
        raise OtherProcessor(f"{cash_out_id} was asked of {before.processor}")
    asked = before.requested
    assert asked is not None
    # What was started may have been asked of the processor: it goes on whatever the breaker says.
    if before.status == "requested":
        waits = why_it_waits(ledger, CASH_OUT, cash_out_id, asked.amount.units, now_us)
        if waits is not None:
            logger.info("cash-out %s waits: %s", cash_out_id, waits)
            return 0
    ledger.handle(start, key=None, now_us=now_us)
    payout = NewPayout(
        payout_id=cash_out_id,
        account_id=asked.account_id,
        destination=asked.destination,
        amount=asked.amount,
    )
    try:
        made = processor.pay_out(payout)
    except ProcessorRefused as refused:
        reason = str(refused)[:REASON_LENGTH_MAX]
        failed = FailCashOut(cash_out_id=cash_out_id, reason=reason, by=JOB, at_us=now_us)
        ledger.handle(failed, key=None, now_us=now_us)
        return 1
    sent = ConfirmCashOutSent(
        cash_out_id=cash_out_id,
        reference=made.reference,
        instructions=made.instructions,
        at_us=now_us,
    )
    paid = ConfirmCashOutPaid(cash_out_id=cash_out_id, by=JOB, at_us=now_us)
    commands = [sent, paid] if made.state == "paid" else [sent]
    ledger.handle(commands, key=None, now_us=now_us)
    return 1


def _open(connection: Connection, states: Sequence[str]) -> Iterator[money_out.CashOut]:
    after = 0
    while rows := money_out.read_open(connection, states=states, after=after, limit=ACCOUNTS_MAX):
        after = rows[-1].position
        yield from rows


def _state(ledger: Ledger, cash_out_id: str) -> CashOut:
    return ledger.market.state_of(stream_of(cash_out_id))


# --- matching --------------------------------------------------------------------------------


def match_payouts(ledger: Ledger, connection: Connection, processor: Processor, now_us: int) -> int:
    """Compare the processor's list with our cash-outs; how many facts that led to.

    Raises PayoutsDiffer as long as a difference is open; ProcessorAway, ProcessorRefused.
    """
    tables.step_all(connection, only=("money_out",))
    done = 0
    if processor.lists_payouts:
        found = _compare(connection, processor, now_us)
        done = _record(ledger, connection, found, now_us)
        tables.step_all(connection, only=("money_out",))
    differing = money_out.read_differences(connection, is_open=True, limit=DIFFERENCES_MAX)
    if differing:
        first = differing[0]
        raise PayoutsDiffer(
            f"{len(differing)} payouts differ, the first is {first.difference_id}: {first.kind},"
            f" payout {first.reference}, cash-out {first.cash_out_id}"
        )
    return done


def _compare(connection: Connection, processor: Processor, now_us: int) -> Matching:
    since_us = max(0, now_us - LIST_US)
    oldest_us = money_out.read_oldest_asked(connection, processor.name)
    if oldest_us:
        since_us = min(since_us, oldest_us)
    listed = [_listed(each) for each in processor.payouts_since(since_us)]
    rows = money_out.read_to_match(connection, processor.name, since_us, ids_of(listed))
    return match(listed, [_ours(row) for row in rows], now_us)


def _listed(seen: PayoutSeen) -> Listed:
    return Listed(seen.payout_id, seen.reference, seen.amount.units, seen.taken_back.units)


def _ours(row: money_out.CashOut) -> Ours:
    return Ours(row.cash_out_id, row.state, row.units, row.reference, row.returned, row.asked_us)


def _record(ledger: Ledger, connection: Connection, found: Matching, now_us: int) -> int:
    """What matches confirms its cash-out, and explains it if it was missing; the rest is kept."""
    done = 0
    stopped: list[str] = []
    for one, payout in found.matched:
        commands = list(_confirming(one, payout, now_us))
        if commands:
            try:
                done += len(ledger.handle(commands, key=None, now_us=now_us).changes)
            except LOG_AWAY:
                raise
            except Exception:
                logger.exception("matching of cash-out %s stops", one.cash_out_id)
                stopped.append(one.cash_out_id)
    for difference in found.differences:
        record = RecordDifference(difference=difference, at_us=now_us)
        done += len(ledger.handle(record, key=None, now_us=now_us).changes)
    there = {one.cash_out_id for one, _ in found.matched}
    for known in money_out.read_differences(connection, is_open=True, limit=DIFFERENCES_MAX):
        if known.kind == "missing" and known.cash_out_id in there:
            settle = SettleDifference(
                difference_id=known.difference_id,
                note="it is in the processor's list now",
                by=JOB,
                at_us=now_us,
            )
            done += len(ledger.handle(settle, key=None, now_us=now_us).changes)
    raise_if(stopped, "match payouts")
    return done


def _confirming(one: Ours, payout: Listed, now_us: int) -> Iterator[object]:
    if one.status == "started":  # the answer was lost; the list says what became of it
        yield ConfirmCashOutSent(
            cash_out_id=one.cash_out_id, reference=payout.reference, instructions=None, at_us=now_us
        )
    if one.status != "paid":
        yield ConfirmCashOutPaid(cash_out_id=one.cash_out_id, by=JOB, at_us=now_us)
    if payout.taken_back > one.returned:
        yield ReturnCashOut(
            cash_out_id=one.cash_out_id,
            returned=credit(payout.taken_back),
            reason="taken back at the processor",
            at_us=now_us,
        )


def run_cash_outs(service: Service, connection: Connection, now_us: int) -> int:
    """Accounts paid in cash ask for it by themselves; what was asked for goes to the processor."""
    asked = request_automatic(service.ledger, connection, now_us)
    processor = service.payout_processor
    return asked + send(service.ledger, connection, processor, now_us)


def run_payout_match(service: Service, connection: Connection, now_us: int) -> int:
    """The processor's list of payouts against our cash-outs; it fails while they differ."""
    processor = service.payout_processor
    return match_payouts(service.ledger, connection, processor, now_us)
