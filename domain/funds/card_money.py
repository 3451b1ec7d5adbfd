"""Card money: which of it may still be taken back, and which has become cash.

    exposed = card money of an account inside its chargeback window (whether spent or not)
    settled = card money whose window is over and that has not become cash: it was spent, or is held
    sum(to_cash) + settled <= sum(confirmed);   exposed + sum(confirmed) <= sum(came in)

An account's card credits are one balance. They are spent oldest first, so what is left of them is
the newest money: `party:{id}:card` up to `exposed` is inside the window, and only what is above it
is final. That part, never more than `settled`, becomes `party:{id}:cash`: refundable, and with
reward weight (design economics 5; decision 0014). Spending order the other way round would let
somebody withdraw confirmed money while the unconfirmed was spent, and then reverse it. Card money
an escrow gives back after its window is over becomes cash by `TurnCardMoney`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.money import Amount, Big, credit
from domain.parties.account import existing_account
from domain.record import dataclass
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMoneyMoved:
    """Stream `card:{account_id}`. The first two are what there is afterwards."""

    account_id: str
    cause: str  # the payment, deposit or command that brought it about
    exposed: Amount
    settled: Amount
    to_cash: Amount  # new: from `party:{id}:card` to `party:{id}:cash`
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCardMoney:
    """Turn card money that is final into cash: what came back from an escrow, for example."""

    account_id: str
    at_us: int


# State.


@dataclass(frozen=True, slots=True)
class CardMoney:
    exposed: Big = 0
    settled: Big = 0


def evolve(_state: CardMoney, fact: CardMoneyMoved) -> CardMoney:
    return CardMoney(fact.exposed.units, fact.settled.units)


def card_stream(account_id: str) -> Stream[CardMoney]:
    return Stream("card", account_id)


def card_money_of(world: World, account_id: str) -> CardMoney:
    return world.state(card_stream(account_id))


# Decisions, as parts of others: what a payment does to the card money of its account.


def came_in(world: World, account_id: str, units: int, cause: str, at_us: int) -> list[Change]:
    """Card money arrived, and its window began."""
    before = card_money_of(world, account_id)
    return _moved(account_id, before.exposed + units, before.settled, 0, cause, at_us)


def confirmed(world: World, account_id: str, units: int, cause: str, at_us: int) -> list[Change]:
    """The window of so much card money is over."""
    before = card_money_of(world, account_id)
    exposed = before.exposed - units
    assert exposed >= 0, (account_id, units, before)
    settled = before.settled + units
    to_cash = _final(world, account_id, exposed, settled)
    return _moved(account_id, exposed, settled - to_cash, to_cash, cause, at_us)


def taken_back(
    world: World, account_id: str, units: int, cause: str, at_us: int, *, is_final: bool
) -> list[Change]:
    """So much card money went back; `is_final`: its window was over."""
    before = card_money_of(world, account_id)
    if is_final:
        settled = max(0, before.settled - units)
        if settled == before.settled:
            return []
        return _moved(account_id, before.exposed, settled, 0, cause, at_us)
    assert before.exposed >= units, (account_id, units, before)
    return _moved(account_id, before.exposed - units, before.settled, 0, cause, at_us)


def decide_turn(command: TurnCardMoney, world: World) -> list[Change]:
    """Nothing final is nothing done."""
    existing_account(world, command.account_id)
    now = card_money_of(world, command.account_id)
    to_cash = _final(world, command.account_id, now.exposed, now.settled)
    if not to_cash:
        return []
    return _moved(
        command.account_id, now.exposed, now.settled - to_cash, to_cash, "turned", command.at_us
    )


def _final(world: World, account_id: str, exposed: int, settled: int) -> int:
    """How much of the card balance is above what may still be taken back."""
    return min(settled, max(0, world.balance(f"party:{account_id}:card") - exposed))


def _moved(
    account_id: str, exposed: int, settled: int, to_cash: int, cause: str, at_us: int
) -> list[Change]:
    fact = CardMoneyMoved(
        account_id=account_id,
        cause=cause,
        exposed=credit(exposed),
        settled=credit(settled),
        to_cash=credit(to_cash),
        at_us=at_us,
    )
    return [Change(card_stream(account_id), fact)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"card": (CardMoney(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {TurnCardMoney: decide_turn}
