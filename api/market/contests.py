"""How often a node was a candidate for a lease, got it, or lost it, and by what.

won + lost == matches;   sum(times of reasons) == lost
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Response

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Count, MomentQuery, NodeId, NodeInPath, Position, Told_at
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.nodes import visible_node
from domain.duration import DAY_US
from domain.fleet.reasons import FleetReason
from domain.market.matching import lost_by
from ledger.log.market import facts_at
from projections.fleet.fleet import FLEET
from projections.market import contests
from projections.market.contests import CONTESTS

resource = Resource("contests")

MATCHES_MAX = 500
WINDOW_US = 7 * DAY_US
LostBy = Literal[
    "own",
    "workload",
    "price",
    "score",
    "stranded",
    "served",
    "node",
    "offer",
    "arrival",
    "renter",
    "paused_bid",
]


class LostMatchesAnswer(AnswerModel):
    """Lost matches with one reason: what told the winner from this node first, in the order of the
    rule. `winning_price_at_most`: of a reason of price, the dearest price that won.
    """

    reason: LostBy
    times: Count
    winning_price_at_most: Money | None = None


class NodeMatchesAnswer(AnswerModel):
    """The newest matches since a moment in which the node was among the recorded candidates (the
    first twenty of a match); `has_more`: there are earlier ones since then, which are not counted.
    """

    node_id: NodeId
    since: Told_at
    matches: Count
    won: Count
    lost: Count
    reasons: list[LostMatchesAnswer]
    has_more: bool
    position: Position


@resource.get(
    "/v1/nodes/{node_id}/matches",
    with_scope("provider", "operator", "audit:read"),
    NodeMatchesAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def read_node_matches(node_id: NodeInPath, call: Caller, since: MomentQuery = None) -> Response:
    """Returns how often a node was a candidate for a lease, and by what it lost the others; of the
    last week, or `since` a moment.
    """
    from_us = max(0, call.now_us - WINDOW_US) if since is None else since
    with call.read(FLEET, CONTESTS) as view:
        visible_node(call, view, node_id)
        rows = contests.read_contests(
            view.connection, node_id, from_us=from_us, limit=MATCHES_MAX + 1
        )
        has_more, rows = len(rows) > MATCHES_MAX, rows[:MATCHES_MAX]
        lost = [row.position for row in rows if not row.is_won]
        times: dict[LostBy, int] = {}
        dearest = 0
        for fact in facts_at(view.connection, lost):
            reason, winner = lost_by(fact, node_id)
            named: Any = reason
            times[named] = times.get(named, 0) + 1
            if reason == "price":
                dearest = max(dearest, winner.price_per_gpu_hour)
        told = NodeMatchesAnswer(
            node_id=node_id,
            since=moment(from_us),
            matches=len(rows),
            won=len(rows) - len(lost),
            lost=len(lost),
            reasons=[
                LostMatchesAnswer(
                    reason=reason,
                    times=count,
                    winning_price_at_most=credits_(dearest) if reason == "price" else None,
                )
                for reason, count in sorted(times.items(), key=lambda one: (-one[1], one[0]))
            ],
            has_more=has_more,
            position=view.position,
        )
        assert sum(one.times for one in told.reasons) == told.lost, told
        return call.answer(view, told)
