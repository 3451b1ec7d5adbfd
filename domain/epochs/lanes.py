"""A settlement lane by lane: maps over lanes and over accounts, and what is added up between them.

    settle_lanes(lanes of a cut) == settle(the cut), to the byte of its files

    map over lanes     its nodes -> weights, caps and rows of the epoch file; sums come back
    map over lanes     given the weights of all: shares under the caps of nodes; sums by account
    map over lanes     nodes of owners above their cap, where a policy has one
    merge              owners' caps, pools, rewards, the rows of the file in order of ids
    map over lanes     what the work of each client earned, by slices of accounts
    map over accounts  their rows of the file by client

A lane is any part of the nodes, each node in one of them; it is read when its turn comes. What a
step leaves for the next lies in a `Store`: in memory, or in a folder that every machine of a
cluster sees. `apply` is `map`, or what `ledger/fan_out` makes of it. Lanes whose ids lie apart, as
those of a live cut do, are merged one after the other: then no more than one of them is in memory
here, and beside it what each account gets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from domain.brought import added, in_proportion
from domain.epochs.clients import ClientUse, client_rows, clients_of, weights_of
from domain.epochs.epoch_file import file_of, node_texts
from domain.epochs.settlement import (
    CutHead,
    NodeCut,
    Outcome,
    Owned,
    Pools,
    Sums,
    Weighed,
    Weights,
    ordered,
    outcome,
    owned_nodes,
    owner_cuts,
    owners_over,
    pools_at,
    share,
    weigh,
)
from domain.money import MoneyReason
from domain.refusal import Refused

Lane = TypeVar("Lane")
NOTHING = Weights(0, 0, 0)
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
ACCOUNTS_MAX = 32_768
"""Of one slice of accounts."""
BETWEEN = "\n"
"""Between the rows that a lane leaves; JSON has none inside."""


class Store(Protocol):
    """Where a step leaves what the next one takes: JSON values, by name. Written twice, it is the
    same; a reader finds it whole or not at all.
    """

    def put(self, name: str, found: Any) -> None: ...

    def get(self, name: str) -> Any: ...


class Memory:
    """A store for `map` alone: other processes do not see it."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def put(self, name: str, found: Any) -> None:
        self._found[name] = found

    def get(self, name: str) -> Any:
        return self._found[name]


class _Ends(NamedTuple):
    """A lane after its first step: its number, the ids of its first and last node, its weights, and
    whether a client is known of any work in it.
    """

    number: int
    first: str
    last: str
    weights: Weights
    has_clients: bool


@dataclass(frozen=True, slots=True)
class _Work:
    """What every step of one settlement needs. Where the map leaves this process it travels."""

    cut: CutHead
    nodes_of: Callable[[Any], Sequence[NodeCut]]
    uses_of: Callable[[Any], Iterable[ClientUse]]
    store: Store


@dataclass(frozen=True, slots=True)
class _Paying:
    """The same once the weights of all are known."""

    work: _Work
    pools: Pools
    whole: Weights


@dataclass(frozen=True, slots=True)
class SettledLanes:
    """What an epoch pays, and its files, piece by piece from the store."""

    outcome: Outcome
    _paying: _Paying
    _lanes: Sequence[_Ends]
    _cuts: Sequence[Owned]
    _apply: Map

    def file(self) -> Iterator[bytes]:
        """The epoch file (`domain/epochs/epoch_file.py`)."""
        return file_of(self.outcome, _rows(self._paying.work.store, self._lanes))

    def clients_file(self, epoch_sha256: str) -> Iterator[bytes]:
        """Whose work its rewards pay for (`domain/epochs/clients.py`)."""
        rewards, store = self.outcome.rewards, self._paying.work.store
        slices = [rewards[at : at + ACCOUNTS_MAX] for at in range(0, len(rewards), ACCOUNTS_MAX)]
        firsts = [some[0][0] for some in slices]
        cuts: dict[int, list[Owned]] = defaultdict(list)
        for one in self._cuts:
            cuts[one.lane].append(one)
        lanes = self._lanes if any(lane.has_clients for lane in self._lanes) else ()
        tasks = [(lane.number, cuts.get(lane.number, [])) for lane in lanes]
        found: dict[int, list[int]] = defaultdict(list)
        parted = self._apply(partial(_part, self._paying, firsts), tasks)
        for lane, numbers in zip(lanes, parted, strict=True):
            for number in numbers:
                found[number].append(lane.number)
        told = ((number, found[number], some) for number, some in enumerate(slices))
        texts = self._apply(partial(_told, store), told)
        return clients_of(self.outcome, epoch_sha256, texts)


def no_uses(_lane: Any) -> Iterable[ClientUse]:
    """Of a lane whose clients are not asked for."""
    return ()


