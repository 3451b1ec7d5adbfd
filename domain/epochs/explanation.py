"""Why a node earned what it did in an epoch: the formula of the settlement with its numbers in it.

    share == floor(pool x weight / all weights);   fraction lost == pool x weight mod all weights
    paid  == min(share, caps)                                of each pool, before an owner's cap
    availability is two pools: that of tier 2 and above, and that of the terms' tier

Everything comes from the cut and the totals of the seal, so one node is explained without the
others. What is zero says why, in words an owner understands. Source: design economics 18.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NO_TERMS, RewardTerms, bonus_ppm, paid_tier
from domain.epochs.settlement import (
    Attested,
    NodeCut,
    attested_us,
    availability_parts,
    availability_weight,
    compute_cap,
    compute_weight,
    counts,
    idle_cap,
)
from domain.gpu_time import GPU_HOUR_US
from domain.money import PPM, decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the seal says of a pool, in TOKEN units: this epoch's part, and what was carried."""

    pool: int
    carry_before: int
    weight: int

    @property
    def shared(self) -> int:
        return self.pool + self.carry_before


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedUse:
    """What one funding source paid for: `units` of the policy's base, and what each weighs."""

    source: str
    burned: int
    gpu_us: int
    weight_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDevice:
    """`reason` says why its time does not count; None when it does."""

    hardware_class: str
    tier: int
    attested_us: int
    promised_us: int
    rating_ppm: int
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedShare:
    """One pool, from the weight to the reward. `lost` is the numerator of the fraction that the
    floor dropped, over `all_weight`; the pool carries it on.
    """

    pool: int  # with what was carried
    weight: int
    all_weight: int
    share: int
    lost: int
    cap: int | None
    paid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    node_id: str
    account_id: str
    policy_version: int
    compute_base: str
    uses: tuple[ExplainedUse, ...]
    score_ppm: int | None
    bonus_ppm: int
    burned_tokens: int
    compute: ExplainedShare
    devices: tuple[ExplainedDevice, ...]
    availability_tier_2: ExplainedShare  # of the part that tier 2 and above share
    availability: ExplainedShare  # of the rest; its cap is what the part before left of it
    owner_cap: int | None
    reasons: tuple[str, ...]  # why a part is zero, or less than its share

    @property
    def paid(self) -> int:
        return self.compute.paid + self.availability_tier_2.paid + self.availability.paid


def explain(
    node: NodeCut,
    policy: PolicyPublished,
    compute: Totals,
    availability: Totals,
    tier_2_weight: int,
) -> Explanation:
    """The way from a node's use and time to its reward; units as in
    `domain/epochs/settlement.py`. `tier_2_weight`: of all nodes, at tier 2 and above.
    """
    terms = policy.rewards or NO_TERMS
    weight = compute_weight(node, terms, policy.compute_base)
    worked = _share(compute.shared, weight, compute.weight, compute_cap(node, terms))
    low, idle = _idle(node, terms, availability, tier_2_weight)
    weights = {rated.name: rated.ppm for rated in terms.source_weights}
    devices = tuple(_device(device, terms) for device in node.attested)
    return Explanation(
        node_id=node.node_id,
        account_id=node.account_id,
        policy_version=policy.version,
        compute_base=policy.compute_base,
        uses=tuple(
            ExplainedUse(
                source=use.source,
                burned=use.burned,
                gpu_us=use.gpu_us,
                weight_ppm=weights.get(use.source, 0),
            )
            for use in node.uses
        ),
        score_ppm=node.score_ppm,
        bonus_ppm=bonus_ppm(terms, node.score_ppm),
        burned_tokens=node.burned_tokens,
        compute=worked,
        devices=devices,
        availability_tier_2=low,
        availability=idle,
        owner_cap=terms.owner_cap,
        reasons=(
            *_why_no_work(node, policy, weights, worked),
            *_why_less_time(node, policy, weights),
            *_why_not_there(node, terms, devices, low, idle),
        ),
    )


def _idle(
    node: NodeCut, terms: RewardTerms, totals: Totals, tier_2_weight: int
) -> tuple[ExplainedShare, ExplainedShare]:
    """Both parts of the availability pool; the cap is of both together."""
    low, high = availability_parts(totals.pool, totals.carry_before, terms)
    cap = idle_cap(node, terms)
    weight = availability_weight(node, terms, paid_tier(terms))
    first = _share(low, weight, tier_2_weight, cap)
    left = None if cap is None else cap - first.paid
    weight = availability_weight(node, terms, terms.availability_min_tier)
    return first, _share(high, weight, totals.weight, left)


