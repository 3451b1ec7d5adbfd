"""A settlement lane by lane: three maps, and what is added up between them.

    settle_lanes(lanes of a cut) == settle(the cut), to the byte of its file

    map over lanes   its nodes -> weights and caps, and their rows of the epoch file; sums come back
    map over lanes   given the weights of all: shares under the caps of nodes; sums by account
    map over lanes   nodes of owners above their cap, where a policy has one
    merge            owners' caps, pools, rewards, the rows of the file in order of ids

A lane is any part of the nodes, each node in one of them. What a step leaves for the next lies in a
`Store`: in memory, or in a folder that every machine of a cluster sees. `apply` is `map`, or what
`ledger/fan_out` makes of it. Lanes whose ids lie apart, as those of a live cut do, are merged one
after the other: then no more than one of them is in memory, and beside it what each account gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

from domain.epochs.epoch_file import file_of, node_text
from domain.epochs.settlement import (
    Cut,
    CutHead,
    NodeCut,
    NodeReward,
    Outcome,
    Owned,
    Paid,
    Pools,
    Settlement,
    Weighed,
    Weights,
    cut_down,
    node_rewards,
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


class Summed(NamedTuple):
    """What comes back of the first step of a lane; `first` and `last` id are None of no nodes."""

    weights: Weights
    first: str | None
    last: str | None


@dataclass(frozen=True, slots=True)
class SettledLanes:
    """What an epoch pays; its file and its nodes are made anew from the store when asked for."""

    outcome: Outcome
    _pools: Pools
    _whole: Weights
    _runs: Sequence[Sequence[int]]  # numbers of lanes, in order of ids: those of a run overlap
    _cuts: Mapping[int, Sequence[Owned]]  # by lane
    _store: Store

    def file(self) -> Iterator[bytes]:
        """The epoch file, piece by piece."""
        return file_of(self.outcome, self._texts())

    def _texts(self) -> Iterator[str]:
        for run in self._runs:
            rows = [self._store.get(f"rows-{number}") for number in run]
            if len(run) > 1:
                ids = [self._store.get(f"weighed-{number}")[0] for number in run]
                pairs = zip(chain(*ids), chain(*rows), strict=True)
                rows = [[text for _, text in sorted(pairs)]]
            yield ",".join(rows[0])

    def nodes(self) -> Iterator[NodeReward]:
        """Every node of the cut, by id."""
        for run in self._runs:
            found = list(chain(*map(self._nodes, run)))
            yield from sorted(found) if len(run) > 1 else found

    def _nodes(self, number: int) -> list[NodeReward]:
        weighed = Weighed(*self._store.get(f"weighed-{number}"))
        paid = share(weighed, self._pools, self._whole)
        cut_down({number: paid}, self._cuts.get(number, ()))
        return node_rewards(weighed, paid)


class _Shared(NamedTuple):
    """A lane after its second step, without its nodes."""

    compute_shares: int
    availability_shares: int
    compute: int
    availability: int
    earned: Mapping[str, int]

    def paid(self) -> Paid:
        return Paid(
            self.compute_shares,
            self.availability_shares,
            [self.compute],
            [self.availability],
            dict(self.earned),
        )


def settle(cut: Cut) -> Settlement:
    """Split an epoch's emission and release among the nodes of its cut, all of them at hand: one
    lane. The same whatever the order of the nodes. Raises Refused: DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    nodes, store = ordered(cut.nodes), Memory()
    found = settle_weighed(cut.head, [put_weighed(cut, store, 0, nodes)], store)
    told = {field.name: getattr(found.outcome, field.name) for field in fields(Outcome)}
    told["cut"] = replace(cut, nodes=nodes)
    return Settlement(**told, nodes=tuple(found.nodes()))


