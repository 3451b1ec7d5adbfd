"""What an account has earned on its way to being spendable: held back, payable, swept once a day.

    accrual --> party:{id}:holdback --EarningsMatured--> :payable --EarningsSwept--> :earned

    credited to holdback == held back + matured + reduced        per account, to the unit, always
    every market position lies in at most one maturity of an account; swept once per UTC day

What was earned at a position of the market log is the credit to the account's holdback in that
position's posting, whatever fact made it. Each accrual matures by itself, `dispute_window` after
its own posting and not when its lease ends: a 60-day lease pays its owner every day. A maturity
covers one contiguous range of positions, so no accrual matures twice and none is left out. What a
dispute or an adjustment took out of holdback is registered by `reduce` and does not mature.

What a region shares out is gathered as it matures (`domain/income/region_pool.py`). Which compute
client brought it goes along up to the cash-out (`domain/brought.py`, row R-1).

Not how credits leave as cash (`domain/income/cash_out.py`), and not what a lease earns
(`domain/prices/charge_split.py`). Source: design economics 5; rows C-23, C-24.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from domain.brought import ClientPart, after_inflow, apportioned, as_parts
from domain.duration import DAY_US, HOUR_US
from domain.fleet.provider import PAYMENT_MODES
from domain.frozen import replace
from domain.funds import debt
from domain.funds.payment_terms import CENT_UNITS
from domain.income.reasons import IncomeReason
from domain.income.region_pool import RegionalEarning, gather
from domain.money import Amount, Big, credit
from domain.parties.account import account_of, existing_account, open_account, require_open
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

DEFAULT_WINDOW_US = 72 * HOUR_US
"""The dispute window of a network that never set one."""
WINDOW_US_MAX = 90 * DAY_US
DESTINATION_DELAY_US = 72 * HOUR_US
"""A changed destination waits this long, as a changed wallet does: a theft can be noticed."""
CAUSE_LENGTH_MAX = 200

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class MaturityWindowSet:
    """Stream `maturity:network`; versions count from 1. What is posted from then on waits so long.

    `by` is the member who set it.
    """

    version: int
    window_us: int
    effective_from_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarningsMatured:
    """Stream `earnings:{account_id}`. Positions (after, through]; amount = gross - reduced."""

    account_id: str
    after_position: int
    through_position: int
    gross: Amount  # credited to holdback in these positions
    reduced: Amount  # of it, taken out of holdback before it matured
    amount: Amount  # holdback to payable
    at_us: int
    clients: tuple[ClientPart, ...]  # of `amount`: who brought the work
    before: Big  # in payable


@dataclass(frozen=True, slots=True, kw_only=True)
class EarningsReduced:
    """Part of what was earned at a position will not mature; whoever records this moves it."""

    account_id: str
    position: int
    units: Big
    cause: str  # names the fact that took it: "dispute:...", "adjustment:..."
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarningsSwept:
    """All that was payable, to `party:{to_account_id}:earned`. At most one per UTC day."""

    account_id: str
    day: int  # UTC days since 1970
    amount: Amount
    to_account_id: str
    at_us: int
    clients: tuple[ClientPart, ...]  # of `amount`
    before: Big  # in `earned` of whoever gets it


@dataclass(frozen=True, slots=True, kw_only=True)
class EarningsBrought:
    """What came to an account by another stream's fact, in the same append: the sweep of an account
    that names it as billing account, or a cash-out that came back, to earned; a region's day, to
    payable. Those facts move the money.
    """

    account_id: str
    source: str  # "earnings:{account_id}", "cash_out:{id}" or "region-day:{region_id}/{day}"
    book: str  # BOOKS: where it came to
    amount: Amount
    clients: tuple[ClientPart, ...]
    before: Big  # in that book
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentModeSet:
    """How the account is paid: "credits" to a billing account, or "cash" to `destination`."""

    account_id: str
    mode: str
    billing_account_id: str
    destination: str | None  # the payee's account at the payment processor
    by: str
    at_us: int
    destination_from_us: int | None  # nothing is paid to it before; None: no destination


@dataclass(frozen=True, slots=True, kw_only=True)
class EarningsForgone:
    """Less than a cent, which nobody can pay out: given up, so that the account can be closed."""

    account_id: str
    amount: Amount  # earned to network:revenue:take
    by: str
    at_us: int


EarningsFact = (
    EarningsMatured
    | EarningsReduced
    | EarningsSwept
    | EarningsBrought
    | PaymentModeSet
    | EarningsForgone
)
BOOKS = PAYABLE, EARNED = ("payable", "earned")

# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMaturityWindow:
    version: int
    window_us: int
    effective_from_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatureEarnings:
    """Mature what was posted in (after, through]; `gross` is what the books credited there.

    `through_us` is when the position `through_position` was recorded.
    """

    account_id: str
    after_position: int
    through_position: int
    through_us: int
    gross: int
    at_us: int
    clients: tuple[tuple[str, int], ...] = ()  # of gross - reduced, by client
    regional: tuple[RegionalEarning, ...] = ()  # of gross - reduced, in regions that have terms
    reduced: int = 0  # what `regional` knows of reductions in these positions


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEarnings:
    """Move all that is payable to the billing account, once on the UTC day of `at_us`."""

    account_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPaymentMode:
    """`destination` None keeps the present one."""

    account_id: str
    mode: str
    billing_account_id: str
    destination: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgoDust:
    account_id: str
    by: str
    at_us: int


# What we remember.


@dataclass(frozen=True, slots=True)
class Windows:
    """Every window, in order: version n is `versions[n - 1]`."""

    versions: tuple[MaturityWindowSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Earnings:
    """`reductions`: position -> units taken, of positions that have not matured. `payable` and
    `earned`: which client brought what was in the book when something last came in.
    """

    matured_through: int = 0
    reductions: dict[int, int] = field(default_factory=dict)
    payable: dict[str, int] = field(default_factory=dict)
    earned: dict[str, int] = field(default_factory=dict)
    swept_day: int | None = None
    mode: str = "credits"
    is_mode_set: bool = False  # the account said so; until then it is paid in credits
    billing_account_id: str | None = None  # None: the account itself
    destination: str | None = None
    destination_from_us: int = 0


NETWORK: Stream[Windows] = Stream("maturity", "network")


def stream_of(account_id: str) -> Stream[Earnings]:
    return Stream("earnings", account_id)


def evolve_windows(state: Windows, fact: MaturityWindowSet) -> Windows:
    return Windows((*state.versions, fact))


def evolve_earnings(state: Earnings, fact: EarningsFact) -> Earnings:
    match fact:
        case EarningsMatured():
            through = fact.through_position
            left = {at: units for at, units in state.reductions.items() if at > through}
            payable = after_inflow(fact.before, state.payable, fact.clients)
            return replace(state, matured_through=through, reductions=left, payable=payable)
        case EarningsReduced():
            units = state.reductions.get(fact.position, 0) + fact.units
            return replace(state, reductions={**state.reductions, fact.position: units})
        case EarningsSwept():
            swept = replace(state, swept_day=fact.day, payable={})
            if fact.to_account_id != fact.account_id:
                return swept
            return replace(swept, earned=after_inflow(fact.before, state.earned, fact.clients))
        case EarningsBrought(book="payable"):
            return replace(state, payable=after_inflow(fact.before, state.payable, fact.clients))
        case EarningsBrought():
            return replace(state, earned=after_inflow(fact.before, state.earned, fact.clients))
        case PaymentModeSet():
            return replace(
                state,
                mode=fact.mode,
                is_mode_set=True,
                billing_account_id=fact.billing_account_id,
                destination=fact.destination,
                destination_from_us=fact.destination_from_us or 0,
            )
        case EarningsForgone():
            return state
        case _:
            assert_never(fact)


def windows_of(world: World) -> tuple[MaturityWindowSet, ...]:
    """Every window that was ever set, oldest first."""
    state = world.state(NETWORK)
    return state.versions


def earnings_of(world: World, account_id: str) -> Earnings:
    return world.state(stream_of(account_id))


# Windows.


def window_at(windows: Sequence[MaturityWindowSet], at_us: int) -> int:
    """How long what is posted at that moment waits, in microseconds."""
    for window in reversed(windows):
        if window.effective_from_us <= at_us:
            return window.window_us
    return DEFAULT_WINDOW_US


def due_until_us(windows: Sequence[MaturityWindowSet], now_us: int) -> int:
    """The latest moment such that all that was posted up to it is due now; -1 for none.

    Positions mature in their order, so after a window was shortened what is posted then waits for
    what was posted before, no longer.
    """
    starts = [0, *(window.effective_from_us for window in windows)]
    lengths = [DEFAULT_WINDOW_US, *(window.window_us for window in windows)]
    for index, length_us in enumerate(lengths):
        due_us = now_us - length_us
        ends_us = starts[index + 1] if index + 1 < len(starts) else None
        if ends_us is None or due_us < ends_us - 1:
            return max(due_us, starts[index] - 1)
    raise AssertionError("unreachable: the last window has no end")


def due_at_us(windows: Sequence[MaturityWindowSet], posted_us: int) -> int:
    """When what was posted at a moment matures: the first moment at which it is due.

    `due_until_us(windows, due_at_us(windows, t)) >= t`, and no earlier moment has that.
    """
    due_us, length_us = 0, DEFAULT_WINDOW_US
    for window in windows:
        if window.effective_from_us > posted_us:
            break
        due_us = max(due_us, window.effective_from_us - 1 + length_us)
        length_us = window.window_us
    return max(due_us, posted_us + length_us)


def decide_set_window(command: SetMaturityWindow, world: World) -> list[Change]:
    """A next version, from now on or later: what was posted before keeps its window, and no
    change takes back the time that a renter had to dispute it.

    Raises Refused: MATURITY_WINDOW.
    """
    fact = MaturityWindowSet(
        version=command.version,
        window_us=command.window_us,
        effective_from_us=command.effective_from_us,
        by=command.by,
        at_us=command.at_us,
    )
    known = windows_of(world)
    if 1 <= fact.version <= len(known):
        present = known[fact.version - 1]
        if replace(fact, by=present.by, at_us=present.at_us) == present:
            return []
    if fact.version != len(known) + 1:
        raise Refused(IncomeReason.MATURITY_WINDOW, version=fact.version, expected=len(known) + 1)
    earliest = max(fact.at_us, known[-1].effective_from_us + 1) if known else fact.at_us
    if fact.effective_from_us < earliest:
        raise Refused(IncomeReason.MATURITY_WINDOW, effective_from_us=fact.effective_from_us)
    if not 0 <= fact.window_us <= WINDOW_US_MAX:
        raise Refused(IncomeReason.MATURITY_WINDOW, window_us=fact.window_us, most=WINDOW_US_MAX)
    return [Change(NETWORK, fact)]


# Maturing.


def reduce(
    world: World, account_id: str, position: int, units: int, cause: str, at_us: int
) -> Change:
    """Register that part of what was earned at a position will not mature from holdback.

    The caller moves `units` micro-credits out of `party:{account_id}:holdback` by a fact in the
    same append, and never more than was earned there. Raises Refused: EARNING_MATURED when the
    position has matured already: then the caller takes from payable, earned, or what is owed.
    """
    assert units > 0, units
    assert 0 < len(cause) <= CAUSE_LENGTH_MAX, cause
    state = earnings_of(world, account_id)
    if position <= state.matured_through:
        raise Refused(
            IncomeReason.EARNING_MATURED, position=position, matured_through=state.matured_through
        )
    fact = EarningsReduced(
        account_id=account_id, position=position, units=units, cause=cause, at_us=at_us
    )
    return Change(stream_of(account_id), fact)


def decide_mature(command: MatureEarnings, world: World) -> list[Change]:
    """What matures is payable, and what its regions share out goes to them in the same append.

    Raises Refused: EARNINGS_STATE when the range does not follow the last one, is not due, or was
    reduced by more than the regional earnings know of.
    """
    state = earnings_of(world, command.account_id)
    if command.through_position <= state.matured_through:
        return []
    if command.after_position != state.matured_through:
        raise Refused(
            IncomeReason.EARNINGS_STATE,
            after_position=command.after_position,
            expected=state.matured_through,
        )
    due_us = due_until_us(windows_of(world), command.at_us)
    if command.through_us > due_us:
        raise Refused(
            IncomeReason.EARNINGS_STATE, through_us=command.through_us, due_until_us=due_us
        )
    assert command.gross >= 0, command
    if not command.gross:
        return []
    reduced = sum(units for at, units in state.reductions.items() if at <= command.through_position)
    assert reduced <= command.gross, f"{command} was reduced by {reduced}: more than was earned"
    if command.regional and command.reduced != reduced:
        raise Refused(IncomeReason.EARNINGS_STATE, reduced=reduced, known=command.reduced)
    units = command.gross - reduced
    brought = apportioned(units, dict(command.clients))
    fact = EarningsMatured(
        account_id=command.account_id,
        after_position=command.after_position,
        through_position=command.through_position,
        gross=credit(command.gross),
        reduced=credit(reduced),
        amount=credit(units),
        at_us=command.at_us,
        clients=as_parts(brought),
        before=world.balance(f"party:{command.account_id}:payable"),
    )
    gathered = gather(
        world,
        command.account_id,
        command.regional,
        command.through_position,
        command.at_us,
        brought,
    )
    taken = sum(change.fact.amount.units for change in gathered)
    assert taken <= fact.amount.units, f"{command}: a region would take {taken}"
    return [Change(stream_of(command.account_id), fact), *gathered]


# Sweeping.


def decide_sweep(command: SweepEarnings, world: World) -> list[Change]:
    """All that is payable; a second run on the same UTC day changes nothing (C-24).

    A billing account that has been closed meanwhile gets nothing: the account itself does. What
    whoever gets it owes is repaid in the same append (`domain/funds/debt.py`).
    """
    state = earnings_of(world, command.account_id)
    day = command.at_us // DAY_US
    if state.swept_day is not None and day <= state.swept_day:
        return []
    units = world.balance(f"party:{command.account_id}:payable")
    if not units:
        return []
    to = state.billing_account_id or command.account_id
    if not account_of(world, to).is_open:
        to = command.account_id
    fact = EarningsSwept(
        account_id=command.account_id,
        day=day,
        amount=credit(units),
        to_account_id=to,
        at_us=command.at_us,
        clients=as_parts(apportioned(units, state.payable)),
        before=world.balance(f"party:{to}:earned"),
    )
    changes = [Change(stream_of(command.account_id), fact)]
    if to != command.account_id:
        source = f"earnings:{command.account_id}"
        changes.append(brought_to(world, to, source, EARNED, fact.clients, command.at_us))
    repaid = debt.repayments(
        world, to, f"sweep:{command.account_id}/{day}", command.at_us, moved={"earned": units}
    )
    return [*changes, *repaid]


def brought_to(
    world: World,
    account_id: str,
    source: str,
    book: str,
    clients: tuple[ClientPart, ...],
    at_us: int,
) -> Change:
    """Who brought what another stream's fact gives to an account; recorded in the same append."""
    fact = EarningsBrought(
        account_id=account_id,
        source=source,
        book=book,
        amount=credit(sum(part.units for part in clients)),
        clients=clients,
        before=world.balance(f"party:{account_id}:{book}"),
        at_us=at_us,
    )
    return Change(stream_of(account_id), fact)


