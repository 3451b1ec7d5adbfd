"""Which compute client brought what an account earned: of what matures, is swept and leaves.

    sum of the parts of a fact == the amount that they are told of                  to the unit
    sum of what is remembered of a book == its balance right after what came in     to the unit

Work is brought by clients, and each accrual names its own. From maturing on, credits of several
clients lie in one book. What leaves a book takes of each client in proportion to what it brought,
the largest remainders first; so does what is taken from a book by others, which tells no clients.
What nothing is known of has no client: its id is empty. Row R-1. TOKEN rewards are told by what the
work of each client weighed in the epoch (`domain/epochs/clients.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.money import Big, share_out_all
from domain.record import dataclass

CLIENTS_MAX = 200
"""Compute clients that one fact names: a fact is bounded. The rest is told together."""
NO_CLIENT = ""


@dataclass(frozen=True, slots=True)
class ClientPart:
    """What of an amount is for work that one compute client brought; "": no client is known."""

    client_id: str
    units: Big


Brought = Mapping[str, int]
"""Client -> units."""


def as_parts(brought: Brought) -> tuple[ClientPart, ...]:
    """Every client by name, the largest first, up to a number of them; the rest has no name."""
    named = sorted(
        (-units, client_id) for client_id, units in brought.items() if units and client_id
    )[:CLIENTS_MAX]
    rest = sum(brought.values()) + sum(units for units, _ in named)
    parts = [ClientPart(client_id, -units) for units, client_id in named]
    return (*parts, ClientPart(NO_CLIENT, rest)) if rest else tuple(parts)


def by_client(parts: Iterable[ClientPart]) -> dict[str, int]:
    """What a fact told, by client."""
    return {part.client_id: part.units for part in parts}


def added(brought: Brought, more: Brought) -> dict[str, int]:
    ids = {*brought, *more}
    sums = {one: brought.get(one, 0) + more.get(one, 0) for one in ids}
    return {client_id: units for client_id, units in sums.items() if units}


def apportioned(units: int, brought: Brought) -> dict[str, int]:
    """So many units of what was brought, in proportion; what is more than that has no client."""
    more = units - sum(brought.values())
    return added(brought, {NO_CLIENT: more}) if more >= 0 else in_proportion(units, brought)


def in_proportion(units: int, weights: Brought) -> dict[str, int]:
    """So many units by weight, whatever the weights are in, by largest remainder; without any
    weight there is no client.
    """
    shares = share_out_all(units, tuple(weights.items()))
    parts = {NO_CLIENT: shares.carry} if shares.carry else shares.by_id
    assert sum(parts.values()) == units, (units, weights)
    return {client_id: part for client_id, part in parts.items() if part}


def after_inflow(before: int, brought: Brought, came: Iterable[ClientPart]) -> dict[str, int]:
    """What is known of a book in which `before` units were, once more has come in: of so many
    clients as one fact names, so that what is remembered is bounded, too.
    """
    return by_client(as_parts(added(apportioned(before, brought), by_client(came))))
