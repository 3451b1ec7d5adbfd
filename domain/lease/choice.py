"""Why a lease got its place: what a match looked at, kept so that anybody can choose again.

recomputed choice == recorded choice        `domain/market/matching.py`, `recompute`
"""

from __future__ import annotations

from domain.hardware.constraints import Weights
from domain.money import Big
from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node the matcher looked at: enough to recompute the choice."""

    node_id: str
    offer_id: str
    price_per_gpu_hour: Big
    stranded_ppm: int  # capacity that would be left unsellable on the chosen devices
    served_gpu_us: Big  # this epoch: ties go to who served least
    is_own: bool | None = None  # the renter's own node
    is_down_ranked: bool | None = None  # its region ranks this class of workload last
    score_ppm: int | None = None
    factors_ppm: tuple[int, ...] | None = None  # in the order of `Weights`
    paused_bid: Big | None = None  # the lowest standing bid that would make room there


@dataclass(frozen=True, slots=True)
class Narrowed:
    """One demand of a match: what it left over of the nodes that the demands before it left."""

    dimension: str
    required: str
    best_offered: str | None
    nodes_left: int
    nodes_refused: int


@dataclass(frozen=True, slots=True)
class Choice:
    """What a place was chosen from: the nodes, the rule, and the position that was asked."""

    rule: str  # with its version, "lowest_cost/2"
    fleet_position: int  # position of the fleet projection that was asked
    candidates: tuple[Candidate, ...]  # the first 20, best first
    considered: int
    weights: Weights | None
    narrowed: tuple[Narrowed, ...]  # by each demand, in the order of asking
