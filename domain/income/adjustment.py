"""Adjustments: corrections of what was charged, as new facts that point at what they correct.

    sum(lines) == 0                                          every adjustment, to the unit
    owed <= returned <= charge;   recovered <= charge        every corrected position, always
    given                  == returned - owed
    given back to a payer  == peel(payers, given after) - peel(payers, given before)
    taken from a payee     <= peel(payees, recovered after) - peel(payees, recovered before)
    taken from a provider or a client == that; from the network less what it owes, or is not asked

A settled period never reopens: nothing is edited, and a correction names the market position of
the charge it corrects. All corrections of one charge are one stream, `adjustment:{position}`, so
that together they never give back more than was charged, nor take from anybody more than they got.

What comes back goes where it came from: a grant's part restores the grant, never cash. What is
taken comes from the parts the charge was split into: from a provider's holdback while it has not
matured, then from payable, then from earned, and the rest is owed; from the platform's revenue; and
of the part to be burned from what no burn covers of this very charge, else from the revenue, else
from the reserve. What other charges are to burn is theirs: taking it would shrink what is burned
for other nodes, and so their rewards. What the network has not got is recorded as `owed` and paid
by later adjustments, as soon as it has it: the provider's part never waits for it.

Not why something is corrected: that is `domain/corrections/dispute.py`,
`domain/corrections/sla.py`, `domain/corrections/late_usage.py` and, here, an operator's goodwill.
Source: design economics 17; row V-6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

from domain.chain.burn import burn_of
from domain.chain.reasons import ChainReason
from domain.frozen import replace
from domain.funds.debt import RESERVE
from domain.funds.reasons import FundsReason
from domain.income.maturity import earnings_of, reduce
from domain.income.reasons import IncomeReason
from domain.metering.counting import Watermark
from domain.money import Amount, Big
from domain.parties.account import account_of
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True)
class BookLine:
    """One account's part of an adjustment: debits above zero, credits below."""

    account: str  # its name in the chart of accounts
    units: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class LateUsage:
    """Usage of a settled lease that was counted late; cumulative but for what says "new"."""

    lane: int
    usage_position: int  # every report of the lane up to here has been read
    ppm_us: Big  # with what was charged in time
    gpu_us_new: Big
    charge: Amount  # with what was charged in time
    charge_new: Amount
    watermarks: tuple[Watermark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentBooked:
    """Stream `adjustment:{corrects_position}`. `returned`, `recovered` and `owed` are new.

    `returned`: of the charge, given back to those who paid it, or owed to them. `recovered`: what
    those it was split among answer for, pro rata; with goodwill it is less than `returned`, and
    more where a dispute timed out: the network was not asked for its part then. `owed`: of
    `returned`, what the network could not give yet; below zero, what it gives now of that.
    """

    adjustment_id: str
    corrects_position: int  # of the fact that charged, or settled, what this corrects
    lease_id: str | None
    volume_id: str | None
    account_id: str  # the renter
    provider_account_id: str
    reason: str  # REASONS
    cause: str  # what led to it: "dispute:...", "sla:...", or the member who asked
    returned: Big
    recovered: Big
    owed: Big
    lines: tuple[BookLine, ...]
    late: LateUsage | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDisputed:
    """Stream `adjustment:{position}`: a charge can be disputed once, and is frozen meanwhile."""

    position: int
    dispute_id: str
    claimed: Big
    at_us: int


AdjustmentFact = AdjustmentBooked | LineDisputed

# What can be asked.


@dataclass(frozen=True, slots=True)
class Part:
    """Who paid, or who got, how much of a charge: an account of the books and units above zero."""

    account: str
    units: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedLine:
    """One charge as log and books hold it: sum(payers) == sum(payees) == charge.

    `payers` are the balances the money came from, in the order in which it was drawn; `payees` the
    accounts it went to, the owner of remainders last. `proven`: the log itself shows what was
    charged for: rows that the node signed, or a close that the renter asked for.

    (lease_id is None) != (volume_id is None)       a charge is of a lease or of a volume
    """

    position: int
    lease_id: str | None
    volume_id: str | None
    account_id: str
    provider_account_id: str
    posted_at_us: int
    charge: Big
    gpu_us: Big
    payers: tuple[Part, ...]
    payees: tuple[Part, ...]
    proven: bool

    def __post_init__(self) -> None:
        assert (self.lease_id is None) != (self.volume_id is None), self

    @property
    def subject(self) -> tuple[str | None, str | None]:
        """What was charged for: the lease, or the volume."""
        return self.lease_id, self.volume_id


@dataclass(frozen=True, slots=True, kw_only=True)
class PayOwed:
    """Pay what the network owes for corrections of a charge, as far as it can now."""

    adjustment_id: str
    line: ChargedLine
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantGoodwill:
    """The network gives a renter part of a charge back, at its own cost. `adjustment_id` is new."""

    adjustment_id: str
    line: ChargedLine
    units: Big
    by: str
    at_us: int


ADJUSTMENTS_MAX = 100
"""Corrections of one charge."""
REVENUE = "network:revenue:take"
"""Owns the remainder of every split, and stands in where another part cannot give."""
REVENUES = (REVENUE, "network:revenue:usage", "network:revenue:federated", "network:revenue:device")
BURN_DUE = "network:burn_due"
SUSPENSE = "network:suspense"

_HOLDBACK = re.compile(r"party:([^:]+):holdback")
_SPENDABLE = r"party:[^:]+:(?:grant(?:\.[^:]+)?|burned|earned|cash|card)"
_EARNINGS = r"party:[^:]+:(?:holdback|payable|earned|owed)"
_NETWORK = r"network:revenue:[a-z]+|network:burn_due|world:burned|region:[^:]+:revenue"
_RESERVE = r"network:chargeback_reserve"
_MAY_MOVE = {
    "late_usage": (rf"{_SPENDABLE}|party:[^:]+:owed", rf"party:[^:]+:holdback|{_NETWORK}"),
    "dispute": (
        rf"dispute:[^:]+|{_EARNINGS}|{_NETWORK}|{_RESERVE}",
        rf"{_SPENDABLE}|party:[^:]+:(?:owed|payable)|{SUSPENSE}",
    ),
    "sla": (rf"{_EARNINGS}|{_NETWORK}|{_RESERVE}", rf"{_SPENDABLE}|party:[^:]+:owed|{SUSPENSE}"),
    "goodwill": (
        rf"network:revenue:[a-z]+|{_RESERVE}",
        rf"{_SPENDABLE}|party:[^:]+:owed|{SUSPENSE}",
    ),
    "owed": (rf"network:revenue:[a-z]+|{_RESERVE}", rf"{_SPENDABLE}|party:[^:]+:owed|{SUSPENSE}"),
}
"""By reason: which accounts an adjustment may debit, and which it may credit."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class Corrections:
    """All corrections of one charge. `booked`: adjustment id -> what it gave back."""

    returned: Big = 0
    recovered: Big = 0
    owed: Big = 0
    dispute_id: str | None = None
    late: LateUsage | None = None
    booked: dict[str, int] = field(default_factory=dict)

    @property
    def given(self) -> int:
        """What those who paid the charge have back of it."""
        return self.returned - self.owed

    @property
    def corrected(self) -> int:
        """What of the charge can be taken from nobody any more, or given to nobody."""
        return max(self.returned, self.recovered)


def stream_of(position: int) -> Stream[Corrections]:
    return Stream("adjustment", str(position))


def evolve(state: Corrections, fact: AdjustmentFact) -> Corrections:
    match fact:
        case AdjustmentBooked():
            return replace(
                state,
                returned=state.returned + fact.returned,
                recovered=state.recovered + fact.recovered,
                owed=state.owed + fact.owed,
                late=fact.late or state.late,
                booked={**state.booked, fact.adjustment_id: fact.returned},
            )
        case LineDisputed():
            return replace(state, dispute_id=fact.dispute_id)
        case _:
            assert_never(fact)


def corrections_of(world: World, position: int) -> Corrections:
    """What has been corrected of the charge at a market position."""
    return world.state(stream_of(position))


def require_free(world: World, position: int) -> Corrections:
    """The corrections of a charge that no open dispute freezes. Raises Refused: LINE_DISPUTED."""
    state = corrections_of(world, position)
    if state.dispute_id is not None:
        dispute: Stream[Any] = Stream("dispute", state.dispute_id)  # its file imports this one
        if world.state(dispute).is_open:
            raise Refused(
                IncomeReason.LINE_DISPUTED, position=position, dispute_id=state.dispute_id
            )
    return state


# What is read of burns.


class UnburnedCharge(NamedTuple):
    """Of a charge, the micro-credits that no burn covers, after so many corrections of it."""

    position: int
    units: int
    corrections: int


@dataclass(frozen=True, slots=True)
class Unburned:
    """What no burn covers of some charges when `burns` burns had begun, finished or not."""

    burns: int
    charges: tuple[UnburnedCharge, ...]

    def of(self, position: int) -> UnburnedCharge:
        """Of a charge that was not asked for, nothing."""
        found = [one for one in self.charges if one.position == position]
        return found[0] if found else UnburnedCharge(position, 0, 0)


NOTHING_UNBURNED = Unburned(0, ())
"""For corrections that take nothing from what is to be burned."""

# The formula.


def peel(parts: Sequence[Part], units: int) -> tuple[int, ...]:
    """Split `units` over parts as the whole is split: one after the other, the last takes the rest.

        x_k = floor(rest x part_k / sum of part_k and those after it);   rest -= x_k

    Every x_k is monotone in `units` and never more than part_k; all of them sum to `units`. The
    rule of design economics 3.
    """
    whole = sum(part.units for part in parts)
    assert 0 <= units <= whole, (units, parts)
    shares, rest = [], units
    for part in parts:
        share = rest * part.units // whole if whole else 0
        shares.append(share)
        rest, whole = rest - share, whole - part.units
    assert rest == 0, (units, parts)
    return tuple(shares)


def peel_between(parts: Sequence[Part], before: int, after: int) -> tuple[int, ...]:
    """What each part gives when the total goes from `before` to `after`; none is negative."""
    shares = tuple(
        now - then for now, then in zip(peel(parts, after), peel(parts, before), strict=True)
    )
    assert all(share >= 0 for share in shares), (parts, before, after)
    return shares


@dataclass(slots=True)
class Taking:
    """Takes corrections back from payees. It keeps what one decision has drawn of each balance,
    and the reductions that have to be recorded with it.

    `unburned`: what no burn covers yet of the charges, as it was read before.
    `owed`: what was asked of the network so far and is not there.
    """

    world: World
    now_us: int
    unburned: Unburned = NOTHING_UNBURNED
    changes: list[Change] = field(default_factory=list)
    owed: int = 0
    _drawn: dict[str, int] = field(default_factory=dict)

    def take(self, payee: Part, units: int, line: ChargedLine, cause: str) -> list[BookLine]:
        """The debits that take `units` from a payee; what the network has not got is owed. Raises
        Refused: BURN_STATE when a burn began since it was read what none covers.
        """
        if not units:
            return []
        owner = _HOLDBACK.fullmatch(payee.account)
        if owner is not None:
            held = min(units, held_back(self.world, owner[1], line.position, payee.units))
            return self._from_earnings(owner[1], held, units - held, line, cause)
        if payee.account == "world:burned":
            return [BookLine(payee.account, units)]  # credits that were retired at use come back
        if payee.account == BURN_DUE:
            here = min(units, self._unburned(line.position))
            own = [BookLine(BURN_DUE, here)] if here else []
            return [*own, *self._available([*REVENUES, RESERVE], units - here)]
        others = [account for account in REVENUES if account != payee.account]
        return self._available([payee.account, *others, RESERVE], units)

    def _unburned(self, position: int) -> int:
        """What no burn covers of a charge, for as long as that is what was read of it."""
        known = self.unburned.of(position)
        if not known.units:
            return 0
        corrections = corrections_of(self.world, position)
        began = burn_of(self.world, self.unburned.burns + 1).intended is not None
        if began or known.corrections != len(corrections.booked):
            raise Refused(ChainReason.BURN_STATE, rule="a burn began", position=position)
        return known.units

    def from_network(self, units: int) -> list[BookLine]:
        """The debits that take `units` from the platform's revenue, then from the reserve. Raises
        Refused: CREDIT_TOO_LOW.
        """
        return self._draw([*REVENUES, RESERVE], units)

    def of_owed(self, units: int) -> list[BookLine]:
        """The debits that pay `units` of what is owed, or as many as there are."""
        return self._available([*REVENUES, RESERVE], units)

    def give_back(self, line: ChargedLine, before: int, after: int) -> list[BookLine]:
        """The credits that return a charge to whoever paid it; what belongs to a closed account
        waits in suspense. A debt is taken off as far as it still stands. What has been paid of it
        since came from nobody remembers which source, so it comes back as a grant, never as cash.
        """
        lines: list[BookLine] = []
        given = peel_between(line.payers, before, after)
        for payer, units in zip(line.payers, given, strict=True):
            account, left = payer.account, units
            if account.endswith(":owed"):
                here = min(left, self._left(account))
                self._drawn[account] = self._drawn.get(account, 0) + here
                lines.append(BookLine(account, -here))
                account, left = account.removesuffix("owed") + "grant", left - here
            lines.append(BookLine(open_book(self.world, account), -left))
        return lines

    def _from_earnings(
        self, account_id: str, held: int, left: int, line: ChargedLine, cause: str
    ) -> list[BookLine]:
        """What of this charge is still held back; then payable, earned, owed."""
        lines: list[BookLine] = []
        if held:
            change = reduce(self.world, account_id, line.position, held, cause, self.now_us)
            self.changes.append(change)
            lines.append(BookLine(f"party:{account_id}:holdback", held))
        for part in ("payable", "earned"):
            account = f"party:{account_id}:{part}"
            here = min(left, self._left(account))
            lines += self._debit(account, here)
            left -= here
        return [*lines, BookLine(f"party:{account_id}:owed", left)]

    def _available(self, accounts: Sequence[str], units: int) -> list[BookLine]:
        here = min(units, sum(self._left(account) for account in accounts))
        self.owed += units - here
        return self._draw(accounts, here)

    def _draw(self, accounts: Sequence[str], units: int) -> list[BookLine]:
        lines, left = [], units
        for account in accounts:
            here = min(left, self._left(account))
            lines += self._debit(account, here)
            left -= here
        if left:
            raise Refused(
                FundsReason.CREDIT_TOO_LOW, needed=units, available=units - left, what="adjustment"
            )
        return lines

    def _left(self, account: str) -> int:
        return max(0, self.world.balance(account) - self._drawn.get(account, 0))

    def _debit(self, account: str, units: int) -> list[BookLine]:
        self._drawn[account] = self._drawn.get(account, 0) + units
        return [BookLine(account, units)] if units else []


def held_back(world: World, account_id: str, position: int, earned: int) -> int:
    """What of an owner's part of a charge is still in its holdback: nothing once it has matured,
    and less what earlier corrections and disputes have taken out.
    """
    earnings = earnings_of(world, account_id)
    if position <= earnings.matured_through:
        return 0
    left = earned - earnings.reductions.get(position, 0)
    assert left >= 0, (account_id, position, earned, earnings)
    return left


def open_book(world: World, account: str) -> str:
    """The book account itself, or suspense if its party's account was closed meanwhile."""
    account_id = account.split(":")[1]
    return account if account_of(world, account_id).is_open else SUSPENSE


def book(
    line: ChargedLine,
    lines: Sequence[BookLine],
    *,
    adjustment_id: str,
    reason: str,
    cause: str,
    returned: int,
    recovered: int,
    by: str,
    at_us: int,
    owed: int = 0,
    late: LateUsage | None = None,
) -> Change:
    """The adjustment that moves these lines; asserts that they balance and may be moved."""
    sums: dict[str, int] = {}
    for one in lines:
        sums[one.account] = sums.get(one.account, 0) + one.units
    kept = tuple(BookLine(account, units) for account, units in sums.items() if units)
    assert sum(one.units for one in kept) == 0, kept
    debits, credits = _MAY_MOVE[reason]
    for one in kept:
        allowed = debits if one.units > 0 else credits
        assert re.fullmatch(allowed, one.account), (reason, one)
    fact = AdjustmentBooked(
        adjustment_id=adjustment_id,
        corrects_position=line.position,
        lease_id=line.lease_id,
        volume_id=line.volume_id,
        account_id=line.account_id,
        provider_account_id=line.provider_account_id,
        reason=reason,
        cause=cause,
        returned=returned,
        recovered=recovered,
        owed=owed,
        lines=kept,
        late=late,
        by=by,
        at_us=at_us,
    )
    return Change(stream_of(line.position), fact)


def refund(
    taking: Taking,
    line: ChargedLine,
    units: int,
    *,
    adjustment_id: str,
    reason: str,
    cause: str,
    by: str,
    held: Mapping[str, int] | None = None,
    reserve: str = "",
    only_held: bool = False,
) -> Change:
    """Take `units` of a charge from its payees pro rata, and give them back.

    `held` says what of a payee's part waits in the account `reserve`: that pays first and whole,
    and what is not needed of it becomes payable. `only_held`: nothing else is asked for its part.
    """
    world, waiting = taking.world, dict(held or {})
    state = corrections_of(world, line.position)
    assert 0 <= units <= line.charge - state.corrected, (units, line, state)
    owed_before, returned = taking.owed, units
    lines: list[BookLine] = []
    taken = peel_between(line.payees, state.recovered, state.recovered + units)
    for payee, part in zip(line.payees, taken, strict=True):
        reserved = waiting.pop(payee.account, 0)
        if not reserved and only_held:
            returned -= part
            continue
        if not reserved:
            lines += taking.take(payee, part, line, cause)
            continue
        assert part <= reserved, (payee, part, reserved)
        payable = payee.account.removesuffix(":holdback") + ":payable"
        lines.append(BookLine(reserve, reserved))
        lines.append(BookLine(open_book(world, payable), part - reserved))
    assert not waiting, waiting
    owed = taking.owed - owed_before
    given = taking.give_back(line, state.given, state.given + returned - owed)
    return book(
        line,
        [*given, *lines],
        adjustment_id=adjustment_id,
        reason=reason,
        cause=cause,
        returned=returned,
        recovered=units,
        by=by,
        at_us=taking.now_us,
        owed=owed,
    )


def require_room(state: Corrections, line: ChargedLine, units: int, corrected: int) -> None:
    """Whether `units` more of a charge can be corrected after `corrected`.

    Raises Refused: AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE.
    """
    if units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=units)
    left = line.charge - corrected
    if units > left or len(state.booked) >= ADJUSTMENTS_MAX:
        raise Refused(
            IncomeReason.ADJUSTMENT_TOO_LARGE,
            position=line.position,
            units=units,
            left=left,
            adjustments=len(state.booked),
        )


