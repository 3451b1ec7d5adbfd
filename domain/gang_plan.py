"""Where the members of a gang go: all of them, or nowhere.

    members placed == 0 or min_members <= members placed <= members wished for

Members are placed one after the other, each on the best node as the earlier ones have left the
fleet, by the same rule as a single lease: on a node first what it still has room for. Nothing is
reserved here. `MatchDecided` of each member tells the candidates it was chosen from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from domain.matching import CANDIDATES_MAX, Match, Need, OfferedNode, choose, fit, less
from domain.money import PPM


def place(
    need: Need, nodes: Iterable[OfferedNode], *, members: int, min_members: int
) -> tuple[Match, ...]:
    """A match for each member, as many as there is room for; none when that is too few.

    `nodes` come best first, as the fleet gives them, with every free device of theirs.
    """
    left = [node for node in nodes if fit(need, node) is not None]
    found: list[Match] = []
    while left and len(found) < members:
        # Later ones cannot be better than the first ones: only these are worth comparing.
        chosen = choose(need, left[:CANDIDATES_MAX])
        assert chosen is not None, left[0]
        found.append(replace(chosen, considered=len(left)))
        left = _without(need, left, chosen)
    return tuple(found) if len(found) >= min_members else ()


def _without(need: Need, nodes: Sequence[OfferedNode], taken: Match) -> list[OfferedNode]:
    """The nodes as this member leaves them; one that has no room for another is gone.

    A device is on offer as often as its node has offers, so every one of them is looked at. Two
    partitions of one device are placed by the device's own table, so a member takes all of it.
    """
    share = (PPM, PPM) if need.mode == "mig" else (need.share_ppm, need.mem_ppm)
    held = (*share, need.mode)
    shares = dict.fromkeys(taken.device_ids, held)
    left = []
    for node in nodes:
        after = less(node, shares) if node.node_id == taken.node_id else node
        if after is node or fit(need, after) is not None:
            left.append(after)
    return left
