"""Where a process opens its leases: one after the other, and all that wait in one append.

    matched in a round  =>  no two of the round want the same share of a device

Renters who ask at once want the same cheapest devices. Side by side they would lose races to each
other and ask the database everything one by one; here one thread serves all who wait: it loads what
they will ask for together, matches each on top of what the round has given away, and records them
in one append, which shares a transaction like any other (`ledger/log/sharing.py`). Nobody holds a
thread while waiting, and who is served is told at once, whoever is served next. Who cannot
be served so (refused, or somebody elsewhere was faster) goes the ordinary way alone, and gets its
answer there.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from api.process.shared_match import Standings
from domain.fleet.device import device_stream
from domain.fleet.maintenance import stream_of as maintenance_stream
from domain.fleet.node import node_stream
from domain.fleet.revenue_share import revenue_stream
from domain.jobs.job import SubmitJob, job_stream
from domain.lease.lease import RequestLease, ReserveLease, lease_stream
from domain.market.dimensions import Need
from domain.market.offer import offer_stream
from domain.refusal import Refused
from domain.stream import Stream, World
from ledger.log.fresh import FreshStates
from ledger.log.handle import LOG_AWAY, Ahead, Answer, CommandKey, Ledger, Order, Outcome

logger = logging.getLogger(__name__)

ORDERS_MAX = 64
"""Openings of one round; the others wait for the next."""
SPOILED_MAX = 8
"""Openings that one which cannot be recorded takes with it, to be handled alone."""
_AWAY: tuple[type[Exception], ...] = (*LOG_AWAY, psycopg.OperationalError)
"""No fault of what was asked: the log is away, or the views that the fleet is read from."""
_SOURCES = ("grant", "earned", "cash", "card", "burned", "owed")


@dataclass(slots=True)
class Round:
    """What is served together: the states as loaded, and what has been given away on top."""

    world: World
    now_us: int
    """The moment at which the fleet is looked at, for all of the round."""
    standings: Standings
    taken: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Device -> share and memory, in ppm, that leases of this round hold of it, in which mode."""
    rooms: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Node -> disk in GiB and network in Mbit/s that leases of this round hold of it."""
    given_of: list[str] = field(default_factory=list)
    """Nodes that something was given away of, in that order."""
    has_followed: bool = False
    """Whether the fleet was brought up to the log: once for all of the round."""
    fees: dict[str, int] | None = None
    """The usage fees in force, once they were asked for."""
    is_shared: bool = True
    """Whether others are served with it. Who may have to wait for a pool goes alone."""
    is_answered: bool = False
    """Whether a caller waits for the answer: a refusal tells it more than a timer needs."""

    @classmethod
    def of_one(
        cls, world: World, now_us: int, leases: int = 1, *, is_answered: bool = False
    ) -> Round:
        """The round of a single call, for so many leases."""
        return cls(world, now_us, Standings(leases), is_shared=False, is_answered=is_answered)

    def give(self, node_id: str, device_ids: Iterable[str], need: Need) -> None:
        """These devices, and the disk and network of their node, are promised to a lease."""
        self.given_of.append(node_id)
        share_ppm, mem_ppm, mode = need.share_ppm, need.mem_ppm, need.mode
        storage, network = self.rooms.get(node_id, (0, 0))
        asked = need.constraints
        if asked.storage_gib or asked.network_mbps:
            more = storage + (asked.storage_gib or 0), network + (asked.network_mbps or 0)
            self.rooms[node_id] = more
        for device_id in device_ids:
            share, mem, _ = self.taken.get(device_id, (0, 0, mode))
            self.taken[device_id] = share + share_ppm, mem + mem_ppm, mode


class Served(NamedTuple):
    """How an opening was recorded; None: not here, so handle it alone. `seconds`: its part of the
    round.
    """

    outcome: Outcome | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Opening:
    """One call: how its commands are made on top of a round, and what it is told.

    `commands` may raise Refused. `account_id` is who pays.
    """

    account_id: str
    key: CommandKey
    now_us: int
    commands: Callable[[Round], list[Any]]
    answer: Callable[[World], Answer]
    served: Future[Served] = field(default_factory=Future)


class LeaseDesk:
    """The desk of one process. Safe to use from many threads; close it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._states = FreshStates(ledger.market)
        self._waiting: deque[Opening] = deque()
        self._thread = ThreadPoolExecutor(1, "lease-desk")

    def open(self, opening: Opening) -> Future[Served]:
        """How it will have been recorded.

        The future raises LogBusy, OutcomeUnknown and what reading raises, for all of a round.
        """
        self._waiting.append(opening)
        self._thread.submit(self._serve_waiting)
        return opening.served

    def close(self) -> None:
        """Serve who waits still, and no more."""
        self._thread.shutdown()

    def _serve_waiting(self) -> None:
        """One round, unless those before have served everybody."""
        due = [self._waiting.popleft() for _ in range(min(len(self._waiting), ORDERS_MAX))]
        openings = [one for one in due if one.served.set_running_or_notify_cancel()]
        if not openings:
            return
        try:
            served = self._serve(openings)
        except _AWAY as error:
            for opening in openings:
                opening.served.set_exception(error)
            return
        except Exception:
            # One of them may have spoiled it for all; alone each gets what it deserves.
            logger.exception("a round of openings failed")
            served = [Served(None, 0.0)] * len(openings)
        for opening, one in zip(openings, served, strict=True):
            opening.served.set_result(one)

    def _serve(self, openings: Sequence[Opening]) -> list[Served]:
        """Each with its own time, and its part of what all of them share."""
        began_s = time.monotonic()
        accounts = {opening.account_id for opening in openings}
        now_us = max(one.now_us for one in openings)
        ahead = self._ahead(accounts)
        here = Round(self._ledger.world(ahead), now_us, Standings(len(openings)))
        known = self._ledger.known([one.key for one in openings])
        own_s, orders = [0.0] * len(openings), dict[int, Order]()
        for place, one in enumerate(openings):
            name = one.key.account, one.key.key
            if name in known:
                continue  # alone it is told what it was told
            known.add(name)
            from_s = time.monotonic()
            order = _order(one, here)
            own_s[place] = time.monotonic() - from_s
            if order is not None:
                orders[place] = order
        self._states.prepare(_streams_of(orders.values()))
        handled = self._handled(list(orders.values()), accounts, ahead, now_us)
        outcomes = dict(zip(orders, handled, strict=True))
        shared_s = (time.monotonic() - began_s - sum(own_s)) / len(openings)
        return [Served(outcomes.get(place), own + shared_s) for place, own in enumerate(own_s)]

    def _handled(
        self, orders: list[Order], accounts: set[str], ahead: Ahead, now_us: int
    ) -> list[Outcome | None]:
        """One append. Where one of them was overtaken nothing of it is recorded: then each half is
        tried, so that it spoils the round for `SPOILED_MAX` at most.
        """
        if not orders:
            return []
        handled = self._ledger.handle_all(orders, ahead=ahead, now_us=now_us)
        is_spoiled = all(not one.done and one.refusal is None for one in handled)
        if len(orders) <= SPOILED_MAX or not is_spoiled:
            return [one.outcome for one in handled]
        half = len(orders) // 2
        found: list[Outcome | None] = []
        for some in (orders[:half], orders[half:]):
            found += self._handled(some, accounts, self._ahead(accounts), now_us)
        return found

    def _ahead(self, accounts: set[str]) -> Ahead:
        """States and balances as they stand now."""
        names = [f"party:{account}:{source}" for account in accounts for source in _SOURCES]
        self._states.refresh()
        return Ahead(self._states, self._ledger.books.balances_of(names))


def _order(opening: Opening, here: Round) -> Order | None:
    try:
        commands = opening.commands(here)
    except Refused:
        return None  # alone it is told why
    return Order(commands, opening.key, opening.answer)


def _streams_of(orders: Iterable[Order]) -> set[Stream[Any]]:
    return {stream for order in orders for stream in streams_read(order.commands)}


def streams_read(commands: Iterable[Any]) -> set[Stream[Any]]:
    """What deciding on these will read, as far as the commands say it."""
    found: set[Stream[Any]] = set()
    for command in commands:
        match command:
            case SubmitJob():
                found.add(job_stream(command.job_id))
            case RequestLease():
                found |= {lease_stream(command.lease_id), job_stream(command.job_id)}
            case ReserveLease():
                found |= {
                    offer_stream(command.offer_id),
                    node_stream(command.node_id),
                    revenue_stream(command.node_id),
                    maintenance_stream(command.node_id),
                    *(device_stream(device_id) for device_id in command.device_ids),
                }
            case _:
                pass
    return found