def settle_lanes(
    cut: CutHead,
    lanes: Iterable[Lane],
    nodes_of: Callable[[Lane], Sequence[NodeCut]],
    *,
    uses_of: Callable[[Lane], Iterable[ClientUse]] = no_uses,
    apply: Map = map,
    store: Store | None = None,
) -> SettledLanes:
    """Settle the nodes that `nodes_of` gives of each lane, in any order; `uses_of`: what clients
    moved of their weights.

    Where `apply` leaves this process, both, the lanes and the store travel by pickle. Raises
    Refused: DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    work = _Work(cut, nodes_of, uses_of, Memory() if store is None else store)
    found = list(apply(partial(_weigh, work), enumerate(lanes)))
    ends = sorted((one for one in found if one is not None), key=itemgetter(1))
    _require_once(work.store, ends)
    whole = Weights(*map(sum, zip(NOTHING, *(one.weights for one in ends), strict=True)))
    pools, paid = pools_at(cut), Sums()
    paying, numbers = _Paying(work, pools, whole), [one.number for one in ends]
    for sums in apply(partial(_share, paying), numbers):
        paid.add(sums)
    cuts: list[Owned] = []
    if cut.terms.owner_cap is not None:
        over = owners_over(paid.earned, cut.terms.owner_cap)
        owned = apply(partial(_owned, paying, frozenset(over)), numbers) if over else ()
        cuts = owner_cuts([node for nodes in owned for node in nodes], over)
        paid.cut_down(cuts)
    return SettledLanes(outcome(cut, pools, whole, paid), paying, ends, cuts, apply)


# --- what is done for each lane --------------------------------------------------------------


def _weigh(work: _Work, numbered: tuple[int, Any]) -> _Ends | None:
    number, lane = numbered
    nodes = ordered(work.nodes_of(lane))
    if not nodes:
        return None
    weighed = weigh(nodes, work.cut.policy)
    work.store.put(f"weighed-{number}", weighed)
    work.store.put(f"rows-{number}", BETWEEN.join(node_texts(nodes, at_once=1)))
    clients = weights_of(work.uses_of(lane), work.cut.policy)
    work.store.put(f"clients-{number}", clients)
    first, last = nodes[0].node_id, nodes[-1].node_id
    return _Ends(number, first, last, weighed.sums(), any(clients.values()))


def _weighed(paying: _Paying, number: int) -> Weighed:
    return Weighed(*paying.work.store.get(f"weighed-{number}"))


def _share(paying: _Paying, number: int) -> Sums:
    return share(_weighed(paying, number), paying.pools, paying.whole).sums()


def _owned(paying: _Paying, accounts: frozenset[str], number: int) -> list[Owned]:
    weighed = _weighed(paying, number)
    paid = share(weighed, paying.pools, paying.whole)
    return owned_nodes(number, weighed, paid, accounts)


def _part(paying: _Paying, firsts: Sequence[str], task: tuple[int, Sequence[Owned]]) -> list[int]:
    """Leave what clients earned in each slice of accounts, whose first ones are given; in which."""
    number, cuts = task
    weights = paying.work.store.get(f"clients-{number}")
    weighed = _weighed(paying, number)
    paid = share(weighed, paying.pools, paying.whole)
    paid.cut_down(cuts)
    found: dict[int, dict[str, dict[str, int]]] = defaultdict(dict)
    for node_id, account_id, units in zip(
        weighed.node_ids, weighed.account_ids, paid.compute, strict=True
    ):
        if units:
            parts = found[bisect_right(firsts, account_id) - 1]
            worked = in_proportion(units, weights.get(node_id, {}))
            parts[account_id] = added(parts[account_id], worked) if account_id in parts else worked
    for place, parts in found.items():
        paying.work.store.put(f"parts-{number}-{place}", parts)
    return sorted(found)


# --- what is done for each slice of accounts -------------------------------------------------


def _told(store: Store, task: tuple[int, Sequence[int], Sequence[tuple[str, int]]]) -> str:
    place, lanes, rewards = task
    parts: dict[str, dict[str, int]] = {}
    for number in lanes:
        for account_id, worked in store.get(f"parts-{number}-{place}").items():
            before = parts.get(account_id)
            parts[account_id] = worked if before is None else added(before, worked)
    return client_rows(rewards, parts)


# --- what is merged --------------------------------------------------------------------------


def _beside(lanes: Sequence[_Ends]) -> Iterator[list[_Ends]]:
    """Lanes in order of their first ids, those together whose ids may lie among each other's."""
    some: list[_Ends] = []
    last = ""
    for lane in lanes:
        if some and lane.first > last:
            yield some
            some = []
        last = max(last, lane.last) if some else lane.last
        some.append(lane)
    if some:
        yield some


def _require_once(store: Store, lanes: Sequence[_Ends]) -> None:
    """No node in two lanes. Raises Refused: DUPLICATE_ID."""
    for some in _beside(lanes):
        if len(some) > 1:
            found = (store.get(f"weighed-{lane.number}")[0] for lane in some)
            ids = sorted(node_id for node_ids in found for node_id in node_ids)
            for before, node_id in pairwise(ids):
                if before == node_id:
                    raise Refused(MoneyReason.DUPLICATE_ID, node_id=node_id)


def _rows(store: Store, lanes: Sequence[_Ends]) -> Iterator[str]:
    """The rows of all lanes in order of ids, one or several to a text."""
    for some in _beside(lanes):
        if len(some) == 1:
            yield store.get(f"rows-{some[0].number}").replace(BETWEEN, ",")
            continue
        found: list[tuple[str, str]] = []
        for lane in some:
            texts = store.get(f"rows-{lane.number}").split(BETWEEN)
            found += zip(store.get(f"weighed-{lane.number}")[0], texts, strict=True)
        found.sort()
        yield from (text for _, text in found)
