"""The payments job: what money does without anybody asking.

    watched funds -> warnings, top-ups;   waiting top-ups -> charged;   refunds -> asked for
    never paid -> failed;   window over -> confirmed;   final card money -> cash;   credits -> debts
    reversed, and still held by leases -> taken back from them

Everything is a command that changes nothing the second time, so a round that was cut short is
simply gone through again. Money moves at the processor first and is recorded after its answer,
always under an id of ours: a lost answer is asked for again and nothing moves twice. An item that
fails stops alone; the others go on, and the job says at the end how many stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from api.funds.reversals import funded_by, taking, taking_idle
from api.process.service import Service
from api.processors.seam import NewRefund, ProcessorAway, ProcessorRefused, SavedCharge
from domain.funds.card_money import TurnCardMoney
from domain.funds.debt import REPAYS, RepayDebt
from domain.funds.payment import (
    ConfirmPayment,
    ConfirmRefund,
    FailPayment,
    FailRefund,
    OfferPayment,
    ReceivePayment,
)
from domain.funds.top_up import CheckFunds
from domain.money import credit
from domain.refusal import Refused
from ledger.log.handle import LOG_AWAY
from projections import tables
from projections.funds import payments
from projections.funds.payments import PaymentRow, TakingRow
from projections.lease.leases import read_filled_escrows
from projections.runner import Connection

logger = logging.getLogger(__name__)

BATCH_MAX = 500
GRACE_US = 3_600_000_000
"""How much longer than it may be paid a payment is waited for: events come late."""
CHARGED_FOR_US = 20 * 3_600_000_000
"""How long a saved method is asked again; then only an event can still say that it was charged."""

LOOKED_FOR_US = 24 * 3_600_000_000
"""How long after a reversal leases that it may have funded are looked for."""


class PaymentsStopped(Exception):
    """Some payments could not be brought further; the others were. They are tried again."""


def run_payments(service: Service, connection: Connection, now_us: int) -> int:
    """One round; returns how many things were recorded. Raises PaymentsStopped."""
    round_ = _Round(service, connection, now_us)
    round_.follow()
    round_.watch()
    round_.follow()
    round_.wait()
    round_.refund()
    round_.confirm()
    round_.follow()
    round_.take_back()
    round_.turn()
    round_.repay()
    if round_.stopped:
        stopped = round_.stopped
        raise PaymentsStopped(f"{len(stopped)} payments stop, the first is {stopped[0]}")
    return round_.done


@dataclass(slots=True)
class _Round:
    service: Service
    connection: Connection
    now_us: int
    done: int = 0
    stopped: list[str] = field(default_factory=list)

    def follow(self) -> None:
        tables.step_all(self.connection, only=("payments",))

    def watch(self) -> None:
        """Warnings and top-ups. One account after the other: each reads its own balance."""
        after = ""
        while accounts := payments.read_watched(self.connection, after, BATCH_MAX):
            after = accounts[-1]
            for account_id in accounts:
                self._record(account_id, CheckFunds(account_id=account_id, at_us=self.now_us))

    def wait(self) -> None:
        """Payments that are not paid: charge saved methods, and end what nobody paid."""
        after = 0
        while rows := payments.read_waiting(self.connection, after, BATCH_MAX):
            after = rows[-1].position
            for row in rows:
                if self.now_us >= row.expires_at_us + GRACE_US:
                    self._fail(row, "expired")
                elif row.saved_method and self.now_us < row.started_at_us + CHARGED_FOR_US:
                    self._ask(row.payment_id, self._charge, row)

    def refund(self) -> None:
        after = 0
        while rows := payments.read_refunding(self.connection, after, BATCH_MAX):
            after = rows[-1].position
            for row in rows:
                self._ask(row.taking_id, self._refund, row)

    def confirm(self) -> None:
        after = (0, "")
        while rows := payments.read_due(self.connection, self.now_us, after, BATCH_MAX):
            after = (rows[-1].confirm_at_us or 0, rows[-1].payment_id)
            for row in rows:
                if row.refund_asked == row.refund_failed or not self._is_refunding(row):
                    command = ConfirmPayment(payment_id=row.payment_id, at_us=self.now_us)
                    self._record(row.payment_id, command)

    def take_back(self) -> None:
        """Leases that were funded by a reversed payment, and not known when it was reversed."""
        for payment_id, account_id in payments.read_owing(
            self.connection, self.now_us - LOOKED_FOR_US, BATCH_MAX
        ):
            tables.step_all(self.connection, only=("leases",))
            for found in funded_by(self.connection, account_id):
                for command in taking(payment_id, found, self.now_us):
                    self._record(payment_id, command)
            idle = read_filled_escrows(self.connection, account_id)
            for taken in taking_idle(payment_id, idle, self.now_us):
                self._record(payment_id, taken)

    def turn(self) -> None:
        for account_id in payments.read_final_card_money(self.connection, BATCH_MAX):
            self._record(account_id, TurnCardMoney(account_id=account_id, at_us=self.now_us))

    def repay(self) -> None:
        for account_id in payments.read_repayable(self.connection, REPAYS, BATCH_MAX):
            self._record(account_id, RepayDebt(account_id=account_id, at_us=self.now_us))

    # --- one item ----------------------------------------------------------------------------

    def _charge(self, row: PaymentRow) -> None:
        """Take money by the saved method, and record what became of it."""
        processor = self.service.processors.get(row.processor)
        if processor is None:
            raise ProcessorAway(f"{row.processor} is not configured")
        assert row.saved_method is not None
        asked = SavedCharge(
            payment_id=row.payment_id,
            account_id=row.account_id,
            amount=credit(row.units),
            saved_method=row.saved_method,
        )
        try:
            made = processor.charge_saved(asked)
        except ProcessorRefused as refused:
            self._fail(row, refused.code)
            return
        at_us = self.now_us
        commands: list[Any] = [
            OfferPayment(payment_id=row.payment_id, reference=made.reference, at_us=at_us)
        ]
        if made.state == "paid":
            received = ReceivePayment(
                payment_id=row.payment_id,
                amount=credit(row.units),
                reference=made.reference,
                by=row.processor,
                at_us=at_us,
            )
            commands.append(received)
        self._record(row.payment_id, *commands)

    def _refund(self, row: TakingRow) -> None:
        payment = payments.read_payment(self.connection, row.payment_id)
        assert payment is not None, row
        if payment.method == "bank":
            return  # a person transfers it and says so
        processor = self.service.processors.get(payment.processor)
        if processor is None:
            raise ProcessorAway(f"{payment.processor} is not configured")
        assert payment.charge is not None, payment
        asked = NewRefund(
            refund_id=row.taking_id, reference=payment.charge, amount=credit(row.units)
        )
        ids: dict[str, Any] = {
            "payment_id": row.payment_id,
            "refund_id": row.taking_id,
            "at_us": self.now_us,
        }
        try:
            made = processor.refund(asked)
        except ProcessorRefused as refused:
            self._record(row.taking_id, FailRefund(reason=refused.code, **ids))
            return
        if made.state == "paid":
            self._record(row.taking_id, ConfirmRefund(reference=made.reference, **ids))

    def _fail(self, row: PaymentRow, reason: str) -> None:
        failed = FailPayment(payment_id=row.payment_id, reason=reason[:256], at_us=self.now_us)
        self._record(row.payment_id, failed)

    def _is_refunding(self, row: PaymentRow) -> bool:
        takings = payments.read_takings(self.connection, row.payment_id)
        return any(taking.state == "refunding" for taking in takings)

    def _ask(self, name: str, do: Callable[[Any], None], row: Any) -> None:
        """Ask a processor for one item; one that is away stops this item alone."""
        try:
            do(row)
        except ProcessorAway as away:
            logger.warning("%s waits for its processor: %s", name, away)
            self.stopped.append(name)
        except LOG_AWAY:
            raise
        except Exception:
            logger.exception("%s stops", name)
            self.stopped.append(name)

    def _record(self, name: str, *commands: Any) -> None:
        try:
            outcome = self.service.ledger.handle(list(commands), key=None, now_us=self.now_us)
        except LOG_AWAY:
            raise  # it is no payment's fault, and the next one would wait as long
        except Refused as refused:
            logger.error("%s stops: %s", name, refused)
            self.stopped.append(name)
        except Exception:
            logger.exception("%s stops", name)
            self.stopped.append(name)
        else:
            self.done += len(outcome.changes)