def settle_lanes(
    cut: CutHead,
    lanes: Iterable[Lane],
    nodes_of: Callable[[Lane], Sequence[NodeCut]],
    *,
    apply: Map = map,
    store: Store | None = None,
) -> SettledLanes:
    """Settle the nodes that `nodes_of` gives of each lane, in any order. A lane is asked for when
    its turn comes.

    Where `apply` leaves this process, `nodes_of`, lanes and store travel by pickle. Raises Refused:
    DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    store = Memory() if store is None else store
    head = cut.head
    sums = list(apply(partial(_weigh, head, nodes_of, store), enumerate(lanes)))
    return settle_weighed(head, sums, store, apply=apply)


def settle_weighed(
    cut: CutHead, sums: Sequence[Summed], store: Store, *, apply: Map = map
) -> SettledLanes:
    """Settle lanes that `put_weighed` left in the store; `sums` is what it gave of each, in order.

    Raises Refused: DUPLICATE_ID.
    """
    weights = (one.weights for one in sums)
    whole, pools = Weights(*map(sum, zip(NOTHING, *weights, strict=True))), pools_at(cut)
    numbers, runs = range(len(sums)), _runs(sums)
    _require_once(store, runs)
    paid = [one.paid() for one in apply(partial(_share, pools, whole, store), numbers)]
    cuts: dict[int, list[Owned]] = {}
    if cut.terms.owner_cap is not None:
        over = owners_over(paid, cut.terms.owner_cap)
        found = apply(partial(_owned, pools, whole, store, frozenset(over)), numbers)
        for one in owner_cuts([node for nodes in found for node in nodes], over):
            cuts.setdefault(one.lane, []).append(one)
        every = chain(*cuts.values())
        cut_down(paid, [one._replace(place=0) for one in every])  # lanes are known by their sums
    return SettledLanes(outcome(cut, pools, whole, paid), pools, whole, runs, cuts, store)


# --- what is done for each lane --------------------------------------------------------------


def put_weighed(cut: CutHead, store: Store, number: int, nodes: Sequence[NodeCut]) -> Summed:
    """The first step of a lane, without its rows of the file: its nodes are `ordered`."""
    weighed = weigh(nodes, cut.policy)
    store.put(f"weighed-{number}", weighed)
    ids = weighed.node_ids
    return Summed(weighed.sums(), ids[0] if ids else None, ids[-1] if ids else None)


def _weigh(
    cut: CutHead,
    nodes_of: Callable[[Lane], Sequence[NodeCut]],
    store: Store,
    numbered: tuple[int, Lane],
) -> Summed:
    number, lane = numbered
    nodes = ordered(nodes_of(lane))
    store.put(f"rows-{number}", [node_text(node) for node in nodes])
    return put_weighed(cut, store, number, nodes)


def _share(pools: Pools, whole: Weights, store: Store, number: int) -> _Shared:
    paid = share(Weighed(*store.get(f"weighed-{number}")), pools, whole)
    return _Shared(
        paid.compute_shares,
        paid.availability_shares,
        sum(paid.compute),
        sum(paid.availability),
        paid.earned,
    )


def _owned(
    pools: Pools, whole: Weights, store: Store, accounts: frozenset[str], number: int
) -> list[Owned]:
    weighed = Weighed(*store.get(f"weighed-{number}"))
    return owned_nodes(number, weighed, share(weighed, pools, whole), accounts)


# --- what is merged --------------------------------------------------------------------------


def _runs(sums: Sequence[Summed]) -> list[list[int]]:
    """Lanes in order of their ids, those together whose ids overlap; none without nodes."""
    found: list[list[int]] = []
    reached = ""
    for first, last, number in sorted(
        (one.first, one.last, number)
        for number, one in enumerate(sums)
        if one.first is not None and one.last is not None
    ):
        if found and first <= reached:
            found[-1].append(number)
        else:
            found.append([number])
        reached = max(reached, last)
    return found


def _require_once(store: Store, runs: Iterable[Sequence[int]]) -> None:
    """No node in two lanes. Raises Refused: DUPLICATE_ID."""
    for run in runs:
        if len(run) > 1:
            ids = sorted(chain(*(store.get(f"weighed-{number}")[0] for number in run)))
            for before, node_id in pairwise(ids):
                if before == node_id:
                    raise Refused(MoneyReason.DUPLICATE_ID, node_id=node_id)
