"""Cash out: earned credits that leave as real money, through the payment processor.

    requested --> started --> sent --> paid [--> returned]
        |            |          `----> failed
        |            `---------------> failed
        `--> cancelled

    earned before == earned after + in flight + paid - returned       to the micro-credit
    a cash-out is asked of the processor only after CashOutStarted, always under its own id

The intent is recorded before the processor is called, and the call carries the cash-out's id, so a
crash between the call and its fact never pays twice: asked again, the processor answers alike. What
is requested has left `earned` and can be spent no more; what fails or is cancelled comes back.
Amounts are whole cents. Nothing leaves that is held: by the operator, while the account owes, or
while its destination is new; and never what customers paid for good and have not spent:

    world:bank - asked of processors - this one >= customers' cash          when it starts

So what was earned of card money that is taken back later is not paid from the cash of others: it
waits until the card money is confirmed, or until the operator's own revenue covers it. What is
disputed is not there to leave: it waits in the dispute's own account
(`domain/corrections/dispute.py`).

Not how earnings become spendable (`domain/income/maturity.py`), and not the comparison with the
processor's own list (`domain/income/cash_out_matching.py`). Source: design economics 2; row C-24.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, assert_never

from domain.brought import ClientPart, apportioned, as_parts, by_client
from domain.frozen import replace
from domain.funds.payment_terms import CENT_UNITS
from domain.funds.reasons import FundsReason
from domain.income.maturity import EARNED, brought_to, earnings_of
from domain.income.reasons import IncomeReason
from domain.money import Amount, Asset, MoneyReason, credit
from domain.parties.account import account_of, existing_account, open_account
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

MINIMUM = credit(25_000_000)
"""The smallest cash-out of a network that never set one."""
MINIMUM_UNITS_MAX = 10**12
REASON_LENGTH_MAX = 200
OPERATOR = "operator"
"""The id of the operator's own hold."""
HOLDS_MAX = 1_000

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutMinimumSet:
    """Stream `cash_out_policy:network`."""

    minimum: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutsHeld:
    """Stream `cash_out_holds:{account_id}`. Until it is released nothing of this account leaves."""

    account_id: str
    hold_id: str  # "operator", or what it waits for
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutsReleased:
    account_id: str
    hold_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutRequested:
    """Stream `cash_out:{cash_out_id}`. party:earned to payout:in_flight."""

    cash_out_id: str
    account_id: str
    amount: Amount
    destination: str
    by: str  # the member, or "job" in payment mode cash
    at_us: int
    clients: tuple[ClientPart, ...]  # of `amount`: who brought the work that earned it


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutStarted:
    """From now on the processor may have been asked."""

    cash_out_id: str
    processor: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutSent:
    """The processor took it, under a number of its own."""

    cash_out_id: str
    reference: str
    instructions: str | None  # where a person has to make the transfer
    at_us: int
    clients: tuple[ClientPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutPaid:
    """payout:in_flight to world:bank."""

    cash_out_id: str
    amount: Amount
    by: str
    at_us: int
    clients: tuple[ClientPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutFailed:
    """payout:in_flight back to party:earned; to suspense when the account was closed meanwhile."""

    cash_out_id: str
    account_id: str | None  # absent: closed
    amount: Amount
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutCancelled:
    """payout:in_flight back to party:earned, before anybody was asked."""

    cash_out_id: str
    account_id: str | None
    amount: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOutReturned:
    """Money that was paid came back: world:bank to party:earned, or to suspense."""

    cash_out_id: str
    account_id: str | None
    amount: Amount  # of this return
    returned: Amount  # of all returns so far
    reason: str
    at_us: int


CashOutFact = (
    CashOutRequested
    | CashOutStarted
    | CashOutSent
    | CashOutPaid
    | CashOutFailed
    | CashOutCancelled
    | CashOutReturned
)

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCashOutMinimum:
    minimum: Amount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCashOuts:
    account_id: str
    hold_id: str
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCashOuts:
    account_id: str
    hold_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCashOut:
    """`amount` None: all whole cents there are."""

    cash_out_id: str
    account_id: str
    amount: Amount | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCashOut:
    """`leaving`: what processors were asked for and have not paid; `customers_cash`: what customers
    paid for good and have not spent. Both as read just before: they grow with the bank, or by the
    job itself, which starts one cash-out after the other.
    """

    cash_out_id: str
    processor: str
    leaving: int
    customers_cash: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmCashOutSent:
    cash_out_id: str
    reference: str
    instructions: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmCashOutPaid:
    cash_out_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailCashOut:
    cash_out_id: str
    reason: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelCashOut:
    cash_out_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnCashOut:
    """`returned` is the sum of all that came back so far."""

    cash_out_id: str
    returned: Amount
    reason: str
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class CashOutPolicy:
    minimum: Amount = MINIMUM


@dataclass(frozen=True, slots=True)
class Holds:
    """By hold id: why."""

    present: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CashOut:
    requested: CashOutRequested | None = None
    status: str = ""
    processor: str | None = None
    reference: str | None = None
    started_us: int | None = None
    returned_units: int = 0

    @property
    def is_finished(self) -> bool:
        return self.status in ("paid", "failed", "cancelled")


POLICY: Stream[CashOutPolicy] = Stream("cash_out_policy", "network")


def stream_of(cash_out_id: str) -> Stream[CashOut]:
    return Stream("cash_out", cash_out_id)


def holds_stream(account_id: str) -> Stream[Holds]:
    return Stream("cash_out_holds", account_id)


def evolve_policy(_state: CashOutPolicy, fact: CashOutMinimumSet) -> CashOutPolicy:
    return CashOutPolicy(fact.minimum)


def evolve_holds(state: Holds, fact: CashOutsHeld | CashOutsReleased) -> Holds:
    present = {each: why for each, why in state.present.items() if each != fact.hold_id}
    if isinstance(fact, CashOutsHeld):
        present[fact.hold_id] = fact.reason
    return Holds(present)


def evolve_cash_out(state: CashOut, fact: CashOutFact) -> CashOut:
    match fact:
        case CashOutRequested():
            return replace(state, requested=fact, status="requested")
        case CashOutStarted():
            started = replace(state, processor=fact.processor, started_us=fact.at_us)
            return replace(started, status="started")
        case CashOutSent():
            return replace(state, reference=fact.reference, status="sent")
        case CashOutPaid():
            return replace(state, status="paid")
        case CashOutFailed():
            return replace(state, status="failed")
        case CashOutCancelled():
            return replace(state, status="cancelled")
        case CashOutReturned():
            return replace(state, returned_units=fact.returned.units)
        case _:
            assert_never(fact)


def cash_out_of(world: World, cash_out_id: str) -> CashOut:
    return world.state(stream_of(cash_out_id))


def minimum_of(world: World) -> Amount:
    state = world.state(POLICY)
    return state.minimum


def holds_of(world: World, account_id: str, at_us: int) -> dict[str, str]:
    """Why nothing of this account may leave now: hold id -> reason; empty when it may."""
    found = dict(_holds(world, account_id).present)
    owed = world.balance(f"party:{account_id}:owed")
    if owed:
        found["owes"] = "the account has unpaid debt"
    from_us = earnings_of(world, account_id).destination_from_us
    if at_us < from_us:
        found["destination"] = "the destination is new"
    return found


def _holds(world: World, account_id: str) -> Holds:
    return world.state(holds_stream(account_id))


# Policy and holds.


def decide_minimum(command: SetCashOutMinimum, world: World) -> list[Change]:
    """Raises Refused: AMOUNT_OUT_OF_RANGE, AMOUNT_NOT_CENTS."""
    units = command.minimum.units
    if command.minimum.asset is not Asset.CREDIT or not CENT_UNITS <= units <= MINIMUM_UNITS_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, least=CENT_UNITS, most=MINIMUM_UNITS_MAX)
    _require_cents(units)
    if minimum_of(world) == command.minimum:
        return []
    fact = CashOutMinimumSet(minimum=command.minimum, by=command.by, at_us=command.at_us)
    return [Change(POLICY, fact)]


def decide_hold(command: HoldCashOuts, world: World) -> list[Change]:
    """Twice is once; another reason replaces it. Raises Refused: ACCOUNT_UNKNOWN,
    CASH_OUT_HELD when there are too many holds.
    """
    existing_account(world, command.account_id)
    assert 0 < len(command.reason) <= REASON_LENGTH_MAX, command
    present = _holds(world, command.account_id).present
    if present.get(command.hold_id) == command.reason:
        return []
    if command.hold_id not in present and len(present) >= HOLDS_MAX:
        raise Refused(IncomeReason.CASH_OUT_HELD, account_id=command.account_id, holds=len(present))
    fact = CashOutsHeld(
        account_id=command.account_id,
        hold_id=command.hold_id,
        reason=command.reason,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(holds_stream(command.account_id), fact)]


def decide_release(command: ReleaseCashOuts, world: World) -> list[Change]:
    """Other holds stay; releasing what is not held changes nothing. Raises Refused:
    ACCOUNT_UNKNOWN.
    """
    existing_account(world, command.account_id)
    if command.hold_id not in _holds(world, command.account_id).present:
        return []
    fact = CashOutsReleased(
        account_id=command.account_id, hold_id=command.hold_id, by=command.by, at_us=command.at_us
    )
    return [Change(holds_stream(command.account_id), fact)]


# Cash-outs.


def decide_request(command: RequestCashOut, world: World) -> list[Change]:
    """The same request again changes nothing.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, DUPLICATE_ID, PAYMENT_MODE (no destination),
    CASH_OUT_HELD, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, AMOUNT_NOT_CENTS, CREDIT_TOO_LOW (of
    the account, or of `world:bank`), CASH_OUT_TOO_SMALL.
    """
    open_account(world, command.account_id)
    known = cash_out_of(world, command.cash_out_id).requested
    if known is not None:
        if known.account_id == command.account_id and command.amount in (None, known.amount):
            return []
        raise Refused(MoneyReason.DUPLICATE_ID, cash_out_id=command.cash_out_id)
    destination = earnings_of(world, command.account_id).destination
    if destination is None:
        raise Refused(IncomeReason.PAYMENT_MODE, rule="cash needs a destination")
    _require_not_held(world, command.account_id, command.at_us)
    earned = world.balance(f"party:{command.account_id}:earned")
    units = earned // CENT_UNITS * CENT_UNITS
    if command.amount is not None:
        units = _asked(command.amount, earned)
    _require_enough(world, command.account_id, units, earned)
    bank, in_flight = world.balance("world:bank"), world.balance("payout:in_flight")
    if in_flight + units > bank:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=units, bank=bank, in_flight=in_flight)
    fact = CashOutRequested(
        cash_out_id=command.cash_out_id,
        account_id=command.account_id,
        amount=credit(units),
        destination=destination,
        by=command.by,
        at_us=command.at_us,
        clients=as_parts(apportioned(units, _in_earned(world, command.account_id, earned))),
    )
    return [Change(stream_of(command.cash_out_id), fact)]


