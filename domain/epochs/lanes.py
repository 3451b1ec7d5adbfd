"""A settlement lane by lane: three maps, and what is added up between them.

    settle_lanes(lanes of a cut) == settle(the cut), to the byte of its file

    map over lanes   its nodes -> weights and caps, and their rows of the epoch file; sums come back
    map over lanes   given the weights of all: shares under the caps of nodes; sums by account
    map over lanes   nodes of owners above their cap, where a policy has one
    merge            owners' caps, pools, rewards, the rows of the file in order of ids

A lane is any part of the nodes, each node in one of them. What a step leaves for the next lies in a
`Store`: in memory, or in a folder that every machine of a cluster sees. `apply` is `map`, or what
`ledger/fan_out` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

from domain.epochs.epoch_file import file_of, node_text
from domain.epochs.settlement import (
    CutHead,
    NodeCut,
    Outcome,
    Owned,
    Paid,
    Pools,
    Weighed,
    Weights,
    cut_down,
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


@dataclass(frozen=True, slots=True)
class SettledLanes:
    """What an epoch pays, and the bytes of its file."""

    outcome: Outcome
    file: bytes


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


def settle_lanes(
    cut: CutHead,
    lanes: Sequence[Lane],
    nodes_of: Callable[[Lane], Sequence[NodeCut]],
    *,
    apply: Map = map,
    store: Store | None = None,
) -> SettledLanes:
    """Settle the nodes that `nodes_of` gives of each lane, in any order.

    Where `apply` leaves this process, `nodes_of`, lanes and store travel by pickle. Raises Refused:
    DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    store = Memory() if store is None else store
    numbered = list(enumerate(lanes))
    sums = list(apply(partial(_weigh, cut, nodes_of, store), numbered))
    whole, pools = Weights(*map(sum, zip(NOTHING, *sums, strict=True))), pools_at(cut)
    numbers = range(len(lanes))
    assert len(sums) == len(lanes), "each lane is weighed"
    _require_once(store, numbers)
    paid = [one.paid() for one in apply(partial(_share, pools, whole, store), numbers)]
    if cut.terms.owner_cap is not None:
        over = owners_over(paid, cut.terms.owner_cap)
        found = apply(partial(_owned, pools, whole, store, frozenset(over)), numbers)
        cuts = owner_cuts([node for nodes in found for node in nodes], over)
        cut_down(paid, [one._replace(place=0) for one in cuts])  # lanes are known by their sums
    settled = outcome(cut, pools, whole, paid)
    return SettledLanes(settled, file_of(settled, _rows(store, numbers)))


# --- what is done for each lane --------------------------------------------------------------


def _weigh(
    cut: CutHead,
    nodes_of: Callable[[Lane], Sequence[NodeCut]],
    store: Store,
    numbered: tuple[int, Lane],
) -> Weights:
    number, lane = numbered
    nodes = ordered(nodes_of(lane))
    weighed = weigh(nodes, cut.policy)
    store.put(f"weighed-{number}", weighed)
    store.put(f"rows-{number}", [weighed.node_ids, [node_text(node) for node in nodes]])
    return weighed.sums()


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


def _require_once(store: Store, numbers: Iterable[int]) -> None:
    """No node in two lanes, or twice in one. Raises Refused: DUPLICATE_ID."""
    found = sorted(node_id for number in numbers for node_id in store.get(f"rows-{number}")[0])
    for before, node_id in pairwise(found):
        if before == node_id:
            raise Refused(MoneyReason.DUPLICATE_ID, node_id=node_id)


def _rows(store: Store, numbers: Iterable[int]) -> Iterator[str]:
    """The rows of all lanes in order of ids."""
    found: list[tuple[str, str]] = []
    for number in numbers:
        found += zip(*store.get(f"rows-{number}"), strict=True)
    found.sort()
    return (text for _, text in found)