# How we decide.


def decide_goodwill(command: GrantGoodwill, world: World) -> list[Change]:
    """A present of the network, out of its revenue, bounded by the charge it is for.

    Raises Refused: LINE_DISPUTED, AMOUNT_NOT_POSITIVE, ADJUSTMENT_TOO_LARGE, CREDIT_TOO_LOW.
    """
    line, units = command.line, command.units
    if corrections_of(world, line.position).booked.get(command.adjustment_id) == units:
        return []
    state = require_free(world, line.position)
    require_room(state, line, units, state.returned)
    taking = Taking(world, command.at_us)
    given = taking.give_back(line, state.given, state.given + units)
    return [
        book(
            line,
            [*taking.from_network(units), *given],
            adjustment_id=command.adjustment_id,
            reason="goodwill",
            cause=f"goodwill:{command.by}",
            returned=units,
            recovered=0,
            by=command.by,
            at_us=command.at_us,
        )
    ]


def decide_pay_owed(command: PayOwed, world: World) -> list[Change]:
    """As much as the network has of what it owes for a charge; nothing owed, or nothing there, is
    nothing done.
    """
    line, state = command.line, corrections_of(world, command.line.position)
    if command.adjustment_id in state.booked:
        return []
    taking = Taking(world, command.at_us)
    paid = taking.of_owed(state.owed)
    units = state.owed - taking.owed
    if not units:
        return []
    given = taking.give_back(line, state.given, state.given + units)
    return [
        book(
            line,
            [*paid, *given],
            adjustment_id=command.adjustment_id,
            reason="owed",
            cause=f"owed:{line.position}",
            returned=0,
            recovered=0,
            owed=-units,
            by="job",
            at_us=command.at_us,
        )
    ]


STREAMS: dict[str, tuple[Any, Any]] = {"adjustment": (Corrections(), evolve)}
DECIDERS: dict[type[Any], Any] = {GrantGoodwill: decide_goodwill, PayOwed: decide_pay_owed}