def _in_earned(world: World, account_id: str, units: int) -> dict[str, int]:
    """Which client brought what is in the earned book now."""
    return apportioned(units, earnings_of(world, account_id).earned)


def _asked(amount: Amount, earned: int) -> int:
    if amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=amount.units)
    if amount.asset is not Asset.CREDIT:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, asset=amount.asset.value)
    _require_cents(amount.units)
    if amount.units > earned:
        raise Refused(
            FundsReason.CREDIT_TOO_LOW, needed=amount.units, available=earned, what="earnings"
        )
    return amount.units


def _require_cents(units: int) -> None:
    if units % CENT_UNITS:
        raise Refused(FundsReason.AMOUNT_NOT_CENTS, units=units, cent=CENT_UNITS)


def _require_enough(world: World, account_id: str, units: int, earned: int) -> None:
    minimum = minimum_of(world).units
    coming = sum(world.balance(f"party:{account_id}:{part}") for part in ("holdback", "payable"))
    if units < least_of(minimum, earned, coming):
        raise Refused(IncomeReason.CASH_OUT_TOO_SMALL, units=units, minimum=minimum)


def least_of(minimum: int, earned: int, coming: int) -> int:
    """The smallest cash-out: the minimum, or all whole cents of an account that has less and for
    which nothing more is coming. All in micro-credits.
    """
    cents = earned - earned % CENT_UNITS
    return cents if 0 < cents < minimum and not coming else minimum


