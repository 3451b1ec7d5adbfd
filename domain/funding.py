"""What an account may spend, in the order in which it is spent.

    spend order of a balance = order of `sources_of`        least regretted first, card money last

Everybody who draws money from a balance asks here. Nothing is moved here: the balances are the
books', and whoever draws names the source and the account in its fact. Source: the design's
economics, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.stream import World

CASH_SOURCES = ("grant", "earned", "cash", "card")
BURN_SOURCES = ("burned",)


@dataclass(frozen=True, slots=True)
class Source:
    """Credits that may be spent: the balance `party:{account_id}:{name}` has `units` of them."""

    account_id: str
    name: str
    units: int

    @property
    def book(self) -> str:
        return f"party:{self.account_id}:{self.name}"


def sources_of(world: World, account_id: str, settlement: str, at_us: int) -> tuple[Source, ...]:
    """The sources that hold something, in spend order, for `settlement` "cash" or "burn".

    `at_us`: the moment of the spending; what has expired by then is not a source any more.
    """
    assert at_us >= 0, at_us
    names = BURN_SOURCES if settlement == "burn" else CASH_SOURCES
    held = (Source(account_id, name, 0) for name in names)
    found = (Source(one.account_id, one.name, world.balance(one.book)) for one in held)
    return tuple(one for one in found if one.units > 0)
