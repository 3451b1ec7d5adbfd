"""What a renter is told of an offer's machine before buying: where it stands, what that is worth,
who says what of it, how its leases ended, and when it will be worked on.
"""

from __future__ import annotations

from typing import Any, Literal

from api.door.models import AccountId, AnswerModel, Count, Told_at
from api.door.moments import moment
from api.fleet.constraints import CapacityClass
from api.market.performance import Machine, NodePerformanceAnswer, performance_of
from api.regions.reachability import NodeWayAnswer, way_told
from api.trust.reputation import RegionSettingAnswer, setting_told
from domain.duration import DAY_US
from projections.fleet import fleet, regions, supply
from projections.runner import Connection
from projections.trust import reputation, scores


class AttributeInForceAnswer(AnswerModel):
    """A statement that counts now; `/v1/attributes` has its signature."""

    name: str
    value: str
    signer_account_id: AccountId


class OfferSupplyAnswer(AnswerModel):
    """`expect`: what leases of other accounts got in this setting so far, absent where nothing was
    measured. `reputation_ppm` of the node, a start value while `provisional`. `performance`: what
    is known of its speed, each value with its source. `statements`: what counts now, the last 10 of
    each signer, 50 at most of the node and 50 of its provider. `latency`: what its reporter
    measured to its region's control and its ingress. `security_tier`: the lower of the region's and
    the offer's.
    """

    setting: Literal["edge", "datacenter"]
    expect: RegionSettingAnswer
    capacity_class: CapacityClass
    security_tier: Count
    refused_workloads: list[str]
    kinds: list[str]
    reputation_ppm: Count
    provisional: bool
    statements: list[AttributeInForceAnswer]
    next_maintenance_from: Told_at | None = None
    next_maintenance_until: Told_at | None = None
    performance: list[NodePerformanceAnswer] | None = None
    latency: list[NodeWayAnswer] | None = None


def supply_of(
    connection: Connection, offers: list[fleet.Offer], now_us: int
) -> dict[str, OfferSupplyAnswer]:
    """By offer. One query for each sort of thing, whatever the number of offers."""
    nodes = sorted({offer.node_id for offer in offers})
    policies = supply.read_policies(connection, sorted({offer.region_id for offer in offers}))
    settings = {row.setting: row for row in reputation.read_settings(connection)}
    named: set[Any] = {policy.setting for policy in policies.values()}
    expect = {setting: setting_told(setting, settings.get(setting)) for setting in named}
    scored = scores.read_scores(connection, "node", nodes, day=now_us // DAY_US)
    ways = regions.read_ways(connection, nodes)
    windows = supply.read_next_maintenance(connection, nodes, now_us)
    subjects = [*nodes, *sorted({offer.provider_id for offer in offers})]
    said = supply.read_attributes_in_force(connection, subjects, now_us)
    machines = {
        one.offer_id: Machine(one.node_id, one.gpu_classes, one.terms or {}) for one in offers
    }
    performance = performance_of(connection, machines, said, now_us)
    told: dict[str, OfferSupplyAnswer] = {}
    for offer in offers:
        policy, window = policies[offer.region_id], windows.get(offer.node_id)
        score = scored[offer.node_id]
        setting: Any = policy.setting
        capacity: Any = offer.capacity_class
        told[offer.offer_id] = OfferSupplyAnswer(
            setting=setting,
            expect=expect[setting],
            capacity_class=capacity,
            security_tier=_tier(policy.security_tier, offer.terms or {}),
            refused_workloads=policy.refused_workloads,
            kinds=offer.kinds,
            reputation_ppm=score.score_ppm,
            provisional=score.is_provisional,
            statements=[
                AttributeInForceAnswer(
                    name=one.name, value=one.value, signer_account_id=one.signer_account_id
                )
                for subject in (offer.node_id, offer.provider_id)
                for one in said.get(subject, ())
            ],
            next_maintenance_from=None if window is None else moment(window.from_us),
            next_maintenance_until=None if window is None else moment(window.until_us),
            performance=performance[offer.offer_id],
            latency=[way_told(way) for way in ways.get(offer.node_id, [])],
        )
    return told


def _tier(of_region: int, terms: dict[str, Any]) -> int:
    """As `domain.market.dimensions.tier_of` counts it."""
    stated = terms.get("security_tier")
    return of_region if stated is None else min(of_region, int(stated))