def _require_not_held(world: World, account_id: str, at_us: int) -> None:
    holds = holds_of(world, account_id, at_us)
    if holds:
        told = "; ".join(f"{hold_id}: {reason}" for hold_id, reason in sorted(holds.items())[:5])
        # Only a new destination ends by itself, so only then is there a moment to wait for.
        is_new = holds.keys() == {"destination"}
        until_us = earnings_of(world, account_id).destination_from_us if is_new else None
        raise Refused(
            IncomeReason.CASH_OUT_HELD, account_id=account_id, holds=told, until_us=until_us
        )


def turn_of(account_id: str, day: int) -> str:
    """Where an account stands among those that ask by themselves on a UTC day; lower goes first.

    turn = SHA-256 of "{day}/{account}"         drawn anew each day: no account is always first

    What was not sent for want of money stands before all that a later day asks for, so an order by
    age says nothing within a day: all of it was swept in the same round.
    """
    return sha256(f"{day}/{account_id}".encode()).hexdigest()


def decide_start(command: StartCashOut, world: World) -> list[Change]:
    """The intent to ask the processor; from here on only the processor's word ends it.

    Raises Refused: CASH_OUT_UNKNOWN, CASH_OUT_STATE, CASH_OUT_HELD, CREDIT_TOO_LOW.
    """
    state, asked = _known(world, command.cash_out_id)
    if state.status == "started" and state.processor == command.processor:
        return []
    if state.status != "requested":
        raise _not_now(command.cash_out_id, state)
    _require_not_held(world, asked.account_id, command.at_us)
    bank, units = world.balance("world:bank"), asked.amount.units
    if command.leaving + units > bank - command.customers_cash:
        raise Refused(
            FundsReason.CREDIT_TOO_LOW,
            needed=units,
            bank=bank,
            leaving=command.leaving,
            customers_cash=command.customers_cash,
        )
    fact = CashOutStarted(
        cash_out_id=command.cash_out_id, processor=command.processor, at_us=command.at_us
    )
    return [Change(stream_of(command.cash_out_id), fact)]


