"""One look at the fleet for all of a round who ask the same of it.

    best(need) == what `domain.market.matching.choose` finds among all nodes less what the round
    gave away

Renters who ask at once mostly want the same. The fleet is asked once for each different need, for
so many nodes that the best of them are still among them after every call of the round has got its
own; then only nodes that something was given of are looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from domain.lease.choice import Candidate
from domain.market.dimensions import Need, OfferedNode
from domain.market.matching import (
    CANDIDATES_MAX,
    NO_ROOMS,
    Match,
    Rooms,
    Taken,
    candidate_of,
    given,
    has_room,
    less,
    order_of,
    rule_of,
)

if TYPE_CHECKING:  # NumPy would be a tenth of a server's start
    from projections.market.columns import Columns
    from projections.market.match import Answer

Fitted = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Place:
    """A node in the order of the rule; `device_ids` are those it would give."""

    order: tuple[object, ...]
    candidate: Candidate
    device_ids: tuple[str, ...]


@dataclass(slots=True)
class Standing:
    """The best nodes for one need at `position`, in order, as the round has left them."""

    need: Need
    found: Answer
    position: int
    _places: list[_Place] = field(init=False)
    _seen: int = 0  # of what the round gave away, so much is in `_places`

    def __post_init__(self) -> None:
        self._places = [self._place(node, given(self.need, node)) for node in self.found.nodes]
        self._sort()

    def best(self, taken: Taken, given_of: Sequence[str], rooms: Rooms = NO_ROOMS) -> Match | None:
        """The match now. `given_of`: the nodes that the round gave something of, in that order."""
        if self._seen < len(given_of):
            self._look_again(taken, rooms, frozenset(given_of[self._seen :]))
            self._seen = len(given_of)
        if not self._places:
            return None
        first = self._places[0]
        return Match(
            first.candidate.node_id,
            first.candidate.offer_id,
            first.device_ids,
            tuple(place.candidate for place in self._places[:CANDIDATES_MAX]),
            self.found.considered,
        )

    def _look_again(self, taken: Taken, rooms: Rooms, node_ids: frozenset[str]) -> None:
        self._places = [one for one in self._places if one.candidate.node_id not in node_ids]
        for node in self.found.nodes:
            if node.node_id in node_ids:
                left = less(node, taken, rooms)
                fitted = given(self.need, left)
                is_enough = len(fitted[1]) == self.need.gpu_count
                if is_enough and has_room(self.need, left):  # nothing else of it has changed
                    self._places.append(self._place(left, fitted))
        self._sort()

    def _place(self, node: OfferedNode, fitted: Fitted) -> _Place:
        candidate = candidate_of(self.need, node, fitted)
        return _Place(order_of(rule_of(self.need), candidate), candidate, fitted[1])

    def _sort(self) -> None:
        self._places.sort(key=_order)


def _order(place: _Place) -> Any:
    return place.order


@dataclass(slots=True)
class Standings:
    """What a round has found so far, by need. `calls_max`: how many may be given something."""

    calls_max: int
    _by_need: dict[Need, Standing] = field(default_factory=dict)
    _dearest: int | None = None

    def of(self, columns: Columns, position: int, need: Need, fees: Mapping[str, int]) -> Standing:
        from projections.market.match import alike, answer

        if self._dearest is None:
            self._dearest = columns.dearest(fees.values())
        need = alike(columns, need, self._dearest)
        found = self._by_need.get(need)
        if found is None:
            limit = CANDIDATES_MAX + self.calls_max
            found = Standing(need, answer(columns, need, fees, limit=limit), position)
            self._by_need[need] = found
        return found
