"""Where a process opens its leases: one after the other, and all that wait in one append.

    matched in a round  =>  no two of the round want the same share of a device

Renters who ask at once want the same cheapest devices. Side by side they would lose races to each
other and ask the database everything one by one; here whoever finds the desk free serves all who
wait: it loads what they will ask for together, matches each on top of what the round has given
away, and records them in one append. Who cannot be served so (refused, or somebody elsewhere was
faster) goes the ordinary way alone, and gets its answer there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.job import SubmitJob
from domain.lease import RequestLease, ReserveLease
from domain.refusal import Refused
from domain.stream import Stream, World
from ledger.fresh import FreshStates
from ledger.handle import Ahead, Answer, CommandKey, Ledger, Order, Outcome

ORDERS_MAX = 64
"""Openings of one round; the others wait for the next."""
_SOURCES = ("grant", "earned", "cash", "card", "burned", "owed")


@dataclass(slots=True)
class Round:
    """What is served together: the states as loaded, and what has been given away on top."""

    world: World
    taken: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Device -> share and memory, in ppm, that leases of this round hold of it, in which mode."""
    has_followed: bool = False
    """Whether the fleet was brought up to the log: once for all of the round."""
    fees: dict[str, int] | None = None
    """The usage fees in force, once they were asked for."""
    nodes: set[str] = field(default_factory=set)
    """Nodes that something was given away of."""

    def give(
        self, node_id: str, device_ids: Iterable[str], share_ppm: int, mem_ppm: int, mode: str
    ) -> None:
        """So much of each of these devices is promised to a lease of this round."""
        self.nodes.add(node_id)
        for device_id in device_ids:
            share, mem, _ = self.taken.get(device_id, (0, 0, mode))
            self.taken[device_id] = share + share_ppm, mem + mem_ppm, mode


@dataclass(slots=True)
class Opening:
    """One call: how its commands are made on top of a round, and what it is told.

    `commands` may raise Refused. `account_id` is who pays. `outcome` stays None for a call that has
    to go the ordinary way.
    """

    account_id: str
    key: CommandKey
    now_us: int
    commands: Callable[[Round], list[Any]]
    answer: Callable[[World], Answer]
    is_served: bool = False
    outcome: Outcome | None = None


class LeaseDesk:
    """The desk of one process. Safe to use from many threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._states = FreshStates(ledger.market)
        self._waiting: deque[Opening] = deque()
        self._desk = threading.Lock()

    def open(self, opening: Opening) -> Outcome | None:
        """How it was recorded; None: not here, so handle it alone.

        Raises LogBusy, OutcomeUnknown and what reading raises, for every call of the round.
        """
        self._waiting.append(opening)
        while True:
            with self._desk:
                if opening.is_served:
                    return opening.outcome
                self._serve([self._waiting.popleft() for _ in range(self._due())])

    def _due(self) -> int:
        return min(len(self._waiting), ORDERS_MAX)

    def _serve(self, openings: Sequence[Opening]) -> None:
        try:
            accounts = {opening.account_id for opening in openings}
            names = [f"party:{account}:{source}" for account in accounts for source in _SOURCES]
            self._states.refresh()
            ahead = Ahead(self._states, self._ledger.books.balances_of(names))
            here = Round(self._ledger.world(ahead))
            orders = [order for one in openings if (order := _order(one, here)) is not None]
            self._states.prepare(_streams_of(order for _, order in orders))
            outcomes = self._ledger.handle_together(
                [order for _, order in orders], ahead=ahead,
                now_us=max(one.now_us for one in openings),
            )  # fmt: skip
            for (opening, _), outcome in zip(orders, outcomes, strict=True):
                opening.outcome = outcome
        finally:
            for opening in openings:
                opening.is_served = True


def _order(opening: Opening, here: Round) -> tuple[Opening, Order] | None:
    try:
        commands = opening.commands(here)
    except Refused:
        return None  # alone it is told why
    return opening, Order(commands, opening.key, opening.answer)


def _streams_of(orders: Iterable[Order]) -> set[Stream]:
    return {stream for order in orders for stream in streams_read(order.commands)}


def streams_read(commands: Iterable[Any]) -> set[Stream]:
    """What deciding on these will read, as far as the commands say it."""
    found: set[Stream] = set()
    for command in commands:
        match command:
            case SubmitJob():
                found.add(Stream("job", command.job_id))
            case RequestLease():
                found |= {Stream("lease", command.lease_id), Stream("job", command.job_id)}
            case ReserveLease():
                found |= {
                    Stream("offer", command.offer_id),
                    Stream("node", command.node_id),
                    Stream("revenue", command.node_id),
                    Stream("maintenance", command.node_id),
                    *(Stream("device", device_id) for device_id in command.device_ids),
                }
            case _:
                pass
    return found