def decide_sent(command: ConfirmCashOutSent, world: World) -> list[Change]:
    """Raises Refused: CASH_OUT_UNKNOWN, CASH_OUT_STATE."""
    state, asked = _known(world, command.cash_out_id)
    if state.reference == command.reference:
        return []
    if state.status != "started":
        raise _not_now(command.cash_out_id, state)
    fact = CashOutSent(
        cash_out_id=command.cash_out_id,
        reference=command.reference,
        instructions=command.instructions,
        at_us=command.at_us,
        clients=asked.clients,
    )
    return [Change(stream_of(command.cash_out_id), fact)]


def decide_paid(command: ConfirmCashOutPaid, world: World) -> list[Change]:
    """Twice is once. Raises Refused: CASH_OUT_UNKNOWN, CASH_OUT_STATE."""
    state, asked = _known(world, command.cash_out_id)
    if state.status == "paid":
        return []
    if state.status != "sent":
        raise _not_now(command.cash_out_id, state)
    fact = CashOutPaid(
        cash_out_id=command.cash_out_id,
        amount=asked.amount,
        by=command.by,
        at_us=command.at_us,
        clients=asked.clients,
    )
    return [Change(stream_of(command.cash_out_id), fact)]


def decide_fail(command: FailCashOut, world: World) -> list[Change]:
    """The processor will not pay. Twice is once. Raises Refused: CASH_OUT_UNKNOWN,
    CASH_OUT_STATE.
    """
    state, asked = _known(world, command.cash_out_id)
    if state.status == "failed":
        return []
    if state.status not in ("started", "sent"):
        raise _not_now(command.cash_out_id, state)
    fact = CashOutFailed(
        cash_out_id=command.cash_out_id,
        account_id=_back_to(world, asked.account_id),
        amount=asked.amount,
        reason=command.reason,
        by=command.by,
        at_us=command.at_us,
    )
    return _back(world, fact, asked)


