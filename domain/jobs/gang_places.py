"""Where the members of a gang go: all of them, or nowhere.

    members placed == 0 or min_members <= members placed <= members wished for

    no two members on nodes of `parted`: of one region, and known not to reach each other

Members are placed one after the other, each on the best node as the earlier ones have left the
fleet, by the same rule as a single lease: on a node first what it still has room for. Nothing is
reserved here. `MatchDecided` of each member tells the candidates it was chosen from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from domain.frozen import replace
from domain.lease.choice import Candidate
from domain.market.matching import (
    CANDIDATES_MAX,
    Match,
    Need,
    OfferedNode,
    Taken,
    candidate_of,
    fit,
    less,
    order_of,
    rule_of,
)
from domain.money import PPM

NO_NODES: Mapping[str, Collection[str]] = {}


@dataclass(frozen=True, slots=True)
class _Room:
    """A node with room for one more member: its place in the ranking, and what it would give."""

    key: tuple[object, ...]
    candidate: Candidate
    device_ids: tuple[str, ...]
    node: OfferedNode


def place(
    need: Need,
    nodes: Iterable[OfferedNode],
    *,
    members: int,
    min_members: int,
    parted: Mapping[str, Collection[str]] = NO_NODES,
    placed_on: Collection[str] = (),
) -> tuple[Match, ...]:
    """A match for each member, as many as there is room for; none when that is too few.

    `nodes` come with every free device of theirs, in any order. A node is looked at again only when
    a member was placed on it; the ranking is that of looking at all of them each time. `parted`: of
    a node, those of its region that it cannot serve one gang with. `placed_on`: nodes of members
    that the gang has already.
    """
    out = {one for node_id in placed_on for one in parted.get(node_id, ())}
    left = sorted((one for one in _rooms(need, nodes) if one.node.node_id not in out), key=_key)
    found: list[Match] = []
    while left and len(found) < members:
        best = left[0]
        node_id, candidates = best.node.node_id, [one.candidate for one in left[:CANDIDATES_MAX]]
        found.append(
            Match(node_id, best.node.offer_id, best.device_ids, tuple(candidates), len(left))
        )
        out = set(parted.get(node_id, ()))
        left = [one for one in left if one.node.node_id not in out]
        taken = _taken(need, best.device_ids)
        asked = need.constraints
        room = {node_id: (asked.storage_gib or 0, asked.network_mbps or 0)}
        # A device is on offer as often as its node has offers: every one of them has less now. So
        # has every node of a cloud region, whose quota the member takes a part of.
        again = [
            _after(need, best.node, less(one.node, taken, room))
            for one in left
            if _is_less(best.node, one.node)
        ]
        others = [one for one in left if not _is_less(best.node, one.node)]
        left = sorted([*others, *_rooms(need, again)], key=_key)  # almost sorted already
    return tuple(found) if len(found) >= min_members else ()


def _is_less(placed: OfferedNode, node: OfferedNode) -> bool:
    """Whether a member that was placed leaves less of this node."""
    shares_quota = placed.cloud_jobs is not None and node.region_id == placed.region_id
    return shares_quota or node.node_id == placed.node_id


def _after(need: Need, placed: OfferedNode, node: OfferedNode) -> OfferedNode:
    """The node with what is left of its cloud's quota. Of nodes with another model this is a guess:
    the reservation asks the quota itself.
    """
    if placed.cloud_jobs is None or node.cloud_jobs is None:
        return node
    return replace(node, cloud_jobs=max(0, node.cloud_jobs - need.gpu_count))


def _rooms(need: Need, nodes: Iterable[OfferedNode]) -> Iterable[_Room]:
    rule = rule_of(need)
    for node in nodes:
        fitted = fit(need, node)
        if fitted is not None:
            candidate = candidate_of(need, node, fitted)
            yield _Room(order_of(rule, candidate), candidate, fitted[1], node)


def _key(room: _Room) -> tuple[object, ...]:
    return room.key


def _taken(need: Need, device_ids: Iterable[str]) -> Taken:
    """Two partitions of one device are placed by the device's own table: a member takes all."""
    share = (PPM, PPM) if need.mode == "mig" else (need.share_ppm, need.mem_ppm)
    return dict.fromkeys(device_ids, (*share, need.mode))