def decide_set_mode(command: SetPaymentMode, world: World) -> list[Change]:
    """Credits go to any open account; cash only to whom it belongs, and needs a destination.

    A destination is paid `DESTINATION_DELAY_US` after it was named, the first one too.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, PAYMENT_MODE.
    """
    open_account(world, command.account_id)
    if command.mode not in PAYMENT_MODES:
        raise Refused(IncomeReason.PAYMENT_MODE, mode=command.mode)
    state = earnings_of(world, command.account_id)
    destination, from_us = state.destination, state.destination_from_us
    if command.destination not in (None, destination):
        from_us = command.at_us + DESTINATION_DELAY_US
        destination = command.destination
    if command.mode == "cash" and destination is None:
        raise Refused(IncomeReason.PAYMENT_MODE, mode=command.mode, rule="cash needs a destination")
    if command.mode == "cash" and command.billing_account_id != command.account_id:
        raise Refused(
            IncomeReason.PAYMENT_MODE, mode="cash", rule="cash is paid to its own account"
        )
    require_open(existing_account(world, command.billing_account_id), command.billing_account_id)
    fact = PaymentModeSet(
        account_id=command.account_id,
        mode=command.mode,
        billing_account_id=command.billing_account_id,
        destination=destination,
        by=command.by,
        at_us=command.at_us,
        destination_from_us=from_us or None,
    )
    if evolve_earnings(state, fact) == state:
        return []
    return [Change(stream_of(command.account_id), fact)]


def decide_forgo(command: ForgoDust, world: World) -> list[Change]:
    """All that was earned, if it is less than a cent; the take revenue gets it.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, AMOUNT_OUT_OF_RANGE when it is more.
    """
    open_account(world, command.account_id)
    units = world.balance(f"party:{command.account_id}:earned")
    if units >= CENT_UNITS:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, units=units, most=CENT_UNITS - 1)
    if not units:
        return []
    fact = EarningsForgone(
        account_id=command.account_id, amount=credit(units), by=command.by, at_us=command.at_us
    )
    return [Change(stream_of(command.account_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {
    "maturity": (Windows(), evolve_windows),
    "earnings": (Earnings(), evolve_earnings),
}
DECIDERS: dict[type[Any], Any] = {
    SetMaturityWindow: decide_set_window,
    MatureEarnings: decide_mature,
    SweepEarnings: decide_sweep,
    SetPaymentMode: decide_set_mode,
    ForgoDust: decide_forgo,
}
