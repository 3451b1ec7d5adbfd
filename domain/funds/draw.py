"""Taking a charge from what an account may spend; what is not there is owed.

    sum(drawn) + owed == units           to the unit, in the spend order of
    `domain/funds/funding.py` a payer's part counts against what it allows the account this month
    (`domain/funds/budget.py`)

For charges without an escrow of their own: they were not held before, so they cannot be refused.
Who owes opens no lease until it is paid (`ledger/books/chart.py`).
"""

from __future__ import annotations

from domain.funds.budget import ACCOUNT, Claim, spend
from domain.funds.funding import sources_of
from domain.money import Amount, credit
from domain.record import dataclass
from domain.stream import Change, World


@dataclass(frozen=True, slots=True)
class Drawn:
    """Credits taken from `party:{account_id}:{source}`."""

    account_id: str
    source: str
    amount: Amount


@dataclass(frozen=True, slots=True)
class Draw:
    """How a charge was paid: `drawn` in spend order, and what is left to pay."""

    account_id: str
    drawn: tuple[Drawn, ...]
    owed: Amount

    def counted(self, world: World, reference: str, at_us: int) -> list[Change]:
        """What of it counts against a payer's cap; `reference` names what was paid."""
        payers: dict[str, int] = {}
        for one in self.drawn:
            if one.account_id != self.account_id:
                payers[one.account_id] = payers.get(one.account_id, 0) + one.amount.units
        claims = [Claim(payer, ACCOUNT, self.account_id, units) for payer, units in payers.items()]
        return [change for claim in claims for change in spend(world, claim, reference, at_us)]


def draw(world: World, account_id: str, units: int, at_us: int, pay_with: str = "cash") -> Draw:
    """Take `units` micro-credits from what the account may spend for this pay_with."""
    assert units >= 0, units
    drawn, left = [], units
    for source in sources_of(world, account_id, pay_with, at_us) if units else ():
        here = min(left, source.units)
        if here > 0:
            drawn.append(Drawn(source.account_id, source.name, credit(here)))
            left -= here
    return Draw(account_id, tuple(drawn), credit(left))
