"""The second invariant: what a coalition takes of the rewards of others, at the end of each epoch.

    A = what the epoch pays
    B = what it pays if one honest node, of one account, has the coalition's uses and attested time
    D = the same, but of the uses only those that outsiders paid for

    A(i) >= B(i)                                      for every outsider's node i, and for each pool
    sum of max(0, D(i) - A(i))  <=  pool x w / W + n        w = weight of what the coalition paid to
                                                            itself, W = all weight, n = nodes
    (D(i) - A(i)) x credits(i) / tokens(i)  <=  m x w       where weights are credits burned: at the
                                                            price at which the network burned for i
    w x burned_per_gpu_hour  <=  what it burned x hour      where weights are time

So hiding behind many accounts and nodes takes nothing that an honest competitor with the same use
would not take, and each credit's worth that an outsider loses to a coalition has cost it at least
1 / m credits of its own, which were burned. With D for B alone ("the same outside revenue") nothing
of the fall would be left, and that does not hold: who burns its own money has its weight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from domain.epochs.settlement import (
    Cut,
    NodeCut,
    NodeReward,
    Settlement,
    Use,
    compute_weight,
    settle,
)
from domain.gpu_time import GPU_HOUR_US
from domain.money import PPM

COMPETITOR = "competitor"


class Fell(AssertionError):
    """An outsider's reward fell by more than it may."""


def replaced(cut: Cut, members: Collection[str], uses: Iterable[Use]) -> Settlement:
    """What the epoch pays with one honest node of one account in the place of the coalition's."""
    ours = [one for one in cut.nodes if one.account_id in members]
    others = tuple(one for one in cut.nodes if one.account_id not in members)
    competitor = NodeCut(
        node_id=COMPETITOR,
        account_id=COMPETITOR,
        uses=_merged(uses),
        burned_tokens=sum(one.burned_tokens for one in ours),
        attested=tuple(device for one in ours for device in one.attested),
        bought_tokens=sum(one.bought_tokens for one in ours),
    )
    return settle(replace(cut, nodes=(*others, competitor)))


def _merged(uses: Iterable[Use]) -> tuple[Use, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for use in uses:
        sums[use.source][0] += use.burned
        sums[use.source][1] += use.gpu_us
    return tuple(Use(source, burned, gpu_us) for source, (burned, gpu_us) in sorted(sums.items()))


def require_fair(
    paid: Settlement, members: Collection[str], outside: Mapping[str, tuple[Use, ...]]
) -> None:
    """The formulas of this module. `outside`: of the coalition's nodes, what outsiders paid for.

    Raises Fell.
    """
    cut = paid.cut
    ours = [one for one in cut.nodes if one.account_id in members]
    same = _by_node(replaced(cut, members, [use for one in ours for use in one.uses]))
    rewards = {at: one for at, one in _by_node(paid).items() if one.account_id not in members}
    for at, one in rewards.items():
        if one.compute < same[at].compute or one.availability < same[at].availability:
            raise Fell(one, same[at])
    from_others = [use for one in ours for use in _at_most(outside[one.node_id], one.uses)]
    fair = replaced(cut, members, from_others)
    own = sum(one.compute_weight for one in paid.nodes if one.account_id in members)
    own -= next(one.compute_weight for one in fair.nodes if one.node_id == COMPETITOR)
    own = max(0, own)  # dear and cheap time of one node may weigh more than of two
    lost = {at: max(0, _by_node(fair)[at].compute - one.compute) for at, one in rewards.items()}
    pool = paid.compute_pool + cut.openings.compute_carry
    if sum(lost.values()) * paid.compute_weight > pool * own + len(cut.nodes) * paid.compute_weight:
        raise Fell(lost, own, paid.compute_weight, pool)
    _require_time_paid_for(ours, own, cut)
    if cut.policy.compute_base == "burned_value":
        for node in cut.nodes:
            _require_paid_for(node, lost.get(node.node_id, 0), own, cut)


def _require_time_paid_for(ours: Iterable[NodeCut], own: int, cut: Cut) -> None:
    """What a coalition weighs by time it has burned for, at the price that the terms say."""
    least = cut.terms.burned_per_gpu_hour
    if cut.policy.compute_base == "burned_value" or least is None:
        return
    burned = sum(use.burned for node in ours for use in node.uses)
    if own * least > burned * GPU_HOUR_US:
        raise Fell(own, least, burned)


def _require_paid_for(node: NodeCut, lost: int, own: int, cut: Cut) -> None:
    """What an outsider loses has cost the coalition its m-th part; a few units are free."""
    credits = compute_weight(node, cut.terms, "burned_value")
    multiple = cut.terms.cap_multiple_ppm
    if not lost or multiple is None:
        return
    slack = len(cut.nodes) + 1
    if (lost - slack) * credits * PPM > multiple * own * node.burned_tokens + slack * credits * PPM:
        raise Fell(node, lost, own)


def _at_most(outside: tuple[Use, ...], uses: tuple[Use, ...]) -> list[Use]:
    """What outsiders paid for, as far as it still counts."""
    counted = {use.source: use for use in uses}
    none = Use("", 0, 0)
    return [
        Use(
            use.source,
            min(use.burned, counted.get(use.source, none).burned),
            min(use.gpu_us, counted.get(use.source, none).gpu_us),
        )
        for use in outside
    ]


def _by_node(settled: Settlement) -> dict[str, NodeReward]:
    return {one.node_id: one for one in settled.nodes}