def decide_cancel(command: CancelCashOut, world: World) -> list[Change]:
    """Only before it was started. Twice is once. Raises Refused: CASH_OUT_UNKNOWN,
    CASH_OUT_STATE.
    """
    state, asked = _known(world, command.cash_out_id)
    if state.status == "cancelled":
        return []
    if state.status != "requested":
        raise _not_now(command.cash_out_id, state)
    fact = CashOutCancelled(
        cash_out_id=command.cash_out_id,
        account_id=_back_to(world, asked.account_id),
        amount=asked.amount,
        by=command.by,
        at_us=command.at_us,
    )
    return _back(world, fact, asked)


def decide_return(command: ReturnCashOut, world: World) -> list[Change]:
    """Paid money that came back. The same sum again changes nothing.

    Raises Refused: CASH_OUT_UNKNOWN, CASH_OUT_STATE, AMOUNT_OUT_OF_RANGE.
    """
    state, asked = _known(world, command.cash_out_id)
    if state.status != "paid":
        raise _not_now(command.cash_out_id, state)
    units = command.returned.units - state.returned_units
    if units <= 0:
        return []
    if command.returned.units > asked.amount.units:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, returned=command.returned.units)
    fact = CashOutReturned(
        cash_out_id=command.cash_out_id,
        account_id=_back_to(world, asked.account_id),
        amount=credit(units),
        returned=command.returned,
        reason=command.reason,
        at_us=command.at_us,
    )
    return _back(world, fact, asked)


def _back(
    world: World, fact: CashOutFailed | CashOutCancelled | CashOutReturned, asked: CashOutRequested
) -> list[Change]:
    """What comes back is, of each client, in proportion to what left."""
    stream = stream_of(fact.cash_out_id)
    changes = [Change(stream, fact)]
    if fact.account_id is not None:
        clients = as_parts(apportioned(fact.amount.units, by_client(asked.clients)))
        source = f"{stream.kind}:{stream.id}"
        changes.append(brought_to(world, fact.account_id, source, EARNED, clients, fact.at_us))
    return changes


def _known(world: World, cash_out_id: str) -> tuple[CashOut, CashOutRequested]:
    state = cash_out_of(world, cash_out_id)
    if state.requested is None:
        raise Refused(IncomeReason.CASH_OUT_UNKNOWN, cash_out_id=cash_out_id)
    return state, state.requested


def _not_now(cash_out_id: str, state: CashOut) -> Refused:
    return Refused(IncomeReason.CASH_OUT_STATE, cash_out_id=cash_out_id, status=state.status)


def _back_to(world: World, account_id: str) -> str | None:
    return account_id if account_of(world, account_id).is_open else None


STREAMS: dict[str, tuple[Any, Any]] = {
    "cash_out": (CashOut(), evolve_cash_out),
    "cash_out_holds": (Holds(), evolve_holds),
    "cash_out_policy": (CashOutPolicy(), evolve_policy),
}
DECIDERS: dict[type[Any], Any] = {
    SetCashOutMinimum: decide_minimum,
    HoldCashOuts: decide_hold,
    ReleaseCashOuts: decide_release,
    RequestCashOut: decide_request,
    StartCashOut: decide_start,
    ConfirmCashOutSent: decide_sent,
    ConfirmCashOutPaid: decide_paid,
    FailCashOut: decide_fail,
    CancelCashOut: decide_cancel,
    ReturnCashOut: decide_return,
}
