"""Requests that found no node: recorded right after their refusal, and listed.

What is recorded, and how often, the decision says (`domain/market/unmatched.py`). The fleet is
asked once more for it; where it has a place by then, nothing is recorded. Whatever goes wrong here,
the answer to the request stays what it was.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from fastapi import Response

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import REPLAYED, Call, Caller
from api.door.errors import Problem
from api.door.models import AccountId, AnswerModel, Count, Position, Told_at, page_of
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit, NewestFirst
from api.market.explanations import MatchDimensionAnswer, MatchRelaxationAnswer
from api.market.matching import look, wish_of
from api.process.lease_desk import Round
from domain.jobs.job import JobSubmitted, SubmitJob
from domain.lease.lease import RequestLease
from domain.market.reasons import MarketReason
from domain.market.unmatched import RecordUnmatched, is_kept, need_sha256
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from projections.market import unmatched
from projections.market.unmatched import UNMATCHED

logger = logging.getLogger(__name__)

resource = Resource("unmatched")

READ = with_scope("renter", "client", "operator", "audit:read")
UNPLACED = frozenset(
    one.value
    for one in (MarketReason.NO_MATCH, MarketReason.MATCH_IMPOSSIBLE, PoolsReason.BASE_FULL)
)
Asked = Callable[[], tuple[RequestLease, SubmitJob | JobSubmitted]]
"""The request of a lease and the job that it is for, as the refused call made them."""


def keep_unmatched(call: Call, problem: Problem, asked: Asked, members: int = 1) -> None:
    """Record what a refusal was decided from, where it is one for the want of a node."""
    if problem.code not in UNPLACED or REPLAYED in problem.headers:
        return
    service, here = call.service, Round.of_one(call.service.ledger.world(), call.now_us, members)
    try:
        wish = wish_of(*asked(), here)
        account_id, need = wish.asked.account_id, need_sha256(wish.asked, members)
        times = service.misses.count(account_id, need)
        if not is_kept(here.world, account_id, need, call.now_us):
            return
        found = look(service, wish, here)
        if found.match is not None and members == 1 and wish.asked.pricing is None:
            return
        command = RecordUnmatched(
            asked=wish.asked,
            members=members,
            code=problem.code,
            fleet_position=found.position,
            nodes=found.explanation.nodes,
            narrowed=found.explanation.dimensions,
            eased=next(iter(found.explanation.relaxations), None),
            times=times,
            at_us=call.now_us,
        )
        service.ledger.handle(command, key=None, now_us=call.now_us)
    except Refused:
        return  # the request itself was told why
    except Exception:
        logger.exception("why a request found no node was not recorded")  # its answer stays
        return
    service.misses.recorded(account_id, need)


class UnmatchedRequestAnswer(AnswerModel):
    """What was asked, and what each demand left of the nodes. `eased`: the nearest single demand
    to ease. `times`: refusals for the same since it was last recorded.
    """

    account_id: AccountId
    client_id: str
    project_id: str
    code: str
    need_sha256: str
    members: Count
    gpu_count: Count
    models: list[str]
    max_price_per_gpu_hour: Money
    pricing: str | None = None
    fleet_position: Position
    nodes: Count
    dimensions: list[MatchDimensionAnswer]
    eased: MatchRelaxationAnswer | None = None
    times: Count
    at: Told_at
    recorded_position: Position


@resource.get(
    "/v1/unmatched-requests", READ, page_of(UnmatchedRequestAnswer), problems=["cursor_invalid"]
)
def list_unmatched_requests(
    call: Caller, order: NewestFirst, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists requests that found no node, the newest first: your own; all of them for operators and
    auditors.
    """
    place = call.place(cursor, [0], order)
    with call.read(UNMATCHED) as view:
        rows = unmatched.read_unmatched(
            view.connection,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _told)


def _told(row: unmatched.UnmatchedRequest) -> UnmatchedRequestAnswer:
    told = json.loads(row.told)
    return UnmatchedRequestAnswer(
        account_id=row.account_id,
        client_id=told["client_id"],
        project_id=told["project_id"],
        code=row.code,
        need_sha256=row.need_sha256,
        members=told["members"],
        gpu_count=told["gpu_count"],
        models=told["models"],
        max_price_per_gpu_hour=credits_(int(told["max_price_per_gpu_hour"]["units"])),
        pricing=told.get("pricing"),
        fleet_position=told["fleet_position"],
        nodes=told["nodes"],
        dimensions=[MatchDimensionAnswer(**one) for one in told["narrowed"]],
        eased=None if told.get("eased") is None else MatchRelaxationAnswer(**told["eased"]),
        times=row.times,
        at=moment(row.at_us),
        recorded_position=row.position,
    )
