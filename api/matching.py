"""The best node for a lease as the fleet stands now; the decision checks it again."""

from __future__ import annotations

from dataclasses import dataclass

from api.lease_desk import Round
from api.service import Service
from domain.funding import sources_of
from domain.job import JobSubmitted, SubmitJob
from domain.lease import MIN_RUNWAY_US, ReserveLease
from domain.matching import RULE, Need, OfferedNode, choose, less
from domain.offer import SETTLEMENTS
from domain.refusal import Reason, Refused
from domain.stream import World
from projections import fleet
from projections.fleet import FLEET

CANDIDATES_MAX = 20
DEVICES_OF_NODE_MAX = 64
MATCH_AGAIN = frozenset(
    {
        Reason.DEVICE_TAKEN, Reason.DEVICE_UNKNOWN, Reason.OFFER_WITHDRAWN, Reason.OFFER_MISMATCH,
        Reason.NODE_STATE,
        Reason.NODE_IN_MAINTENANCE,
    }
)  # fmt: skip
"""What was matched is gone: somebody else was faster. Look again."""


def match(
    service: Service,
    account_id: str,
    lease_id: str,
    spec: SubmitJob | JobSubmitted,
    term_us: int | None,
    settlement: str | None,
    now_us: int,
    here: Round | None = None,
) -> ReserveLease:
    """The command that reserves the best node for this account, on top of what a round has given
    away. Raises Refused: NO_MATCH.
    """
    taken = {} if here is None else here.taken
    world = service.ledger.world() if here is None else here.world
    need = _need(world, account_id, spec, settlement, now_us)
    until_us = now_us + (term_us or MIN_RUNWAY_US)
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        found = fleet.candidates(
            connection, need, now_us, until_us=until_us, limit=CANDIDATES_MAX + len(taken),
            pool_id=_pool(spec),
        )  # fmt: skip
    chosen = choose(need, (less(node, taken) for node in found.nodes))
    if chosen is None:
        raise Refused(
            Reason.NO_MATCH, gpu_count=need.gpu_count, share_ppm=need.share_ppm,
            models=", ".join(need.models) or "any", price_max=need.price_max,
        )  # fmt: skip
    if here is not None:
        here.give(chosen.device_ids, need.share_ppm, need.mem_ppm)
    return ReserveLease(
        lease_id=lease_id, rule=RULE, fleet_position=found.position,
        candidates=chosen.candidates, considered=found.considered, node_id=chosen.node_id,
        offer_id=chosen.offer_id, device_ids=chosen.device_ids, at_us=now_us,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Places:
    """Where members of a gang could go: nodes that fit one, best first, with all their devices."""

    need: Need
    nodes: tuple[OfferedNode, ...]
    rule: str
    position: int


def places(
    service: Service,
    account_id: str,
    spec: SubmitJob | JobSubmitted,
    term_us: int | None,
    settlement: str | None,
    now_us: int,
    nodes_max: int,
) -> Places:
    """The best `nodes_max` nodes for leases of this job, and enough more to compare them with."""
    need = _need(service.ledger.world(), account_id, spec, settlement, now_us)
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        found = fleet.candidates(
            connection, need, now_us, until_us=now_us + (term_us or MIN_RUNWAY_US),
            limit=nodes_max + CANDIDATES_MAX, devices_max=DEVICES_OF_NODE_MAX, pool_id=_pool(spec),
        )  # fmt: skip
    return Places(need, found.nodes, RULE, found.position)


def _pool(spec: SubmitJob | JobSubmitted) -> str | None:
    return None if spec.constraints is None else spec.constraints.pool_id


def _need(
    world: World,
    account_id: str,
    spec: SubmitJob | JobSubmitted,
    settlement: str | None,
    now_us: int,
) -> Need:
    return Need(
        gpu_count=spec.gpu_count, share_ppm=spec.share_ppm, mem_ppm=spec.mem_ppm,
        models=spec.models, price_max=spec.max_price_per_gpu_hour.units, account_id=account_id,
        settlements=(
            _payable(world, account_id, now_us) if settlement is None else (settlement,)
        ),
        mode=None if spec.constraints is None else spec.constraints.mode,
        mig_profile=None if spec.constraints is None else spec.constraints.mig_profile,
    )  # fmt: skip


def _payable(world: World, account_id: str, now_us: int) -> tuple[str, ...]:
    """How the account can pay now; with no credits at all, any way, to be told what is missing."""
    payable = tuple(way for way in SETTLEMENTS if sources_of(world, account_id, way, now_us))
    return payable or SETTLEMENTS
