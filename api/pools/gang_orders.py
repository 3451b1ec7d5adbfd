"""What reserves a gang: the commands of one append, for as many members as there is room for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from api.market.matching import missing_of, places, short_of, wish_of
from api.market.next_free import next_free_us
from api.market.placing import within_quotas
from api.process.lease_desk import Round
from api.process.service import Service
from domain.frozen import replace
from domain.jobs.gang import GangRequested, GangState, GrowGang, RequestGang, ReserveGang
from domain.jobs.gang_places import place
from domain.jobs.job import JobSubmitted, SubmitJob, job_stream
from domain.lease.lease import RequestLease, lease_of
from domain.leasing.taking import reserving
from domain.market.reasons import MarketReason
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.regions.neighbours import FRESH_US
from domain.stream import derive_id
from projections.fleet import regions
from projections.fleet.fleet import FLEET
from projections.market.match import ROOM

_BASE_IS_FULL = ("offer", "cloud_quota", ROOM)
"""What is missing of one's own nodes where they, or the quota of their cloud, are full."""
Asked = RequestGang | GangRequested


def reservation(
    service: Service,
    asked: Asked,
    now_us: int,
    spec: SubmitJob | JobSubmitted | None = None,
    *,
    is_answered: bool = False,
) -> list[Any]:
    """Reserve every member, at least as many as it needs.

    Raises Refused: NO_MATCH, MATCH_IMPOSSIBLE, BASE_FULL.

    `spec`: the job, where it is not recorded yet. `is_answered`: a caller waits for the answer.
    """
    leases, commands = _members(
        service,
        asked,
        spec or _job(service, asked.job_id),
        now_us,
        0,
        asked.members,
        asked.min_members,
        is_answered=is_answered,
    )
    return [*commands, ReserveGang(gang_id=asked.gang_id, lease_ids=leases, at_us=now_us)]


def growth(service: Service, gang: GangState, now_us: int) -> list[Any]:
    """Reserve more of the members an open gang wished for. Raises Refused: NO_MATCH."""
    asked = gang.requested
    assert asked is not None
    missing = asked.members - len(gang.lease_ids)
    if gang.status != "open" or missing < 1:
        return []
    world = service.ledger.world()
    reserved = [lease_of(world, one).reserved for one in gang.lease_ids]
    leases, commands = _members(
        service,
        asked,
        _job(service, asked.job_id),
        now_us,
        len(gang.lease_ids),
        missing,
        1,
        placed_on=[one.node_id for one in reserved if one is not None],
    )
    return [*commands, GrowGang(gang_id=asked.gang_id, lease_ids=leases, at_us=now_us)]


def _members(
    service: Service,
    asked: Asked,
    spec: SubmitJob | JobSubmitted,
    now_us: int,
    first: int,
    members: int,
    min_members: int,
    *,
    is_answered: bool = False,
    placed_on: Sequence[str] = (),
) -> tuple[tuple[str, ...], list[Any]]:
    one = within_quotas(
        service.ledger.world(), member_of(asked, now_us, first), spec, leases=members
    )
    here = Round.of_one(service.ledger.world(), now_us, members)
    found = places(service, wish_of(one, spec, here), here)
    matches = place(
        found.need,
        found.nodes,
        members=members,
        min_members=min_members,
        parted=_parted(service, now_us),
        placed_on=placed_on,
    )
    if not matches:
        short = short_of(service, found.need, min_members)
        if found.need.own_only and short.dimension in _BASE_IS_FULL:
            raise Refused(PoolsReason.BASE_FULL, project_id=spec.project_id, gang_id=asked.gang_id)
        is_told = is_answered and short.is_room
        raise Refused(
            MarketReason.MATCH_IMPOSSIBLE if short.is_lasting else MarketReason.NO_MATCH,
            gang_id=asked.gang_id,
            members=members,
            min_members=min_members,
            gpus_per_member=spec.gpu_count,
            dimension=short.dimension,
            required=short.required,
            at_most=short.at_most,
            missing=missing_of(short),
            free_us=next_free_us(service, found.need, min_members) if is_told else None,
        )
    leases, commands = [], list[Any]()
    for number, matched in enumerate(matches, first):
        request = replace(member_of(asked, now_us, number), overflow=one.overflow)
        leases.append(request.lease_id)
        commands += [request, reserving(request.lease_id, found.place(matched), now_us)]
    return tuple(leases), commands


def _parted(service: Service, now_us: int) -> Mapping[str, Collection[str]]:
    """Nodes of one region that are known not to reach each other serve no gang together (C-3)."""
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        return regions.read_parted(connection, now_us - FRESH_US)


def member_of(asked: Asked, now_us: int, number: int) -> RequestLease:
    """The request of one member."""
    return RequestLease(
        lease_id=derive_id("lease", asked.account_id, asked.gang_id, number),
        job_id=asked.job_id,
        account_id=asked.account_id,
        term_us=asked.term_us,
        funds=asked.funds,
        at_us=now_us,
        pay_with=asked.pay_with,
        key_id=asked.key_id,
        gang_id=asked.gang_id,
        start_timeout_us=asked.timeout_us,
    )


def _job(service: Service, job_id: str) -> JobSubmitted:
    job = service.ledger.market.state_of(job_stream(job_id))
    assert job.submitted is not None
    return job.submitted