def _share(pool: int, weight: int, all_weight: int, cap: int | None) -> ExplainedShare:
    share, lost = divmod(pool * weight, all_weight) if all_weight else (0, 0)
    return ExplainedShare(
        pool=pool,
        weight=weight,
        all_weight=all_weight,
        share=share,
        lost=lost,
        cap=cap,
        paid=share if cap is None else min(share, cap),
    )


def _device(device: Attested, terms: RewardTerms) -> ExplainedDevice:
    ratings = {rated.name: rated.ppm for rated in terms.class_ratings}
    return ExplainedDevice(
        hardware_class=device.hardware_class,
        tier=device.tier,
        attested_us=device.gpu_us,
        promised_us=device.promised_us,
        rating_ppm=ratings.get(device.hardware_class, PPM),
        reason=_why_it_does_not_count(device, terms),
    )


def _why_it_does_not_count(device: Attested, terms: RewardTerms) -> str | None:
    tier = paid_tier(terms)
    if counts(device, terms, tier):
        return None
    if device.tier < tier:
        return f"trust tier {device.tier}: the policy asks for {tier}"
    least = terms.availability_min_uptime_ppm * device.promised_us
    needed, promised = _hours(-(-least // PPM)), _hours(device.promised_us)
    return f"it was there for less than {needed} of {promised}"


def _why_no_work(
    node: NodeCut, policy: PolicyPublished, weights: dict[str, int], share: ExplainedShare
) -> list[str]:
    if not share.weight:
        if not node.uses:
            return ["compute: only its owner used it, as far as this epoch's cut tells"]
        idle = [use.source for use in node.uses if not weights.get(use.source, 0)]
        if len(idle) == len(node.uses):
            return [f"compute: what {', '.join(idle)} paid for has no weight"]
        return [f"compute: nothing of its use counts as {policy.compute_base} in this epoch yet"]
    if share.cap is not None and share.share > share.cap:
        return [
            f"compute: {_token(share.share)} was its share, and {_token(node.burned_tokens)} were"
            f" burned for it: it gets at most {_token(share.cap)}"
        ]
    return _no_pool("compute", share)


def _why_less_time(
    node: NodeCut, policy: PolicyPublished, weights: dict[str, int]
) -> Iterator[str]:
    """Where time is the weight, and too little was burned to weigh all of it."""
    least = None if policy.rewards is None else policy.rewards.burned_per_gpu_hour
    if policy.compute_base == "burned_value" or least is None:
        return
    for use in node.uses:
        if weights.get(use.source, 0) and use.burned * GPU_HOUR_US < use.gpu_us * least:
            yield (
                f"compute: {_credit(use.burned)} were burned for {_hours(use.gpu_us)} paid with"
                f" {use.source}: {_hours(use.burned * GPU_HOUR_US // least)} count, at"
                f" {_credit(least)} an hour"
            )


def _why_not_there(
    node: NodeCut,
    terms: RewardTerms,
    devices: tuple[ExplainedDevice, ...],
    low: ExplainedShare,
    high: ExplainedShare,
) -> list[str]:
    share, paid = low.share + high.share, low.paid + high.paid
    if not low.weight:
        if not devices:
            return ["availability: no time of its devices was attested before this epoch's cut"]
        reasons = {one.reason for one in devices if one.reason}
        return [f"availability: {reason}" for reason in sorted(reasons)] or [
            "availability: its hardware classes have no weight in this policy"
        ]
    if share > paid:
        hours = attested_us(node, terms) // GPU_HOUR_US
        return [
            f"availability: {_token(share)} was its share: for {hours} whole GPU-hours it gets at"
            f" most {_token(paid)}"
        ]
    return [] if share else _no_pool("availability", high if high.weight else low)


def _no_pool(kind: str, share: ExplainedShare) -> list[str]:
    if share.share:
        return []
    return [f"{kind}: its part of a pool of {_token(share.pool)} is less than {_token(1)}"]


def _token(units: int) -> str:
    return f"{decimal(units, 8, 0)} TOKEN"


def _credit(units: int) -> str:
    return f"{decimal(units, 6, 0)} CREDIT"


def _hours(us: int) -> str:
    """GPU-hours, rounded down to a millionth."""
    return f"{decimal(us * 10**6 // GPU_HOUR_US, 6, 0)} GPU-hours"
